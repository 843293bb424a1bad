// Shuffles, votes, matches and reductions of whole warps and of parts of them, against the ISA's
// pseudo-code, in both back ends.

import { describe, expect, it } from 'vitest';
import { STATUS } from '../index.js';
import { Grid } from '../run-grid.test-support.js';
import { seeds, u } from '../rules/evaluate.test-support.js';
import { someOf } from '../../../test/random-runs.js';

const THREADS = 64;
const pick = <T>(list: readonly T[]): T => list[Number(seeds() % BigInt(list.length))]!;
const word = (): number => Number(u(32, seeds()));
const EDGES = [
  0, 1, 0x7fffffff, 0x80000000, 0xffffffff, 0x7f800000, 0xff800000, 0x7fc00000, 0xffc00001,
  0x3f800000, 0xbf800000, 0x00000001, 0x80000001,
];

/**
 * Which threads of a warp execute the operation together: parts of it, one after the other or at
 * once.
 */
interface Parting {
  /** Predicate code that sets %who in the threads that take the first branch. */
  who: string;
  takes(lane: number): boolean;
}
const PARTINGS: readonly Parting[] = [
  { who: 'setp.eq.u32 %who, %t, %t;', takes: () => true },
  { who: 'and.b32 %x, %lane, 1; setp.eq.u32 %who, %x, 0;', takes: (lane) => lane % 2 === 0 },
  { who: 'setp.lt.u32 %who, %lane, 13;', takes: (lane) => lane < 13 },
  { who: 'and.b32 %x, %lane, 5; setp.ne.u32 %who, %x, 5;', takes: (lane) => (lane & 5) !== 5 },
];

interface Case {
  text: string;
  /**
   * For each lane of `group` with values a, b, c: the result and its predicate, or undefined if the
   * ISA leaves it open.
   */
  model(
    lane: number,
    group: readonly number[],
    a: readonly number[],
    b: readonly number[],
    c: readonly number[],
  ): readonly [number | undefined, boolean | undefined];
}

function shuffle(
  mode: 'up' | 'down' | 'bfly' | 'idx',
  kind: 'registers' | 'literals',
  by: number,
  clamp: number,
): Case {
  return {
    text:
      kind === 'registers'
        ? `shfl.sync.${mode}.b32 %r|%p, %a, %b, %c, %mask;`
        : `shfl.sync.${mode}.b32 %r|%p, %a, ${by}, ${clamp}, %mask;`,
    model(lane, group, a, b, c) {
      const bval = (kind === 'registers' ? b[lane]! : by) & 31;
      const cc = kind === 'registers' ? c[lane]! : clamp;
      const segmask = (cc >>> 8) & 31;
      const maxLane = (lane & segmask) | (cc & 31 & ~segmask);
      let j =
        mode === 'up'
          ? lane - bval
          : mode === 'down'
            ? lane + bval
            : mode === 'bfly'
              ? lane ^ bval
              : (lane & segmask) | (bval & ~segmask & 31);
      const valid = mode === 'up' ? j >= maxLane : j <= maxLane;
      if (!valid) j = lane;
      return [group.includes(j) ? a[j]! : undefined, valid];
    },
  };
}

const float = (bits: number): number => new Float32Array(new Uint32Array([bits]).buffer)[0]!;
const bitsOf = (value: number): number =>
  Number.isNaN(value) ? 0x7fffffff : new Uint32Array(new Float32Array([value]).buffer)[0]!;
const maskOf = (lanes: readonly number[]): number =>
  lanes.reduce((mask, lane) => (mask | (1 << lane)) >>> 0, 0);
function reduction(name: string, reduce: (x: number, y: number) => number): Case {
  return {
    text: `redux.sync.${name} %r, %a, %mask;`,
    model: (_, group, a) => [group.map((lane) => a[lane]!).reduce(reduce) >>> 0, undefined],
  };
}
function floats(name: 'min' | 'max', abs: boolean, nan: boolean): Case {
  return {
    text:
      `redux.sync.${name}${abs ? '.abs' : ''}${nan ? '.NaN' : ''}.f32 %g, %f, %mask; mov.b32 ` +
      '%r, %g;',
    model(_, group, a) {
      const values = group.map((lane) => float(abs ? a[lane]! & 0x7fffffff : a[lane]!));
      const numbers = values.filter((value) => !Number.isNaN(value));
      return [
        bitsOf(
          (nan && numbers.length < values.length) || numbers.length === 0
            ? NaN
            : Math[name](...numbers),
        ),
        undefined,
      ];
    },
  };
}
const CASES: readonly (() => Case)[] = [
  ...(['up', 'down', 'bfly', 'idx'] as const).flatMap((mode) => [
    () => shuffle(mode, 'registers', 0, 0),
    () =>
      shuffle(
        mode,
        'literals',
        Number(seeds() % 40n),
        pick([0, 31, 7, 0x1f00, 0x181f, 0x1c1f, 0x101f, 0x1800, 0x1e01, 0x0700, 0x0a15]),
      ),
  ]),
  () => ({
    text: 'vote.sync.ballot.b32 %r, %q, %mask;',
    model: (_, group, a) => [maskOf(group.filter((lane) => a[lane]! & 1)), undefined],
  }),
  () => ({
    text: 'vote.sync.any.pred %p, %q, %mask;',
    model: (_, group, a) => [0, group.some((lane) => a[lane]! & 1)],
  }),
  () => ({
    text: 'vote.sync.all.pred %p, !%q, %mask;',
    model: (_, group, a) => [0, group.every((lane) => !(a[lane]! & 1))],
  }),
  () => ({
    text: 'vote.sync.uni.pred %p, %q, %mask;',
    model: (_, group, a) => [0, new Set(group.map((lane) => a[lane]! & 1)).size === 1],
  }),
  () => ({
    text: 'match.any.sync.b32 %r, %a, %mask;',
    model: (lane, group, a) => [maskOf(group.filter((other) => a[other] === a[lane])), undefined],
  }),
  () => ({
    text:
      'cvt.u64.u32 %l, %a; shl.b64 %l, %l, 32; or.b64 %l, %l, 7; match.any.sync.b64 %r, %l, ' +
      '%mask;',
    model: (lane, group, a) => [maskOf(group.filter((other) => a[other] === a[lane])), undefined],
  }),
  () => ({
    text: 'match.all.sync.b32 %r|%p, %a, %mask;',
    model: (lane, group, a) =>
      group.every((other) => a[other] === a[lane]) ? [maskOf(group), true] : [0, false],
  }),
  () => ({
    text: 'elect.sync %r|%p, %mask;',
    model: (lane, group) => [group[0]!, lane === group[0]],
  }),
  () => reduction('add.s32', (x, y) => (x + y) >>> 0),
  () => reduction('add.u32', (x, y) => (x + y) >>> 0),
  () => reduction('min.s32', (x, y) => Math.min(x | 0, y | 0)),
  () => reduction('max.s32', (x, y) => Math.max(x | 0, y | 0)),
  () => reduction('min.u32', (x, y) => Math.min(x >>> 0, y >>> 0)),
  () => reduction('max.u32', (x, y) => Math.max(x >>> 0, y >>> 0)),
  () => reduction('and.b32', (x, y) => x & y),
  () => reduction('or.b32', (x, y) => x | y),
  () => reduction('xor.b32', (x, y) => x ^ y),
  ...(['min', 'max'] as const).flatMap((name) =>
    [false, true].flatMap((abs) => [false, true].map((nan) => () => floats(name, abs, nan))),
  ),
];

describe('warp operations', () => {
  for (const [number, parting] of PARTINGS.entries()) {
    someOf(4, it)(CASES.map((_, index) => index))(`parting ${number}, operation %i`, (index) => {
      for (let round = 0; round < 2; round++) {
        const { text, model } = CASES[index]!();
        const alike = seeds() % 3n === 0n ? pick(EDGES) : undefined;
        const values = [0, 1, 2].map((which) =>
          Array.from({ length: THREADS }, () =>
            which === 0
              ? (alike ?? (seeds() % 3n === 0n ? word() : pick(EDGES)))
              : which === 1
                ? word() >>> 20
                : word(),
          ),
        );
        // Threads name exactly those that take the same branch, in any register.
        const masks = [0, 1].map((way) =>
          maskOf(
            Array.from({ length: 32 }, (_, lane) => lane).filter(
              (lane) => parting.takes(lane) === (way === 0),
            ),
          ),
        );
        const literal = round % 2 === 0;
        const body = (way: number): string =>
          `${
            literal
              ? text.replace('%mask', String(masks[way]!))
              : `mov.b32 %mask,
            ${masks[way]!}; ${text}`
          }`;
        const source = `.version 9.0\n.target sm_100a\n.address_size 64\n.visible .entry
          k(.param .u64 in, .param .u64 out) {
          .reg .b64 %in, %out, %l; .reg .b32 %t, %lane, %x, %a, %b, %c, %r, %mask;
          .reg .f32 %f, %g; .reg .pred %p, %q, %who;
          ld.param.u64 %in, [in]; ld.param.u64 %out, [out]; mov.u32 %t, %tid.x;
          mov.u32 %lane, %laneid; mad.wide.u32 %in, %t, 4, %in; mad.wide.u32 %out, %t, 8, %out;
          ld.global.u32 %a, [%in]; ld.global.u32 %b, [%in+${4 * THREADS}];
            ld.global.u32 %c, [%in+${8 * THREADS}]; mov.b32 %f, %a; and.b32 %x, %a, 1;
              setp.ne.u32 %q, %x, 0; mov.u32 %r, 0; setp.eq.u32 %p, %r, 1;
          ${parting.who} @!%who bra other; ${body(0)} bra.uni together;
            other: ${masks[1] === 0 ? '' : body(1)} together:
          st.global.u32 [%out], %r; selp.u32 %x, 1, 0, %p; st.global.u32 [%out+4], %x; ret; }\n`;
        for (const simd of [false, true]) {
          const grid = new Grid(source, { simd });
          const input = grid.put(Uint32Array.from(values.flat()));
          const out = grid.put(new Uint32Array(2 * THREADS));
          const launch = { grid: [1], block: [THREADS], maxCalls: 10 } as const;
          expect(grid.run('k', [{ i64: input.address }, { i64: out.address }], launch).status).toBe(
            STATUS.done,
          );
          expect(grid.width('k', launch) > 1, text).toBe(simd);
          for (let thread = 0; thread < THREADS; thread++) {
            const lane = thread & 31;
            const group = Array.from({ length: 32 }, (_, other) => other).filter(
              (other) => parting.takes(other) === parting.takes(lane),
            );
            const [a, b, c] = values.map((list) =>
              list.slice(thread & ~31, (thread & ~31) + 32),
            ) as [number[], number[], number[]];
            const [result, predicate] = model(lane, group, a, b, c);
            if (result !== undefined)
              expect(
                out.view[2 * thread],
                `${text} thread ${thread}${simd ? ' in lanes' : ''}`,
              ).toBe(result);
            if (predicate !== undefined)
              expect(
                out.view[2 * thread + 1] === 1,
                `${text} thread ${thread}${simd ? ' in lanes' : ''}, predicate`,
              ).toBe(predicate);
          }
        }
      }
    });
  }

  // Lanes 0 and 1, 2 and 3 are together first, then 0 and 2, 1 and 3; lane 1 comes late, while 0
  // waits for it and 2 for 0.
  it.each([
    [
      'shfl.sync.idx.b32 %r, %v, %from, 31, %mask;',
      (group: readonly number[], from: number, value: (lane: number) => number) =>
        value(group[from]!),
    ],
    [
      'redux.sync.add.u32 %r, %v, %mask;',
      (group: readonly number[], _: number, value: (lane: number) => number) =>
        group.reduce((sum, lane) => sum + value(lane), 0),
    ],
    [
      'setp.eq.u32 %q, %r, %r; vote.sync.ballot.b32 %r, %q, %mask;',
      (group: readonly number[]) => maskOf(group),
    ],
    ['match.any.sync.b32 %r, 7, %mask;', (group: readonly number[]) => maskOf(group)],
  ] as const)('groups that overlap are not taken for one another: %s', (operation, wanted) => {
    const step = (by: number, add: number, store: number): string => `
      and.b32 %x, %t, ${by}; setp.ne.u32 %p, %x, 0;
        ${by === 2 ? 'selp.u32 %mask, 12, 3, %p;' : 'selp.u32 %mask, 10, 5, %p;'} xor.b32
          %from, %t, ${by === 2 ? 1 : 2};
      add.u32 %v, %t, ${add}; ${operation} st.global.u32 [%out+${store}], %r;`;
    const source = `.version 9.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param
      .u64 out, .param .u32 n) {
      .reg .b64 %out; .reg .b32 %t, %x, %i, %n, %v, %r, %mask, %from; .reg .pred %p, %q;
      ld.param.u64 %out, [out]; ld.param.u32 %n, [n]; mov.u32 %t, %tid.x;
      mad.wide.u32 %out, %t, 8, %out; mov.u32 %r, 0;
      setp.ne.u32 %p, %t, 1; @%p bra go; mov.u32 %i, 0;
      late: st.volatile.global.u32 [%out], %i; bar.warp.sync 2; add.u32 %i, %i, 1;
      setp.lt.u32 %p, %i, %n; @%p bra late;
      go: ${step(2, 100, 0)} ${step(1, 200, 4)} ret; }\n`;
    for (const simd of [false, true]) {
      const grid = new Grid(source, { simd });
      const out = grid.put(new Uint32Array(8));
      expect(
        grid.run('k', [{ i64: out.address }, { i32: 5 }], { grid: [1], block: [4], maxCalls: 1000 })
          .status,
      ).toBe(STATUS.done);
      const expected = [0, 1, 2, 3].flatMap((lane) => {
        const first = lane < 2 ? [0, 1] : [2, 3];
        const second = lane % 2 === 0 ? [0, 2] : [1, 3];
        return [
          wanted(first, 1 - (lane & 1), (each) => each + 100),
          wanted(second, 1 - (lane >> 1), (each) => each + 200),
        ];
      });
      expect([...out.view], simd ? 'in lanes' : 'thread by thread').toEqual(expected);
    }
  });
});
