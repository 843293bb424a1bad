import { mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';

import { DiskCache, codeEntry } from '../runtime/disk-cache.js';
import { runCommandLine } from './command-line.js';

async function run(...args: string[]): Promise<{ status: number; out: string; err: string }> {
  let out = '';
  let err = '';
  const status = await runCommandLine(
    args,
    { write: (text) => (out += text) },
    { write: (text) => (err += text) },
  );
  return { status, out, err };
}

test.each(['help', '--help', '-h'])('%s lists the commands', async (argument) => {
  const { status, out } = await run(argument);
  expect(out).toMatch(/^Usage: async-cuda <command>/);
  expect(out).toContain('info [--json]');
  expect(status).toBe(0);
});

test.each(['--version', '-v', 'version'])('%s prints the version', async (argument) => {
  const { version } = JSON.parse(
    readFileSync(new URL('../../package.json', import.meta.url), 'utf8'),
  ) as { version: string };
  expect(await run(argument)).toEqual({ status: 0, out: `${version}\n`, err: '' });
});

const names = [...(await run('help')).out.matchAll(/^ {2}(\w+)/gm)].map(([, name]) => name!);

test.each(names)('%s has a help of its own, and no unknown options', async (name) => {
  const { status, out, err } = await run('help', name);
  expect(out).toMatch(new RegExp(`^Usage: async-cuda ${name}`));
  expect({ status, err }).toEqual({ status: 0, err: '' });
  const unknown = await run(name, '--unknown');
  expect(unknown.err).toContain(`async-cuda ${name}: there is no option '--unknown'`);
  expect(unknown.status).toBe(2);
  if (name === 'help') return;
  expect(await run(name, '--help')).toEqual({ status: 0, out, err: '' });
  expect(await run(name, '-h')).toEqual({ status: 0, out, err: '' });
});

test('a test of this folder names each command', () => {
  const folder = new URL('./', import.meta.url);
  const texts = readdirSync(folder)
    .filter((file) => file.endsWith('.test.ts'))
    .map((file) => readFileSync(new URL(file, folder), 'utf8'))
    .join('\n');
  expect(names.filter((name) => !texts.includes(`'${name}'`))).toEqual([]);
});

test('the help of a command lists its options', async () => {
  expect((await run('types', '--help')).out).toContain('--check  writes nothing');
});

test('the help of an unknown command is an error', async () => {
  const { status, err } = await run('help', 'inof');
  expect(err).toContain("there is no command 'inof'. Did you mean 'async-cuda info'?");
  expect(status).toBe(2);
});

test('no command prints the usage as an error', async () => {
  const { status, out, err } = await run();
  expect(err).toMatch(/^Usage:/);
  expect(out).toBe('');
  expect(status).toBe(2);
});

test('an unknown command is named, with the most similar one', async () => {
  const { status, err } = await run('inof');
  expect(err).toBe(
    "async-cuda: there is no command 'inof'. Did you mean 'async-cuda info'? See 'async-cuda " +
      "help'.\n",
  );
  expect(status).toBe(2);
});

test('an unknown command that is similar to none gets no suggestion', async () => {
  const { err } = await run('frobnicate');
  expect(err).toBe("async-cuda: there is no command 'frobnicate'. See 'async-cuda help'.\n");
});

test('an unknown option is named, with the known ones', async () => {
  const { status, err } = await run('info', '--yaml');
  expect(err).toBe("async-cuda info: there is no option '--yaml'. It takes: --json.\n");
  expect(status).toBe(2);
});

test('cache prints the contents of the cache, and clear removes them', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'async-cuda-cli-'));
  process.env['ASYNC_CUDA_CACHE_DIR'] = folder;
  try {
    new DiskCache(folder).set(codeEntry('', []), new Uint8Array(2 ** 20));
    expect((await run('cache')).out).toBe(`${folder}: 1 entry, 1.0 MiB\n`);
    expect((await run('cache', 'clear')).out).toBe(`${folder}: 1 entry, 1.0 MiB removed\n`);
    expect((await run('cache')).out).toBe(`${folder}: 0 entries, 0.0 MiB\n`);
    expect((await run('cache', 'clean')).err).toContain('It takes: clear.');
    process.env['ASYNC_CUDA_CACHE_DISABLE'] = '1';
    expect((await run('cache', 'clear')).out).toMatch(/^off: /);
  } finally {
    delete process.env['ASYNC_CUDA_CACHE_DIR'];
    delete process.env['ASYNC_CUDA_CACHE_DISABLE'];
    rmSync(folder, { recursive: true });
  }
});
