import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';

import { runCommandLine } from './command-line.js';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'async-cuda-types-'));
});
afterEach(() => {
  rmSync(folder, { recursive: true, force: true });
});

async function run(...args: string[]): Promise<{ status: number; out: string; err: string }> {
  let out = '';
  let err = '';
  const status = await runCommandLine(
    ['types', ...args],
    { write: (text) => (out += text) },
    { write: (text) => (err += text) },
  );
  return { status, out, err };
}

const SOURCE = `struct P { float x; int ids[2]; };
extern "C" __global__ void scale(
  float* y, const half* x, float k, long long, P p, Foo f, const char* text) {}
extern "C" __global__ void other(void* memory) {}
`;

test('declarations are written next to the file, and checked', async () => {
  const file = join(folder, 'kernels.cu');
  const place = join(folder, 'kernels.d.cu.ts');
  writeFileSync(file, SOURCE);
  expect(await run(file, '--check')).toEqual({
    status: 1,
    out: '',
    err: `async-cuda types: ${place} is out of date. Run async-cuda types ${file}.\n`,
  });
  expect(await run(file)).toEqual({ status: 0, out: `${place}\n`, err: '' });
  expect(readFileSync(place, 'utf8'))
    .toBe(`// Written by \`async-cuda types kernels.cu\`. Run it again when the source changes.
import type { AnyMemory, Readable, ScalarArgument, StructArgument, Untyped, Writable } from \
'async-cuda/nvrtc';

/** The kernels of kernels.cu, each with the arguments that a launch of it takes. */
export type Kernels = {
  readonly scale: readonly [y: Writable<'f32'>, x: Readable<'f16'>, k: number, \
argument3: ScalarArgument<'i64'>, p: StructArgument<{ x: 'f32'; ids: ['i32', 2] }>, \
f: Untyped, text: Readable<'i8' | 'u8'>];
  readonly other: readonly [memory: AnyMemory];
};
`);
  expect(await run(file, '--check')).toEqual({ status: 0, out: '', err: '' });
  writeFileSync(file, SOURCE.replace('void* memory', 'int n'));
  expect((await run(file, '--check')).status).toBe(1);
});

test('--out names the file', async () => {
  const file = join(folder, 'kernels.cu');
  const place = join(folder, 'types.ts');
  writeFileSync(file, `#include "mine.h"\n${SOURCE}`);
  expect((await run(file, '--out', place)).out).toBe(`${place}\n`);
  expect(readFileSync(place, 'utf8')).toContain(
    '} & { readonly [name: string]: UntypedParameters };',
  );
});

test('a missing file and an unknown option are errors', async () => {
  expect(await run()).toMatchObject({
    status: 2,
    err: expect.stringContaining('Usage: async-cuda types') as string,
  });
  expect(await run(join(folder, 'none.cu'))).toMatchObject({
    status: 1,
    err: expect.stringContaining('there is no file') as string,
  });
  expect(await run('--chekc')).toMatchObject({
    status: 2,
    err: expect.stringContaining("there is no option '--chekc'") as string,
  });
});
