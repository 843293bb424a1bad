// Constant expressions have the values that ptxas computes: the expected values come from the
// cubins that it made of these lines.

import { describe, expect, it } from 'vitest';
import { PtxError, STATUS, compilePtx } from '../index.js';
import { Grid, kernelText } from '../run-grid.test-support.js';

const VALUES: readonly (readonly [expression: string, value: bigint])[] = [
  ['~0', 0xffffffffffffffffn],
  ['0xFFFFFFFFFFFFFFFF', 0xffffffffffffffffn],
  // `~` gives an unsigned number, as does a literal beyond 63 bits.
  ['~0 >> 60', 0xfn],
  ['-1 >> 60', 0xffffffffffffffffn],
  ['0x8000000000000000 >> 60', 0x8n],
  ['9223372036854775808 > -1', 0n],
  ['3 <= ~0', 1n],
  ['077U - 100 < 0', 0n],
  ['0b11U - 5 < 0', 0n],
  ['WARP_SZ - 33 < 0', 1n],
  // One unsigned operand makes the other one unsigned.
  ['5U > -7', 0n],
  ['-1 < 1U', 0n],
  ['-1 < 1', 1n],
  ['0x8000000000000000 / -2', 0n],
  ['-9223372036854775808 / -1', 0n],
  ['-7 / 2U', 0x7ffffffffffffffcn],
  ['-7 / 2', 0xfffffffffffffffdn],
  ['(5U & -1) - 8 < 0', 0n],
  ['(5 | 5) - 8 < 0', 1n],
  ['9223372036854775807 * 3U', 0x7ffffffffffffffdn],
  ['9223372036854775807 + 1 < 0', 1n],
  // A remainder is always unsigned.
  ['-7 % 4', 1n],
  ['(-7 % 4) - 8 < 0', 0n],
  // Results of comparisons and of `!` are signed.
  ['!5U - 2 < 0', 1n],
  ['(1U < 2U) - 2 < 0', 1n],
  ['(1U && 1U) - 2 < 0', 1n],
  // A minus leaves the sign property as it is, casts do not.
  ['-1U < 0', 0n],
  ['(.u64) -1 < 0', 0n],
  ['(.s64) ~0 < 0', 1n],
  // A shift has the sign property of its first operand; amounts have six bits.
  ['(1U << 63) < 0', 0n],
  ['(-1 >> 1U) < 0', 1n],
  ['1 << 65', 2n],
  ['1 << -1', 0x8000000000000000n],
  // The chosen value keeps its sign property.
  ['(1 ? -1 : 1U) < 0', 1n],
  ['(0 ? -1 : 1U) - 2 < 0', 0n],
];

const HEAD = '.version 8.0\n.target sm_80\n.address_size 64\n';

describe('a constant expression has the value that ptxas computes', () => {
  it('as an initial value', () => {
    const { data } = compilePtx(
      `${HEAD}.visible .global .u64 G[${VALUES.length}] = ` +
        `{${VALUES.map(([expression]) => expression).join(', ')}};\n.visible .entry k() { ret; }`,
    );
    const got = new BigUint64Array(data.slice(0, 8 * VALUES.length).buffer);
    expect(VALUES.map(([expression], i) => [expression, got[i]])).toEqual(VALUES);
  });
  it('as an operand', () => {
    const stores = VALUES.map(
      ([expression], i) => `mov.b64 %d, ${expression}; st.global.u64 [%o+${8 * i}], %d;`,
    ).join('\n');
    const grid = new Grid(
      kernelText(
        'k',
        '.param .u64 out',
        `.reg .b64 %o, %d; ld.param.u64 %o, [out];\n${stores}\nret;`,
      ),
    );
    expect(grid.module.failures).toEqual([]);
    const out = grid.put(new BigUint64Array(VALUES.length));
    expect(grid.run('k', [{ i64: out.address }], { grid: [1], block: [1] }).status).toBe(
      STATUS.done,
    );
    expect(VALUES.map(([expression], i) => [expression, out.view[i]])).toEqual(VALUES);
  });
  it('as an offset', () => {
    const offsets = ['1<<2', '3+(6+6==12)', '1?8:4', '~0&12', '-16>>2', '12|4'];
    const stores = offsets
      .map((offset, i) => `add.u64 %p, %o, ${64 * i + 16}; st.global.u32 [%p+${offset}], ${i + 1};`)
      .join('\n');
    const grid = new Grid(
      kernelText(
        'k',
        '.param .u64 out',
        `.reg .b64 %o, %p; ld.param.u64 %o, [out];\n${stores}\nret;`,
      ),
    );
    const out = grid.put(new Uint32Array(16 * offsets.length));
    expect(grid.run('k', [{ i64: out.address }], { grid: [1], block: [1] }).status).toBe(
      STATUS.done,
    );
    expect(
      offsets.map((_, i) => 4 * out.view.subarray(16 * i, 16 * i + 16).indexOf(i + 1) - 16),
    ).toEqual([4, 4, 8, 12, -4, 12]);
  });
});

describe('refused at its place', () => {
  it.each([
    [
      'mov.u32 %r, 99999999999999999999;',
      "the number '99999999999999999999' needs more than 64 bits",
      13,
    ],
    ['st.global.u32 [%d+99999999999999999999], %r;', 'needs more than 64 bits', 19],
    ['st.global.u32 [%d+-99999999999999999999U], %r;', 'needs more than 64 bits', 20],
    ['mov.b64 %d, 0x10000000000000000;', 'needs more than 64 bits', 13],
    ['mov.b64 %d, 1 / (2 - 2);', 'division by zero', 13],
    ['mov.b64 %d, (.s32) 1;', "'(.s32)' is no cast of constants: write (.s64) or (.u64)", 13],
    ['mov.b64 %d, (.s64) 1.5;', 'expected an integer', 13],
    ['mov.f64 %d, 1 ? 1.5 : 2.5;', "'?' needs integers", 13],
    ['mov.f64 %d, 1.5 + 1;', "'+' needs integers", 13],
  ])('%s', (line, message, column) => {
    let error: unknown;
    try {
      compilePtx(kernelText('k', '.param .u64 out', `.reg .b64 %d; .reg .b32 %r;\n${line}\nret;`));
    } catch (thrown) {
      error = thrown;
    }
    expect(error).toBeInstanceOf(PtxError);
    expect((error as PtxError).message).toContain(message);
    expect((error as PtxError).column).toBe(column);
  });
});
