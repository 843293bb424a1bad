/**
 * Text for native code ends at a NUL character: a path or a name with one would mean another. Every
 * function refuses it at the call.
 */
import { Device } from 'async-cuda';
import { loadEngine } from 'async-cuda/inference';
import { decodeImage, encodeFrames, frames, imageSize } from 'async-cuda/images';
import { compile, link } from 'async-cuda/nvrtc';
import { loadOnnxEngine as loadWithOnnxRuntime } from 'async-cuda/onnxruntime';
import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';

import { LibraryNotFoundError } from '../../src/native/library-not-found.js';
import { KNOWN_LIBRARIES } from '../../src/native/libraries.js';
import { openLibrary } from '../../src/native/open-library.js';
import { ELEMENTWISE } from '../core/kernels/elementwise.js';

const device = await Device.open(process.env['ASYNC_CUDA_TEST_DEVICE'] ?? 'cpu');
const folder = await mkdtemp(join(tmpdir(), 'async-cuda-paths-'));
/** The path of an existing file, followed by a NUL character and more. */
const path = join(folder, 'there\0.png');
const url = new URL(`file://${folder}/there%00.png`);
await writeFile(join(folder, 'there'), 'what is not to be read');
afterAll(async () => {
  await device.close();
  await rm(folder, { recursive: true });
});

/** The error that a function throws, or that its result rejects with. */
async function errorOf(act: () => unknown): Promise<unknown> {
  try {
    return await act();
  } catch (error) {
    return error;
  }
}

const ways: readonly (readonly [
  name: string,
  argument: string,
  act: (path: string | URL) => unknown,
])[] = [
  ['decodeImage', 'source', (place) => decodeImage(device, place)],
  ['imageSize', 'source', (place) => imageSize(place)],
  [
    'frames',
    'options.input',
    (place) => frames(device, { input: place, pixelFormat: 'rgb24' }).next(),
  ],
  [
    'encodeFrames',
    'options.output',
    (place) =>
      encodeFrames({ output: place, pixelFormat: 'rgb24', width: 2, height: 2, frameRate: 1 }),
  ],
  ['loadEngine of ONNX Runtime', 'model', (place) => loadWithOnnxRuntime(device, place)],
  ['loadEngine', 'model', (place) => loadEngine(device, place, { engine: 'onnxruntime' })],
];

describe.each(ways)('%s', (_, argument, act) => {
  test.each([
    ['a path', path],
    ['a URL', url],
  ])('refuses %s with a NUL character', async (_kind, place) => {
    const error = await errorOf(() => act(place));
    expect(error).toMatchObject({ code: 'ERR_CUDA_INVALID_ARGUMENT', argument });
    expect((error as Error).message).toContain('expected text without a zero character');
  });
});

test.each<[string, () => unknown]>([
  [
    'the program ffmpeg',
    () => frames(device, { input: 'a.mp4', pixelFormat: 'rgb24', ffmpeg: 'ffmpeg\0' }).next(),
  ],
  [
    'arguments of ffmpeg',
    () => frames(device, { input: 'a.mp4', pixelFormat: 'rgb24', args: ['-vf\0'] }).next(),
  ],
  ['a source of CUDA C++', () => compile('__global__ void f() {}\0 more')],
  ['a name of a header', () => compile('__global__ void f() {}', { headers: { 'a.h\0': '' } })],
  ['a folder of headers', () => compile('__global__ void f() {}', { includeFolders: ['/tmp\0'] })],
  ['a name of what is linked', () => link([{ ptx: '.version 7.0', name: 'a\0' }])],
  ['the path of a trace', async () => (await device.recordTrace().stop()).write(path)],
])('%s with a NUL character is refused', async (_, act) => {
  expect(await errorOf(act)).toMatchObject({ code: 'ERR_CUDA_INVALID_ARGUMENT' });
});

test('a kernel and a variable are not found by the beginning of another name', async () => {
  await using module = await device.core.loadModule(ELEMENTWISE);
  expect(() => module.kernel('add1\0more')).toThrow(
    'name: expected text without a zero character, got one at 4.',
  );
  await expect(module.global('add1\0more')).rejects.toThrow(
    'name: expected text without a zero character',
  );
});

test('a library is not loaded by the beginning of another name', () => {
  const loaded: string[] = [];
  const koffi = {
    load: (name: string) => {
      loaded.push(name);
      throw new Error('none');
    },
  };
  for (const name of ['libc.so.6\0x', `${path}`]) {
    expect(() => openLibrary(koffi as never, KNOWN_LIBRARIES.nvrtc, { path: name })).toThrow(
      LibraryNotFoundError,
    );
  }
  expect(loaded).toEqual([]);
});

test('no file was created', async () => {
  expect(await readdir(folder)).toEqual(['there']);
});
