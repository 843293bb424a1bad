/**
 * Streams and events.
 */
import type { Driver } from '../driver.js';
import { CUstreamCaptureStatus } from '../flags.js';
import type { Binding } from './binding.js';
import { readHandles, writeHandles } from './handle-lists.js';
import { FreshPointer, KeptPointer } from './node-ffi.js';

type StreamCalls = Pick<
  Driver,
  | 'cuStreamCreateWithPriority'
  | 'cuStreamDestroy'
  | 'cuStreamQuery'
  | 'cuStreamSynchronize'
  | 'cuStreamWaitEvent'
  | 'cuStreamGetPriority'
  | 'cuStreamGetFlags'
  | 'cuStreamWriteValue32'
  | 'cuStreamWaitValue32'
  | 'cuStreamWriteValue64'
  | 'cuStreamWaitValue64'
  | 'cuStreamBeginCapture'
  | 'cuStreamEndCapture'
  | 'cuStreamGetCaptureInfo'
  | 'cuStreamBeginCaptureToGraph'
  | 'cuStreamUpdateCaptureDependencies'
  | 'cuEventCreate'
  | 'cuEventRecord'
  | 'cuEventQuery'
  | 'cuEventSynchronize'
  | 'cuEventDestroy'
  | 'cuEventElapsedTime'
>;

export function streamCalls({ koffi, calls, pointerCalls, scratch }: Binding): StreamCalls {
  const out0 = scratch.address;
  const out1 = out0 + 8;
  const {
    cuStreamCreateWithPriority,
    cuStreamDestroy,
    cuStreamQuery,
    cuStreamSynchronize,
    cuStreamWaitEvent,
    cuStreamGetPriority,
    cuStreamGetFlags,
    cuStreamWriteValue32,
    cuStreamWaitValue32,
    cuStreamWriteValue64,
    cuStreamWaitValue64,
    cuStreamBeginCapture,
    cuStreamEndCapture,
    cuStreamGetCaptureInfo_v1,
    cuStreamGetCaptureInfo_v2,
    cuStreamBeginCaptureToGraph,
    cuStreamUpdateCaptureDependencies,
    cuEventCreate,
    cuEventRecord,
    cuEventQuery,
    cuEventSynchronize,
    cuEventDestroy,
    cuEventElapsedTime,
  } = calls;
  const { cuStreamQuery: queryPointer, cuStreamWriteValue32: writePointer } = pointerCalls;
  const queried = new KeptPointer();
  const writing = new KeptPointer();
  const written = new KeptPointer();
  const word = new FreshPointer();

  return {
    cuStreamCreateWithPriority(flags, priority) {
      const r = cuStreamCreateWithPriority.run(out0, flags, priority);
      if (r !== 0)
        throw cuStreamCreateWithPriority.failure(r, `flags ${flags}, priority ${priority}`);
      return scratch.u64(0);
    },
    cuStreamDestroy(stream) {
      const r = cuStreamDestroy.run(stream);
      if (r !== 0) throw cuStreamDestroy.failure(r);
    },
    cuStreamQuery(stream) {
      return queryPointer === undefined
        ? cuStreamQuery.run(stream)
        : queryPointer(queried.of(stream));
    },
    cuStreamSynchronize(stream) {
      const r = cuStreamSynchronize.run(stream);
      if (r !== 0) throw cuStreamSynchronize.failure(r);
    },
    cuStreamWaitEvent(stream, event, flags) {
      const r = cuStreamWaitEvent.run(stream, event, flags);
      if (r !== 0) throw cuStreamWaitEvent.failure(r);
    },
    cuStreamGetPriority(stream) {
      const r = cuStreamGetPriority.run(stream, out0);
      if (r !== 0) throw cuStreamGetPriority.failure(r);
      return scratch.i32[0]!;
    },
    cuStreamGetFlags(stream) {
      const r = cuStreamGetFlags.run(stream, out0);
      if (r !== 0) throw cuStreamGetFlags.failure(r);
      return scratch.u32[0]!;
    },
    cuStreamWriteValue32(stream, addr, value, flags) {
      const r =
        writePointer === undefined || flags !== 0
          ? cuStreamWriteValue32.run(stream, addr, value, flags)
          : writePointer(writing.of(stream), written.of(addr), word.of(value), 0n);
      if (r !== 0) throw cuStreamWriteValue32.failure(r);
    },
    cuStreamWaitValue32(stream, addr, value, flags) {
      const r = cuStreamWaitValue32.run(stream, addr, value, flags);
      if (r !== 0) throw cuStreamWaitValue32.failure(r);
    },
    cuStreamWriteValue64(stream, addr, value, flags) {
      const r = cuStreamWriteValue64.run(stream, addr, value, flags);
      if (r !== 0) throw cuStreamWriteValue64.failure(r);
    },
    cuStreamWaitValue64(stream, addr, value, flags) {
      const r = cuStreamWaitValue64.run(stream, addr, value, flags);
      if (r !== 0) throw cuStreamWaitValue64.failure(r);
    },
    cuStreamBeginCapture(stream, mode) {
      const r = cuStreamBeginCapture.run(stream, mode);
      if (r !== 0) throw cuStreamBeginCapture.failure(r, `mode ${mode}`);
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

    cuEventCreate(flags) {
      const r = cuEventCreate.run(out0, flags);
      if (r !== 0) throw cuEventCreate.failure(r, `flags ${flags}`);
      return scratch.u64(0);
    },
    cuEventRecord(event, stream) {
      const r = cuEventRecord.run(event, stream);
      if (r !== 0) throw cuEventRecord.failure(r);
    },
    cuEventQuery(event) {
      return cuEventQuery.run(event);
    },
    cuEventSynchronize(event) {
      const r = cuEventSynchronize.run(event);
      if (r !== 0) throw cuEventSynchronize.failure(r);
    },
    cuEventDestroy(event) {
      const r = cuEventDestroy.run(event);
      if (r !== 0) throw cuEventDestroy.failure(r);
    },
    cuEventElapsedTime(start, end) {
      const r = cuEventElapsedTime.run(out0, start, end);
      if (r !== 0) throw cuEventElapsedTime.failure(r);
      return scratch.f32[0]!;
    },
  };
}
