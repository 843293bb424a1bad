/**
 * How the decoder handles an allocation that finds too little memory, on a driver that each test
 * controls.
 */
import { expect, test } from 'vitest';

import type { Driver } from '../driver/driver.js';
import { DriverError } from '../driver/error.js';
import { CUresult } from '../ground/result.js';
import { OP } from './commands.js';
import { Decoder } from './decoder.js';
import type { Failure } from './failure.js';
import { HANDLE, PINNED_BYTES, SLOT_ROOM, WORD, createShared, viewShared } from './layout.js';
import { RingWriter, putInt64 } from './ring-writer.js';
import { noLibraries } from './library-calls.js';

const BYTES = 1000;

function setUp(options: { failures: number; busy?: readonly number[]; refuse?: boolean }) {
  const shared = viewShared(
    createShared({ buffer: new SharedArrayBuffer(PINNED_BYTES), byteOffset: 0 }),
  );
  const log: string[] = [];
  const failed: Failure[] = [];
  let { failures } = options;
  const driver = {
    provider: 'libcuda',
    cuStreamQuery: (stream: number) =>
      options.busy?.includes(stream) === true
        ? CUresult.CUDA_ERROR_NOT_READY
        : CUresult.CUDA_SUCCESS,
    cuStreamSynchronize: (stream: number) => log.push(`synchronize ${stream}`),
    cuMemAllocAsync: () => {
      log.push('allocate');
      if (failures-- > 0)
        throw new DriverError('cuMemAllocAsync', CUresult.CUDA_ERROR_OUT_OF_MEMORY);
      return 4096;
    },
    cuMemFreeAsync: () => log.push('free'),
    cuEventRecord: () => log.push('record'),
  } as Partial<Record<keyof Driver, unknown>> as Driver;
  const decoder = new Decoder(driver, shared, 0, true, {
    failed: (failure) => failed.push(failure),
    lost: () => undefined,
    call: () => undefined,
    output: () => undefined,
    libraryCaller: noLibraries,
    makeRoom: (step, stream, bytes) => {
      log.push(`${step} for ${bytes} bytes on ${stream}`);
      return options.refuse !== true;
    },
    idle: () => log.push('idle'),
  });
  shared.streams.set([100, 101]);
  shared.control[WORD.slotsUsed] = 2;
  const ring = new RingWriter(
    shared,
    () => undefined,
    () => undefined,
  );
  const body = ring.begin(OP.alloc, 0, 8, 7, 0, 33);
  ring.memory[body] = 5;
  ring.memory[body + 1] = 0;
  putInt64(ring.memory, body + 2, BYTES);
  ring.commit();
  decoder.drain();
  return {
    shared,
    decoder,
    failed,
    ring,
    take: () => log.splice(0),
    roomMade() {
      Atomics.add(shared.slots, SLOT_ROOM, 1);
      decoder.resumeParked();
    },
  };
}

test('its stream waits, and it is tried again once room was made', () => {
  const { take, roomMade, decoder, shared, failed } = setUp({ failures: 1 });
  expect(take()).toEqual([
    'allocate',
    'synchronize 100',
    'synchronize 101',
    'trim for 1000 bytes on 0',
  ]);
  decoder.resumeParked();
  expect(take()).toEqual([]);
  expect(decoder.parking.count).toBe(1);
  roomMade();
  expect(take()).toEqual(['allocate', 'record']);
  expect([shared.status[5], shared.values[5], decoder.parking.count, failed.length]).toEqual([
    HANDLE.live,
    4096,
    0,
    0,
  ]);
});

test('after trimming, waiting for frees and trimming again it fails', () => {
  const { take, roomMade, shared, failed, decoder } = setUp({ failures: 4, busy: [100, 101] });
  roomMade();
  roomMade();
  expect(failed.length).toBe(0);
  roomMade();
  expect(take().filter((line) => line !== 'record')).toEqual([
    'allocate',
    'trim for 1000 bytes on 0',
    'allocate',
    'frees for 1000 bytes on 0',
    'allocate',
    'trim for 1000 bytes on 0',
    'allocate',
  ]);
  expect(failed).toMatchObject([{ root: 7, result: CUresult.CUDA_ERROR_OUT_OF_MEMORY }]);
  expect([shared.status[5], decoder.parking.count]).toEqual([HANDLE.failed, 0]);
});

test('streams with work are not synchronised with', () => {
  const { take } = setUp({ failures: 1, busy: [101] });
  expect(take()).toEqual(['allocate', 'synchronize 100', 'trim for 1000 bytes on 0']);
});

test('it fails at once where no step can help', () => {
  const { take, failed, decoder } = setUp({ failures: 1, refuse: true });
  expect(take().at(-1)).toBe('record');
  expect(failed.length).toBe(1);
  expect(decoder.parking.count).toBe(0);
});

test('an idle device reports it only where memory was freed and all streams are idle', () => {
  const busy = [101];
  const { take, decoder, ring } = setUp({ failures: 0, busy });
  expect(decoder.shortages.keepsFreed).toBe(false);
  ring.memory[ring.begin(OP.free, 0, 5, 0, 0, 0)] = 5;
  ring.commit();
  decoder.drain();
  expect(decoder.shortages.keepsFreed).toBe(true);
  take();
  decoder.shortages.rest();
  expect(take()).toEqual(['synchronize 100']);
  busy.length = 0;
  decoder.shortages.rest();
  expect(take()).toEqual(['synchronize 100', 'synchronize 101', 'idle']);
  expect(decoder.shortages.keepsFreed).toBe(false);
});
