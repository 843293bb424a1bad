/** Finds NVIDIA's programs on disk, in the folders beside those of its libraries. */
import { statSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';

import { candidateFolders, isFolder, thisMachine } from './find.js';
import type { FindResult, Machine, Tried } from './find.js';

/** A program of NVIDIA's, and where it comes from. */
export interface ProgramRow {
  /** The name in messages. */
  readonly name: string;
  /** The file's name, without an extension. */
  readonly file: string;
  /** The environment variable that names the file or its folder; no other place is tried then. */
  readonly environment: string;
  /** Python packages that contain it and what it needs. */
  readonly wheels: readonly string[];
}

/** The assembler of Tile IR. It starts ptxas and loads libnvvm, which lie beside it. */
export const TILEIRAS: ProgramRow = {
  name: "NVIDIA's Tile IR assembler",
  file: 'tileiras',
  environment: 'ASYNC_CUDA_TILEIRAS',
  wheels: ['nvidia-cuda-tileiras', 'nvidia-nvvm', 'nvidia-cuda-nvcc'],
};

/** The programs of NVIDIA's that async-cuda starts and lists, by key. */
export const KNOWN_PROGRAMS = { tileiras: TILEIRAS } as const satisfies Record<string, ProgramRow>;

/**
 * Finds a program, without starting it: the path, or every path tried.
 *
 * @example
 * ```ts no-run
 * const found = findProgram(TILEIRAS);
 * if ('path' in found) console.log(found.path); // /usr/local/cuda/bin/tileiras
 * ```
 */
export function findProgram(row: ProgramRow, machine: Machine = thisMachine()): FindResult {
  const tried: Tried[] = [];
  const seen = new Set<string>();
  for (const path of candidates(row, machine)) {
    if (seen.has(path)) continue;
    seen.add(path);
    if (statSync(path, { throwIfNoEntry: false })?.isFile() === true) return { path };
    tried.push({ path, reason: 'no such file' });
  }
  return { tried };
}

function* candidates(row: ProgramRow, machine: Machine): Generator<string> {
  const file = machine.platform === 'win32' ? `${row.file}.exe` : row.file;
  const named = machine.env[row.environment];
  if (named !== undefined && named !== '') {
    if (isFolder(named)) yield* [join(named, file), join(named, 'bin', file)];
    else yield named;
    return;
  }
  for (const folder of (machine.env['PATH'] ?? '').split(delimiter))
    if (folder !== '') yield join(folder, file);
  const library = {
    ...{ name: row.name, base: row.file, versions: [], windows: [], environment: [] },
    from: 'toolkit',
  } as const;
  // A toolkit and a wheel have `bin` beside `lib`.
  for (const folder of candidateFolders(library, machine)) yield join(dirname(folder), 'bin', file);
}

/** Sentences about how to get a program that was not found. */
export const howToGetProgram = ({ wheels, environment }: ProgramRow): string =>
  `Install it with \`pip install ${wheels.join(' ')}\` in the active Python environment, or with ` +
  `the CUDA toolkit from 13.3 on. Where it lies elsewhere, set ${environment} to its path.`;
