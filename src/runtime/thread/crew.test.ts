import { readdirSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, describe, expect, test } from 'vitest';

import { WORD } from '../../driver/cpu/crew/control.js';
import type { CrewOptions } from '../../driver/cpu/crew/crew-options.js';
import type { CpuOptions } from '../../driver/cpu/open.js';
import { messageOf } from '../../driver/cpu/testing/open-fake.js';
import { kernelText, sample } from '../../ptx/run-grid.test-support.js';
import { CrewDevice, floatBits } from './crew-device.test-support.js';
import { startMember } from './start-crew.js';
import type { Param, Size } from './crew-device.test-support.js';
import { scaledRows, someOf } from '../../../test/random-runs.js';

const WORKERS = [2, 1, 3, 8];
const opened: CrewDevice[] = [];

function open(
  workers: number,
  crew: Partial<CrewOptions> = {},
  options: CpuOptions = {},
): CrewDevice {
  const device = new CrewDevice(workers, crew, options);
  opened.push(device);
  return device;
}

afterEach(() => opened.splice(0).forEach((device) => device.close()));

const REGISTERS =
  '.reg .pred %p<8>; .reg .b32 %r<40>; .reg .b64 %rd<40>; .reg .f32 %f<8>; ' +
  '.reg .f64 %fd<8>; .reg .b16 %h<8>;';

/** A kernel. `params` are named as nvcc names them; u64 for addresses, u32 for the others. */
function kernel(name: string, params: string, body: string): string {
  const declared = [...params]
    .map((kind, index) => `.param .${kind === 'p' ? 'u64' : 'u32'} p${index}`)
    .join(', ');
  const loads = [...params]
    .map((kind, index) =>
      kind === 'p'
        ? `ld.param.u64 %rd${index}, [p${index}];`
        : `ld.param.u32 %r${index}, [p${index}];`,
    )
    .join('\n');
  return kernelText(
    name,
    declared,
    `
    ${REGISTERS}
    ${loads}
    mov.u32 %r20, %ctaid.x; mov.u32 %r21, %tid.x; mov.u32 %r22, %ntid.x; mov.u32 %r23, %nctaid.x;
    mad.lo.u32 %r24, %r20, %r22, %r21;
    ${body}
    ret;`,
  );
}

someOf(1, describe)(WORKERS)('with %i workers', (workers) => {
  test('a spin lock between all threads of all blocks guards what it guards', () => {
    const device = open(workers);
    const locked = device.kernel(
      kernel(
        'locked',
        'ppu',
        `
      mov.u32 %r10, 0;
    again:
      atom.global.acquire.gpu.cas.b32 %r11, [%rd0], 0, 1;
      setp.ne.u32 %p0, %r11, 0;
      @%p0 bra again;
      ld.global.u32 %r12, [%rd1]; add.u32 %r12, %r12, 1; st.global.u32 [%rd1], %r12;
      atom.global.release.gpu.exch.b32 %r11, [%rd0], 0;
      add.u32 %r10, %r10, 1;
      setp.lt.u32 %p1, %r10, %r2;
      @%p1 bra again;`,
      ),
      'locked',
    );
    const lock = device.array(Int32Array, 1);
    const count = device.array(Int32Array, 1);
    device.launch(locked, [24], [40], [[lock.at], [count.at], 20]);
    device.finish();
    expect(count.view[0]).toBe(24 * 40 * 20);
  });

  test('blocks that wait for the block before them (decoupled look-back) end, and scan', () => {
    const device = open(workers);
    // state[block] is 0, or 1 once the sum up to the block is in sums[block].
    const lookBack = device.kernel(
      kernel(
        'lookback',
        'pppp',
        `
      // rd0: ticket, rd1: input, rd2: state, rd3: sums
      atom.global.add.u32 %r1, [%rd0], 1;
      mul.wide.u32 %rd10, %r1, 4;
      add.u64 %rd11, %rd1, %rd10; add.u64 %rd12, %rd2, %rd10; add.u64 %rd13, %rd3, %rd10;
      ld.global.u32 %r2, [%rd11];
      setp.eq.u32 %p0, %r1, 0;
      @%p0 bra publish;
    wait:
      ld.acquire.gpu.global.u32 %r3, [%rd12+-4];
      setp.eq.u32 %p1, %r3, 0;
      @%p1 bra wait;
      ld.global.u32 %r4, [%rd13+-4];
      add.u32 %r2, %r2, %r4;
    publish:
      st.global.u32 [%rd13], %r2;
      membar.gl;
      st.release.gpu.global.u32 [%rd12], 1;`,
      ),
      'lookback',
    );
    const n = 3000;
    const ticket = device.array(Int32Array, 1);
    const input = device.array(Int32Array, n);
    const state = device.array(Int32Array, n);
    const sums = device.array(Int32Array, n);
    input.view.forEach((_, i) => (input.view[i] = (i * 7919) % 101));
    device.launch(lookBack, [n], [1], [[ticket.at], [input.at], [state.at], [sums.at]]);
    device.finish();
    let sum = 0;
    expect([...sums.view]).toEqual([...input.view].map((value) => (sum += value)));
  });

  test('blocks that wait for later ones make progress', () => {
    const device = open(workers);
    const chain = device.kernel(
      kernel(
        'chain',
        'p',
        `
      mul.wide.u32 %rd10, %r20, 4; add.u64 %rd11, %rd0, %rd10;
      add.u32 %r1, %r20, 1;
      setp.eq.u32 %p0, %r1, %r23;
      @%p0 bra mine;
    wait:
      ld.volatile.global.u32 %r2, [%rd11+4];
      setp.eq.u32 %p1, %r2, 0;
      @%p1 bra wait;
    mine:
      st.volatile.global.u32 [%rd11], 1;`,
      ),
      'chain',
    );
    const flags = device.array(Int32Array, 48);
    device.launch(chain, [48], [1], [[flags.at]]);
    device.finish();
    expect(flags.view.every((flag) => flag === 1)).toBe(true);
  });

  test('a cooperative grid meets at every grid sync', () => {
    const device = open(workers);
    const n = 5000;
    const a = device.array(Float32Array, n);
    a.view.forEach((_, i) => (a.view[i] = i));
    device.launch(device.kernel(sample('k15_coop'), 'cg_grid'), [16], [64], [[a.at], n], {
      cooperative: true,
    });
    device.finish();
    a.view.forEach((value, i) => {
      let wanted = i;
      for (let k = 0; k < 4; k++) wanted = Math.fround(Math.fround(wanted * 0.5) + 1);
      expect(value).toBe(wanted);
    });
  });

  test(
    'persistent blocks take work from a counter until there is none, and tell one that waits ' +
      'for all',
    () => {
      const device = open(workers);
      const persistent = device.kernel(
        kernel(
          'persistent',
          'pppu',
          `
      // rd0: next, rd1: done, rd2: out, r3: items
      setp.ne.u32 %p0, %r20, 0;
      @%p0 bra take;
    wait:
      ld.relaxed.gpu.global.u32 %r10, [%rd1];
      setp.lt.u32 %p1, %r10, %r3;
      @%p1 bra wait;
      st.global.u32 [%rd2], %r10;
      ret;
    take:
      atom.global.add.u32 %r11, [%rd0], 1;
      setp.ge.u32 %p2, %r11, %r3;
      @%p2 bra out;
      mul.wide.u32 %rd10, %r11, 4; add.u64 %rd11, %rd2, %rd10;
      st.global.u32 [%rd11+4], %r11;
      membar.gl;
      red.global.add.u32 [%rd1], 1;
      bra take;
    out:`,
        ),
        'persistent',
      );
      const items = 4000;
      const next = device.array(Int32Array, 1);
      const done = device.array(Int32Array, 1);
      const out = device.array(Int32Array, items + 1);
      device.launch(persistent, [9], [1], [[next.at], [done.at], [out.at], items]);
      device.finish();
      expect([...out.view]).toEqual([items, ...Array(items).keys()]);
    },
  );

  test('atomic adds of every width count every thread of every block', () => {
    const device = open(workers);
    const adds = device.kernel(
      kernel(
        'adds',
        'p',
        `
      mov.f32 %f0, 0f3F800000; mov.f64 %fd0, 0d3FF0000000000000;
      mov.b16 %h0, 0x3c00; mov.u64 %rd10, 0x100000001;
      mov.b32 %r10, 0x3c003c00;
      red.global.add.u32 [%rd0], 1;
      red.global.add.u64 [%rd0+8], %rd10;
      red.global.add.f32 [%rd0+16], %f0;
      red.global.add.f64 [%rd0+24], %fd0;
      atom.global.add.noftz.f16 %h1, [%rd0+32], %h0;
      atom.global.add.noftz.f16x2 %r11, [%rd0+36], %r10;
      red.global.max.s32 [%rd0+40], %r24;
      red.global.or.b32 [%rd0+44], %r24;
      atom.global.inc.u32 %r12, [%rd0+48], 0xffffffff;`,
      ),
      'adds',
    );
    const out = device.array(Int32Array, 16);
    device.launch(adds, [32], [64], [[out.at]]);
    device.finish();
    const view = new DataView(out.view.buffer, out.view.byteOffset);
    const n = 2048;
    expect(view.getInt32(0, true)).toBe(n);
    expect(view.getBigInt64(8, true)).toBe(BigInt(n) * 0x100000001n);
    expect(view.getFloat32(16, true)).toBe(n);
    expect(view.getFloat64(24, true)).toBe(n);
    // 2048 is the first number after which halves count in twos.
    expect(view.getUint16(32, true)).toBe(0x6800);
    expect(view.getInt32(36, true)).toBe(0x68006800);
    expect(view.getInt32(40, true)).toBe(n - 1);
    expect(view.getInt32(44, true)).toBe(n - 1);
    expect(view.getInt32(48, true)).toBe(n);
  });

  test('exchanges of 128 bits are whole, between modules and beside loads of 128 bits', () => {
    const device = open(workers);
    // Each value has equal halves; one that has not was torn. Both modules swap until their rounds
    // are over.
    const swapping = (name: string): number =>
      device.kernel(
        kernel(
          name,
          'ppu',
          `
      .reg .b128 %q<4>; .reg .b64 %w<4>;
      cvt.u64.u32 %rd10, %r24; add.u64 %rd10, %rd10, ${name === 'left' ? 1 : 1_000_000};
      mov.u32 %r10, 0;
    again:
      add.u64 %rd10, %rd10, 1000;
      mov.b128 %q0, {%rd10, %rd10};
      atom.global.exch.b128 %q1, [%rd0], %q0;
      mov.b128 {%w0, %w1}, %q1;
      ld.relaxed.gpu.global.b128 %q2, [%rd0];
      mov.b128 {%w2, %w3}, %q2;
      setp.ne.u64 %p0, %w0, %w1; @%p0 red.global.add.u32 [%rd1], 1;
      setp.ne.u64 %p1, %w2, %w3; @%p1 red.global.add.u32 [%rd1], 1;
      atom.global.cas.b128 %q3, [%rd0], %q2, %q0;
      mov.b128 {%w0, %w1}, %q3; setp.ne.u64 %p2, %w0, %w1; @%p2 red.global.add.u32 [%rd1], 1;
      add.u32 %r10, %r10, 1; setp.lt.u32 %p3, %r10, %r2; @%p3 bra again;`,
        ),
        name,
      );
    const cell = device.array(BigInt64Array, 2);
    const torn = device.array(Int32Array, 1);
    const other = device.newStream();
    device.launch(swapping('left'), [8], [32], [[cell.at], [torn.at], 3000]);
    device.launch(swapping('right'), [8], [32], [[cell.at], [torn.at], 3000], { stream: other });
    device.finish();
    device.finish(other);
    expect(torn.view[0]).toBe(0);
    expect(cell.view[0]).toBe(cell.view[1]);
    expect(cell.view[0]).not.toBe(0n);
  });

  test('what blocks print stays whole, and all of it comes before the launch has ended', () => {
    const device = open(workers);
    const f = device.array(Float32Array, 1);
    f.view[0] = 0.5;
    for (let round = 1; round <= 3; round++) {
      device.launch(device.kernel(sample('k14_printf'), 'hello'), [300], [1], [1, [f.at]]);
      device.finish();
      expect(device.printed).toHaveLength(300 * round);
    }
    expect(new Set(device.printed)).toEqual(new Set(['t 0 of 1: 0.500000 str\n']));
  });

  test('malloc gives every thread memory of its own', () => {
    const device = open(workers);
    const p = device.array(BigInt64Array, 32 * 20);
    const dmalloc = device.kernel(sample('k14_printf'), 'dmalloc');
    device.launch(dmalloc, [20], [32], [[p.at]]);
    device.finish();
    // Every block writes the same places, so each value is from some block.
    expect(new Set(p.view.subarray(0, 32)).size).toBe(32);
  });

  test('a fault ends the grid, whatever the other blocks do, and says where it was', () => {
    const device = open(workers);
    const faulty = device.kernel(
      kernel(
        'faulty',
        'pu',
        `
      setp.eq.u32 %p0, %r20, %r1;
      @%p0 bra fault;
    forever:
      ld.volatile.global.u32 %r10, [%rd0];
      setp.eq.u32 %p1, %r10, 0;
      @%p1 bra forever;
      ret;
    fault:
      mov.u64 %rd10, 12;
      st.global.u32 [%rd10], 1;`,
      ),
      'faulty',
    );
    const flag = device.array(Int32Array, 1);
    device.launch(faulty, [12], [2], [[flag.at], 7]);
    expect(messageOf(() => device.finish())).toMatch(
      new RegExp(
        'CUDA_ERROR_ILLEGAL_ADDRESS \\(700\\): faulty: read or write out of bounds at 0xc, ' +
          'PTX line \\d+, block \\(7,0,0\\), thread \\(0,0,0\\)',
      ),
    );
    expect(messageOf(() => device.array(Int32Array, 1))).toContain('CUDA_ERROR_ILLEGAL_ADDRESS');
  });

  test('an assertion that fails has its own text, and its own block', () => {
    const device = open(workers);
    const f = device.array(Float32Array, 2);
    f.view.set([0.5, -1]);
    device.launch(device.kernel(sample('k14_printf'), 'hello'), [6], [2], [2, [f.at]]);
    expect(messageOf(() => device.finish())).toMatch(
      new RegExp(
        'CUDA_ERROR_ASSERT \\(710\\): hello: .*Assertion `.*` failed\\., ' +
          '.*block \\(\\d,0,0\\), thread \\(1,0,0\\)',
      ),
    );
  });

  test('each thread that fails an assertion says so once', () => {
    const device = open(workers);
    const f = device.array(Float32Array, 1);
    f.view.set([-1]);
    device.launch(device.kernel(sample('k14_printf'), 'hello'), [300], [1], [1, [f.at]]);
    expect(messageOf(() => device.finish())).toContain('CUDA_ERROR_ASSERT');
    const blocks = device.printed
      .join('')
      .split('\n')
      .flatMap((line) => /block: \[(\d+),0,0\], thread: \[0,0,0\] Assertion/.exec(line)?.[1] ?? []);
    expect(blocks.map(Number).sort((a, b) => a - b)).toEqual(
      Array.from({ length: 300 }, (_, i) => i),
    );
  });

  test('kernels of two streams that wait for each other both end', () => {
    const device = open(workers);
    const pingPong = device.kernel(
      kernel(
        'pingpong',
        'ppu',
        `
      mov.u32 %r10, 0;
    round:
      add.u32 %r10, %r10, 1;
      st.release.gpu.global.u32 [%rd0], %r10;
    wait:
      ld.acquire.gpu.global.u32 %r11, [%rd1];
      setp.lt.u32 %p0, %r11, %r10;
      @%p0 bra wait;
      setp.lt.u32 %p1, %r10, %r2;
      @%p1 bra round;`,
      ),
      'pingpong',
    );
    const a = device.array(Int32Array, 1);
    const b = device.array(Int32Array, 1);
    const other = device.newStream();
    device.launch(pingPong, [1], [1], [[a.at], [b.at], 5]);
    device.launch(pingPong, [1], [1], [[b.at], [a.at], 5], { stream: other });
    device.finish();
    device.finish(other);
    expect([a.view[0], b.view[0]]).toEqual([5, 5]);
  });

  test('a stream keeps its order, and events between streams theirs', () => {
    const device = open(workers);
    const step = device.kernel(
      kernel(
        'step',
        'puu',
        `
      // Every thread checks that all of the launch before has happened, then adds one.
      mul.wide.u32 %rd10, %r24, 4; add.u64 %rd11, %rd0, %rd10;
      mad.lo.u32 %r10, %r24, 7919, 13; rem.u32 %r10, %r10, %r2;
      mul.wide.u32 %rd12, %r10, 4; add.u64 %rd13, %rd0, %rd12;
      ld.relaxed.gpu.global.u32 %r11, [%rd13];
      setp.lt.u32 %p0, %r11, %r1;
      @%p0 trap;
      red.global.add.u32 [%rd11], 1;`,
      ),
      'step',
    );
    const n = 64 * 40;
    const cells = device.array(Int32Array, n);
    const other = device.newStream();
    const event = device.cu.cuEventCreate(2);
    for (let round = 0; round < 20; round++) {
      const [from, to] = round % 2 === 0 ? [device.stream, other] : [other, device.stream];
      device.launch(step, [40], [64], [[cells.at], round, n], { stream: from });
      device.cu.cuEventRecord(event, from);
      device.cu.cuStreamWaitEvent(to, event, 0);
    }
    device.finish();
    device.finish(other);
    expect(cells.view.every((value) => value === 20)).toBe(true);
  });

  test('time never goes back for a thread, wherever its block runs', () => {
    const device = open(workers);
    const clocks = device.kernel(
      kernel(
        'clocks',
        'pu',
        `
      mov.u32 %r10, 0; mov.u32 %r11, 0; mov.u64 %rd10, 0; mov.u64 %rd14, %globaltimer;
    again:
      mov.u64 %rd11, %clock64;
      setp.le.u64 %p0, %rd11, %rd10;
      @%p0 add.u32 %r11, %r11, 1;
      mov.u64 %rd10, %rd11;
      add.u32 %r10, %r10, 1;
      setp.lt.u32 %p1, %r10, %r1;
      @%p1 bra again;
      mov.u64 %rd15, %globaltimer; setp.le.u64 %p2, %rd15, %rd14;
      @%p2 add.u32 %r11, %r11, 1;
      red.global.add.u32 [%rd0], %r11;`,
      ),
      'clocks',
    );
    const backwards = device.array(Int32Array, 1);
    device.launch(clocks, [8], [1], [[backwards.at], 300_000]);
    device.finish();
    expect(backwards.view[0]).toBe(0);
  });
});

/** Waits until the word at p0 is p1; the words that it reads meanwhile do not change. */
const AWAIT = kernel(
  'awaits',
  'pu',
  `
    add.u64 %rd10, %rd0, 0;
  wait:
    ld.volatile.global.u32 %r10, [%rd10];
    setp.ne.u32 %p0, %r10, %r1;
    @%p0 bra wait;`,
);

someOf(1, describe)([2, 1, 3])('what hangs, with %i workers', (workers) => {
  const limit = 400;
  const hanging = (): CrewDevice => open(workers, {}, { stallLimit: limit });

  test('the error of blocks in a deadlock has the places where they wait', () => {
    const device = hanging();
    const text = kernel(
      'abba',
      'p',
      `
      // Block 0 takes lock 0 and waits for lock 1, block 1 the reverse, once both have the first.
      mul.wide.u32 %rd10, %r20, 4; add.u64 %rd11, %rd0, %rd10;
      xor.b32 %r10, %r20, 1; mul.wide.u32 %rd12, %r10, 4; add.u64 %rd13, %rd0, %rd12;
      atom.global.exch.b32 %r11, [%rd11], 1;
    both:
      ld.acquire.gpu.global.u32 %r12, [%rd13];
      setp.eq.u32 %p0, %r12, 0;
      @%p0 bra both;
    want:
      atom.global.cas.b32 %r13, [%rd13], 0, 1;
      setp.ne.u32 %p1, %r13, 0;
      @%p1 bra want;`,
    );
    const line = text.split('\n').findIndex((each) => each.includes('cas.b32')) + 1;
    const locks = device.array(Int32Array, 2);
    device.launch(device.kernel(text, 'abba'), [2], [3], [[locks.at]]);
    const message = messageOf(() => device.finish());
    expect(message).toContain('CUDA_ERROR_LAUNCH_TIMEOUT');
    for (const block of [0, 1])
      expect(message).toContain(
        `block (${block},0,0): 3 threads from thread (0,0,0) on at PTX line ${line}`,
      );
  });

  test('a grid sync that one block does not come to', () => {
    const device = hanging();
    const text = kernel(
      'absent',
      'p',
      `
      setp.eq.u32 %p0, %r20, 3;
      @%p0 ret;
      red.release.gpu.global.add.u32 [%rd0], 1;
    wait:
      ld.acquire.gpu.global.u32 %r10, [%rd0];
      setp.lt.u32 %p1, %r10, %r23;
      @%p1 bra wait;`,
    );
    const count = device.array(Int32Array, 1);
    device.launch(device.kernel(text, 'absent'), [12], [1], [[count.at]], { cooperative: true });
    const message = messageOf(() => device.finish());
    expect(message).toMatch(
      /CUDA_ERROR_LAUNCH_TIMEOUT.*absent: the blocks wait for each other.*; 3 more blocks wait/,
    );
    expect(message).not.toContain('block (3,0,0)');
    expect(message).not.toContain('have not begun');
  });

  test(
    'not a grid that computes, watches the clock, or waits for another one that does',
    { tags: 'thorough' },
    () => {
      const device = hanging();
      const busy = device.kernel(
        kernel(
          'busy',
          'ppu',
          `
      mov.u64 %rd10, %globaltimer; mul.wide.u32 %rd11, %r2, 1000000; add.u64 %rd11, %rd10, %rd11;
    again:
      mov.u64 %rd12, %globaltimer;
      setp.lt.u64 %p0, %rd12, %rd11;
      @%p0 bra again;
      st.release.gpu.global.u32 [%rd0], 1;`,
        ),
        'busy',
      );
      const flag = device.array(Int32Array, 1);
      const other = device.newStream();
      device.launch(device.kernel(AWAIT, 'awaits'), [2], [1], [[flag.at], 1]);
      device.launch(busy, [1], [1], [[flag.at], [flag.at], 3 * limit], { stream: other });
      device.finish();
      device.finish(other);
      const counts = device.kernel(
        kernel(
          'counts',
          'pu',
          `
      mov.u32 %r10, 0; mov.u64 %rd10, 0; mov.u64 %rd12, 2000000000;
    again:
      add.u64 %rd10, %rd10, 1;
      ld.volatile.global.u32 %r11, [%rd0];
      setp.eq.u32 %p0, %r11, %r1;
      @%p0 bra out;
      setp.lt.u64 %p1, %rd10, %rd12;
      @%p1 bra again;
    out:`,
        ),
        'counts',
      );
      device.launch(counts, [2], [1], [[flag.at], 5]);
      const until = performance.now() + 3 * limit;
      while (performance.now() < until) device.cu.poll(1000);
      Atomics.store(flag.view, 0, 5);
      device.finish();
    },
  );

  test.each([
    ['an atomic', 'atom.global.add.u32 %r10, [%rd0], 0;'],
    ['a fence', 'membar.gl; ld.volatile.global.u32 %r10, [%rd0];'],
  ])(
    'a thousand blocks, which take longer for a turn each than a tenth of the limit: %s',
    { tags: 'thorough', timeout: 60_000 },
    (_, poll) => {
      const device = hanging();
      const flag = device.array(Int32Array, 1);
      const awaits = kernel('many', 'p', `wait: ${poll} setp.eq.u32 %p0, %r10, 0; @%p0 bra wait;`);
      device.launch(device.kernel(awaits, 'many'), [1000], [64], [[flag.at]]);
      expect(messageOf(() => device.finish())).toMatch(
        /CUDA_ERROR_LAUNCH_TIMEOUT.*many: the blocks wait for each other.*; \d+ have not begun/,
      );
    },
  );

  test('not one that the host releases in time, or that waits for the host by declaration', () => {
    const device = open(workers, {}, { stallLimit: Infinity });
    const flag = device.array(Int32Array, 1);
    device.launch(device.kernel(AWAIT, 'awaits'), [4], [2], [[flag.at], 7]);
    const until = performance.now() + 2 * limit;
    while (performance.now() < until) device.cu.poll(1000);
    Atomics.store(flag.view, 0, 7);
    device.finish();
    expect(flag.view[0]).toBe(7);
  });
});

test('a block whose threads wait at different barriers is an error with the lines of both', () => {
  const device = open(2);
  const text = kernel(
    'apart',
    '',
    `
    setp.lt.u32 %p0, %r21, 3;
    @%p0 bra first;
    barrier.sync 1, 64;
    ret;
  first:
    barrier.sync 2, 64;`,
  );
  const line = (part: string): number =>
    text.split('\n').findIndex((each) => each.includes(part)) + 1;
  device.launch(device.kernel(text, 'apart'), [3], [32], []);
  const message = messageOf(() => device.finish());
  expect(message).toMatch(/CUDA_ERROR_LAUNCH_FAILED.*apart: every thread of the block waits/);
  expect(message).toContain(
    `3 threads from thread (0,0,0) on at PTX line ${line('barrier.sync 2')}`,
  );
  expect(message).toContain(
    `29 threads from thread (3,0,0) on at PTX line ${line('barrier.sync 1')}`,
  );
});

test(
  'after a grid no more members look for work than there are processors to spare, and soon ' +
    'all sleep',
  async () => {
    let words: Int32Array | undefined;
    const device = open(4, {
      processors: 4,
      start: (start) => {
        words = new Int32Array(start.control);
        return startMember(start);
      },
    });
    const touch = device.kernel(kernel('touch', 'p', 'red.global.add.u32 [%rd0], 1;'), 'touch');
    const count = device.array(Int32Array, 1);
    const seen = new Set<number>();
    // On a busy machine other threads may run while members would look for work: then it takes more
    // grids to see one that does.
    for (let i = 1; i <= 50 || (i <= 2000 && Math.max(...seen) === 0); i++) {
      device.launch(touch, [200], [1], [[count.at]]);
      device.finish();
      expect(count.view[0]).toBe(200 * i);
      // A member that is refused is counted for an instant, too.
      for (let looks = 0; looks < 2000; looks++) seen.add(Atomics.load(words!, WORD.looking));
      if (i % 10 !== 0) continue;
      // Both are read at once: a member that is counted as asleep may have been woken for the grid
      // just before its wait, and looks once more.
      let atRest: [sleepers: number, looking: number] = [0, 0];
      for (let tries = 0; tries < 200 && (atRest[0] !== 3 || atRest[1] !== 0); tries++) {
        if (tries > 0) await delay(5);
        atRest = [Atomics.load(words!, WORD.sleepers), Atomics.load(words!, WORD.looking)];
      }
      expect(atRest).toEqual([3, 0]);
    }
    expect(Math.max(...seen)).toBeGreaterThan(0);
    expect(Math.max(...seen)).toBeLessThanOrEqual(3);
  },
);

/**
 * Race-free launches of the samples: what they do to memory does not depend on who runs which
 * block.
 */
const SAMPLES: {
  file: string;
  name: string;
  grid: Size;
  block: Size;
  shared?: number;
  params: (at: (words: number) => [number]) => Param[];
}[] = [
  {
    file: 'k01_saxpy',
    name: 'saxpy',
    grid: [40],
    block: [256],
    params: (at) => [10_000, floatBits(2.5), at(10_000), at(10_000)],
  },
  {
    file: 'k04_sgemm',
    name: 'sgemm_tiled',
    grid: [6, 6],
    block: [16, 16],
    params: (at) => [96, 96, 96, at(96 * 96), at(96 * 96), at(96 * 96)],
  },
  {
    file: 'k04_sgemm',
    name: 'sgemm_reg',
    grid: [2, 2],
    block: [256],
    params: (at) => [128, 128, 128, at(128 * 128), at(128 * 128), at(128 * 128)],
  },
  {
    file: 'k03_reduce',
    name: 'reduce_tree',
    grid: [20],
    block: [256],
    shared: 1024,
    params: (at) => [at(10_000), at(20), 10_000],
  },
  {
    file: 'k05_softmax',
    name: 'softmax',
    grid: [24],
    block: [128],
    params: (at) => [at(24 * 300), at(24 * 300), 300],
  },
  {
    file: 'k05_softmax',
    name: 'rms_norm',
    grid: [24],
    block: [128],
    params: (at) => [at(24 * 300), at(300), at(24 * 300), 300, floatBits(1e-5)],
  },
  {
    file: 'k05_softmax',
    name: 'gelu_silu',
    grid: [20],
    block: [256],
    params: (at) => [at(5000), at(5000), at(5000), 5000],
  },
  {
    file: 'k06_hist',
    name: 'hist256',
    grid: [12],
    block: [256],
    params: (at) => [at(5000), at(256), 20_000],
  },
  {
    file: 'k07_scan',
    name: 'scan_block',
    grid: [20],
    block: [256],
    params: (at) => [at(5000), at(5120), at(20), 5000],
  },
  {
    file: 'k08_transpose',
    name: 'transpose',
    grid: [4, 3],
    block: [32, 8],
    params: (at) => [at(10_000), at(10_000), 100, 70],
  },
  {
    file: 'k09_nbody',
    name: 'nbody',
    grid: [4],
    block: [128],
    params: (at) => [at(2048), at(2048), 512, floatBits(0.01), floatBits(0.1)],
  },
  {
    file: 'k10_mandel',
    name: 'mandel',
    grid: [8, 8],
    block: [16, 16],
    params: (at) => [
      at(128 * 128),
      128,
      128,
      floatBits(-2),
      floatBits(-1.5),
      floatBits(3 / 128),
      300,
    ],
  },
  {
    file: 'k11_resize',
    name: 'resize_bilinear',
    grid: [6, 6],
    block: [16, 16],
    params: (at) => [at(64 * 48), at(96 * 96), 64, 48, 90, 90],
  },
  {
    file: 'k12_philox',
    name: 'philox_normal',
    grid: [20],
    block: [64],
    params: (at) => [at(5200), [0x12345678], 1280],
  },
  {
    file: 'k12_philox',
    name: 'mulhi64',
    grid: [20],
    block: [64],
    params: (at) => [at(2600), at(2600), at(2600), 1200],
  },
  { file: 'k13_bitonic', name: 'bitonic_sh', grid: [6], block: [1024], params: (at) => [at(6144)] },
  {
    file: 'k13_bitonic',
    name: 'radix_rank',
    grid: [20],
    block: [64],
    params: (at) => [at(1280), at(1280), 1, 1200],
  },
];

someOf(8, describe)(SAMPLES)('$name', ({ file, name, grid, block, shared, params }) => {
  test('leaves the same bits in memory with any number of workers', { tags: 'scaled' }, () => {
    const results = scaledRows(WORKERS, 2).map((workers) => {
      const device = open(workers);
      const arrays: Int32Array[] = [];
      const values = params((words) => {
        const { at, view } = device.array(Int32Array, words);
        // Finite floats, and small numbers as bytes.
        view.forEach((_, i) => (view[i] = 0x3f000000 + ((i * 2654435761) >>> 9)));
        arrays.push(view);
        return [at];
      });
      device.launch(device.kernel(sample(file), name), grid, block, values, {
        shared: shared ?? 0,
      });
      device.finish();
      return arrays.map((view) => [...view]);
    });
    for (const result of results.slice(1)) expect(result).toEqual(results[0]);
    expect(results[0]!.flat().some((word) => word !== 0)).toBe(true);
  });
});

test('threads are started by the first grid that runs long, and not before', () => {
  let started = 0;
  let time = 0;
  let pace = 0.0001;
  const nobody = { post: () => undefined, end: () => undefined };
  const device = open(
    2,
    { eager: false, start: () => (started++, nobody) },
    { now: () => (time += pace) },
  );
  const spin = device.kernel(
    kernel(
      'count',
      'pu',
      `
    mov.u32 %r10, 0;
  again:
    add.u32 %r10, %r10, 1;
    setp.lt.u32 %p0, %r10, %r1;
    @%p0 bra again;
    mul.wide.u32 %rd10, %r20, 4; add.u64 %rd11, %rd0, %rd10;
    st.global.u32 [%rd11], %r10;`,
    ),
    'count',
  );
  const out = device.array(Int32Array, 64);
  device.launch(spin, [64], [1], [[out.at], 10]);
  device.finish();
  expect(started).toBe(0);
  pace = 0.1;
  device.launch(spin, [64], [1], [[out.at], 1_000_000]);
  device.finish();
  expect(started).toBe(1);
  expect(out.view.every((value) => value === 1_000_000)).toBe(true);
});

test('threads are started by short grids that together run long, one soon after the other', () => {
  let started = 0;
  let time = 0;
  const nobody = { post: () => undefined, end: () => undefined };
  const device = open(
    3,
    { eager: false, start: () => (started++, nobody) },
    { now: () => (time += 0.015) },
  );
  const touch = device.kernel(kernel('touch', 'p', 'red.global.add.u32 [%rd0], 1;'), 'touch');
  const count = device.array(Int32Array, 1);
  const BLOCKS = 20_000;
  let launches = 0;
  /** Launches grids until so much time has passed, with a pause before each. */
  const run = (milliseconds: number, pause = 0): void => {
    for (let spent = 0; spent < milliseconds; launches++) {
      time += pause;
      const before = time;
      device.launch(touch, [BLOCKS], [1], [[count.at]]);
      device.finish();
      spent += time - before;
    }
  };
  run(100, 2000);
  expect(started).toBe(0);
  time += 2000;
  run(8);
  expect(started).toBe(0);
  run(40);
  expect(started).toBe(2);
  expect(count.view[0]).toBe(BLOCKS * launches);
});

test(
  'a grid of a function that ran long is open to others before its first block, a short one ' +
    'never',
  () => {
    let control: Int32Array | undefined;
    let time = 0;
    const pace = 0.02;
    /** Whether a grid was open at each reading of the clock. */
    let isOpen: boolean[] = [];
    const device = open(
      2,
      {
        eager: false,
        start: (start) => {
          control = new Int32Array(start.control);
          Atomics.add(control, WORD.online, 1);
          return { post: () => undefined, end: () => undefined };
        },
      },
      {
        now: () => {
          if (control !== undefined) isOpen.push(Atomics.load(control, WORD.open) !== 0);
          return (time += pace);
        },
      },
    );
    const touch = device.kernel(kernel('touch', 'p', 'red.global.add.u32 [%rd0], 1;'), 'touch');
    const count = device.array(Int32Array, 1);
    let blocks = 0;
    const launch = (grid: number): boolean[] => {
      isOpen = [];
      device.launch(touch, [grid], [1], [[count.at]]);
      device.finish();
      blocks += grid;
      return isOpen;
    };
    for (let i = 0; i < 20; i++) launch(50_000);
    expect(control).toBeDefined();
    // The first reading is that of the grid's beginning.
    expect(launch(50_000).slice(0, 2)).toEqual([false, true]);
    expect(launch(16)).not.toContain(true);
    expect(launch(50_000).slice(0, 2)).toEqual([false, true]);
    expect(count.view[0]).toBe(blocks);
  },
);

test.runIf(process.platform === 'linux')('the threads end with the device', async () => {
  const threads = (): number => readdirSync('/proc/self/task').length;
  const before = threads();
  const device = new CrewDevice(5);
  const f = device.array(Int32Array, 4);
  device.launch(
    device.kernel(kernel('touch', 'p', 'red.global.add.u32 [%rd0], 1;'), 'touch'),
    [50],
    [1],
    [[f.at]],
  );
  device.finish();
  expect(f.view[0]).toBe(50);
  expect(threads()).toBeGreaterThanOrEqual(before + 4);
  device.close();
  for (let i = 0; i < 100 && threads() > before; i++) await delay(50);
  expect(threads()).toBeLessThanOrEqual(before);
});
