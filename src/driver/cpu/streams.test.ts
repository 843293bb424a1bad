import * as fc from '../../../test/fast-check.js';
import { expect, test } from 'vitest';
import { messageOf, openFake, resultOf } from './testing/open-fake.js';
import { order, programs, run, violations } from './testing/stream-programs.js';

const NOT_READY = 600;

test(
  'random programs of streams and events run in an order that CUDA allows, whatever the ' +
    'budgets of poll',
  { tags: 'random' },
  () => {
    const device = openFake();
    const { cu } = device;
    const list = cu.cuMemAlloc(4096);
    const sink = cu.cuMemAlloc(4);
    fc.assert(
      fc.property(
        programs(4, 3, true),
        fc.array(fc.integer({ min: -5, max: 0 }), { minLength: 4, maxLength: 4 }),
        (program, priorities) => {
          cu.cuMemsetD32Async(list, 0, 1024, 0);
          cu.cuCtxSynchronize();
          const streams = priorities.map((priority) => cu.cuStreamCreateWithPriority(1, priority));
          const events = [0, 1, 2].map(() => cu.cuEventCreate(2));
          const amount = run(device, program, streams, events, list, sink);
          while (cu.poll(50));
          const [length, ...done] = device.read(list, amount + 1);
          expect(length).toBe(amount);
          expect([...done].sort((a, b) => a - b)).toEqual(
            Array.from({ length: amount }, (_, i) => i + 1),
          );
          expect(violations(done, order(program, 4))).toEqual([]);
          for (const stream of streams) cu.cuStreamDestroy(stream);
        },
      ),
      { numRuns: 120 },
    );
  },
);

test(
  'the legacy stream waits for blocking streams and they for it; non-blocking ' +
    'streams do neither',
  { tags: 'random' },
  () => {
    const device = openFake();
    const { cu } = device;
    const list = cu.cuMemAlloc(4096);
    const sink = cu.cuMemAlloc(4);
    fc.assert(
      fc.property(programs(4, 2, true), (program) => {
        cu.cuMemsetD32Async(list, 0, 1024, 0);
        cu.cuCtxSynchronize();
        const streams = [0, ...[0, 0, 1].map((flags) => cu.cuStreamCreateWithPriority(flags, 0))];
        const events = [0, 1].map(() => cu.cuEventCreate(0));
        const amount = run(device, program, streams, events, list, sink);
        cu.cuCtxSynchronize();
        const [length, ...done] = device.read(list, amount + 1);
        expect(length).toBe(amount);
        expect(violations(done, order(program, 4, 0, new Set([3])))).toEqual([]);
        for (const stream of streams.slice(1)) cu.cuStreamDestroy(stream);
      }),
      { numRuns: 100 },
    );
  },
);

test('the order is the same whatever the budgets of poll', { tags: 'random' }, () => {
  fc.assert(
    fc.property(programs(3, 2, false), fc.constantFrom(0, 7, 60), (program, budget) => {
      const orders = [1e9, budget].map((time) => {
        const device = openFake();
        const { cu } = device;
        const list = cu.cuMemAlloc(4096);
        cu.cuMemsetD32Async(list, 0, 1024, 0);
        cu.cuCtxSynchronize();
        const streams = [0, 1, 2].map((i) => cu.cuStreamCreateWithPriority(1, -i));
        const amount = run(
          device,
          program,
          streams,
          [0, 1].map(() => cu.cuEventCreate(0)),
          list,
          cu.cuMemAlloc(4),
        );
        while (cu.poll(time));
        return device.read(list, amount + 1);
      });
      expect(orders[1]).toEqual(orders[0]);
    }),
    { numRuns: 25 },
  );
});

test('a query returns NOT_READY while there is work, and SUCCESS after it', () => {
  const { cu, kernel, launch, stream } = openFake();
  expect(cu.cuStreamQuery(stream)).toBe(0);
  launch(kernel('empty'), stream);
  expect(cu.cuStreamQuery(stream)).toBe(NOT_READY);
  while (cu.poll(100));
  expect(cu.cuStreamQuery(stream)).toBe(0);
});

test(
  'a wait holds the state that was recorded when it was made, and recording again does not ' +
    'change it',
  () => {
    const { cu, kernel, launch, stream, host } = openFake();
    const [a, b] = [0, 1].map(() => cu.cuStreamCreateWithPriority(1, 0)) as [number, number];
    const event = cu.cuEventCreate(0);
    const gate = host(4);
    launch(kernel('empty'), a);
    cu.cuEventRecord(event, a);
    cu.cuStreamWaitEvent(b, event, 0);
    cu.cuStreamWaitValue32(stream, gate.address, 1, 0);
    cu.cuEventRecord(event, stream);
    while (cu.poll(100));
    expect(cu.cuStreamQuery(b)).toBe(0);
    expect(cu.cuEventQuery(event)).toBe(NOT_READY);
    Atomics.store(gate.words, 0, 1);
    cu.cuEventSynchronize(event);
    expect(cu.cuEventQuery(event)).toBe(0);
  },
);

test('an event that was never recorded is complete and delays nothing', () => {
  const { cu, kernel, launch, stream } = openFake();
  const event = cu.cuEventCreate(0);
  expect(cu.cuEventQuery(event)).toBe(0);
  cu.cuEventSynchronize(event);
  cu.cuStreamWaitEvent(stream, event, 0);
  launch(kernel('empty'), stream);
  expect(cu.poll(1e5)).toBe(false);
  expect(cu.cuStreamQuery(stream)).toBe(0);
});

test('events measure the time between them, in milliseconds of the clock', () => {
  let time = 100;
  const { cu, kernel, launch, stream } = openFake({ now: () => (time += 0.25) });
  const [start, end, untimed, later] = [0, 0, 2, 0].map((flags) => cu.cuEventCreate(flags)) as [
    number,
    number,
    number,
    number,
  ];
  cu.cuEventRecord(start, stream);
  launch(kernel('empty'), stream);
  cu.cuEventRecord(end, stream);
  expect(resultOf(() => cu.cuEventElapsedTime(start, end))).toBe('CUDA_ERROR_NOT_READY');
  cu.cuStreamSynchronize(stream);
  const elapsed = cu.cuEventElapsedTime(start, end);
  expect(elapsed).toBeGreaterThan(0);
  expect(elapsed % 0.25).toBe(0);
  expect(cu.cuEventElapsedTime(end, start)).toBe(-elapsed);
  cu.cuEventRecord(untimed, stream);
  expect(resultOf(() => cu.cuEventElapsedTime(start, untimed))).toBe('CUDA_ERROR_INVALID_HANDLE');
  expect(resultOf(() => cu.cuEventElapsedTime(start, later))).toBe('CUDA_ERROR_INVALID_HANDLE');
});

test('a stream waits for a word of the host and then continues; poll returns false', () => {
  const { cu, kernel, launch, stream, host } = openFake();
  const gate = host(64);
  cu.cuStreamWaitValue32(stream, gate.address + 8, 5, 0);
  launch(kernel('empty'), stream);
  cu.cuStreamWriteValue32(stream, gate.address + 12, 0xffffffff, 0);
  expect(cu.poll(1e6)).toBe(false);
  expect(gate.words[3]).toBe(0);
  Atomics.store(gate.words, 2, 6);
  expect(cu.poll(1e6)).toBe(false);
  expect(gate.words[3]).toBe(-1);
});

test.each([
  ['GEQ', 0, 5, [4, -2147483643], [5, 6, -2147483644]],
  ['EQ', 1, 5, [4, 6], [5]],
  ['AND', 2, 6, [0, 1, 8], [2, 4, 7]],
  ['NOR', 3, 1, [-1, -2], [0, 1]],
] as const)('a wait for a value with %s', (_, flags, value, not, yes) => {
  const { cu, stream, host } = openFake();
  const gate = host(4);
  for (const have of not) {
    gate.words[0] = have;
    const own = cu.cuStreamCreateWithPriority(1, 0);
    cu.cuStreamWaitValue32(own, gate.address, value, flags);
    cu.poll(1e6);
    expect([have, cu.cuStreamQuery(own)]).toEqual([have, NOT_READY]);
  }
  for (const have of yes) {
    gate.words[0] = have;
    cu.cuStreamWaitValue32(stream, gate.address, value, flags);
    cu.poll(1e6);
    expect([have, cu.cuStreamQuery(stream)]).toEqual([have, 0]);
  }
});

test.each([
  ['GEQ', 0, 5n, [4n, 5n + 2n ** 63n], [5n, 2n ** 40n]],
  ['EQ', 1, 2n ** 40n, [0n, 2n ** 41n], [2n ** 40n]],
  ['AND', 2, 2n ** 63n, [0n, 2n ** 62n], [2n ** 63n, 2n ** 64n - 1n]],
  ['NOR', 3, 1n, [2n ** 64n - 1n, 2n ** 64n - 2n], [0n, 1n]],
] as const)('a wait for a 64-bit value with %s', (_, flags, value, not, yes) => {
  const { cu, stream, host } = openFake();
  const gate = host(16);
  const words = new BigUint64Array(gate.words.buffer);
  for (const [have, result] of [
    ...not.map((each) => [each, NOT_READY] as const),
    ...yes.map((each) => [each, 0] as const),
  ]) {
    words[1] = have;
    const own = cu.cuStreamCreateWithPriority(1, 0);
    cu.cuStreamWaitValue64(own, gate.address + 8, value, flags);
    cu.poll(1e6);
    expect([have, cu.cuStreamQuery(own)]).toEqual([have, result]);
  }
  cu.cuStreamWriteValue64(stream, gate.address, 2n ** 64n - 3n, 0);
  cu.poll(1e6);
  expect(words[0]).toBe(2n ** 64n - 3n);
  expect(resultOf(() => cu.cuStreamWriteValue64(stream, gate.address + 4, 1n, 0))).toBe(
    'CUDA_ERROR_INVALID_VALUE',
  );
  expect(resultOf(() => cu.cuStreamWaitValue64(stream, gate.address, 1n, 4))).toBe(
    'CUDA_ERROR_INVALID_VALUE',
  );
});

test(
  'words of device memory serve stream memory operations too; unaligned or unknown ones are ' +
    'INVALID_VALUE',
  () => {
    const { cu, stream, read } = openFake();
    const a = cu.cuMemAlloc(8);
    cu.cuStreamWriteValue32(stream, a + 4, 9, 0);
    cu.cuStreamWaitValue32(stream, a + 4, 9, 1);
    cu.cuStreamSynchronize(stream);
    expect(read(a + 4, 1)).toEqual([9]);
    expect(resultOf(() => cu.cuStreamWriteValue32(stream, a + 2, 9, 0))).toBe(
      'CUDA_ERROR_INVALID_VALUE',
    );
    expect(resultOf(() => cu.cuStreamWriteValue32(stream, a + 8, 9, 0))).toBe(
      'CUDA_ERROR_INVALID_VALUE',
    );
    expect(resultOf(() => cu.cuStreamWaitValue32(stream, a, 9, 4))).toBe(
      'CUDA_ERROR_INVALID_VALUE',
    );
  },
);

test(
  'words of pools and of managed memory are INVALID_VALUE for stream memory operations, as on ' +
    'a GPU',
  () => {
    const { cu, stream, host } = openFake();
    const pool = cu.cuMemPoolCreate({ location: 0 });
    const refused = [
      cu.cuMemAllocAsync(64, stream),
      cu.cuMemAllocFromPoolAsync(64, pool, stream),
      cu.cuMemAllocManaged(64, 1),
    ];
    const taken = [cu.cuMemAlloc(64), cu.cuMemAllocPitch(64, 1, 4).dptr, host(64).address];
    const results = (at: number): string[] => [
      resultOf(() => cu.cuStreamWriteValue32(stream, at + 8, 1, 0)),
      resultOf(() => cu.cuStreamWaitValue32(stream, at + 8, 1, 0)),
      resultOf(() => cu.cuStreamWriteValue64(stream, at + 8, 1n, 0)),
      resultOf(() => cu.cuStreamWaitValue64(stream, at + 8, 1n, 0)),
    ];
    for (const at of refused)
      expect(results(at)).toEqual(Array(4).fill('CUDA_ERROR_INVALID_VALUE'));
    expect(messageOf(() => cu.cuStreamWriteValue32(stream, refused[1]! + 8, 1, 0))).toContain(
      'memory of a pool',
    );
    expect(messageOf(() => cu.cuStreamWaitValue64(stream, refused[2]! + 8, 1n, 0))).toContain(
      'managed memory',
    );
    for (const at of taken) expect(results(at)).toEqual(Array(4).fill('CUDA_SUCCESS'));
    cu.cuStreamSynchronize(stream);
  },
);

test('synchronizing waits for a word that another thread writes', async () => {
  const { Worker } = await import('node:worker_threads');
  const { cu, stream, host } = openFake();
  const gate = host(4);
  const view = cu.hostView(gate.address, 4);
  const worker = new Worker(
    'const { workerData: b } = require("node:worker_threads"); setTimeout(() => ' +
      'Atomics.store(new Int32Array(b), 0, 1), 30)',
    { eval: true, workerData: view.buffer },
  );
  cu.cuStreamWaitValue32(stream, gate.address, 1, 0);
  cu.cuStreamSynchronize(stream);
  expect(cu.cuStreamQuery(stream)).toBe(0);
  await worker.terminate();
});

test('a destroyed stream finishes its work', () => {
  const { cu, kernel, launch, read } = openFake();
  const own = cu.cuStreamCreateWithPriority(1, 0);
  const out = cu.cuMemAlloc(4);
  launch(kernel('store'), own, [[out], 8]);
  cu.cuStreamDestroy(own);
  expect(resultOf(() => launch(kernel('empty'), own))).toBe('CUDA_ERROR_INVALID_HANDLE');
  cu.cuCtxSynchronize();
  expect(read(out, 1)).toEqual([8]);
});

test('priorities are clamped, flags are kept, and unknown flags are refused', () => {
  const { cu } = openFake();
  expect(cu.cuCtxGetStreamPriorityRange()).toEqual({ leastPriority: 0, greatestPriority: -5 });
  expect(cu.cuStreamGetPriority(cu.cuStreamCreateWithPriority(0, -99))).toBe(-5);
  expect(cu.cuStreamGetPriority(cu.cuStreamCreateWithPriority(0, 3))).toBe(0);
  expect(cu.cuStreamGetFlags(cu.cuStreamCreateWithPriority(1, 0))).toBe(1);
  expect(cu.cuStreamGetFlags(0)).toBe(0);
  expect(resultOf(() => cu.cuStreamCreateWithPriority(2, 0))).toBe('CUDA_ERROR_INVALID_VALUE');
});

test('stale handles and handles of another kind are INVALID_HANDLE', () => {
  const { cu, stream } = openFake();
  const event = cu.cuEventCreate(0);
  expect(messageOf(() => cu.cuEventRecord(stream, stream))).toContain(
    `INVALID_HANDLE (400): ${stream} is not a live event`,
  );
  expect(resultOf(() => cu.cuStreamSynchronize(event))).toBe('CUDA_ERROR_INVALID_HANDLE');
  expect(cu.cuStreamQuery(event)).toBe(400);
  expect(cu.cuEventQuery(stream)).toBe(400);
  cu.cuEventDestroy(event);
  expect(resultOf(() => cu.cuEventDestroy(event))).toBe('CUDA_ERROR_INVALID_HANDLE');
  expect(resultOf(() => cu.cuStreamDestroy(0))).toBe('CUDA_ERROR_INVALID_HANDLE');
  expect(cu.cuEventCreate(0)).not.toBe(event);
});

test('a stream of one device waits for an event of another', () => {
  const { cu, context, kernel, launch, stream } = openFake({ devices: 2 });
  const flag = cu.cuMemAlloc(4);
  cu.cuMemsetD32Async(flag, 0, 1, stream);
  launch(kernel('spin'), stream, [[flag], 1]);
  const event = cu.cuEventCreate(0);
  cu.cuEventRecord(event, stream);
  cu.cuCtxSetCurrent(cu.cuDevicePrimaryCtxRetain(1));
  const there = cu.cuStreamCreateWithPriority(1, 0);
  cu.cuStreamWaitEvent(there, event, 0);
  cu.poll(1000);
  expect(cu.cuStreamQuery(there)).toBe(NOT_READY);
  expect(resultOf(() => cu.cuEventRecord(event, there))).toBe('CUDA_ERROR_INVALID_HANDLE');
  cu.cuCtxSetCurrent(context);
  launch(kernel('store'), cu.cuStreamCreateWithPriority(1, 0), [[flag], 1]);
  while (cu.poll(1000));
  expect(cu.cuStreamQuery(there)).toBe(0);
});
