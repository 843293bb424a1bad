/**
 * Streams, stream memory operations and events.
 */
import {
  CUevent_flags,
  CUevent_wait_flags,
  CUstreamCaptureMode,
  CUstreamCaptureStatus,
  CUstreamUpdateCaptureDependencies_flags,
  CUstreamWaitValue_flags,
  CUstream_flags,
  CU_STREAM_LEGACY,
  CU_STREAM_PER_THREAD,
} from '../../flags.js';
import type { EventCalls, StreamCalls } from '../../driver.js';
import { DriverError } from '../../error.js';
import { CUresult } from '../../../ground/result.js';
import { fail, hex, invalidHandle, invalidValue } from '../failure.js';
import { nodesOf } from './graph-calls.js';
import {
  beginCapture,
  endCapture,
  forbidInCapture,
  forbidUnlessRelaxed,
  recordEvent,
  submit,
  waitEvent,
} from '../streams/capture.js';
import type { Machine } from '../machine.js';
import type { ByteSpace } from '../memory/byte-space.js';
import { DeviceMemory } from '../memory/device-memory.js';
import { CpuEvent } from '../streams/event.js';
import { GREATEST_PRIORITY, Stream } from '../streams/stream.js';
import {
  WaitValueOperation,
  WaitWideValueOperation,
  WriteValueOperation,
  WriteWideValueOperation,
} from '../streams/value-operation.js';

export function streamCalls(machine: Machine): StreamCalls {
  /**
   * The memory of a word. As a GPU's driver does (580, on an H200), refuses that of pools and
   * managed memory.
   */
  function wordAt(call: string, addr: number, bytes: number): ByteSpace {
    if (addr % bytes !== 0) invalidValue(call, `the address ${addr} is not a multiple of ${bytes}`);
    const space = machine.space(call, 'addr', addr, bytes, 'any');
    const kind = space instanceof DeviceMemory ? space.around(addr)?.kind : undefined;
    if (kind === 'pool')
      invalidValue(
        call,
        `addr ${hex(addr)} is memory of a pool; only that of cuMemAlloc and page-locked ` +
          'memory serve',
      );
    if (kind === 'managed')
      invalidValue(
        call,
        `addr ${hex(addr)} is managed memory; only that of cuMemAlloc and page-locked memory serve`,
      );
    return space;
  }

  return {
    cuStreamCreateWithPriority(flags, priority) {
      const context = machine.context('cuStreamCreateWithPriority');
      if (
        flags !== CUstream_flags.CU_STREAM_DEFAULT &&
        flags !== CUstream_flags.CU_STREAM_NON_BLOCKING
      ) {
        invalidValue(
          'cuStreamCreateWithPriority',
          `flags is ${flags}; it must be 0 or CU_STREAM_NON_BLOCKING`,
        );
      }
      const clamped = Math.min(0, Math.max(GREATEST_PRIORITY, Math.trunc(priority)));
      const stream = new Stream(machine.newHandle(), context, flags, clamped);
      machine.streams.set(stream.handle, stream);
      context.streams.add(stream);
      return stream.handle;
    },
    /** What is queued still runs. */
    cuStreamDestroy(handle) {
      machine.context('cuStreamDestroy');
      const stream = machine.streams.get(handle);
      if (stream === undefined) {
        const kind =
          handle === 0 || handle === CU_STREAM_LEGACY || handle === CU_STREAM_PER_THREAD
            ? 'stream that can be destroyed'
            : 'stream';
        invalidHandle('cuStreamDestroy', kind, handle);
      }
      const { capture } = stream;
      if (capture !== undefined) {
        capture.invalidate();
        if (capture.origin === stream) {
          capture.end();
          capture.graph.destroy();
        } else {
          capture.members.delete(stream);
        }
      }
      stream.destroyed = true;
      machine.streams.delete(handle);
      if (stream.idle) stream.context.streams.delete(stream);
    },
    cuStreamQuery(handle) {
      try {
        const stream = machine.stream('cuStreamQuery', handle);
        forbidInCapture('cuStreamQuery', stream);
        stream.context.checker?.order.observed(stream, stream.completed);
        return stream.idle ? CUresult.CUDA_SUCCESS : CUresult.CUDA_ERROR_NOT_READY;
      } catch (error) {
        return resultOf(error);
      }
    },
    cuStreamSynchronize(handle) {
      const stream = machine.stream('cuStreamSynchronize', handle);
      forbidInCapture('cuStreamSynchronize', stream);
      const last = stream.submitted;
      machine.waitUntil(() => stream.completed >= last);
      stream.context.checker?.order.observed(stream, last);
      stream.context.checkFault('cuStreamSynchronize');
    },
    cuStreamWaitEvent(handle, event, flags) {
      const stream = machine.stream('cuStreamWaitEvent', handle);
      if (flags !== 0 && flags !== CUevent_wait_flags.CU_EVENT_WAIT_EXTERNAL)
        invalidValue('cuStreamWaitEvent', `flags is ${flags}`);
      waitEvent(
        'cuStreamWaitEvent',
        stream,
        machine.find('cuStreamWaitEvent', 'event', machine.events, event),
        flags !== 0,
      );
    },
    cuStreamGetPriority: (handle) => machine.stream('cuStreamGetPriority', handle).priority,
    cuStreamGetFlags: (handle) => machine.stream('cuStreamGetFlags', handle).flags,
    cuStreamWriteValue32(handle, addr, value, flags) {
      const stream = machine.stream('cuStreamWriteValue32', handle);
      if (flags !== 0 && flags !== 1) invalidValue('cuStreamWriteValue32', `flags is ${flags}`);
      const space = wordAt('cuStreamWriteValue32', addr, 4);
      submit(
        'cuStreamWriteValue32',
        stream,
        WriteValueOperation.take(space, (addr - space.origin) / 4, value | 0),
      );
    },
    cuStreamWaitValue32(handle, addr, value, flags) {
      const stream = machine.stream('cuStreamWaitValue32', handle);
      const condition = flags & ~CUstreamWaitValue_flags.CU_STREAM_WAIT_VALUE_FLUSH;
      if (condition < 0 || condition > CUstreamWaitValue_flags.CU_STREAM_WAIT_VALUE_NOR)
        invalidValue('cuStreamWaitValue32', `flags is ${flags}`);
      const space = wordAt('cuStreamWaitValue32', addr, 4);
      submit(
        'cuStreamWaitValue32',
        stream,
        new WaitValueOperation(space, (addr - space.origin) / 4, value | 0, condition),
      );
    },
    cuStreamWriteValue64(handle, addr, value, flags) {
      const stream = machine.stream('cuStreamWriteValue64', handle);
      if (flags !== 0 && flags !== 1) invalidValue('cuStreamWriteValue64', `flags is ${flags}`);
      const space = wordAt('cuStreamWriteValue64', addr, 8);
      submit(
        'cuStreamWriteValue64',
        stream,
        new WriteWideValueOperation(space, (addr - space.origin) / 8, value),
      );
    },
    cuStreamWaitValue64(handle, addr, value, flags) {
      const stream = machine.stream('cuStreamWaitValue64', handle);
      const condition = flags & ~CUstreamWaitValue_flags.CU_STREAM_WAIT_VALUE_FLUSH;
      if (condition < 0 || condition > CUstreamWaitValue_flags.CU_STREAM_WAIT_VALUE_NOR)
        invalidValue('cuStreamWaitValue64', `flags is ${flags}`);
      const space = wordAt('cuStreamWaitValue64', addr, 8);
      submit(
        'cuStreamWaitValue64',
        stream,
        new WaitWideValueOperation(space, (addr - space.origin) / 8, value, condition),
      );
    },
    cuStreamBeginCapture(handle, mode) {
      const stream = machine.stream('cuStreamBeginCapture', handle);
      if (!(mode >= 0 && mode <= CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED))
        invalidValue('cuStreamBeginCapture', `mode is ${mode}`);
      beginCapture('cuStreamBeginCapture', stream, mode);
    },
    cuStreamEndCapture: (handle) =>
      endCapture('cuStreamEndCapture', machine.stream('cuStreamEndCapture', handle)).handle,
    cuStreamBeginCaptureToGraph(handle, graphHandle, dependencies, mode) {
      const call = 'cuStreamBeginCaptureToGraph';
      const stream = machine.stream(call, handle);
      if (!(mode >= 0 && mode <= CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED))
        invalidValue(call, `mode is ${mode}`);
      const graph = machine.find(call, 'graph', machine.graphs, graphHandle);
      beginCapture(call, stream, mode, { graph, dependencies: nodesOf(call, graph, dependencies) });
    },
    cuStreamUpdateCaptureDependencies(handle, dependencies, flags) {
      const call = 'cuStreamUpdateCaptureDependencies';
      const stream = machine.stream(call, handle);
      const { capture } = stream;
      if (capture === undefined)
        fail(call, CUresult.CUDA_ERROR_ILLEGAL_STATE, `stream ${handle} is not being captured`);
      if (
        flags !== 0 &&
        flags !== CUstreamUpdateCaptureDependencies_flags.CU_STREAM_SET_CAPTURE_DEPENDENCIES
      )
        invalidValue(call, `flags is ${flags}`);
      const nodes = nodesOf(call, capture.graph, dependencies);
      stream.frontier = flags === 0 ? [...new Set([...stream.frontier, ...nodes])] : nodes;
    },
    cuStreamGetCaptureInfo(handle) {
      const { capture, frontier } = machine.stream('cuStreamGetCaptureInfo', handle);
      if (capture === undefined)
        return { status: CUstreamCaptureStatus.CU_STREAM_CAPTURE_STATUS_NONE, id: 0 };
      if (capture.invalid)
        return {
          status: CUstreamCaptureStatus.CU_STREAM_CAPTURE_STATUS_INVALIDATED,
          id: capture.id,
        };
      // From here on the graph can be named, and nodes be added to it.
      capture.graph.publish();
      return {
        status: CUstreamCaptureStatus.CU_STREAM_CAPTURE_STATUS_ACTIVE,
        id: capture.id,
        graph: capture.graph.handle,
        dependencies: frontier.map((node) => node.handle),
      };
    },
  };
}

export function eventCalls(machine: Machine): EventCalls {
  /** The event. One that was recorded in a capture cannot be observed. */
  function observable(call: string, handle: number): CpuEvent {
    const event = machine.find(call, 'event', machine.events, handle);
    if (event.captured !== undefined) {
      event.captured.capture.invalidate();
      fail(
        call,
        CUresult.CUDA_ERROR_CAPTURED_EVENT,
        `event ${handle} was last recorded in a capturing stream`,
      );
    }
    forbidUnlessRelaxed(call, machine);
    return event;
  }

  /** The host has seen that the event is complete. */
  function observed({ stream, sequence }: CpuEvent): void {
    if (stream !== undefined) stream.context.checker?.order.observed(stream, sequence);
  }

  return {
    cuEventCreate(flags) {
      const context = machine.context('cuEventCreate');
      if ((flags & ~7) !== 0) invalidValue('cuEventCreate', `flags is ${flags}`);
      if ((flags & CUevent_flags.CU_EVENT_INTERPROCESS) !== 0) {
        fail(
          'cuEventCreate',
          CUresult.CUDA_ERROR_NOT_SUPPORTED,
          'the CPU device has no events that other processes see',
        );
      }
      const event = new CpuEvent(machine.newHandle(), context, flags);
      machine.events.set(event.handle, event);
      return event.handle;
    },
    cuEventRecord(handle, streamHandle) {
      const stream = machine.stream('cuEventRecord', streamHandle);
      const event = machine.find('cuEventRecord', 'event', machine.events, handle);
      if (event.context !== stream.context) {
        fail(
          'cuEventRecord',
          CUresult.CUDA_ERROR_INVALID_HANDLE,
          'the event and the stream belong to different contexts',
        );
      }
      recordEvent('cuEventRecord', event, stream);
    },
    cuEventQuery(handle) {
      try {
        const event = observable('cuEventQuery', handle);
        event.context.checkFault('cuEventQuery');
        if (event.complete) observed(event);
        return event.complete ? CUresult.CUDA_SUCCESS : CUresult.CUDA_ERROR_NOT_READY;
      } catch (error) {
        return resultOf(error);
      }
    },
    cuEventSynchronize(handle) {
      const event = observable('cuEventSynchronize', handle);
      const { stream, sequence } = event;
      if (stream !== undefined) machine.waitUntil(() => stream.completed >= sequence);
      observed(event);
      event.context.checkFault('cuEventSynchronize');
    },
    cuEventDestroy(handle) {
      machine.find('cuEventDestroy', 'event', machine.events, handle);
      machine.events.delete(handle);
    },
    cuEventElapsedTime(start, end) {
      const call = 'cuEventElapsedTime';
      const events = [observable(call, start), observable(call, end)] as const;
      for (const event of events) {
        if ((event.flags & CUevent_flags.CU_EVENT_DISABLE_TIMING) !== 0) {
          fail(
            call,
            CUresult.CUDA_ERROR_INVALID_HANDLE,
            `event ${event.handle} was made with CU_EVENT_DISABLE_TIMING`,
          );
        }
        if (event.stream === undefined)
          fail(
            call,
            CUresult.CUDA_ERROR_INVALID_HANDLE,
            `event ${event.handle} was never recorded`,
          );
      }
      for (const event of events) {
        if (!event.complete)
          fail(call, CUresult.CUDA_ERROR_NOT_READY, `event ${event.handle} is not complete`);
      }
      return events[1].time - events[0].time;
    },
  };
}

function resultOf(error: unknown): CUresult {
  if (error instanceof DriverError) return error.result;
  throw error;
}
