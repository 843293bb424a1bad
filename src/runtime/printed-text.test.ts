/** The decoder of a GPU with kernels that print, on a driver that each test controls. */
import { expect, test } from 'vitest';

import type { Driver } from '../driver/driver.js';
import { CUresult } from '../ground/result.js';
import { OP } from './commands.js';
import { Decoder } from './decoder.js';
import { PINNED_BYTES, SLOT_FENCE, SLOT_WORDS, WORD, createShared, viewShared } from './layout.js';
import { RingWriter } from './ring-writer.js';
import { noLibraries } from './library-calls.js';

function setUp() {
  const shared = viewShared(
    createShared({ buffer: new SharedArrayBuffer(PINNED_BYTES), byteOffset: 0 }),
  );
  const log: string[] = [];
  const reached = new Set<number>();
  let made = 0;
  const driver = {
    provider: 'libcuda',
    cuStreamQuery: () => CUresult.CUDA_ERROR_NOT_READY,
    cuStreamSynchronize: (stream: number) => log.push(`synchronize stream ${stream}`),
    cuStreamWriteValue32: (stream: number, address: number, value: number) =>
      log.push(`stream ${stream} writes ${value} to slot ${address / 64}`),
    cuEventCreate: () => ++made,
    cuEventRecord: (event: number, stream: number) => log.push(`record ${event} on ${stream}`),
    cuEventQuery: (event: number) =>
      reached.has(event) ? CUresult.CUDA_SUCCESS : CUresult.CUDA_ERROR_NOT_READY,
    cuEventSynchronize: (event: number) => log.push(`synchronize ${event}`),
  } as Partial<Record<keyof Driver, unknown>> as Driver;
  const decoder = new Decoder(driver, shared, 0, true, {
    failed: () => undefined,
    lost: () => undefined,
    call: () => undefined,
    makeRoom: () => false,
    idle: () => undefined,
    libraryCaller: noLibraries,
    output: () => ({
      bring(write) {
        write();
        log.push('flush');
      },
      exit: () => undefined,
    }),
  });
  shared.streams.set([100, 101]);
  const ring = new RingWriter(
    shared,
    () => undefined,
    () => undefined,
  );
  return {
    shared,
    decoder,
    driver,
    log,
    reached,
    take: () => log.splice(0),
    slot: (slot: number) => shared.slots[slot * SLOT_WORDS + SLOT_FENCE],
    printed(stream: number) {
      ring.begin(OP.printed, 0, 4, 0, stream, 0);
      ring.commit();
    },
    fence(stream: number, slot: number, value: number) {
      const body = ring.begin(OP.fence, 0, 6, 0, stream, 0);
      ring.memory.set([slot, value], body);
      ring.commit();
    },
    turn() {
      decoder.drain();
      decoder.fences.settle();
      if (decoder.parking.count !== 0) decoder.resumeParked();
    },
  };
}

test('a fence after a kernel that prints is written when the text is out', () => {
  const { printed, fence, turn, take, slot, reached } = setUp();
  printed(0);
  fence(0, 0, 1);
  turn();
  expect(take()).toEqual(['record 1 on 100']);
  expect(slot(0)).toBe(0);
  reached.add(1);
  turn();
  expect(take()).toEqual(['synchronize 1', 'flush']);
  expect(slot(0)).toBe(1);
});

test('a later fence does not overtake the text', () => {
  const { printed, fence, turn, take, slot, reached } = setUp();
  printed(0);
  fence(0, 0, 1);
  turn();
  fence(0, 3, 7);
  turn();
  expect(take()).toEqual(['record 1 on 100', 'record 2 on 100']);
  reached.add(2);
  turn();
  expect([slot(0), slot(3)]).toEqual([0, 0]);
  reached.add(1);
  turn();
  expect(take()).toEqual(['synchronize 1', 'synchronize 2', 'flush']);
  expect([slot(0), slot(3)]).toEqual([1, 7]);
});

test('other streams, and the same one afterwards, have their fences from the device', () => {
  const { printed, fence, turn, take, reached, decoder } = setUp();
  printed(0);
  fence(0, 0, 1);
  fence(1, 1, 1);
  turn();
  expect(take()).toEqual(['record 1 on 100', 'stream 101 writes 1 to slot 1']);
  reached.add(1);
  turn();
  expect(decoder.parking.count).toBe(0);
  fence(0, 0, 2);
  turn();
  expect(take()).toEqual(['synchronize 1', 'flush', 'stream 100 writes 2 to slot 0']);
});

test('events are used again', () => {
  const { printed, fence, turn, take, reached } = setUp();
  reached.add(1);
  for (let i = 1; i <= 3; i++) {
    printed(0);
    fence(0, 0, i);
    turn();
  }
  expect(take().filter((line) => line.startsWith('record'))).toEqual(
    Array(3).fill('record 1 on 100'),
  );
});

test('the JavaScript thread makes no visit while there is pending text', () => {
  const { printed, fence, turn, reached, shared } = setUp();
  printed(0);
  turn();
  expect(shared.control[WORD.parked]).toBe(1);
  fence(0, 0, 1);
  reached.add(1);
  turn();
  expect(shared.control[WORD.parked]).toBe(0);
});

test('a lost device has no pending text', () => {
  const { printed, fence, turn, take, shared, decoder } = setUp();
  printed(0);
  fence(0, 0, 1);
  turn();
  take();
  shared.control[WORD.lost] = 700;
  turn();
  expect(take()).toEqual([]);
  expect(decoder.parking.count).toBe(0);
});

test('at the end of the process the text of finished kernels is printed', () => {
  const { printed, turn, take, driver, decoder } = setUp();
  printed(0);
  printed(1);
  turn();
  driver.cuStreamQuery = (stream) =>
    stream === 100 ? CUresult.CUDA_SUCCESS : CUresult.CUDA_ERROR_NOT_READY;
  decoder.text?.end();
  expect(take()).toEqual(['synchronize stream 100', 'flush']);
});
