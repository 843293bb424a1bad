/**
 * The tables against NPP itself, where it is installed (`pip install nvidia-npp`, or
 * `nvidia-npp-cu12` and `-cu11`): every function is there, in the file that the table names, and
 * has the parameters of its header. ASYNC_CUDA_TEST_NPP names folders of libraries, with `:`
 * between them; by default the one that the engine would take.
 */
import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, test } from 'vitest';

import type { ArgumentType } from '../../core/index.js';
import { findLibrary } from '../../native/find.js';
import { loadKoffi } from '../../native/koffi.js';
import { KNOWN_LIBRARIES } from '../../native/libraries.js';
import { CONTEXT, NPP_FUNCTIONS } from './functions.js';
import type { NppFile } from './functions.js';
import { statusesOf } from './statuses.js';

function installed(): string[] {
  const named = process.env['ASYNC_CUDA_TEST_NPP'];
  if (named !== undefined) return named.split(':').filter((folder) => folder !== '');
  const found = findLibrary(KNOWN_LIBRARIES.nppc);
  return 'path' in found ? [dirname(found.path)] : [];
}

const FILES = Object.keys(NPP_FUNCTIONS) as NppFile[];
/** Functions that NPP 11 does not have, or has only without a stream context. */
const SINCE_12 = /ColorTwist32f|HistogramEvenGetBufferSize/;

/** C's types of parameters as the kinds of the tables. */
const SCALARS: Readonly<Record<string, string>> = {
  int: 'number',
  Npp32s: 'number',
  'unsigned int': 'number',
  Npp8u: 'number',
  Npp16u: 'number',
  Npp32f: 'f32',
  double: 'f64',
  NppiAxis: 'number',
  NppRoundMode: 'number',
  NppiBorderType: 'number',
  NppiAlphaOp: 'number',
  NppiSize: 'struct2',
  NppiPoint: 'struct2',
  NppiRect: 'struct4',
  NppStreamContext: 'context',
};
const BYTES: Readonly<Record<string, number>> = {
  Npp8u: 1,
  Npp16u: 2,
  Npp32f: 4,
  double: 8,
  int: 4,
  Npp32s: 4,
};

/** One parameter of a prototype. Pointers to what is not const are written by the function. */
function kindOf(parameter: string, name: string): string {
  const constant = /^const\b/.test(parameter);
  const text = parameter
    .replace(/\bconst\b/g, '')
    .replace(/\s+/g, ' ')
    .trim();
  const array = /^(\w+) (\*)? ?(\w+)((?:\[\d+\])+)$/.exec(text);
  if (array !== null) {
    const [, type, star, label, sizes] = array;
    const count = [...sizes!.matchAll(/\[(\d+)\]/g)].reduce(
      (product, [, size]) => product * Number(size),
      1,
    );
    if (star !== undefined) return `${constant ? 'in' : 'out'}×${count}`;
    // Results of statistics are in memory of the device though they are written as arrays.
    return /^a(Sum|Mean|Min|Max|IndexX|IndexY)$/.test(label!)
      ? 'out'
      : `host${count * BYTES[type!]!}`;
  }
  if (/\bhp\w+$/.test(text)) return 'host8';
  if (/pKernel$/.test(text) || (constant && text.includes('*'))) return 'in';
  if (text.includes('*'))
    return /pSrcDst|pDeviceBuffer|pBuffer$/.test(text)
      ? 'inout'
      : /pBatchList/.test(text)
        ? 'in'
        : 'out';
  const type = text.replace(/ ?\w+$/, '');
  const kind = SCALARS[type];
  if (kind === undefined) throw new Error(`${name}: what is ${parameter}?`);
  return kind;
}

function kindOfTable(type: ArgumentType): string {
  if (type === CONTEXT) return 'context';
  if (typeof type === 'string') return type === 'i32' || type === 'u32' ? 'number' : type;
  if ('host' in type) return `host${type.host}`;
  return 'pointers' in type
    ? `${type.pointers}×${type.count}`
    : `struct${Object.keys(type.struct).length}`;
}

function prototypes(include: string): Map<string, string[]> {
  const found = new Map<string, string[]>();
  for (const file of readdirSync(include)) {
    if (!/^nppi\w*\.h$/.test(file)) continue;
    const text = readFileSync(join(include, file), 'latin1')
      .replace(/\/\*[\s\S]*?\*\//g, '')
      .replace(/\/\/.*/g, '');
    for (const [, name, list] of text.matchAll(/NppStatus\s+(nppi\w+)\s*\(([^)]*)\)\s*;/g)) {
      found.set(
        name!,
        list!.split(',').map((each) => each.replace(/\s+/g, ' ').replace(/ ?\[/g, '[').trim()),
      );
    }
  }
  return found;
}

const MISSING = 'NPP is not installed: pip install nvidia-npp, or set ASYNC_CUDA_TEST_NPP';
const folders = installed();
if (folders.length === 0) describe.skip(`SKIPPED: ${MISSING}`, () => undefined);

describe.each(folders)('NPP in %s', (folder) => {
  const path = (file: NppFile): string =>
    join(
      folder,
      readdirSync(folder)
        .filter((name) => name.startsWith(`lib${file}.so`))
        .sort()[0] ?? `lib${file}.so`,
    );
  const koffi = loadKoffi();
  const [major] = koffi.decode(
    koffi.load(path('nppc')).func('const int32_t* nppGetLibVersion()')() as unknown,
    'int32_t',
    3,
  ) as [number, number, number];
  /** The version in the file's name, where it has one. */
  const named = Number(/\.so\.(\d+)/.exec(path('nppc'))?.[1]);

  test.each(FILES.filter((file) => file !== 'nppc'))('every function of %s is there', (file) => {
    const library = koffi.load(path(file));
    const missing = Object.keys(NPP_FUNCTIONS[file]).filter((name) => {
      try {
        library.symbol(name);
        return false;
      } catch {
        return true;
      }
    });
    expect(missing.filter((name) => !(major < 12 && SINCE_12.test(name)))).toEqual([]);
    expect(Object.keys(NPP_FUNCTIONS[file]).length).toBeGreaterThan(2);
  });

  test.skipIf(Number.isNaN(named))('its version is that of its file', () => {
    expect(major).toBe(named);
  });

  const include = [join(folder, '../include'), join(folder, '../../include')].find((each) =>
    existsSync(join(each, 'nppdefs.h')),
  );
  test.skipIf(include === undefined)('every function has the parameters of its header', () => {
    const headers = prototypes(include!);
    const wrong: string[] = [];
    let compared = 0;
    for (const rows of Object.values(NPP_FUNCTIONS)) {
      for (const [name, { args }] of Object.entries(rows)) {
        const prototype = headers.get(name);
        if (prototype === undefined || (major < 12 && SINCE_12.test(name))) continue;
        const [given, said] = [args.map(kindOfTable), prototype.map((each) => kindOf(each, name))];
        if (given.join() !== said.join())
          wrong.push(`${name}: ${given.join(' ')} but ${said.join(' ')}`);
        compared++;
      }
    }
    expect(wrong).toEqual([]);
    expect(compared).toBeGreaterThan(200);
  });

  test.skipIf(include === undefined)('the stream context has the fields of its header', () => {
    const text = readFileSync(join(include!, 'nppdefs.h'), 'latin1')
      .replace(/\/\*[\s\S]*?\*\//g, '')
      .replace(/\/\/.*/g, '');
    const end = text.indexOf('} NppStreamContext');
    const body = text.slice(text.lastIndexOf('typedef struct', end), end);
    const fields = [...body.matchAll(/(\w[\w ]*?)\s+(\w+)\s*;/g)].map(([, type, name]) => [
      name,
      type!.trim(),
    ]);
    const types: Readonly<Record<string, string>> = {
      cudaStream_t: 'stream',
      int: 'i32',
      size_t: 'u64',
      'unsigned int': 'u32',
    };
    const table = Object.entries((CONTEXT as { struct: Record<string, string> }).struct);
    // Since 13.2 the last one is a union with a workspace of the same type and place.
    expect(fields.slice(0, 9).map(([name, type]) => [name, types[type!]])).toEqual(
      table.slice(0, 9),
    );
    expect(fields.slice(9).map(([name]) => name)).toContain('nReserved0');
  });

  test.skipIf(include === undefined)('statuses have the numbers of the header', () => {
    const text = readFileSync(join(include!, 'nppdefs.h'), 'latin1');
    const end = text.indexOf('} NppStatus;');
    const body = text.slice(text.lastIndexOf('typedef enum', end), end);
    const minor = Number(
      /NPP_VER_MINOR\s+(\d+)/.exec(readFileSync(join(include!, 'npp.h'), 'latin1'))?.[1] ?? 0,
    );
    const table = statusesOf(major, minor);
    const numbers = [...body.matchAll(/\b(NPP_\w+)\s*=\s*(-?\d+)/g)]
      .filter(([, name]) => name !== 'NPP_NO_ERROR')
      .map(([, name, number]) => [Number(number), name]);
    expect(numbers.length).toBeGreaterThan(60);
    expect(numbers.filter(([number, name]) => table[number as number]?.name !== name)).toEqual([]);
  });
});
