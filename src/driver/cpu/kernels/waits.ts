/**
 * Says what the threads of a block wait for, those that wait for the same together.
 */
import type { WaitingThread } from '../../../ptx/index.js';

export interface WaitGroup {
  threads: string;
  /** 0 for threads that have exited. */
  line: number;
  instruction: string;
}

export function describeWaits(waiting: readonly WaitingThread[]): { text: string; groups: WaitGroup[] } {
  const byPlace = new Map<string, { threads: number[]; line: number; instruction: string }>();
  for (const { thread, wait, at } of waiting) {
    let instruction = 'exited';
    if (wait !== undefined && at !== undefined) {
      instruction = 'mask' in at ? `${wait.instruction} with mask 0x${at.mask.toString(16)}`
        : `${wait.instruction} at barrier ${at.barrier}${at.count === 0 ? '' : ` for ${at.count} threads`}`;
    }
    const line = wait?.line ?? 0;
    const key = `${line} ${instruction}`;
    const group = byPlace.get(key);
    if (group === undefined) byPlace.set(key, { threads: [thread], line, instruction });
    else group.threads.push(thread);
  }
  const groups = [...byPlace.values()].map(({ threads, line, instruction }) => ({ threads: ranges(threads), line, instruction }));
  const text = groups.map(({ threads, line, instruction }) => (
    line === 0 ? `threads ${threads} have exited` : `threads ${threads} wait at ${instruction} (PTX line ${line})`)).join('; ');
  return { text, groups };
}

/** 0-3,7 */
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
