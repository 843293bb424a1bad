/** The list of benchmarks: what the compiler does not check. */
import { readFileSync, readdirSync } from 'node:fs';
import { expect, it } from 'vitest';

it('has the benchmarks of every file', () => {
  const folder = new URL('./', import.meta.url);
  const read = (file: string): string => readFileSync(new URL(file, folder), 'utf8');
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter(
    (file) =>
      /^[\w-]+\/[\w-]+\.ts$/.test(file) && /Benchmark\b.* from '\.\.\/benchmark/.test(read(file)),
  );
  const list = read('benchmarks.ts');
  expect(files.length).toBeGreaterThan(30);
  expect(files.filter((file) => !list.includes(`./${file.replace(/ts$/, 'js')}`))).toEqual([]);
});
