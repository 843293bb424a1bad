// atom and red: every operation and type, in global memory, which other blocks may change in
// between, and in shared memory.

import { describe, expect, it } from 'vitest';
import { STATUS } from '../index.js';
import { Grid, kernelText } from '../run-grid.test-support.js';

const u = (bits: number, value: bigint): bigint => BigInt.asUintN(bits, value);
const s = (bits: number, value: bigint): bigint => BigInt.asIntN(bits, value);

/**
 * Runs one atomic in one thread on a cell of 32 bytes; `results` are the instruction's results,
 * `cell` the new contents.
 */
function once(
  place: 'global' | 'shared',
  instruction: string,
  cell: readonly bigint[],
  registers: string,
  results: readonly string[],
): { given: bigint[]; cell: bigint[] } {
  const move = (from: string, to: string): string =>
    [0, 1, 2, 3]
      .map((i) => `ld.u64 %t, [${from}+${8 * i}]; st.u64 [${to}+${8 * i}], %t;`)
      .join(' ');
  const grid = new Grid(
    kernelText(
      'k',
      '.param .u64 cell, .param .u64 out',
      `
    .shared .align 32 .b8 area[32]; .reg .b64 %c, %o, %t, %s, %a; ${registers}
    ld.param.u64 %c, [cell]; ld.param.u64 %o, [out]; cvta.shared.u64 %s, area;
    ${place === 'shared' ? `${move('%c', '%s')} mov.u64 %a, %s;` : 'mov.u64 %a, %c;'}
    ${instruction}
    ${results
      .map(
        (name, index) => `st.${/%q/.test(name) ? 'u64' : 'b32'} [%o+${8 * index}],
      ${name};`,
      )
      .join(' ')}
    ${place === 'shared' ? move('%s', '%c') : ''} ret;`,
    ),
  );
  const input = grid.put(BigUint64Array.from([...cell, 0n, 0n, 0n, 0n].slice(0, 4)));
  const output = grid.put(new BigUint64Array(8));
  expect(
    grid.run('k', [{ i64: input.address }, { i64: output.address }], { grid: [1], block: [1] })
      .status,
  ).toBe(STATUS.done);
  return { given: [...output.view], cell: [...input.view] };
}

const OPERATIONS: Record<
  string,
  { types: string[]; apply(type: string, old: bigint, b: bigint): bigint }
> = {
  and: { types: ['b32', 'b64'], apply: (_, old, b) => old & b },
  or: { types: ['b32', 'b64'], apply: (_, old, b) => old | b },
  xor: { types: ['b32', 'b64'], apply: (_, old, b) => old ^ b },
  exch: { types: ['b32', 'b64'], apply: (_, __, b) => b },
  add: { types: ['u32', 's32', 'u64'], apply: (_, old, b) => old + b },
  inc: { types: ['u32'], apply: (_, old, b) => (old >= b ? 0n : old + 1n) },
  dec: { types: ['u32'], apply: (_, old, b) => (old === 0n || old > b ? b : old - 1n) },
  min: {
    types: ['u32', 's32', 'u64', 's64'],
    apply: (type, old, b) => (compare(type, old, b) < 0 ? old : b),
  },
  max: {
    types: ['u32', 's32', 'u64', 's64'],
    apply: (type, old, b) => (compare(type, old, b) > 0 ? old : b),
  },
};
function compare(type: string, a: bigint, b: bigint): number {
  const bits = Number(type.slice(1));
  const [x, y] = type.startsWith('s') ? [s(bits, a), s(bits, b)] : [a, b];
  return x < y ? -1 : x > y ? 1 : 0;
}
const hex = (value: bigint): string => `0x${value.toString(16)}`;
const PAIRS = [
  [5n, 3n],
  [3n, 5n],
  [0n, 7n],
  [0xffffffffn, 1n],
  [0x80000000n, 0x7fffffffn],
  [0x8000000000000001n, 2n],
  [9n, 9n],
] as const;

for (const place of ['global', 'shared'] as const) {
  const space = place === 'shared' ? '.shared' : '.global';
  describe(`atomics in ${place} memory`, { tags: place === 'global' ? [] : 'thorough' }, () => {
    for (const [name, { types, apply }] of Object.entries(OPERATIONS)) {
      it(`${name} on ${types.join(', ')}`, () => {
        for (const type of types) {
          const bits = Number(type.slice(1));
          const register = bits === 64 ? '%q' : '%r';
          for (const [first, second] of PAIRS) {
            const [old, b] = [u(bits, first), u(bits, second)];
            const registers = '.reg .b32 %r; .reg .b64 %q;';
            for (const order of [
              '',
              '.relaxed.gpu',
              '.acq_rel.sys',
              '.acquire.cta',
              '.release.cluster',
            ]) {
              const result = once(
                place,
                `atom${order}${space}.${name}.${type} ${register}, [%a], ${hex(b)};`,
                [old],
                registers,
                [register],
              );
              expect(result.given[0], `${name}.${type}`).toBe(old);
              expect(u(bits, result.cell[0]!), `${name}.${type} ${old} ${b}`).toBe(
                u(bits, apply(type, old, b)),
              );
            }
            if (name === 'exch') continue;
            const reduced = once(
              place,
              `red.release.gpu${space}.${name}.${type} [%a], ${hex(b)};`,
              [old],
              registers,
              [],
            );
            expect(u(bits, reduced.cell[0]!)).toBe(u(bits, apply(type, old, b)));
          }
        }
      });
    }
    it('cas on 16, 32 and 64 bits', () => {
      for (const [bits, register, kind] of [
        [16, '%h', 'b16'],
        [32, '%r', 'b32'],
        [64, '%q', 'b64'],
      ] as const) {
        for (const matches of [true, false]) {
          const swap =
            `.reg .b${bits} %x, %y; mov.b${bits} %x, ${matches ? 77 : 78}; mov.b${bits} %y, ` +
            `99; atom${space}.cas.${kind} ${register}, [%a], %x, %y;`;
          const wide = bits === 16 ? `${swap} cvt.u32.u16 %r, %h;` : swap;
          const { given, cell } = once(
            place,
            wide,
            [77n | (0xabcd0000n << 32n)],
            '.reg .b16 %h; .reg .b32 %r; .reg .b64 %q;',
            [bits === 64 ? '%q' : '%r'],
          );
          const old = u(bits, 77n | (0xabcd0000n << 32n));
          expect(given[0]).toBe(old);
          if (bits < 64) expect(u(bits, cell[0]!)).toBe(matches ? 99n : 77n);
          // The bytes next to a small cell are unchanged.
          expect(cell[0]! >> 48n).toBe(0xabcdn);
        }
      }
    });
    it('128 bits: exch, and cas that hits or misses', () => {
      const registers = '.reg .b128 %v, %w, %n; .reg .b64 %q<2>; .reg .b64 %l<4>;';
      const values =
        'mov.b64 %l0, 11; mov.b64 %l1, 22; mov.b64 %l2, 33; mov.b64 %l3, 44; mov.b128 %w, ' +
        '{%l0, %l1}; mov.b128 %n, {%l2, %l3};';
      const exchanged = once(
        place,
        `${values} atom${space}.exch.b128 %v, [%a], %n; mov.b128 {%q0, %q1}, %v;`,
        [5n, 6n],
        registers,
        ['%q0', '%q1'],
      );
      expect([exchanged.given.slice(0, 2), exchanged.cell.slice(0, 2)]).toEqual([
        [5n, 6n],
        [33n, 44n],
      ]);
      for (const [cell, left] of [
        [
          [11n, 22n],
          [33n, 44n],
        ],
        [
          [11n, 23n],
          [11n, 23n],
        ],
        [
          [10n, 22n],
          [10n, 22n],
        ],
      ] as const) {
        const swapped = once(
          place,
          `${values} atom.acq_rel.gpu${space}.cas.b128 %v, [%a], %w, %n; mov.b128 {%q0, %q1}, %v;`,
          cell,
          registers,
          ['%q0', '%q1'],
        );
        expect([swapped.given.slice(0, 2), swapped.cell.slice(0, 2)]).toEqual([cell, left]);
      }
    });
    it('floats: f32, f64 and packed halves are added with one rounding', () => {
      const f32 = (value: number): bigint =>
        BigInt(new Uint32Array(new Float32Array([value]).buffer)[0]!);
      const f64 = (value: number): bigint =>
        new BigUint64Array(new Float64Array([value]).buffer)[0]!;
      const single = once(
        place,
        `mov.b32 %f, ${hex(f32(0.1))}; atom${space}.add.f32 %g, [%a], %f;`,
        [f32(0.2)],
        '.reg .f32 %f, %g;',
        ['%g'],
      );
      expect([single.given[0], u(32, single.cell[0]!)]).toEqual([
        f32(0.2),
        f32(Math.fround(0.1) + Math.fround(0.2)),
      ]);
      const double = once(
        place,
        `mov.b64 %d, ${hex(f64(0.1))}; red${space}.add.f64 [%a], %d;`,
        [f64(0.2)],
        '.reg .f64 %d;',
        [],
      );
      expect(double.cell[0]).toBe(f64(0.1 + 0.2));
      // 1 + 2^-11 ties to even and stays 1; 2^-10 + 1 does not.
      const halves = once(
        place,
        `mov.b32 %r, 0x10001400; atom${space}.add.noftz.f16x2 %r, [%a], %r;`,
        [0x3c003c00n],
        '.reg .b32 %r;',
        ['%r'],
      );
      expect([halves.given[0], halves.cell[0]]).toEqual([0x3c003c00n, 0x3c003c01n]);
      const bfloats = once(
        place,
        `mov.b32 %r, 0x3f804000; atom${space}.add.noftz.bf16x2 %r, [%a], %r;`,
        [0x3f803f80n],
        '.reg .b32 %r;',
        ['%r'],
      );
      expect(bfloats.cell[0]).toBe(0x40004040n);
    });
  });
}

describe('sums of singles', () => {
  // In units of the least subnormal; the least normal number is 2^23 of them.
  const NORMAL = 0x800000n;
  const MINUS = 0x80000000n;
  /** Old value, operand, sum in shared memory, sum in global memory. */
  const SUMS: [bigint, bigint, bigint, bigint][] = [
    [1n, 2n, 3n, 0n],
    [NORMAL, 5n, NORMAL + 5n, NORMAL],
    [5n, NORMAL, NORMAL + 5n, NORMAL],
    [NORMAL + 7n, MINUS | NORMAL, 7n, 0n],
    [MINUS | (NORMAL + 7n), NORMAL, MINUS | 7n, MINUS],
    [MINUS | 9n, MINUS | 1n, MINUS | 10n, MINUS],
    [MINUS | 9n, 1n, MINUS | 8n, 0n],
    [NORMAL - 1n, NORMAL - 1n, 2n * (NORMAL - 1n), 0n],
    [0x7f800000n, 1n, 0x7f800000n, 0x7f800000n],
    [0x3f800000n, 0x3f800000n, 0x40000000n, 0x40000000n],
  ];
  const add = (place: 'global' | 'shared', instruction: string, old: bigint, b: bigint): bigint =>
    u(
      32,
      once(place, `mov.b32 %f, ${hex(b)}; ${instruction}`, [old], '.reg .f32 %f, %g;', []).cell[0]!,
    );
  it.each([
    'atom.SPACE.add.f32 %g, [%a], %f;',
    'red.release.gpu.SPACE.add.f32 [%a], %f;',
    'atom.add.f32 %g, [%a], %f;',
    'red.add.f32 [%a], %f;',
  ])('are flushed in global memory, and not in shared memory: %s', (text) => {
    for (const [old, b, shared, global] of SUMS) {
      expect(
        add('shared', text.replace('SPACE', 'shared'), old, b),
        `${hex(old)} + ${hex(b)}`,
      ).toBe(shared);
      expect(
        add('global', text.replace('SPACE', 'global'), old, b),
        `${hex(old)} + ${hex(b)}`,
      ).toBe(global);
    }
  });
  it('are flushed in vectors, and not in bulk reductions', () => {
    for (const [old, b, shared, global] of SUMS) {
      const both = once(
        'global',
        `mov.b32 %f, ${hex(b)}; red.global.add.v2.f32 [%a], {%f, %f};`,
        [old | (old << 32n)],
        '.reg .f32 %f;',
        [],
      );
      expect(both.cell[0], `${hex(old)} + ${hex(b)}`).toBe(global | (global << 32n));
      const bulk = once(
        'global',
        `mov.b32 %f, ${hex(b)}; st.shared.v4.f32 [area], {%f, %f, %f, %f}; mov.b32 %n, 16; ` +
          'cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [%a], [area], %n;',
        [old | (old << 32n)],
        '.reg .f32 %f; .reg .b32 %n;',
        [],
      );
      expect(bulk.cell[0], `${hex(old)} + ${hex(b)}`).toBe(shared | (shared << 32n));
      if (shared === global) continue;
      const double = once(
        'global',
        `mov.b64 %d, ${hex(b)}; red.global.add.f64 [%a], %d;`,
        [old],
        '.reg .f64 %d;',
        [],
      );
      expect(double.cell[0], 'doubles are not').not.toBe(0n);
    }
  });
});

describe('vectors', () => {
  it('v2 and v4 of f32, v8 of f16, v4 of packed bf16', () => {
    const one = 0x3f800000n;
    const four = once(
      'global',
      'mov.b32 %f0, 0x3f800000; mov.b32 %f1, 0x40000000; atom.global.add.v4.f32 {%g0, %g1, ' +
        '%g2, %g3}, [%a], {%f0, %f1, %f0, %f1};',
      [one | (one << 32n), one],
      '.reg .f32 %f<2>, %g<4>;',
      ['%g0', '%g1', '%g2', '%g3'],
    );
    expect(four.given.slice(0, 4)).toEqual([one, one, one, 0n]);
    expect(four.cell.slice(0, 2)).toEqual([
      0x40000000n | (0x40400000n << 32n),
      0x40000000n | (0x40000000n << 32n),
    ]);
    const eight = once(
      'global',
      'mov.b16 %h0, 0x3c00; mov.b16 %h1, 0xbc00; red.global.max.noftz.v8.f16 [%a], {%h0, ' +
        '%h1, %h0, %h1, %h0, %h1, %h0, %h1};',
      [0xc000c000c000c000n, 0x4000400040004000n],
      '.reg .b16 %h<2>;',
      [],
    );
    expect(eight.cell.slice(0, 2)).toEqual([0xbc003c00bc003c00n, 0x4000400040004000n]);
    const packed = once(
      'global',
      'mov.b32 %r, 0x3f80bf80; atom.global.min.noftz.v4.bf16x2 {%s0, %s1, %s2, %s3}, [%a], ' +
        '{%r, %r, %r, %r};',
      [0x0000000040004000n, 0xc000c00000000000n],
      '.reg .b32 %r, %s<4>;',
      ['%s0', '%s3'],
    );
    expect(packed.given.slice(0, 2)).toEqual([0x40004000n, 0xc000c000n]);
    expect(packed.cell.slice(0, 2)).toEqual([0x0000bf803f80bf80n, 0xc000c0000000bf80n]);
  });
});

describe('many threads', () => {
  it('lose nothing', () => {
    const grid = new Grid(
      kernelText(
        'k',
        '.param .u64 out',
        `.reg .b64 %o; .reg .b32 %r; .reg .b16 %h; .reg .f32 %f; ld.param.u64 %o, [out];
      red.global.add.u32 [%o], 1; atom.global.inc.u32 %r, [%o+4], 6; mov.b16 %h, 0x3c00;
      atom.global.add.noftz.f16 %h, [%o+8], %h; mov.f32 %f, 0f3F800000;
      red.global.add.f32 [%o+12], %f; ret;`,
      ),
    );
    const out = grid.put(new Uint32Array(4));
    expect(grid.run('k', [{ i64: out.address }], { grid: [4], block: [256] }).status).toBe(
      STATUS.done,
    );
    expect([...out.view]).toEqual([1024, 1024 % 7, 0x6400, 0x44800000]);
  });
});

describe('a cache policy after the operands', () => {
  const registers = '.reg .b128 %v, %w; .reg .b64 %q, %l<3>; .reg .f32 %f<4>; .reg .b32 %r;';
  it('changes nothing of an exchange', () => {
    const word = once(
      'global',
      'mov.b64 %l0, 5; atom.global.exch.L2::cache_hint.b64 %q, [%a], 77, %l0;',
      [9n],
      registers,
      ['%q'],
    );
    expect([word.given[0], word.cell[0]]).toEqual([9n, 77n]);
    const wide = once(
      'global',
      'mov.b64 %l0, 11; mov.b64 %l1, 22; mov.b128 %w, {%l0, %l1}; ' +
        'atom.global.exch.L2::cache_hint.b128 %v, [%a], %w, %l0; mov.b128 {%q, %l2}, %v;',
      [1n, 2n],
      registers,
      ['%q'],
    );
    expect([wide.given[0], ...wide.cell.slice(0, 2)]).toEqual([1n, 11n, 22n]);
  });
  it('changes nothing of sums of vectors', () => {
    const prepare = 'mov.f32 %f0, 0f3f800000; mov.f32 %f1, 0f40000000; mov.b64 %l0, 5;';
    const reduced = once(
      'global',
      `${prepare} red.global.add.L2::cache_hint.v2.f32 [%a], {%f0, %f1}, %l0;`,
      [0x4000000040000000n],
      registers,
      [],
    );
    expect(reduced.cell[0]).toBe(0x4080000040400000n);
    const summed = once(
      'global',
      `${prepare} atom.global.add.L2::cache_hint.v2.f32 {%f2, %f3}, [%a], {%f0, %f1}, %l0;`,
      [0x4000000040000000n],
      registers,
      ['%f3'],
    );
    expect([BigInt.asUintN(32, summed.given[0]!), summed.cell[0]]).toEqual([
      0x40000000n,
      0x4080000040400000n,
    ]);
  });
});
