/**
 * A queue of records returns them in order and whole, whatever their lengths, for both ways to add
 * them.
 */
import * as fc from '../../test/fast-check.js';
import { describe, expect, test } from 'vitest';

import { RecordQueue } from './record-queue.js';

/**
 * A record of `words` words that can be told from others: its header, and then numbers that begin
 * with `id`.
 */
function record(id: number, words: number): Int32Array {
  return Int32Array.from({ length: words }, (_, i) =>
    i === 0 ? (words << 16) | (id & 0xff) : id * 100_003 + i,
  );
}

function add(queue: RecordQueue, words: Int32Array, inPlace: boolean): void {
  if (!inPlace) {
    queue.push(words, 0, words.length, words[0]!);
    return;
  }
  const { words: target, used } = queue.reserve(words.length);
  target.set(words.subarray(1), used + 1);
  queue.append(words.length, words[0]!);
}

function take(queue: RecordQueue): number[] {
  const { memory, at } = queue;
  const taken = [...memory.subarray(at, at + (memory[at]! >>> 16))];
  queue.shift();
  return taken;
}

const length = fc.oneof(
  fc.integer({ min: 1, max: 40 }),
  fc.constantFrom(8191, 8192, 16383, 16384, 16385, 32767),
);

describe('a queue of records', () => {
  test('gives back what was added, in order', { tags: 'random' }, () => {
    const step = fc.oneof(
      fc.record({ kind: fc.constant('add' as const), words: length, inPlace: fc.boolean() }),
      fc.record({ kind: fc.constant('begin' as const), words: length }),
      fc.record({ kind: fc.constant('take' as const), count: fc.integer({ min: 1, max: 5 }) }),
    );
    fc.assert(
      fc.property(fc.array(fc.tuple(fc.nat(1), step), { maxLength: 60 }), (steps) => {
        const queues = [0, 1].map(() => ({ queue: new RecordQueue(), expected: [] as number[][] }));
        let id = 0;
        for (const [which, step] of steps) {
          const { queue, expected } = queues[which]!;
          if (step.kind === 'add') {
            const words = record(++id, step.words);
            add(queue, words, step.inPlace);
            expected.push([...words]);
            // The record is begun and never ended.
          } else if (step.kind === 'begin') {
            const { words, used } = queue.reserve(step.words);
            words.fill(-1, used, used + step.words);
          } else
            for (let i = 0; i < step.count && expected.length > 0; i++)
              expect(take(queue)).toEqual(expected.shift());
          expect(queue.length).toBe(expected.length);
        }
        for (const { queue, expected } of queues) {
          while (queue.length > 0) expect(take(queue)).toEqual(expected.shift());
          expect(expected).toEqual([]);
        }
      }),
      { numRuns: 200 },
    );
  });

  test('a burst allocates no new blocks after an earlier one has been read', () => {
    const queue = new RecordQueue();
    const burst = (): Set<ArrayBufferLike> => {
      const blocks = new Set<ArrayBufferLike>();
      for (let i = 0; i < 10_000; i++) {
        blocks.add(queue.reserve(16).words.buffer);
        queue.append(16, 16 << 16);
      }
      while (queue.length > 0) queue.shift();
      return blocks;
    };
    const first = burst();
    expect(first.size).toBe(10);
    for (const block of burst()) expect(first).toContain(block);
  });
});
