// Branches on comparisons of a stepping value with a uniform one: near the bound, and near the ends
// of their range, units take them as their threads do one by one. Blocks have one row and several,
// and several blocks run in one call.

import * as fc from '../../../test/fast-check.js';
import { expect, it } from 'vitest';
import { STATUS } from '../index.js';
import { Grid, kernelText } from '../run-grid.test-support.js';

const SHAPES = [[32], [64], [100], [7], [96], [32, 3], [16, 4], [8, 2, 3], [128]] as const;
const BLOCKS = 3;
const ENDS = [0, 1, -1, 2 ** 31 - 1, -(2 ** 31), 31, -31, 100];

const word = fc
  .tuple(fc.constantFrom(...ENDS), fc.integer({ min: -130, max: 130 }))
  .map(([end, off]) => (end + off) | 0);
const comparison = fc.record({
  operation: fc.constantFrom('lt', 'le', 'gt', 'ge', 'lo', 'ls', 'hi', 'hs', 'eq', 'ne'),
  isUnsigned: fc.boolean(),
  stride: fc.constantFrom(
    1,
    1,
    1,
    2,
    4,
    33,
    -1,
    -3,
    0,
    2 ** 25,
    2 ** 26 - 1,
    1 - 2 ** 26,
    2 ** 26,
    -(2 ** 27),
    2 ** 30,
    2 ** 31 - 1,
  ),
  isLeft: fc.boolean(),
  isLiteral: fc.boolean(),
  start: word,
  bound: word,
  /** Whether the branch is negated, and whether both sides do something. */
  negated: fc.boolean(),
  otherwise: fc.boolean(),
  /** The index counts within the block, or within the grid. */
  ofGrid: fc.boolean(),
});
type Comparison = typeof comparison extends fc.Arbitrary<infer T> ? T : never;

function text(comparisons: readonly Comparison[], loops: boolean): string {
  const tests = comparisons
    .map(
      (
        { operation, isUnsigned, stride, isLeft, isLiteral, bound, negated, otherwise, ofGrid },
        index,
      ) => {
        const unsignedOnly = ['lo', 'ls', 'hi', 'hs'].includes(operation);
        const type = unsignedOnly || isUnsigned ? 'u32' : 's32';
        const other = isLiteral ? `${type === 'u32' ? bound >>> 0 : bound}` : `%b${index}`;
        return `ld.param.u32 %s${index}, [s${index}]; ld.param.u32 %b${index}, [b${index}];
      mad.lo.s32 %v${index}, ${ofGrid ? '%g' : '%t'}, ${stride}, %s${index};
      setp.${operation}.${type} %p${index}, ${
        isLeft
          ? `%v${index}, ${other}`
          : `%b${index},
        %v${index}`
      };
      @${negated ? '!' : ''}%p${index} bra L${index};
      ld.global.u32 %x, [%at]; mad.lo.u32 %x, %x, 3, ${index + 1}; st.global.u32 [%at], %x;
        ${otherwise ? `bra E${index};` : ''}
      L${index}: ${
        otherwise
          ? `ld.global.u32 %x, [%at]; mad.lo.u32 %x, %x, 5, ${index + 2};
        st.global.u32 [%at], %x;`
          : ''
      }
      E${index}:`;
      },
    )
    .join('\n');
  return kernelText(
    'k',
    [
      '.param .u64 out',
      ...comparisons.flatMap((_, index) => [`.param .u32 s${index}`, `.param .u32 b${index}`]),
    ].join(', '),
    `
    .reg .b64 %out, %at; .reg .pred %p<3>, %q;
    .reg .b32 %t, %g, %n<4>, %x, %y, %c<3>, %s<3>, %b<3>, %v<3>, %i, %r<4>;
    ld.param.u64 %out, [out]; mov.u32 %r0, %tid.x; mov.u32 %r1, %tid.y; mov.u32 %r2, %tid.z;
    mov.u32 %c0, %ntid.x; mov.u32 %c1, %ntid.y; mov.u32 %c2, %ntid.z;
    mad.lo.u32 %r3, %r2, %c1, %r1; mad.lo.u32 %t, %r3, %c0, %r0; mul.lo.u32 %n0, %c0, %c1;
    mul.lo.u32 %n1, %n0, %c2; mov.u32 %n2, %ctaid.x;
    mad.lo.u32 %g, %n2, %n1, %t; mad.wide.u32 %at, %g, 4, %out; mov.u32 %i, 0;
    ${loops ? 'AGAIN:' : ''}\n${tests}
    ${loops ? 'add.u32 %i, %i, 1; setp.lt.u32 %q, %i, 2; @%q bra AGAIN;' : ''}
    ret;`,
  );
}

function run(
  source: string,
  comparisons: readonly Comparison[],
  block: readonly [number, number?, number?],
  simd: boolean,
): { width: number; status: number; out: number[] } {
  const grid = new Grid(source, { simd, pages: 16 });
  const out = grid.put(new Uint32Array(BLOCKS * 128));
  const args = [
    { i64: out.address },
    ...comparisons.flatMap(({ start, bound }) => [{ i32: start }, { i32: bound }]),
  ];
  const launch = { grid: [BLOCKS], block } as const;
  // Runs a row of blocks in one call if the code allows it; the first block has run once before.
  const status = grid.repeat('k', args, launch);
  return { width: grid.width('k', launch), status, out: [...out.view] };
}

it('units take branches as their threads do, wherever the values lie', { tags: 'random' }, () => {
  fc.assert(
    fc.property(
      fc.array(comparison, { minLength: 1, maxLength: 3 }),
      fc.constantFrom(...SHAPES),
      fc.boolean(),
      (comparisons, block, loops) => {
        const source = text(comparisons, loops);
        const scalar = run(source, comparisons, block, false);
        const lanes = run(source, comparisons, block, true);
        expect(lanes.width).toBeGreaterThan(1);
        expect([scalar.status, lanes.status]).toEqual([STATUS.done, STATUS.done]);
        expect(lanes.out, source).toEqual(scalar.out);
      },
    ),
    { numRuns: 400 },
  );
});
