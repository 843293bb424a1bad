/**
 * Kernels that read several images in one launch, whose sizes may differ: blocks of one z have one
 * of them.
 */
import type { KernelDType } from '../core/index.js';
import { input } from '../kernels/index.js';
import type { KernelParam } from '../kernels/index.js';
import type { Input } from '../library/kernel-family.js';
import type { KernelTensor } from '../tensor/index.js';

/** Images of one launch, at most. */
const SOURCES = 8;
type Slot = 0 | 1 | 2 | 3 | 4 | 5 | 6 | 7;
const SLOTS = Array.from({ length: SOURCES }, (_, slot) => slot as Slot);

/** What the body of such a kernel is passed: each image's elements, and how they lie. */
export type Sources<S> = Readonly<Record<`x${Slot}`, Input>> & Readonly<Record<`s${Slot}`, S>>;

/** Their part of the kernel's signature. */
export function sourceParams(
  element: KernelDType,
  source: KernelParam,
): Readonly<Record<string, KernelParam>> {
  return Object.fromEntries<KernelParam>(
    SLOTS.flatMap<[string, KernelParam]>((slot) => [
      [`x${slot}`, input(element)],
      [`s${slot}`, source],
    ]),
  );
}

/**
 * Calls `launch` for each as many images as a launch takes, with their part of its arguments.
 *
 * @param elements of each image
 * @param sources how they lie
 */
export function inGroups(
  elements: readonly KernelTensor[],
  sources: readonly object[],
  launch: (args: Readonly<Record<string, unknown>>, first: number, count: number) => void,
): void {
  for (let first = 0; first < elements.length; first += SOURCES) {
    const count = Math.min(SOURCES, elements.length - first);
    const args: Record<string, unknown> = {};
    for (const slot of SLOTS) {
      // Places that are left are of no block: any image will do.
      const i = first + Math.min(slot, count - 1);
      args[`x${slot}`] = elements[i];
      args[`s${slot}`] = sources[i];
    }
    launch(args, first, count);
  }
}
