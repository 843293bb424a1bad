/**
 * The code in the tables of docs/coming-from.md compiles. Each inline code of a table's last column
 * is a statement, in the context of its section.
 */
import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, expect, test } from 'vitest';

import { problemsOf, repository } from '../project/entry-points.js';
import { ProgramFolder } from './programs.js';

interface Context {
  /** Module text: imports and declarations. */
  readonly before: string;
  /** The function around the statements of the section. */
  readonly around: (statements: string) => string;
}

const inFunction = (statements: string): string =>
  `export async function all(): Promise<void> {\n${statements}}\n`;

const tensors = `
import { readFile, writeFile } from 'node:fs/promises';
import { Device, Tensor, f16, f32, i32, parallel } from 'async-cuda';
import type { DeviceOp, OpGraph } from 'async-cuda';
import { CoreDevice } from 'async-cuda/core';
import type { Stream } from 'async-cuda/core';
import { resize } from 'async-cuda/images';
import { loadNpy, loadSafetensors, saveNpy } from 'async-cuda/tensor';
import {
  add, argSort, argmax, attention, convolution2d, cumsum, div, exp, gather, greater,
  groupedMatmul, histogram,
  layerNorm, linear, matmul, max, mean, mul, pow, relu, softmax, sort, sqrt, sum, topK, where,
} from 'async-cuda/library';
declare const device: Device, second: Device;
declare const x: Tensor<'f32', [2, 3]>, y: Tensor<'f32', [2, 3]>;
declare const experts: Tensor<'f32', [2, 3, 4]>, ends: Tensor<'i32', [2]>;
declare const condition: Tensor<'bool', [2, 3]>, indices: Tensor<'i32', [2]>;
declare const images: Tensor<'f32', [1, 3, 8, 8]>, weights: Tensor<'f32', [4, 3, 3, 3]>;
declare const picture: Tensor<'u8', [48, 48, 3]>;
declare const array: Float32Array<ArrayBuffer>, stream: Stream;
declare const op: DeviceOp<Tensor<'f32', [2, 3]>>, graph: OpGraph<unknown>;
`;

const contexts: Readonly<Record<string, Context>> = {
  Arrays: { before: tensors, around: inFunction },
  Functions: { before: tensors, around: inFunction },
  'Devices, streams, graphs': { before: tensors, around: inFunction },
  Kernels: {
    before: `
import {
  Device, Tensor, deviceFunction, elementKernel, f32, inout, input, kernel, output, tileKernel,
} from 'async-cuda';
declare const device: Device, x: Tensor<'f32', [1024]>, source: string, ptx: string;
const twice = kernel('twice', { y: inout(f32) }, ({ y }, gpu) => {
  const i = gpu.globalId.x;
  if (i < y.length) y[i] = 2 * y[i]!;
});
`,
    around: inFunction,
  },
  'Bodies of kernels': {
    before: `import { f32, i32, inout, input, kernel } from 'async-cuda';\n`,
    around: (statements) =>
      "kernel('all', { x: input(f32), y: inout(f32), counts: inout(i32), i: i32 }, " +
      `({ x, y, counts, i }, gpu) => {\n${statements}});\n`,
  },
  'CUDA C++ on the host': {
    before: `
import { CoreDevice, f32, inout, u32, u8 } from 'async-cuda/core';
import type { DeviceBuffer, DeviceBuffer2D, Event, Graph } from 'async-cuda/core';
import type { Kernel, Module, Stream } from 'async-cuda/core';
import { compile, link } from 'async-cuda/nvrtc';
import type { LinkInput } from 'async-cuda/nvrtc';
declare const device: CoreDevice, stream: Stream, event: Event, f: Kernel;
declare const x: DeviceBuffer<'f32'>, y: DeviceBuffer<'f32'>, flags: DeviceBuffer<'u32'>;
declare const image: DeviceBuffer2D<'f32'>, module: Module, graph: Graph, other: Graph & CoreDevice;
declare const array: Float32Array<ArrayBuffer>, bytes: Uint8Array<ArrayBuffer>;
declare const ptx: string, source: string, program: LinkInput;
`,
    around: inFunction,
  },
};

interface Row {
  readonly section: string;
  readonly code: string;
}

/** The inline codes of the last column, but names of sub-paths. */
function rows(): Row[] {
  const found: Row[] = [];
  let section = '';
  for (const line of readFileSync(`${repository}docs/coming-from.md`, 'utf8').split('\n')) {
    if (line.startsWith('## ')) section = line.slice(3);
    if (!line.startsWith('| ') || contexts[section] === undefined) continue;
    const cells = line.split(/(?<!\\) \|(?= |$)/);
    const last = cells.at(-2)!;
    for (const [, code] of last.matchAll(/`([^`]+)`/g))
      if (!code!.startsWith('async-cuda')) found.push({ section, code: code! });
  }
  return found;
}

let folder: ProgramFolder;
beforeAll(async () => {
  folder = await ProgramFolder.create();
});
afterAll(() => folder?.remove());

test('each section has rows', () => {
  const all = rows();
  for (const section of Object.keys(contexts))
    expect(all.filter((row) => row.section === section).length, section).toBeGreaterThan(8);
});

test('the rows compile', { tags: 'thorough' }, async () => {
  const all = rows();
  const texts = Object.entries(contexts).map(([section, { before, around }], index) => ({
    path: `${folder.path}/section-${index}.mts`,
    name: `section-${index}.mts`,
    text:
      before +
      around(
        all
          .filter((row) => row.section === section)
          .map(({ code }) => `{ ${code.replace(/;$/, '')}; }\n`)
          .join(''),
      ),
  }));
  for (const { name, text } of texts) await folder.write(name, text);
  expect(problemsOf(texts.map(({ path }) => path))).toEqual([]);
});
