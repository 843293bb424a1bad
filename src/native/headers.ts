/**
 * Where the CUDA headers lie that belong to a library of the toolkit: beside it, in the toolkit's layout or in that of
 * Python wheels, else in a toolkit that the machine has.
 */
import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';

import { isFolder, matching, thisMachine } from './find.js';
import type { Machine } from './find.js';

/** What a folder of CUDA headers has. */
const MARKER = 'cuda_fp16.h';
/** What one of the C++ libraries (cuda/std, thrust, cub) has, which headers of the toolkit include. */
const CPP_MARKER = join('nv', 'target');

/**
 * Folders to pass to a compiler, in order; none where there are no CUDA headers. Folders of one toolkit only: headers of
 * two versions do not go together. The C++ libraries do, with this major version of CUDA and the one before: where that toolkit comes
 * without them, as NVIDIA's wheels do, they are another's.
 */
export function headerFolders(library: string, machine: Machine = thisMachine()): string[] {
  const found = [...groups(library, machine)].map((group) => group.filter(isFolder));
  const own = found.find((folders) => folders.some((folder) => existsSync(join(folder, MARKER))));
  if (own === undefined) return [];
  const folders = own.flatMap((folder) => [folder, cppFolder(folder)].filter(isFolder));
  const hasCpp = (folder: string): boolean => existsSync(join(folder, CPP_MARKER));
  if (folders.some(hasCpp)) return folders;
  return [...folders, ...found.flat().map(cppFolder).filter(hasCpp).slice(0, 1)];
}

/** Since CUDA 13 the C++ libraries have a folder of their own. */
function cppFolder(folder: string): string {
  return join(folder, 'cccl');
}

function* groups(library: string, { platform, env, root }: Machine): Generator<string[]> {
  const lib = dirname(library);
  // lib64, lib, or bin and bin/x64 on Windows.
  yield [join(lib, '..', 'include')];
  yield [join(lib, '..', '..', 'include')];
  // Wheels until CUDA 12 have a folder each: nvidia/cuda_nvrtc/lib, nvidia/cuda_runtime/include, nvidia/cuda_cccl/include.
  yield matching(join(lib, '..', '..'), /^cuda_/).map((wheel) => join(wheel, 'include'));
  for (const toolkit of [env['CUDA_HOME'], env['CUDA_PATH']]) if (toolkit) yield [join(toolkit, 'include')];
  if (platform === 'win32') return;
  for (const toolkit of [`${root}/usr/local/cuda`, ...matching(`${root}/usr/local`, /^cuda-\d/), `${root}/opt/cuda`]) yield [join(toolkit, 'include')];
  // Debian's package puts them among all others.
  yield [`${root}/usr/include`];
}
