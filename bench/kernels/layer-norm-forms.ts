/**
 * The decisions of the compiler of tile kernels, one at a time, in the layer norm of rows of 4096
 * floats: when weights are read, threads of a row, the length of a row, divisions, caches, blocks
 * of a multiprocessor; and possible ones: one exchange of mean and spread instead of two sums,
 * blocks that take several rows. In turns with Triton's kernel.
 *
 *     npx tsx bench/kernels/layer-norm-forms.ts [rows=8192] [text in names]
 */
import { Device } from '../../src/index.js';
import { COLUMNS, ROWS, Tensors, compiledThreads, compiledTiles, raceForms } from './row-forms.js';
import type { Choices, Compiled, Parameters } from './row-forms.js';

const parameters: Parameters = { y: 'result', x: 'rows', w: 'row', b: 'row', eps: 1e-5 };

interface NormChoices extends Choices {
  /**
   * Where weights are read instead of after the quotients: before these, between the reductions,
   * with the row. `ahead`: after them, but prefetched into L1 with the row.
   */
  readonly weights?: 'before' | 'between' | 'first' | 'ahead';
  /** The mean is divided by a length that the launch passes. */
  readonly givenLength?: boolean;
  /** Squares are added by multiply-adds. */
  readonly fused?: boolean;
  /**
   * Another source: one reciprocal; the approximate reciprocal of a root; the mean of squares less
   * the square of the mean.
   */
  readonly text?: 'scale' | 'rsqrt' | 'squares';
}

const TEXTS = {
  own:
    'const d = v - tile.mean(v, 1); y.store(d / Math.sqrt(tile.mean(d * d, 1) + eps) * ' +
    'w.load() + b.load())',
  scale:
    'const d = v - tile.mean(v, 1); const s = 1 / Math.sqrt(tile.mean(d * d, 1) + eps); ' +
    'y.store(d * s * w.load() + b.load())',
  rsqrt:
    'const d = v - tile.mean(v, 1); const s = tile.fast.rsqrt(tile.mean(d * d, 1) + eps); ' +
    'y.store(d * s * w.load() + b.load())',
  squares:
    'const m = tile.mean(v, 1); y.store((v - m) / Math.sqrt(tile.mean(v * v, 1) - m * m + ' +
    'eps) * w.load() + b.load())',
} as const;

/** Reads of weights and their addresses, which come first after the quotients. */
const WEIGHTS = /(?<=\n\$L__\d+:\n)(?:\t(?:shl|mul\.wide|add\.s64|ld\.global\.nc).*\n)+/;

function withWeights(ptx: string, where: NormChoices['weights']): string {
  if (where === undefined) return ptx;
  const read = WEIGHTS.exec(ptx)?.[0];
  if (read === undefined || !read.includes('ld.global'))
    throw new Error('weights are not read behind quotients');
  const first = /\tadd\.rn\.f32/.exec(ptx)!.index;
  if (where === 'ahead') {
    const addresses = [...read.matchAll(/\t\w+[.\w]* (%r(d?)\d+),/g)].map(
      ([, name, wide]) => `\t.reg .b${wide === '' ? 32 : 64} ${name};\n`,
    );
    const asked = read.replaceAll(
      /ld\.global\.nc\.v4\.f32 \{.*\}, (\[.*\])/g,
      'prefetch.global.L1 $1',
    );
    return `${ptx.slice(0, first)}\t{\n${addresses.join('')}${asked}\t}\n${ptx.slice(first)}`;
  }
  const rest = ptx.replace(read, '');
  const meets = [...rest.matchAll(/\tbar\.sync 0;\n/g)];
  const meet = meets.at(where === 'between' ? 0 : -1)!;
  const at = where === 'first' ? first : meet.index + meet[0].length;
  return `${rest.slice(0, at)}${read}${rest.slice(at)}`;
}

function compiled(choices: NormChoices): Compiled {
  const { weights, givenLength = false, fused = false, text = 'own' } = choices;
  const made = compiledTiles(
    'layer_norm',
    parameters,
    `({ y, x, w, b, eps }, tile) => { const v = x.load(); ${TEXTS[text]}; }`,
    choices,
  );
  let ptx = withWeights(made.ptx, weights);
  if (givenLength) {
    ptx = ptx.replaceAll(
      /\tmul\.rn\.f32 (%f\d+), (%f\d+), 0f39800000;\n/g,
      (_, mean: string, sum: string) =>
        `\t{\n\t.reg .b32 %units;\n\t.reg .f32 %length;\n\tld.param.u32 %units, ` +
        `[layer_norm_param_6];\n\tshl.b32 %units, %units, 2;\n\tcvt.rn.f32.s32 %length, ` +
        `%units;\n\tdiv.rn.f32 ${mean}, ${sum}, %length;\n\t}\n`,
    );
  }
  if (fused)
    ptx = ptx.replaceAll(
      /\tmul\.rn\.f32 (%f\d+), (%f\d+), \2;\n\tadd\.rn\.f32 (%f\d+), (%f\d+), \1;\n/g,
      '\tfma.rn.f32 $3, $2, $2, $4;\n',
    );
  return { ...made, ptx };
}

interface OwnChoices extends Choices {
  /**
   * Mean and sum of squared deviations are exchanged together, combined as by Chan, Golub and
   * LeVeque: there is one barrier.
   */
  readonly joint?: boolean;
  /** The number of blocks, which take several rows each and keep the weights. */
  readonly turns?: number;
  /** The next row is read before the barrier of this one. */
  readonly ahead?: boolean;
}

/** A kernel of threads, as for `kernel(…)`. */
function own(choices: OwnChoices): Compiled {
  const { columns = 8, joint = false, turns, ahead = false } = choices;
  const threads = COLUMNS / columns;
  const warps = threads / 32;
  const each = (body: string): string =>
    `for (let q = 0; q < ${columns / 4}; q++) for (let k = 0; k < 4; k++) { const c = q * 4 ` +
    `+ k; const at = (q * ${threads} + t) * 4 + k; ${body} }`;
  const butterfly = (lanes: number, step: (bits: number) => string): string =>
    Array.from({ length: Math.log2(lanes) }, (_, at) => step(lanes >> (at + 1))).join(' ');
  const sum = (name: string, part: string): string => `
    ${butterfly(32, (bits) => `${name} += gpu.warp.shuffleXor(${name}, ${bits});`)}
    if (gpu.lane === 0) ${part}[t / 32] = ${name};
    gpu.block.sync();
    ${name} = ${part}[gpu.lane % ${warps}];
    ${butterfly(warps, (bits) => `${name} += gpu.warp.shuffleXor(${name}, ${bits});`)}`;
  let count = columns;
  const join = (bits: number): string => {
    const half = count / 2;
    count *= 2;
    return (
      `{ const other = gpu.warp.shuffleXor(mean, ${bits}); const spread = ` +
      `gpu.warp.shuffleXor(square, ${bits}); const gap = other - mean; square = square + ` +
      `spread + gap * gap * ${half}; mean = (mean + other) * 0.5; }`
    );
  };
  const separate = `
    let mean = gpu.f32(0); ${each('mean += v[c];')} ${sum('mean', 'sums')} mean = mean / ${COLUMNS};
    let square = gpu.f32(0);
    ${each('const d = v[c] - mean; square += d * d;')} ${sum('square', 'squares')}`;
  const together = `
    let mean = gpu.f32(0); ${each('mean += v[c];')} mean = mean / ${columns};
    let square = gpu.f32(0); ${each('const d = v[c] - mean; square += d * d;')}
    ${butterfly(32, join)}
    if (gpu.lane === 0) { sums[t / 32] = mean; squares[t / 32] = square; }
    gpu.block.sync();
    mean = sums[gpu.lane % ${warps}]; square = squares[gpu.lane % ${warps}];
    ${butterfly(warps, join)}`;
  const weights =
    `const g = gpu.local.f32(${columns}); const h = gpu.local.f32(${columns}); ` +
    `${each('g[c] = w[at];')} ${each('h[c] = b[at];')}`;
  const row = `
    ${joint ? together : separate}
    const root = Math.sqrt(square / ${COLUMNS} + eps);
    const r = gpu.local.f32(${columns}); ${each('r[c] = (v[c] - mean) / root;')}
    ${turns === undefined ? weights : ''}
    ${each(`y[row * ${COLUMNS} + at] = r[c] * g[c] + h[c];`)}`;
  const read = (to: string, of: string): string => each(`${to}[c] = x[${of} * ${COLUMNS} + at];`);
  const readAhead =
    `${each('v[c] = next[c];')} const after = Math.min(row + gpu.gridDim.x, rows - 1); ` +
    read('next', 'after');
  const text = `({ y, x, w, b, eps, rows }, gpu) => {
    const t = gpu.threadIdx.x;
    const sums = gpu.shared.f32(${warps}); const squares = gpu.shared.f32(${warps});
    const v = gpu.local.f32(${columns});
    ${
      turns === undefined
        ? `const row = gpu.blockIdx.x; ${read('v', 'row')} ${row}`
        : `
    const next = gpu.local.f32(${columns});
    ${ahead ? read('next', 'gpu.blockIdx.x') : ''}
    ${weights}
    gpu.unroll(1);
    for (let row = gpu.i32(gpu.blockIdx.x); row < rows; row += gpu.gridDim.x) {
      ${ahead ? readAhead : read('v', 'row')}
      ${row}
      gpu.block.sync();
    }`
    }
  }`;
  return compiledThreads('layer_norm', parameters, text, threads, choices, turns);
}

await using device = await Device.open();
const tensors = new Tensors(device.core, parameters);

function expected(row: number): number[] {
  const { x, w, b } = tensors.host;
  const own = Array.from(x!.subarray(row * COLUMNS, (row + 1) * COLUMNS));
  const mean = own.reduce((total, value) => total + value, 0) / COLUMNS;
  const square = own.reduce((total, value) => total + (value - mean) ** 2, 0) / COLUMNS;
  return own.map(
    (value, column) => ((value - mean) / Math.sqrt(square + 1e-5)) * w![column]! + b![column]!,
  );
}

/** Multiprocessors of an H200. */
const MULTIPROCESSORS = 132;
const NO_L1 = 'ld.global.nc.L1::no_allocate.v4';
const all: readonly (readonly [name: string, make: () => Compiled, place?: number])[] = [
  ...(
    [
      ['as it is', {}],
      ['as it was', { weights: 'before', givenLength: true }],
      ['as it is, other memory', {}, 1],
      ['weights before the quotients', { weights: 'before' }],
      ['weights between the reductions', { weights: 'between' }],
      ['weights with the row', { weights: 'first' }],
      ['weights ahead into L1', { weights: 'ahead' }],
      ['weights before the quotients, 3 blocks', { weights: 'before', blocks: 3 }],
      ['weights before the quotients, 4 blocks', { weights: 'before', blocks: 4 }],
      ['length given', { givenLength: true }],
      ['squares by multiply-adds', { fused: true }],
      ['each division by itself', { divide: true }],
      ['columns 4', { columns: 4 }],
      ['columns 16', { columns: 16 }],
      ['columns 16, 5 blocks', { columns: 16, blocks: 5 }],
      ['columns 16, 6 blocks', { columns: 16, blocks: 6 }],
      ['columns 16, 8 blocks', { columns: 16, blocks: 8 }],
      ['columns 32', { columns: 32 }],
      ['columns 16, weights before the quotients', { columns: 16, weights: 'before' }],
      ['columns 4, weights before the quotients', { columns: 4, weights: 'before' }],
      ['two rows', { rows: 2 }],
      ['two rows, columns 16', { rows: 2, columns: 16 }],
      ['rows past L1', { load: NO_L1, loadLater: 'ld.global.nc.v4' }],
      ['rows past L1, weights stay', { load: NO_L1, loadLater: 'ld.global.nc.L1::evict_last.v4' }],
      ['weights stay', { loadLater: 'ld.global.nc.L1::evict_last.v4' }],
      ['stores .cs', { store: 'st.global.cs.v4' }],
      [
        'rows past L1, stores .cs',
        { load: NO_L1, loadLater: 'ld.global.nc.v4', store: 'st.global.cs.v4' },
      ],
      ['stores no L1', { store: 'st.global.L1::no_allocate.v4' }],
      ['one reciprocal', { text: 'scale' }],
      ['one reciprocal, columns 16', { text: 'scale', columns: 16 }],
      ['reciprocal of the root, approximate', { text: 'rsqrt' }],
      ['mean of squares less the square of the mean', { text: 'squares' }],
    ] as readonly (readonly [string, NormChoices, number?])[]
  ).map(([name, choices, place = 0]) => [name, () => compiled(choices), place] as const),
  ...(
    [
      ['by threads', {}],
      ['by threads, mean and spread together', { joint: true }],
      ['by threads, mean and spread together, columns 16', { joint: true, columns: 16 }],
      ...[2, 3, 4].map((times) => [
        `rows in turns, ${times} blocks each`,
        { turns: times * MULTIPROCESSORS, blocks: times },
      ]),
      [
        'rows in turns, columns 16, 4 blocks each',
        { turns: 4 * MULTIPROCESSORS, columns: 16, blocks: 4 },
      ],
      [
        'rows in turns, the next ahead, 2 blocks each',
        { turns: 2 * MULTIPROCESSORS, ahead: true, blocks: 2 },
      ],
      [
        'rows in turns, the next ahead, columns 4, 2 blocks each',
        { turns: 2 * MULTIPROCESSORS, ahead: true, columns: 4, blocks: 2 },
      ],
      [
        'rows in turns, the next ahead, mean and spread together, 2 blocks each',
        { turns: 2 * MULTIPROCESSORS, ahead: true, joint: true, blocks: 2 },
      ],
    ] as readonly (readonly [string, OwnChoices])[]
  ).map(([name, choices]) => [name, () => own(choices)] as const),
];
await raceForms(
  device,
  'layer norm',
  8 * ROWS * COLUMNS,
  'layer_norm',
  all.map(([name, make, place = 0]) => [
    name,
    async (of) => tensors.variant(of, 'layer_norm', make(), place, expected, 1),
  ]),
);
tensors.close();
