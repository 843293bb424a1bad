/**
 * Sharing of module images with the thread that loads them. Posting a text of several megabytes
 * clones it in one step, which blocks the event loop for milliseconds. So a large image is copied,
 * slice by slice, into shared memory.
 */
import { Buffer } from 'node:buffer';

import { allocateHost } from '../runtime/host-allocation.js';
import { invalid } from '../ground/arguments.js';
import type { TurnBudget } from './turn-budget.js';

/** Images up to this size are posted as they are. */
const SMALL = 1 << 16;
const SLICE = 1 << 17;
/** Encoding text takes about four times as long as copying its bytes. */
const ENCODING_COST = 4;

/**
 * Refuses text that is not PTX and is often passed for it: a file's name, and CUDA C++.
 *
 * @throws CudaArgumentError that states what to pass instead
 */
export function checkText(image: string): void {
  if (image.length < 4096 && /^\S+\.(ptx|cubin|fatbin|cu)$/.test(image)) {
    throw invalid(
      'image',
      'PTX text',
      image,
      'That is the name of a file: pass what is in it, e.g. await readFile(name).',
    );
  }
  // PTX begins with its version; only comments may come before it.
  if (/\b__global__\b/.test(image.slice(0, 65536)) && !/^\s*\.version\b/m.test(image)) {
    throw invalid(
      'image',
      'PTX text',
      image,
      "That is CUDA C++: load it with device.compile(source) of 'async-cuda', or compile it " +
        'first, e.g. with nvcc --ptx.',
    );
  }
}

export async function shareImage(
  given: string | Uint8Array,
  turns: TurnBudget,
): Promise<string | Uint8Array> {
  const image = withoutMark(given);
  if (image.length <= SMALL) return image;
  // A character takes at most three bytes of UTF-8. Memory that is not written costs nothing.
  const room = typeof image === 'string' ? image.length * 3 : image.length;
  const shared = allocateHost(
    'device.loadModule',
    room,
    '',
    () => new Uint8Array(new SharedArrayBuffer(room)),
  );
  let written = 0;
  for (let from = 0; from < image.length;) {
    let to = Math.min(image.length, from + SLICE);
    if (typeof image === 'string' && to < image.length && isLeadSurrogate(image.charCodeAt(to - 1)))
      to++;
    const turn = turns.take((to - from) * ENCODING_COST);
    if (turn !== undefined) await turn;
    const start = performance.now();
    const bytes =
      typeof image === 'string'
        ? Buffer.from(image.slice(from, to), 'utf8')
        : image.subarray(from, to);
    shared.set(bytes, written);
    written += bytes.length;
    turns.took((to - from) * ENCODING_COST, performance.now() - start);
    from = to;
  }
  return shared.subarray(0, written);
}

/** The image without a byte order mark, which readFile(path, 'utf8') leaves before PTX. */
function withoutMark(image: string | Uint8Array): string | Uint8Array {
  if (typeof image === 'string') return image.startsWith('\ufeff') ? image.slice(1) : image;
  return image[0] === 0xef && image[1] === 0xbb && image[2] === 0xbf ? image.subarray(3) : image;
}

function isLeadSurrogate(code: number): boolean {
  return code >= 0xd800 && code < 0xdc00;
}
