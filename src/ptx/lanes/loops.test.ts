// Loops: threads that leave them before others, and random loops of one block that go through
// memory in even steps, up and down, by counters and by pointers, to bounds near the ends of their
// range, past the end of memory and misaligned. Thread by thread and in lanes they give the same
// results and the same faults.

import * as fc from '../../../test/fast-check.js';
import { describe, expect, it } from 'vitest';
import { FAULT, STATUS } from '../index.js';
import { Grid, kernelText } from '../run-grid.test-support.js';
import type { Dimensions, Outcome } from '../run-grid.test-support.js';
import { scaled } from '../../../test/random-runs.js';

const RUNS = 2000;
const PAGES = 24;
const MEMORY = PAGES * 65536;
/** Elements that are read: the last ones of memory. */
const ELEMENTS = 1 << 16;
const MOST_TURNS = 120;
const BLOCKS = 2;
/** Further than a unit's counters reach in all their turns beyond those of its last threads. */
const MARGIN = 2 ** 17;
const ENDS = [0, 1, 2 ** 31 - 1, -(2 ** 31), 2 ** 32 - 1];

const loops = fc.record({
  block: fc.constantFrom<Dimensions>(
    [32],
    [64],
    [256],
    [100],
    [33],
    [16, 4],
    [8, 8, 2],
    [32, 3],
    [48, 2],
  ),
  signed: fc.boolean(),
  operation: fc.constantFrom('lt', 'lt', 'lt', 'le', 'gt', 'ge', 'ne'),
  /** The branch continues if the comparison is false. */
  negated: fc.boolean(),
  mirrored: fc.boolean(),
  /** The counter's step from thread to thread, and from turn to turn. */
  stride: fc.constantFrom(1, 1, 1, 0, 2, -1),
  step: fc.oneof(
    fc.constantFrom(1, 2, 32, 64, 256, 512, -1, -64, -256),
    fc.integer({ min: -300, max: 300 }),
    fc.constantFrom(2 ** 30, -(2 ** 31)),
  ),
  stepIsLiteral: fc.boolean(),
  subtracts: fc.boolean(),
  turns: fc.integer({ min: 1, max: 60 }),
  /** The start of the counter: a number, or one for which it ends near the end of a range. */
  start: fc.oneof(fc.integer({ min: -1000, max: 1000 }), fc.constantFrom(...ENDS)),
  near: fc.option(fc.tuple(fc.constantFrom(...ENDS), fc.integer({ min: -70, max: 70 })), {
    nil: undefined,
    freq: 2,
  }),
  /** The comparison comes before or after the step. */
  early: fc.boolean(),
  size: fc.constantFrom(4, 4, 4, 8, 1),
  address: fc.constantFrom(
    'wide',
    'wide',
    'wide',
    'mad',
    'shift',
    'pointer',
    'pointer',
    'pointer',
    'pointer',
    'register pointer',
    'register pointer',
    'product',
  ),
  /** Bytes by which the furthest access is near the end of memory, or past it. */
  past: fc.option(fc.constantFrom(-4, 0, 4, 64, 4096, 2 ** 15, 2 ** 17, 2 ** 20), {
    nil: undefined,
    freq: 2,
  }),
  /** Bytes of a pointer's step beyond whole elements. */
  skew: fc.constantFrom(0, 0, 1, 2, 4),
  misaligned: fc.nat(20).map((one) => one === 0),
  stores: fc.boolean(),
  fuel: fc.constantFrom(0x7fffffff, 0x7fffffff, 500, 40),
});
type Loop = typeof loops extends fc.Arbitrary<infer T> ? T : never;

const threadsOf = ([x, y = 1, z = 1]: Dimensions): number => x * y * z;
const wrap = (signed: boolean, value: number): number => (signed ? value | 0 : value >>> 0);

const HOLDS: Record<Loop['operation'], (a: number, b: number) => boolean> = {
  lt: (a, b) => a < b,
  le: (a, b) => a <= b,
  gt: (a, b) => a > b,
  ge: (a, b) => a >= b,
  ne: (a, b) => a !== b,
};
const OPPOSITE = { lt: 'ge', ge: 'lt', gt: 'le', le: 'gt', ne: 'eq' } as const;
const MIRRORED = { lt: 'gt', gt: 'lt', ge: 'le', le: 'ge', ne: 'ne', eq: 'eq' } as const;

interface Plan {
  start: number;
  bound: number;
  /** The first byte of the first and of the last read, from the address in `in`. */
  least: number;
  greatest: number;
}

const byPointer = ({ address }: Loop): boolean => address.endsWith('pointer');

/** The values of a thread's counter in its turns; undefined if they do not end. */
function counters(
  { signed, operation, stride, step, early }: Loop,
  first: number,
  bound: number,
  thread: number,
): number[] | undefined {
  const found: number[] = [];
  for (let counter = wrap(signed, first + stride * thread); ;) {
    if (found.length === MOST_TURNS) return undefined;
    found.push(counter);
    const next = wrap(signed, counter + step);
    if (!HOLDS[operation](early ? counter : next, bound)) return found;
    counter = next;
  }
}

/** The places that a thread reads in its turns, in bytes from the address in `in`. */
function places(loop: Loop, first: number, bound: number, thread: number): number[] | undefined {
  const { stride, step, stepIsLiteral, subtracts, address, size, skew } = loop;
  const found = counters(loop, first, bound, thread);
  if (found === undefined || !byPointer(loop)) return found?.map((counter) => counter * size);
  // The parameter is a number of 32 bits, which is widened.
  const along =
    stepIsLiteral && address === 'pointer'
      ? step * size
      : ((subtracts ? -step : step) | 0) * (subtracts ? -1 : 1) * size;
  return found.map(
    (_, turn) => stride * thread * size + (along + (subtracts ? -skew : skew)) * turn,
  );
}

/** The ranges of the threads' counters and addresses; undefined if some loops do not end. */
function plan(loop: Loop): Plan | undefined {
  const { block, signed, step, turns, start, near } = loop;
  const first = wrap(signed, near === undefined ? start : near[0] + near[1] - step * turns);
  const bound = wrap(signed, first + step * turns);
  let [least, greatest] = [Infinity, -Infinity];
  for (let thread = 0; thread < BLOCKS * threadsOf(block); thread++) {
    const found = places(loop, first, bound, thread);
    if (found === undefined) return undefined;
    least = Math.min(least, ...found);
    greatest = Math.max(greatest, ...found);
  }
  // Indices near the ends of their range: there is no such memory, and addresses are those of
  // counters that do not wrap (see `correctWrap`).
  const [lowest, highest] = signed
    ? [-(2 ** 31) + MARGIN, 2 ** 31 - MARGIN]
    : [0, 2 ** 32 - MARGIN];
  if (!byPointer(loop) && (least < lowest * loop.size || greatest > highest * loop.size))
    return undefined;
  return { start: first, bound, least, greatest };
}

/** The first place of a thread that is not in memory, or not aligned. */
function firstBad(
  loop: Loop,
  { start, bound }: Plan,
  base: bigint,
  thread: number,
): bigint | undefined {
  const { signed, size, address } = loop;
  return places(loop, start, bound, thread)!
    .map((place) => {
      const product = BigInt(place);
      return BigInt.asUintN(
        64,
        base +
          (address !== 'product'
            ? product
            : signed
              ? BigInt.asIntN(32, product)
              : BigInt.asUintN(32, product)),
      );
    })
    .find((place) => isOutside(place, size) || place % BigInt(size) !== 0n);
}

const isOutside = (place: bigint, size: number): boolean =>
  place < 65536n || place + BigInt(size) > BigInt(MEMORY);

function text({
  signed,
  operation,
  negated,
  mirrored,
  stride,
  step,
  stepIsLiteral,
  subtracts,
  early,
  size,
  address,
  stores,
  skew,
}: Loop): string {
  const type = signed ? 's32' : 'u32';
  const literal = subtracts ? -step : step;
  const word = negated ? OPPOSITE[operation] : operation;
  const compare =
    `setp.${mirrored ? MIRRORED[word] : word}.${type} %p, ` +
    `${mirrored ? '%bound, %i' : '%i, %bound'};`;
  const move = `${subtracts ? 'sub' : 'add'}.${type} %i, %i, ${stepIsLiteral ? literal : '%step'};`;
  const place = {
    wide: `mul.wide.${type} %o, %i, ${size}; add.s64 %a, %in, %o;`,
    mad: `mad.wide.${type} %a, %i, ${size}, %in;`,
    shift:
      `cvt.${signed ? 's' : 'u'}64.${type} %o, %i; shl.b64 %o, %o, ${Math.log2(size)}; add.s64 ` +
      '%a, %in, %o;',
    product:
      `mul.lo.s32 %x, %i, ${size}; cvt.${signed ? 's' : 'u'}64.${type} %o, %x; add.s64 %a, ` +
      '%in, %o;',
    pointer: '',
    'register pointer': '',
  }[address];
  const points = address.endsWith('pointer');
  const along = !points
    ? ''
    : `${subtracts ? 'sub' : 'add'}.s64 %a, %a, ` +
      `${address === 'pointer' && stepIsLiteral ? literal * size + skew : '%wide'};`;
  const load =
    size === 8
      ? 'ld.global.u64 %d, [%a]; cvt.u32.u64 %x, %d;'
      : `ld.global.${size === 1 ? 'u8' : 'u32'} %x, [%a];`;
  return kernelText(
    'k',
    '.param .u64 in, .param .u64 out, .param .u32 start, .param .u32 bound, .param .u32 step',
    `
    .reg .b64 %in, %out, %a, %o, %d, %at, %wide; .reg .pred %p;
    .reg .b32 %r<4>, %z, %y, %x0, %nx, %ny, %nz, %nxy, %n, %c, %row, %own, %i, %x, %sum,
    %bound, %step, %start;
    ld.param.u64 %in, [in]; ld.param.u64 %out, [out]; ld.param.u32 %start, [start];
    ld.param.u32 %bound, [bound]; ld.param.u32 %step, [step];
    mov.u32 %z, %tid.z; mov.u32 %ny, %ntid.y; mov.u32 %y, %tid.y;
    mad.lo.u32 %row, %z, %ny, %y; mov.u32 %nx, %ntid.x; mov.u32 %x0, %tid.x;
    mad.lo.u32 %own, %row, %nx, %x0;
    mul.lo.u32 %nxy, %nx, %ny; mov.u32 %nz, %ntid.z; mul.lo.u32 %n, %nxy, %nz;
    mov.u32 %c, %ctaid.x; mad.lo.u32 %r0, %n, %c, %own;
    mad.wide.u32 %at, %r0, 4, %out; mad.lo.u32 %i, %r0, ${stride}, %start; mov.u32 %sum, 7;
      mul.wide.s32 %wide, %step, ${size}; add.s64 %wide, %wide, ${skew};
    ${points ? `mul.wide.s32 %o, %r0, ${stride * size}; add.s64 %a, %in, %o;` : ''}
    AGAIN:
    ${place}
    ${load}
    mad.lo.u32 %sum, %sum, 31, %x;
    ${stores ? 'st.global.u32 [%at], %sum;' : ''}
    ${early ? compare : ''}
    ${along}
    ${move}
    ${early ? '' : compare}
    @${negated ? '!' : ''}%p bra AGAIN;
    mov.u32 %r1, %tid.y; mad.lo.u32 %sum, %r1, 7919, %sum; mov.u32 %r1, %tid.x;
    mad.lo.u32 %sum, %r1, 104729, %sum; st.global.u32 [%at], %sum; ret;`,
  );
}

function run(
  loop: Loop,
  { start, bound, least, greatest }: Plan,
  simd: boolean,
): { width: number; base: bigint; status: number; fault: Outcome['fault']; out: number[] } {
  const { block, step, subtracts, size, past, misaligned, fuel } = loop;
  const grid = new Grid(text(loop), { simd, pages: PAGES });
  const out = grid.put(new Uint32Array(BLOCKS * threadsOf(block)));
  const data = new Uint32Array(grid.memory.buffer, MEMORY - 4 * ELEMENTS, ELEMENTS);
  data.forEach((_, index) => {
    data[index] = Math.imul(index + 1, 0x9e3779b1);
  });
  // The first index is read from the middle, or the last one from the end of memory.
  const at = past === undefined ? MEMORY - 2 * ELEMENTS - least : MEMORY - greatest - size + past;
  const base = BigInt(at) + (misaligned ? 1n : 0n);
  const { status, fault } = grid.run(
    'k',
    [
      { i64: base },
      { i64: out.address },
      { i32: start },
      { i32: bound },
      { i32: subtracts ? -step : step },
    ],
    { grid: [BLOCKS], block, fuel },
  );
  return {
    width: grid.width('k', { grid: [BLOCKS], block }),
    base,
    status,
    fault,
    out: [...out.view],
  };
}

it(
  'loops through memory in even steps are what they are thread by thread, to their ends and ' +
    'past them',
  { tags: 'random' },
  () => {
    const seen = { done: 0, faults: 0 };
    fc.assert(
      fc.property(loops, (loop) => {
        const planned = plan(loop);
        fc.pre(planned !== undefined);
        const [threads, lanes] = [false, true].map((simd) => run(loop, planned, simd)) as [
          ReturnType<typeof run>,
          ReturnType<typeof run>,
        ];
        expect(lanes.width).toBeGreaterThan(1);
        const source = text(loop);
        expect(lanes.status, source).toBe(threads.status);
        if (threads.status === STATUS.done) {
          expect(lanes.out, source).toEqual(threads.out);
          seen.done++;
          return;
        }
        // The order of several bad accesses is not defined: threads continue at different times.
        // One may be misaligned, and another's past the end.
        for (const { fault, base } of [threads, lanes]) {
          const { address, kind, block, thread } = fault!;
          expect(address, source).toBe(
            firstBad(loop, planned, base, block * threadsOf(loop.block) + thread),
          );
          expect(kind, source).toBe(
            isOutside(address, loop.size) ? FAULT.outOfBounds : FAULT.misaligned,
          );
        }
        expect(lanes.fault!.line, source).toBe(threads.fault!.line);
        seen.faults++;
      }),
      { numRuns: RUNS },
    );
    expect(seen.done).toBeGreaterThan(scaled(RUNS) / 4);
    expect(seen.faults).toBeGreaterThan(scaled(RUNS) / 20);
  },
);

it(
  "units that come to a loop's end while others go round in it know their rows",
  { tags: 'thorough' },
  () => {
    for (const step of [32, 64, 96]) {
      for (let turns = 1; turns <= 26; turns++) {
        const loop: Loop = {
          block: [32, 3],
          signed: true,
          operation: 'lt',
          negated: false,
          mirrored: false,
          stride: 1,
          step,
          stepIsLiteral: false,
          subtracts: false,
          turns,
          start: 0,
          near: undefined,
          early: false,
          size: 4,
          address: 'wide',
          past: undefined,
          skew: 0,
          misaligned: false,
          stores: false,
          fuel: 0x7fffffff,
        };
        const [threads, lanes] = [false, true].map((simd) => run(loop, plan(loop)!, simd)) as [
          ReturnType<typeof run>,
          ReturnType<typeof run>,
        ];
        expect(lanes.status).toBe(STATUS.done);
        expect(lanes.out, `${turns} turns of ${step}`).toEqual(threads.out);
      }
    }
  },
);

it.each([
  [
    'shifts',
    'mul.wide.u32 %o0, %i, 16; ' +
      Array.from({ length: 14 }, (_, i) => `shl.b64 %o${i + 1}, %o${i}, 4;`).join(' '),
    14,
  ],
  [
    'sums',
    'mul.wide.u32 %o0, %i, 1048576; ' +
      Array.from({ length: 40 }, (_, i) => `add.s64 %o${i + 1}, %o${i}, %o${i};`).join(' '),
    40,
  ],
])(
  'addresses that come back to where they were by way of 2^64 are checked on the way: %s',
  (_, places, last) => {
    for (const simd of [false, true]) {
      const grid = new Grid(
        kernelText(
          'k',
          '.param .u64 in, .param .u32 n',
          `
      .reg .b64 %in, %own, %a, %o<41>; .reg .pred %p, %q; .reg .b32 %t, %i, %x, %sum, %n;
      ld.param.u64 %in, [in]; ld.param.u32 %n, [n]; mov.u32 %t, %tid.x;
      setp.ge.u32 %q, %t, %n; @%q bra DONE; mad.wide.u32 %own, %t, 4, %in; mov.u32 %i, 0;
      mov.u32 %sum, 0;
      AGAIN: ${places} add.s64 %a, %own, %o${last}; ld.global.u32 %x, [%a]; add.u32 %sum, %sum, %x;
      add.u32 %i, %i, 1; setp.lt.u32 %p, %i, 17; @%p bra AGAIN;
      st.global.u32 [%own], %sum; DONE: ret;`,
        ),
        { simd, pages: PAGES },
      );
      const { address } = grid.put(new Uint32Array(64));
      const { status, fault } = grid.run('k', [{ i64: address }, { i32: 64 }], {
        grid: [1],
        block: [64],
      });
      // In the second turn, 2^60 bytes further.
      expect([status, fault?.address, fault?.thread]).toEqual([
        STATUS.fault,
        BigInt(address) + 2n ** 60n,
        0,
      ]);
    }
  },
);

describe('lanes', () => {
  // Threads that waited at the loop's header were once lost if all others had skipped the loop's
  // last block.
  it.each([
    [3, 5],
    [3, 400],
    [63, 20],
    [255, 3],
  ])("wait for a header while nobody runs the loop's end: 1 of %i, %i times", (mask, times) => {
    const body = `.reg .b64 %rd<12>; .reg .b32 %r<30>; .reg .pred %p<4>;
      ld.param.u64 %rd0, [out]; mov.u32 %r22, %tid.x; mul.wide.u32 %rd10, %r22, 4;
      add.u64 %rd11, %rd0, %rd10;
      mov.u32 %r10, 0; mad.lo.u32 %r15, %r22, 7919, 12345;
    again:
      mad.lo.u32 %r15, %r15, 1664525, 1013904223; shr.u32 %r16, %r15, 8;
      and.b32 %r16, %r16, ${mask};
      setp.ne.u32 %p0, %r16, 0;
      @%p0 bra again;
      add.u32 %r10, %r10, 1; setp.lt.u32 %p1, %r10, ${times};
      @%p1 bra again;
      st.global.u32 [%rd11], %r15;
      ret;`;
    const [threads, lanes] = [false, true].map((simd) => {
      const grid = new Grid(kernelText('k', '.param .u64 out', body), { simd });
      const out = grid.put(new Uint32Array(40));
      expect(
        grid.run('k', [{ i64: out.address }], {
          grid: [1],
          block: [40],
          fuel: 100_000,
          maxCalls: 100,
        }).status,
      ).toBe(STATUS.done);
      return [...out.view];
    });
    expect(lanes).toEqual(threads);
  });

  // What a loop writes before it reads it is live only after the loop, where some threads of a unit
  // are while the next unit has its turn.
  it.each([
    [64, 7],
    [64, 1],
    [40, 5],
    [256, 3],
  ])(
    'keep what threads have that have left a loop while others go round: %i threads, %i',
    (threads, factor) => {
      const body = `.reg .b64 %in, %out, %p, %o; .reg .b32 %t, %i, %n, %r<4>; .reg .pred %more;
      ld.param.u64 %in, [in]; ld.param.u64 %out, [out]; mov.u32 %t, %tid.x;
      mul.lo.u32 %n, %t, ${factor}; and.b32 %n, %n, 31; add.u32 %n, %n, 3;
      mad.wide.u32 %p, %t, 4, %in; mov.u32 %i, 0; mov.u32 %r2, 0;
    again: ld.global.u32 %r1, [%p]; xor.b32 %r2, %r2, %r1; shr.u32 %r3, %r2, 1;
    add.s64 %p, %p, 1024; add.u32 %i, %i, 1; setp.lt.u32 %more, %i, %n;
      @%more bra again;
      mad.wide.u32 %o, %t, 16, %out; st.global.u32 [%o+8], %r3;
      bar.sync 0;
      st.global.u32 [%o], %r1; st.global.u32 [%o+4], %r2; ret;`;
      const [scalar, lanes] = [false, true].map((simd) => {
        const grid = new Grid(kernelText('k', '.param .u64 in, .param .u64 out', body), { simd });
        const from = grid.put(
          Uint32Array.from({ length: 36 * 256 }, (_, index) => Math.imul(index, 0x9e3779b1) >>> 0),
        );
        const out = grid.put(new Uint32Array(4 * threads));
        expect(
          grid.run('k', [{ i64: from.address }, { i64: out.address }], {
            grid: [1],
            block: [threads],
          }).status,
        ).toBe(STATUS.done);
        expect(grid.width('k', { grid: [1], block: [threads] }) > 1).toBe(simd);
        return [...out.view];
      });
      expect(lanes).toEqual(scalar);
      expect(scalar![4 * threads - 2]).not.toBe(0);
    },
  );

  it('keep what threads have that leave out a block before a loop with a barrier', () => {
    const body = `.reg .b64 %out, %at; .reg .b32 %tx, %odd, %n, %value; .reg .pred %even, %more;
      ld.param.u64 %out, [out]; mov.u32 %tx, %tid.x; and.b32 %odd, %tx, 1;
      setp.eq.u32 %even, %odd, 0; mov.u32 %value, 3; mad.wide.u32 %at, %tx, 4, %out; bar.sync 0;
      mov.u32 %n, 3; @%even bra again; add.u32 %value, %tx, 40;
    again: bar.sync 0; sub.u32 %n, %n, 1; setp.ne.u32 %more, %n, 0; @%more bra again;
      st.global.u32 [%at], %value; ret;`;
    const grid = new Grid(kernelText('k', '.param .u64 out', body), { simd: true });
    const out = grid.put(new Uint32Array(64));
    expect(grid.run('k', [{ i64: out.address }], { grid: [1], block: [64] }).status).toBe(
      STATUS.done,
    );
    expect(grid.width('k', { grid: [1], block: [64] })).toBeGreaterThan(1);
    expect([...out.view]).toEqual(
      Array.from({ length: 64 }, (_, thread) => (thread % 2 ? thread + 40 : 3)),
    );
  });
});
