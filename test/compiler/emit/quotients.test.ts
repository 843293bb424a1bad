/**
 * Divisions of floats by one divisor, which share its reciprocal: rounded as each division is by
 * itself.
 */
import { describe, expect, test } from 'vitest';
import { emitKernel } from '../../../src/compiler/emit/emit.js';
import {
  TreeBuilder,
  add,
  constant,
  div,
  mul,
} from '../../../src/compiler/emit/trees.test-support.js';
import { Grid } from '../../../src/ptx/run-grid.test-support.js';

const DIVIDENDS = 8;
const BLOCK = 64;

const word = new DataView(new ArrayBuffer(4));
function float(bits: number): number {
  word.setUint32(0, bits);
  return word.getFloat32(0);
}

let state = 1;
function random(): number {
  state = (Math.imul(state, 1664525) + 1013904223) | 0;
  return (state ^ (state >>> 15)) >>> 0;
}
const anyOf = (list: readonly number[]): number => list[random() % list.length]!;
/** A number between 2^low and 2^(high + 1), of either sign. */
const sized = (low: number, high: number): number =>
  float(((random() & 0x807fffff) | ((127 + low + (random() % (high - low + 1))) << 23)) >>> 0);

/**
 * A thread divides eight numbers by one. With `between` the dividends, 3 · x, are computed between
 * the divisions; otherwise the quotients are written between them.
 */
function divider(between: boolean): TreeBuilder {
  const t = new TreeBuilder('divide');
  const [x, by, out] = [
    t.tensor('x', 'f32', 'input'),
    t.tensor('by', 'f32', 'input'),
    t.tensor('out', 'f32', 'output'),
  ];
  const i = t.variable(add(mul(t.special('blockIdx.x'), BLOCK), t.special('threadIdx.x')));
  const place = (at: number) => add(mul(i.value, DIVIDENDS), at);
  const divisor = t.variable(by.at(i.value), 'f32');
  const read = Array.from({ length: DIVIDENDS }, (_, at) => t.variable(x.at(place(at)), 'f32'));
  if (!between) {
    read.forEach((dividend, at) => out.put(place(at), div(dividend.value, divisor.value)));
    return t;
  }
  const quotients = read.map((dividend) =>
    t.variable(div(mul(constant(3, 'f32'), dividend.value), divisor.value), 'f32'),
  );
  quotients.forEach((quotient, at) => out.put(place(at), quotient.value));
  return t;
}

function run(
  ptx: string,
  entry: string,
  dividends: Float32Array,
  divisors: Float32Array,
): Uint32Array {
  const grid = new Grid(ptx);
  const [x, by, out] = [
    grid.put(dividends as never),
    grid.put(divisors as never),
    grid.put(new Float32Array(dividends.length) as never),
  ] as { address: number; view: Float32Array }[];
  grid.run(entry, [{ i64: x!.address }, { i64: by!.address }, { i64: out!.address }], {
    grid: [divisors.length / BLOCK],
    block: [BLOCK],
  });
  return new Uint32Array(out!.view.buffer, out!.view.byteOffset, dividends.length);
}

/** What `rcp.approx` gives, and a unit in the last place beside it: PTX promises no more of it. */
const beside = (ptx: string, units: number): string =>
  ptx.replaceAll(
    /rcp\.approx\.ftz\.f32 (%f\d+), (%f\d+);/g,
    (all, near) =>
      `${all}\n\t{ .reg .b32 %own; mov.b32 %own, ${near}; add.s32 %own, %own, ${units}; ` +
      `mov.b32 ${near}, %own; }`,
  );

const compiled = emitKernel(divider(false).tree, { capability: '9.0' });

function check(dividends: Float32Array, divisors: Float32Array): void {
  for (const units of [0, 1, -1]) {
    const found = run(
      units === 0 ? compiled.ptx : beside(compiled.ptx, units),
      compiled.entry,
      dividends,
      divisors,
    );
    const wanted = Float32Array.from(
      dividends,
      (dividend, at) => dividend / divisors[Math.floor(at / DIVIDENDS)]!,
    );
    const bits = new Uint32Array(wanted.buffer);
    found.forEach((result, at) => {
      if (result === bits[at] || (Number.isNaN(float(result)) && Number.isNaN(wanted[at]))) return;
      throw new Error(
        `${dividends[at]} by ${divisors[Math.floor(at / DIVIDENDS)]} gave ${float(result)}, ` +
          `not ${wanted[at]}, with a reciprocal ${units} units beside`,
      );
    });
  }
}

const THREADS = 512 * BLOCK;

describe('quotients are the nearest floats', () => {
  test('of numbers of usual size', () => {
    const divisors = Float32Array.from({ length: THREADS }, () => sized(-23, 23));
    check(
      Float32Array.from({ length: THREADS * DIVIDENDS }, () => sized(-99, 99)),
      divisors,
    );
  });

  test('where they lie nearest to the middle of two floats', () => {
    const divisors = Float32Array.from({ length: THREADS }, (_, at) =>
      at % 16 === 0 ? float(0x3fffffff - ((at >> 4) % 16)) : sized(0, 0),
    );
    const dividends = Float32Array.from({ length: THREADS * DIVIDENDS }, (_, at) => {
      // The middle has a bit more than a float: of 25 bits times 24 the nearest float.
      const middle = 2 ** 24 + ((random() & 0xffffff) | 1);
      const dividend = Math.fround(middle * divisors[Math.floor(at / DIVIDENDS)]! * 2 ** -25);
      return at % 3 === 0 ? dividend * (1 + 2 ** -23) : dividend;
    });
    check(dividends, divisors);
  });

  test('by the divisors whose reciprocal is hard to round', () => {
    const divisors = Float32Array.from({ length: THREADS }, (_, at) =>
      float(((at % 40) + 108) * 2 ** 23 + 0x7fffff - ((at / 40) & 3)),
    );
    check(
      Float32Array.from({ length: THREADS * DIVIDENDS }, (_, at) =>
        at % 4 === 0
          ? 2 ** ((random() % 60) - 30)
          : at % 4 === 1
            ? float(0x3fd55553)
            : sized(-30, 30),
      ),
      divisors,
    );
  });

  test('of zeros with their signs, infinities, NaN, and numbers beyond usual sizes', () => {
    const special = [
      0,
      -0,
      Infinity,
      -Infinity,
      NaN,
      2 ** -149,
      -(2 ** -149),
      2 ** -126,
      2 ** -101,
      2 ** -100,
      2 ** -99,
      2 ** 99,
      2 ** 100,
      2 ** 101,
      3.4028234663852886e38,
      1,
      -1,
      3,
    ];
    const divisors = [...special, 2 ** -25, 2 ** -24, 2 ** 24, 2 ** 25, -(2 ** -24), -7].map(
      Math.fround,
    );
    check(
      Float32Array.from({ length: THREADS * DIVIDENDS }, () =>
        random() % 3 === 0
          ? anyOf(special)
          : random() % 2 === 0
            ? sized(-126, 127)
            : float(random()),
      ),
      Float32Array.from({ length: THREADS }, () =>
        random() % 3 === 0 ? sized(-126, 127) : anyOf(divisors),
      ),
    );
  });

  test('of zeros and numbers of usual size by a positive divisor, without a division', () => {
    // Without the division for other operands the kernel is correct for these only.
    const { ptx, entry } = compiled;
    const cut = ptx.replaceAll(/div\.rn\.f32 (%f\d+), .*;/g, 'mov.f32 $1, 0f7FC00000;');
    const divisors = Float32Array.from({ length: THREADS }, () => Math.abs(sized(-23, 23)));
    const dividends = Float32Array.from({ length: THREADS * DIVIDENDS }, () =>
      random() % 4 === 0 ? anyOf([0, -0]) : sized(-99, 99),
    );
    const found = run(cut, entry, dividends, divisors);
    const wanted = new Uint32Array(
      Float32Array.from(
        dividends,
        (dividend, at) => dividend / divisors[Math.floor(at / DIVIDENDS)]!,
      ).buffer,
    );
    const odd = [...found].filter(
      (result, at) =>
        result !== wanted[at] &&
        (new Uint32Array(divisors.buffer)[Math.floor(at / DIVIDENDS)]! & 0x7fffff) < 0x7ffffd,
    );
    expect(odd).toEqual([]);
  });
});

describe('which divisions share a reciprocal', () => {
  const counts = (
    t: TreeBuilder,
    options: { readonly emulated?: boolean } = {},
  ): [reciprocals: number, divisions: number] => {
    const { ptx } = emitKernel(t.tree, { capability: '9.0', ...options });
    return [ptx.match(/rcp\.approx/g)?.length ?? 0, ptx.match(/div\.rn\.f32/g)?.length ?? 0];
  };

  test('eight by one divisor, whatever is computed or written between them', () => {
    expect(counts(divider(false))).toEqual([1, 8]);
    expect(counts(divider(true))).toEqual([1, 8]);
  });

  test('none on the CPU device, which divides in one step', () => {
    expect(counts(divider(false), { emulated: true })).toEqual([0, 8]);
  });

  /**
   * As many divisions as `steps`, of numbers that were read before; with `uses` each divides the
   * previous quotient.
   */
  const chain = (steps: number, uses: boolean): TreeBuilder => {
    const t = new TreeBuilder('chain');
    const [x, out] = [t.tensor('x', 'f32', 'input'), t.tensor('out', 'f32', 'output')];
    const read = Array.from({ length: steps + 1 }, (_, at) => t.variable(x.at(at), 'f32').value);
    let last = read[1]!;
    for (let at = 0; at < steps; at++) {
      last = t.variable(div(uses ? last : read[at + 1]!, read[0]!), 'f32').value;
      out.put(at, last);
    }
    return t;
  };

  test('with the dividends computed between them', () => {
    const { ptx, entry } = emitKernel(divider(true).tree, { capability: '9.0' });
    const dividends = Float32Array.from({ length: THREADS * DIVIDENDS }, () => sized(-20, 20));
    const divisors = Float32Array.from({ length: THREADS }, () => sized(-20, 20));
    const wanted = Float32Array.from(
      dividends,
      (dividend, at) => Math.fround(3 * dividend) / divisors[Math.floor(at / DIVIDENDS)]!,
    );
    expect(run(ptx, entry, dividends, divisors)).toEqual(new Uint32Array(wanted.buffer));
  });

  test('not three, nor quotients of quotients', () => {
    expect(counts(chain(3, false))).toEqual([0, 3]);
    expect(counts(chain(4, false))).toEqual([1, 4]);
    expect(counts(chain(8, true))).toEqual([0, 8]);
  });

  test('twenty in groups, which share it too', () => {
    expect(counts(chain(20, false))).toEqual([1, 20]);
  });
});
