/**
 * The CPU device compared with Numba's CUDA simulator, which runs the same kernels in Python, on
 * sizes that take it seconds. The simulator has no warp operations: its reduction is a tree in
 * shared memory.
 */
import { readFileSync } from 'node:fs';
import { performance } from 'node:perf_hooks';

import type { Benchmark } from '../benchmark.js';
import { core } from '../library.js';
import type { CoreDevice, Kernel } from '../library.js';

const { f32, u8, u32 } = core;
const SAMPLES = 20;
const THEIR_SAMPLES = 2;

interface Row {
  name: string;
  /** The name of the measurement in Python, whose argument is the size. */
  measurement: string;
  size: number;
  file: string;
  kernel: string;
  prepare(
    device: CoreDevice,
    kernel: Kernel,
    size: number,
  ): { launch(): PromiseLike<unknown>; right(): Promise<boolean> };
}

const floats = (device: CoreDevice, length: number, value: (index: number) => number) => {
  const buffer = device.alloc(f32, length);
  buffer.write(
    device.stream,
    Float32Array.from({ length }, (_, index) => value(index)),
  );
  return buffer;
};

const ROWS: readonly Row[] = [
  {
    name: 'saxpy of 16 K floats',
    measurement: 'saxpy',
    size: 16_384,
    file: 'k01_saxpy',
    kernel: 'saxpy',
    prepare(device, kernel, n) {
      const [x, y] = [floats(device, n, (index) => index % 1024), floats(device, n, () => 0)];
      let launches = 0;
      return {
        launch: () => {
          launches++;
          return kernel.launch(device.stream, { grid: n / 256, block: 256 }, n, 2, x, y);
        },
        async right() {
          return (await y.read(device.stream)).every(
            (value, index) => value === 2 * launches * (index % 1024),
          );
        },
      };
    },
  },
  {
    name: 'reduction of 64 K floats',
    measurement: 'reduce',
    size: 65_536,
    file: 'k03_reduce',
    kernel: 'reduce_sum',
    prepare(device, kernel, n) {
      const [x, total] = [floats(device, n, (index) => index % 2), floats(device, 1, () => 0)];
      return {
        launch: () => {
          total.fill(device.stream, 0);
          return kernel.launch(device.stream, { grid: 16, block: 256 }, x, total, n);
        },
        async right() {
          return (await total.read(device.stream))[0] === n / 2;
        },
      };
    },
  },
  {
    name: 'histogram of 64 K bytes',
    measurement: 'histogram',
    size: 65_536,
    file: 'k06_hist',
    kernel: 'hist256',
    prepare(device, kernel, n) {
      const [d, h] = [device.alloc(u8, n), device.alloc(u32, 256)];
      d.write(
        device.stream,
        Uint8Array.from({ length: n }, (_, index) => index * 7),
      );
      return {
        launch: () => {
          h.fill(device.stream, 0);
          return kernel.launch(device.stream, { grid: 16, block: 256 }, d, h, n);
        },
        async right() {
          return (await h.read(device.stream)).every((count) => count === n / 256);
        },
      };
    },
  },
  {
    name: 'tiled product of 64²',
    measurement: 'matmul',
    size: 64,
    file: 'k04_sgemm',
    kernel: 'sgemm_tiled',
    prepare(device, kernel, n) {
      const [a, b, c] = [
        floats(device, n * n, (index) => index % 7),
        floats(device, n * n, (index) => index % 5),
        floats(device, n * n, () => 0),
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
        async right() {
          return (await c.read(device.stream)).every((value, index) => {
            const [row, column] = [Math.floor(index / n), index % n];
            let wanted = 0;
            for (let k = 0; k < n; k++) wanted += ((row * n + k) % 7) * ((k * n + column) % 5);
            return value === wanted;
          });
        },
      };
    },
  },
];

/** A thousand times as fast. */
export const besideSimulator: readonly Benchmark[] = ROWS.map((row): Benchmark => ({
  area: 'cpu-device',
  name: `${row.name}, simulated`,
  unit: 'ms',
  statistic: 'median',
  rounds: 3,
  peers: [
    {
      name: "Numba's simulator",
      bar: '<= 0.001',
      program: "Numba's simulator",
      request: () => `${row.measurement} ${THEIR_SAMPLES} ${row.size}`,
    },
  ],
  async start({ count }) {
    const device = await core.CoreDevice.open('cpu');
    const text = readFileSync(
      new URL(`../../test/ptx/samples/sm_80/${row.file}.ptx`, import.meta.url),
      'utf8',
    );
    const { launch, right } = row.prepare(
      device,
      (await device.loadModule(text)).kernel(row.kernel),
      row.size,
    );
    return {
      async round() {
        await launch();
        if (!(await right())) throw new Error(`${row.name} gave a wrong result`);
        const times: number[] = [];
        for (let k = 0; k < count(SAMPLES); k++) {
          const start = performance.now();
          await launch();
          times.push(performance.now() - start);
        }
        return { samples: times };
      },
      close: () => device.close(),
    };
  },
}));
