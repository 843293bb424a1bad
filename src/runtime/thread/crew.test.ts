/** Grids whose blocks run on several threads. */
import { describe, expect, test } from 'vitest';

import { messageOf } from '../../driver/cpu/testing/open-fake.js';
import { sample } from '../../ptx/run-grid.test-support.js';
import { someOf } from '../../../test/random-runs.js';
import { crewDevices, kernel } from './crew-device.test-support.js';

const WORKERS = [2, 1, 3, 8];

const open = crewDevices();

someOf(1, describe)(WORKERS)('with %i workers', (workers) => {
  test('a spin lock between all threads of all blocks protects its data', () => {
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
    'persistent blocks take work from a counter until there is none, and signal a ' +
      'block that waits for all',
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

  test('each thread that fails an assertion is reported once', () => {
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
