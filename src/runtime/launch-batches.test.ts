/** The fast path of launches, where one of them or its stream has failed. */
import { describe, expect, test } from 'vitest';

import type { Driver } from '../driver/driver.js';
import { DriverError } from '../driver/error.js';
import { CUresult } from '../ground/result.js';
import { ACCESS_READ, ACCESS_WRITE, LINE_ACCESS_SHIFT, OP } from './commands.js';
import { Decoder } from './decoder.js';
import type { Failure } from './failure.js';
import {
  HANDLE,
  ISSUED_STRIDE,
  ISSUED_UNMADE,
  PINNED_BYTES,
  SLOT_FENCE,
  SLOT_WORDS,
  createShared,
  viewShared,
} from './layout.js';
import { RingWriter } from './ring-writer.js';
import { noLibraries } from './library-calls.js';

const hex = (words: Int32Array, bytes: number): string =>
  Buffer.from(words.buffer, 0, bytes).toString('hex');

const FUNC = 20;

describe.each([
  ['one dimension', OP.launchLine],
  ['three', OP.launchGrid],
] as const)('launches of %s', (_, op) => {
  /**
   * Handles 1 to 9 are allocations at 1000 times their number. Launches whose numbers, from 1 on,
   * are in `fail` fail.
   */
  function setUp(fail: readonly number[] = []) {
    const shared = viewShared(
      createShared({ buffer: new SharedArrayBuffer(PINNED_BYTES), byteOffset: 0 }),
    );
    const log: string[] = [];
    const failed: Failure[] = [];
    let launches = 0;
    const driver = {
      provider: 'libcuda',
      cuLaunchKernel: (...args: unknown[]) => {
        const [func, gx, gy, gz, bx, by, bz, , stream, params, start, bytes] = args as [
          number,
          ...unknown[],
        ];
        expect([gx, gy, gz, bx, by, bz]).toEqual(
          op === OP.launchLine ? [1, 1, 1, 64, 1, 1] : [1, 2, 3, 64, 4, 5],
        );
        log.push(
          `launch ${func} on ${String(stream)}: ` +
            hex((params as Int32Array).slice(start as number), bytes as number),
        );
        if (fail.includes(++launches))
          throw new DriverError('cuLaunchKernel', CUresult.CUDA_ERROR_INVALID_VALUE);
      },
      cuStreamCreateWithPriority: () => {
        throw new DriverError('cuStreamCreateWithPriority', CUresult.CUDA_ERROR_OUT_OF_MEMORY);
      },
      cuStreamQuery: (stream: number) => {
        log.push(`query ${stream}`);
        return CUresult.CUDA_SUCCESS;
      },
      cuStreamWriteValue32: (stream: number) => log.push(`write ${stream}`),
      cuEventRecord: (event: number, stream: number) => log.push(`record ${event} on ${stream}`),
    } as Partial<Record<keyof Driver, unknown>> as Driver;
    const decoder = new Decoder(driver, shared, 0, true, {
      failed: (failure) => failed.push(failure),
      lost: () => undefined,
      call: () => undefined,
      output: () => undefined,
      libraryCaller: noLibraries,
      makeRoom: () => false,
      idle: () => undefined,
    });
    shared.streams.set([100]);
    for (let handle = 1; handle < 10; handle++) {
      shared.values[handle] = handle * 1000;
      shared.status[handle] = HANDLE.live;
    }
    shared.values[FUNC] = 7;
    shared.values[33] = 33;
    const ring = new RingWriter(
      shared,
      () => undefined,
      () => undefined,
    );
    return {
      shared,
      decoder,
      failed,
      take: () => log.splice(0),
      /**
       * Writes a launch that writes `target`, whose address is its first parameter, with `bytes`
       * bytes of parameters.
       */
      launch(
        root: number,
        target: number,
        { stream = 0, access = ACCESS_WRITE, bytes = 8, event = 0 } = {},
      ) {
        const words = (bytes + 3) >> 2;
        const shape = op === OP.launchLine ? [1, 64] : [1, 2, 3, 64, 4, 5];
        const body = ring.begin(op, 0, 8 + shape.length + words, root, stream, event);
        ring.memory.set(
          [
            FUNC,
            ...shape,
            0,
            1 | (bytes << 16),
            target | (access << LINE_ACCESS_SHIFT),
            ...Array.from({ length: words }, () => 0),
          ],
          body,
        );
        ring.commit();
      },
      makeStream(slot: number) {
        const body = ring.begin(OP.streamCreate, 0, 7, 99, -1, 0);
        ring.memory.set([slot, 0, 0], body);
        ring.commit();
      },
      /** Holds a stream until the slot is released, or releases it. */
      hold(slot: number, stream?: number) {
        const body = ring.begin(
          stream === undefined ? OP.release : OP.hold,
          0,
          6,
          0,
          stream ?? -1,
          0,
        );
        ring.memory.set([slot, 1], body);
        ring.commit();
      },
      fence(slot: number, stream: number, value: number) {
        const body = ring.begin(OP.fence, 0, 6, 0, stream, 0);
        ring.memory.set([slot, value], body);
        ring.commit();
      },
    };
  }

  test.each([8, 9, 10, 11, 12])(
    '%i bytes of parameters reach a driver without batches unchanged',
    (bytes) => {
      const { launch, decoder, take } = setUp();
      launch(1, 1, { bytes });
      decoder.drain();
      expect(take()).toEqual([`launch 7 on 100: e803${'00'.repeat(bytes - 2)}`]);
    },
  );

  test(
    'a launch that fails poisons what it would have written, for those after it in ' +
      'the same batch',
    () => {
      const { launch, decoder, take, failed, shared } = setUp([2]);
      launch(1, 1);
      launch(2, 2);
      launch(3, 2, { access: ACCESS_READ });
      launch(4, 3);
      decoder.drain();
      expect(take().map((line) => line.slice(-16, -12))).toEqual(['e803', 'd007', 'b80b']);
      expect(failed).toMatchObject([
        { root: 2, result: CUresult.CUDA_ERROR_INVALID_VALUE },
        { root: 3, cause: failed[0]!.id },
      ]);
      expect([...shared.failure.subarray(1, 4)]).toEqual([0, failed[0]!.id, 0]);
    },
  );

  test(
    'later launches of an operation that failed are skipped, and what they would have written ' +
      'is undefined',
    () => {
      const { launch, decoder, take, failed, shared } = setUp([1]);
      launch(5, 1);
      launch(5, 2, { event: 33 });
      launch(6, 3);
      decoder.drain();
      expect(take().map((line) => line.slice(0, 9))).toEqual([
        'launch 7 ',
        'record 33',
        'launch 7 ',
      ]);
      expect(failed).toMatchObject([{ root: 5 }]);
      expect([...shared.failure.subarray(1, 4)]).toEqual([failed[0]!.id, failed[0]!.id, 0]);
    },
  );

  // The fence was once issued after the launch, and delayed the awaits of the work before it.
  test('a fence that was set aside with its stream is issued before the commands after it', () => {
    const { launch, fence, hold, decoder, take } = setUp();
    hold(5, 0);
    launch(1, 1);
    fence(0, 0, 1);
    launch(2, 2);
    fence(0, 0, 2);
    decoder.drain();
    decoder.fences.settle();
    expect(take()).toEqual([]);
    hold(5);
    while (decoder.drain() || decoder.resumeParked());
    expect(take().map((line) => line.slice(0, 9))).toEqual([
      'launch 7 ',
      'write 100',
      'launch 7 ',
      'write 100',
    ]);
    decoder.fences.settle();
    expect(take()).toEqual([]);
  });

  test('no command of a stream that could not be created reaches the driver, on any path', () => {
    const { launch, makeStream, fence, decoder, take, failed, shared } = setUp();
    makeStream(1);
    launch(1, 1, { stream: 1, event: 33 });
    launch(2, 2, { stream: 1 });
    fence(1, 1, 1);
    decoder.drain();
    decoder.fences.settle();
    expect(shared.slots[SLOT_WORDS + SLOT_FENCE]).toBe(1);
    for (const hot of [false, true]) decoder.fences.now(1, 1, hot ? 3 : 2, hot);
    expect(shared.slots[SLOT_WORDS + SLOT_FENCE]).toBe(3);
    expect(take()).toEqual([]);
    const made = shared.issued[ISSUED_STRIDE + ISSUED_UNMADE]!;
    expect(failed).toMatchObject([
      { root: 99, id: made },
      { root: 1, cause: made, unmade: true },
      { root: 2, cause: made, unmade: true },
    ]);
    expect([...shared.failure.subarray(1, 3)]).toEqual([made, made]);

    launch(3, 3);
    decoder.drain();
    expect(take()).toEqual(['launch 7 on 100: b80b000000000000']);
  });
});
