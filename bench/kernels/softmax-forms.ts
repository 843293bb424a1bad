/**
 * What the compiler of tile kernels decides, one thing at a time, in the softmax of rows of 4096 floats: threads of a row, how warps join
 * their results, divisions by one reciprocal, powers bounded on one side, caches, blocks of a multiprocessor, where the memory lies. In turns
 * with Triton's kernel.
 *
 *     npx tsx bench/kernels/softmax-forms.ts [rows=8192] [text in names]
 */
import { Device, f32, i32, input, output } from '../../src/index.js';
import { emitKernel } from '../../src/kernel/emit/emit.js';
import { readKernel } from '../../src/kernel/read/read-kernel.js';
import type { KernelSource, SignatureEntry } from '../../src/kernel/signature.js';
import { threadsFor } from '../../src/kernel/tiles/tile-form.js';
import type { TensorForm, TileForm } from '../../src/kernel/tiles/tile-form.js';
import { tileSource } from '../../src/kernel/tiles/tile-source.js';
import { race } from './variants.js';
import type { Variant } from './variants.js';

const COLUMNS = 4096;
const ROWS = Number(process.argv[2] ?? 8192);
const wanted = process.argv[3] ?? '';

const tensor = (access: 'input' | 'output'): SignatureEntry => ({ kind: 'tensor', element: { storage: 'f32' }, access, rank: 1 });
const ofRows: TensorForm = { access: 'dense', outer: [], row: 0, column: 1, rank: 2 };

interface Choices {
  /** Columns that a thread has. */
  readonly columns?: number;
  readonly rows?: number;
  /** Each thread reads what all warps have left, and joins it. */
  readonly readAll?: boolean;
  /** Every division by itself. */
  readonly divide?: boolean;
  /** The compiler does not see that no element is above the largest. */
  readonly unseen?: boolean;
  /** Not the same bits: powers and quotients as Triton has them. */
  readonly fast?: boolean;
  readonly load?: string;
  readonly store?: string;
  /** Blocks of a multiprocessor that registers shall leave room for. */
  readonly blocks?: number;
}

/** Instead of the butterfly over warps. */
function readingAll(text: string): string {
  return text.replace(/let sum\$ = (\S+)\[from\$ \+ gpu\$\.lane % (\d+)\];\n((?:sum\$ = .*\n)+)/g, (_, part: string, warps: string, joins: string) => {
    const extreme = joins.includes('Math.max');
    const next = `${part}[from$ + w$]`;
    return `let sum$ = ${part}[from$];\nfor (let w$ = 1; w$ < ${warps}; w$++) sum$ = ${extreme ? `Math.max(sum$, ${next})` : `sum$ + ${next}`};\n`;
  });
}

function compiled(choices: Choices): { readonly ptx: string; readonly threads: number; readonly rows: number } {
  const { columns = 8, rows = 1, readAll = false, divide = false, unseen = false, fast = false, load, store, blocks } = choices;
  const cut = threadsFor({ name: 'rows', tile: rows, extent: ROWS, widest: 1, cut: 'blocks' }, { name: 'columns', tile: COLUMNS, extent: COLUMNS, widest: 4, cut: 'whole' })!;
  const across = COLUMNS / columns;
  const form: TileForm = { axes: cut.axes.map((axis) => ({ ...axis, exactRows: true, exactColumns: true })), across, down: 1, broadcast: true, tensors: { y: ofRows, x: ofRows } };
  const most = unseen ? 'tile.max(v, 1) + zero' : 'tile.max(v, 1)';
  const exp = fast ? 'tile.fast.exp' : 'Math.exp';
  const source: KernelSource = {
    name: 'softmax', signature: { y: tensor('output'), x: tensor('input'), ...(unseen ? { zero: { kind: 'scalar', storage: 'f32' } } : {}) }, uses: {}, indexType: 'i32',
    text: `({ y, x${unseen ? ', zero' : ''} }, tile) => { const v = x.load(); const m = ${most}; const e = ${exp}(v - m); ${fast ? 'const s = 1 / tile.sum(e, 1); y.store(e * s)' : 'y.store(e / tile.sum(e, 1))'}; }`,
  };
  const lowered = tileSource(source, form);
  const tree = readKernel(readAll ? { ...lowered, text: readingAll(lowered.text) } : lowered);
  let { ptx } = emitKernel(tree, { capability: '9.0', block: [across, 1, 1], alignment: { 0: 16, 1: 16 }, emulated: divide });
  if (load !== undefined) ptx = ptx.replaceAll('ld.global.nc.v4', load);
  if (store !== undefined) ptx = ptx.replaceAll('st.global.v4', store);
  if (load?.includes('::') === true || store?.includes('::') === true) ptx = ptx.replace(/\.version \S+/, '.version 7.8');
  if (blocks !== undefined) ptx = ptx.replace(/\.reqntid (.*)/, `.reqntid $1\n.minnctapersm ${blocks}`);
  return { ptx, threads: across, rows };
}

await using device = await Device.open();
const { core } = device;
const { stream } = core;
const N = ROWS * COLUMNS;
const host = new Float32Array(N).map((_, i) => (Math.imul(i + 1, 2654435761) >>> 8) / 2 ** 24);

/** Where x and y lie: as they come; each time other memory. */
const places = Array.from({ length: 3 }, (_, at) => {
  const gap = at === 0 ? undefined : core.alloc(f32, at * 5 * 2 ** 18 + 64 * at);
  return { x: core.alloc(f32, N), y: core.alloc(f32, N), gap };
});
for (const { x } of places) await x.write(stream, host);

async function variant(name: string, choices: Choices, place = 0): Promise<Variant> {
  const { x, y } = places[place]!;
  const { ptx, threads, rows } = compiled(choices);
  const module = await core.loadModule(ptx);
  const unseen = choices.unseen === true;
  const kernel = module.kernel('softmax', [output(f32), input(f32), ...(unseen ? [f32] : []), i32, i32]);
  const launch = (): PromiseLike<unknown> => kernel.launch(stream, { grid: ROWS / rows, block: threads }, y, x, ...(unseen ? [0] : []), ROWS, COLUMNS / 4);
  return {
    name, launch,
    async prove() {
      await y.fill(stream, -1);
      await launch();
      const found = await y.read(stream);
      for (const row of [0, 1, 2, 3, ROWS >> 1, ROWS - 2, ROWS - 1]) {
        const powers = Array.from(host.subarray(row * COLUMNS, (row + 1) * COLUMNS), Math.exp);
        const sum = powers.reduce((total, power) => total + power, 0);
        powers.forEach((power, column) => {
          const at = row * COLUMNS + column;
          if (!(Math.abs(found[at]! / (power / sum) - 1) < 1e-5)) throw new Error(`y[${row}][${column}] is ${found[at]}, not ${power / sum}`);
        });
      }
    },
  };
}

const old = { readAll: true, divide: true, unseen: true } as const;
const all: readonly (readonly [name: string, choices: Choices, place?: number])[] = [
  ['as it is', {}], ['as it was', old], ['as it is, other memory', {}, 1], ['as it is, other memory again', {}, 2], ['as it was, other memory', old, 1],
  ['each division by itself', { divide: true }], ['powers bounded on both sides', { unseen: true }], ['warps: all read', { readAll: true }],
  ['columns 4', { columns: 4 }], ['columns 16', { columns: 16 }], ['columns 32', { columns: 32 }], ['columns 16, 8 blocks', { columns: 16, blocks: 8 }], ['columns 16, 6 blocks', { columns: 16, blocks: 6 }],
  ['columns 4, warps: all read', { columns: 4, readAll: true }], ['two rows', { rows: 2 }], ['two rows, columns 16', { rows: 2, columns: 16 }],
  ['4 blocks', { blocks: 4 }],
  ['stores .cs', { store: 'st.global.cs.v4' }], ['stores .wt', { store: 'st.global.wt.v4' }], ['stores evict first', { store: 'st.global.L1::evict_first.v4' }], ['stores no L1', { store: 'st.global.L1::no_allocate.v4' }],
  ['loads .cs', { load: 'ld.global.cs.v4' }], ['loads plain', { load: 'ld.global.v4' }], ['loads no L1', { load: 'ld.global.nc.L1::no_allocate.v4' }],
  ['loads of 256 bytes', { load: 'ld.global.nc.L2::256B.v4' }], ['loads no L1, of 256 bytes', { load: 'ld.global.nc.L1::no_allocate.L2::256B.v4' }],
  ['loads no L1, stores .cs', { load: 'ld.global.nc.L1::no_allocate.v4', store: 'st.global.cs.v4' }],
  ['columns 16, loads no L1, stores .cs', { columns: 16, load: 'ld.global.nc.L1::no_allocate.v4', store: 'st.global.cs.v4' }],
  ['powers and quotients approximate', { fast: true }], ['powers and quotients approximate, columns 16', { fast: true, columns: 16 }],
];
const variants: Variant[] = [];
for (const [name, choices, place] of all) {
  if (!name.includes(wanted) && name !== 'as it is') continue;
  try {
    variants.push(await variant(name, choices, place));
  } catch (error) {
    console.log(`  ${name}: ${(error as Error).message.slice(0, 300)}`);
  }
}
await race(device, `softmax of ${ROWS} rows of ${COLUMNS} f32`, 8 * N, variants, 'softmax');
for (const { x, y, gap } of places) {
  x.close();
  y.close();
  gap?.close();
}
