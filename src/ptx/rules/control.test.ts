// Calls of every kind, host functions, cluster barriers, reductions of floats, and special
// registers.

import { describe, expect, it } from 'vitest';
import { FAULT, STATUS } from '../index.js';
import { Grid, kernelText } from '../run-grid.test-support.js';

interface Run {
  out: Uint32Array;
  outcome: ReturnType<Grid['run']>;
  grid: Grid;
}
function run(
  body: string,
  options: {
    before?: string;
    threads?: number;
    blocks?: number;
    dynamicShared?: number;
    simd?: boolean;
  } = {},
): Run {
  const grid = new Grid(
    kernelText(
      'k',
      '.param .u64 out',
      `.reg .b64 %o, %l<6>; .reg .b32 %r<9>, %t; .reg .pred %p, %q; .reg .f32 %f<4>;
    ld.param.u64 %o, [out]; mov.u32 %t, %tid.x; ${body} ret;`,
      options.before,
    ),
    { simd: options.simd === true },
  );
  const out = grid.put(new Uint32Array(512));
  const outcome = grid.run('k', [{ i64: out.address }], {
    grid: [options.blocks ?? 1],
    block: [options.threads ?? 1],
    dynamicShared: options.dynamicShared ?? 0,
    maxCalls: 100,
  });
  return { out: out.view, outcome, grid };
}
/** Writes register %r0 to the cell of the thread. */
const STORE = 'mul.wide.u32 %l5, %t, 4; add.u64 %l5, %l5, %o; st.global.u32 [%l5], %r0;';

describe('calls', () => {
  const before = `
    .func (.param .b32 res) twice(.param .b32 x) { .reg .b32 %a; ld.param.b32 %a, [x];
    shl.b32 %a, %a, 1; st.param.b32 [res], %a; ret; }
    .func (.param .b32 res) square(.param .b32 x) { .reg .b32 %a; ld.param.b32 %a, [x];
    mul.lo.u32 %a, %a, %a; st.param.b32 [res], %a; ret; }
    .func (.param .b32 res) fibonacci(.param .b32 n) { .reg .b32 %a<4>; .reg .pred %p;
    ld.param.b32 %a0, [n]; setp.lt.u32 %p, %a0, 2; @%p bra small;
      sub.u32 %a1, %a0, 1; { .param .b32 y; .param .b32 v; st.param.b32 [y], %a1;
      call.uni (v), fibonacci, (y); ld.param.b32 %a2, [v]; } sub.u32 %a1, %a0, 2;
      { .param .b32 y; .param .b32 v; st.param.b32 [y], %a1; call (v), fibonacci, (y);
      ld.param.b32 %a3, [v]; } add.u32 %a0, %a2, %a3; small: st.param.b32 [res], %a0; ret; }
    .func (.param .b32 res) sum(.param .align 8 .b8 list[16]) { .reg .b32 %a<4>;
    ld.param.v2.b32 {%a0, %a1}, [list]; ld.param.v2.b32 {%a2, %a3}, [list+8];
    add.u32 %a0, %a0, %a1; add.u32 %a0, %a0, %a2; add.u32 %a0, %a0, %a3;
    st.param.b32 [res], %a0; ret; }
    .func odd(.reg .b64 at, .reg .b32 n);
    .func even(.reg .b64 at, .reg .b32 n) { .reg .pred %p; .reg .b32 %m; setp.eq.u32 %p, n, 0;
    @%p st.global.u32 [at], 1; @%p ret; sub.u32 %m, n, 1; call odd, (at, %m); ret; }
    .func odd(.reg .b64 at, .reg .b32 n) { .reg .pred %p; .reg .b32 %m; setp.eq.u32 %p, n, 0;
    @%p st.global.u32 [at], 2; @%p ret; sub.u32 %m, n, 1; call even, (at, %m); ret; }
    .global .align 8 .u64 table[2] = {twice, square};`;
  it('recursion, of one function and of two', () => {
    const { out } = run(
      '{ .param .b32 n; .param .b32 v; st.param.b32 [n], 15; call (v), fibonacci, (n); ' +
        'ld.param.b32 %r0, [v]; } st.global.u32 [%o], %r0; add.u64 %l0, %o, 4; mov.u32 %r1, 7; ' +
        'call even, (%l0, %r1);',
      { before },
    );
    expect([...out.subarray(0, 2)]).toEqual([610, 2]);
  });
  it('through a table of functions, by a prototype', () => {
    const { out, outcome } = run(
      `and.b32 %r1, %t, 1; mul.wide.u32 %l0, %r1, 8; mov.u64 %l1, table;
      add.u64 %l1, %l1, %l0; ld.global.u64 %l2, [%l1];
      { .param .b32 x; .param .b32 v; st.param.b32 [x], %t;
      proto: .callprototype (.param .b32 _) _ (.param .b32 _); call (v), %l2, (x), proto;
      ld.param.b32 %r0, [v]; } ${STORE}`,
      { before, threads: 10 },
    );
    expect(outcome.status).toBe(STATUS.done);
    expect([...out.subarray(0, 10)]).toEqual(
      Array.from({ length: 10 }, (_, t) => (t & 1 ? t * t : 2 * t)),
    );
  });
  it('through a pointer, with .calltargets or the table itself for a prototype', () => {
    const { out } = run(
      `and.b32 %r1, %t, 1; mul.wide.u32 %l0, %r1, 8; mov.u64 %l1, table;
      add.u64 %l1, %l1, %l0; ld.global.u64 %l2, [%l1];
      { .param .b32 x; .param .b32 v; st.param.b32 [x], %t; list: .calltargets twice, square;
      call (v), %l2, (x), list; ld.param.b32 %r0, [v];
        st.param.b32 [x], %r0; call.uni (v), %l2, (x), table; ld.param.b32 %r0, [v]; } ${STORE}`,
      { before, threads: 10 },
    );
    expect([...out.subarray(0, 10)]).toEqual(
      Array.from({ length: 10 }, (_, t) => (t & 1 ? t ** 4 : 4 * t)),
    );
    expect(() =>
      run(
        'mov.u64 %l1, table; ld.global.u64 %l2, [%l1]; call %l2, (%t), list; list: ' +
          '.calltargets nothing;',
        { before },
      ),
    ).toThrow("'nothing' in 'list' is no function");
  });
  it.each([false, true])(
    'through a pointer to functions that wait, to others beside them, and from one to ' +
      'another (in lanes: %s)',
    (simd) => {
      const waiting = `${before}
      .func (.param .b32 res) swapped(.param .b32 x) { .reg .b32 %a; ld.param.b32 %a, [x];
      shfl.sync.bfly.b32 %a, %a, 1, 31, -1; st.param.b32 [res], %a; ret; }
      .shared .b32 kept[64];
      .func (.reg .b32 v) turned(.reg .b64 unused, .reg .b32 x) { .reg .b32 %a, %b;
      mov.u32 %a, %tid.x; shl.b32 %a, %a, 2; mov.u32 %b, kept; add.u32 %b, %b, %a;
      st.shared.b32 [%b], x;
        bar.sync 0; mov.u32 %b, kept; add.u32 %b, %b, 252; sub.u32 %b, %b, %a;
        ld.shared.b32 v, [%b]; bar.sync 0; ret; }
      .func (.param .b32 res) both(.param .b32 x) { .reg .b32 %a; .reg .b64 %l;
      ld.param.b32 %a, [x]; mov.u64 %l, turned;
      proto: .callprototype (.reg .b32 _) _ (.reg .b64 _, .reg .b32 _);
        call (%a), %l, (%l, %a), proto; add.u32 %a, %a, 1000; st.param.b32 [res], %a; ret; }
      .global .u64 pointers[3] = {swapped, square, both};`;
      const { out, outcome } = run(
        `mov.u32 %r0, %t; mov.u64 %l1, pointers; mov.u32 %r1, 0;
      L: ld.global.u64 %l2, [%l1];
      { .param .b32 x; .param .b32 v; st.param.b32 [x], %r0;
      proto: .callprototype (.param .b32 _) _ (.param .b32 _); call (v), %l2, (x), proto;
      ld.param.b32 %r0, [v]; }
      add.u64 %l1, %l1, 8; add.u32 %r1, %r1, 1; setp.lt.u32 %p, %r1, 3; @%p bra L; ${STORE}`,
        { before: waiting, threads: 64, simd },
      );
      expect(outcome.status).toBe(STATUS.done);
      expect([...out.subarray(0, 64)]).toEqual(
        Array.from({ length: 64 }, (_, t) => 1000 + ((63 - t) ^ 1) ** 2),
      );
    },
  );
  it('through a pointer, of some threads: the others do not wait', () => {
    const { out } = run(
      'mov.u32 %r0, 7; setp.lt.u32 %p, %t, 32; mov.u64 %l2, swapped; proto: .callprototype ' +
        `(.reg .b32 _) _ (.reg .b32 _); @%p call (%r0), %l2, (%t), proto; ${STORE}`,
      {
        before:
          '.func (.reg .b32 v) swapped(.reg .b32 x) { shfl.sync.bfly.b32 v, x, 3, 31, -1; ret; }',
        threads: 64,
      },
    );
    expect([...out.subarray(0, 64)]).toEqual(
      Array.from({ length: 64 }, (_, t) => (t < 32 ? t ^ 3 : 7)),
    );
  });
  it('with an aggregate by value', () => {
    const { out } = run(
      '{ .param .align 8 .b8 x[16]; .param .b32 v; st.param.v2.b32 [x], {1, 20}; ' +
        'st.param.b32 [x+8], 300; st.param.b32 [x+12], 4000; call (v), sum, (x); ld.param.b32 ' +
        '%r0, [v]; } st.global.u32 [%o], %r0;',
      { before },
    );
    expect(out[0]).toBe(4321);
  });
  it('not with memory for a scalar, nor with a register for an aggregate', () => {
    const refused = (body: string): void => {
      expect(() => run(body, { before })).toThrow('does not take this argument');
    };
    refused(
      '{ .local .b32 x; .param .b32 v; mov.u64 %l1, table; ld.global.u64 %l2, [%l1]; p: ' +
        '.callprototype (.param .b32 _) _ (.param .b32 _); call (v), %l2, (x), p; }',
    );
    refused('{ .local .b32 x; .param .b32 v; call (v), fibonacci, (x); }');
    refused(
      '{ .param .b32 x; .param .b32 v; mov.u64 %l1, table; ld.global.u64 %l2, [%l1]; p: ' +
        '.callprototype (.param .b32 _) _ (.param .align 8 .b8 _[16]); call (v), %l2, (x), p; }',
    );
  });
  it('with a predicate, and brx.idx over a list', () => {
    const { out } = run(
      `mov.u32 %r0, 100; setp.gt.u32 %p, %t, 2; { .param .b32 x; .param .b32 v;
      st.param.b32 [x], %t; @%p call (v), square, (x); @%p ld.param.b32 %r0, [v]; }
      and.b32 %r1, %t, 3; list: .branchtargets a, b, c, a; brx.idx %r1, list;
      a: add.u32 %r0, %r0, 1000; bra.uni end; b: add.u32 %r0, %r0, 2000; bra end;
      c: add.u32 %r0, %r0, 3000; end: ${STORE}`,
      { before, threads: 8 },
    );
    expect([...out.subarray(0, 8)]).toEqual(
      Array.from({ length: 8 }, (_, t) => (t > 2 ? t * t : 100) + [1000, 2000, 3000, 1000][t & 3]!),
    );
  });
  it('brx.idx with a predicate: threads without it continue after it', () => {
    const { out } = run(
      'and.b32 %r1, %t, 1; setp.gt.u32 %p, %t, 3; list: .branchtargets a, b; @%p brx.idx ' +
        '%r1, list; mov.u32 %r0, 100; bra end; a: mov.u32 %r0, 200; bra end; b: mov.u32 %r0, ' +
        `300; end: ${STORE}`,
      { threads: 8 },
    );
    expect([...out.subarray(0, 8)]).toEqual([100, 100, 100, 100, 200, 300, 200, 300]);
  });
});

describe('host functions', () => {
  const declared = `.extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 a);
    .extern .func (.param .b64 r) malloc(.param .b64 n); .extern .func free(.param .b64 p);
    .extern .func __assertfail(.param .b64 m, .param .b64 f, .param .b32 l, .param .b64 n,
    .param .b64 c);
    .global .align 1 .b8 text[6] = {104, 105, 32, 37, 100, 0};
    .global .align 1 .b8 claim[6] = {120, 32, 60, 32, 121, 0};`;
  it('vprintf gets the format and the packed arguments', () => {
    const { grid, outcome } = run(
      `.local .align 8 .b8 args[16]; mov.u32 %r0, 42; st.local.u32 [args], %r0;
      mov.u64 %l0, args; cvta.local.u64 %l0, %l0; mov.u64 %l1, text; cvta.global.u64 %l1, %l1;
      { .param .b64 f; .param .b64 a; .param .b32 v; st.param.b64 [f], %l1;
      st.param.b64 [a], %l0; call.uni (v), vprintf, (f, a); ld.param.b32 %r1, [v]; }`,
      { before: declared, threads: 3 },
    );
    expect(outcome.status).toBe(STATUS.done);
    expect(grid.printed.map(({ format }) => format)).toEqual(['hi %d', 'hi %d', 'hi %d']);
  });
  it('malloc gives each thread memory of its own, and free takes it', () => {
    const { out, outcome } = run(
      `mov.u64 %l0, 64; { .param .b64 n; .param .b64 v; st.param.b64 [n], %l0;
        call.uni (v), malloc, (n); ld.param.b64 %l1, [v]; } st.u32 [%l1+60], %t; bar.sync 0;
        ld.u32 %r0, [%l1+60]; ${STORE}
      { .param .b64 p; st.param.b64 [p], %l1; call.uni free, (p); }`,
      { before: declared, threads: 20 },
    );
    expect(outcome.status).toBe(STATUS.done);
    expect([...out.subarray(0, 20)]).toEqual(Array.from({ length: 20 }, (_, t) => t));
  });
  it('__assertfail ends its thread and reports the assertion', () => {
    const { grid, outcome } = run(
      `mov.u64 %l0, claim; cvta.global.u64 %l0, %l0; setp.eq.u32 %p, %t, 5; @!%p bra fine;
      { .param .b64 m; .param .b64 f; .param .b32 l; .param .b64 n; .param .b64 c;
      st.param.b64 [m], %l0; st.param.b64 [f], %l0; st.param.b32 [l], 12;
      st.param.b64 [n], %l0; st.param.b64 [c], 1; call.uni __assertfail, (m, f, l, n, c); } fine:`,
      { before: declared, threads: 8 },
    );
    expect([outcome.fault?.kind, outcome.fault?.thread]).toEqual([FAULT.assert, 5]);
    expect(grid.asserts).toEqual(['x < y']);
  });
  it('__assertfail of each thread that fails is reported, and the others continue', () => {
    const { grid, out, outcome } = run(
      `mov.u64 %l0, claim; cvta.global.u64 %l0, %l0; mov.u32 %r0, 7; setp.ge.u32 %p, %t, 5;
      @!%p bra fine; { .param .b64 m; .param .b64 f; .param .b32 l; .param .b64 n; .param .b64 c;
      st.param.b64 [m], %l0; st.param.b64 [f], %l0; st.param.b32 [l], 12;
      st.param.b64 [n], %l0; st.param.b64 [c], 1; call.uni __assertfail, (m, f, l, n, c);
      } fine: bar.sync 0; ${STORE}`,
      { before: declared, threads: 8 },
    );
    expect([outcome.fault?.kind, outcome.fault?.thread]).toEqual([FAULT.assert, 5]);
    expect(grid.asserts).toEqual(['x < y', 'x < y', 'x < y']);
    expect([...out.subarray(0, 8)]).toEqual([7, 7, 7, 7, 7, 0, 0, 0]);
  });
});

describe('clusters of one block', () => {
  it('barrier.cluster makes stores visible, whatever the form', () => {
    for (const [arrive, wait] of [
      ['', ''],
      ['.release', '.acquire'],
      ['.relaxed.aligned', '.aligned'],
      ['.release.aligned', '.acquire.aligned'],
    ]) {
      const { out, outcome } = run(
        `.shared .align 4 .b8 s[512]; mov.u32 %r1, s; shl.b32 %r2, %t, 2;
          add.u32 %r3, %r1, %r2; st.shared.u32 [%r3], %t; barrier.cluster.arrive${arrive};
            barrier.cluster.wait${wait};
        xor.b32 %r2, %r2, 508; add.u32 %r3, %r1, %r2; ld.shared.u32 %r0, [%r3]; ${STORE}`,
        { threads: 128 },
      );
      expect(outcome.status).toBe(STATUS.done);
      expect([...out.subarray(0, 128)]).toEqual(Array.from({ length: 128 }, (_, t) => t ^ 127));
    }
  });
  it('does not mix with bar.sync, and does not wait for threads that have exited', () => {
    const { out, outcome } = run(
      `setp.ge.u32 %p, %t, 96; @%p barrier.cluster.arrive; @%p exit; mov.u32 %r0, 1;
      setp.lt.u32 %q, %t, 32; @%q bra first; bar.sync 1, 64; barrier.cluster.arrive;
      barrier.cluster.wait; bra join;
      first: barrier.cluster.arrive; barrier.cluster.wait; join: bar.sync 0; ${STORE}`,
      { threads: 128 },
    );
    expect(outcome.status).toBe(STATUS.done);
    expect([...out.subarray(0, 128)]).toEqual(
      Array.from({ length: 128 }, (_, t) => (t < 96 ? 1 : 0)),
    );
  });
});

describe('redux of floats', () => {
  const bits = (value: number): number => new Uint32Array(new Float32Array([value]).buffer)[0]!;
  const lists: number[][] = [
    [1, -2, 3.5, -0],
    [0, -0, 0, 0],
    [NaN, 2, -5, NaN],
    [NaN, NaN, NaN, NaN],
    [Infinity, -Infinity, 1e-45, -1e-45],
    [-1, -3, -2, -7],
  ];
  for (const name of ['min', 'max'] as const) {
    for (const abs of [false, true]) {
      for (const nan of [false, true]) {
        it(`${name}${abs ? '.abs' : ''}${nan ? '.NaN' : ''}`, () => {
          for (const list of lists) {
            const { out } = run(
              `${list
                .map(
                  (value, index) =>
                    `setp.eq.u32 %p, %r1, ${index}; @%p mov.b32 %f0, ` +
                    `0x${bits(value).toString(16)};`,
                )
                .join(' ')
                .replace(/^/, 'and.b32 %r1, %t, 3; ')}
              redux.sync.${name}${abs ? '.abs' : ''}${nan ? '.NaN' : ''}.f32 %f1, %f0, -1;
                mov.b32 %r0, %f1; ${STORE}`,
              { threads: 32 },
            );
            const values = list.map((value) => (abs ? Math.abs(value) : value));
            const numbers = values.filter((value) => !Number.isNaN(value));
            const isNaN = numbers.length === 0 || (nan && numbers.length < values.length);
            const wanted = isNaN ? 0x7fffffff : bits(Math[name](...numbers));
            expect(new Set(out.subarray(0, 32)), list.join(' ')).toEqual(new Set([wanted]));
          }
        });
      }
    }
  }
});

describe('special registers', () => {
  it("contain a thread's place", () => {
    const read = (name: string, index: number): string =>
      `mov.u32 %r1, %${name}; st.global.u32 [%l5+${4 * index}], %r1;`;
    const names = [
      'tid.x',
      'ntid.x',
      'ctaid.x',
      'nctaid.x',
      'clusterid.x',
      'nclusterid.x',
      'cluster_ctaid.x',
      'cluster_nctaid.x',
      'laneid',
      'warpid',
      'lanemask_eq',
      'lanemask_le',
      'lanemask_lt',
      'lanemask_ge',
      'lanemask_gt',
      'tid.w',
    ];
    const { out } = run(
      'mov.u32 %r2, %ctaid.x; mad.lo.u32 %r2, %r2, 40, %t; setp.ne.u32 %p, %r2, 75; @%p ' +
        `exit; mov.u64 %l5, %o; ${names.map(read).join(' ')}`,
      { threads: 40, blocks: 2 },
    );
    // Thread 35 of block 1: lane 3 of warp 1.
    expect([...out.subarray(0, names.length)]).toEqual([
      35, 40, 1, 2, 1, 2, 0, 1, 3, 1, 8, 15, 7, 0xfffffff8, 0xfffffff0, 0,
    ]);
  });
  it('contain the size of shared memory', () => {
    const { out } = run(
      '.shared .align 16 .b8 s[48]; mov.u32 %r1, s; st.shared.u32 [%r1], 0; mov.u32 %r0, ' +
        '%dynamic_smem_size; st.global.u32 [%o], %r0; mov.u32 %r0, %total_smem_size; ' +
        'st.global.u32 [%o+4], %r0;',
      { dynamicShared: 160 },
    );
    expect([...out.subarray(0, 2)]).toEqual([160, 208]);
  });
  it('clocks move', () => {
    const { out } = run(
      'mov.u64 %l0, %clock64; mov.u64 %l1, %clock64; setp.gt.u64 %p, %l1, %l0; selp.u32 %r0, ' +
        '1, 0, %p; st.global.u32 [%o], %r0; mov.u64 %l0, %globaltimer; mov.u64 %l1, ' +
        '%globaltimer; setp.ge.u64 %p, %l1, %l0; selp.u32 %r0, 1, 0, %p; st.global.u32 [%o+4], ' +
        '%r0;',
    );
    expect([...out.subarray(0, 2)]).toEqual([1, 1]);
  });
  it('monitors and what no launch sets are zero, and no cluster is explicit', () => {
    const { out } = run(
      'mov.u32 %r0, %pm3; mov.u64 %l0, %pm3_64; mov.u64 %l1, %current_graph_exec; mov.u32 ' +
        '%r1, %envreg7; mov.pred %p, %is_explicit_cluster; selp.u32 %r2, 1, 0, %p; ' +
        'st.global.v4.u32 [%o], {%r0, %r1, %r2, %r2}; st.global.v2.u64 [%o+16], {%l0, %l1};',
    );
    expect([...out.subarray(0, 8)]).toEqual([0, 0, 0, 0, 0, 0, 0, 0]);
  });
});

it('hints and instructions without effect change nothing', () => {
  const { out, outcome } =
    run(`mov.u32 %r0, 5; pmevent 3; pmevent.mask 7; setmaxnreg.inc.sync.aligned.u32 64;
    griddepcontrol.wait; griddepcontrol.launch_dependents; nanosleep.u32 20;
    prefetch.global.L2 [%o]; prefetchu.L1 [%o];
    applypriority.global.L2::evict_normal [%o], 128; membar.gl; fence.sc.cluster;
    fence.proxy.async.shared::cta; fence.mbarrier_init.release.cluster;
    createpolicy.fractional.L2::evict_last.b64 %l0; st.global.L2::cache_hint.u32 [%o], %r0, %l0;`);
  expect(outcome.status).toBe(STATUS.done);
  expect(out[0]).toBe(5);
});
