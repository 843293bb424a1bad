import { fork } from 'node:child_process';
import { once } from 'node:events';
import {
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { build } from 'esbuild';
import { afterEach, beforeEach, expect, test } from 'vitest';

import { DiskCache, codeEntry, kernelEntry } from './disk-cache.js';

let folder: string;
beforeEach(
  () => (folder = join(mkdtempSync(join(tmpdir(), 'async-cuda-cache-')), 'made', 'when', 'needed')),
);
afterEach(() => rmSync(join(folder, '../../..'), { recursive: true, force: true }));

const key = (source = '', kind: 'kernel' | 'tuning' = 'kernel'): string =>
  kernelEntry(kind, [source, [9, 0]]);
const code = (bytes: number, fill = 7): Uint8Array => new Uint8Array(bytes).fill(fill);
/** The names without the key that all checksums are made with. */
const keptNames = (): string[] => readdirSync(folder).filter((name) => name !== '.key');
const onlyFile = (): string => join(folder, keptNames()[0]!);

test('returns what was stored, also to another process', () => {
  new DiskCache(folder).set(key(), code(1000));
  expect(new Uint8Array(new DiskCache(folder).get(key())!)).toEqual(code(1000));
});

test('keeps what was made of another source, or is of another kind, apart', () => {
  const cache = new DiskCache(folder);
  cache.set(key(), code(10));
  expect([key('other'), key('', 'tuning')].map((each) => cache.get(each))).toEqual([
    undefined,
    undefined,
  ]);
});

test('examines all files now and then, not with each new one', async () => {
  const cache = new DiskCache(folder, 100_000);
  for (const way of ['set', 'write'] as const) {
    await cache[way](key(`first ${way}`), code(1000));
    // Another process fills the folder.
    writeFileSync(join(folder, key(`large ${way}`)), code(200_000));
    await cache[way](key(`second ${way}`), code(500));
    expect(cache.contents().bytes).toBeGreaterThan(200_000);
    for (let i = 0; i < 5; i++) await cache[way](key(`more ${way} ${i}`), code(2000));
    expect(cache.contents().bytes).toBeLessThanOrEqual(100_000);
    expect(cache.get(key(`more ${way} 4`))).toBeDefined();
  }
});

test("keeps V8's code of scripts, apart for each script and engine", () => {
  const cache = new DiskCache(folder);
  cache.set(codeEntry('script', ['v24']), code(10));
  cache.set(codeEntry('script', ['v26']), code(10));
  cache.set(codeEntry('other', ['v26']), code(10));
  cache.set(key(), code(10));
  expect(cache.contents().entries).toBe(4);
  expect(cache.get(codeEntry('script', ['v26']))).toBeDefined();
  expect(cache.clear().entries).toBe(4);
});

test('behaves the same without blocking on the disk', async () => {
  const cache = new DiskCache(folder, 10_000);
  const entry = (name: string): string => kernelEntry('kernel', [name]);
  expect(await cache.read(entry('a'))).toBeUndefined();
  await cache.write(entry('a'), code(3000));
  expect(new Uint8Array((await new DiskCache(folder).read(entry('a')))!)).toEqual(code(3000));
  expect(cache.get(entry('a'))).toBeDefined();
  utimesSync(join(folder, entry('a')), 0, 0);
  for (const name of ['b', 'c', 'd']) await cache.write(entry(name), code(3000));
  expect(readdirSync(folder)).not.toContain(entry('a'));
  expect(cache.contents().bytes).toBeLessThanOrEqual(10_000);
  truncateSync(join(folder, entry('d')), 500);
  expect(await cache.read(entry('d'))).toBeUndefined();
});

test('an entry that cannot be written counts as absent', async () => {
  writeFileSync(join(folder, '../../..', 'file'), '');
  const cache = new DiskCache(join(folder, '../../..', 'file', 'below'));
  await cache.write(kernelEntry('tuning', []), code(10));
  expect(await cache.read(kernelEntry('tuning', []))).toBeUndefined();
});

test.each<[string, (path: string) => void]>([
  ['cut off', (path) => truncateSync(path, 500)],
  ['empty', (path) => truncateSync(path, 0)],
  ['only a head', (path) => truncateSync(path, 56)],
  ['longer', (path) => writeFileSync(path, 'x', { flag: 'a' })],
  ['another format', (path) => writeFileSync(path, readFileSync(path).fill(0, 0, 1))],
  [
    'spoiled',
    (path) => {
      const bytes = readFileSync(path);
      bytes[800]! ^= 1;
      writeFileSync(path, bytes);
    },
  ],
])('a file that is %s counts as absent, and is removed', (_, spoil) => {
  const cache = new DiskCache(folder);
  cache.set(key(), code(1000));
  spoil(onlyFile());
  expect(cache.get(key())).toBeUndefined();
  expect(keptNames()).toEqual([]);
  cache.set(key(), code(1000));
  expect(cache.get(key())).toBeDefined();
});

test('the least recently used entries are removed where there is too much', () => {
  const cache = new DiskCache(folder, 10_000);
  const names = new Map<string, string>();
  for (const source of ['a', 'b', 'c']) {
    const before = new Set(names.values());
    cache.set(key(source), code(3000));
    const file = join(
      folder,
      keptNames().find((name) => !before.has(join(folder, name)))!,
    );
    names.set(source, file);
    const hour = ['a', 'b', 'c'].indexOf(source);
    utimesSync(file, hour * 3600, hour * 3600);
  }
  cache.get(key('a'));
  cache.set(key('d'), code(3000));
  expect(['a', 'b', 'c', 'd'].map((source) => cache.get(key(source)) !== undefined)).toEqual([
    true,
    false,
    false,
    true,
  ]);
  expect(cache.contents().bytes).toBeLessThanOrEqual(10_000);
});

test('code larger than the cache is not kept, and removes nothing', () => {
  const cache = new DiskCache(folder, 10_000);
  cache.set(key('small'), code(100));
  cache.set(key(), code(20_000));
  expect(cache.contents().entries).toBe(1);
});

test('clear removes the cache’s own files and no other', () => {
  const cache = new DiskCache(folder);
  cache.set(key(), code(1000));
  cache.set(key('b'), code(1000));
  writeFileSync(join(folder, 'notes.txt'), 'mine');
  writeFileSync(join(folder, `${'0'.repeat(64)}.kernel.abc.tmp`), 'unfinished');
  expect(cache.clear()).toMatchObject({ entries: 2 });
  expect(keptNames()).toEqual(['notes.txt']);
});

test('unfinished files are removed after an hour, fresh ones stay', () => {
  const cache = new DiskCache(folder);
  cache.set(key(), code(10));
  const [old, fresh] = ['1', '2'].map((digit) =>
    join(folder, `${digit.repeat(64)}.kernel.abc.tmp`),
  );
  for (const path of [old!, fresh!]) writeFileSync(path, '');
  utimesSync(old!, 1, 1);
  // It acts as another process, which has not examined the files yet.
  new DiskCache(folder, 2 ** 29).set(key('b'), code(10));
  expect(readdirSync(folder).filter((name) => name.endsWith('.tmp'))).toEqual([
    '2'.repeat(64) + '.kernel.abc.tmp',
  ]);
});

test('a folder that cannot be made or written is taken as an empty one', () => {
  const file = join(folder, '../../..', 'file');
  writeFileSync(file, '');
  const cache = new DiskCache(join(file, 'folder'));
  cache.set(key(), code(10));
  expect(cache.get(key())).toBeUndefined();
  cache.delete(key());
  expect(cache.contents()).toMatchObject({ entries: 0, bytes: 0 });
  expect(cache.clear()).toMatchObject({ entries: 0, bytes: 0 });
});

test('many processes may write and read the same entries', async () => {
  const program = join(folder, '../../..', 'program.mjs');
  await build({
    stdin: {
      contents: `import { DiskCache, kernelEntry } from './disk-cache.ts';
        const cache = new DiskCache(${JSON.stringify(folder)}, 60_000);
        let spoiled = 0;
        for (let i = 0; i < 200; i++) {
          const n = i % 5;
          const key = kernelEntry('kernel', [n]);
          const found = cache.get(key);
          const whole = found?.length === 10_000 + n && found.every((byte) => byte === n);
          if (found !== undefined && !whole) spoiled++;
          cache.set(key, new Uint8Array(10_000 + n).fill(n));
          if (i % 50 === 49) cache.clear();
        }
        process.send(spoiled);`,
      resolveDir: import.meta.dirname,
    },
    bundle: true,
    platform: 'node',
    format: 'esm',
    outfile: program,
    logLevel: 'error',
  });
  const results = await Promise.all(
    Array.from({ length: 4 }, async () => {
      const child = fork(program);
      const [[spoiled], [status]] = (await Promise.all([
        once(child, 'message'),
        once(child, 'exit'),
      ])) as [[number], [number]];
      return { spoiled, status };
    }),
  );
  expect(results).toEqual(Array(4).fill({ spoiled: 0, status: 0 }));
});

// Node's mkdir with { recursive: true } never returns there, and keeps the process from ending.
test.runIf(process.platform === 'linux')(
  'stores nothing in a folder that accepts no files, such as /proc',
  async () => {
    const cache = new DiskCache('/proc/async-cuda/cache');
    cache.set(key(), code(10));
    await cache.write(key(), code(10));
    expect(cache.get(key())).toBeUndefined();
  },
);
