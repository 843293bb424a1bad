/** Every relative link in the project's pages leads to a file, and to a heading that is there. */
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

const withoutBlocks = (path: string): string =>
  readFileSync(path, 'utf8').replace(/^```.*?^```/gms, '');

/** The anchors of a page's headings, as GitHub makes them. */
function anchorsOf(path: string): readonly string[] {
  return [...withoutBlocks(path).matchAll(/^#+ (.*)$/gm)].map(([, heading]) =>
    heading!
      .toLowerCase()
      .replace(/[^\p{L}\p{N} _-]/gu, '')
      .replaceAll(' ', '-'),
  );
}

test.each(pagesUnder(root).map((page) => relative(root, page)))('%s', (page) => {
  const path = join(root, page);
  const targets = [...withoutBlocks(path).matchAll(/\]\(([^)\s]+)\)/g)]
    .map(([, target]) => target!)
    .filter((target) => !/^(https?:|mailto:)/.test(target));
  const broken = targets.filter((target) => {
    const [file = '', anchor] = target.split('#');
    const place = file === '' ? path : join(dirname(path), file);
    if (!existsSync(place)) return true;
    return anchor !== undefined && place.endsWith('.md') && !anchorsOf(place).includes(anchor);
  });
  expect(broken).toEqual([]);
});
