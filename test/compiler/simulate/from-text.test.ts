/** Kernels from their source to JavaScript, and the same from PTX on the CPU device. */
import { SourceMap } from 'node:module';
import { expect, test } from 'vitest';
import { runKernel } from '../emit/run-kernel.js';
import type { HostArray } from '../emit/run-kernel.js';
import { readKernel } from '../../../src/compiler/index.js';
import type { SignatureEntry, Used } from '../../../src/compiler/index.js';
import type { KernelTree, StorageType } from '../../../src/compiler/tree.js';
import { writeJavaScript } from '../../../src/compiler/simulate/javascript.js';
import { SimulationError } from '../../../src/compiler/simulate/failure.js';
import { simulateKernel } from '../../../src/compiler/simulate/simulate.js';

const tensor = (
  storage: StorageType,
  access: 'input' | 'output' | 'inout' = 'inout',
  rank = 1,
): SignatureEntry => ({ kind: 'tensor', element: { storage }, access, rank });
const scalar = (storage: StorageType): SignatureEntry => ({ kind: 'scalar', storage });

function read(
  signature: Record<string, SignatureEntry>,
  text: string,
  uses: Record<string, Used> = {},
): KernelTree {
  return readKernel({ name: 'kernel', signature, text, uses, indexType: 'i32' });
}

type Given = Record<string, HostArray | number | bigint>;

/**
 * Runs both; the arrays that were given hold the simulation's results, and the device's have to be
 * the same.
 */
function both(tree: KernelTree, grid: number, block: number, args: Given): void {
  const device = runKernel(tree, {
    values: Object.fromEntries(
      Object.entries(args).map(([name, value]) => [
        name,
        typeof value === 'object' ? value.slice() : value,
      ]),
    ),
    grid: [grid],
    block: [block],
  });
  simulateKernel(tree, { grid, block, args });
  for (const [name, value] of Object.entries(args)) {
    if (typeof value === 'object') expect([name, value]).toEqual([name, device.of(name)]);
  }
}

test('the JavaScript of a body looks like its source', () => {
  const tree = read(
    { y: tensor('f32'), x: tensor('f32', 'input'), n: scalar('i32') },
    `({ y, x, n }, gpu) => {
    const i = gpu.globalId.x;
    if (i >= y.length) return;
    let sum = 0;
    for (let k = 0; k < n; k++) {
      if (x[k] < 0) continue;
      sum += x[k] * x[i];
    }
    y[i] = sum > 1 ? 1 / sum : sum;
  }`,
  );
  const { code } = writeJavaScript(tree);
  expect(code.slice(code.indexOf('return function'), code.indexOf('\n})')))
    .toBe(`return function kernel(gpu, y, x, n) {
    const i = gpu.globalId.x;
    if (i >= y.length) {
      return;
    }
    let sum = 0;
    for (let k = 0; k < n; k = k + 1 | 0) {
      if (x.load(k, 0) < 0) {
        continue;
      }
      sum = fma32(x.load(k, 1), x.load(i, 2), sum);
    }
    y.store(i, sum > 1 ? fround(1 / sum) : sum, 3);
  };`);
  both(tree, 2, 32, {
    y: new Float32Array(50),
    x: Float32Array.from({ length: 50 }, (_, i) => Math.sin(i)),
    n: 20,
  });
});

test.each(['f32', 'f64'] as const)('the least and the largest of %s', (storage) => {
  const tree = read(
    {
      least: tensor(storage),
      most: tensor(storage),
      seen: tensor(storage),
      x: tensor(storage, 'input'),
    },
    `({ least, most, seen, x }, gpu) => {
    const i = gpu.globalId.x;
    const inBlock = gpu.shared.${storage}(1);
    if (gpu.threadIdx.x === 0) inBlock[0] = -Infinity;
    gpu.block.sync();
    gpu.atomicMax(inBlock, 0, x[i]);
    gpu.block.sync();
    if (gpu.threadIdx.x === 0) gpu.atomicMax(most, 0, inBlock[0]);
    gpu.atomicMin(least, 0, x[i]);
    if (i === 0) seen[0] = gpu.atomicMin(seen, 1, -9);
    if (i === 0) gpu.atomicMin(seen, 2, 0);
  }`,
  );
  const array = storage === 'f32' ? Float32Array : Float64Array;
  const x = new array(
    Array.from({ length: 96 }, (_, i) => (i === 17 ? NaN : Math.sin(i * 3) * 100)),
  );
  const sorted = [...x].filter((each) => !Number.isNaN(each)).sort((a, b) => a - b);
  const args = {
    least: new array([Infinity]),
    most: new array([-Infinity]),
    seen: new array([0, 5, NaN]),
    x,
  };
  both(tree, 3, 32, args);
  expect([args.least[0], args.most[0], ...args.seen]).toEqual([
    sorted[0],
    sorted.at(-1),
    5,
    -9,
    NaN,
  ]);
});

test('dynamic shared memory has the length that the launch gives it', () => {
  const tree = read(
    { y: tensor('i32') },
    `({ y }, gpu) => {
    const wide = gpu.dynamicShared.f64();
    const flags = gpu.dynamicShared.bool();
    y[0] = wide.length;
    y[1] = flags.length;
  }`,
  );
  const args = { y: new Int32Array(2) };
  const device = runKernel(tree, { values: { y: args.y.slice() }, block: [1], dynamicShared: 100 });
  simulateKernel(tree, { grid: 1, block: 1, sharedBytes: 100, args });
  expect([[...args.y], device.of('y')]).toEqual([[12, 100], args.y]);
});

test('dynamic shared memory in rows', () => {
  const tree = read(
    { y: tensor('i32') },
    `({ y }, gpu) => {
    const rows = gpu.dynamicShared.i32(4, 8);
    const i = gpu.threadIdx.x;
    rows[i >> 3][i & 7] = i;
    gpu.block.sync();
    y[i] = rows[3 - (i >> 3)][7 - (i & 7)];
  }`,
  );
  const args = { y: new Int32Array(32) };
  const device = runKernel(tree, {
    values: { y: args.y.slice() },
    block: [32],
    dynamicShared: 128,
  });
  simulateKernel(tree, { grid: 1, block: 32, sharedBytes: 128, args });
  expect([[...args.y], device.of('y')]).toEqual([
    Array.from({ length: 32 }, (_, i) => 31 - i),
    args.y,
  ]);
});

test('increments, commas, chains and logical operators have values', () => {
  const tree = read(
    { out: tensor('i32') },
    `({ out }, gpu) => {
    let i = 0, j = 5;
    out[i++] = i;
    out[i++] = j-- + i * (j += 2);
    const k = (i += 10, i * 2);
    out[2] = k && i > 3 ? j = 7 : -1;
    out[3] = (i > 100 || (j = 9) > 8) && i !== j ? i : j;
    out[4] = j;
    out[5] = out[6] = 3;
    let n = 0;
    do { n += 3; if (n === 6) continue; n++; } while (n < 20);
    out[7] = n;
    outer: while (true) {
      for (;;) { if (n-- < 10) break outer; if (n % 2) continue outer; break; }
      n -= 2;
    }
    out[8] = n;
  }`,
  );
  const out = new Int32Array(9);
  both(tree, 1, 1, { out });
  const expected = new Int32Array(9);
  {
    let i = 0,
      j = 5;
    expected[i++] = i;
    expected[i++] = j-- + i * (j += 2);
    const k = ((i += 10), i * 2);
    expected[2] = k && i > 3 ? (j = 7) : -1;
    expected[3] = (i > 100 || (j = 9) > 8) && i !== j ? i : j;
    expected[4] = j;
    expected[5] = expected[6] = 3;
    let n = 0;
    do {
      n += 3;
      if (n === 6) continue;
      n++;
    } while (n < 20);
    expected[7] = n;
    outer: while (true) {
      for (;;) {
        if (n-- < 10) break outer;
        if (n % 2) continue outer;
        break;
      }
      n -= 2;
    }
    expected[8] = n;
  }
  expect(out).toEqual(expected);
});

test('device functions are inlined, with returns in the middle and loops', () => {
  const steps = {
    text:
      'n => { let count = 0; while (n !== 1) { if (count > 200) return -1; n = n % 2 === 0 ? n ' +
      '/ 2 : 3 * n + 1; count++; } return count; }',
    uses: {},
  };
  const tree = read(
    { out: tensor('i32') },
    '({ out }, gpu) => { const i = gpu.globalId.x; out[i] = 1000 * gpu.steps(i + 1) + ' +
      '(gpu.steps(2 * i + 1) > 20 ? 1 : 0); }',
    { steps },
  );
  const out = new Int32Array(64);
  both(tree, 2, 32, { out });
  expect(out[26]).toBe(1000 * 111);
});

test("reductions of the block and of warps, in the device's order", () => {
  const tree = read(
    { out: tensor('f32'), x: tensor('f32', 'input') },
    `({ out, x }, gpu) => {
    const i = gpu.globalId.x;
    const sum = gpu.block.sum(x[i]);
    const most = gpu.warp.max(x[i]);
    out[i] = gpu.lane === 0 ? sum : most;
  }`,
  );
  both(tree, 2, 96, {
    out: new Float32Array(192),
    x: Float32Array.from({ length: 192 }, (_, i) => Math.fround(Math.sin(i) / 7)),
  });
});

test('a tile of shared memory, in two axes', () => {
  const tree = read(
    { out: tensor('f32'), x: tensor('f32', 'input') },
    `({ out, x }, gpu) => {
    const tile = gpu.shared.f32(8, 9);
    const row = gpu.threadIdx.x >> 3, column = gpu.threadIdx.x & 7;
    tile[row][column] = x[row * 8 + column];
    gpu.block.sync();
    out[row * 8 + column] = tile[column][row];
  }`,
  );
  const out = new Float32Array(64);
  both(tree, 1, 64, { out, x: Float32Array.from({ length: 64 }, (_, i) => i) });
  expect(out[1]).toBe(8);
});

const DIVERGING = `({ x }, gpu) => {
  if (gpu.threadIdx.x < 4) {
    x[gpu.threadIdx.x + 5] = 1;
  }
}`;

test("errors and breakpoints are at the user's code", () => {
  const tree = read({ x: tensor('i32') }, DIVERGING);
  let error: unknown;
  try {
    simulateKernel(tree, { grid: 1, block: 8, args: { x: new Int32Array(7) } });
  } catch (caught) {
    error = caught;
  }
  expect(error).toBeInstanceOf(SimulationError);
  expect((error as SimulationError).position).toMatchObject({ line: 3, column: 5 });

  const { code } = writeJavaScript(tree);
  const data = /base64,([\w+/=]+)/.exec(code)![1]!;
  const map = new SourceMap(
    JSON.parse(Buffer.from(data, 'base64').toString()) as ConstructorParameters<
      typeof SourceMap
    >[0],
  );
  const lines = code.split('\n');
  const line = lines.findIndex((text) => text.includes('x.store'));
  const entry = map.findEntry(line, lines[line]!.indexOf('x.store')) as {
    originalLine: number;
    originalColumn: number;
  };
  expect([entry.originalLine, entry.originalColumn]).toEqual([2, 4]);
});

test('console.log and assertions', () => {
  const tree = read(
    { x: tensor('f32') },
    `({ x }, gpu) => {
    console.log('thread', gpu.threadIdx.x, x[gpu.threadIdx.x]);
    console.assert(x[gpu.threadIdx.x] < 2, 'too large');
  }`,
  );
  const texts: string[] = [];
  const run = () => {
    simulateKernel(tree, {
      grid: 1,
      block: 3,
      args: { x: Float32Array.of(0.5, 1, 2) },
      print: (text) => texts.push(text),
    });
  };
  expect(run).toThrow(/the assertion '.*too large.*' failed.*Thread \(2, 0, 0\)/s);
  expect(texts[0]).toMatch(/^thread 0 0\.5/);
});

test('quotients by powers of two, of which not all have a reciprocal', () => {
  const tree = read(
    { y: tensor('f32', 'output'), x: tensor('f32', 'input') },
    `({ y, x }) => {
    y[0] = x[0] / 4;
    y[1] = x[0] / -(2 ** -149);
    y[2] = x[1] / (2 ** -149);
    y[3] = x[1] / (2 ** -126);
    y[4] = x[1] / (2 ** 127);
  }`,
  );
  const y = new Float32Array(5);
  both(tree, 1, 1, { y, x: Float32Array.of(0, 1.5 * 2 ** -130) });
  expect([...y]).toEqual([0, -0, 1.5 * 2 ** 19, 1.5 * 2 ** -4, 0]);
});
