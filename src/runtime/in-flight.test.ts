/** The commands in flight, read from a ring that has wrapped any number of times. */
import { describe, expect, test } from 'vitest';

import { OP } from './commands.js';
import { describeInFlight, inFlight } from './in-flight.js';
import {
  PINNED_BYTES,
  RING_WORDS,
  SLOT_FENCE,
  SLOT_WORDS,
  WORD,
  createShared,
  viewShared,
} from './layout.js';
import { RingWriter } from './ring-writer.js';

const NAMES = {
  stream: (slot: number) => `stream ${slot}`,
  kernel: (handle: number) => `k${handle}`,
  memory: (handle: number) => (handle === 7 ? 'x' : undefined),
  operation: (root: number) => (root === 99 ? 'a write' : undefined),
};

function ringOf() {
  const shared = viewShared(
    createShared({ buffer: new SharedArrayBuffer(PINNED_BYTES), byteOffset: 0 }),
  );
  const ring = new RingWriter(
    shared,
    () => undefined,
    () => undefined,
  );
  const decode = (): void => {
    Atomics.store(shared.control, WORD.tail, ring.position);
  };
  const launch = (stream: number, kernel: number, root = 1): void => {
    const body = ring.begin(OP.launchLine, 0, 4 + 5 + 1 + 3, root, stream, 0);
    ring.memory.fill(0, body, body + 9);
    ring.memory[body] = kernel;
    ring.memory[body + 4] = 1 | (12 << 16);
    ring.memory[body + 5] = 7;
    ring.commit();
  };
  const fence = (stream: number, value: number): void => {
    const body = ring.begin(OP.fence, 0, 6, 0, stream, 0);
    ring.memory[body] = stream;
    ring.memory[body + 1] = value;
    ring.commit();
  };
  const pass = (stream: number, value: number): void => {
    shared.slots[stream * SLOT_WORDS + SLOT_FENCE] = value;
  };
  return {
    shared,
    ring,
    decode,
    launch,
    fence,
    pass,
    read: () => inFlight(shared, ring.position, NAMES),
  };
}

describe('what is in flight', () => {
  test('nothing in an empty ring', () => {
    expect(ringOf().read()).toEqual([]);
    expect(describeInFlight([])).toBe('');
  });

  test('the commands that were issued after the last passed fence, by streams', () => {
    const { launch, fence, pass, decode, read } = ringOf();
    launch(0, 1);
    fence(0, 1);
    launch(0, 2);
    launch(1, 3);
    launch(1, 3);
    launch(1, 4, 99);
    fence(0, 2);
    fence(1, 1);
    pass(0, 1);
    decode();
    expect(read()).toEqual([
      { stream: 'stream 0', operations: ["kernel k2 ('x')"] },
      { stream: 'stream 1', operations: ["kernel k3 ('x') ×2", 'a write'] },
    ]);
    expect(describeInFlight(read())).toBe(
      " In flight: stream 0: kernel k2 ('x'); stream 1: kernel k3 ('x') ×2, a write.",
    );
  });

  test('no commands that have not been decoded', () => {
    const { launch, decode, read } = ringOf();
    launch(0, 1);
    decode();
    launch(0, 2);
    expect(read()).toEqual([{ stream: 'stream 0', operations: ["kernel k1 ('x')"] }]);
  });

  test.each([0.5, 0.98, 1.001, 1.7, 2.03, 3.5])('after %d rounds of the ring', (rounds) => {
    const { launch, fence, pass, decode, ring, read } = ringOf();
    for (let i = 1; ring.position < rounds * RING_WORDS; i++) {
      launch(i % 3, i % 1000);
      fence(i % 3, i);
      pass(i % 3, i);
      decode();
    }
    for (let i = 0; i < 2000; i++) launch(5, i);
    decode();
    const [work, ...more] = read();
    expect(more).toEqual([]);
    expect(work!.stream).toBe('stream 5');
    expect(work!.operations).toHaveLength(2000);
    expect(work!.operations[1999]).toBe("kernel k1999 ('x')");
  });

  test('commands in the next round of the ring', () => {
    const { launch, decode, ring, read } = ringOf();
    while (ring.position < RING_WORDS - 5000) {
      launch(0, 1);
      decode();
    }
    for (let i = 0; i < 200; i++) launch(4, i);
    decode();
    for (let i = 0; i < 1000; i++) launch(6, i);
    const work = read();
    expect(work.map(({ stream }) => stream)).toEqual(['stream 0', 'stream 4']);
    expect(work[1]!.operations).toHaveLength(200);
  });
});
