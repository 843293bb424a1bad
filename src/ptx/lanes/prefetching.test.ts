// Random kernels whose blocks have rows that are far from each other in memory, in grids that
// access more than caches hold: thread by thread and in lanes, which load lines before the block
// begins, they give the same results. Places that no thread accesses, because of a guard, may be
// anywhere.

import * as fc from '../../../test/fast-check.js';
import { describe, expect, it } from 'vitest';
import { STATUS } from '../index.js';
import { Grid, kernelText, sample } from '../run-grid.test-support.js';
import type { Argument, Dimensions } from '../run-grid.test-support.js';

const SHAPES: readonly Dimensions[] = [
  [32, 8],
  [32, 8],
  [32, 4],
  [32, 3],
  [32, 32],
  [16, 8],
  [8, 8],
  [64, 4],
  [24, 4],
  [32, 2, 2],
  [32, 33],
  [32],
  [32, 1, 4],
];
const GRID = [2, 2] as const;
/** More than caches hold, for the narrowest of them. */
const TOLD = [4096, 4096] as const;
const TYPES = [
  { name: 'u8', size: 1 },
  { name: 'u32', size: 4 },
  { name: 'f32', size: 4 },
  { name: 'u32', size: 4 },
  { name: 'b64', size: 8 },
  { name: 'v4.u32', size: 16 },
] as const;
/** Bytes from row to row, and of everything that an access may reach. */
const PITCHES = [1024, 1024, 4096, 2064, 1536, 512, -1024, -4096] as const;
const REGION = 2 ** 20;
const MIDDLE = REGION / 2;
const PAGES = 128;
const ACCESSES = 4;

const place = fc.record({
  type: fc.constantFrom(...TYPES),
  pitch: fc.constantFrom(...PITCHES),
  stores: fc.boolean(),
  down: fc.nat(24),
  along: fc.constantFrom(0, 0, 1, -1),
  /** How an address is computed from a row and a column. */
  made: fc.constantFrom('mad', 'mad', 'shl', 'wide', 'bytes'),
  /** Rows or columns are exchanged, as in a transpose. */
  turned: fc.boolean(),
  misaligned: fc.nat(60).map((one) => one === 0),
  /** Bytes from the end of memory at which the furthest thread's access ends. */
  fromEnd: fc.option(fc.constantFrom(0, 0, 16, 64, -16, -2048), { nil: undefined, freq: 8 }),
  /** A place that no thread accesses, although the code contains the access. */
  wild: fc.option(
    fc.record({
      at: fc.constantFrom(
        0n,
        65536n,
        65472n,
        2n ** 23n - 64n,
        2n ** 32n - 4096n,
        2n ** 32n,
        -4096n,
        2n ** 63n - 1n,
      ),
      pitch: fc.constantFrom(0, 1024, 65536, 2 ** 28, 2 ** 31 - 1, -(2 ** 31), -1024),
    }),
    { nil: undefined, freq: 4 },
  ),
});
const kernels = fc.record({
  places: fc.array(place, { minLength: ACCESSES, maxLength: ACCESSES }),
  barriers: fc.integer({ min: 1, max: 2 }),
  guards: fc.constantFrom('none', 'none', 'branch', 'exit', 'predicate'),
  /** Columns and rows that a guard lets through. */
  wide: fc.constantFrom(1000, 64, 40, 33),
  high: fc.constantFrom(1000, 16, 9, 3),
  loops: fc.boolean(),
  fuel: fc.constantFrom(undefined, undefined, 1, 7, 40),
  rows: fc.constantFrom('plain', 'plain', 'twice', 'odd'),
});
type Kernel = typeof kernels extends fc.Arbitrary<infer T> ? T : never;
type Place = Kernel['places'][number];

function text({ places, barriers, guards, loops, rows }: Kernel): string {
  const address = ({ type: { size }, made, turned, down, along }: Place, k: number): string => {
    const [row, column] = turned ? [`%tr${k}`, `%tc${k}`] : ['%y', '%x'];
    // In a transposed tile, the block's place is exchanged, and the thread's is not.
    const turn = turned
      ? `mad.lo.s32 %tr${k}, %cx, %ny, %ty; mad.lo.s32 %tc${k}, %cy, %nx, %tx;`
      : '';
    const below = `add.s32 %d${k}, ${row}, ${down};`;
    const ends = `add.s64 %a${k}, %e${k}, ${along * size};`;
    switch (made) {
      case 'mad':
        return (
          `${turn} ${below} mad.lo.s32 %i${k}, %d${k}, %pitch${k}, ${column}; mul.wide.s32 ` +
          `%o${k}, %i${k}, ${size}; add.s64 %e${k}, %at${k}, %o${k}; ${ends}`
        );
      case 'shl':
        return (
          `${turn} ${below} mul.lo.s32 %j${k}, %d${k}, %pitch${k}; add.s32 %i${k}, %j${k}, ` +
          `${column}; cvt.s64.s32 %o${k}, %i${k}; shl.b64 %q${k}, %o${k}, ${Math.log2(size)}; ` +
          `add.s64 %e${k}, %q${k}, %at${k}; ${ends}`
        );
      case 'wide':
        return (
          `${turn} ${below} mul.wide.s32 %o${k}, ${column}, ${size}; mul.lo.s32 %j${k}, ` +
          `%d${k}, %pitch${k}; mul.wide.s32 %q${k}, %j${k}, ${size}; add.s64 %e${k}, %at${k}, ` +
          `%q${k}; add.s64 %u${k}, %e${k}, %o${k}; add.s64 %a${k}, %u${k}, ${along * size};`
        );
      case 'bytes':
        return (
          `${turn} ${below} mul.lo.s32 %j${k}, %pitch${k}, ${size}; mul.wide.s32 %q${k}, ` +
          `%d${k}, %j${k}; mad.wide.s32 %u${k}, ${column}, ${size}, %at${k}; add.s64 %e${k}, ` +
          `%u${k}, %q${k}; ${ends}`
        );
    }
  };
  const move = (place: Place, k: number): string => {
    const {
      type: { name, size },
      stores,
    } = place;
    const access = stores
      ? size === 16
        ? `st.global.v4.u32 [%a${k}], {%r, %tx, %r, %ty};`
        : name === 'f32'
          ? `mov.b32 %f${k}, %r; st.global.f32 [%a${k}], %f${k};`
          : name === 'b64'
            ? `cvt.u64.u32 %v${k}, %r; st.global.b64 [%a${k}], %v${k};`
            : `st.global.${name} [%a${k}], %r;`
      : size === 16
        ? `ld.global.v4.u32 {%l${k}, %m${k}, %n${k}, %p${k}}, [%a${k}]; mad.lo.u32 %r, %r, 5, ` +
          `%l${k}; xor.b32 %r, %r, %p${k};`
        : name === 'f32'
          ? `ld.global.f32 %f${k}, [%a${k}]; mov.b32 %l${k}, %f${k}; xor.b32 %r, %r, %l${k};`
          : name === 'b64'
            ? `ld.global.b64 %v${k}, [%a${k}]; cvt.u32.u64 %l${k}, %v${k}; add.u32 %r, %r, %l${k};`
            : `ld.global.${name} %l${k}, [%a${k}]; mad.lo.u32 %r, %r, 31, %l${k};`;
    const behind = place.wild ? `@%never bra W${k}; bra A${k};\nW${k}: ${access}\nA${k}:` : access;
    if (place.wild || guards === 'none' || guards === 'exit')
      return `${address(place, k)} ${behind}`;
    return guards === 'branch'
      ? `${address(place, k)} @%out bra A${k}; ${access}\nA${k}:`
      : `${address(place, k)} ${access
          .split(';')
          .filter((part) => part.trim())
          .map((part) => `@!%out ${part.trim()};`)
          .join(' ')}`;
  };
  const phases = Array.from({ length: barriers + 1 }, (_, phase) =>
    places.flatMap((place, k) => (k % (barriers + 1) === phase ? [move(place, k)] : [])).join('\n'),
  );
  const barrier =
    'st.shared.u32 [%cell], %r; bar.sync 0; ld.shared.u32 %z, [%other]; add.u32 %r, %r, %z; ' +
    'bar.sync 0;';
  const each = (type: string, ...names: string[]): string =>
    `.reg .${type} ${places.flatMap((_, k) => names.map((name) => `%${name}${k}`)).join(', ')};`;
  return kernelText(
    'k',
    [
      '.param .u64 results',
      '.param .u32 wide',
      '.param .u32 high',
      '.param .u32 zero',
      ...places.flatMap((_, k) => [`.param .u64 at${k}`, `.param .u32 pitch${k}`]),
    ].join(', '),
    `
    .shared .align 4 .b8 cells[8192];
    .reg .b64 %results, %own;
    .reg .b32 %tx, %ty, %tz, %cx, %cy, %nx, %ny, %x, %y, %y0, %wide, %high, %zero, %r, %z, %t,
    %t0, %t1, %cell, %other, %cells, %round, %threads; .reg .pred %out, %outx, %outy, %never, %more;
    ${each('b64', 'at', 'o', 'q', 'e', 'u', 'a', 'v')}
      ${each('b32', 'pitch', 'd', 'i', 'j', 'l', 'm', 'n', 'p', 'tr', 'tc')} ${each('f32', 'f')}
    ld.param.u64 %results, [results]; ld.param.u32 %wide, [wide]; ld.param.u32 %high, [high];
    ld.param.u32 %zero, [zero];
    ${places
      .map(
        (_, k) => `ld.param.u64 %at${k}, [at${k}];
      ld.param.u32 %pitch${k}, [pitch${k}];`,
      )
      .join('\n')}
    mov.u32 %tx, %tid.x; mov.u32 %ty, %tid.y; mov.u32 %tz, %tid.z; mov.u32 %cx, %ctaid.x;
    mov.u32 %cy, %ctaid.y; mov.u32 %nx, %ntid.x; mov.u32 %ny, %ntid.y;
    mad.lo.s32 %x, %cx, %nx, %tx; mad.lo.s32 %y0, %cy, %ny, %ty;
    ${
      rows === 'twice'
        ? 'shl.b32 %y, %y0, 1;'
        : rows === 'odd'
          ? 'mad.lo.s32 %y, %tz, 3, %y0;'
          : 'mov.u32 %y, %y0;'
    }
    mad.lo.s32 %t0, %tz, %ny, %ty; mad.lo.s32 %t, %t0, %nx, %tx; mul.lo.u32 %threads, %nx, %ny;
    mov.u32 %cells, cells; shl.b32 %t1, %t, 2; add.s32 %cell, %cells, %t1;
    xor.b32 %other, %t1, 4; add.s32 %other, %other, %cells;
    setp.ge.s32 %outx, %x, %wide; setp.ge.s32 %outy, %y0, %high; or.pred %out, %outx, %outy;
    setp.ne.u32 %never, %zero, 0; mov.u32 %r, %t; mov.u32 %round, 0;
    ${guards === 'exit' ? '@%out exit;' : ''}
    AGAIN:
    ${phases.join(`\n${barrier}\n`)}
    ${
      loops
        ? `add.u32 %round, %round, 1; bar.sync 0; setp.lt.u32 %more, %round, 2;
    @%more bra AGAIN;`
        : ''
    }
    mad.lo.s32 %t0, %cy, 2, %cx; mad.lo.s32 %t0, %t0, 2048, %t;
    mad.wide.s32 %own, %t0, 4, %results; st.global.u32 [%own], %r; ret;`,
  );
}

function run(
  source: string,
  { places, wide, high, fuel }: Kernel,
  block: Dimensions,
  simd: boolean,
) {
  const grid = new Grid(source, { simd, pages: PAGES });
  const results = grid.put(new Uint32Array(4 * 2048));
  let state = 12345;
  const end = grid.memory.buffer.byteLength;
  const low = end - ACCESSES * REGION;
  const bytes = new Uint8Array(grid.memory.buffer, low);
  for (let at = 0; at < bytes.length; at += 7)
    bytes[at] = (state = (Math.imul(state, 1103515245) + 12345) | 0) >>> 24;
  const [nx, ny = 1] = block;
  const [columns, rows] = [GRID[0] * nx, GRID[1] * ny];
  const args = places.flatMap<Argument>(
    ({ type: { size }, pitch, down, along, fromEnd, misaligned, wild }, k) => {
      if (wild) return [{ i64: wild.at }, { i32: wild.pitch }];
      const step = pitch / size;
      // The first of them reaches the end of memory; each other one is in a region of its own.
      const furthest = ((pitch > 0 ? rows - 1 : 0) + down) * pitch + (columns - 1 + along) * size;
      const at =
        fromEnd !== undefined && k === 0
          ? end - fromEnd - furthest - size
          : low + k * REGION + MIDDLE;
      return [{ i64: (at & -16) + (misaligned ? 1 : 0) }, { i32: step }];
    },
  );
  const outcome = grid.run(
    'k',
    [{ i64: results.address }, { i32: wide }, { i32: high }, { i32: 0 }, ...args],
    { grid: GRID, block, told: TOLD, ...(fuel === undefined ? {} : { fuel }) },
  );
  return {
    status: outcome.status,
    block: outcome.fault?.block,
    width: grid.width('k', { grid: GRID, block }),
    memory: [[...results.view].join(), Buffer.from(bytes).toString('latin1')],
  };
}

it(
  'blocks that touch their rows before they begin do what their threads do',
  { tags: 'random' },
  () => {
    const statuses = new Set<number>();
    const prefetching = new Set<boolean>();
    fc.assert(
      fc.property(kernels, fc.constantFrom(...SHAPES), (kernel, block) => {
        const source = text(kernel);
        const scalar = run(source, kernel, block, false);
        const lanes = run(source, kernel, block, true);
        statuses.add(scalar.status);
        prefetching.add(prefetches(source, 'k', block));
        expect(lanes.status, source).toBe(scalar.status);
        expect(lanes.block, source).toBe(scalar.block);
        if (scalar.status === STATUS.done)
          expect(
            lanes.memory.map((part, at) => part === scalar.memory[at]),
            source,
          ).toEqual([true, true]);
      }),
      // So many that there are faults, and kernels without prefetching.
      { numRuns: 200, leastRuns: 20 },
    );
    expect([...statuses].sort()).toEqual([STATUS.done, STATUS.fault].sort());
    expect(prefetching.size).toBe(2);
  },
);

it.each([(2n ** 64n + 8n) / 3n, (2n ** 65n + 4n) / 3n, 2n ** 63n, 2n ** 32n, -(2n ** 31n)])(
  'rows that come round to where they began: %s bytes apart',
  (pitch) => {
    const source = kernelText(
      'k',
      '.param .u64 at, .param .u64 pitch, .param .u32 zero',
      `
    .reg .b64 %at, %pitch, %y, %o, %row, %a, %x; .reg .b32 %tx, %ty, %zero, %v; .reg .pred %never;
    ld.param.u64 %at, [at]; ld.param.u64 %pitch, [pitch]; ld.param.u32 %zero, [zero];
    mov.u32 %tx, %tid.x; mov.u32 %ty, %tid.y; setp.ne.u32 %never, %zero, 0;
    cvt.u64.u32 %y, %ty; mul.lo.s64 %o, %y, %pitch; mul.wide.u32 %x, %tx, 4;
    add.s64 %row, %at, %o; add.s64 %a, %row, %x; bar.sync 0;
    @%never bra THERE; ret;
    THERE: ld.global.u32 %v, [%a]; st.global.u32 [%a+1024], %v; ret;`,
    );
    const grid = new Grid(source, { simd: true, pages: 4 });
    const at = grid.allocate(4096);
    expect(prefetches(source, 'k', [32, 4])).toBe(true);
    expect(
      grid.run('k', [{ i64: at }, { i64: pitch }, { i32: 0 }], {
        grid: [1],
        block: [32, 4],
        told: TOLD,
      }).status,
    ).toBe(STATUS.done);
  },
);

/** Loads whose values are not used: i32.load8_u and drop. */
function prefetches(source: string, name: string, [x, y = 1, z = 1]: Dimensions): boolean {
  const lanes = new Grid(source, { simd: true, pages: 4 }).kernel(name).inLanes([x, y, z]);
  return (
    typeof lanes !== 'string' && Buffer.from(lanes.wasm).includes(Buffer.from([0x2d, 0, 0, 0x1a]))
  );
}

describe('lines are prefetched', () => {
  it.each(['sm_75', 'sm_80', 'sm_90'] as const)('of the rows of a transpose for %s', (target) => {
    expect(prefetches(sample('k08_transpose', target), 'transpose', [32, 8])).toBe(true);
  });

  it.each([
    ['k04_sgemm', 'sgemm_tiled', [256, 1]],
    ['k03_reduce', 'reduce_sum', [256, 1]],
    ['k08_transpose', 'transpose', [32, 1]],
    ['k10_mandel', 'mandel', [32, 8]],
  ] as const)('not of blocks of one row, or that wait for nothing: %s', (file, name, block) => {
    expect(prefetches(sample(file), name, block)).toBe(false);
  });
});
