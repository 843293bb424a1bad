/** Commands for memory: allocations, fills, values that a stream writes or waits for. */
import type { Driver } from '../../driver/driver.js';
import { asOutOfMemory } from '../host-allocation.js';
import { HANDLE } from '../layout.js';
import { command, handlesOf, noOperands, operandsAt } from './command.js';
import type { Command, Execution } from './command.js';
import { RECORD_BODY, RECORD_ROOT, bigInt64, int64 } from './record.js';

const ALLOC = { handle: 0, pool: 1, bytes: 2 } as const;
const MEMSET = {
  memory: 0,
  offset: 1,
  elementBits: 3,
  value: 4,
  width: 5,
  height: 7,
  pitch: 8,
} as const;
const PREFETCH = { memory: 0, offset: 1, bytes: 3, device: 5 } as const;
const WRITE_VALUE = { memory: 0, offset: 1, value: 3, bits: 5 } as const;
const WAIT_VALUE = { ...WRITE_VALUE, condition: 6 } as const;

const FIRST_OPERAND = operandsAt(0);

export const memories = {
  /** `pool`: the handle of a memory pool, 0 for the device's own. `bytes` is 64-bit. */
  alloc: command({
    op: 6,
    call: 'cuMemAllocAsync',
    words: ALLOC,
    length: 4,
    operands: noOperands,
    makes: ALLOC.handle,
    trace: (memory, body) => ({
      kind: 'alloc',
      memory: [memory[body + ALLOC.handle]!],
      bytes: int64(memory, body + ALLOC.bytes),
    }),
    inFlight: undefined,
    copies: undefined,
    takesTime: false,
    visit: 'never',
    launches: 0,
    runsAfterFailure: false,
    withoutStream: ({ shared }, memory, body) => {
      shared.status[memory[body + ALLOC.handle]!] = HANDLE.failed;
      return true;
    },
    mustWait: undefined,
    execute: ({ driver, shared, operands, shortages }, memory, body, stream) => {
      const { values, status, streams } = shared;
      const handle = memory[body + ALLOC.handle]!;
      const bytes = int64(memory, body + ALLOC.bytes);
      try {
        const pool = memory[body + ALLOC.pool]!;
        // A buffer of length zero has no memory and is never dereferenced.
        values[handle] =
          bytes === 0
            ? 0
            : pool === 0
              ? driver.cuMemAllocAsync(bytes, streams[stream]!)
              : driver.cuMemAllocFromPoolAsync(bytes, operands.address(pool), streams[stream]!);
        const root = memory[body - RECORD_BODY + RECORD_ROOT]!;
        driver.nameAllocation?.(values[handle], root, handle);
        status[handle] = HANDLE.live;
        shortages.over(stream);
      } catch (error) {
        status[handle] = HANDLE.failed;
        throw asOutOfMemory(error, bytes);
      }
    },
  }),

  free: command({
    op: 7,
    call: 'cuMemFreeAsync',
    words: { handle: 0 },
    length: 1,
    operands: noOperands,
    makes: undefined,
    trace: (memory, body) => ({ kind: 'free', memory: [memory[body]!] }),
    inFlight: undefined,
    copies: undefined,
    takesTime: false,
    visit: 'never',
    launches: 0,
    runsAfterFailure: true,
    withoutStream: (decoder, memory, body, stream) => {
      // The memory is leaked, since a free without a stream has no order. Memory that this stream
      // allocated does not exist anyway.
      const { status } = decoder.shared;
      if (status[memory[body]!] === HANDLE.live) status[memory[body]!] = HANDLE.failed;
      free(decoder, memory[body]!, stream);
      return false;
    },
    mustWait: undefined,
    execute: (decoder, memory, body, stream) => free(decoder, memory[body]!, stream),
  }),

  /**
   * A fill of `width` elements of 8, 16 or 32 bits; where `height` is not 0, of `height` rows of
   * that width, `pitch` bytes apart. `offset` and `width` are 64-bit.
   */
  memset: command({
    op: 5,
    call: 'cuMemsetAsync',
    words: MEMSET,
    length: 9,
    operands: FIRST_OPERAND,
    makes: undefined,
    trace: (memory, body) => ({
      kind: 'fill',
      memory: handlesOf(FIRST_OPERAND(memory, body)),
      bytes:
        (memory[body + MEMSET.elementBits]! / 8) *
        int64(memory, body + MEMSET.width) *
        Math.max(1, memory[body + MEMSET.height]!),
    }),
    inFlight: 'fill',
    copies: undefined,
    takesTime: true,
    visit: 'always',
    launches: 0,
    runsAfterFailure: false,
    withoutStream: 'fails',
    mustWait: undefined,
    execute: ({ driver, shared, operands }, memory, body, stream) => {
      const address = operands.address(memory[body]!) + int64(memory, body + MEMSET.offset);
      memset(driver, address, memory, body, shared.streams[stream]!);
    },
  }),

  /** `device`: the device's ordinal, -1 for the host. `offset` and `bytes` are 64-bit. */
  prefetch: command({
    op: 20,
    call: 'cuMemPrefetchAsync',
    words: PREFETCH,
    length: 6,
    operands: FIRST_OPERAND,
    makes: undefined,
    trace: (memory, body) => ({
      kind: 'prefetch',
      memory: handlesOf(FIRST_OPERAND(memory, body)),
      bytes: int64(memory, body + PREFETCH.bytes),
    }),
    inFlight: 'prefetch',
    copies: undefined,
    takesTime: true,
    visit: 'never',
    launches: 0,
    runsAfterFailure: false,
    withoutStream: 'fails',
    mustWait: undefined,
    execute: ({ driver, shared, operands }, memory, body, stream) =>
      driver.cuMemPrefetchAsync(
        operands.address(memory[body]!) + int64(memory, body + PREFETCH.offset),
        int64(memory, body + PREFETCH.bytes),
        memory[body + PREFETCH.device]!,
        shared.streams[stream]!,
      ),
  }),

  /**
   * `bits`: 32 or 64; `offset` and `value` are 64-bit. A stream memory operation takes a place in
   * the stream's queue of launches, as a launch does.
   */
  writeValue: command({
    op: 32,
    call: 'cuStreamWriteValue',
    words: WRITE_VALUE,
    length: 6,
    operands: FIRST_OPERAND,
    makes: undefined,
    trace: (memory, body) => ({
      kind: 'writeValue',
      memory: handlesOf(FIRST_OPERAND(memory, body)),
    }),
    inFlight: 'writeValue',
    copies: undefined,
    takesTime: false,
    visit: 'never',
    launches: 1,
    runsAfterFailure: false,
    withoutStream: 'fails',
    mustWait: undefined,
    execute: ({ driver, shared, operands }, memory, body, slot) => {
      const stream = shared.streams[slot]!;
      const address = operands.address(memory[body]!) + int64(memory, body + WRITE_VALUE.offset);
      const value = body + WRITE_VALUE.value;
      if (memory[body + WRITE_VALUE.bits] === 32)
        driver.cuStreamWriteValue32(stream, address, memory[value]! >>> 0, 0);
      else driver.cuStreamWriteValue64(stream, address, bigInt64(memory, value), 0);
    },
  }),

  /** As `writeValue`; `condition` is one of CU_STREAM_WAIT_VALUE_*. */
  waitValue: command({
    op: 33,
    call: 'cuStreamWaitValue',
    words: WAIT_VALUE,
    length: 7,
    operands: FIRST_OPERAND,
    makes: undefined,
    trace: (memory, body) => ({
      kind: 'waitValue',
      memory: handlesOf(FIRST_OPERAND(memory, body)),
    }),
    inFlight: 'waitValue',
    copies: undefined,
    takesTime: true,
    visit: 'never',
    launches: 1,
    runsAfterFailure: false,
    withoutStream: 'fails',
    mustWait: undefined,
    execute: ({ driver, shared, operands }, memory, body, slot) => {
      const stream = shared.streams[slot]!;
      const address = operands.address(memory[body]!) + int64(memory, body + WAIT_VALUE.offset);
      const value = body + WAIT_VALUE.value;
      const condition = memory[body + WAIT_VALUE.condition]!;
      if (memory[body + WAIT_VALUE.bits] === 32)
        driver.cuStreamWaitValue32(stream, address, memory[value]! >>> 0, condition);
      else driver.cuStreamWaitValue64(stream, address, bigInt64(memory, value), condition);
    },
  }),

  /**
   * The number of a failure: the JavaScript thread could not deliver the contents that it promised.
   */
  poison: command({
    op: 25,
    call: '',
    words: { memory: 0, failure: 1 },
    length: 2,
    operands: noOperands,
    makes: undefined,
    trace: undefined,
    inFlight: undefined,
    copies: undefined,
    takesTime: false,
    visit: 'never',
    launches: 0,
    runsAfterFailure: false,
    withoutStream: 'is executed',
    mustWait: undefined,
    execute: ({ shared }, memory, body) => {
      shared.failure[memory[body]!] = memory[body + 1]!;
    },
  }),
} satisfies Record<string, Command>;

function free({ driver, shared, shortages }: Execution, handle: number, stream: number): void {
  const { values, failure, status, streams } = shared;
  const address = values[handle]!;
  const live = status[handle] === HANDLE.live;
  values[handle] = 0;
  failure[handle] = 0;
  Atomics.store(status, handle, HANDLE.released);
  shortages.freed = true;
  if (live && address !== 0) driver.cuMemFreeAsync(address, streams[stream]!);
}

function memset(
  driver: Driver,
  address: number,
  memory: Int32Array,
  body: number,
  stream: number,
): void {
  const bits = memory[body + MEMSET.elementBits]!;
  const value = memory[body + MEMSET.value]!;
  const width = int64(memory, body + MEMSET.width);
  const height = memory[body + MEMSET.height]!;
  const pitch = memory[body + MEMSET.pitch]!;
  if (width === 0) return;
  if (height === 0) {
    if (bits === 8) driver.cuMemsetD8Async(address, value & 0xff, width, stream);
    else if (bits === 16) driver.cuMemsetD16Async(address, value & 0xffff, width, stream);
    else driver.cuMemsetD32Async(address, value >>> 0, width, stream);
  } else if (bits === 8)
    driver.cuMemsetD2D8Async(address, pitch, value & 0xff, width, height, stream);
  else if (bits === 16)
    driver.cuMemsetD2D16Async(address, pitch, value & 0xffff, width, height, stream);
  else driver.cuMemsetD2D32Async(address, pitch, value >>> 0, width, height, stream);
}
