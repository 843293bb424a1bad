/**
 * The runtime thread's calls of NVIDIA's libraries. Functions have numbers there, in the order in
 * which they were announced, and a command names one together with its arguments.
 */
import type { LibraryCaller } from '../native/library-caller.js';
import { layoutOf } from '../native/library-call.js';
import type { ArgumentLayout, LibraryFunction, LibraryStatuses } from '../native/library-call.js';

const TWO_32 = 4294967296;

/**
 * Functions of one library that commands may name from here on, by numbers that increase from
 * `first`.
 */
export interface LibraryStart {
  readonly first: number;
  readonly statuses: LibraryStatuses;
  readonly functions: readonly LibraryFunction[];
}

interface Known {
  readonly func: LibraryFunction;
  readonly statuses: LibraryStatuses;
  readonly layout: ArgumentLayout;
}

export class LibraryCalls {
  private readonly open: () => LibraryCaller;
  private readonly known = new Map<number, Known>();
  private caller: LibraryCaller | undefined = undefined;

  /** `open` is called when the first call is made. */
  constructor(open: () => LibraryCaller) {
    this.open = open;
  }

  add({ first, statuses, functions }: LibraryStart): void {
    functions.forEach((func, i) => {
      this.known.set(first + i, { func, statuses, layout: layoutOf(func.args) });
    });
  }

  /** No command names the function any more. */
  drop(number: number): void {
    this.known.delete(number);
  }

  /** The number of kernels, copies and fills that a call of function `number` may queue. */
  launches(number: number): number {
    return this.known.get(number)!.func.launches;
  }

  /** Calls a function. @throws LibraryCallError where its status is a failure */
  call(number: number, stream: number, memory: Int32Array, at: number): void {
    const { func, statuses, layout } = this.known.get(number)!;
    this.caller ??= this.open();
    for (const word of layout.streams) {
      memory[at + word] = stream | 0;
      memory[at + word + 1] = (stream / TWO_32) | 0;
    }
    this.caller.run(statuses, func, memory, at);
  }
}

/**
 * Throws, for decoders that make no calls of libraries: those of the JavaScript thread leave them
 * to the runtime thread.
 */
export function noLibraries(): LibraryCaller {
  throw new Error('this decoder makes no calls of libraries');
}
