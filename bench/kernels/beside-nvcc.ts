/**
 * Kernels written in TypeScript, compared with nvcc -O3 of the same algorithm: launched in the same
 * way, timed by the device's events. Where memory is the limit, they are also compared with a copy
 * on the GPU that reads and writes as many bytes.
 */
import { readFile } from 'node:fs/promises';

import type { Benchmark, Contender, Peer, Setup } from '../benchmark.js';
import {
  type CoreDevice,
  type DeviceBuffer,
  type DeviceOp,
  type Stream,
  core,
  root,
} from '../library.js';
import { compileCuda } from '../peers/compile.js';
import * as typescript from './typescript.js';

const { f32, i32, inout, u32, u64, u8 } = core;

const SAMPLES = 3;
/** Launches between two events, whose clock ticks in half microseconds. */
const LAUNCHES = 20;
const BLOCK = 256;
/** Threads of a row. */
const ROW_BLOCK = 512;

type Numbers =
  | Float32Array<ArrayBuffer>
  | Int32Array<ArrayBuffer>
  | Uint32Array<ArrayBuffer>
  | Uint8Array<ArrayBuffer>;
type Host = Numbers | BigUint64Array<ArrayBuffer>;
type Buffer =
  | DeviceBuffer<'f32'>
  | DeviceBuffer<'i32'>
  | DeviceBuffer<'u32'>
  | DeviceBuffer<'u8'>
  | DeviceBuffer<'u64'>;

type Scalar = readonly [dtype: typeof f32 | typeof i32 | typeof u32, value: number];

/** One algorithm at one size. */
interface Pair {
  readonly name: string;
  readonly kernel: (args: never, options: never) => DeviceOp<unknown>;
  /** The kernel's name in the CUDA C++ file. */
  readonly entry: string;
  /**
   * A kernel without indices, whose grid and block are its own, and the shape of its larger
   * tensors.
   */
  readonly shape?: readonly [number, number] | readonly [number];
  readonly grid: number | [number, number];
  readonly block: number | [number, number];
  /** Contents of the buffers by name. */
  readonly buffers: Readonly<Record<string, () => Host>>;
  /** Further arguments in TypeScript. */
  readonly scalars: Readonly<Record<string, number>>;
  /** Arguments in CUDA C++: names of buffers, and scalars with their dtype. */
  readonly inCuda: readonly (string | Scalar)[];
  /** Bytes read and written by one launch, where memory is the limit. */
  readonly bytes?: number;
  /** Bytes of dynamic shared memory of a block. */
  readonly sharedBytes?: number;
  readonly result: string;
  /** The elements of `result` at some indices after one launch on the buffers' contents. */
  expected(
    contents: Readonly<Record<string, Numbers>>,
  ): readonly (readonly [index: number, value: number])[];
  /** The relative tolerance. */
  readonly tolerance: number;
}

const M = 2 ** 20;
/** In [0, 1), the same for the same index. */
const noise = (index: number): number => (Math.imul(index + 1, 2654435761) >>> 8) / 2 ** 24;
const floats =
  (length: number, value: (index: number) => number = noise) =>
  (): Host => {
    const array = new Float32Array(length);
    for (let i = 0; i < length; i++) array[i] = value(i);
    return array;
  };
const some = (length: number): number[] => [0, 1, 31, 257, length >> 1, length - 2, length - 1];

const N = 64 * M;
const ROWS = 8192;
const COLUMNS = 4096;
const SIDE = 8192;
const BODIES = 32768;
const EPS = 1e-5;
const perThread = (threads: number): number => Math.ceil(threads / BLOCK);

const row = (x: Numbers, index: number): Float32Array =>
  (x as Float32Array).subarray(index * COLUMNS, (index + 1) * COLUMNS);
const rowAt = [0, 1, 4097, ROWS - 1].map((r) => [r, r * COLUMNS + 17] as const);
const sumOf = (values: Iterable<number>): number => {
  let sum = 0;
  for (const value of values) sum += value;
  return sum;
};

const ALIKE: readonly Pair[] = [
  {
    name: 'saxpy of 64 M floats',
    kernel: typescript.saxpy,
    entry: 'saxpy',
    grid: perThread(N / 4),
    block: BLOCK,
    bytes: 12 * N,
    buffers: { y: floats(N, (i) => noise(i + 7)), x: floats(N) },
    scalars: { a: 2.5 },
    inCuda: ['y', 'x', [f32, 2.5], [i32, N]],
    result: 'y',
    tolerance: 1e-6,
    expected: ({ x, y }) => some(N).map((i) => [i, 2.5 * x![i]! + y![i]!]),
  },
  {
    name: 'chain of elementwise operations, 64 M floats',
    kernel: typescript.elementwise,
    entry: 'elementwise',
    grid: perThread(N / 4),
    block: BLOCK,
    bytes: 12 * N,
    buffers: { y: floats(N, () => 0), x: floats(N), z: floats(N, (i) => noise(i + 7)) },
    scalars: {},
    inCuda: ['y', 'x', 'z', [i32, N]],
    result: 'y',
    tolerance: 1e-5,
    expected: ({ x, z }) =>
      some(N).map((i) => [
        i,
        (x![i]! / (1 + Math.exp(-x![i]!))) * z![i]! + Math.sqrt(Math.abs(z![i]!) + 1),
      ]),
  },
  {
    name: 'transpose of 8192²',
    kernel: typescript.transpose,
    entry: 'transpose',
    grid: [SIDE / 64, SIDE / 64],
    block: BLOCK,
    bytes: 8 * SIDE * SIDE,
    buffers: { out: floats(SIDE * SIDE, () => 0), x: floats(SIDE * SIDE) },
    scalars: { width: SIDE, height: SIDE },
    inCuda: ['out', 'x', [i32, SIDE], [i32, SIDE]],
    result: 'out',
    tolerance: 0,
    expected: ({ x }) =>
      some(SIDE * SIDE).map((i) => [i, x![(i % SIDE) * SIDE + Math.floor(i / SIDE)]!]),
  },
  {
    name: 'sum of 64 M floats',
    kernel: typescript.reduce,
    entry: 'reduce',
    grid: 132 * 8,
    block: BLOCK,
    bytes: 4 * N,
    buffers: { out: floats(1, () => 0), x: floats(N) },
    scalars: {},
    inCuda: ['out', 'x', [i32, N]],
    result: 'out',
    tolerance: 1e-4,
    expected: ({ x }) => [[0, sumOf(x!)]],
  },
  {
    name: 'softmax of 8192 rows of 4096',
    kernel: typescript.softmax,
    entry: 'softmax',
    grid: ROWS,
    block: ROW_BLOCK,
    bytes: 8 * ROWS * COLUMNS,
    buffers: { y: floats(ROWS * COLUMNS, () => 0), x: floats(ROWS * COLUMNS) },
    scalars: {},
    inCuda: ['y', 'x'],
    result: 'y',
    tolerance: 1e-5,
    expected: ({ x }) =>
      rowAt.map(([r, at]) => [at, Math.exp(x![at]!) / sumOf(row(x!, r).map(Math.exp))]),
  },
  {
    name: 'layer norm of 8192 rows of 4096',
    kernel: typescript.layerNorm,
    entry: 'layer_norm',
    grid: ROWS,
    block: ROW_BLOCK,
    bytes: 8 * ROWS * COLUMNS,
    buffers: {
      y: floats(ROWS * COLUMNS, () => 0),
      x: floats(ROWS * COLUMNS),
      w: floats(COLUMNS),
      b: floats(COLUMNS, (i) => noise(i + 7)),
    },
    scalars: { eps: EPS },
    inCuda: ['y', 'x', 'w', 'b', [f32, EPS]],
    result: 'y',
    tolerance: 1e-4,
    expected: ({ x, w, b }) =>
      rowAt.map(([r, at]) => {
        const mean = sumOf(row(x!, r)) / COLUMNS;
        const square = sumOf(Array.from(row(x!, r), (v) => (v - mean) ** 2)) / COLUMNS;
        return [at, ((x![at]! - mean) / Math.sqrt(square + EPS)) * w![17]! + b![17]!];
      }),
  },
  {
    name: 'RMS norm of 8192 rows of 4096',
    kernel: typescript.rmsNorm,
    entry: 'rms_norm',
    grid: ROWS,
    block: ROW_BLOCK,
    bytes: 8 * ROWS * COLUMNS,
    buffers: { y: floats(ROWS * COLUMNS, () => 0), x: floats(ROWS * COLUMNS), w: floats(COLUMNS) },
    scalars: { eps: EPS },
    inCuda: ['y', 'x', 'w', [f32, EPS]],
    result: 'y',
    tolerance: 1e-4,
    expected: ({ x, w }) =>
      rowAt.map(([r, at]) => [
        at,
        (x![at]! / Math.sqrt(sumOf(Array.from(row(x!, r), (v) => v * v)) / COLUMNS + EPS)) *
          w![17]!,
      ]),
  },
  {
    name: 'histogram of 256 M bytes',
    kernel: typescript.histogram,
    entry: 'histogram',
    grid: 132 * 8,
    block: BLOCK,
    buffers: {
      out: () => new Uint32Array(256),
      data: () => new Uint8Array(256 * M).map((_, i) => Math.imul(i, 2654435761) >>> 24),
    },
    scalars: {},
    inCuda: ['out', 'data', [i32, 256 * M]],
    result: 'out',
    tolerance: 0,
    expected: ({ data }) => {
      const counts = new Uint32Array(256);
      for (const value of data!) counts[value]!++;
      return Array.from(counts, (count, value) => [value, count] as const);
    },
  },
  {
    name: 'scan of 64 M integers',
    kernel: typescript.scan as never,
    entry: 'scan',
    grid: 132 * 3,
    block: BLOCK,
    sharedBytes: 2 * 8192 * 4,
    bytes: 8 * N,
    buffers: {
      out: () => new Int32Array(N),
      state: () => new BigUint64Array(1 + N / 8192 + N / 8192 / BLOCK),
      x: () => new Int32Array(N).map((_, i) => i % 10),
    },
    scalars: { chunks: N / 8192 },
    inCuda: ['out', 'state', 'x', [i32, N / 8192]],
    result: 'out',
    tolerance: 0,
    expected: () =>
      some(N).map((i) => [i, 45 * Math.floor((i + 1) / 10) + (((i + 1) % 10) * (i % 10)) / 2]),
  },
  {
    name: 'n-body step of 32768',
    kernel: typescript.nbody,
    entry: 'nbody',
    grid: perThread(BODIES),
    block: BLOCK,
    buffers: { v: floats(4 * BODIES, () => 0), p: floats(4 * BODIES) },
    scalars: { dt: 0.01, eps: 1e-3 },
    inCuda: ['v', 'p', [i32, BODIES], [f32, 0.01], [f32, 1e-3]],
    result: 'v',
    tolerance: 1e-2,
    expected: ({ p }) => {
      let ax = 0;
      for (let j = 0; j < BODIES; j++) {
        const [dx, dy, dz] = [0, 1, 2].map((axis) => p![4 * j + axis]! - p![axis]!) as [
          number,
          number,
          number,
        ];
        ax += dx * p![4 * j + 3]! * (dx * dx + dy * dy + dz * dz + 1e-3) ** -1.5;
      }
      return [[0, ax * 0.01]];
    },
  },
  {
    name: 'mandelbrot of 4096², 1000 steps',
    kernel: typescript.mandelbrot,
    entry: 'mandelbrot',
    grid: [4096 / 32, 4096 / 8],
    block: [32, 8],
    buffers: { out: () => new Int32Array(4096 * 4096) },
    scalars: { width: 4096, height: 4096, x0: -2, y0: -1.5, step: 3 / 4096, most: 1000 },
    inCuda: ['out', [i32, 4096], [i32, 4096], [f32, -2], [f32, -1.5], [f32, 3 / 4096], [i32, 1000]],
    result: 'out',
    tolerance: 0,
    // -2 - 1.5 i leaves at once; 0 never does.
    expected: () => [
      [0, 1],
      [2048 * 4096 + Math.round((2 / 3) * 4096), 1000],
    ],
  },
  {
    name: 'Philox, 256 M words',
    kernel: typescript.philox,
    entry: 'philox',
    grid: perThread(N),
    block: BLOCK,
    bytes: 16 * N,
    buffers: { out: () => new Uint32Array(4 * N) },
    scalars: { seed: 0 },
    inCuda: ['out', [u32, 0], [i32, N]],
    result: 'out',
    tolerance: 0,
    // The known answer for counter 0 and key 0.
    expected: () => [
      [0, 0x6627e8d5],
      [1, 0xe169c58d],
      [2, 0xbc57ac4c],
      [3, 0x9b00dbd8],
    ],
  },
];

const named = (text: string): Pair => ALIKE.find(({ name }) => name.startsWith(text))!;
const ofRows = (text: string, kernel: unknown): Pair => ({
  ...named(text),
  name: `${named(text).name}, by tiles`,
  kernel: kernel as Pair['kernel'],
  shape: [ROWS, COLUMNS],
});
const ofElements = (text: string, kernel: unknown): Pair => ({
  ...named(text),
  name: `${named(text).name}, by elements`,
  kernel: kernel as Pair['kernel'],
  shape: [N],
});

const PAIRS: readonly Pair[] = [
  ...ALIKE,
  ofElements('saxpy', typescript.saxpyOfElements),
  ofElements('chain', typescript.elementwiseOfElements),
  ofRows('softmax', typescript.softmaxOfTiles),
  ofRows('layer norm', typescript.layerNormOfTiles),
  ofRows('RMS norm', typescript.rmsNormOfTiles),
];

const DTYPE_OF = new Map<unknown, typeof f32 | typeof i32 | typeof u32 | typeof u8 | typeof u64>([
  [Float32Array, f32],
  [Int32Array, i32],
  [Uint32Array, u32],
  [Uint8Array, u8],
  [BigUint64Array, u64],
]);

/** Queues one launch. The first one has to be awaited: it compiles. */
type Launch = (stream: Stream) => PromiseLike<unknown>;

class Measured implements Contender {
  private readonly device: CoreDevice;
  private readonly pair: Pair;
  private readonly buffers: Readonly<Record<string, Buffer>>;
  private readonly contents: Readonly<Record<string, Host>>;
  private readonly launch: Launch;
  private readonly stream: Stream;
  private readonly count: number;
  private readonly expected: ReturnType<Pair['expected']>;

  constructor(
    { device, count }: Setup,
    pair: Pair,
    contents: Measured['contents'],
    buffers: Measured['buffers'],
    launch: Launch,
  ) {
    this.device = device;
    this.pair = pair;
    this.contents = contents;
    this.buffers = buffers;
    this.launch = launch;
    this.stream = device.stream;
    this.count = count(SAMPLES);
    this.expected = pair.expected(contents as Record<string, Numbers>);
  }

  async round() {
    await this.prove();
    const samples: number[] = [];
    for (let k = 0; k < this.count; k++) {
      const [begin, end] = [this.device.createEvent(), this.device.createEvent()];
      this.stream.record(begin);
      for (let i = 0; i < LAUNCHES; i++) {
        void this.launch(this.stream);
      }
      this.stream.record(end);
      samples.push(((await begin.elapsed(end)) * 1000) / LAUNCHES);
      begin.close();
      end.close();
    }
    return { samples };
  }

  private async prove(): Promise<void> {
    const { pair, buffers, contents, stream } = this;
    for (const [name, buffer] of Object.entries(buffers))
      void (buffer as DeviceBuffer<'f32'>).write(
        stream,
        contents[name] as Float32Array<ArrayBuffer>,
      );
    await this.launch(stream);
    const result = (await (buffers[pair.result] as DeviceBuffer<'f32'>).read(
      stream,
    )) as ArrayLike<number>;
    for (const [index, value] of this.expected) {
      if (Math.abs(result[index]! - value) > pair.tolerance * Math.abs(value))
        throw new Error(`${pair.name}: ${pair.result}[${index}] is ${result[index]}, not ${value}`);
    }
  }

  close(): Promise<void> {
    for (const buffer of Object.values(this.buffers)) buffer.close();
    return Promise.resolve();
  }
}

function allocate(
  device: CoreDevice,
  { buffers }: Pair,
): { contents: Record<string, Host>; memory: Record<string, Buffer> } {
  const contents = Object.fromEntries(
    Object.entries(buffers).map(([name, make]) => [name, make()]),
  );
  const memory = Object.fromEntries(
    Object.entries(contents).map(([name, host]) => [
      name,
      device.alloc(DTYPE_OF.get(host.constructor)! as typeof f32, host.length) as Buffer,
    ]),
  );
  return { contents, memory };
}

async function inTypeScript(setup: Setup, pair: Pair): Promise<Contender> {
  const { contents, memory } = allocate(setup.device, pair);
  const { shape = [], grid, block, sharedBytes } = pair;
  const whole = shape.reduce<number>((product, extent) => product * extent, 1);
  const tensors = Object.fromEntries(
    Object.entries(memory).map(([name, buffer]) => {
      return [
        name,
        root.Tensor.of(
          buffer as DeviceBuffer<'f32'>,
          buffer.length === whole && shape.length > 0 ? shape : [buffer.length],
        ),
      ];
    }),
  );
  const op = pair.kernel(
    { ...tensors, ...pair.scalars } as never,
    (shape.length > 0
      ? {}
      : { grid, block, ...(sharedBytes === undefined ? {} : { sharedBytes }) }) as never,
  );
  return new Measured(setup, pair, contents, memory, (stream) => op.runOn(stream));
}

async function byNvcc(setup: Setup, pair: Pair): Promise<Contender> {
  const { device } = setup;
  const cubin = await readFile(await compileCuda('kernels', device.properties.computeCapability));
  const { contents, memory } = allocate(device, pair);
  const signature = pair.inCuda.map((arg) =>
    typeof arg === 'string' ? inout(memory[arg]!.dtype as typeof f32) : arg[0],
  );
  const kernel = (await device.loadModule(cubin)).kernel(pair.entry, signature);
  const args = pair.inCuda.map((arg) => (typeof arg === 'string' ? memory[arg]! : arg[1]));
  const { grid, block, sharedBytes = 0 } = pair;
  return new Measured(setup, pair, contents, memory, (stream) =>
    kernel.launch(stream, { grid, block, sharedBytes: sharedBytes }, ...args),
  );
}

/** A copy on the GPU that reads and writes `bytes` in all. */
function copying(bytes: number): Peer {
  return {
    name: 'copy on the card',
    bar: '<= 1.111',
    async start({ device, count }) {
      const [from, to] = [device.alloc(f32, bytes / 8), device.alloc(f32, bytes / 8)];
      from.fill(device.stream, 1);
      return {
        async round() {
          const samples: number[] = [];
          for (let k = 0; k < count(SAMPLES); k++) {
            const [begin, end] = [device.createEvent(), device.createEvent()];
            device.stream.record(begin);
            for (let i = 0; i < LAUNCHES; i++) void to.copyFrom(device.stream, from);
            device.stream.record(end);
            samples.push(((await begin.elapsed(end)) * 1000) / LAUNCHES);
            begin.close();
            end.close();
          }
          return { samples };
        },
        close() {
          from.close();
          to.close();
          return Promise.resolve();
        },
      };
    },
  };
}

/** Kernels of which Triton's peer has its own version, by their name in the CUDA C++ file. */
const IN_TRITON: ReadonlySet<string> = new Set([
  'saxpy',
  'elementwise',
  'reduce',
  'softmax',
  'layer_norm',
  'rms_norm',
]);

/** The same problem as in Triton's tutorials: at least as fast. */
function inTriton(entry: string): Peer {
  return {
    name: 'Triton',
    bar: '<= 1',
    program: 'Triton',
    request: ({ count }) => `kernel ${entry} ${count(SAMPLES)} ${LAUNCHES}`,
  };
}

export const besideNvcc: readonly Benchmark[] = PAIRS.map((pair) => ({
  area: 'kernels',
  name: `${pair.name}, in TypeScript`,
  unit: 'µs',
  statistic: 'median',
  // Bars differ by a thirtieth or less from the measurements, and rounds differ by as much.
  rounds: 15,
  peers: [
    { name: 'nvcc -O3', bar: '<= 1.031', start: (setup) => byNvcc(setup, pair) },
    ...(pair.bytes === undefined ? [] : [copying(pair.bytes)]),
    ...(IN_TRITON.has(pair.entry) ? [inTriton(pair.entry)] : []),
  ],
  start: (setup) => inTypeScript(setup, pair),
}));
