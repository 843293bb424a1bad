import { mkdtemp, mkdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';

import { disassemble } from './disassembler.js';

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'async-cuda-tools-'));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

/** A program that prints its arguments, in a toolkit's folder. */
async function tool(name: string, script: string): Promise<string> {
  const home = await mkdtemp(join(folder, 'cuda-'));
  await mkdir(join(home, 'bin'));
  await writeFile(join(home, 'bin', name), `#!/bin/sh\n${script}\n`, { mode: 0o755 });
  return home;
}

test('nvdisasm is found in the toolkit, and takes the cubin', async () => {
  const home = await tool('nvdisasm', 'echo "$1"; cat "$2"');
  expect(await disassemble(Buffer.from('a cubin'), { CUDA_HOME: home })).toBe('-c\na cubin');
  expect(await disassemble(Buffer.from('a cubin'), { PATH: join(home, 'bin') })).toBe(
    '-c\na cubin',
  );
});

test('cuobjdump is the second choice', async () => {
  expect(
    await disassemble(Buffer.from('a cubin'), { CUDA_PATH: await tool('cuobjdump', 'echo "$1"') }),
  ).toBe('-sass\n');
});

test('an error holds the output of a tool that fails', async () => {
  const home = await tool('nvdisasm', 'echo "not for this GPU" >&2; exit 3');
  await expect(disassemble(Buffer.from(''), { CUDA_HOME: home })).rejects.toMatchObject({
    code: 'ERR_CUDA_UNSUPPORTED',
    message: expect.stringContaining('not for this GPU') as string,
  });
});

test('without a tool the error names the folders, and the source of the tools', async () => {
  await expect(
    disassemble(
      Buffer.from(''),
      { PATH: join(folder, 'empty'), CUDA_HOME: folder },
      join(folder, 'toolkit'),
    ),
  ).rejects.toMatchObject({
    code: 'ERR_CUDA_UNSUPPORTED',
    message: expect.stringMatching(
      new RegExp(
        'found neither nvdisasm nor cuobjdump in .*empty, .*bin, .*toolkit/bin\\. ' +
          'They come with the CUDA toolkit',
      ),
    ) as string,
  });
});
