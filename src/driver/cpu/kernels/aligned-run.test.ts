/**
 * Which of a kernel's two entries is chosen, by a fake clock; and that both entries call the
 * kernel's function, and the probe.
 */
import { describe, expect, test } from 'vitest';

import { alignedRun } from './aligned-run.js';
import type { Way } from './aligned-run.js';
import { someOf } from '../../../../test/random-runs.js';

/**
 * A kernel whose calls take a millisecond or so, and entries by which the probe takes the given
 * microseconds.
 */
function kernelOf(probe: { plain: number; shifted: number }, { call = 1 } = {}) {
  let time = 0;
  const taken = { plain: 0, shifted: 0, directly: 0, probes: 0 };
  /** Blocks differ, as those of pictures do. */
  const work = (): void => {
    time += call * (1 + ((taken.plain + taken.shifted + taken.directly) % 7) / 2);
  };
  const way =
    (name: 'plain' | 'shifted'): Way =>
    (address, fuel, zero) => {
      expect(zero).toBe(0);
      if (address === 0) {
        taken.probes++;
        time += probe[name] / 1000;
        return 7;
      }
      taken[name]++;
      work();
      return address + fuel;
    };
  const run = alignedRun(
    (address, fuel) => {
      taken.directly++;
      work();
      return address + fuel;
    },
    () => time,
    () => [way('plain'), way('shifted')],
  );
  return {
    probe,
    /**
     * Makes calls. Returns how many used each entry, how many times the probe ran between them, and
     * the milliseconds.
     */
    calls(count: number) {
      Object.assign(taken, { plain: 0, shifted: 0, directly: 0, probes: 0 });
      const start = time;
      for (let i = 1; i <= count; i++) expect(run(i, 3)).toBe(i + 3);
      return { ...taken, ms: time - start };
    },
  };
}

describe('the entry into a kernel', () => {
  test('few calls use the function directly', () => {
    expect(kernelOf({ plain: 1, shifted: 1 }).calls(32)).toMatchObject({
      plain: 0,
      shifted: 0,
      directly: 32,
      probes: 0,
    });
  });

  test.each([
    ['plain', { plain: 0.8, shifted: 1 }],
    ['shifted', { plain: 1, shifted: 0.8 }],
  ] as const)('the faster entry is %s', (faster, probe) => {
    const kernel = kernelOf(probe);
    expect(kernel.calls(1032)).toMatchObject({
      plain: 0,
      shifted: 0,
      [faster]: 1000,
      directly: 32,
    });
  });

  test('the entry changes when the other one becomes faster, as frames move', () => {
    const kernel = kernelOf({ plain: 0.8, shifted: 1 });
    kernel.calls(100);
    Object.assign(kernel.probe, { plain: 1, shifted: 0.8 });
    kernel.calls(12);
    expect(kernel.calls(1000)).toMatchObject({ shifted: 1000 });
  });

  test('of equally fast entries the current one is kept', () => {
    const kernel = kernelOf({ plain: 1, shifted: 0.8 });
    kernel.calls(100);
    Object.assign(kernel.probe, { plain: 0.97, shifted: 1 });
    expect(kernel.calls(1000)).toMatchObject({ shifted: 1000 });
  });

  someOf(2, test)([0.0005, 0.02, 5])(
    'the probe runs by time, not by number, for calls of %d ms and more',
    (call) => {
      const kernel = kernelOf({ plain: 1, shifted: 0.8 }, { call });
      kernel.calls(100);
      const { probes, ms } = kernel.calls(10_000);
      expect(probes / 8).toBeGreaterThan(0);
      expect(probes / 8).toBeLessThanOrEqual(Math.min(1 + ms / 10, 10_000 / 4 + 1));
    },
  );

  test('an entry passes the arguments, the status and the trap of a kernel', () => {
    // (func (export "run") (param i32 i32) (result i32) (if (result i32) (i32.eq (local.get 0)
    // (i32.const 13)) (then (unreachable)) (else (i32.add (local.get 0) (local.get 1)))))
    const wasm = Uint8Array.of(
      0x00,
      0x61,
      0x73,
      0x6d,
      0x01,
      0x00,
      0x00,
      0x00,
      0x01,
      0x07,
      0x01,
      0x60,
      0x02,
      0x7f,
      0x7f,
      0x01,
      0x7f,
      0x03,
      0x02,
      0x01,
      0x00,
      0x07,
      0x07,
      0x01,
      0x03,
      0x72,
      0x75,
      0x6e,
      0x00,
      0x00,
      0x0a,
      0x13,
      0x01,
      0x11,
      0x00,
      0x20,
      0x00,
      0x41,
      0x0d,
      0x46,
      0x04,
      0x7f,
      0x00,
      0x05,
      0x20,
      0x00,
      0x20,
      0x01,
      0x6a,
      0x0b,
      0x0b,
    );
    const { run } = new WebAssembly.Instance(new WebAssembly.Module(wasm)).exports as {
      run: (ctx: number, fuel: number) => number;
    };
    let time = 0;
    const aligned = alignedRun(run, () => (time += 20));
    for (let i = 1; i <= 3000; i++) {
      expect(aligned(i * 16, -i)).toBe(i * 15);
      expect(() => aligned(13, 0)).toThrow(WebAssembly.RuntimeError);
    }
  });
});
