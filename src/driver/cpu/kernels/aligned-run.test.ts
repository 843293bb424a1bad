/** Which of a kernel's two ways in is taken, by a clock of our own; and that both ways are the kernel's function. */
import { describe, expect, test } from 'vitest';

import { STATUS } from '../../../ptx/index.js';
import { alignedRun } from './aligned-run.js';

/** A kernel whose blocks take so many milliseconds by either way, and some more by that part, as those of pictures do. */
function kernelOf(cost: { plain: number; shifted: number }, { spread = 0.3, status = STATUS.done as number } = {}) {
  let time = 0;
  const taken = { plain: 0, shifted: 0, directly: 0 };
  const way = (name: 'plain' | 'shifted') => (ctx: number): number => {
    taken[name]++;
    time += cost[name] * ctx * (1 + (taken.plain + taken.shifted) % 7 / 6 * spread);
    return status;
  };
  const run = alignedRun(() => {
    taken.directly++;
    return STATUS.done;
  }, (address) => address, () => time, () => [way('plain'), way('shifted')]);
  return {
    taken, cost,
    /** Calls of one to four blocks; how many went which way. */
    calls(count: number) {
      Object.assign(taken, { plain: 0, shifted: 0, directly: 0 });
      const statuses = new Set<number>();
      for (let i = 0; i < count; i++) statuses.add(run(1 + i % 4, 65536));
      return { ...taken, statuses: [...statuses] };
    },
  };
}

describe('the way into a kernel', () => {
  test('few calls go straight to the function', () => {
    expect(kernelOf({ plain: 1, shifted: 1 }).calls(64)).toEqual({ plain: 0, shifted: 0, directly: 64, statuses: [STATUS.done] });
  });

  test.each([['plain', { plain: 0.1, shifted: 0.13 }], ['shifted', { plain: 0.2, shifted: 0.1 }]] as const)('the faster way is %s', (faster, cost) => {
    const kernel = kernelOf(cost);
    kernel.calls(80);
    const { plain, shifted, directly } = kernel.calls(5000);
    expect(directly).toBe(0);
    expect((faster === 'plain' ? plain : shifted) / 5000).toBeGreaterThan(0.98);
  });

  test('what was the faster way is left when the other becomes it, as frames move', () => {
    const kernel = kernelOf({ plain: 0.1, shifted: 0.13 });
    kernel.calls(5000);
    Object.assign(kernel.cost, { plain: 0.13, shifted: 0.1 });
    kernel.calls(600);
    expect(kernel.calls(5000).shifted / 5000).toBeGreaterThan(0.98);
  });

  test('ways that are alike are compared seldom', () => {
    const kernel = kernelOf({ plain: 0.1, shifted: 0.1 }, { spread: 0 });
    kernel.calls(80);
    expect(kernel.calls(8000)).toMatchObject({ plain: 8000, shifted: 0 });
    expect(kernel.calls(800).shifted).toBe(8);
  });

  test('short calls are compared by time, not by number', () => {
    const kernel = kernelOf({ plain: 0.001, shifted: 0.002 });
    kernel.calls(80);
    expect(kernel.calls(8000).shifted).toBe(0);
  });

  test('calls that end no block tell nothing', () => {
    const kernel = kernelOf({ plain: 0.2, shifted: 0.1 }, { status: STATUS.yielded });
    expect(kernel.calls(4000)).toMatchObject({ directly: 64, statuses: [STATUS.done, STATUS.yielded] });
    expect(kernel.calls(500)).toMatchObject({ plain: 500 - kernel.taken.shifted });
    expect(kernel.taken.shifted).toBeLessThan(20);
  });

  test('a way takes the arguments, gives the status and lets what stops the kernel through', () => {
    // (func (export "run") (param i32 i32) (result i32)
    //   (if (result i32) (i32.eq (local.get 0) (i32.const 13)) (then (unreachable)) (else (i32.add (local.get 0) (local.get 1)))))
    const wasm = Uint8Array.of(
      0x00, 0x61, 0x73, 0x6d, 0x01, 0x00, 0x00, 0x00, 0x01, 0x07, 0x01, 0x60, 0x02, 0x7f, 0x7f, 0x01, 0x7f, 0x03, 0x02, 0x01, 0x00,
      0x07, 0x07, 0x01, 0x03, 0x72, 0x75, 0x6e, 0x00, 0x00,
      0x0a, 0x13, 0x01, 0x11, 0x00, 0x20, 0x00, 0x41, 0x0d, 0x46, 0x04, 0x7f, 0x00, 0x05, 0x20, 0x00, 0x20, 0x01, 0x6a, 0x0b, 0x0b,
    );
    const { run } = new WebAssembly.Instance(new WebAssembly.Module(wasm)).exports as { run: (ctx: number, fuel: number) => number };
    let time = 0;
    const aligned = alignedRun(run, () => 1, () => time++);
    for (let i = 0; i < 3000; i++) {
      expect(aligned(i * 16, -i)).toBe(i * 15);
      expect(() => aligned(13, 0)).toThrow(WebAssembly.RuntimeError);
    }
  });
});
