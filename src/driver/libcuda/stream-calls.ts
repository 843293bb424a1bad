/**
 * Streams and events.
 */
import type { CUresult } from '../../ground/result.js';
import { CUstreamCaptureStatus } from '../flags.js';
import type { CUdeviceptr, CUevent, CUgraph, CUgraphNode, CUstream } from '../handles.js';
import type { CaptureInfo } from '../structures.js';
import type { Binding } from './binding.js';
import type { RowsOf } from './call-row.js';
import { readHandles, writeHandles } from './handle-lists.js';
import { FreshPointer, KeptPointer } from './node-ffi.js';
import { plainCalls } from './plain-calls.js';

/** Streams and stream memory operations. */
export interface StreamCalls {
  cuStreamCreateWithPriority(flags: number, priority: number): CUstream;
  cuStreamDestroy(stream: CUstream): void;
  /**
   * Returns CUDA_SUCCESS, CUDA_ERROR_NOT_READY, or the fault that the stream met; none is thrown.
   */
  cuStreamQuery(stream: CUstream): CUresult;
  /** Waits for the stream. The runtime thread never calls it, except where that returns at once. */
  cuStreamSynchronize(stream: CUstream): void;
  cuStreamWaitEvent(stream: CUstream, event: CUevent, flags: number): void;
  cuStreamGetPriority(stream: CUstream): number;
  cuStreamGetFlags(stream: CUstream): number;
  cuStreamWriteValue32(stream: CUstream, addr: CUdeviceptr, value: number, flags: number): void;
  /** `flags`: CU_STREAM_WAIT_VALUE_GEQ 0, EQ 1, AND 2, NOR 3. */
  cuStreamWaitValue32(stream: CUstream, addr: CUdeviceptr, value: number, flags: number): void;
  cuStreamWriteValue64(stream: CUstream, addr: CUdeviceptr, value: bigint, flags: number): void;
  /** `flags` as for {@link cuStreamWaitValue32}. */
  cuStreamWaitValue64(stream: CUstream, addr: CUdeviceptr, value: bigint, flags: number): void;
  /** `mode`: CU_STREAM_CAPTURE_MODE_GLOBAL 0, THREAD_LOCAL 1, RELAXED 2. */
  cuStreamBeginCapture(stream: CUstream, mode: number): void;
  /** Returns the graph; 0 where the capture was invalidated without an error. */
  cuStreamEndCapture(stream: CUstream): CUgraph;
  cuStreamGetCaptureInfo(stream: CUstream): CaptureInfo;
  /**
   * Captures into an existing graph, after the given nodes. `mode` as for
   * {@link cuStreamBeginCapture}. CUDA 12.3 or later.
   */
  cuStreamBeginCaptureToGraph(
    stream: CUstream,
    graph: CUgraph,
    dependencies: readonly CUgraphNode[],
    mode: number,
  ): void;
  /** `flags`: CU_STREAM_ADD_CAPTURE_DEPENDENCIES 0, SET 1. CUDA 12.3 or later. */
  cuStreamUpdateCaptureDependencies(
    stream: CUstream,
    dependencies: readonly CUgraphNode[],
    flags: number,
  ): void;
}

/** Events. */
export interface EventCalls {
  cuEventCreate(flags: number): CUevent;
  cuEventRecord(event: CUevent, stream: CUstream): void;
  /** Returns CUDA_SUCCESS, CUDA_ERROR_NOT_READY or a fault; none is thrown. */
  cuEventQuery(event: CUevent): CUresult;
  /** Waits for the event. The runtime thread never calls it, except where that returns at once. */
  cuEventSynchronize(event: CUevent): void;
  cuEventDestroy(event: CUevent): void;
  /** Returns milliseconds. */
  cuEventElapsedTime(start: CUevent, end: CUevent): number;
}

export const STREAM_CALLS = {
  cuStreamCreateWithPriority: {
    since: '5.5',
    symbols: ['cuStreamCreateWithPriority'],
    args: ['uintptr_t* phStream', 'uint32_t flags', 'int priority'],
    plain: (flags, priority) => `flags ${flags}, priority ${priority}`,
  },
  cuStreamDestroy: {
    since: '4.0',
    symbols: ['cuStreamDestroy_v2'],
    args: ['uintptr_t hStream'],
    plain: true,
  },
  cuStreamQuery: {
    since: '2.0',
    symbols: ['cuStreamQuery'],
    args: ['uintptr_t hStream'],
    nodeFfi: true,
  },
  cuStreamSynchronize: {
    since: '2.0',
    symbols: ['cuStreamSynchronize'],
    args: ['uintptr_t hStream'],
    plain: true,
  },
  cuStreamWaitEvent: {
    since: '3.2',
    symbols: ['cuStreamWaitEvent'],
    args: ['uintptr_t hStream', 'uintptr_t hEvent', 'uint32_t Flags'],
  },
  cuStreamGetPriority: {
    since: '5.5',
    symbols: ['cuStreamGetPriority'],
    args: ['uintptr_t hStream', 'int* priority'],
    plain: true,
  },
  cuStreamGetFlags: {
    since: '5.5',
    symbols: ['cuStreamGetFlags'],
    args: ['uintptr_t hStream', 'uint32_t* flags'],
    plain: true,
  },
  // The first version of these four works only where an option of the kernel module allows it.
  cuStreamWriteValue32: {
    since: '8.0',
    symbols: ['cuStreamWriteValue32_v2', 'cuStreamWriteValue32'],
    args: ['uintptr_t stream', 'uintptr_t addr', 'uint32_t value', 'uint32_t flags'],
    nodeFfi: true,
  },
  cuStreamWaitValue32: {
    since: '8.0',
    symbols: ['cuStreamWaitValue32_v2', 'cuStreamWaitValue32'],
    args: ['uintptr_t stream', 'uintptr_t addr', 'uint32_t value', 'uint32_t flags'],
  },
  cuStreamWriteValue64: {
    since: '9.0',
    symbols: ['cuStreamWriteValue64_v2', 'cuStreamWriteValue64'],
    args: ['uintptr_t stream', 'uintptr_t addr', 'uint64_t value', 'uint32_t flags'],
    plain: true,
  },
  cuStreamWaitValue64: {
    since: '9.0',
    symbols: ['cuStreamWaitValue64_v2', 'cuStreamWaitValue64'],
    args: ['uintptr_t stream', 'uintptr_t addr', 'uint64_t value', 'uint32_t flags'],
    plain: true,
  },
  cuStreamBeginCapture: {
    since: '10.1',
    symbols: ['cuStreamBeginCapture_v2'],
    args: ['uintptr_t hStream', 'int mode'],
    plain: (_stream, mode) => `mode ${mode}`,
  },
  cuStreamEndCapture: {
    since: '10.0',
    symbols: ['cuStreamEndCapture'],
    args: ['uintptr_t hStream', 'uintptr_t phGraph'],
  },
  cuStreamGetCaptureInfo_v2: {
    since: '11.3',
    symbols: ['cuStreamGetCaptureInfo_v2'],
    args: [
      'uintptr_t hStream',
      'uintptr_t captureStatus_out',
      'uintptr_t id_out',
      'uintptr_t graph_out',
      'uintptr_t dependencies_out',
      'uintptr_t numDependencies_out',
    ],
  },
  cuStreamGetCaptureInfo_v1: {
    since: '10.1',
    symbols: ['cuStreamGetCaptureInfo'],
    args: ['uintptr_t hStream', 'uintptr_t captureStatus_out', 'uintptr_t id_out'],
  },
  // Their signatures before 12.3 have no edge data; conditional nodes need a newer driver anyway.
  cuStreamUpdateCaptureDependencies: {
    since: '12.3',
    symbols: ['cuStreamUpdateCaptureDependencies_v2'],
    args: [
      'uintptr_t hStream',
      'uintptr_t dependencies',
      'uintptr_t dependencyData',
      'size_t numDependencies',
      'uint32_t flags',
    ],
  },
  cuStreamBeginCaptureToGraph: {
    since: '12.3',
    symbols: ['cuStreamBeginCaptureToGraph'],
    args: [
      'uintptr_t hStream',
      'uintptr_t hGraph',
      'uintptr_t dependencies',
      'uintptr_t dependencyData',
      'size_t numDependencies',
      'int mode',
    ],
  },
  cuEventCreate: {
    since: '2.0',
    symbols: ['cuEventCreate'],
    args: ['uintptr_t* phEvent', 'uint32_t Flags'],
    plain: (flags) => `flags ${flags}`,
  },
  cuEventRecord: {
    since: '2.0',
    symbols: ['cuEventRecord'],
    args: ['uintptr_t hEvent', 'uintptr_t hStream'],
  },
  cuEventQuery: { since: '2.0', symbols: ['cuEventQuery'], args: ['uintptr_t hEvent'] },
  cuEventSynchronize: {
    since: '2.0',
    symbols: ['cuEventSynchronize'],
    args: ['uintptr_t hEvent'],
    plain: true,
  },
  cuEventDestroy: {
    since: '4.0',
    symbols: ['cuEventDestroy_v2'],
    args: ['uintptr_t hEvent'],
    plain: true,
  },
  cuEventElapsedTime: {
    since: '2.0',
    symbols: ['cuEventElapsedTime_v2', 'cuEventElapsedTime'],
    args: ['float* pMilliseconds', 'uintptr_t hStart', 'uintptr_t hEnd'],
    plain: true,
  },
} as const satisfies RowsOf<StreamCalls & EventCalls>;

export function streamCalls(binding: Binding): StreamCalls & EventCalls {
  const { koffi, calls, pointerCalls, scratch } = binding;
  const out0 = scratch.address;
  const out1 = out0 + 8;
  const {
    cuEventRecord,
    cuStreamWaitValue32,
    cuStreamWaitEvent,
    cuStreamQuery,
    cuStreamWriteValue32,
    cuStreamEndCapture,
    cuStreamGetCaptureInfo_v1,
    cuStreamGetCaptureInfo_v2,
    cuStreamBeginCaptureToGraph,
    cuStreamUpdateCaptureDependencies,
    cuEventQuery,
  } = calls;
  const { cuStreamQuery: queryPointer, cuStreamWriteValue32: writePointer } = pointerCalls;
  const queried = new KeptPointer();
  const writing = new KeptPointer();
  const written = new KeptPointer();
  const word = new FreshPointer();

  return {
    ...plainCalls(binding, STREAM_CALLS),
    cuEventRecord(event, stream) {
      const r = cuEventRecord.run(event, stream);
      if (r !== 0) throw cuEventRecord.failure(r);
    },
    cuStreamWaitValue32(stream, addr, value, flags) {
      const r = cuStreamWaitValue32.run(stream, addr, value, flags);
      if (r !== 0) throw cuStreamWaitValue32.failure(r);
    },
    cuStreamWaitEvent(stream, event, flags) {
      const r = cuStreamWaitEvent.run(stream, event, flags);
      if (r !== 0) throw cuStreamWaitEvent.failure(r);
    },
    cuStreamQuery(stream) {
      return queryPointer === undefined
        ? cuStreamQuery.run(stream)
        : queryPointer(queried.of(stream));
    },
    cuStreamWriteValue32(stream, addr, value, flags) {
      const r =
        writePointer === undefined || flags !== 0
          ? cuStreamWriteValue32.run(stream, addr, value, flags)
          : writePointer(writing.of(stream), written.of(addr), word.of(value), 0n);
      if (r !== 0) throw cuStreamWriteValue32.failure(r);
    },
    cuStreamEndCapture(stream) {
      scratch.setU64(0, 0);
      const r = cuStreamEndCapture.run(stream, out0);
      if (r !== 0) throw cuStreamEndCapture.failure(r);
      return scratch.u64(0);
    },
    cuStreamGetCaptureInfo(stream) {
      scratch.bytes.fill(0, 8, 40); // all but the status are written only while a capture is active
      if (!cuStreamGetCaptureInfo_v2.available) {
        const r = cuStreamGetCaptureInfo_v1.run(stream, out0, out1);
        if (r !== 0) throw cuStreamGetCaptureInfo_v1.failure(r);
        return { status: scratch.i32[0]!, id: scratch.u64(8) };
      }
      const r = cuStreamGetCaptureInfo_v2.run(stream, out0, out1, out0 + 16, out0 + 24, out0 + 32);
      if (r !== 0) throw cuStreamGetCaptureInfo_v2.failure(r);
      const info = { status: scratch.i32[0]!, id: scratch.u64(8) };
      if (info.status !== CUstreamCaptureStatus.CU_STREAM_CAPTURE_STATUS_ACTIVE) return info;
      return {
        ...info,
        graph: scratch.u64(16),
        dependencies: readHandles(koffi, scratch.u64(24), scratch.u64(32)),
      };
    },
    cuStreamBeginCaptureToGraph(stream, graph, dependencies, mode) {
      const nodes = writeHandles(koffi, dependencies);
      const r = cuStreamBeginCaptureToGraph.run(
        stream,
        graph,
        nodes?.address ?? 0,
        0,
        dependencies.length,
        mode,
      );
      if (r !== 0) throw cuStreamBeginCaptureToGraph.failure(r, `mode ${mode}`);
    },
    cuStreamUpdateCaptureDependencies(stream, dependencies, flags) {
      const nodes = writeHandles(koffi, dependencies);
      const r = cuStreamUpdateCaptureDependencies.run(
        stream,
        nodes?.address ?? 0,
        0,
        dependencies.length,
        flags,
      );
      if (r !== 0) throw cuStreamUpdateCaptureDependencies.failure(r, `flags ${flags}`);
    },

    cuEventQuery(event) {
      return cuEventQuery.run(event);
    },
  };
}
