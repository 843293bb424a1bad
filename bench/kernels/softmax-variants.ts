/**
 * Compares forms of a softmax (and RMS norm) of rows of 4096 floats: threads of a row, rows of a
 * block, one row after another with the next being read meanwhile, whether caches are bypassed, one
 * reduction for the largest and the sum or two.
 *
 *     npx tsx bench/kernels/softmax-variants.ts [rows=8192] [text in names]
 */
import { Device, Tensor, f32, i32, input, kernel, output, tileKernel } from '../../src/index.js';
import type { Gpu } from '../../src/index.js';
import { compare } from './variants.js';
import type { Variant } from './variants.js';

const COLUMNS = 4096;

interface Floats {
  readonly length: number;
  readonly [index: number]: number;
}
type Written = Record<number, number> & { readonly length: number };

interface RowGpu extends Gpu {
  readonly THREADS: number;
  /** Accesses of four elements of a thread in a row. */
  readonly TIMES: number;
  readonly READ_STREAMING: boolean;
  readonly WRITE_STREAMING: boolean;
  /** Whether a block has one row after another. */
  readonly WALK: boolean;
  /** Whether the next row is read while this one is worked on. */
  readonly AHEAD: boolean;
  /** Sums of powers relative to the thread's own largest, which one reduction combines. */
  readonly ONLINE: boolean;
  readonly FAST: boolean;
}

interface RowArgs {
  readonly y: Written;
  readonly x: Floats;
  readonly rows: number;
}

const softmax = ({ y, x, rows }: RowArgs, gpu: RowGpu): void => {
  const values = gpu.local.f32(4 * gpu.TIMES);
  const ahead = gpu.local.f32(4 * gpu.TIMES);
  // Results of each warp, and of the iteration before: one barrier is enough for each reduction.
  const parts = gpu.shared.f32(4, 32);
  const t = gpu.threadIdx.x;
  if (gpu.AHEAD) {
    gpu.unroll(gpu.TIMES);
    for (let j = 0; j < gpu.TIMES; j++) {
      for (let k = 0; k < 4; k++)
        ahead[j * 4 + k] = gpu.READ_STREAMING
          ? gpu.streamingLoad(x, (gpu.blockIdx.x * 1024 + t + j * gpu.THREADS) * 4 + k)
          : x[(gpu.blockIdx.x * 1024 + t + j * gpu.THREADS) * 4 + k]!;
    }
  }
  let turn = 0;
  for (
    let row = gpu.blockIdx.x;
    row < (gpu.WALK ? rows : gpu.blockIdx.x + 1);
    row += gpu.gridDim.x
  ) {
    const at = row * 1024 + t;
    if (gpu.AHEAD) {
      gpu.unroll(4 * gpu.TIMES);
      for (let k = 0; k < 4 * gpu.TIMES; k++) values[k] = ahead[k]!;
      if (row + gpu.gridDim.x < rows) {
        const next = (row + gpu.gridDim.x) * 1024 + t;
        gpu.unroll(gpu.TIMES);
        for (let j = 0; j < gpu.TIMES; j++) {
          for (let k = 0; k < 4; k++)
            ahead[j * 4 + k] = gpu.READ_STREAMING
              ? gpu.streamingLoad(x, (next + j * gpu.THREADS) * 4 + k)
              : x[(next + j * gpu.THREADS) * 4 + k]!;
        }
      }
    } else {
      gpu.unroll(gpu.TIMES);
      for (let j = 0; j < gpu.TIMES; j++) {
        for (let k = 0; k < 4; k++)
          values[j * 4 + k] = gpu.READ_STREAMING
            ? gpu.streamingLoad(x, (at + j * gpu.THREADS) * 4 + k)
            : x[(at + j * gpu.THREADS) * 4 + k]!;
      }
    }
    let greatest = values[0]!;
    gpu.unroll(4 * gpu.TIMES);
    for (let k = 1; k < 4 * gpu.TIMES; k++) greatest = Math.max(greatest, values[k]!);
    greatest = gpu.warp.max(greatest);
    let scale = 0;
    if (gpu.ONLINE) {
      // Powers relative to the warp's own largest: the block's reduction scales them to the common
      // one.
      let sum = 0;
      gpu.unroll(4 * gpu.TIMES);
      for (let k = 0; k < 4 * gpu.TIMES; k++) {
        const power = gpu.FAST
          ? gpu.fast.exp(values[k]! - greatest)
          : Math.exp(values[k]! - greatest);
        sum += power;
        values[k] = power;
      }
      sum = gpu.warp.sum(sum);
      if (gpu.lane === 0) {
        parts[turn]![gpu.warpIdx] = greatest;
        parts[turn + 1]![gpu.warpIdx] = sum;
      }
      gpu.block.sync();
      let largest = parts[turn]![0]!;
      gpu.unroll(gpu.THREADS / 32);
      for (let warp = 1; warp < gpu.THREADS / 32; warp++)
        largest = Math.max(largest, parts[turn]![warp]!);
      const own =
        gpu.lane < gpu.THREADS / 32
          ? parts[turn + 1]![gpu.lane]! * Math.exp(parts[turn]![gpu.lane]! - largest)
          : 0;
      scale = Math.exp(greatest - largest) / gpu.warp.sum(own);
    } else {
      if (gpu.THREADS > 32) {
        if (gpu.lane === 0) parts[turn]![gpu.warpIdx] = greatest;
        gpu.block.sync();
        greatest = parts[turn]![0]!;
        gpu.unroll(gpu.THREADS / 32);
        for (let warp = 1; warp < gpu.THREADS / 32; warp++)
          greatest = Math.max(greatest, parts[turn]![warp]!);
      }
      let sum = 0;
      gpu.unroll(4 * gpu.TIMES);
      for (let k = 0; k < 4 * gpu.TIMES; k++) {
        const power = gpu.FAST
          ? gpu.fast.exp(values[k]! - greatest)
          : Math.exp(values[k]! - greatest);
        sum += power;
        values[k] = power;
      }
      sum = gpu.warp.sum(sum);
      if (gpu.THREADS > 32) {
        if (gpu.lane === 0) parts[turn + 1]![gpu.warpIdx] = sum;
        gpu.block.sync();
        sum = parts[turn + 1]![0]!;
        gpu.unroll(gpu.THREADS / 32);
        for (let warp = 1; warp < gpu.THREADS / 32; warp++) sum += parts[turn + 1]![warp]!;
      }
      scale = 1 / sum;
    }
    gpu.unroll(gpu.TIMES);
    for (let j = 0; j < gpu.TIMES; j++) {
      for (let k = 0; k < 4; k++) {
        if (gpu.WRITE_STREAMING)
          gpu.streamingStore(y, (at + j * gpu.THREADS) * 4 + k, values[j * 4 + k]! * scale);
        else y[(at + j * gpu.THREADS) * 4 + k] = values[j * 4 + k]! * scale;
      }
    }
    turn = 2 - turn;
  }
};

/** The tile kernel of `typescript.ts`. */
const byTiles = tileKernel(
  'softmax',
  { y: output(f32), x: input(f32) },
  ({ y, x }, tile) => {
    const v = x.load();
    const e = Math.exp(v - tile.max(v, 1));
    y.store(e / tile.sum(e, 1));
  },
  { tile: [1, null] },
);
const byTilesScaled = tileKernel(
  'softmax',
  { y: output(f32), x: input(f32) },
  ({ y, x }, tile) => {
    const v = x.load();
    const e = Math.exp(v - tile.max(v, 1));
    const scale = 1 / tile.sum(e, 1);
    y.store(e * scale);
  },
  { tile: [1, null] },
);
const byTwoRows = tileKernel(
  'softmax',
  { y: output(f32), x: input(f32) },
  ({ y, x }, tile) => {
    const v = x.load();
    const e = Math.exp(v - tile.max(v, 1));
    y.store(e / tile.sum(e, 1));
  },
  { tile: [2, null] },
);

type Made = (
  args: unknown,
  options?: unknown,
) => { runOn(on: Device['core']['stream']): PromiseLike<unknown> };

const ROWS = Number(process.argv[2] ?? 8192);
const wanted = process.argv[3] ?? '';
await using device = await Device.open();
const { core } = device;
const { stream } = core;
const multiprocessors = device.kind === 'cuda' ? device.properties.multiprocessorCount : 2;
const N = ROWS * COLUMNS;
const [a, b] = [core.alloc(f32, N), core.alloc(f32, N)];
const host = new Float32Array(N).map((_, i) => (Math.imul(i + 1, 2654435761) >>> 8) / 2 ** 24);
await a.write(stream, host);
const tensors = { x: Tensor.of(a, [ROWS, COLUMNS]), y: Tensor.of(b, [ROWS, COLUMNS]) };
const flat = { x: Tensor.of(a, [N]), y: Tensor.of(b, [N]) };

const variant = (name: string, op: ReturnType<Made>): Variant => ({
  name,
  launch: () => op.runOn(stream),
  async prove() {
    await b.fill(stream, -1);
    await op.runOn(stream);
    const found = await b.read(stream);
    for (const row of [0, 1, 2, 3, ROWS >> 1, ROWS - 2, ROWS - 1]) {
      const powers = Array.from(host.subarray(row * COLUMNS, (row + 1) * COLUMNS), Math.exp);
      const sum = powers.reduce((total, power) => total + power, 0);
      powers.forEach((power, column) => {
        const at = row * COLUMNS + column;
        if (!(Math.abs(found[at]! / (power / sum) - 1) < 1e-5))
          throw new Error(`y[${row}][${column}] is ${found[at]}, not ${power / sum}`);
      });
    }
  },
});

const variants: Variant[] = [
  variant('tile kernel as it is', (byTiles as unknown as Made)(tensors)),
  variant('tile kernel, times a scale', (byTilesScaled as unknown as Made)(tensors)),
  variant('tile kernel of two rows', (byTwoRows as unknown as Made)(tensors)),
];
const add = (
  threads: number,
  options: {
    readonly walk?: number;
    readonly ahead?: boolean;
    readonly online?: boolean;
    readonly fast?: boolean;
    readonly read?: boolean;
    readonly write?: boolean;
  },
): void => {
  const {
    walk,
    ahead = false,
    online = false,
    fast = false,
    read = false,
    write = false,
  } = options;
  const uses = {
    THREADS: threads,
    TIMES: 1024 / threads,
    READ_STREAMING: read,
    WRITE_STREAMING: write,
    WALK: walk !== undefined,
    AHEAD: ahead,
    ONLINE: online,
    FAST: fast,
  };
  const made = kernel(
    `softmax_${threads}`,
    { y: output(f32), x: input(f32), rows: i32 },
    softmax as never,
    { uses },
  ) as unknown as Made;
  const name = [
    `${threads} x ${4096 / threads}`,
    walk === undefined ? '' : `walking, ${walk} blocks per SM`,
    ahead ? 'one row ahead' : '',
    online ? 'one barrier' : '',
    fast ? 'fast exp' : '',
    read ? 'streaming in' : '',
    write ? 'streaming out' : '',
  ]
    .filter((part) => part !== '')
    .join(', ');
  variants.push(
    variant(
      name,
      made(
        { ...flat, rows: ROWS },
        {
          grid: Math.min(ROWS, walk === undefined ? ROWS : walk * multiprocessors),
          block: threads,
        },
      ),
    ),
  );
};
for (const threads of [128, 256, 512, 1024]) {
  for (const online of [false, true]) {
    for (const [read, write] of [
      [false, false],
      [true, true],
      [false, true],
      [true, false],
    ] as const)
      add(threads, { online, read, write });
    add(threads, { online, fast: true });
  }
}
for (const [threads, walk] of [
  [256, 8],
  [256, 6],
  [256, 4],
  [512, 4],
  [512, 3],
  [512, 2],
  [1024, 2],
  [1024, 1],
  [128, 8],
  [128, 12],
] as const) {
  for (const online of [false, true]) {
    add(threads, { walk, online });
    add(threads, { walk, online, ahead: true });
    add(threads, { walk, online, ahead: true, read: true, write: true });
  }
}
await compare(
  device,
  `softmax of ${ROWS} rows of ${COLUMNS} f32`,
  8 * N,
  variants.filter(({ name }) => name.includes(wanted)),
);
a.close();
b.close();
