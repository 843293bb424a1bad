/**
 * Links with NVIDIA's nvJitLink (CUDA 12 and later): PTX, cubins and LTO-IR become one cubin, off
 * the JavaScript thread.
 */
import { createHash } from 'node:crypto';

import { CudaCompileError } from '../core/index.js';
import { KNOWN_LIBRARIES } from '../native/libraries.js';
import { linkOnThread } from './compiler-thread.js';
import { keepProgram, keptProgram } from './kept-programs.js';
import { identityOf, placeOf } from './library-place.js';
import { checkLink } from './link-options.js';
import type { LinkInput, LinkOptions } from './link-options.js';
import { refusalError } from './refusal.js';
import type { Linked } from './thread/messages.js';

const BYTES = ['cubin'] as const;

/** The result of a link. */
export interface LinkedProgram {
  /** The architecture that it was linked for. */
  readonly architecture: string;
  /** Machine code; undefined where the output is PTX. nvJitLinkGetLinkedCubin */
  readonly cubin: Uint8Array | undefined;
  /** PTX; undefined where the output is a cubin. nvJitLinkGetLinkedPtx */
  readonly ptx: string | undefined;
  /** The linker's messages. */
  readonly log: string;
  /** Whether it was read from disk. */
  readonly cached: boolean;
}

/**
 * Links programs into one cubin, or into PTX, off the JavaScript thread. LTO-IR is optimised across
 * its parts. nvJitLinkComplete
 *
 * @throws CudaArgumentError for an input that cannot be linked, for an unknown option, and for an
 * option that nvJitLink does not accept
 *
 * Rejects with CudaCompileError, with the linker's `log`, where the parts do not link, with
 * CudaError with code ERR_CUDA_NO_LIBRARY where there is no nvJitLink, and with the signal's reason
 * where it aborts.
 *
 * @example
 * ```ts no-run
 * const options = { architecture: 'sm_90', outputs: ['ltoir'] } as const;
 * const { cubin, architecture } = await link([
 *   await compile('extern __device__ int a();\n__global__ void f(int* y) { *y = a(); }', options),
 *   await compile('__device__ int a() { return 1; }', options),
 * ]);
 * console.log(architecture, cubin !== undefined); // sm_90 true
 * ```
 */
export async function link(
  inputs: readonly LinkInput[],
  options: LinkOptions = {},
): Promise<LinkedProgram> {
  const { architecture, parts, flags, output, cache, signal } = checkLink(inputs, options);
  signal?.throwIfAborted();
  const library = placeOf(KNOWN_LIBRARIES.nvJitLink);
  const identity = await identityOf(library);
  const key = [
    'nvJitLink',
    identity,
    flags,
    output,
    parts.map(({ kind, name, data }) => [
      kind,
      name,
      createHash('sha256').update(data).digest('hex'),
    ]),
  ];
  const mayKeep = cache && identity !== undefined;
  const known = mayKeep ? await keptProgram<Linked>(key, BYTES) : undefined;
  signal?.throwIfAborted();
  if (known !== undefined) return result(known, architecture, true);
  const linked = await linkOnThread({ kind: 'link', library, parts, flags, output }, signal);
  if ('reason' in linked) {
    if (linked.reason !== 'source') throw refusalError('link', linked);
    throw new CudaCompileError(
      `link: ${parts.map(({ name }) => name).join(', ')} for ` +
        `${architecture}:\n${linked.log.trim()}`,
      linked.log,
      '',
    );
  }
  if (mayKeep) keepProgram<Linked>(key, linked, BYTES);
  return result(linked, architecture, false);
}

function result({ cubin, ptx, log }: Linked, architecture: string, cached: boolean): LinkedProgram {
  return { architecture, cubin, ptx, log, cached };
}
