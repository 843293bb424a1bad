/**
 * Captures of commands on memory that does not exist yet: the decoder waits for allocations that
 * are queued, and for nothing else.
 */
import { expect, test } from 'vitest';

import type { Driver } from '../driver/driver.js';
import { DriverError } from '../driver/error.js';
import { CUresult } from '../ground/result.js';
import { ACCESS_SHIFT, ACCESS_WRITE, OP } from './commands.js';
import { Decoder } from './decoder.js';
import type { Failure } from './failure.js';
import {
  HANDLE,
  PINNED_BYTES,
  SLOT_HOLD,
  SLOT_WORDS,
  WORD,
  createShared,
  viewShared,
} from './layout.js';
import { noLibraries } from './library-calls.js';
import { RingWriter } from './ring-writer.js';

const MEMORY = 5;
const GRAPH = 6;
const FORKED = 7;
const JOINED = 8;
const CAPTURE = -9;
const OTHER = 4;

function setUp() {
  const shared = viewShared(
    createShared({ buffer: new SharedArrayBuffer(PINNED_BYTES), byteOffset: 0 }),
  );
  const log: string[] = [];
  const failed: Failure[] = [];
  /** The address of a fill that the driver refuses. */
  let refused = -1;
  const driver = {
    provider: 'cpu',
    cuMemAllocAsync: () => {
      log.push('allocate');
      return 4096;
    },
    cuMemsetD32Async: (address: number) => {
      if (address === refused)
        throw new DriverError('cuMemsetD32Async', CUresult.CUDA_ERROR_INVALID_VALUE);
      log.push(`fill ${address}`);
    },
    cuStreamBeginCapture: () => log.push('begin'),
    cuStreamEndCapture: () => {
      log.push('end');
      return 99;
    },
    cuStreamWriteValue32: (stream: number) => log.push(`fence of ${stream}`),
    cuEventRecord: (_: number, stream: number) => log.push(`record on ${stream}`),
    cuStreamWaitEvent: (stream: number) => log.push(`wait on ${stream}`),
  } as Partial<Record<keyof Driver, unknown>> as Driver;
  const decoder = new Decoder(driver, shared, 0, false, {
    failed: (failure) => failed.push(failure),
    lost: () => undefined,
    call: () => undefined,
    output: () => undefined,
    libraryCaller: noLibraries,
    makeRoom: () => false,
    idle: () => undefined,
  });
  shared.streams.set([100, 101]);
  shared.control[WORD.slotsUsed] = 3;
  for (const handle of [MEMORY, GRAPH]) shared.status[handle] = HANDLE.pending;
  for (const handle of [FORKED, JOINED]) shared.status[handle] = HANDLE.live;
  const ring = new RingWriter(
    shared,
    () => undefined,
    () => undefined,
  );
  const put = (op: number, root: number, stream: number, ...words: number[]): void => {
    const body = ring.begin(op, 0, 4 + words.length, root, stream, 0);
    words.forEach((word, i) => {
      ring.memory[body + i] = word;
    });
    ring.commit();
  };
  return {
    shared,
    decoder,
    failed,
    take: () => log.splice(0),
    refuse: (address: number) => {
      refused = address;
    },
    alloc: (root: number, stream: number): void => {
      put(OP.alloc, root, stream, MEMORY, 0, 16, 0);
    },
    fill: (root: number, stream: number, handle = MEMORY, offset = 0): void => {
      put(
        OP.memset,
        root,
        stream,
        handle | (ACCESS_WRITE << ACCESS_SHIFT),
        offset,
        0,
        32,
        0,
        4,
        0,
        0,
        0,
      );
    },
    begin: (stream: number): void => {
      put(OP.captureBegin, CAPTURE, stream);
    },
    end: (stream: number): void => {
      put(OP.captureEnd, CAPTURE, stream, GRAPH, 1);
    },
    join: (stream: number, joined: number): void => {
      put(OP.captureJoin, 0, stream, joined, 1);
    },
    record: (stream: number, event: number): void => {
      put(OP.record, 0, stream, event);
    },
    wait: (stream: number, event: number): void => {
      put(OP.wait, 0, stream, event, 0);
    },
    fence: (stream: number): void => {
      put(OP.fence, 0, stream, stream, 1);
    },
    hold: (stream: number): void => {
      put(OP.hold, 0, stream, 2, 1);
    },
    letGo: (): void => {
      shared.slots[2 * SLOT_WORDS + SLOT_HOLD] = 1;
      while (decoder.resumeParked()) continue;
    },
  };
}

test('an allocation that is held on another stream is waited for', () => {
  const { hold, alloc, begin, fill, end, decoder, take, letGo, failed } = setUp();
  hold(0);
  alloc(3, 0);
  begin(1);
  fill(CAPTURE, 1);
  end(1);
  decoder.drain();
  expect([take(), decoder.parking.count]).toEqual([['begin'], 2]);
  letGo();
  expect([take(), decoder.parking.count, failed]).toEqual([
    ['allocate', 'fill 4096', 'end'],
    0,
    [],
  ]);
});

test('an allocation that is skipped, since its operation has failed, fails the capture', () => {
  const { alloc, begin, fill, end, decoder, take, refuse, failed, shared } = setUp();
  refuse(8);
  fill(3, 0, OTHER, 8);
  alloc(3, 0);
  begin(1);
  fill(CAPTURE, 1);
  end(1);
  decoder.drain();
  expect([take(), decoder.parking.count, shared.status[MEMORY]]).toEqual([
    ['begin', 'end'],
    0,
    HANDLE.failed,
  ]);
  expect(failed.map(({ root }) => root)).toEqual([3, CAPTURE]);
});

test('a capture that has failed waits for nothing', () => {
  const { alloc, begin, fill, end, decoder, take, refuse, failed } = setUp();
  refuse(8);
  begin(1);
  fill(CAPTURE, 1, OTHER, 8);
  alloc(CAPTURE, 1);
  fill(CAPTURE, 1);
  end(1);
  decoder.drain();
  expect([take(), decoder.parking.count, failed.length]).toEqual([['begin', 'end'], 0, 1]);
});

test('a stream that has joined a capture continues only when that has ended', () => {
  const { hold, begin, fill, record, join, wait, end, fence, decoder, take, letGo } = setUp();
  hold(0);
  begin(0);
  record(0, FORKED);
  join(1, 1);
  wait(1, FORKED);
  fill(CAPTURE, 1, OTHER, 8);
  record(1, JOINED);
  wait(0, JOINED);
  end(0);
  join(1, 0);
  fence(1);
  decoder.drain();
  expect([take(), decoder.parking.count]).toEqual([[], 2]);
  letGo();
  expect([take(), decoder.parking.count]).toEqual([
    [
      'begin',
      'record on 100',
      'wait on 101',
      'fill 8',
      'record on 101',
      'wait on 100',
      'end',
      'fence of 101',
    ],
    0,
  ]);
});
