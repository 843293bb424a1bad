/**
 * nvcc's kernels on the CPU device, compared with the same work in C. Times are of one launch and
 * its end; each row's peer is `gcc -O3 -march=native` with as many threads as the device has
 * workers.
 */
import { readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { performance } from 'node:perf_hooks';
import { setTimeout } from 'node:timers/promises';

import type { Bar, Benchmark, Contender, Peer } from '../benchmark.js';
import { core } from '../library.js';
import type { CoreDevice, DeviceBuffer, HostArray, Kernel } from '../library.js';
import { scalarMandelbrot } from './scalar-mandelbrot.js';

const SAMPLES = 3;
/**
 * Launches of kernels that take a few milliseconds at most. Memory that was just written is
 * accessed more slowly for about four launches: saxpy takes 3.8, 3.6, 3.5 and 3.4 ms, and 3.35 from
 * then on.
 */
const SAMPLES_OF_QUICK = 9;
/**
 * Many short rounds: a processor that is slow for some seconds (see `processor.ts`) is slow for all
 * contenders.
 */
const ROUNDS = 17;
/**
 * A pause with several threads: the peer's threads look for work without sleeping for some
 * milliseconds after their last (GNU's OpenMP, 300,000 pauses), and would use the processors on
 * which ours are measured.
 */
const QUIET_MS = 20;
/**
 * How long a kernel is launched before its first round: engines recompile what runs often, at the
 * same time and on its processor.
 */
const WARM_MS = 300;
/** One thread, and all that this machine has. */
const THREADS = [1, availableParallelism()].filter(
  (count, index, all) => all.indexOf(count) === index,
);

interface Work {
  launch(): PromiseLike<unknown>;
  /**
   * Throws where a result is wrong. It does not depend on earlier launches, or they are counted.
   */
  prove(launches: number): Promise<void>;
}

type Typed = Float32Array | Int32Array | Uint32Array | Uint8Array;

/**
 * Buffers of one round, each written whole before its first launch: the peer in C allocates and
 * writes its memory for each round, too. The difference between memory that was just written, which
 * is in the processor's caches, and memory that was written before other processes ran, is larger
 * than that between kernels: on one host a transpose took 8.9 ms from the latter, and 2.7 some
 * launches later.
 */
class Memory {
  private readonly device: CoreDevice;
  private readonly values: Map<string, Typed>;
  private readonly buffers: DeviceBuffer[] = [];

  /** `values`: those that were made in earlier rounds. */
  constructor(device: CoreDevice, values: Map<string, Typed>) {
    this.device = device;
    this.values = values;
  }

  private buffer<D extends 'f32' | 'i32' | 'u32' | 'u8'>(dtype: D, values: Typed): DeviceBuffer<D> {
    const buffer = this.device.alloc(core[dtype], values.length) as DeviceBuffer<D>;
    this.buffers.push(buffer as DeviceBuffer);
    buffer.write(this.device.stream, values as never);
    return buffer;
  }

  private kept<A extends Typed>(make: () => A): A {
    const name = String(this.buffers.length);
    const known = this.values.get(name) as A | undefined;
    const values = known ?? make();
    if (!known) this.values.set(name, values);
    return values;
  }

  floats(length: number, value: (index: number) => number): DeviceBuffer<'f32'> {
    return this.buffer(
      'f32',
      this.kept(() => Float32Array.from({ length }, (_, index) => value(index))),
    );
  }

  integers(length: number, value: (index: number) => number): DeviceBuffer<'i32'> {
    return this.buffer(
      'i32',
      this.kept(() => Int32Array.from({ length }, (_, index) => value(index))),
    );
  }

  words(length: number, value: (index: number) => number): DeviceBuffer<'u32'> {
    return this.buffer(
      'u32',
      this.kept(() => Uint32Array.from({ length }, (_, index) => value(index))),
    );
  }

  bytes(length: number, value: (index: number) => number): DeviceBuffer<'u8'> {
    return this.buffer(
      'u8',
      this.kept(() => Uint8Array.from({ length }, (_, index) => value(index))),
    );
  }

  /**
   * The contents of one of them, in one array for all rounds: with an array for each round the
   * engine's threads look for garbage all the time, a few percent of two processors, while kernels
   * that use both are measured.
   */
  async read<D extends 'f32' | 'i32' | 'u32' | 'u8'>(
    buffer: DeviceBuffer<D>,
  ): Promise<HostArray<D>> {
    const name = `read ${this.buffers.indexOf(buffer as DeviceBuffer)}`;
    const into = this.values.get(name) as HostArray<D> | undefined;
    const values = await buffer.read(this.device.stream, into === undefined ? {} : { into });
    this.values.set(name, values as Typed);
    return values;
  }

  close(): void {
    for (const buffer of this.buffers) buffer.close();
  }
}

interface Row {
  /** The name of the row, and of the measurement in C. */
  name: string;
  measurement: string;
  /** The bar of our own time. */
  bar?: Bar;
  /** The bar of our time by C's, for one thread only or for all threads. */
  against: Bar;
  ofOneThread?: true;
  /** Whether it takes a few milliseconds. */
  quick?: true;
  others?: readonly Peer[];
  file: string;
  kernel: string;
  prepare(memory: Memory, device: CoreDevice, kernel: Kernel): Work;
}

function expect(right: boolean, what: string): void {
  if (!right) throw new Error(`${what} gave a wrong result`);
}

/** A peer besides the bar's: C that a compiler optimises better than the code of a thread. */
const sgemmInMemory: Peer = {
  name: 'C, sums in memory',
  program: 'kernels',
  request: ({ count }) => `sgemm-in-memory ${count(SAMPLES)} 1`,
};

const runningSum: Peer = {
  name: 'C, a running sum',
  program: 'kernels',
  request: ({ count }) => `running-sum ${count(SAMPLES_OF_QUICK)} 1`,
};

/**
 * The cost of the order in which a kernel's blocks access memory: each block to its end, and
 * several at a time as the device runs them.
 */
const blockByBlock: Peer = {
  name: 'C, block by block',
  program: 'kernels',
  request: ({ count }) => `reduce-in-order ${count(SAMPLES_OF_QUICK)} 1 1`,
};
const sideBySide: Peer = {
  name: 'C, 32 blocks by turns',
  program: 'kernels',
  request: ({ count }) => `reduce-in-order ${count(SAMPLES_OF_QUICK)} 1 32`,
};

const M = 1 << 20;

const ROWS: readonly Row[] = [
  {
    // 0.85 of the rate.
    name: 'saxpy of 16 M floats',
    measurement: 'saxpy',
    quick: true,
    against: '<= 1.18',
    ofOneThread: true,
    file: 'k01_saxpy',
    kernel: 'saxpy',
    prepare(memory, device, kernel) {
      const n = 16 * M;
      const x = memory.floats(n, (index) => index & 1023);
      const y = memory.floats(n, () => 0);
      return {
        launch: () => kernel.launch(device.stream, { grid: n / 256, block: 256 }, n, 2, x, y),
        async prove(launches) {
          const values = await memory.read(y);
          expect(values[5] === 10 * launches && values[n - 1] === 2046 * launches, 'saxpy');
        },
      };
    },
  },
  {
    // 512^3 multiply-adds at 12 GFLOP/s are 22.4 ms.
    name: 'tiled sgemm of 512³',
    measurement: 'sgemm',
    bar: '<= 22.4',
    against: '<= 1',
    ofOneThread: true,
    others: [sgemmInMemory],
    file: 'k04_sgemm',
    kernel: 'sgemm_tiled',
    prepare(memory, device, kernel) {
      const n = 512;
      const [a, b, c] = [
        memory.floats(n * n, (index) => index % 7),
        memory.floats(n * n, (index) => index % 5),
        memory.floats(n * n, () => 0),
      ];
      return {
        launch: () =>
          kernel.launch(
            device.stream,
            { grid: [n / 16, n / 16], block: [16, 16] },
            n,
            n,
            n,
            a,
            b,
            c,
          ),
        async prove() {
          let wanted = 0;
          for (let k = 0; k < n; k++) wanted += ((3 * n + k) % 7) * ((k * n + 11) % 5);
          expect((await memory.read(c))[3 * n + 11] === wanted, 'sgemm');
        },
      };
    },
  },
  {
    name: 'mandelbrot of 1024²',
    measurement: 'mandel',
    against: '<= 2',
    others: [scalarMandelbrot],
    file: 'k10_mandel',
    kernel: 'mandel',
    prepare(memory, device, kernel) {
      const n = 1024;
      const o = memory.integers(n * n, () => 0);
      return {
        launch: () =>
          kernel.launch(
            device.stream,
            { grid: [n / 32, n / 8], block: [32, 8] },
            o,
            n,
            n,
            -2,
            -1.5,
            3 / n,
            256,
          ),
        async prove() {
          const values = await memory.read(o);
          expect(values[512 * n + 683] === 256 && values[0]! <= 3, 'mandel');
        },
      };
    },
  },
  {
    name: 'reduction of 16 M floats with shuffles',
    measurement: 'reduce',
    quick: true,
    against: '<= 2',
    others: [blockByBlock, sideBySide],
    file: 'k03_reduce',
    kernel: 'reduce_sum',
    prepare(memory, device, kernel) {
      const n = 16 * M;
      const x = memory.floats(n, (index) => index & 1);
      const sum = memory.floats(1, () => 0);
      return {
        launch: () => {
          sum.fill(device.stream, 0);
          return kernel.launch(device.stream, { grid: 64, block: 256 }, x, sum, n);
        },
        async prove() {
          expect((await memory.read(sum))[0] === n / 2, 'the reduction');
        },
      };
    },
  },
  {
    name: 'histogram of 16 M bytes with shared atomics',
    measurement: 'histogram',
    quick: true,
    against: '<= 2',
    file: 'k06_hist',
    kernel: 'hist256',
    prepare(memory, device, kernel) {
      const n = 16 * M;
      const d = memory.bytes(n, (index) => Math.imul(index, 0x9e3779b1) >>> 24);
      const h = memory.words(256, () => 0);
      return {
        launch: () => {
          h.fill(device.stream, 0);
          return kernel.launch(device.stream, { grid: 64, block: 256 }, d, h, n);
        },
        async prove() {
          expect(
            (await memory.read(h)).reduce((sum, count) => sum + count, 0) === n,
            'the histogram',
          );
        },
      };
    },
  },
  {
    name: 'scan of 4 M integers',
    measurement: 'scan',
    quick: true,
    against: '<= 2',
    others: [runningSum],
    file: 'k07_scan',
    kernel: 'scan_block',
    prepare(memory, device, kernel) {
      const n = 4 * M;
      const [x, out, sums] = [
        memory.integers(n, (index) => index % 10),
        memory.integers(n, () => 0),
        memory.integers(n / 256, () => 0),
      ];
      return {
        launch: () => kernel.launch(device.stream, { grid: n / 256, block: 256 }, x, out, sums, n),
        async prove() {
          const [values, last] = [await memory.read(out), await memory.read(sums)];
          expect(values[9] === 45 && last[0] === values[255], 'the scan');
        },
      };
    },
  },
  {
    name: 'transpose of 2048²',
    measurement: 'transpose',
    quick: true,
    against: '<= 2',
    file: 'k08_transpose',
    kernel: 'transpose',
    prepare(memory, device, kernel) {
      const n = 2048;
      const [x, out] = [memory.floats(n * n, (index) => index), memory.floats(n * n, () => 0)];
      return {
        launch: () =>
          kernel.launch(device.stream, { grid: [n / 32, n / 32], block: [32, 8] }, x, out, n, n),
        async prove() {
          expect((await memory.read(out))[5 * n + 77] === 77 * n + 5, 'the transpose');
        },
      };
    },
  },
  {
    name: 'n-body step of 4096',
    measurement: 'nbody',
    against: '<= 2',
    file: 'k09_nbody',
    kernel: 'nbody',
    prepare(memory, device, kernel) {
      const n = 4096;
      const p = memory.floats(4 * n, (index) =>
        index % 4 === 3 ? 1 : (index >> 2) % [17, 31, 7][index % 4]!,
      );
      const v = memory.floats(4 * n, () => 0);
      return {
        launch: () =>
          kernel.launch(device.stream, { grid: n / 128, block: 128 }, p, v, n, 0.01, 0.01),
        async prove(launches) {
          // Velocity grows by the same step each time: the bodies do not move.
          const [me, all] = [[1, 1, 1] as const, await memory.read(v)];
          let ax = 0;
          for (let j = 0; j < n; j++) {
            const [dx, dy, dz] = [(j % 17) - me[0], (j % 31) - me[1], (j % 7) - me[2]];
            ax += dx * (dx * dx + dy * dy + dz * dz + 0.01) ** -1.5;
          }
          expect(
            Math.abs(all[4]! - ax * 0.01 * launches) < 1e-3 * Math.abs(ax * 0.01 * launches) + 1e-3,
            'the n-body step',
          );
        },
      };
    },
  },
  {
    name: 'softmax of 1024 rows of 1024',
    measurement: 'softmax',
    quick: true,
    against: '<= 2',
    file: 'k05_softmax',
    kernel: 'softmax',
    prepare(memory, device, kernel) {
      const [rows, cols] = [1024, 1024];
      const [x, y] = [
        memory.floats(rows * cols, (index) => (index % 13) / 4),
        memory.floats(rows * cols, () => 0),
      ];
      return {
        launch: () => kernel.launch(device.stream, { grid: rows, block: 256 }, x, y, cols),
        async prove() {
          const row = (await memory.read(y)).subarray(0, cols);
          expect(Math.abs(row.reduce((sum, value) => sum + value, 0) - 1) < 1e-4, 'softmax');
        },
      };
    },
  },
  {
    name: 'RMS norm of 1024 rows of 1024',
    measurement: 'rms',
    quick: true,
    against: '<= 2',
    file: 'k05_softmax',
    kernel: 'rms_norm',
    prepare(memory, device, kernel) {
      const [rows, cols] = [1024, 1024];
      const [x, w, y] = [
        memory.floats(rows * cols, () => 3),
        memory.floats(cols, () => 2),
        memory.floats(rows * cols, () => 0),
      ];
      return {
        launch: () => kernel.launch(device.stream, { grid: rows, block: 256 }, x, w, y, cols, 1e-6),
        async prove() {
          expect(Math.abs((await memory.read(y))[7]! - 2) < 1e-4, 'the RMS norm');
        },
      };
    },
  },
  {
    name: 'resize of 1024² to 1536²',
    measurement: 'resize',
    against: '<= 2',
    file: 'k11_resize',
    kernel: 'resize_bilinear',
    prepare(memory, device, kernel) {
      const [small, large] = [1024, 1536];
      const s = memory.bytes(4 * small * small, (index) => 100 + (index % 4));
      const d = memory.bytes(4 * large * large, () => 0);
      return {
        launch: () =>
          kernel.launch(
            device.stream,
            { grid: [large / 32, large / 8], block: [32, 8] },
            s,
            d,
            small,
            small,
            large,
            large,
          ),
        async prove() {
          expect((await memory.read(d))[4 * 777 + 2] === 102, 'the resize');
        },
      };
    },
  },
  {
    name: 'Philox, 1 M normals and uniforms',
    measurement: 'philox',
    against: '<= 2',
    file: 'k12_philox',
    kernel: 'philox_normal',
    prepare(memory, device, kernel) {
      const n = M;
      const o = memory.floats(4 * n, () => 0);
      return {
        launch: () => kernel.launch(device.stream, { grid: n / 256, block: 256 }, o, 1234n, n),
        async prove() {
          const values = await memory.read(o);
          let sum = 0;
          for (let i = 0; i < 4 * n; i += 4) sum += values[i]!;
          expect(Math.abs(sum / n) < 0.01 && values[2]! > 0, 'Philox');
        },
      };
    },
  },
  {
    name: 'bitonic sort of 1024 blocks of 1024',
    measurement: 'bitonic',
    against: '<= 2',
    file: 'k13_bitonic',
    kernel: 'bitonic_sh',
    prepare(memory, device, kernel) {
      const n = M;
      const d = memory.words(n, (index) => Math.imul(index, 0x9e3779b1) >>> 0);
      return {
        launch: () => kernel.launch(device.stream, { grid: n / 1024, block: 1024 }, d),
        async prove() {
          const block = (await memory.read(d)).subarray(0, 1024);
          expect(
            block.every((value, index) => index === 0 || block[index - 1]! <= value),
            'the bitonic sort',
          );
        },
      };
    },
  },
];

async function contend(row: Row, samples: number, workers: number): Promise<Contender> {
  const device = await core.CoreDevice.open('cpu', { workers });
  const text = readFileSync(
    new URL(`../../test/ptx/samples/sm_80/${row.file}.ptx`, import.meta.url),
    'utf8',
  );
  const module = await device.loadModule(text);
  const kernel = module.kernel(row.kernel);
  const values = new Map<string, Typed>();
  let isWarm = false;
  return {
    async round() {
      if (workers > 1) await setTimeout(QUIET_MS);
      const memory = new Memory(device, values);
      const work = row.prepare(memory, device, kernel);
      await device.stream.finished();
      const times: number[] = [];
      let launches = 0;
      for (
        const warm = performance.now() + WARM_MS;
        !isWarm && performance.now() < warm;
        launches++
      )
        await work.launch();
      isWarm = true;
      // The first one in C is not counted either.
      for (let sample = 0; sample <= samples; sample++, launches++) {
        const start = performance.now();
        await work.launch();
        if (sample > 0) times.push(performance.now() - start);
      }
      await work.prove(launches);
      memory.close();
      return { samples: times };
    },
    close: () => device.close(),
  };
}

const samplesOf = ({ quick }: Row): number => (quick === true ? SAMPLES_OF_QUICK : SAMPLES);

export const cpuKernels: readonly Benchmark[] = THREADS.flatMap((threads) =>
  ROWS.map((row): Benchmark => ({
    area: 'cpu-device',
    name: threads === 1 ? row.name : `${row.name}, ${threads} workers`,
    unit: 'ms',
    statistic: 'median',
    rounds: ROUNDS,
    ...(threads === 1 ? { caller: 'runtime thread' } : {}),
    // The bars of our own time, and the other peers, are for one thread.
    ...(row.bar === undefined || threads > 1 ? {} : { bar: row.bar }),
    peers: [
      {
        name: `C, ${threads} thread${threads === 1 ? '' : 's'}`,
        ...(threads > 1 && row.ofOneThread === true ? {} : { bar: row.against }),
        program: 'kernels',
        request: ({ count }) => `${row.measurement} ${count(samplesOf(row))} ${threads}`,
      },
      ...(threads === 1 ? (row.others ?? []) : []),
    ],
    start: ({ count }) => contend(row, count(samplesOf(row)), threads),
  })),
);
