/**
 * Writes src/driver/libcuda/stand-in/header-facts.ts from NVIDIA's headers: every function of
 * cuda.h, the version that introduced it (cudaTypedefs.h) and the classes of its arguments.
 *
 * `node scripts/cuda-header-facts.mjs` takes the headers from the wheel nvidia-cuda-runtime of the
 * index that pip is configured with; `node scripts/cuda-header-facts.mjs FOLDER` takes those of an
 * installed toolkit.
 */
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

import { installWheels } from './wheels.mjs';

const WHEEL = ['nvidia-cuda-runtime', '13.5.37'];
const root = fileURLToPath(new URL('..', import.meta.url));

let folder = process.argv[2];
if (folder === undefined) {
  await installWheels('cuda-headers', [WHEEL]);
  folder = join(root, 'node_modules/.cache/cuda-headers/nvidia/cu13/include');
}
const withoutComments = (text) => text.replace(/\/\*[^]*?\*\//g, '').replace(/\/\/.*/g, '');
const header = withoutComments(await readFile(join(folder, 'cuda.h'), 'utf8'));
const typedefs = withoutComments(await readFile(join(folder, 'cudaTypedefs.h'), 'utf8'));
const version = Number(/#define CUDA_VERSION (\d+)/.exec(header)[1]);

/** The classes of C's types; a pointer, handle or function is `p`, and an enumeration `i`. */
const CLASSES = {
  'unsigned int': 'u',
  cuuint32_t: 'u',
  GLuint: 'u',
  GLenum: 'u',
  int: 'i',
  CUdevice: 'i',
  CUdevice_v1: 'i',
  size_t: 'z',
  'unsigned long long': 'q',
  'unsigned long long int': 'q',
  cuuint64_t: 'q',
  CUtexObject: 'q',
  CUtexObject_v1: 'q',
  CUsurfObject: 'q',
  CUsurfObject_v1: 'q',
  CUdeviceptr: 'p',
  CUdeviceptr_v2: 'p',
  CUgraphConditionalHandle: 'q',
  CUmemGenericAllocationHandle: 'q',
  CUmemGenericAllocationHandle_v1: 'q',
  'unsigned short': 'h',
  'unsigned char': 'b',
  CUmemLocation: 'L',
  CUmemLocation_v1: 'L',
};
for (const [, name] of header.matchAll(/typedef enum \w+\s*\{[^}]*\}\s*(\w+);/g))
  CLASSES[name] = 'i';
for (const [, name] of header.matchAll(/typedef struct \w+\s*\*(\w+);/g)) CLASSES[name] = 'p';
for (const [, name] of header.matchAll(/\(CUDA_CB \*(\w+)\)/g)) CLASSES[name] = 'p';
// Another name of a type, as in `typedef CUdevice_v1 CUdevice;`
for (let known = -1; known !== Object.keys(CLASSES).length;) {
  known = Object.keys(CLASSES).length;
  for (const [, of, name] of header.matchAll(/typedef (?:enum |struct )?(\w+) (\w+);/g))
    if (CLASSES[of] !== undefined) CLASSES[name] ??= CLASSES[of];
}

/** The class of a type, or of a type and a name. */
function classOf(text) {
  const words = text
    .replace(/\b(enum|struct)\b/g, '')
    .trim()
    .split(/\s+/);
  return CLASSES[words.join(' ')] ?? CLASSES[words.slice(0, -1).join(' ')];
}

/** Pointers to what C writes: to one of these classes, by the capital letter. */
const RESULTS = 'uizqpf';

/** The classes of a list of arguments; undefined where one is a structure by value or a float. */
function classesOf(list) {
  if (list.trim() === 'void' || list.trim() === '') return '';
  const classes = list.split(',').map((argument) => {
    if (!/[*[]/.test(argument)) return classOf(argument.replace(/\bconst\b/g, ''));
    const to = /^([^*[]*)(\*+)[^*[]*$/.exec(argument);
    if (to === null || /\bconst\b/.test(argument)) return 'p';
    const result = to[2] === '**' ? 'p' : to[1].trim() === 'float' ? 'f' : classOf(to[1]);
    return result !== undefined && RESULTS.includes(result) ? result.toUpperCase() : 'p';
  });
  return classes.includes(undefined) ? undefined : classes.join('');
}

// A prototype's name is that of its symbol, unless a macro of the header replaces it. The last part
// of the header, for the driver itself, declares the older symbols with the macros undefined.
const split = header.lastIndexOf('#if defined(__CUDA_API_VERSION_INTERNAL)');
const macros = new Map(
  [...header.matchAll(/#define\s+(cu\w+)[ \t]+(?:__CUDA_API_PT[DS][SZ]\()?(cu\w+)\)?/g)].map(
    ([, name, symbol]) => [name, symbol],
  ),
);
const PROTOTYPE = /CUresult\s+(?:CUDAAPI\s+)?(cu\w+)\s*\(([^)]*)\)\s*;/g;
const symbols = new Map();
for (const [, name, list] of header.slice(0, split).matchAll(PROTOTYPE))
  symbols.set(macros.get(name) ?? name, list);
for (const [, name, list] of header.slice(split).matchAll(PROTOTYPE))
  if (!/_pt[ds][sz]$/.test(name) && !symbols.has(name)) symbols.set(name, list);

// The name of a function's type has the version, `PFN_cuMemAlloc_v3020`. Types for the per-thread
// default stream, `PFN_cuStreamQuery_v7000_ptsz`, have the version that introduced that stream.
const introduced = new Map();
for (const [, name, since, list] of typedefs.matchAll(/\*PFN_(cu\w+?)_v(\d+)\)\s*\(([^)]*)\)/g)) {
  const versions = introduced.get(name) ?? new Map();
  introduced.set(name, versions.set(Number(since), classesOf(list)));
}

const base = (symbol) => symbol.replace(/_v\d+$/, '');
const ordinal = (symbol) => Number(/_v(\d+)$/.exec(symbol)?.[1] ?? 1);
const rows = [];
const left = [];
for (const name of new Set([...symbols.keys()].map(base))) {
  const own = [...symbols.keys()]
    .filter((symbol) => base(symbol) === name)
    .sort((a, b) => ordinal(a) - ordinal(b));
  const versions = [...(introduced.get(name) ?? [])].sort(([a], [b]) => a - b);
  // The n-th symbol of a function has its n-th type.
  for (const [i, symbol] of own.entries()) {
    const classes = classesOf(symbols.get(symbol));
    const found = versions.length === own.length ? versions[i] : undefined;
    if (classes === undefined || found === undefined || found[1] !== classes) left.push(symbol);
    else rows.push([symbol, found[0], classes]);
  }
}
console.error(`${rows.length} functions; left out: ${left.sort().join(', ')}`);

const release = `${Math.floor(version / 1000)}.${Math.floor((version % 1000) / 10)}`;
const text = `/**
 * Generated by scripts/cuda-header-facts.mjs from cuda.h and cudaTypedefs.h of CUDA ${release}
 * (CUDA_VERSION ${version}): for every function, the version that introduced it and the classes of
 * its arguments. The tests compare the table of calls with it, and the stand-in driver is compiled
 * from it.
 *
 * Classes: \`p\` pointer, handle or device address; \`z\` size_t; \`u\` and \`i\` unsigned and
 * signed 32 bits (enums are \`i\`); \`q\` unsigned 64 bits; \`h\` and \`b\` unsigned 16 and 8
 * bits; \`L\` a CUmemLocation by value. A capital letter is a pointer to a value of that class
 * which C may write: \`I\` for \`int*\`; \`F\` is \`float*\`.
 */
export const HEADER_FACTS: Readonly<Record<string, readonly [version: number, args: string]>> = {
${rows
  .sort(([a], [b]) => (a < b ? -1 : 1))
  .map(([symbol, since, classes]) => `  ${symbol}: [${since}, '${classes}'],`)
  .join('\n')}
};
`;
await writeFile(join(root, 'src/driver/libcuda/stand-in/header-facts.ts'), text);
