import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';

import { dependenciesOf } from './includes.js';
import type { Dependencies, IncludeSearch } from './includes.js';

let root: string;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'async-cuda-includes-'));
});
afterEach(() => rmSync(root, { recursive: true }));

function file(path: string, text: string): void {
  mkdirSync(dirname(join(root, path)), { recursive: true });
  writeFileSync(join(root, path), text);
}
function search(
  source: string,
  { folders = [], cudaFolders = [], headers = [], name = 'source.cu' }: Partial<IncludeSearch> = {},
): Promise<Dependencies> {
  const inRoot = (folder: string): string => join(root, folder);
  return dependenciesOf(source, {
    name: join(root, name),
    headers,
    folders: folders.map(inRoot),
    cudaFolders: cudaFolders.map(inRoot),
  });
}

describe('a key changes with', () => {
  test.each([
    ['a file in a folder', '#include <a.h>', 'user/a.h'],
    ['a file that it includes, from its own folder', '#include <a.h>', 'user/deep/b.h'],
    ['a file that is included behind a condition', '#if 0\n#  include "c.h"\n#endif', 'user/c.h'],
    ['a file whose presence is asked for', '#if __has_include("c.h")\n#endif', 'user/c.h'],
    ['a file beside the source', '#include "beside.h"', 'beside.h'],
    [
      'a file whose line is spliced, with comments',
      '# /* why */ inc\\\nlude /* not */ <c.h>',
      'user/c.h',
    ],
    ['a header of CUDA', '#include <cuda_fp16.h>', 'cuda/cuda_fp16.h'],
  ])('%s', async (_, source, changing) => {
    file('user/a.h', '#include "deep/b.h"\n');
    file('user/deep/b.h', '#define B 1\n');
    file('user/c.h', '');
    file('beside.h', '');
    file('cuda/cuda_fp16.h', '');
    const where = { folders: ['user'], cudaFolders: ['cuda'] };
    const before = await search(source, where);
    expect(before.unknown).toBeUndefined();
    expect(before.unresolved).toEqual([]);
    expect((await search(source, where)).key).toEqual(before.key);
    file(changing, '#define B 2\n');
    expect((await search(source, where)).key).not.toEqual(before.key);
  });

  test('a new file that is found before another', async () => {
    file('two/n.h', '');
    const where = { folders: ['one', 'two'] };
    const before = await search('#include <n.h>', where);
    file('one/n.h', '');
    expect((await search('#include <n.h>', where)).key).not.toEqual(before.key);
  });
});

test('headers in memory are read for what they include', async () => {
  file('user/n.h', '1');
  const headers = [['memory.h', '#include <n.h>']] as const;
  const before = await search('#include "memory.h"', { folders: ['user'], headers });
  expect(before.unresolved).toEqual([]);
  file('user/n.h', '2');
  expect((await search('#include "memory.h"', { folders: ['user'], headers })).key).not.toEqual(
    before.key,
  );
});

test('names in no folder are returned', async () => {
  expect((await search('#include <cstdio>\n#include "x.h"')).unresolved).toEqual(['cstdio', 'x.h']);
});

test('files that include each other', async () => {
  file('user/a.h', '#include "b.h"');
  file('user/b.h', '#include "a.h"');
  expect((await search('#include <a.h>', { folders: ['user'] })).unknown).toBeUndefined();
});

test.each([
  ['#define F "a.h"\n#include F', 'a macro computes'],
  ['#include_next <a.h>', 'a macro computes'],
  ['__device__ const char* t = __DATE__;', 'time of its compilation'],
])('%j cannot be kept', async (source, why) => {
  expect((await search(source)).unknown).toContain(why);
});

test("nor what includes CUDA's headers where a folder has one of the same name", async () => {
  file('cuda/cuda_fp16.h', '#include "nv/target"');
  file('cuda/nv/target', '');
  file('user/other.h', '');
  const where = { folders: ['user'], cudaFolders: ['cuda'] };
  expect((await search('#include <cuda_fp16.h>', where)).unknown).toBeUndefined();
  file('user/nv/target', '');
  expect((await search('#include <cuda_fp16.h>', where)).unknown).toContain('nv');
});
