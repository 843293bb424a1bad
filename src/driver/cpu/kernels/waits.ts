/**
 * Lists what the threads of a block wait for, with the threads that wait for the same thing
 * together.
 */
import { CTX } from '../../../ptx/index.js';
import type { Waiting } from '../../../ptx/index.js';
import type { KernelFunction } from './kernel-function.js';

export interface WaitGroup {
  threads: string;
  /** The line of PTX; 0 for threads that have exited or not begun. */
  line: number;
  instruction: string;
}

/** Returns what the threads of the block with its context block at `ctx` wait at. */
export function waitsOf(
  {
    context: {
      memory: { words },
    },
    kernel,
  }: KernelFunction,
  ctx: number,
): Waiting[] {
  return kernel.waiting(
    words,
    words[(ctx + CTX.scratch) >>> 2]!,
    words[(ctx + CTX.threads) >>> 2]!,
  );
}

/** Formats the waits. `nameOf` names a thread by its number. */
export function waitsText(waiting: readonly Waiting[], nameOf: (thread: number) => string): string {
  return waiting
    .map(({ threads, line, instruction, exited }) => {
      const subject =
        threads.length === 1
          ? nameOf(threads[0]!)
          : `${threads.length} threads from ${nameOf(threads[0]!)} on`;
      if (exited) return `${subject} ${threads.length === 1 ? 'has' : 'have'} exited`;
      const place = line > 0 ? ` at PTX line ${line}` : '';
      return `${subject}${place}${instruction === undefined ? '' : ` (${instruction})`}`;
    })
    .join(', ');
}

/** Returns the same as data, with every thread by number: `0-3,7`. */
export function waitGroups(waiting: readonly Waiting[]): WaitGroup[] {
  return waiting.map(({ threads, line, instruction, exited }) => ({
    threads: ranges(threads),
    line,
    instruction: exited ? 'exited' : (instruction ?? ''),
  }));
}

function ranges(numbers: readonly number[]): string {
  const parts: string[] = [];
  for (let i = 0; i < numbers.length;) {
    let j = i;
    while (numbers[j + 1] === numbers[j]! + 1) j++;
    parts.push(i === j ? `${numbers[i]}` : `${numbers[i]}-${numbers[j]}`);
    i = j + 1;
  }
  return parts.join(',');
}
