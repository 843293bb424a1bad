import * as fc from '../../../test/fast-check.js';
import { readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { openFake as open, packParams, resultOf } from './testing/open-fake.js';
import type { FakeDevice } from './testing/open-fake.js';
import { order, programs, run, violations } from './testing/stream-programs.js';
import type { Step } from './testing/stream-programs.js';

/** A device whose kernels are loaded, since no module can be loaded while a stream is captured. */
function openFake(): FakeDevice {
  const device = open();
  device.kernel('empty');
  return device;
}

/** Captures what `calls` queues on the device's stream. */
function captured({ cu, stream }: FakeDevice, calls: () => void, mode = 0): number {
  cu.cuStreamBeginCapture(stream, mode);
  calls();
  return cu.cuStreamEndCapture(stream);
}

test(
  'a random program captured and replayed does the work that it does directly, in an order ' +
    'that CUDA allows',
  { tags: 'random' },
  () => {
    const device = openFake();
    const { cu } = device;
    const list = cu.cuMemAlloc(4096);
    const sink = cu.cuMemAlloc(4);
    const streams = [0, 1, 2].map(() => cu.cuStreamCreateWithPriority(1, 0));
    fc.assert(
      fc.property(programs(3, 3, false), (body) => {
        const events = [0, 1, 2, 3, 4, 5].map(() => cu.cuEventCreate(2));
        // Fork from the first stream and join it at the end, so that the program is one capture.
        // Events of the body are recorded first, since an event from outside cannot be waited for.
        const program: Step[] = [
          { do: 'record', stream: 0, event: 3 },
          { do: 'wait', stream: 1, event: 3 },
          { do: 'wait', stream: 2, event: 3 },
          ...[0, 1, 2].map((event): Step => ({ do: 'record', stream: 0, event })),
          ...body,
          { do: 'record', stream: 1, event: 4 },
          { do: 'record', stream: 2, event: 5 },
          { do: 'wait', stream: 0, event: 4 },
          { do: 'wait', stream: 0, event: 5 },
        ];
        const clear = (): void => cu.cuMemsetD32Async(list, 0, 1024, streams[0]!);
        clear();
        const amount = run(device, program, streams, events, list, sink);
        cu.cuCtxSynchronize();
        const direct = device.read(list, amount + 1);

        cu.cuStreamBeginCapture(streams[0]!, 0);
        run(device, program, streams, events, list, sink);
        const graph = cu.cuStreamEndCapture(streams[0]!);
        const exec = cu.cuGraphInstantiate(graph, 0);
        const pairs = order(program, 3);
        for (let replay = 0; replay < 2; replay++) {
          clear();
          cu.cuGraphLaunch(exec, streams[0]!);
          cu.cuCtxSynchronize();
          const replayed = device.read(list, amount + 1);
          expect([...replayed].sort()).toEqual([...direct].sort());
          expect(violations(replayed.slice(1), pairs)).toEqual([]);
        }
        cu.cuGraphExecDestroy(exec);
        cu.cuGraphDestroy(graph);
      }),
      { numRuns: 100 },
    );
  },
);

test('nothing runs while a stream is captured', () => {
  const device = openFake();
  const { cu, kernel, launch, stream, read } = device;
  const out = cu.cuMemAlloc(4);
  cu.cuMemsetD32Async(out, 1, 1, stream);
  cu.cuStreamSynchronize(stream);
  const graph = captured(device, () => {
    launch(kernel('store'), stream, [[out], 5]);
    expect(cu.cuStreamGetCaptureInfo(stream).status).toBe(1);
    while (cu.poll(100));
  });
  expect(cu.cuStreamGetCaptureInfo(stream)).toEqual({ status: 0, id: 0 });
  while (cu.poll(100));
  expect(read(out, 1)).toEqual([1]);
  cu.cuGraphLaunch(cu.cuGraphInstantiate(graph, 0), stream);
  cu.cuStreamSynchronize(stream);
  expect(read(out, 1)).toEqual([5]);
});

test('each call becomes a node of its type', () => {
  const device = openFake();
  const { cu, kernel, launch, stream, host } = device;
  const a = cu.cuMemAlloc(64);
  const h = host(64);
  const graph = captured(device, () => {
    launch(kernel('empty'), stream);
    cu.cuMemcpyHtoDAsync(a, h.address, 64, stream);
    cu.cuMemsetD8Async(a, 0, 64, stream);
    cu.cuStreamWriteValue32(stream, h.address, 1, 0);
    cu.cuMemFreeAsync(cu.cuMemAllocAsync(100, stream), stream);
  });
  expect(cu.cuGraphGetNodes(graph).map((node) => cu.cuGraphNodeGetType(node))).toEqual([
    0, 1, 2, 12, 10, 11,
  ]);
  const path = join(tmpdir(), `async-cuda-${process.pid}.dot`);
  cu.cuGraphDebugDotPrint(graph, path, 0);
  const dot = readFileSync(path, 'utf8');
  expect(dot).toContain('empty <<<(1,1,1), (1,1,1), 0>>>');
  expect(dot.match(/->/g)).toHaveLength(5);
  expect(resultOf(() => cu.cuGraphDebugDotPrint(graph, '/nowhere/x.dot', 0))).toBe(
    'CUDA_ERROR_OPERATING_SYSTEM',
  );
});

test('a stream that joined must be waited for, else UNJOINED', () => {
  const { cu, kernel, launch, stream } = openFake();
  const other = cu.cuStreamCreateWithPriority(1, 0);
  const event = cu.cuEventCreate(0);
  cu.cuStreamBeginCapture(stream, 0);
  cu.cuEventRecord(event, stream);
  cu.cuStreamWaitEvent(other, event, 0);
  launch(kernel('empty'), other);
  expect(cu.cuStreamGetCaptureInfo(other)).toMatchObject({
    status: 1,
    id: cu.cuStreamGetCaptureInfo(stream).id,
  });
  expect(resultOf(() => cu.cuStreamEndCapture(stream))).toBe('CUDA_ERROR_STREAM_CAPTURE_UNJOINED');
  expect(cu.cuStreamGetCaptureInfo(other).status).toBe(0);
  launch(kernel('empty'), other);
  cu.cuCtxSynchronize();
});

test('ending a capture on another stream than it began on is UNMATCHED', () => {
  const { cu, stream } = openFake();
  const other = cu.cuStreamCreateWithPriority(1, 0);
  const event = cu.cuEventCreate(0);
  cu.cuStreamBeginCapture(stream, 0);
  cu.cuEventRecord(event, stream);
  cu.cuStreamWaitEvent(other, event, 0);
  expect(resultOf(() => cu.cuStreamEndCapture(other))).toBe('CUDA_ERROR_STREAM_CAPTURE_UNMATCHED');
  expect(resultOf(() => cu.cuStreamEndCapture(stream))).toBe(
    'CUDA_ERROR_STREAM_CAPTURE_INVALIDATED',
  );
});

test('waiting for an event from outside the capture is ISOLATION, unless external', () => {
  const { cu, kernel, launch, stream, host } = openFake();
  const gate = host(8);
  const other = cu.cuStreamCreateWithPriority(1, 0);
  const event = cu.cuEventCreate(0);
  cu.cuEventRecord(event, other);
  cu.cuStreamBeginCapture(stream, 0);
  expect(resultOf(() => cu.cuStreamWaitEvent(stream, event, 0))).toBe(
    'CUDA_ERROR_STREAM_CAPTURE_ISOLATION',
  );
  expect(cu.cuStreamGetCaptureInfo(stream).status).toBe(2);
  expect(resultOf(() => launch(kernel('empty'), stream))).toBe(
    'CUDA_ERROR_STREAM_CAPTURE_INVALIDATED',
  );
  expect(resultOf(() => cu.cuStreamEndCapture(stream))).toBe(
    'CUDA_ERROR_STREAM_CAPTURE_INVALIDATED',
  );

  cu.cuStreamBeginCapture(stream, 0);
  cu.cuStreamWaitEvent(stream, event, 1);
  cu.cuStreamWriteValue32(stream, gate.address + 4, 1, 0);
  const exec = cu.cuGraphInstantiate(cu.cuStreamEndCapture(stream), 0);
  cu.cuStreamWaitValue32(other, gate.address, 1, 0);
  cu.cuEventRecord(event, other);
  cu.cuGraphLaunch(exec, stream);
  while (cu.poll(1000));
  expect(gate.words[1]).toBe(0);
  gate.words[0] = 1;
  while (cu.poll(1000));
  expect(gate.words[1]).toBe(1);
});

test('queries and synchronization of a capture are refused and invalidate it', () => {
  const { cu, stream } = openFake();
  const event = cu.cuEventCreate(0);
  const forbidden: [() => unknown, string | number][] = [
    [() => cu.cuStreamQuery(stream), 900],
    [() => resultOf(() => cu.cuStreamSynchronize(stream)), 'CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED'],
    [() => resultOf(() => cu.cuCtxSynchronize()), 'CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED'],
    [() => cu.cuEventQuery(event), 907],
    [() => resultOf(() => cu.cuEventSynchronize(event)), 'CUDA_ERROR_CAPTURED_EVENT'],
    [() => resultOf(() => cu.cuMemAlloc(4)), 'CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED'],
    [
      () => resultOf(() => cu.cuModuleLoadDataEx('empty', {})),
      'CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED',
    ],
  ];
  for (const [call, result] of forbidden) {
    cu.cuStreamBeginCapture(stream, 0);
    cu.cuEventRecord(event, stream);
    expect(call()).toBe(result);
    expect(resultOf(() => cu.cuStreamEndCapture(stream))).toBe(
      'CUDA_ERROR_STREAM_CAPTURE_INVALIDATED',
    );
  }
});

test('a relaxed capture allows allocation', () => {
  const device = openFake();
  const { cu } = device;
  const graph = captured(device, () => cu.cuMemAlloc(4), 2);
  expect(cu.cuGraphGetNodes(graph)).toEqual([]);
});

test('the legacy stream cannot be captured, nor used while a blocking stream is', () => {
  const { cu, kernel, launch } = openFake();
  expect(resultOf(() => cu.cuStreamBeginCapture(0, 0))).toBe(
    'CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED',
  );
  const blocking = cu.cuStreamCreateWithPriority(0, 0);
  const empty = kernel('empty');
  cu.cuStreamBeginCapture(blocking, 0);
  expect(resultOf(() => launch(empty, 0))).toBe('CUDA_ERROR_STREAM_CAPTURE_IMPLICIT');
  expect(resultOf(() => cu.cuStreamEndCapture(blocking))).toBe(
    'CUDA_ERROR_STREAM_CAPTURE_INVALIDATED',
  );
});

test('a wait that would merge two captures is MERGE and ends both', () => {
  const { cu, stream } = openFake();
  const other = cu.cuStreamCreateWithPriority(1, 0);
  const event = cu.cuEventCreate(0);
  cu.cuStreamBeginCapture(stream, 0);
  cu.cuStreamBeginCapture(other, 0);
  cu.cuEventRecord(event, stream);
  expect(resultOf(() => cu.cuStreamWaitEvent(other, event, 0))).toBe(
    'CUDA_ERROR_STREAM_CAPTURE_MERGE',
  );
  for (const each of [stream, other])
    expect(resultOf(() => cu.cuStreamEndCapture(each))).toBe(
      'CUDA_ERROR_STREAM_CAPTURE_INVALIDATED',
    );
});

test('beginning twice and ending what never began are ILLEGAL_STATE', () => {
  const { cu, stream } = openFake();
  expect(resultOf(() => cu.cuStreamEndCapture(stream))).toBe('CUDA_ERROR_ILLEGAL_STATE');
  cu.cuStreamBeginCapture(stream, 0);
  expect(resultOf(() => cu.cuStreamBeginCapture(stream, 0))).toBe('CUDA_ERROR_ILLEGAL_STATE');
  cu.cuStreamEndCapture(stream);
});

test('an update changes later launches and not those that are queued', () => {
  const device = openFake();
  const { cu, kernel, launch, stream, read } = device;
  const list = cu.cuMemAlloc(64);
  cu.cuMemsetD32Async(list, 0, 16, stream);
  cu.cuStreamSynchronize(stream);
  const graphOf = (value: number): number =>
    captured(device, () => launch(kernel('append'), stream, [[list], value]));
  const exec = cu.cuGraphInstantiate(graphOf(1), 0);
  cu.cuGraphLaunch(exec, stream);
  expect(cu.cuGraphExecUpdate(exec, graphOf(2))).toEqual({ result: 0, errorNode: 0 });
  cu.cuGraphLaunch(exec, stream);
  cu.cuStreamSynchronize(stream);
  expect(read(list, 3)).toEqual([2, 1, 2]);
});

test('an update to another shape names what changed, and changes nothing', () => {
  const device = openFake();
  const { cu, kernel, launch, stream, host } = device;
  const a = cu.cuMemAlloc(64);
  const h = host(64);
  const empty = kernel('empty');
  const exec = cu.cuGraphInstantiate(
    captured(device, () => {
      launch(empty, stream);
      cu.cuMemcpyHtoDAsync(a, h.address, 64, stream);
    }),
    0,
  );
  const update = (calls: () => void): { result: number; errorNode: number } =>
    cu.cuGraphExecUpdate(exec, captured(device, calls));
  expect(update(() => launch(empty, stream)).result).toBe(2);
  const typed = update(() => {
    launch(empty, stream);
    launch(empty, stream);
  });
  expect(typed.result).toBe(3);
  expect(cu.cuGraphNodeGetType(typed.errorNode)).toBe(0);
  expect(
    update(() => {
      launch(empty, stream);
      cu.cuMemcpyDtoHAsync(h.address, a, 64, stream);
    }).result,
  ).toBe(5);
  cu.cuGraphLaunch(exec, stream);
  cu.cuStreamSynchronize(stream);
});

test('an executable graph never runs beside itself and may be destroyed while it runs', () => {
  const device = openFake();
  const { cu, kernel, launch, stream, read } = device;
  const other = cu.cuStreamCreateWithPriority(1, 0);
  const out = cu.cuMemAlloc(8);
  cu.cuMemsetD32Async(out, 0, 2, stream);
  cu.cuStreamSynchronize(stream);
  const graph = captured(device, () => {
    launch(kernel('count'), stream, [[out], 500_000]);
  });
  const exec = cu.cuGraphInstantiate(graph, 0);
  cu.cuGraphDestroy(graph);
  cu.cuGraphLaunch(exec, stream);
  cu.cuGraphLaunch(exec, other);
  cu.poll(10);
  cu.cuGraphExecDestroy(exec);
  expect(resultOf(() => cu.cuGraphLaunch(exec, stream))).toBe('CUDA_ERROR_INVALID_HANDLE');
  cu.cuCtxSynchronize();
  expect(read(out, 1)).toEqual([2]);
});

test('parallel branches of a graph make progress together', () => {
  const device = openFake();
  const { cu, kernel, launch, stream } = device;
  const other = cu.cuStreamCreateWithPriority(1, 0);
  const [fork, done] = [cu.cuEventCreate(0), cu.cuEventCreate(0)];
  const flag = cu.cuMemAlloc(4);
  const graph = captured(
    device,
    () => {
      cu.cuMemsetD32Async(flag, 0, 1, stream);
      cu.cuEventRecord(fork, stream);
      cu.cuStreamWaitEvent(other, fork, 0);
      launch(kernel('spin'), stream, [[flag], 1]);
      launch(kernel('store'), other, [[flag], 1]);
      cu.cuEventRecord(done, other);
      cu.cuStreamWaitEvent(stream, done, 0);
    },
    2,
  );
  cu.cuGraphLaunch(cu.cuGraphInstantiate(graph, 0), stream);
  cu.cuStreamSynchronize(stream);
});

test('a graph launched into a capture becomes a child', () => {
  const device = openFake();
  const { cu, kernel, launch, stream, read } = device;
  const list = cu.cuMemAlloc(64);
  cu.cuMemsetD32Async(list, 0, 16, stream);
  cu.cuStreamSynchronize(stream);
  const append = kernel('append');
  const inner = cu.cuGraphInstantiate(
    captured(device, () => launch(append, stream, [[list], 2])),
    0,
  );
  const outer = captured(device, () => {
    launch(append, stream, [[list], 1]);
    cu.cuGraphLaunch(inner, stream);
    launch(append, stream, [[list], 3]);
  });
  expect(cu.cuGraphGetNodes(outer).map((node) => cu.cuGraphNodeGetType(node))).toEqual([0, 4, 0]);
  const clone = cu.cuGraphClone(outer);
  cu.cuGraphDestroy(outer);
  cu.cuGraphExecDestroy(inner);
  cu.cuGraphLaunch(cu.cuGraphInstantiate(clone, 0), stream);
  cu.cuStreamSynchronize(stream);
  expect(read(list, 4)).toEqual([3, 1, 2, 3]);
});

test(
  'memory that a graph allocates and keeps is freed by its next launch, where it was ' +
    'instantiated so',
  () => {
    const device = openFake();
    const { cu, kernel, launch, stream, read } = device;
    const store = kernel('store');
    let address = 0;
    const graph = captured(device, () => {
      address = cu.cuMemAllocAsync(4, stream);
      launch(store, stream, [[address], 6]);
    });
    const exec = cu.cuGraphInstantiate(graph, 1);
    for (let i = 0; i < 3; i++) cu.cuGraphLaunch(exec, stream);
    cu.cuStreamSynchronize(stream);
    expect(read(address, 1)).toEqual([6]);
    cu.cuMemFreeAsync(address, stream);
    expect(resultOf(() => cu.cuMemFreeAsync(address, stream))).toBe('CUDA_ERROR_INVALID_VALUE');
  },
);

test('memory that a graph allocates and keeps must be freed before its next launch', () => {
  const device = openFake();
  const { cu, kernel, launch, stream, read } = device;
  const store = kernel('store');
  // The slot of its block is kept for the next launch.
  launch(store, stream, [[cu.cuMemAlloc(4)], 1]);
  cu.cuStreamSynchronize(stream);
  const free = cu.cuMemGetInfo().free;
  let address = 0;
  const graph = captured(device, () => {
    address = cu.cuMemAllocAsync(4, stream);
    launch(store, stream, [[address], 6]);
  });
  expect(resultOf(() => cu.cuMemsetD8Async(address, 0, 4, stream))).toBe(
    'CUDA_ERROR_INVALID_VALUE',
  );
  const exec = cu.cuGraphInstantiate(graph, 0);
  cu.cuGraphLaunch(exec, stream);
  cu.cuStreamSynchronize(stream);
  expect(read(address, 1)).toEqual([6]);
  expect(resultOf(() => cu.cuGraphLaunch(exec, stream))).toBe('CUDA_ERROR_INVALID_VALUE');
  cu.cuMemFreeAsync(address, stream);
  cu.cuGraphLaunch(exec, stream);
  cu.cuMemFreeAsync(address, stream);
  cu.cuStreamSynchronize(stream);
  expect(resultOf(() => cu.cuGraphClone(graph))).toBe('CUDA_ERROR_NOT_SUPPORTED');
  expect(cu.cuGraphExecUpdate(exec, graph).result).toBe(6);
  cu.cuGraphDestroy(graph);
  cu.cuGraphExecDestroy(exec);
  expect(cu.cuMemGetInfo().free).toBeGreaterThan(free - 4096);
});

test('a cooperative launch is captured as such', () => {
  const device = openFake();
  const { cu, kernel, stream, read } = device;
  const flags = cu.cuMemAlloc(4 * 65);
  const chain = kernel('chain');
  const graph = captured(device, () => {
    cu.cuMemsetD32Async(flags, 0, 65, stream);
    cu.cuLaunchKernelEx(
      {
        gridDimX: 64,
        gridDimY: 1,
        gridDimZ: 1,
        blockDimX: 1,
        blockDimY: 1,
        blockDimZ: 1,
        sharedMemBytes: 0,
        hStream: stream,
        attrs: { cooperative: true },
      },
      chain,
      packParams([[flags], 64]),
      0,
      12,
    );
  });
  cu.cuGraphLaunch(cu.cuGraphInstantiate(graph, 0), stream);
  cu.cuStreamSynchronize(stream);
  expect(read(flags, 64)).toEqual(new Array(64).fill(1));
});
