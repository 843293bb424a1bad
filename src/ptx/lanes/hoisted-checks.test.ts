// Random kernels whose address registers each have one definition, and are used after branches of
// their own, in loops and after barriers: thread by thread and in lanes they give the same results.

import * as fc from '../../../test/fast-check.js';
import { someOf } from '../../../test/random-runs.js';
import { describe, expect, it } from 'vitest';
import { STATUS } from '../index.js';
import { Grid, kernelText } from '../run-grid.test-support.js';
import type { Dimensions, Outcome } from '../run-grid.test-support.js';

const RUNS = 80;
const SHAPES: readonly Dimensions[] = [
  [32],
  [64],
  [128],
  [32, 4],
  [16, 4],
  [8, 8],
  [33],
  [40],
  [32, 2, 2],
  [7],
];
/** The most threads of them. */
const THREADS = 128;
const TYPES = [
  { name: 'u8', size: 1, count: 1 },
  { name: 's16', size: 2, count: 1 },
  { name: 'u32', size: 4, count: 1 },
  { name: 'u32', size: 4, count: 1 },
  { name: 'f32', size: 4, count: 1 },
  { name: 'b64', size: 8, count: 1 },
  { name: 'v2.u32', size: 8, count: 2 },
  { name: 'v4.u32', size: 16, count: 4 },
  { name: 'v2.b64', size: 16, count: 2 },
] as const;
const ADDRESSES = 3;
/** Bytes that the accesses through one address register cover. */
const REGION = 98304;
/** Past the end of memory, for accesses that no thread makes. */
const FAR = 1 << 23;

const type = fc.constantFrom(...TYPES);
const access = fc.record({
  register: fc.nat(ADDRESSES - 1),
  at: fc.nat(4),
  stores: fc.boolean(),
  other: fc.option(type, { nil: undefined, freq: 1 }),
});
const branch = fc.record({
  /**
   * The branch depends on a flag, on the thread's data, on its number, on the round or on its row,
   * or is never taken.
   */
  by: fc.constantFrom('flag', 'flag', 'data', 'thread', 'round', 'row', 'never', 'never'),
  yes: fc.array(access, { minLength: 1, maxLength: 3 }),
  no: fc.array(access, { maxLength: 2 }),
  between: fc.boolean(),
});
const kernels = fc.record({
  addresses: fc.array(
    fc.record({
      /** `narrow`: shared memory by addresses of 32 bits. */
      space: fc.constantFrom('in', 'in', 'out', 'out', 'shared', 'narrow'),
      type,
      stride: fc.constantFrom(1, 1, 1, 2, 33, -1, -2, 0, 3),
      place: fc.nat(2),
      offset: fc.nat(6),
      misaligned: fc.nat(60).map((one) => one === 0),
      joined: fc.boolean(),
    }),
    { minLength: ADDRESSES, maxLength: ADDRESSES },
  ),
  before: fc.array(branch, { minLength: 1, maxLength: 3 }),
  inside: fc.array(branch, { maxLength: 3 }),
  behind: fc.array(branch, { maxLength: 2 }),
  rounds: fc.option(fc.integer({ min: 1, max: 4 }), { nil: undefined }),
  barriers: fc.record({ before: fc.boolean(), inside: fc.boolean() }),
  leaves: fc.constantFrom('', 'exit', 'branch'),
  data: fc.record({
    seed: fc.integer({ min: 1, max: 1 << 30 }),
    alike: fc.constantFrom(32, 16, 8, 1, 64),
  }),
  /** Bytes by which the furthest access of one of them is near the end of memory, or past it. */
  end: fc.option(
    fc.record({ side: fc.constantFrom('in', 'out'), past: fc.constantFrom(-64, 16, 64, 300) }),
    { nil: undefined, freq: 2 },
  ),
});
type Kernel = typeof kernels extends fc.Arbitrary<infer T> ? T : never;
type Access = Kernel['before'][number]['yes'][number];

function text(
  { addresses, before, inside, behind, rounds, barriers, leaves }: Kernel,
  [nx, ny = 1]: Dimensions,
): string {
  const define = (place: number): string =>
    addresses
      .map((address, index) => {
        if (address.place !== place) return '';
        const step = address.stride * address.type.size;
        const own = address.offset * 16 + (step < 0 ? -step * (THREADS - 1) : 0);
        if (address.space === 'narrow')
          return (
            `mad.lo.s32 %k${index}, %t, ${step}, %cells; add.s32 %b${index}, %k${index}, ` +
            `${own};`
          );
        const base = address.space === 'shared' ? '%wide' : `%${address.space}`;
        const region =
          address.space === 'out'
            ? -REGION * addresses.slice(0, index).filter(({ space }) => space === 'out').length
            : 0;
        const start = region + own + (address.misaligned ? 2 : 0);
        return step > 0 && address.joined
          ? `mad.wide.u32 %m${index}, %t, ${step}, ${base}; add.s64 %a${index}, %m${index}, ` +
              `${start};`
          : `mul.wide.s32 %m${index}, %t, ${step}; add.s64 %n${index}, %m${index}, ${base}; ` +
              `add.s64 %a${index}, %n${index}, ${start};`;
      })
      .join('\n');
  const reach = ({ register, at, stores, other }: Access, place: number, far: number): string => {
    const index = [0, 1, 2]
      .map((more) => (register + more) % ADDRESSES)
      .find((each) => addresses[each]!.place <= place);
    if (index === undefined) return 'add.u32 %r0, %r0, 1;';
    const address = addresses[index]!;
    // Each thread writes places of its own.
    const writes = stores && address.space === 'out' && address.stride !== 0;
    const { name, size, count } =
      other !== undefined && address.space !== 'out' && other.size <= address.type.size
        ? other
        : address.type;
    const space = address.space === 'in' || address.space === 'out' ? 'global' : 'shared';
    const base = `%${address.space === 'narrow' ? 'b' : 'a'}${index}`;
    const where = `[${base}+${(address.space === 'out' ? 0 : at * size) + far}]`;
    const several = (registers: readonly string[]): string =>
      count === 1 ? registers[0]! : `{${registers.slice(0, count).join(', ')}}`;
    if (name.endsWith('64')) {
      return writes
        ? `cvt.u64.u32 %d0, %r0; st.${space}.${name} ${where}, ${several(['%d0', '%d1'])};`
        : `ld.${space}.${name} ${several(['%d0', '%d1'])}, ${where}; cvt.u32.u64 %x, %d0; ` +
            `xor.b32 %r0, %r0, %x; shr.u64 %d0, %d${count - 1}, 32; cvt.u32.u64 %x, %d0; add.u32 ` +
            '%r1, %r1, %x;';
    }
    if (name === 'f32')
      return writes
        ? `mov.b32 %f, %r0; st.${space}.f32 ${where}, %f;`
        : `ld.${space}.f32 %f, ${where}; mov.b32 %x, %f; xor.b32 %r0, %r0, %x;`;
    if (writes) return `st.${space}.${name} ${where}, ${several(['%r0', '%r1', '%t', '%r0'])};`;
    const read = ['%x', '%y', '%z', '%w'];
    return `ld.${space}.${name} ${several(read)}, ${where}; ${read
      .slice(0, count)
      .map((value, each) => `mad.lo.u32 %r${each & 1}, %r${each & 1}, 31, ${value};`)
      .join(' ')}`;
  };
  let labels = 0;
  const branches = (all: Kernel['before'], place: number): string =>
    all
      .map(({ by, yes, no, between }) => {
        const label = labels++;
        const test = {
          flag: `ld.global.u32 %c, [%flags+${4 * (label % 16)}]; setp.ne.u32 %p, %c, 0;`,
          never: 'ld.global.u32 %c, [%flags+64]; setp.ne.u32 %p, %c, 0;',
          data: `shr.u32 %c, %data, ${label % 16}; and.b32 %c, %c, 1; setp.ne.u32 %p, %c, 0;`,
          thread: `setp.lt.u32 %p, %t, ${[7, 16, 32, 64, 1][label % 5]!};`,
          round: 'setp.lt.u32 %p, %i, 2;',
          row: `setp.lt.u32 %p, %ty, ${1 + (label % 3)};`,
        }[by];
        const reachAll = (accesses: readonly Access[], far: number): string =>
          accesses.map((each) => reach(each, place, far)).join('\n');
        const work = 'add.u32 %r1, %r1, %i; mul.lo.u32 %q, %t, 12; xor.b32 %r0, %r0, %q;';
        return `${between ? work : ''} ${test} @!%p bra L${label};
      ${reachAll(yes, by === 'never' ? FAR : 0)} ${
        no.length > 0
          ? `bra
        E${label};`
          : ''
      }\nL${label}:\n${reachAll(no, 0)}\nE${label}:`;
      })
      .join('\n');
  const leaving = {
    exit: 'setp.gt.u32 %p, %t, 40; @%p exit;',
    branch: 'setp.eq.u32 %p, %data, 5; @%p bra DONE;',
    '': '',
  }[leaves];
  return kernelText(
    'k',
    ['in', 'out', 'results', 'flags', 'numbers'].map((name) => `.param .u64 ${name}`).join(', '),
    `
    .reg .b64 %in, %out, %results, %flags, %numbers, %o, %wide, %d<2>,
    ${[0, 1, 2].map((each) => `%m${each}, %n${each}, %a${each}`).join(', ')}; .reg .pred %p;
    .reg .f32 %f;
    .reg .b32 %t, %tx, %ty, %tz, %row, %x, %y, %z, %w, %r<2>, %data, %i, %c, %q, %cell,
    %cells, ${[0, 1, 2].map((each) => `%k${each}, %b${each}`).join(', ')};
      .shared .align 16 .b8 cells[16384];
    ${['in', 'out', 'results', 'flags', 'numbers']
      .map((name) => `ld.param.u64 %${name}, [${name}];`)
      .join(' ')}
    mov.u32 %cells, cells; cvt.u64.u32 %wide, %cells; mov.u32 %tx, %tid.x;
    mov.u32 %ty, %tid.y; mov.u32 %tz, %tid.z; mad.lo.u32 %row, %tz, ${ny}, %ty;
      mad.lo.u32 %t, %row, ${nx}, %tx;
    mad.wide.u32 %o, %t, 4, %numbers; ld.global.u32 %data, [%o]; mov.u32 %r0, %t;
    mov.u32 %r1, 7; mov.u32 %i, 0; mov.u64 %d1, 5; mad.lo.u32 %cell, %t, 4, %cells;
    st.shared.u32 [%cell], %data; bar.sync 0;
    ${leaving}
    ${define(0)}\n${branches(before, 0)}\n${barriers.before ? 'bar.sync 0;' : ''}
    ${rounds === undefined ? '' : 'AGAIN:'}\n${define(1)}\n${branches(inside, 1)}
    ${barriers.inside ? `bar.sync 0; ${branches(behind.slice(0, 1), 1)}` : ''}
    ${
      rounds === undefined
        ? ''
        : `add.u32 %i, %i, 1; setp.lt.u32 %p, %i, ${rounds};
      @%p bra AGAIN;`
    }
    ${define(2)}\n${branches(behind, 2)}
    DONE: mad.wide.u32 %o, %t, 8, %results; st.global.v2.u32 [%o], {%r0, %r1}; ret;`,
  );
}

function run(
  source: string,
  { addresses, data: { seed, alike }, end }: Kernel,
  block: Dimensions,
  simd: boolean,
  fuel: number,
): { width: number; status: number; results: number[]; written: Buffer } {
  const grid = new Grid(source, { simd, pages: 32 });
  let state = seed;
  const random = (): number => {
    state = (Math.imul(state, 1103515245) + 12345) | 0;
    return state >>> 8;
  };
  const results = grid.put(new Uint32Array(2 * THREADS));
  const flags = grid.put(Uint32Array.from({ length: 17 }, (_, at) => (at < 16 ? random() & 1 : 0)));
  const numbers = grid.put(new Uint32Array(THREADS));
  for (let at = 0; at < THREADS; at++)
    numbers.view[at] = at % alike === 0 ? random() : numbers.view[at - 1]!;
  const { byteLength } = grid.memory.buffer;
  const extents = (side: string): number[] =>
    addresses
      .filter(({ space }) => space === side)
      .map((each) => Math.abs(each.stride) * each.type.size * THREADS + 100);
  const near = (side: string, extent = 0): number | undefined =>
    end?.side === side ? (byteLength - extent + end.past) & ~15 : undefined;
  const input = near('in', Math.max(0, ...extents('in'))) ?? grid.allocate(160 * 1024);
  const given = new Uint8Array(
    grid.memory.buffer,
    Math.min(input, byteLength),
    Math.max(0, Math.min(160 * 1024, byteLength - input)),
  );
  for (let at = 0; at < given.length; at++) given[at] = random();
  const low = grid.allocate((ADDRESSES + 1) * REGION);
  const output = near('out', extents('out')[0]) ?? low + ADDRESSES * REGION;
  const written = new Uint8Array(
    grid.memory.buffer,
    Math.max(low, output - ADDRESSES * REGION),
    Math.min((ADDRESSES + 1) * REGION, byteLength - Math.max(low, output - ADDRESSES * REGION)),
  );
  const { status } = grid.run(
    'k',
    [input, output, results.address, flags.address, numbers.address].map((i64) => ({ i64 })),
    { grid: [1], block, fuel },
  );
  return {
    width: grid.width('k', { grid: [1], block }),
    status,
    results: [...results.view],
    written: Buffer.from(written),
  };
}

it(
  'addresses that several blocks go through, which are checked where they are computed',
  { tags: 'random' },
  () => {
    const statuses = new Set<number>();
    fc.assert(
      fc.property(
        kernels,
        fc.constantFrom(...SHAPES),
        fc.constantFrom(1 << 22, 1 << 22, 7, 60, 200),
        (kernel, block, fuel) => {
          const source = text(kernel, block);
          const scalar = run(source, kernel, block, false, 1 << 30);
          const lanes = run(source, kernel, block, true, fuel);
          statuses.add(scalar.status);
          expect(lanes.width).toBeGreaterThan(1);
          expect(lanes.status, source).toBe(scalar.status);
          if (scalar.status !== STATUS.done) return;
          expect(lanes.results, source).toEqual(scalar.results);
          expect(lanes.written.equals(scalar.written), source).toBe(true);
        },
      ),
      { numRuns: RUNS },
    );
    expect([...statuses].sort()).toEqual([STATUS.done, STATUS.fault].sort());
  },
);

describe('lanes', () => {
  // Accesses of several blocks through one register are checked once, before the branches to them,
  // and for more blocks than those that run.
  someOf(
    3,
    it,
  )([
    [32, 32],
    [20, 32],
    [3, 32],
    [0, 32],
    [32, 9],
    [20, 31],
  ])(
    'reach rows of a tile behind branches of their own, up to the end of memory and past it: ' +
      '%i rows of %i',
    (rows, columns) => {
      const row = (at: number, access: string): string =>
        `add.u32 %r, %ty, ${8 * at}; setp.ge.u32 %p, %r, %n; or.pred %p, %p, %w; @%p bra ` +
        `${access.startsWith('ld.global') ? 'L' : 'S'}${at}; ${access}`;
      const body = `.reg .b64 %in, %out, %g, %o;
      .reg .b32 %tx, %ty, %n, %r, %x, %s, %q, %u, %v, %i, %t, %h; .reg .pred %p, %w;
      .shared .align 4 .b8 tile[4224];
      ld.param.u64 %in, [in]; ld.param.u64 %out, [out]; ld.param.u32 %n, [rows];
      ld.param.u32 %h, [columns]; mov.u32 %tx, %tid.x; mov.u32 %ty, %tid.y; mov.u32 %t, tile;
      setp.ge.u32 %w, %tx, %h;
      mad.lo.u32 %i, %ty, 32, %tx; mad.wide.u32 %g, %i, 4, %in; mad.lo.u32 %u, %ty, 132, %t;
      mad.lo.u32 %s, %tx, 4, %u;
      ${[0, 1, 2, 3]
        .map(
          (at) =>
            `${row(
              at,
              `ld.global.u32 %x, [%g+${1024 * at}];
        st.shared.u32 [%s+${1056 * at}], %x;`,
            )} ` + `L${at}:`,
        )
        .join(' ')}
      bar.sync 0; mad.lo.u32 %v, %tx, 132, %t; mad.lo.u32 %q, %ty, 4, %v;
      mad.wide.u32 %o, %i, 4, %out;
      ${[0, 1, 2, 3]
        .map(
          (at) =>
            `${row(
              at,
              `ld.shared.u32 %x, [%q+${32 * at}];
        st.global.u32 [%o+${1024 * at}], %x;`,
            )} ` + `S${at}:`,
        )
        .join(' ')} ret;`;
      const launch = (
        simd: boolean,
        cut: number,
        side: 'in' | 'out',
      ): { status: number; fault: Outcome['fault']; out: number[] } => {
        const grid = new Grid(
          kernelText(
            'k',
            '.param .u64 in, .param .u64 out, .param .u32 rows, .param .u32 columns',
            body,
          ),
          { simd, pages: 4 },
        );
        const values = grid.put(Uint32Array.from({ length: 1024 }, (_, at) => at + 1));
        const out = grid.put(new Uint32Array(1024));
        // This many bytes of the tile are past the end of memory.
        const last = grid.memory.buffer.byteLength - 4096 + cut;
        const view = new Uint32Array(grid.memory.buffer, last, (4096 - cut) / 4);
        view.set(values.view.subarray(0, view.length));
        const { status, fault } = grid.run(
          'k',
          [
            { i64: side === 'in' ? last : values.address },
            { i64: side === 'out' ? last : out.address },
            { i32: rows },
            { i32: columns },
          ],
          { grid: [1], block: [32, 8] },
        );
        expect(grid.width('k', { grid: [1], block: [32, 8] })).toBe(simd ? 32 : 1);
        return {
          status,
          fault,
          out: status === STATUS.done ? [...(side === 'out' ? view : out.view)] : [],
        };
      };
      const statuses = [0, 4, 1024, 1540, 3072].flatMap((cut) =>
        (['in', 'out'] as const).map((side) => {
          const scalar = launch(false, cut, side);
          expect(launch(true, cut, side)).toEqual(scalar);
          return scalar.status;
        }),
      );
      expect(new Set(statuses).size).toBe(rows < 8 ? 1 : 2);
    },
  );
});
