import * as fc from '../../../../test/fast-check.js';
import { expect, test } from 'vitest';

import { NvjpegError } from './failure.js';
import { FileMemory } from './file-memory.js';
import { BatchDecoder } from './hardware.js';
import type { HardwareCalls } from './hardware.js';
import type { BatchAnswer, Coded, Lane } from './thread/messages.js';

interface Batch {
  readonly lane: Lane;
  readonly number: number;
  readonly format: number;
  readonly pictures: readonly Coded[];
}

/** Where files of a batch lie, in two memories: from such an address on. */
const BETWEEN = 1e9;

/**
 * A thread that answers one batch after the other. `most` is the largest number of batches that it
 * had received.
 */
function decoder(answer: (batch: Batch) => Promise<BatchAnswer>): {
  batches: Batch[];
  lanes: Set<number>;
  decoder: BatchDecoder;
  most: () => number;
} {
  const batches: Batch[] = [];
  const lanes = new Set([1]);
  const told = new Set<Batch>();
  let [next, most, memories] = [2, 0, 0];
  let last: Promise<unknown> = Promise.resolve();
  const calls: HardwareCalls = {
    async batch({ lane }, number, format, pictures) {
      const batch = { lane, number, format, pictures };
      // Files of another batch that has not ended stay where they are.
      const memoryOf = (each: Batch): number =>
        Math.floor((each.pictures[0]!.source as number) / BETWEEN);
      for (const other of told) expect(memoryOf(other)).not.toBe(memoryOf(batch));
      batches.push(batch);
      told.add(batch);
      most = Math.max(most, told.size);
      const turn = last
        .catch(() => undefined)
        .then(() => {
          expect(lanes.has(lane.state)).toBe(true);
          return answer(batch);
        });
      last = turn;
      try {
        return await turn;
      } finally {
        told.delete(batch);
      }
    },
    lane: () => {
      lanes.add(next);
      return Promise.resolve({ state: next++, stream: 0 });
    },
    release: (_, gone) => {
      for (const { state } of gone) expect(lanes.delete(state)).toBe(true);
      return Promise.resolve();
    },
  };
  const newMemory = (): FileMemory => {
    const address = ++memories * BETWEEN;
    return new FileMemory(() => Promise.resolve(address));
  };
  return {
    batches,
    lanes,
    decoder: new BatchDecoder(
      calls,
      { handle: 9, lane: { state: 1, stream: 0 }, parsed: 5 },
      newMemory,
    ),
    most: () => most,
  };
}

const tick = (): Promise<void> =>
  new Promise((resolve) => {
    setImmediate(resolve);
  });
const picture = (bytes: number, format = 5): Parameters<BatchDecoder['decode']>[0] => ({
  bytes: new Uint8Array(bytes),
  format,
  width: 1,
  height: 1,
  address: bytes,
  pitch: 3,
});
const whole = (): Promise<BatchAnswer> => tick().then(() => ({ left: [], broken: false }));

test(
  'each picture is decoded once, in the order of the requests, with others of its ' +
    'format; a thread receives two batches at a time',
  { tags: 'random' },
  async () => {
    let greatest = 0;
    await fc.assert(
      fc.asyncProperty(
        fc.array(
          fc.record({
            bytes: fc.constantFrom(1, 100, 70_000, 1_500_000, 3_000_000),
            format: fc.constantFrom(2, 5),
            pause: fc.boolean(),
          }),
          { maxLength: 80 },
        ),
        async (asked) => {
          const { batches, decoder: own, most } = decoder(whole);
          const ends: Promise<boolean>[] = [];
          for (const { bytes, format, pause } of asked) {
            ends.push(own.decode(picture(bytes, format), undefined));
            if (pause) await tick();
          }
          expect(await Promise.all(ends)).toEqual(asked.map(() => true));
          expect(
            batches.flatMap(({ format, pictures }) =>
              pictures.map(({ length }) => [length, format]),
            ),
          ).toEqual(asked.map(({ bytes, format }) => [bytes, format]));
          for (const { pictures } of batches) {
            expect(pictures.length).toBeLessThanOrEqual(32);
            if (pictures.length > 1)
              expect(pictures.reduce((sum, { length }) => sum + length, 0)).toBeLessThanOrEqual(
                2 ** 21,
              );
            // Files do not overlap.
            pictures.forEach(({ source }, i) => {
              if (i > 0)
                expect(source).toBeGreaterThanOrEqual(
                  (pictures[i - 1]!.source as number) + pictures[i - 1]!.length,
                );
            });
          }
          expect(most()).toBeLessThanOrEqual(2);
          greatest = Math.max(greatest, most());
          await own.close();
        },
      ),
      { numRuns: 60 },
    );
    expect(greatest).toBe(2);
  },
);

test(
  'a lane that has failed remains until the batch that was already sent to it ends; ' +
    'the next batch has another lane',
  async () => {
    const failed: (() => void)[] = [];
    const {
      batches,
      lanes,
      decoder: own,
    } = decoder(({ number, pictures }) => {
      if (number !== batches[0]!.number) return whole();
      // The thread answers like this after a failure.
      return new Promise((resolve) => {
        failed.push(() => {
          resolve({ left: pictures.map((_, i) => i), broken: true });
        });
      });
    });
    const first = own.decode(picture(1), undefined);
    await tick();
    const second = own.decode(picture(2), undefined);
    await tick();
    const third = own.decode(picture(3), undefined);
    await tick();
    expect(batches.map(({ lane }) => lane.state)).toEqual([1, 1]);
    failed[0]!();
    expect(await first).toBe(false);
    await tick();
    expect(lanes.has(1)).toBe(true);
    failed[1]!();
    expect([await second, await third]).toEqual([false, true]);
    await tick();
    expect([...lanes]).toEqual([2]);
    expect(new Set(batches.map(({ number }) => number)).size).toBe(2);
    await own.close();
  },
);

test('only pictures that are left over give false; a failed state is replaced', async () => {
  const {
    batches,
    lanes,
    decoder: own,
  } = decoder(({ pictures }) =>
    Promise.resolve(
      batches.length === 1
        ? { left: [1], broken: false }
        : { left: pictures.map((_, i) => i), broken: true },
    ),
  );
  expect(
    await Promise.all([1, 2, 3].map((bytes) => own.decode(picture(bytes), undefined))),
  ).toEqual([true, false, true]);
  expect(await Promise.all([4, 5].map((bytes) => own.decode(picture(bytes), undefined)))).toEqual([
    false,
    false,
  ]);
  expect(await own.decode(picture(6), undefined)).toBe(false);
  expect(batches.map(({ lane }) => lane.state)).toEqual([1, 1, 2]);
  await own.close();
  expect(lanes.size).toBe(0);
});

test(
  'after a status of the library its pictures are decoded otherwise, any other ' +
    'failure is their error, and the next ones are decoded',
  async () => {
    const errors = [
      new NvjpegError({
        reason: 'status',
        library: 'nvJPEG',
        call: 'nvjpegJpegStateCreate',
        status: 5,
      }),
      new NvjpegError({ reason: 'driver', call: 'cuStreamSynchronize', status: 700 }),
    ];
    const { decoder: own } = decoder(() => {
      const error = errors.shift();
      return error === undefined ? whole() : Promise.reject(error);
    });
    expect(await Promise.all([1, 2].map((bytes) => own.decode(picture(bytes), undefined)))).toEqual(
      [false, false],
    );
    const ends = await Promise.allSettled(
      [3, 4].map((bytes) => own.decode(picture(bytes), undefined)),
    );
    for (const end of ends)
      expect(end).toMatchObject({ status: 'rejected', reason: { refusal: { reason: 'driver' } } });
    expect(await own.decode(picture(5), undefined)).toBe(true);
  },
);

test(
  'a picture that is aborted before its turn is not decoded; an idle decoder ' +
    'releases its state, and makes another one later',
  async () => {
    const { batches, lanes, decoder: own } = decoder(whole);
    const controller = new AbortController();
    const first = own.decode(picture(1), undefined);
    await Promise.resolve();
    await Promise.resolve();
    const late = own.decode(picture(2), controller.signal);
    controller.abort(new Error('never mind'));
    await own.rest();
    // Not while something is decoded.
    expect(lanes.size).toBe(1);
    await expect(late).rejects.toThrow('never mind');
    expect(await first).toBe(true);
    await tick();
    await own.rest();
    await own.rest();
    expect(lanes.size).toBe(0);
    expect(await own.decode(picture(3), undefined)).toBe(true);
    expect(batches.map(({ lane, pictures }) => [lane.state, pictures.length])).toEqual([
      [1, 1],
      [2, 1],
    ]);
    await own.close();
    expect(lanes.size).toBe(0);
  },
);
