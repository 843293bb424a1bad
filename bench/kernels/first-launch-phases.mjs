/**
 * Where the time of a first launch goes: fresh processes in turns, each in one way; medians of its
 * parts in ms. `node bench/kernels/first-launch-phases.mjs [DEVICE] [PROCESSES]`; it runs itself.
 * Builds nothing: dist has to be there.
 *
 * Ways: `kernel`, a kernel in TypeScript that is on disk; `cubin` and `ptx`, the same code by level
 * 3 on the device's own stream; `cubin, new stream`, on a stream that is made for it; and with the
 * loading thread started before: `kernel, started`, ….
 */
import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const ROWS = 32;
const COLUMNS = 1000;
const BLOCK = 128;
const WAYS = [
  'kernel',
  'cubin',
  'ptx',
  'cubin, new stream',
  'kernel, started',
  'cubin, started',
  'ptx, started',
];
const median = (values) => values.sort((a, b) => a - b)[values.length >> 1];

async function child([deviceName, way, path]) {
  const { Tensor, input, kernel, output } = await import('async-cuda');
  const { CoreDevice, f32, i32, inout } = await import('async-cuda/core');
  const softmax = kernel(
    'softmax',
    { y: output(f32), x: input(f32), columns: i32 },
    ({ y, x, columns }, gpu) => {
      const row = gpu.blockIdx.x * columns;
      let most = -Infinity;
      for (let i = gpu.threadIdx.x; i < columns; i += gpu.blockDim.x)
        most = Math.max(most, x[row + i]);
      most = gpu.block.max(most);
      let sum = 0;
      for (let i = gpu.threadIdx.x; i < columns; i += gpu.blockDim.x)
        sum += Math.exp(x[row + i] - most);
      const scale = 1 / gpu.block.sum(sum);
      for (let i = gpu.threadIdx.x; i < columns; i += gpu.blockDim.x)
        y[row + i] = Math.exp(x[row + i] - most) * scale;
    },
    { block: BLOCK },
  );
  const device = await CoreDevice.open(deviceName);
  const { stream } = device;
  const x = device.alloc(f32, ROWS * COLUMNS);
  const y = device.alloc(f32, ROWS * COLUMNS);
  await x.fill(stream, 3);
  await y.fill(stream, 0);
  const tensors = { y: Tensor.of(y, [ROWS * COLUMNS]), x: Tensor.of(x, [ROWS * COLUMNS]) };
  if (way.endsWith('started')) await device.runtime.call('memoryInfo');
  const marks = {};
  let last = 0;
  const mark = (name) => {
    const now = performance.now();
    marks[name] = now - last;
    last = now;
  };
  const noted = (name) => {
    const before = device[name].bind(device);
    device[name] = async (...args) => {
      mark('until load');
      const module = await before(...args);
      mark('load');
      return module;
    };
  };
  noted('loadKnown');
  noted('loadModule');
  const image =
    way.startsWith('kernel') || way === 'write'
      ? undefined
      : way.startsWith('cubin') && device.kind === 'cuda'
        ? readFileSync(path)
        : readFileSync(`${path}.ptx`, 'utf8');
  const start = performance.now();
  last = start;
  if (image === undefined) await softmax({ ...tensors, columns: COLUMNS }, { grid: ROWS });
  else {
    const module = await device.loadModule(image);
    const on = way.includes('new stream') ? device.createStream() : stream;
    await module
      .kernel('softmax', [inout(f32), input(f32), i32])
      .launch(on, { grid: ROWS, block: BLOCK }, y, x, COLUMNS);
  }
  mark('launch');
  marks.all = performance.now() - start;
  if (way === 'write') {
    const ptx = await softmax.ptx(device);
    writeFileSync(`${path}.ptx`, ptx);
    if (device.kind === 'cuda') writeFileSync(path, (await device.machineCode(ptx)).cubin);
  }
  console.log(JSON.stringify(marks));
  await device.close();
}

async function parent(device = 'cuda:0', processes = '11') {
  const folder = mkdtempSync(join(tmpdir(), 'async-cuda-first-launch-'));
  const env = { ...process.env, NODE_OPTIONS: '', ASYNC_CUDA_CACHE_DIR: join(folder, 'cache') };
  const once = async (way) =>
    JSON.parse(
      (
        await promisify(execFile)(
          process.execPath,
          [fileURLToPath(import.meta.url), 'child', device, way, join(folder, 'image')],
          { env },
        )
      ).stdout,
    );
  await once('write');
  const found = Object.fromEntries(WAYS.map((way) => [way, []]));
  for (const way of WAYS) await once(way);
  for (let k = 0; k < Number(processes); k++)
    for (const way of WAYS) found[way].push(await once(way));
  console.log(`${device}, Node ${process.version}, ${processes} processes each`);
  console.table(
    Object.fromEntries(
      WAYS.map((way) => [
        way,
        Object.fromEntries(
          ['until load', 'load', 'launch', 'all'].map((part) => [
            part,
            Number(median(found[way].map((marks) => marks[part])).toFixed(2)),
          ]),
        ),
      ]),
    ),
  );
  rmSync(folder, { recursive: true, force: true });
}

const [first, ...rest] = process.argv.slice(2);
await (first === 'child' ? child(rest) : parent(first, ...rest));
