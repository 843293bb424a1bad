/**
 * Kernels that read several images, whose sizes may differ, in one launch: blocks of one z have one
 * of them.
 */
import type { KernelDType } from '../core/index.js';
import { input } from '../kernels/index.js';
import type { KernelParam } from '../kernels/index.js';
import type { Input } from '../library/kernel-family.js';
import type { KernelTensor } from '../tensor/index.js';

/** Images that a launch has at most. */
const SOURCES = 8;
type Slot = 0 | 1 | 2 | 3 | 4 | 5 | 6 | 7;
const SLOTS = Array.from({ length: SOURCES }, (_, slot) => slot as Slot);

/** Arguments of the body of such a kernel: each image's elements, and a structure for it. */
export type Sources<S> = Readonly<Record<`x${Slot}`, Input>> & Readonly<Record<`s${Slot}`, S>>;

/** Gives the parameters of the sources. */
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
 * Calls `launch` for groups of at most {@link SOURCES} images, with their arguments.
 *
 * @param elements the elements of each image
 * @param sources the structure of each image
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
      // No block reads the remaining places: any image is passed.
      const i = first + Math.min(slot, count - 1);
      args[`x${slot}`] = elements[i];
      args[`s${slot}`] = sources[i];
    }
    launch(args, first, count);
  }
}
