/**
 * What each pass of the vector back end brings to nvcc's kernels on the CPU device:
 *
 *     npx tsx bench/cpu-device/passes.ts [part of a kernel's name]
 *
 * Each kernel is compiled with each pass switched off. Those whose code changes are launched in
 * turns with the kernel as it is, on one thread; a cell is the median time without the pass by the
 * median time with all. Times are the process's processor time, which other load on the machine
 * changes less than the time on the clock. The row `again` measures the unchanged kernel once more:
 * how far two medians of the same code lie apart. Results must be the same bit for bit.
 */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';

import { openCpu } from '../../src/driver/cpu/open.js';
import { compilePtx } from '../../src/ptx/index.js';
import { PASSES } from '../../src/ptx/lanes/pass-table.js';
import type { Passes } from '../../src/ptx/lanes/pass-table.js';
import { cpuName } from '../machine.js';

const ROUNDS = 9;
/** Warm-up time: engines recompile what runs often. It is processor time, as all times here. */
const WARM_MS = 60;
const MEMORY = 512 * 2 ** 20;
const M = 1 << 20;

type Typed = Float32Array | Int32Array | Uint32Array | Uint8Array;
/** A buffer with its first values, an integer, a float, or an integer of 64 bits. */
type Param = Typed | number | { f32: number } | { u64: number };
type Pair = readonly [number, number];

interface Row {
  readonly name: string;
  readonly file: string;
  readonly kernel: string;
  readonly grid: Pair;
  readonly block: Pair;
  readonly params: () => readonly Param[];
}

const floats = (length: number, value: (index: number) => number): Float32Array =>
  Float32Array.from({ length }, (_, index) => value(index));
const mixed = (index: number): number => Math.imul(index, 0x9e3779b1) >>> 0;

const ROWS: readonly Row[] = [
  {
    name: 'saxpy',
    file: 'k01_saxpy',
    kernel: 'saxpy',
    grid: [M / 64, 1],
    block: [256, 1],
    params: () => [4 * M, { f32: 2 }, floats(4 * M, (index) => index & 7), new Float32Array(4 * M)],
  },
  {
    name: 'sgemm',
    file: 'k04_sgemm',
    kernel: 'sgemm_tiled',
    grid: [24, 24],
    block: [16, 16],
    params: () => [
      384,
      384,
      384,
      floats(384 * 384, (index) => index % 7),
      floats(384 * 384, (index) => index % 5),
      new Float32Array(384 * 384),
    ],
  },
  {
    name: 'mandelbrot',
    file: 'k10_mandel',
    kernel: 'mandel',
    grid: [16, 64],
    block: [32, 8],
    params: () => [
      new Int32Array(512 * 512),
      512,
      512,
      { f32: -2 },
      { f32: -1.5 },
      { f32: 3 / 512 },
      256,
    ],
  },
  {
    name: 'reduction',
    file: 'k03_reduce',
    kernel: 'reduce_sum',
    grid: [64, 1],
    block: [256, 1],
    params: () => [floats(16 * M, (index) => index & 1), new Float32Array(1), 16 * M],
  },
  {
    name: 'histogram',
    file: 'k06_hist',
    kernel: 'hist256',
    grid: [64, 1],
    block: [256, 1],
    params: () => [
      Uint8Array.from({ length: 4 * M }, (_, index) => mixed(index) >>> 24),
      new Uint32Array(256),
      4 * M,
    ],
  },
  {
    name: 'scan',
    file: 'k07_scan',
    kernel: 'scan_block',
    grid: [M / 256, 1],
    block: [256, 1],
    params: () => [
      Int32Array.from({ length: M }, (_, index) => index % 10),
      new Int32Array(M),
      new Int32Array(M / 256),
      M,
    ],
  },
  {
    name: 'transpose',
    file: 'k08_transpose',
    kernel: 'transpose',
    grid: [64, 64],
    block: [32, 8],
    params: () => [floats(4 * M, (index) => index), new Float32Array(4 * M), 2048, 2048],
  },
  {
    name: 'n-body',
    file: 'k09_nbody',
    kernel: 'nbody',
    grid: [16, 1],
    block: [128, 1],
    params: () => [
      floats(4 * 2048, (index) => (index % 4 === 3 ? 1 : (index >> 2) % [17, 31, 7][index % 4]!)),
      new Float32Array(4 * 2048),
      2048,
      { f32: 0.01 },
      { f32: 0.01 },
    ],
  },
  {
    name: 'softmax',
    file: 'k05_softmax',
    kernel: 'softmax',
    grid: [1024, 1],
    block: [256, 1],
    params: () => [floats(M, (index) => (index % 13) / 4), new Float32Array(M), 1024],
  },
  {
    name: 'RMS norm',
    file: 'k05_softmax',
    kernel: 'rms_norm',
    grid: [1024, 1],
    block: [256, 1],
    params: () => [
      floats(M, () => 3),
      floats(1024, () => 2),
      new Float32Array(M),
      1024,
      { f32: 1e-6 },
    ],
  },
  {
    name: 'resize',
    file: 'k11_resize',
    kernel: 'resize_bilinear',
    grid: [24, 96],
    block: [32, 8],
    params: () => [
      Uint8Array.from({ length: M }, (_, index) => 100 + (index % 4)),
      new Uint8Array(4 * 768 * 768),
      512,
      512,
      768,
      768,
    ],
  },
  {
    name: 'Philox',
    file: 'k12_philox',
    kernel: 'philox_normal',
    grid: [M / 1024, 1],
    block: [256, 1],
    params: () => [new Float32Array(M), { u64: 1234 }, M / 4],
  },
  {
    name: 'bitonic sort',
    file: 'k13_bitonic',
    kernel: 'bitonic_sh',
    grid: [256, 1],
    block: [1024, 1],
    params: () => [Uint32Array.from({ length: M / 4 }, (_, index) => mixed(index))],
  },
];

/** ms of processor time since then */
function spent(start: NodeJS.CpuUsage): number {
  const { user, system } = process.cpuUsage(start);
  return (user + system) / 1000;
}

interface Runner {
  /** ms */
  launch(): number;
  /** The contents of the buffers after the first launch. */
  readonly digest: string;
}

/** Each kernel has a driver of its own: its vector code is compiled once. */
function runner(text: string, row: Row, values: readonly Param[], passes: Passes): Runner {
  const cu = openCpu({
    memoryBytes: MEMORY,
    multiprocessors: 1,
    lanes: 'all',
    compile: (source, options) => compilePtx(source, { ...options, passes }),
  });
  cu.cuInit(0);
  cu.cuCtxSetCurrent(cu.cuDevicePrimaryCtxRetain(cu.cuDeviceGet(0)));
  const stream = cu.cuStreamCreateWithPriority(1, 0);
  const buffers: { address: number; bytes: number }[] = [];
  const words: number[] = [];
  const push64 = (value: number): void => {
    if (words.length % 2 === 1) words.push(0);
    words.push(value | 0, Math.floor(value / 2 ** 32));
  };
  for (const value of values) {
    if (typeof value === 'number') words.push(value);
    else if ('f32' in value) words.push(new Int32Array(Float32Array.of(value.f32).buffer)[0]!);
    else if ('u64' in value) push64(value.u64);
    else {
      const bytes = value.byteLength;
      const shared = new SharedArrayBuffer(bytes);
      new Uint8Array(shared).set(new Uint8Array(value.buffer, value.byteOffset, bytes));
      const host = cu.cuMemHostRegister(shared, 0, bytes, 0);
      const address = cu.cuMemAlloc(bytes);
      cu.cuMemcpyHtoDAsync(address, host, bytes, stream);
      cu.cuStreamSynchronize(stream);
      cu.cuMemHostUnregister(host);
      buffers.push({ address, bytes });
      push64(address);
    }
  }
  const params = Int32Array.from(words);
  const kernel = cu.cuModuleGetFunction(cu.cuModuleLoadDataEx(text, {}), row.kernel);
  const [[gx, gy], [bx, by]] = [row.grid, row.block];
  const launch = (): number => {
    const start = process.cpuUsage();
    cu.cuLaunchKernel(kernel, gx, gy, 1, bx, by, 1, 0, stream, params, 0, params.byteLength);
    cu.cuStreamSynchronize(stream);
    return spent(start);
  };
  launch();
  const hash = createHash('sha1');
  for (const { address, bytes } of buffers) {
    const shared = new SharedArrayBuffer(bytes);
    const host = cu.cuMemHostRegister(shared, 0, bytes, 0);
    cu.cuMemcpyDtoHAsync(host, address, bytes, stream);
    cu.cuStreamSynchronize(stream);
    cu.cuMemHostUnregister(host);
    hash.update(new Uint8Array(shared).slice());
  }
  return { launch, digest: hash.digest('hex') };
}

const median = (values: readonly number[]): number =>
  [...values].sort((a, b) => a - b)[values.length >> 1]!;

/** Median times by variant, in turns. */
function measure(runners: ReadonlyMap<string, Runner>): Map<string, number> {
  for (const { launch } of runners.values()) for (let left = WARM_MS; left > 0;) left -= launch();
  const times = new Map([...runners.keys()].map((name) => [name, [] as number[]]));
  for (let round = 0; round < ROUNDS; round++)
    for (const [name, { launch }] of runners) {
      times.get(name)!.push(launch());
    }
  return new Map([...times].map(([name, each]) => [name, median(each)]));
}

const names = PASSES.map(({ name }) => name).filter((name) => name !== 'linked versions');
const chosen = ROWS.filter(({ name }) => name.includes(process.argv[2] ?? ''));
const table = new Map<string, Map<string, number>>();
console.log(`${cpuName()}, Node ${process.version}, one thread, medians of ${ROUNDS}`);
for (const row of chosen) {
  const text = readFileSync(
    new URL(`../../test/ptx/samples/sm_80/${row.file}.ptx`, import.meta.url),
    'utf8',
  );
  const codeWithout = (passes: Passes): string => {
    const found = compilePtx(text, { passes })
      .kernels.find(({ name }) => name === row.kernel)!
      .inLanes([...row.block, 1]);
    return typeof found === 'string'
      ? found
      : `${found.runsOn} ${found.sideBySide} ${Buffer.from(found.wasm).toString('base64')}`;
  };
  const code = codeWithout({});
  const values = row.params();
  const all = runner(text, row, values, {});
  const runners = new Map([
    ['all', all],
    ['again', runner(text, row, values, {})],
  ]);
  for (const name of names) {
    if (codeWithout({ [name]: false }) === code) continue;
    const without = runner(text, row, values, { [name]: false });
    // A sum of floats depends on the order of the blocks.
    if (without.digest !== all.digest) console.log(`${row.name}: other results without ${name}`);
    runners.set(name, without);
  }
  const times = measure(runners);
  table.set(row.name, times);
  console.error(
    `${row.name}: ${[...times].map(([name, time]) => `${name} ${time.toFixed(3)}`).join(', ')}`,
  );
}

const cell = (times: Map<string, number>, name: string): string => {
  const time = times.get(name);
  return time === undefined ? '' : (time / times.get('all')!).toFixed(2);
};
const line = (cells: readonly string[]): string => `| ${cells.join(' | ')} |`;
console.log(line(['pass', ...table.keys()]));
console.log(line(['---', ...[...table].map(() => '---:')]));
console.log(
  line(['all passes, ms', ...[...table.values()].map((times) => times.get('all')!.toFixed(2))]),
);
for (const name of ['again', ...names])
  console.log(line([name, ...[...table.values()].map((times) => cell(times, name))]));
