/** Memory that another thread grows. */
import { Worker } from 'node:worker_threads';

import { expect, test } from 'vitest';

import { PEER_BASE, PeerMemory } from './peer-memory.js';

const PAGE = 65536;

test('memory that another thread has just grown is there at once', async () => {
  const memory = new WebAssembly.Memory({ initial: 1, maximum: 400, shared: true });
  const turn = new Int32Array(new SharedArrayBuffer(4));
  // The worker grows the memory by a page at each message, and answers when it has.
  const worker = new Worker(
    `
    const { memory, turn } = require('node:worker_threads').workerData;
    for (let wanted = 1; wanted < 600; wanted += 2) {
      while (Atomics.load(turn, 0) !== wanted) Atomics.wait(turn, 0, wanted - 1);
      memory.grow(1);
      Atomics.store(turn, 0, wanted + 1);
      Atomics.notify(turn, 0);
    }`,
    { eval: true, workerData: { memory, turn } },
  );
  try {
    const peer = new PeerMemory(1, PEER_BASE, memory);
    expect(peer.holds(PEER_BASE, PAGE)).toBe(true);
    let late = 0;
    for (let pages = 2; pages < 302; pages++) {
      const wanted = 2 * pages - 3;
      Atomics.store(turn, 0, wanted);
      Atomics.notify(turn, 0);
      while (Atomics.load(turn, 0) === wanted) Atomics.wait(turn, 0, wanted);
      if (!peer.holds(PEER_BASE, pages * PAGE)) late++;
      if (peer.holds(PEER_BASE, pages * PAGE + 1)) late++;
    }
    expect(late).toBe(0);
    expect(peer.holds(PEER_BASE - 1, 1)).toBe(false);
  } finally {
    await worker.terminate();
  }
});
