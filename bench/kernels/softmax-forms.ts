/**
 * The decisions of the compiler of tile kernels, one at a time, in the softmax of rows of 4096
 * floats: threads of a row, how warps combine their results, divisions by one reciprocal, powers
 * bounded on one side, caches, blocks of a multiprocessor, the memory of tensors. For kernels of
 * threads: how many iterations of a loop that computes powers are unrolled. In turns with Triton's
 * kernel.
 *
 *     npx tsx bench/kernels/softmax-forms.ts [rows=8192] [text in names]
 */
import { Device } from '../../src/index.js';
import { COLUMNS, ROWS, Tensors, compiledThreads, compiledTiles, raceForms } from './row-forms.js';
import type { Choices, Compiled, Parameters } from './row-forms.js';

interface SoftmaxChoices extends Choices {
  /** The compiler does not use that no element is above the largest. */
  readonly unseen?: boolean;
  /** Other bits: powers and quotients as in Triton. */
  readonly fast?: boolean;
}

const parameters: Parameters = { y: 'result', x: 'rows', zero: 0 };

function compiled(choices: SoftmaxChoices): Compiled {
  const { unseen = false, fast = false } = choices;
  const most = unseen ? 'tile.max(v, 1) + zero' : 'tile.max(v, 1)';
  const exp = fast ? 'tile.fast.exp' : 'Math.exp';
  return compiledTiles(
    'softmax',
    parameters,
    `({ y, x, zero }, tile) => { const v = x.load(); const m = ${most}; const e = ${exp}(v - ` +
      'm); ' +
      `${fast ? 'const s = 1 / tile.sum(e, 1); y.store(e * s)' : 'y.store(e / tile.sum(e, 1))'}; }`,
    choices,
  );
}

/**
 * As in `typescript.ts`, with the given number of iterations of its loops of powers unrolled;
 * without a number as many as the compiler chooses.
 */
function ofThreads(turns?: number, threads = 256): Compiled {
  const hint = turns === undefined ? '' : `gpu.unroll(${turns}); `;
  const loop = `for (let i = gpu.threadIdx.x; i < columns; i += gpu.blockDim.x)`;
  return compiledThreads(
    'softmax',
    parameters,
    `({ y, x, units }, gpu) => {
    const columns = units * 4;
    const row = gpu.blockIdx.x * columns;
    let max = -Infinity;
    ${loop} max = Math.max(max, x[row + i]);
    max = gpu.block.max(max);
    let sum = 0;
    ${hint}${loop} sum += Math.exp(x[row + i] - max);
    const scale = 1 / gpu.block.sum(sum);
    ${hint}${loop} y[row + i] = Math.exp(x[row + i] - max) * scale;
  }`,
    threads,
    {},
  );
}

await using device = await Device.open();
const tensors = new Tensors(device.core, parameters);

function expected(row: number): number[] {
  const powers = Array.from(
    tensors.host['x']!.subarray(row * COLUMNS, (row + 1) * COLUMNS),
    Math.exp,
  );
  const sum = powers.reduce((total, power) => total + power, 0);
  return powers.map((power) => power / sum);
}

const old = { readAll: true, divide: true, unseen: true } as const;
const all: readonly (readonly [name: string, choices: SoftmaxChoices, place?: number])[] = [
  ['as it is', {}],
  ['as it was', old],
  ['as it is, other memory', {}, 1],
  ['as it is, other memory again', {}, 2],
  ['as it was, other memory', old, 1],
  ['each division by itself', { divide: true }],
  ['powers bounded on both sides', { unseen: true }],
  ['warps: all read', { readAll: true }],
  ['columns 4', { columns: 4 }],
  ['columns 16', { columns: 16 }],
  ['columns 32', { columns: 32 }],
  ['columns 16, 8 blocks', { columns: 16, blocks: 8 }],
  ['columns 16, 6 blocks', { columns: 16, blocks: 6 }],
  ['columns 4, warps: all read', { columns: 4, readAll: true }],
  ['two rows', { rows: 2 }],
  ['two rows, columns 16', { rows: 2, columns: 16 }],
  ['4 blocks', { blocks: 4 }],
  ['stores .cs', { store: 'st.global.cs.v4' }],
  ['stores .wt', { store: 'st.global.wt.v4' }],
  ['stores evict first', { store: 'st.global.L1::evict_first.v4' }],
  ['stores no L1', { store: 'st.global.L1::no_allocate.v4' }],
  ['loads .cs', { load: 'ld.global.cs.v4' }],
  ['loads plain', { load: 'ld.global.v4' }],
  ['loads no L1', { load: 'ld.global.nc.L1::no_allocate.v4' }],
  ['loads of 256 bytes', { load: 'ld.global.nc.L2::256B.v4' }],
  ['loads no L1, of 256 bytes', { load: 'ld.global.nc.L1::no_allocate.L2::256B.v4' }],
  [
    'loads no L1, stores .cs',
    { load: 'ld.global.nc.L1::no_allocate.v4', store: 'st.global.cs.v4' },
  ],
  [
    'columns 16, loads no L1, stores .cs',
    { columns: 16, load: 'ld.global.nc.L1::no_allocate.v4', store: 'st.global.cs.v4' },
  ],
  ['powers and quotients approximate', { fast: true }],
  ['powers and quotients approximate, columns 16', { fast: true, columns: 16 }],
];
const threaded: readonly (readonly [name: string, turns?: number | undefined, threads?: number])[] =
  [
    ['by threads'],
    ['by threads, twos', 2],
    ['by threads, fours', 4],
    ['by threads, eights', 8],
    ['by threads, 512 of them', undefined, 512],
    ['by threads, 512 of them, fours', 4, 512],
  ];
await raceForms(device, 'softmax', 8 * ROWS * COLUMNS, 'softmax', [
  ...all.map(
    ([name, choices, place = 0]) =>
      [
        name,
        async (of: string) => tensors.variant(of, 'softmax', compiled(choices), place, expected),
      ] as const,
  ),
  ...threaded.map(
    ([name, turns, threads]) =>
      [
        name,
        async (of: string) =>
          tensors.variant(of, 'softmax', ofThreads(turns, threads), 0, expected),
      ] as const,
  ),
]);
tensors.close();
