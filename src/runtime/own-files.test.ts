/** The cache uses no file and no folder that another user may have written. */
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  copyFileSync,
  existsSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { build } from 'esbuild';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';

import { DiskCache, kernelEntry, planEntry } from './disk-cache.js';
import { lookAtFolderSync, makeOwnFolderSync, readOwnFile, readOwnFileSync } from './own-files.js';

let folder: string;
let cacheFolder: string;
const warnings: Error[] = [];
const note = (warning: Error): unknown => warnings.push(warning);
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'async-cuda-own-'));
  cacheFolder = join(folder, 'cache');
  warnings.length = 0;
  process.on('warning', note);
});
afterEach(() => {
  process.off('warning', note);
  vi.restoreAllMocks();
  rmSync(folder, { recursive: true, force: true });
});

const entry = kernelEntry('kernel', ['a']);
const code = new Uint8Array(100).fill(7);
const isPosix = process.platform !== 'win32';
/** The results of both ways of reading. */
const both = async (cache: DiskCache, name = entry): Promise<unknown[]> => [
  cache.get(name),
  await cache.read(name),
];
/** A cache with one entry, and the entry's path. */
function filled(): { cache: DiskCache; path: string } {
  const cache = new DiskCache(cacheFolder);
  cache.set(entry, code);
  expect(cache.get(entry)).toBeDefined();
  return { cache, path: join(cacheFolder, entry) };
}

describe.skipIf(!isPosix)('an entry counts as absent that is', () => {
  test('a FIFO: reading does not wait for a writer', { timeout: 10_000 }, async () => {
    const { cache, path } = filled();
    for (const read of [() => cache.get(entry), () => cache.read(entry)]) {
      rmSync(path, { force: true });
      execFileSync('mkfifo', ['-m', '600', path]);
      expect(await read()).toBeUndefined();
    }
    cache.set(entry, code);
    expect(cache.get(entry)).toBeDefined();
  });

  test('a symbolic link, to a whole entry too; what it points to stays', async () => {
    const { cache, path } = filled();
    const elsewhere = join(folder, 'elsewhere');
    renameSync(path, elsewhere);
    for (const read of [() => cache.get(entry), () => cache.read(entry)]) {
      rmSync(path, { force: true });
      symlinkSync(elsewhere, path);
      expect(await read()).toBeUndefined();
      expect(existsSync(elsewhere)).toBe(true);
    }
  });

  test('a link to a device that never ends', async () => {
    const { cache, path } = filled();
    for (const device of ['/dev/zero', '/dev/tty']) {
      rmSync(path, { force: true });
      symlinkSync(device, path);
      expect(await both(cache)).toEqual([undefined, undefined]);
    }
  });

  test('a folder', async () => {
    const { cache, path } = filled();
    rmSync(path);
    mkdirSync(path);
    expect(await both(cache)).toEqual([undefined, undefined]);
  });

  test.each([0o620, 0o602, 0o666, 0o777])('of mode %o, which lets others write', async (mode) => {
    const { cache, path } = filled();
    chmodSync(path, mode);
    expect(await both(cache)).toEqual([undefined, undefined]);
  });

  test('of another user', async () => {
    const { cache } = filled();
    const own = process.geteuid!();
    vi.spyOn(process, 'geteuid').mockReturnValue(own + 1);
    expect(await both(cache)).toEqual([undefined, undefined]);
  });
});

describe('an entry counts as absent that was written', () => {
  test('with another key', async () => {
    const { cache, path } = filled();
    const other = new DiskCache(join(folder, 'other'));
    other.set(entry, new Uint8Array(100).fill(9));
    copyFileSync(join(folder, 'other', entry), path);
    expect(await both(cache)).toEqual([undefined, undefined]);
  });

  test('as another entry', async () => {
    const { cache, path } = filled();
    const second = kernelEntry('kernel', ['b']);
    copyFileSync(path, join(cacheFolder, second));
    expect(await both(cache, second)).toEqual([undefined, undefined]);
    expect(cache.get(entry)).toBeDefined();
  });

  test('larger than the cache may be', () => {
    const { cache, path } = filled();
    expect(new DiskCache(cacheFolder, 100).get(entry)).toBeUndefined();
    expect(existsSync(path)).toBe(false);
    expect(cache.get(entry)).toBeUndefined();
  });
});

describe.skipIf(!isPosix)('the key', () => {
  const keyPath = (): string => join(cacheFolder, '.key');

  test('can be read by the user only', () => {
    filled();
    expect(statSync(keyPath()).mode & 0o777).toBe(0o600);
    expect(statSync(cacheFolder).mode & 0o777).toBe(0o700);
    expect(readFileSync(keyPath())).toHaveLength(32);
  });

  test.each<[string, (path: string) => void]>([
    ['may be read by others', (path) => chmodSync(path, 0o644)],
    [
      'is a link',
      (path) => {
        renameSync(path, `${path}.real`);
        symlinkSync(`${path}.real`, path);
      },
    ],
    [
      'is a FIFO',
      (path) => {
        unlinkSync(path);
        execFileSync('mkfifo', ['-m', '600', path]);
      },
    ],
    ['is empty', (path) => writeFileSync(path, '')],
    ['is too long', (path) => writeFileSync(path, Buffer.alloc(33))],
    ['is missing', (path) => unlinkSync(path)],
  ])(
    'that %s is made anew, and what it was made with is not there',
    { timeout: 20_000 },
    async (_, spoil) => {
      filled();
      spoil(keyPath());
      const result = await inProcess(`
      const before = cache.get(${JSON.stringify(entry)});
      cache.set(${JSON.stringify(entry)}, new Uint8Array(5));
      process.send([before === undefined, cache.get(${JSON.stringify(entry)})?.length]);`);
      expect(result).toEqual([true, 5]);
      expect(statSync(keyPath()).mode & 0o777).toBe(0o600);
      expect(readFileSync(keyPath())).toHaveLength(32);
      expect(readdirSync(cacheFolder).filter((name) => name.endsWith('.tmp'))).toEqual([]);
    },
  );

  test('that another process has made anew is taken', { timeout: 20_000 }, async () => {
    const { cache } = filled();
    unlinkSync(keyPath());
    await inProcess(`cache.set(${JSON.stringify(entry)}, new Uint8Array(5)); process.send(0);`);
    expect(cache.get(entry)).toHaveLength(5);
  });

  test('is one, whichever of several processes makes it', { timeout: 30_000 }, async () => {
    const results = await Promise.all(
      Array.from({ length: 6 }, (_, i) =>
        inProcess(`
      const name = ${JSON.stringify(planEntry('0'.repeat(63)))}.replace('.', '${i}.');
      cache.set(name, new Uint8Array(5 + ${i}));
      process.send(0);`),
      ),
    );
    expect(results).toEqual(Array(6).fill(0));
    for (let i = 0; i < 6; i++)
      expect(new DiskCache(cacheFolder).get(planEntry(`${'0'.repeat(63)}${i}`))).toHaveLength(
        5 + i,
      );
  });
});

describe.skipIf(!isPosix)('a folder', () => {
  test.each([0o770, 0o702, 0o777])(
    'of mode %o is not used, with one warning and no error',
    async (mode) => {
      mkdirSync(cacheFolder);
      chmodSync(cacheFolder, mode);
      for (let i = 0; i < 3; i++) {
        const cache = new DiskCache(cacheFolder);
        cache.set(entry, code);
        await cache.write(entry, code);
        expect(await both(cache)).toEqual([undefined, undefined]);
      }
      expect(readdirSync(cacheFolder)).toEqual([]);
      await vi.waitFor(() => expect(warnings).toHaveLength(1));
      expect(warnings[0]).toMatchObject({
        code: 'ASYNC_CUDA_CACHE_SHARED',
        message: expect.stringContaining(
          `its mode 0${mode.toString(8)} lets others write`,
        ) as string,
      });
    },
  );

  test('that others may read, and not write, is used', async () => {
    mkdirSync(cacheFolder);
    chmodSync(cacheFolder, 0o755);
    filled();
    expect(warnings).toEqual([]);
  });

  test('of another user is not used, with one warning', async () => {
    mkdirSync(cacheFolder, { mode: 0o700 });
    const own = process.geteuid!();
    vi.spyOn(process, 'geteuid').mockReturnValue(own + 1);
    const cache = new DiskCache(cacheFolder);
    cache.set(entry, code);
    expect(await both(cache)).toEqual([undefined, undefined]);
    await vi.waitFor(() =>
      expect(warnings.map(({ message }) => message)).toEqual([
        expect.stringContaining(
          `it belongs to the user ${own}, and this process runs as ${own + 1}`,
        ),
      ]),
    );
  });

  test("that is a link to one of this user's is used", () => {
    mkdirSync(join(folder, 'real'), { mode: 0o700 });
    symlinkSync(join(folder, 'real'), cacheFolder);
    filled();
  });

  test('that goes away is made again', async () => {
    const { cache } = filled();
    rmSync(cacheFolder, { recursive: true });
    expect(await both(cache)).toEqual([undefined, undefined]);
    cache.set(entry, code);
    expect(cache.get(entry)).toBeDefined();
    rmSync(cacheFolder, { recursive: true });
    await cache.write(entry, code);
    expect(await cache.read(entry)).toBeDefined();
  });

  test('where users have no numbers, as on Windows, is used', () => {
    vi.spyOn(process, 'geteuid').mockImplementation(undefined as never);
    Object.defineProperty(process, 'geteuid', {
      value: undefined,
      configurable: true,
      writable: true,
    });
    try {
      mkdirSync(cacheFolder);
      chmodSync(cacheFolder, 0o777);
      filled();
    } finally {
      delete (process as { geteuid?: unknown }).geteuid;
    }
  });

  test('that is made is for the user only, whatever the mask of the process', () => {
    const before = process.umask(0);
    try {
      expect(makeOwnFolderSync(join(folder, 'a', 'b'))).toBe(true);
      for (const each of ['a', 'a/b'])
        expect(statSync(join(folder, each)).mode & 0o777).toBe(0o700);
    } finally {
      process.umask(before);
    }
  });

  test("that is not there is absent, and one that cannot be made is not the user's", () => {
    writeFileSync(join(folder, 'file'), '');
    expect(lookAtFolderSync(join(folder, 'nowhere'))).toBe('absent');
    expect(makeOwnFolderSync(join(folder, 'file', 'below'))).toBe(false);
  });
});

test('a file is read up to the size that is allowed, and absent differs from refused', async () => {
  const path = join(folder, 'file');
  writeFileSync(path, 'abc', { mode: 0o600 });
  linkSync(path, join(folder, 'other name'));
  expect([
    String(readOwnFileSync(path, 3)),
    String(await readOwnFile(path, 3)),
    readOwnFileSync(path, 2),
    await readOwnFile(path, 2),
  ]).toEqual(['abc', 'abc', 'refused', 'refused']);
  expect([
    readOwnFileSync(join(folder, 'none'), 3),
    await readOwnFile(join(folder, 'none'), 3),
  ]).toEqual(['absent', 'absent']);
});

/** The message of a program in another process, in which `cache` is the folder's cache. */
async function inProcess(body: string): Promise<unknown> {
  const program = join(folder, `program-${Math.random().toString(36).slice(2)}.mjs`);
  await build({
    stdin: {
      contents:
        `import { DiskCache } from './disk-cache.ts'; const cache = new ` +
        `DiskCache(${JSON.stringify(cacheFolder)}); ${body}`,
      resolveDir: import.meta.dirname,
    },
    bundle: true,
    platform: 'node',
    format: 'esm',
    outfile: program,
    logLevel: 'error',
  });
  const child = spawn(process.execPath, [program], {
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  });
  const [[message]] = (await Promise.all([once(child, 'message'), once(child, 'exit')])) as [
    [unknown],
    unknown,
  ];
  return message;
}
