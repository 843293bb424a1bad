/** The types that `async-cuda types` writes: the kernels of a file of CUDA C++ as TypeScript. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { basename } from 'node:path';

import { sourceSignatures } from '../nvrtc/source-signatures.js';
import type { SourceParameter, SourceType } from '../nvrtc/source-signatures.js';
import type { Output } from './command-line.js';

/** The declarations for a source. */
export function declarationsOf(source: string, file: string): string {
  const { kernels, open } = sourceSignatures(source);
  const lines = kernels.map(
    ({ name, parameters }) =>
      `  readonly ${name}: ` +
      `${parameters === undefined ? 'UntypedParameters' : tuple(parameters)};\n`,
  );
  const body = `{\n${lines.join('')}}`;
  const type = open ? `${body} & { readonly [name: string]: UntypedParameters }` : body;
  const used = [
    'AnyMemory',
    'Readable',
    'ScalarArgument',
    'StructArgument',
    'Untyped',
    'UntypedParameters',
    'Writable',
  ].filter((name) => new RegExp(`\\b${name}\\b`).test(type));
  return (
    `// Written by \`async-cuda types ${basename(file)}\`. Run it again when the source ` +
    `changes.\n` +
    (used.length === 0 ? '' : `import type { ${used.join(', ')} } from 'async-cuda/nvrtc';\n`) +
    `\n/** The kernels of ${basename(file)}, each with the arguments that a launch of it ` +
    `takes. */\nexport type Kernels = ${type};\n`
  );
}

function tuple(parameters: readonly SourceParameter[]): string {
  const list = parameters.map(
    ({ name, type }, i) => `${name === '' ? `argument${i}` : name}: ${argument(type)}`,
  );
  return `readonly [${list.join(', ')}]`;
}

function argument(type: SourceType): string {
  if (typeof type !== 'string') return `StructArgument<${description(type)}>`;
  if (type === 'unknown') return 'Untyped';
  const [access, dtype] = type.split(' ');
  if (dtype === undefined)
    return type === 'bool' || type === 'i64' || type === 'u64'
      ? `ScalarArgument<'${type}'>`
      : 'number';
  if (dtype === 'any') return 'AnyMemory';
  const names = dtype === 'char' ? "'i8' | 'u8'" : `'${dtype}'`;
  return `${access === 'input' ? 'Readable' : 'Writable'}<${names}>`;
}

/** The fields of a structure, in the form of StructArgument. */
function description(type: SourceType): string {
  if (typeof type === 'string') return `'${type}'`;
  if (!('fields' in type)) return `[${description(type[0])}, ${type[1]}]`;
  const fields = Object.entries(type.fields).map(([name, field]) => {
    const isStructure = typeof field !== 'string' && 'fields' in field;
    return `${name}: ${isStructure ? `{ fields: ${description(field)} }` : description(field)}`;
  });
  return `{ ${fields.join('; ')} }`;
}

/**
 * The path next to the source where TypeScript's `allowArbitraryExtensions` searches:
 * kernels.d.cu.ts.
 */
function placeFor(file: string): string {
  return file.replace(
    /(?:\.(\w+))?$/,
    (_, extension: string | undefined) => `.d${extension === undefined ? '' : `.${extension}`}.ts`,
  );
}

const USAGE = 'Usage: async-cuda types <file.cu> [--out <file>] [--check]\n';

/**
 * Writes the declarations, or with `--check` checks whether they are up to date. Returns the exit
 * status.
 */
export function writeTypes(args: readonly string[], out: Output, err: Output): number {
  const rest = [...args];
  const check = take(rest, '--check');
  const at = rest.indexOf('--out');
  const [, target] = at < 0 ? [] : rest.splice(at, 2);
  const [file, ...others] = rest;
  if (
    file === undefined ||
    others.length > 0 ||
    file.startsWith('-') ||
    (at >= 0 && target === undefined)
  ) {
    err.write(USAGE);
    return 2;
  }
  if (!existsSync(file)) {
    err.write(`async-cuda types: there is no file ${file}.\n`);
    return 1;
  }
  const place = target ?? placeFor(file);
  const declarations = declarationsOf(readFileSync(file, 'utf8'), file);
  if (check) {
    if (existsSync(place) && readFileSync(place, 'utf8') === declarations) return 0;
    err.write(
      `async-cuda types: ${place} is out of date. Run async-cuda types ` +
        `${file}${target === undefined ? '' : ` --out ${target}`}.\n`,
    );
    return 1;
  }
  writeFileSync(place, declarations);
  out.write(`${place}\n`);
  return 0;
}

function take(args: string[], option: string): boolean {
  const at = args.indexOf(option);
  if (at >= 0) args.splice(at, 1);
  return at >= 0;
}
