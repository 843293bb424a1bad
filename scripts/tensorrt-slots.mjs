/**
 * Writes `src/tensorrt/thread/slots.ts`: the places of the methods that are called in the virtual
 * tables of TensorRT's classes.
 *
 * node scripts/tensorrt-slots.mjs <key>=<folder of headers> ... e.g. 10=…/TRT-Enterprise-10.16
 * rtx-1.7=…/TRT-RTX-1.7
 *
 * Facts only are taken from the headers: the names of virtual functions and their order. Classes
 * that are not named keep their rows of the file. Instead of a folder a JSON file may give the
 * names by class: `tensorrt-8.6.json` does, whose order is that of the headers of 8.4, which a
 * major version only adds to, and after it what those of 9 have in common with 8.6's documentation.
 * A table begins with the two slots of the virtual destructor (Itanium C++ ABI 2.5.2), where that
 * is declared; of overloaded functions, the first counts.
 */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const output = fileURLToPath(new URL('../src/tensorrt/thread/slots.ts', import.meta.url));
const HEAD = `/**
 * Where methods stand in the virtual tables of TensorRT's classes, by version, and how many slots
 * each table has there. Written by scripts/tensorrt-slots.mjs from the order of functions in
 * NVIDIA's headers.
 */

/** The slots of a class: of its methods by name, and their number as \`slots\`. */
export type ClassSlots = Readonly<Record<string, number>>;

/** Reads \`Class: method slot, …;\`. */
function slots(text: string): Readonly<Record<string, ClassSlots>> {
  return Object.fromEntries(
    [...text.matchAll(/(\\w+):([^;]*);/g)].map(([, name, pairs]) => [
      name!,
      Object.fromEntries(
        [...pairs!.matchAll(/(\\w+) (\\d+)/g)].map(([, method, slot]) => [method!, Number(slot)]),
      ),
    ]),
  );
}

export const SLOTS = {
`;

const methodsFile = readFileSync(
  new URL('../src/tensorrt/thread/methods.ts', import.meta.url),
  'utf8',
);

/** The names in METHODS, by class. */
const wanted = {};
for (const [, name, body] of methodsFile
  .slice(methodsFile.indexOf('METHODS = {'))
  .matchAll(/^ {2}([A-Z]\w+): \{(.*?)\},?$/gms)) {
  wanted[name] = [...body.matchAll(/(\w+): \[/g)].map(([, method]) => method);
}

/** Names of the class's virtual functions by slot, `~` for the destructor's two. */
function tableOf(text, name) {
  const body = new RegExp(`^class ${name}\\b[^;{]*\\{(.*?)^\\};`, 'ms').exec(text)?.[1];
  if (body === undefined) return undefined;
  const table = /:\s*public VRoot/.test(new RegExp(`^class ${name}\\b[^{]*`, 'm').exec(text)[0])
    ? ['~', '~']
    : [];
  for (const [declaration] of body
    .replace(/\/\/.*$/gm, '')
    .replace(/\/\*.*?\*\//gs, '')
    .matchAll(/virtual\s[^;{]*/g)) {
    if (declaration.includes('~')) table.push('~', '~');
    else
      table.push(/(\w+)\s*\(/.exec(declaration.replace(/TRT_DEPRECATED_BECAUSE\([^)]*\)/g, ''))[1]);
  }
  return table;
}

/** The rows of the file: for each version the slots of each class. */
function readRows() {
  const rows = {};
  if (!existsSync(output)) return rows;
  for (const [, key, text] of readFileSync(output, 'utf8').matchAll(
    /'([^']+)': slots\(`([^`]*)`\)/g,
  ))
    rows[key] = Object.fromEntries(
      [...text.matchAll(/(\w+):([^;]*);/g)].map(([, name, pairs]) => [
        name,
        Object.fromEntries([...pairs.matchAll(/(\w+) (\d+)/g)].map(([, m, n]) => [m, Number(n)])),
      ]),
    );
  return rows;
}

/** `Class: method slot, …;` in lines of at most 100 columns. */
function rowText(name, slots) {
  const pairs = Object.entries(slots).map(([method, slot]) => `${method} ${slot}`);
  const lines = [`    ${name}:`];
  pairs.forEach((pair, index) => {
    const item = ` ${pair}${index + 1 < pairs.length ? ',' : ';'}`;
    if (lines.at(-1).length + item.length > 100) lines.push(`     ${item}`);
    else lines[lines.length - 1] += item;
  });
  return `${lines.join('\n')}\n`;
}

const rows = readRows();
for (const argument of process.argv.slice(2)) {
  const [key, folder] = argument.split('=');
  const listed = folder.endsWith('.json') ? JSON.parse(readFileSync(folder, 'utf8')) : undefined;
  const implementation = listed ? '' : readFileSync(join(folder, 'NvInferImpl.h'), 'utf8');
  const parser = existsSync(join(folder, 'NvOnnxParser.h'))
    ? readFileSync(join(folder, 'NvOnnxParser.h'), 'utf8')
    : '';
  rows[key] = {};
  for (const [name, methods] of Object.entries(wanted)) {
    const table = listed
      ? listed[name]?.split(' ')
      : name.startsWith('Parser')
        ? tableOf(parser, `I${name}`)
        : tableOf(implementation, `V${name}`);
    if (table === undefined) continue;
    const slots = Object.fromEntries(
      methods.flatMap((method) =>
        table.includes(method) ? [[method, table.indexOf(method)]] : [],
      ),
    );
    rows[key][name] = { slots: table.length, ...slots };
  }
}

const text = Object.entries(rows)
  .sort(([a], [b]) => a.localeCompare(b, 'en', { numeric: true }))
  .map(([key, classes]) => {
    const texts = Object.entries(classes).map(([name, slots]) => rowText(name, slots));
    return `  '${key}': slots(\`\n${texts.join('')}  \`),\n`;
  })
  .join('');
writeFileSync(output, `${HEAD}${text}};\n`);
