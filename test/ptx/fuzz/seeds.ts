/**
 * The texts that are mutated: each function of each sample kernel as a module of its own, with the
 * module's variables, so that an input is small and a million of them take minutes.
 */
import { readFileSync, readdirSync } from 'node:fs';

const SAMPLES = new URL('../samples/', import.meta.url);
const LARGEST = 12_000;

/** The pieces of a module's text: the header, and each top-level item. */
function pieces(text: string): { header: string; items: string[] } {
  const header: string[] = [];
  const items: string[] = [];
  let depth = 0;
  let item = '';
  for (const line of text.split('\n')) {
    if (depth === 0 && item === '' && /^\s*(\/\/|$)/.test(line)) continue;
    if (depth === 0 && /^\.(version|target|address_size)/.test(line)) {
      header.push(line);
      continue;
    }
    item += `${line}\n`;
    for (const char of line)
      depth += char === '{' || char === '(' ? 1 : char === '}' || char === ')' ? -1 : 0;
    if (depth === 0 && /[;}]\s*$/.test(line)) {
      items.push(item);
      item = '';
    }
  }
  return { header: header.join('\n'), items };
}

/** All of them: some hundred small modules. */
export function seedModules(): string[] {
  const seeds: string[] = [];
  for (const target of readdirSync(SAMPLES)) {
    for (const file of readdirSync(new URL(`${target}/`, SAMPLES))) {
      const { header, items } = pieces(readFileSync(new URL(`${target}/${file}`, SAMPLES), 'utf8'));
      const functions = items.filter((item) => item.includes('{\n') || item.includes('\n{'));
      const others = items.filter((item) => !functions.includes(item) && item.length < 2000);
      for (const body of functions) {
        const used = others.filter(
          (item) =>
            /([\w$]+)\s*(\[|\(|;|=)/.exec(item) &&
            [...item.matchAll(/[\w$]{3,}/g)].some(([name]) => body.includes(name)),
        );
        const callees = functions.filter(
          (other) =>
            other !== body &&
            !other.includes('.entry') &&
            body.includes(/\.func\s+(?:\([^)]*\)\s*)?([\w$]+)/.exec(other)?.[1] ?? '\0'),
        );
        const text = `${header}\n${used.join('')}${callees.join('')}${body}`;
        if (text.length <= LARGEST) seeds.push(text);
      }
    }
  }
  return seeds;
}
