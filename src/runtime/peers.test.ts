/** A decoder's commands that involve other devices, on a driver that only records its calls. */
import { beforeEach, describe, expect, test } from 'vitest';

import type { Driver } from '../driver/driver.js';
import { DriverError } from '../driver/error.js';
import {
  ACCESS_READ,
  ACCESS_WRITE,
  COPY_PEER,
  LINE_ACCESS_SHIFT,
  LINE_WORD_SHIFT,
  OP,
} from './commands.js';
import { Decoder } from './decoder.js';
import { PoisonedError } from './failure.js';
import type { Failure } from './failure.js';
import {
  CLOSED,
  FOREIGN,
  HANDLE,
  MAX_HANDLES,
  ISSUED_CAPTURING,
  ISSUED_STRIDE,
  ISSUED_UNMADE,
  PINNED_BYTES,
  SLOT_CROSSED,
  SLOT_WORDS,
  WORD,
  createShared,
  viewShared,
} from './layout.js';
import type { SharedState } from './layout.js';
import { Peers } from './peers.js';
import { RingWriter, putInt64 } from './ring-writer.js';
import { noLibraries } from './library-calls.js';

let calls: string[];
let answers: Record<string, () => unknown>;

/** Returns the value in `answers`, else success; events and contexts get numbers. */
function recording(): Driver {
  let events = 100;
  const own: Record<string, unknown> = {
    provider: 'libcuda',
    then: undefined,
    launchBatch: undefined,
  };
  return new Proxy(own, {
    get: (target, name: string) =>
      name in target
        ? target[name]
        : (...args: unknown[]) => {
            if (name === 'adoptContext') return { context: 77, addressOffset: 0 };
            if (name === 'cuEventCreate') return events++;
            if (name === 'cuCtxGetCurrent') return 11;
            calls.push(`${name} ${args.filter((arg) => typeof arg === 'number').join(' ')}`);
            return answers[name]?.() ?? 0;
          },
  }) as unknown as Driver;
}

const shared = (): SharedState =>
  viewShared(createShared({ buffer: new SharedArrayBuffer(PINNED_BYTES), byteOffset: 0 }));

let other: SharedState;
beforeEach(() => {
  calls = [];
  answers = {};
  other = shared();
});

const start = (sharesEvents: boolean) => ({
  index: 3,
  control: other.buffers.control,
  context: { context: 77 },
  sharesEvents,
});

describe('Peers', () => {
  test.each([
    [true, HANDLE.announced],
    [false, HANDLE.reached],
  ])('an event is ready once it was announced (driver waits: %s)', (sharesEvents, from) => {
    const peers = new Peers(recording());
    peers.add(start(sharesEvents));
    for (const status of [HANDLE.pending, HANDLE.live, HANDLE.announced, HANDLE.reached]) {
      other.status[9] = status;
      expect([status, peers.ready(3, 9)]).toEqual([status, status >= from]);
    }
  });

  test('a device that was lost, closed or forgotten is not waited for', () => {
    const peers = new Peers(recording());
    expect(peers.ready(3, 9)).toBe(true);
    peers.add(start(true));
    expect(peers.ready(3, 9)).toBe(false);
    for (const word of [700, CLOSED]) {
      other.control[WORD.lost] = word;
      expect(peers.ready(3, 9)).toBe(true);
      peers.wait(3, 9, 5);
    }
    expect(calls).toEqual([]);
    other.control[WORD.lost] = 0;
    peers.drop(3);
    expect(peers.ready(3, 9)).toBe(true);
    expect(calls).toEqual(['disownContext ']);
  });

  test('the driver waits for the event of the other device', () => {
    const peers = new Peers(recording());
    peers.add(start(true));
    other.values[9] = 4321;
    peers.wait(3, 9, 5);
    expect(calls).toEqual([
      'cuEventRecord 100 5',
      'cuStreamWaitEvent 5 4321 0',
      'cuEventRecord 101 5',
    ]);
  });

  test('events around waits that are over are used again', () => {
    const peers = new Peers(recording());
    peers.add(start(true));
    for (let i = 0; i < 200; i++) peers.wait(3, 9, 5);
    const used = new Set(calls.filter((call) => call.startsWith('cuEventRecord')));
    expect(used.size).toBeLessThan(100);
  });

  test(
    'memory has the address of the other device, unless it is undefined there, or the ' +
      'device is gone',
    () => {
      const peers = new Peers(recording());
      peers.add(start(true));
      other.values[9] = 5000;
      const value = 3 * MAX_HANDLES + 9;
      expect([peers.address(value), peers.context(value), peers.context(undefined)]).toEqual([
        5000, 77, 11,
      ]);
      other.failure[9] = 41;
      expect(() => peers.address(value)).toThrow(expect.objectContaining({ failure: 41, peer: 3 }));
      other.control[WORD.lost] = 700;
      expect(() => peers.address(value)).toThrow(PoisonedError);
      expect(() => peers.address(value)).toThrow(expect.objectContaining({ failure: 0, peer: 3 }));
    },
  );

  test('an event that could not be created is not waited for, but is an error', () => {
    const peers = new Peers(recording());
    peers.add(start(true));
    other.status[9] = HANDLE.failed;
    expect(peers.ready(3, 9)).toBe(false);
    other.failure[9] = 41;
    expect(peers.ready(3, 9)).toBe(true);
    expect(() => peers.wait(3, 9, 5)).toThrow(expect.objectContaining({ failure: 41, peer: 3 }));
    expect(calls).toEqual([]);
  });

  test("another device's fault is not this one's", () => {
    const peers = new Peers(recording());
    const fault = (): void => {
      throw new DriverError('cuMemcpyPeerAsync', 700);
    };
    expect(() => peers.callWithPeer(5, fault)).toThrow(expect.objectContaining({ result: 201 }));
    peers.add(start(true));
    answers['cuStreamWaitEvent'] = fault;
    expect(() => peers.wait(3, 9, 5)).not.toThrow();
    answers['cuStreamQuery'] = () => 700;
    expect(() => peers.wait(3, 9, 5)).toThrow(expect.objectContaining({ result: 700 }));
    expect(() => peers.callWithPeer(5, fault)).toThrow(expect.objectContaining({ result: 700 }));
  });

  test('a stream that waits on the device for a lost one is stuck after a second', () => {
    const peers = new Peers(recording());
    peers.add(start(true));
    peers.wait(3, 9, 5);
    let query = 0;
    // The first of the two events around the wait is reached, the second is not.
    answers['cuEventQuery'] = () => (query++ % 2 === 0 ? 0 : 600);
    expect([peers.stuck(1000), peers.stuck(5000)]).toEqual([false, false]);
    other.control[WORD.lost] = CLOSED;
    expect([peers.stuck(5000), peers.stuck(9000)]).toEqual([false, false]);
    other.control[WORD.lost] = 700;
    expect([peers.stuck(9100), peers.stuck(9900), peers.stuck(10_200)]).toEqual([
      false,
      false,
      true,
    ]);
    // Its own work comes before the wait, or the wait is over.
    answers['cuEventQuery'] = () => 600;
    expect([peers.stuck(11_000), peers.stuck(20_000)]).toEqual([false, false]);
    answers['cuEventQuery'] = () => 0;
    expect([peers.stuck(21_000), peers.stuck(30_000)]).toEqual([false, false]);
  });
});

describe('Decoder', () => {
  let own: SharedState;
  let decoder: Decoder;
  let ring: RingWriter;
  let failures: Failure[];

  beforeEach(() => {
    own = shared();
    failures = [];
    decoder = new Decoder(recording(), own, 1 << 20, false, {
      failed: (failure) => failures.push(failure),
      lost: () => undefined,
      call: () => undefined,
      output: () => undefined,
      libraryCaller: noLibraries,
      makeRoom: () => false,
      idle: () => undefined,
    });
    decoder.peers.add(start(true));
    ring = new RingWriter(
      own,
      () => undefined,
      () => undefined,
    );
    own.streams[1] = 51;
    own.streams[2] = 52;
    // Handle 20 here is handle 9 there.
    own.values[20] = 3 * MAX_HANDLES + 9;
    own.failure[20] = FOREIGN;
    other.values[9] = 0x7f00_0000_1000;
  });

  const put = (op: number, stream: number, words: readonly number[], root = 0, event = 0): void => {
    const body = ring.begin(op, 0, 4 + words.length, root, stream, event);
    words.forEach((word, i) => (ring.memory[body + i] = word));
    ring.commit();
  };
  const drain = (): void => {
    while (decoder.drain());
    while (decoder.resumeParked());
  };
  const release = (slot: number): void => put(OP.release, -1, [slot, 1]);

  test('a launch takes memory of another device by its address there', () => {
    let params: number[] = [];
    (decoder as { driver: Driver }).driver = Object.assign(
      Object.create(decoder.driver) as Driver,
      {
        cuLaunchKernel: (...args: unknown[]) =>
          (params = [
            ...(args[9] as Int32Array).slice(args[10] as number, (args[10] as number) + 2),
          ]),
      },
    );
    put(
      OP.launchLine,
      1,
      [
        5,
        1,
        32,
        0,
        1 | (8 << 16),
        20 | (ACCESS_READ << LINE_ACCESS_SHIFT) | (0 << LINE_WORD_SHIFT),
        16,
        0,
      ],
      7,
    );
    drain();
    expect(params).toEqual([0x1010, 0x7f00]);
    expect(failures).toEqual([]);
  });

  test('launches before and after one that uses memory of another device stay in order', () => {
    const order: number[] = [];
    (decoder as { driver: Driver }).driver = Object.assign(
      Object.create(decoder.driver) as Driver,
      {
        cuLaunchKernel: (...args: unknown[]) => order.push(args[1] as number),
      },
    );
    answers['cuLaunchKernel'] = () => order.push(-1);
    own.values[21] = 0x2000;
    for (const [grid, handle] of [
      [1, 21],
      [2, 20],
      [3, 21],
      [4, 21],
    ] as const) {
      put(
        OP.launchLine,
        1,
        [5, grid, 32, 0, 1 | (8 << 16), handle | (ACCESS_READ << LINE_ACCESS_SHIFT), 0, 0],
        grid,
      );
    }
    drain();
    // The fast path has a driver of its own: the launch that is made in full uses the other.
    expect(order).toEqual([-1, 2, -1, -1]);
    expect(failures).toEqual([]);
  });

  test('a captured command neither reads nor sets failures of the other device', () => {
    own.issued[ISSUED_STRIDE + ISSUED_CAPTURING] = 1;
    other.status[9] = HANDLE.live;
    other.failure[9] = 5;
    const launch = [5, 1, 32, 0, 1 | (8 << 16), 20 | (ACCESS_WRITE << LINE_ACCESS_SHIFT), 0, 0];
    put(OP.launchLine, 1, launch, 7);
    drain();
    expect(failures).toEqual([]);
    answers['cuLaunchKernel'] = () => {
      throw new DriverError('cuLaunchKernel', 1);
    };
    put(OP.launchLine, 1, launch, 8);
    drain();
    expect(failures).toMatchObject([{ root: 8, result: 1 }]);
    expect([failures[0]!.elsewhere, other.failure[9], own.failure[20]]).toEqual([
      undefined,
      5,
      FOREIGN,
    ]);
  });

  test('a stream that could not be made gets past its wait for another device', () => {
    own.issued[ISSUED_STRIDE + ISSUED_UNMADE] = 4;
    other.status[9] = HANDLE.announced;
    put(OP.peerWait, 1, [3, 9, 1]);
    drain();
    expect(own.slots[SLOT_WORDS + SLOT_CROSSED]).toBe(1);
    expect([calls, failures]).toEqual([[], []]);
  });

  test('a launch that fails makes the memory that it writes undefined on the other device', () => {
    answers['cuLaunchKernel'] = () => {
      throw new DriverError('cuLaunchKernel', 1);
    };
    other.control[WORD.failures] = 30;
    put(
      OP.launchLine,
      1,
      [5, 1, 32, 0, 1 | (8 << 16), 20 | (ACCESS_WRITE << LINE_ACCESS_SHIFT), 0, 0],
      7,
    );
    drain();
    expect(failures).toMatchObject([{ root: 7, result: 1, elsewhere: [{ peer: 3, id: 31 }] }]);
    expect([other.failure[9], own.failure[20]]).toEqual([31, FOREIGN]);
  });

  test(
    'a copy names both contexts; one of undefined contents names the device they are ' +
      'undefined on',
    () => {
      own.values[21] = 0x2000;
      const copy = [
        21 | (ACCESS_WRITE << 24),
        8,
        0,
        20 | (ACCESS_READ << 24),
        4,
        0,
        64,
        0,
        COPY_PEER,
      ];
      put(OP.copy, 1, copy, 7);
      drain();
      expect(calls).toEqual([`cuMemcpyPeerAsync ${0x2008} 11 ${0x7f00_0000_1004} 77 64 51`]);
      other.failure[9] = 5;
      put(OP.copy, 1, copy, 8);
      drain();
      expect(failures).toMatchObject([{ root: 8, cause: 5, causePeer: 3 }]);
      expect(own.failure[21]).toBe(failures[0]!.id);
    },
  );

  test('a stream stays aside until the other device has announced the event, others go on', () => {
    other.values[9] = 4321;
    other.status[9] = HANDLE.live;
    put(OP.peerWait, 1, [3, 9, 1]);
    put(OP.record, 1, [30]);
    put(OP.record, 2, [31]);
    own.values[30] = 300;
    own.values[31] = 310;
    drain();
    expect(calls).toEqual(['cuEventRecord 310 52']);
    expect(own.slots[SLOT_WORDS + SLOT_CROSSED]).toBe(0);
    other.status[9] = HANDLE.announced;
    drain();
    expect(calls.slice(1)).toEqual([
      'cuEventRecord 100 51',
      'cuStreamWaitEvent 51 4321 0',
      'cuEventRecord 101 51',
      'cuEventRecord 300 51',
    ]);
    expect(own.slots[SLOT_WORDS + SLOT_CROSSED]).toBe(1);
  });

  test('an event is announced once its record has been issued, also one that was set aside', () => {
    own.values[30] = 300;
    own.status[30] = own.status[31] = HANDLE.live;
    put(OP.hold, 1, [8, 1]);
    put(OP.record, 1, [30]);
    put(OP.announce, -1, [30, 0]);
    put(OP.announce, -1, [31, 1]);
    drain();
    expect([own.status[30], own.status[31]]).toEqual([HANDLE.live, HANDLE.announced]);
    decoder.announcements.poll();
    expect(own.status[31]).toBe(HANDLE.reached);
    release(8);
    drain();
    expect(own.status[30]).toBe(HANDLE.announced);
    expect(decoder.announcements.waiting).toBe(false);
  });

  // The wait was once for all records that were set aside when its turn came: here for one that
  // waits for this stream.
  test('a wait that is set aside is only for the records before it', () => {
    own.values[30] = 300;
    put(OP.hold, 1, [8, 1]);
    put(OP.record, 1, [30]);
    put(OP.hold, 2, [9, 1]);
    put(OP.wait, 2, [30, 0]);
    drain();
    put(OP.peerWait, 1, [3, 9, 1]);
    put(OP.record, 1, [30]);
    drain();
    release(8);
    drain();
    release(9);
    drain();
    expect(calls).toContain('cuStreamWaitEvent 52 300 0');
    expect(decoder.parking.count).toBe(1);
  });

  test('a number is written and waited for in 32 and 64 bits', () => {
    own.values[21] = 0x2000;
    const seen: unknown[] = [];
    const note =
      (name: string) =>
      (...args: unknown[]) =>
        seen.push([name, ...args]);
    (decoder as { driver: Driver }).driver = Object.assign(
      Object.create(decoder.driver) as Driver,
      {
        cuStreamWriteValue32: note('write32'),
        cuStreamWaitValue64: note('wait64'),
      },
    );
    const operand = (words: number[]): number[] => {
      const at = new Int32Array(2);
      putInt64(at, 0, 8);
      return [21, at[0]!, at[1]!, ...words];
    };
    put(OP.writeValue, 1, operand([-1, 0, 32]), 7);
    put(OP.waitValue, 2, operand([1, -2147483648, 64, 2]), 8);
    drain();
    expect(seen).toEqual([
      ['write32', 51, 0x2008, 0xffffffff, 0],
      ['wait64', 52, 0x2008, 2n ** 63n + 1n, 2],
    ]);
  });
});
