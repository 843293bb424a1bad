/** Every relative link in the project's pages leads somewhere. */
import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

const root = fileURLToPath(new URL('../../', import.meta.url));
const notOurs = new Set(['node_modules', 'dist', '.git', '.carry', 'coverage']);

function pagesUnder(folder: string): string[] {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    if (notOurs.has(entry.name)) return [];
    const path = join(folder, entry.name);
    if (entry.isDirectory()) return pagesUnder(path);
    return entry.name.endsWith('.md') ? [path] : [];
  });
}

test.each(pagesUnder(root).map((page) => relative(root, page)))('%s', (page) => {
  const text = readFileSync(join(root, page), 'utf8').replace(/^```.*?^```/gms, '');
  const targets = [...text.matchAll(/\]\(([^)\s]+)\)/g)]
    .map(([, target]) => target!)
    .filter((target) => !/^(https?:|mailto:|#)/.test(target));
  const broken = targets.filter(
    (target) => !existsSync(join(root, dirname(page), target.replace(/#.*/, ''))),
  );
  expect(broken).toEqual([]);
});
