// Execution of blocks: barriers, warp operations, divergence, fuel, faults, calls.

import { describe, expect, it } from 'vitest';
import { FAULT, STATUS } from '../index.js';
import { Grid, kernelText } from '../run-grid.test-support.js';

const OUT = '.param .u64 out';
const INDEX = `.reg .b64 %o, %p; .reg .b32 %t, %v, %w, %x, %y; .reg .pred %q, %s;
  ld.param.u64 %o, [out]; mov.u32 %t, %tid.x; mad.wide.u32 %p, %t, 4, %o;`;

function run(
  body: string,
  threads: number,
  options: {
    before?: string;
    fuel?: number;
    grid?: number;
    maxCalls?: number;
    interleave?: boolean;
  } = {},
): { out: Uint32Array; outcome: ReturnType<Grid['run']> } {
  const grid = new Grid(kernelText('k', OUT, `${INDEX}\n${body}`, options.before ?? ''));
  const out = grid.put(new Uint32Array(2048));
  const outcome = grid.run('k', [{ i64: out.address }], {
    grid: [options.grid ?? 1],
    block: [threads],
    ...(options.fuel === undefined ? {} : { fuel: options.fuel }),
    ...(options.maxCalls === undefined ? {} : { maxCalls: options.maxCalls }),
    ...(options.interleave ? { interleave: true } : {}),
  });
  return { out: out.view, outcome };
}

describe('barriers', () => {
  const rotate = `.shared .align 4 .b8 s[4096]; mov.u32 %w, s; mad.lo.u32 %x, %t, 4, %w;
    st.shared.u32 [%x], %t;
    bar.sync 0; xor.b32 %y, %t, 1; mad.lo.u32 %x, %y, 4, %w; ld.shared.u32 %v, [%x];
    st.global.u32 [%p], %v; ret;`;
  it('bar.sync makes stores visible', () => {
    const { out, outcome } = run(rotate, 256);
    expect(outcome.status).toBe(STATUS.done);
    for (let t = 0; t < 256; t++) expect(out[t]).toBe(t ^ 1);
  });
  it('a barrier does not wait for threads that have exited', () => {
    const { out, outcome } = run(
      `setp.ge.u32 %q, %t, 40; @%q exit; bar.sync 0; st.global.u32 [%p], 7; ret;`,
      100,
    );
    expect(outcome.status).toBe(STATUS.done);
    expect([...out.subarray(0, 100)]).toEqual(
      Array.from({ length: 100 }, (_, t) => (t < 40 ? 7 : 0)),
    );
  });
  it('bar.red counts, and combines', () => {
    const { out } = run(
      `and.b32 %v, %t, 3; setp.eq.u32 %q, %v, 0; bar.red.popc.u32 %w, 0, %q;
      bar.red.or.pred %s, 0, %q; selp.u32 %x, 1000, 0, %s;
      add.u32 %w, %w, %x; bar.red.and.pred %s, 0, %q; selp.u32 %x, 9999, 0, %s;
      add.u32 %w, %w, %x; st.global.u32 [%p], %w; ret;`,
      128,
    );
    expect(new Set(out.subarray(0, 128))).toEqual(new Set([1032]));
  });
  it('named barriers with counts: producers arrive, consumers wait', () => {
    const { out, outcome } = run(
      `.shared .align 4 .b8 s[256]; setp.ge.u32 %q, %t, 32; mov.u32 %w, s; and.b32 %y, %t, 31;
      mad.lo.u32 %x, %y, 4, %w; @%q bra produce;
      bar.sync 1, 64; ld.shared.u32 %v, [%x]; st.global.u32 [%p], %v; ret;
      produce: add.u32 %v, %t, 100; st.shared.u32 [%x], %v; bar.arrive 1, 64; ret;`,
      64,
    );
    expect(outcome.status).toBe(STATUS.done);
    for (let t = 0; t < 32; t++) expect(out[t]).toBe(t + 132);
  });
  // As on an H200, warps arrive as a whole, but only the threads that exist have predicates.
  it.each([
    ['bar.sync 1, 32; mov.u32 %v, 5;', 1, 5],
    ['barrier.sync 1, 32; mov.u32 %v, 5;', 7, 5],
    ['bar.sync 1, 64; mov.u32 %v, 5;', 33, 5],
    ['bar.sync 0, 32; mov.u32 %v, 5;', 1, 5],
    ['bar.red.popc.u32 %v, 1, 32, %q;', 7, 7],
    ['barrier.red.popc.u32 %v, 1, 64, %q;', 33, 33],
    ['bar.red.popc.u32 %v, 1, %q;', 33, 33],
    ['bar.sync 1, 32; mov.u32 %v, 5;', 64, 5],
    ['bar.arrive 1, 32; mov.u32 %v, 5;', 1, 5],
    ['bar.arrive 0, 64; bar.sync 0; mov.u32 %v, 5;', 33, 5],
    ['setp.eq.u32 %s, %t, 32; @%s bar.arrive 1, 64; @!%s bar.sync 1, 64; mov.u32 %v, 5;', 33, 5],
  ])('%s in a block of %i', (text, threads, wanted) => {
    const { out, outcome } = run(
      `setp.ge.u32 %q, %t, 0; ${text} st.global.u32 [%p], %v; ret;`,
      threads,
    );
    expect(outcome.status).toBe(STATUS.done);
    expect([...out.subarray(0, threads)]).toEqual(new Array<number>(threads).fill(wanted));
  });
  it.each([
    ['bar.sync 1, 64;', 1],
    ['bar.sync 1, 64;', 32],
    ['bar.sync 1, 96;', 33],
  ])('%s in a block of %i waits for warps that there are not, and is reported', (text, threads) => {
    expect(run(`${text} ret;`, threads).outcome.fault?.kind).toBe(FAULT.divergentBarrier);
  });
  it('a barrier that can never complete is reported', () => {
    const { outcome } = run(
      `setp.lt.u32 %q, %t, 8; @%q bra other; bar.sync 1; ret; other: bar.sync 2; ret;`,
      16,
    );
    expect(outcome.status).toBe(STATUS.fault);
    expect(outcome.fault?.kind).toBe(FAULT.divergentBarrier);
  });
});

describe('warp operations', () => {
  it('shfl in all modes, with segments', () => {
    for (const [mode, clamp, source] of [
      ['up', 0, (l: number) => (l < 3 ? l : l - 3)],
      ['down', 31, (l: number) => (l + 3 > 31 ? l : l + 3)],
      ['bfly', 31, (l: number) => l ^ 3],
      ['idx', 31, () => 3],
      ['down', 0x181f, (l: number) => ((l & 7) + 3 > 7 ? l : l + 3)],
      ['idx', 0x181f, (l: number) => (l & ~7) | 3],
    ] as const) {
      const { out } = run(
        `shfl.sync.${mode}.b32 %v|%q, %t, 3, ${clamp}, -1; selp.u32 %w, 1000, 0, %q; add.u32 ` +
          '%v, %v, %w; st.global.u32 [%p], %v; ret;',
        64,
      );
      for (let t = 0; t < 64; t++) {
        const lane = source(t & 31);
        const valid = mode === 'up' ? (t & 31) >= 3 : mode === 'down' ? lane !== (t & 31) : true;
        expect(out[t], `${mode} ${clamp} ${t}`).toBe((t & ~31) + lane + (valid ? 1000 : 0));
      }
    }
  });
  it('vote, match, redux, activemask and elect', () => {
    const { out } = run(
      `and.b32 %v, %t, 1; setp.eq.u32 %q, %v, 1; vote.sync.ballot.b32 %w, %q, -1;
      st.global.u32 [%p], %w;
      vote.sync.any.pred %s, %q, -1; selp.u32 %w, 1, 0, %s; st.global.u32 [%p+1024], %w;
      redux.sync.add.s32 %w, %t, -1; st.global.u32 [%p+2048], %w;
      match.any.sync.b32 %w, %v, -1; st.global.u32 [%p+3072], %w;
      @%q bra odd; activemask.b32 %w; st.global.u32 [%p+4096], %w; ret;
      odd: activemask.b32 %w; st.global.u32 [%p+4096], %w; ret;`,
      32,
    );
    expect(out[5]).toBe(0xaaaaaaaa);
    expect(out[256 + 5]).toBe(1);
    expect(out[512 + 5]).toBe(496);
    expect(out[768 + 5]).toBe(0xaaaaaaaa);
    expect(out[768 + 4]).toBe(0x55555555);
    expect(out[1024 + 5]).toBe(0xaaaaaaaa);
    expect(out[1024 + 4]).toBe(0x55555555);
  });
  it('works on part of a warp', () => {
    const { out, outcome } = run(
      'setp.ge.u32 %q, %t, 8; @%q bra done; shfl.sync.bfly.b32 %v, %t, 1, 31, 255; ' +
        'st.global.u32 [%p], %v; done: ret;',
      32,
    );
    expect(outcome.status).toBe(STATUS.done);
    expect([...out.subarray(0, 9)]).toEqual([1, 0, 3, 2, 5, 4, 7, 6, 0]);
  });
  it('activemask contains threads whose loop with operations was longer, too', () => {
    const { out } = run(
      `and.b32 %v, %t, 3; mov.u32 %w, 0x11111111; shl.b32 %w, %w, %v;
      again: setp.eq.u32 %q, %v, 0; @%q bra out;
      shfl.sync.idx.b32 %x, %t, 3, 31, %w; sub.u32 %v, %v, 1; bra again;
      out: activemask.b32 %w; st.global.u32 [%p], %w; ret;`,
      64,
    );
    expect(new Set(out.subarray(0, 64))).toEqual(new Set([0xffffffff]));
  });
});

describe('threads of a block make progress against each other', () => {
  const spin = `.shared .align 4 .b8 lock[8]; mov.u32 %w, lock; setp.eq.u32 %q, %t, 0;
    @%q st.shared.u32 [%w], 0; @%q st.shared.u32 [%w+4], 0; bar.sync 0;
    again: atom.shared.cas.b32 %v, [%w], 0, 1; setp.ne.u32 %q, %v, 0; @%q bra again;
    ld.volatile.shared.u32 %x, [%w+4]; add.u32 %x, %x, 1; st.volatile.shared.u32 [%w+4], %x;
    membar.cta; atom.shared.exch.b32 %v, [%w], 0; bar.sync 0; ld.shared.u32 %x, [%w+4];
    st.global.u32 [%p], %x; ret;`;
  it('a spin lock', () => {
    expect(run(spin, 96).out[95]).toBe(96);
  });
  it('a thread that waits for a later one', () => {
    const { out, outcome } = run(
      `setp.eq.u32 %q, %t, 63; @%q bra set; wait: ld.volatile.global.u32 %v, [%o+4096];
      setp.eq.u32 %q, %v, 0; @%q bra wait;
      st.global.u32 [%p], %v; ret; set: st.volatile.global.u32 [%o+4096], 5; ret;`,
      64,
    );
    expect(outcome.status).toBe(STATUS.done);
    expect(out[0]).toBe(5);
  });
  // Warp 0 votes on whether all its threads have seen what warp 1 sets.
  const votes = `.shared .align 4 .b8 s[4]; mov.u32 %w, s; setp.eq.u32 %q, %t, 0;
    @%q st.shared.u32 [%w], 0; bar.sync 0; mov.u32 %y, 0; setp.ge.u32 %q, %t, 32; @%q bra set;
    wait: add.u32 %y, %y, 1; atom.shared.or.b32 %v, [%w], 0; setp.ne.u32 %q, %v, 0;
    vote.sync.all.pred %q, %q, -1; @!%q bra wait;
    st.global.u32 [%p], %y; ret; set: atom.shared.or.b32 %v, [%w], 1; ret;`;
  it('a warp that waits for a later one in a loop of votes', () => {
    const { out, outcome } = run(votes, 64, { fuel: 100_000, maxCalls: 10 });
    expect(outcome.status).toBe(STATUS.done);
    for (const fuel of [1, 7]) expect(run(votes, 64, { fuel }).out).toEqual(out);
  });
  it('a thread at activemask for which others of its warp wait in a loop of votes', () => {
    const { outcome } = run(
      `setp.eq.u32 %q, %t, 7; @%q bra set; setp.ge.u32 %q, %t, 2; @%q exit;
      wait: atom.global.or.b32 %v, [%o+4096], 0; setp.ne.u32 %q, %v, 0;
      vote.sync.all.pred %q, %q, 3; @!%q bra wait; ret;
      set: activemask.b32 %v; atom.global.or.b32 %v, [%o+4096], 1; ret;`,
      32,
      { fuel: 100_000, maxCalls: 10 },
    );
    expect(outcome.status).toBe(STATUS.done);
  });
  it('threads do not poll a lock for long whose holder has yielded', () => {
    const { out, outcome } = run(
      `again: atom.global.cas.b32 %v, [%o+4096], 0, 1; setp.ne.u32 %q, %v, 0; @%q bra again;
      ld.global.u32 %x, [%o+4100]; nanosleep.u32 10; add.u32 %x, %x, 1;
      st.global.u32 [%o+4100], %x; atom.global.exch.b32 %v, [%o+4096], 0; ret;`,
      64,
      { fuel: 10_000, maxCalls: 64 },
    );
    expect(outcome.status).toBe(STATUS.done);
    expect(out[1025]).toBe(64);
  });
  it('a generic volatile access yields only if the kernel has shared memory', () => {
    const yields = (variable: string): boolean =>
      new Grid(kernelText('k', OUT, `${INDEX} ${variable} st.volatile.u32 [%p], 1; ret;`)).kernel(
        'k',
      ).yields;
    expect(yields('')).toBe(false);
    expect(yields('.shared .align 4 .b8 s[4]; st.shared.u32 [s], 0;')).toBe(true);
  });
  it('an endless kernel yields and can be given up', () => {
    const { outcome } = run('again: bra again;', 4, { fuel: 100_000, maxCalls: 5 });
    expect(outcome).toEqual({ status: STATUS.yielded, calls: 6 });
  });
});

describe('fuel', () => {
  const work = `.shared .align 4 .b8 s[1024]; .reg .f32 %f<4>; .reg .b64 %z; mov.u32 %w, s;
    mad.lo.u32 %x, %t, 4, %w; cvt.rn.f32.u32 %f1, %t; mov.u32 %y, 0; mov.b64 %z, 3;
    loop: fma.rn.f32 %f1, %f1, 0f3F8147AE, 0f3E99999A; mad.lo.u32 %v, %y, 3, %t;
    and.b32 %v, %v, 7; add.s64 %z, %z, 5;
    st.shared.f32 [%x], %f1; bar.sync 0; xor.b32 %v, %t, 1; mad.lo.u32 %v, %v, 4, %w;
    ld.shared.f32 %f2, [%v]; add.f32 %f1, %f1, %f2; bar.sync 0;
    inner: add.u32 %v, %v, 1; and.b32 %y, %y, 0xffff; setp.lt.u32 %q, %v, 3; @%q bra inner;
    shfl.sync.down.b32 %f3, %f1, 1, 31, -1; add.f32 %f1, %f1, %f3; add.u32 %y, %y, 1;
    setp.lt.u32 %q, %y, 9; @%q bra loop;
    mov.b32 %v, %f1; cvt.u32.u64 %y, %z; add.u32 %v, %v, %y; st.global.u32 [%p], %v;
    atom.global.add.f32 %f2, [%o+4096], %f1; ret;`;
  it('one unit at a time gives the same bits as all at once', () => {
    const whole = run(work, 70, { grid: 2 });
    expect(whole.outcome.calls).toBe(2);
    for (const fuel of [1, 2, 7, 1000]) {
      const parts = run(work, 70, { fuel, grid: 2 });
      expect(parts.outcome.status).toBe(STATUS.done);
      if (fuel < 8) expect(parts.outcome.calls).toBeGreaterThan(100);
      expect(parts.out).toEqual(whole.out);
    }
  });
  it('straight code never yields', () => {
    const grid = new Grid(kernelText('k', OUT, `${INDEX} st.global.u32 [%p], 1; ret;`));
    expect(grid.kernel('k').yields).toBe(false);
  });
});

describe('faults', () => {
  const at = (body: string, needle: string): number => {
    const lines = kernelText('k', OUT, `${INDEX}\n${body}`).split('\n');
    return lines.findIndex((line) => line.includes(needle)) + 1;
  };
  const expectFault = (
    body: string,
    needle: string,
    kind: number,
    thread: number,
    address?: bigint,
  ): void => {
    const { outcome } = run(body, 64);
    expect(outcome.status).toBe(STATUS.fault);
    expect(outcome.fault).toMatchObject({ kind, thread, line: at(body, needle) });
    if (address !== undefined) expect(outcome.fault?.address).toBe(address);
  };
  const only = 'setp.ne.u32 %q, %t, 5;\n@%q bra done;\n';
  it('null, far, wrapped and misaligned addresses', () => {
    expectFault(
      `${only} mov.b64 %p, 0;\n ld.global.u32 %v, [%p];\ndone: ret;`,
      'ld.global',
      FAULT.outOfBounds,
      5,
      0n,
    );
    expectFault(
      `${only} mov.b64 %p, 65532;\n ld.global.u32 %v, [%p];\ndone: ret;`,
      'ld.global',
      FAULT.outOfBounds,
      5,
      65532n,
    );
    expectFault(
      `${only} add.s64 %p, %p, 0x100000000;\n st.global.u32 [%p], 1;\ndone: ret;`,
      'st.global',
      FAULT.outOfBounds,
      5,
    );
    expectFault(
      `${only} mov.b64 %p, -4;\n st.global.u32 [%p], 1;\ndone: ret;`,
      'st.global',
      FAULT.outOfBounds,
      5,
      0xfffffffffffffffcn,
    );
    expectFault(
      `${only} mov.b64 %p, 33554430;\n ld.global.v4.u32 {%v, %w, %x, %y}, [%p+2];\ndone: ret;`,
      'ld.global',
      FAULT.outOfBounds,
      5,
    );
    expectFault(`${only} st.global.u32 [%p+2], 1;\ndone: ret;`, 'st.global', FAULT.misaligned, 5);
    expectFault(
      `${only} ld.global.v2.u32 {%v, %w}, [%p];\ndone: ret;`,
      'ld.global',
      FAULT.misaligned,
      5,
    );
    expectFault(
      `${only} atom.global.add.u32 %v, [%o+16777216000], 1;\ndone: ret;`,
      'atom',
      FAULT.outOfBounds,
      5,
    );
    expectFault(
      `${only} mov.b64 %p, 12;\n ld.u32 %w, [%p];\ndone: ret;`,
      'ld.u32',
      FAULT.outOfBounds,
      5,
    );
  });
  it('shared memory has its own bounds', () => {
    expectFault(
      `.shared .align 4 .b8 s[64];\n mov.u32 %w, s; mad.lo.u32 %w, %t, 4, %w;\n ` +
        `st.shared.u32 [%w], %t;\n ret;`,
      'st.shared',
      FAULT.outOfBounds,
      16,
    );
  });
  it('trap', () => {
    expectFault(`${only} trap;\ndone: ret;`, 'trap', FAULT.trap, 5);
    expectFault(`${only} brkpt;\ndone: ret;`, 'brkpt', FAULT.breakpoint, 5);
  });
});

describe('calls', () => {
  it('recursion, as deep as the stack allows', () => {
    const before = `.func (.param .b32 r) sum(.param .b32 n)\n{ .reg .b32 %n, %m;
      .reg .pred %p; ld.param.u32 %n, [n]; setp.eq.u32 %p, %n, 0; @%p bra zero;
      sub.u32 %m, %n, 1; { .param .b32 a; .param .b32 b; st.param.b32 [a], %m;
      call.uni (b), sum, (a); ld.param.b32 %m, [b]; }
      add.u32 %n, %n, %m; zero: st.param.b32 [r], %n; ret; }`;
    const call = (n: number): string =>
      `{ .param .b32 a; .param .b32 b; st.param.b32 [a], ${n}; call.uni (b), sum, (a); ` +
      'ld.param.b32 %v, [b]; } st.global.u32 [%p], %v; ret;';
    expect(run(call(300), 2, { before }).out[1]).toBe((300 * 301) / 2);
    expect(run(call(100000), 2, { before }).outcome.fault?.kind).toBe(FAULT.stackOverflow);
  });
  it('of functions that launch kernels are rejected with a reason', () => {
    expect(() =>
      run('{ .param .b32 z; call (z), __cudaCDP2GetLastError; } ret;', 1, {
        before: '.extern .func (.param .b32 r) __cudaCDP2GetLastError;',
      }),
    ).toThrow(
      "function '__cudaCDP2GetLastError' is of CUDA's device runtime: kernels that launch " +
        'kernels (dynamic parallelism) are not covered',
    );
  });
  it('a function with a barrier is inlined', () => {
    const before =
      `.func twice(.param .b64 at)\n{ .reg .b64 %a; .reg .b32 %v; ld.param.u64 %a, [at]; ` +
      'bar.sync 0; ld.global.u32 %v, [%a]; shl.b32 %v, %v, 1; st.global.u32 [%a], %v; ret; }';
    const { out } = run(
      'st.global.u32 [%p], %t; { .param .b64 a; st.param.b64 [a], %p; call twice, (a); } { ' +
        '.param .b64 a; st.param.b64 [a], %p; call twice, (a); } ret;',
      64,
      { before },
    );
    expect(out[63]).toBe(63 * 4);
  });
  describe('functions with loops, called from many places', () => {
    const called = (name: string, times: number): string =>
      Array.from(
        { length: times },
        () =>
          `{ .param .b32 a, z; st.param.b32 [a], %x; call (z), ${name}, (a); ld.param.b32 ` +
          '%x, [z]; }',
      ).join('\n');
    const through = (
      times: number,
      waits = '',
    ): string => `.func (.param .b32 r) f0(.param .b32 n)\n{ .reg .b32 %x; .reg .pred %q;
      ld.param.b32 %x, [n];
      again: add.u32 %x, %x, 7; ${waits} and.b32 %x, %x, 0xffff; setp.gt.u32 %q, %x, 99;
      @%q bra again; st.param.b32 [r], %x; ret; }
      .func (.param .b32 r) f1(.param .b32 n)\n{ .reg .b32 %x; ld.param.b32 %x, [n];
      ${called('f0', times)} st.param.b32 [r], %x; ret; }`;
    const body = (times: number): string =>
      `mov.u32 %x, %t; ${called('f1', times)} st.global.u32 [%p], %x; ret;`;
    const expected = (times: number, thread: number): number => {
      let x = thread;
      for (let i = 0; i < times * times; i++)
        do x = (x + 7) & 0xffff;
        while (x > 99);
      return x;
    };
    it('stay functions if there would be too many copies', () => {
      // 4096 copies once ended the process, in an engine's own thread.
      const { out } = run(body(64), 4, { before: through(64) });
      for (let t = 0; t < 4; t++) expect(out[t]).toBe(expected(64, t));
    });
    it(
      'are inlined all the same where they wait for other threads in a loop',
      { tags: 'thorough' },
      () => {
        const waits = 'ld.volatile.shared.u32 %x, [flag];';
        const before = `.shared .align 4 .b8 flag[4];\n.func (.param .b32 r) f0(.param .b32
          n)\n{ .reg .b32 %x; .reg .pred %q; again: ${waits} setp.eq.u32 %q, %x, 0;
            @%q bra again; st.param.b32 [r], %x; ret; }
      .func (.param .b32 r) f1(.param .b32 n)\n{ .reg .b32 %x; ld.param.b32 %x, [n];
      ${called('f0', 36)} st.param.b32 [r], %x; ret; }`;
        // The last thread sets the word for which all others wait.
        const { out, outcome } = run(
          'mov.u32 %x, 0; setp.eq.u32 %q, %t, 0; @%q st.volatile.shared.u32 [flag], 0; ' +
            'bar.sync 0; setp.eq.u32 %q, %t, 63; @%q st.volatile.shared.u32 [flag], 7; ' +
            `${called('f1', 36)} st.global.u32 [%p], %x; ret;`,
          64,
          { before },
        );
        expect(outcome.status).toBe(STATUS.done);
        expect([...out.subarray(0, 64)]).toEqual(Array.from({ length: 64 }, () => 7));
      },
    );
    it('are rejected if they wait and there would be', () => {
      expect(run(body(8), 32, { before: through(8, 'bar.sync 0;') }).out[0]).toBe(expected(8, 0));
      expect(() => run(body(64), 32, { before: through(64, 'bar.sync 0;') })).toThrow(
        "'k' is too large once its functions are inlined",
      );
    });
  });
  it('exit, trap and faults inside a real function end the thread', () => {
    const recursive = (last: string): string => `.func f(.param .b32 n)
{ .reg .b32 %n; .reg .b64 %a; .reg .pred %p; ld.param.u32 %n, [n]; setp.eq.u32 %p, %n, 0;
@%p bra last; sub.u32 %n, %n, 1;
      { .param .b32 a; st.param.b32 [a], %n; call.uni f, (a); } ret; last: ${last} ret; }`;
    const body =
      'and.b32 %w, %t, 3; setp.eq.u32 %q, %w, 1; @!%q bra skip; { .param .b32 a; ' +
      'st.param.b32 [a], %w; call.uni f, (a); } skip: st.global.u32 [%p], 7; ret;';
    const left = run(body, 8, { before: recursive('exit;') });
    expect(left.outcome.status).toBe(STATUS.done);
    expect([...left.out.subarray(0, 8)]).toEqual([7, 0, 7, 7, 7, 0, 7, 7]);
    expect(run(body, 8, { before: recursive('trap;') }).outcome.fault).toMatchObject({
      kind: FAULT.trap,
      thread: 1,
    });
    expect(
      run(body, 8, { before: recursive('mov.b64 %a, 8; st.u32 [%a], 1;') }).outcome.fault,
    ).toMatchObject({ kind: FAULT.outOfBounds, thread: 1, address: 8n });
  });
  it('a call to an address that is no function is a fault', () => {
    const { outcome } = run(
      '{ .param .b32 r; proto: .callprototype (.param .b32 _) _ (); call (r), %o, (), proto; ' +
        '} ret;',
      1,
    );
    expect(outcome.fault?.kind).toBe(FAULT.invalidCall);
  });
  it('parameters in registers', () => {
    const before = '.func (.reg .u32 r) add(.reg .u32 a, .reg .u32 b)\n{ add.u32 r, a, b; ret; }';
    expect(run('call (%v), add, (%t, 5); st.global.u32 [%p], %v; ret;', 4, { before }).out[3]).toBe(
      8,
    );
  });
  it('local memory belongs to its thread, across barriers', () => {
    const { out } = run(
      `.local .align 8 .b8 l[64]; .reg .b64 %l; mov.u64 %l, l; and.b32 %v, %t, 7;
      mad.wide.u32 %l, %v, 4, %l; st.local.u32 [%l], %t; bar.sync 0;
      nanosleep.u32 20; ld.local.u32 %v, [%l]; st.global.u32 [%p], %v; ret;`,
      64,
    );
    for (let t = 0; t < 64; t++) expect(out[t]).toBe(t);
  });
  it('predicated instructions keep their target', () => {
    const { out } = run(
      'mov.u32 %v, 3; setp.lt.u32 %q, %t, 2; @%q mov.u32 %v, 9; @!%q add.u32 %v, %v, %t; ' +
        'st.global.u32 [%p], %v; ret;',
      4,
    );
    expect([...out.subarray(0, 4)]).toEqual([9, 9, 5, 6]);
  });
  it('three-dimensional blocks count threads x first', () => {
    const grid = new Grid(
      kernelText(
        'k',
        OUT,
        `.reg .b64 %o, %p; .reg .b32 %x, %y, %z, %v, %a, %b; ld.param.u64 %o, [out];
          mov.u32 %x, %tid.x; mov.u32 %y, %tid.y; mov.u32 %z, %tid.z;
      mov.u32 %a, %ntid.x; mov.u32 %b, %ntid.y; mad.lo.u32 %v, %z, %b, %y;
      mad.lo.u32 %v, %v, %a, %x; mad.wide.u32 %p, %v, 4, %o; bar.sync 0;
      mad.lo.u32 %v, %z, 10, %y; mad.lo.u32 %v, %v, 10, %x; st.global.u32 [%p], %v; ret;`,
      ),
    );
    const cells = grid.put(new Uint32Array(64));
    expect(
      grid.run('k', [{ i64: cells.address }], { grid: [1], block: [3, 4, 2], fuel: 1 }).status,
    ).toBe(STATUS.done);
    expect([...cells.view.subarray(0, 24)]).toEqual(
      Array.from(
        { length: 24 },
        (_, i) => Math.floor(i / 12) * 100 + (Math.floor(i / 3) % 4) * 10 + (i % 3),
      ),
    );
  });
  it('irreducible control flow', () => {
    const { out, outcome } = run(
      `mov.u32 %v, 0; and.b32 %w, %t, 1; setp.eq.u32 %q, %w, 1; @%q bra second;
      first: add.u32 %v, %v, 1; second: add.u32 %v, %v, 10; setp.lt.u32 %q, %v, 50;
      @%q bra first; setp.lt.u32 %q, %v, 60; @%q bra second; st.global.u32 [%p], %v; ret;`,
      4,
      { fuel: 1 },
    );
    const reference = (t: number): number => {
      let v = t & 1 ? 0 : 1;
      for (;;) {
        v += 10;
        if (v < 50) {
          v += 1;
          continue;
        }
        if (v < 60) continue;
        return v;
      }
    };
    expect(outcome.status).toBe(STATUS.done);
    for (let t = 0; t < 4; t++) expect(out[t]).toBe(reference(t));
  });
  it('brx.idx', () => {
    const { out } = run(
      `and.b32 %w, %t, 3; table: .branchtargets a, b, c, a; brx.idx %w, table;
      a: st.global.u32 [%p], 1; ret; b: st.global.u32 [%p], 2; ret; c: st.global.u32 [%p], 3; ret;`,
      4,
    );
    expect([...out.subarray(0, 4)]).toEqual([1, 2, 3, 1]);
  });
});
