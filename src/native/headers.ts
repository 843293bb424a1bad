/**
 * Finds the CUDA headers that belong to a library of the toolkit: beside it, in the toolkit's
 * layout or in that of Python wheels, else in an installed toolkit.
 */
import { closeSync, existsSync, openSync, readSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';

import { isFolder, matching, thisMachine } from './find.js';
import type { Machine } from './find.js';

/** A file that every folder of CUDA headers has. */
const MARKER = 'cuda_fp16.h';
/**
 * Files that the toolkit's headers include, and that have packages of their own among NVIDIA's
 * wheels: the compiler's part, and the C++ libraries (cuda/std, thrust, cub).
 */
const COMPILER = join('crt', 'mma.h');
const CPP_LIBRARIES = join('nv', 'target');
/** Since CUDA 13 the C++ libraries are in a folder of their own. */
const CPP_FOLDER = 'cccl';
/** `cuda.h` defines its version within this many bytes. */
const VERSION_BYTES = 1 << 16;

/**
 * Returns the folders to pass to a compiler, in order; none where there are no CUDA headers. All
 * are of one toolkit, because headers of two versions do not fit together. Where wheels contain
 * only a part of it, as PyTorch's do, the rest comes from a toolkit of the same version, or only
 * its C++ libraries from another version, since those support toolkits of two major versions.
 */
export function headerFolders(library: string, machine: Machine = thisMachine()): string[] {
  const toolkits = withHeaders(library, machine);
  const own = toolkits.next().value;
  if (own === undefined) return [];
  const lacks = (file: string): boolean => !has(own, file);
  if (!lacks(COMPILER) && !lacks(CPP_LIBRARIES)) return own;
  const others = [...toolkits];
  const version = cudaVersion(own);
  const same =
    version === undefined ? undefined : others.find((folders) => cudaVersion(folders) === version);
  if (same !== undefined) return [...new Set([...own, ...same])];
  if (!lacks(CPP_LIBRARIES)) return own;
  return [
    ...own,
    ...others
      .flat()
      .filter((folder) => basename(folder) === CPP_FOLDER && has([folder], CPP_LIBRARIES))
      .slice(0, 1),
  ];
}

/**
 * Yields the folders of each toolkit that has headers. Each toolkit is looked for when its folders
 * are requested.
 */
function* withHeaders(library: string, machine: Machine): Generator<string[], undefined> {
  for (const group of groups(library, machine)) {
    const folders = group.filter(isFolder);
    if (has(folders, MARKER))
      yield folders.flatMap((folder) => [folder, join(folder, CPP_FOLDER)].filter(isFolder));
  }
  return undefined;
}

function has(folders: readonly string[], file: string): boolean {
  return folders.some((folder) => existsSync(join(folder, file)));
}

/** The version of these headers: 13000 is CUDA 13.0. */
function cudaVersion(folders: readonly string[]): number | undefined {
  const folder = folders.find((each) => existsSync(join(each, 'cuda.h')));
  if (folder === undefined) return undefined;
  const file = openSync(join(folder, 'cuda.h'), 'r');
  try {
    const start = Buffer.alloc(VERSION_BYTES);
    const text = start.toString('latin1', 0, readSync(file, start));
    const version = /^#define CUDA_VERSION (\d+)/m.exec(text)?.[1];
    return version === undefined ? undefined : Number(version);
  } finally {
    closeSync(file);
  }
}

function* groups(library: string, { platform, env, root }: Machine): Generator<string[]> {
  const lib = dirname(library);
  // The library lies in lib64 or lib, or on Windows in bin or bin/x64.
  yield [join(lib, '..', 'include')];
  yield [join(lib, '..', '..', 'include')];
  // Up to CUDA 12 each wheel has a folder: nvidia/cuda_nvrtc/lib, nvidia/cuda_runtime/include,
  // nvidia/cuda_cccl/include.
  yield matching(join(lib, '..', '..'), /^cuda_/).map((wheel) => join(wheel, 'include'));
  for (const toolkit of [env['CUDA_HOME'], env['CUDA_PATH']])
    if (toolkit) yield [join(toolkit, 'include')];
  if (platform === 'win32') return;
  for (const toolkit of [
    `${root}/usr/local/cuda`,
    ...matching(`${root}/usr/local`, /^cuda-\d/),
    `${root}/opt/cuda`,
  ])
    yield [join(toolkit, 'include')];
  // Debian's package installs them among all other headers.
  yield [`${root}/usr/include`];
}
