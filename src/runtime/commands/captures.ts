/**
 * Commands that capture streams into graphs, and commands for the conditional nodes that are
 * recorded in a capture.
 */
import { DriverError } from '../../driver/error.js';
import { CUresult } from '../../ground/result.js';
import { HANDLE, ISSUED_CAPTURING, ISSUED_STRIDE } from '../layout.js';
import { command, noOperands } from './command.js';
import type { Command, Read } from './command.js';
import type { OperationDetails } from './trace.js';

/** CU_STREAM_CAPTURE_MODE_RELAXED */
const RELAXED = 2;
const END = { graph: 0, capture: 1 } as const;
const JOIN = { joined: 0, capture: 1 } as const;
const CONDITION = { condition: 0, first: 1 } as const;
const NODE = { condition: 0, type: 1, bodies: 2 } as const;
const BODY = { condition: 0, index: 1 } as const;
const BODY_END = { condition: 0, index: 1, capture: 2 } as const;

const trace: Read<OperationDetails> = () => ({ kind: 'capture', memory: [] });

export const captures = {
  captureBegin: command({
    op: 16,
    call: 'cuStreamBeginCapture',
    words: {},
    length: 0,
    operands: noOperands,
    makes: undefined,
    trace,
    inFlight: undefined,
    copies: undefined,
    takesTime: false,
    visit: 'never',
    launches: 0,
    runsAfterFailure: false,
    withoutStream: ({ shared }, _memory, _body, stream) => {
      shared.issued[stream * ISSUED_STRIDE + ISSUED_CAPTURING] = 1;
      return true;
    },
    mustWait: undefined,
    execute: ({ driver, shared }, _memory, _body, stream) => {
      // The word is set also where the call fails: the commands that are queued until the end of
      // the capture must not run.
      shared.issued[stream * ISSUED_STRIDE + ISSUED_CAPTURING] = 1;
      // In the relaxed mode the second worker and other streams may make their calls during the
      // capture.
      driver.cuStreamBeginCapture(shared.streams[stream]!, RELAXED);
    },
  }),

  /**
   * `joined`: 1 where the stream has become part of a capture by a wait, 0 where it is no longer.
   * `capture`: the number of the capture.
   */
  captureJoin: command({
    op: 21,
    call: '',
    words: JOIN,
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
    mustWait: ({ aside }, memory, body) => {
      // For the driver the stream is part of the capture until that ends, and it would record the
      // next commands.
      const left = memory[body + JOIN.joined] === 0 ? memory[body + JOIN.capture]! : 0;
      return left !== 0 && aside.isEndAside(left)
        ? { reason: 'capture', on: left, value: 0, consumed: false }
        : undefined;
    },
    execute: ({ shared }, memory, body, stream) => {
      shared.issued[stream * ISSUED_STRIDE + ISSUED_CAPTURING] = memory[body + JOIN.joined]!;
    },
  }),

  /** `graph`: the handle that the graph is stored at. `capture`: the number of the capture. */
  captureEnd: command({
    op: 17,
    call: 'cuStreamEndCapture',
    words: END,
    length: 2,
    operands: noOperands,
    makes: END.graph,
    trace,
    inFlight: undefined,
    copies: undefined,
    takesTime: false,
    visit: 'never',
    launches: 0,
    runsAfterFailure: true,
    withoutStream: ({ shared }, memory, body, stream) => {
      shared.issued[stream * ISSUED_STRIDE + ISSUED_CAPTURING] = 0;
      shared.status[memory[body + END.graph]!] = HANDLE.failed;
      return true;
    },
    mustWait: undefined,
    execute: ({ driver, shared }, memory, body, stream) => {
      const handle = memory[body + END.graph]!;
      shared.issued[stream * ISSUED_STRIDE + ISSUED_CAPTURING] = 0;
      try {
        const graph = driver.cuStreamEndCapture(shared.streams[stream]!);
        if (graph === 0)
          throw new DriverError(
            'cuStreamEndCapture',
            CUresult.CUDA_ERROR_STREAM_CAPTURE_INVALIDATED,
            { detail: 'the capture was invalidated' },
          );
        shared.values[handle] = graph;
        shared.status[handle] = HANDLE.live;
      } catch (error) {
        shared.status[handle] = HANDLE.failed;
        throw error;
      }
    },
  }),

  /**
   * `condition`: the handle of the condition of a node in the graph that the stream is captured
   * into. `first`: its value at the beginning of a launch.
   */
  conditionCreate: command({
    op: 36,
    call: 'cuGraphConditionalHandleCreate',
    words: CONDITION,
    length: 2,
    operands: noOperands,
    makes: undefined,
    trace,
    inFlight: undefined,
    copies: undefined,
    takesTime: false,
    visit: 'never',
    launches: 0,
    runsAfterFailure: false,
    withoutStream: 'fails',
    mustWait: undefined,
    execute: ({ conditionals }, memory, body, stream) =>
      conditionals.create(
        stream,
        memory[body + CONDITION.condition]!,
        memory[body + CONDITION.first]! >>> 0,
      ),
  }),

  /**
   * `condition`: the handle of the condition. `type`: CU_GRAPH_COND_TYPE_*. `bodies`: the number of
   * bodies.
   */
  conditionalNode: command({
    op: 37,
    call: 'cuGraphAddNode',
    words: NODE,
    length: 3,
    operands: noOperands,
    makes: undefined,
    trace,
    inFlight: undefined,
    copies: undefined,
    takesTime: false,
    visit: 'never',
    launches: 0,
    runsAfterFailure: false,
    withoutStream: 'fails',
    mustWait: undefined,
    execute: ({ conditionals }, memory, body, stream) =>
      conditionals.add(
        stream,
        memory[body + NODE.condition]!,
        memory[body + NODE.type]!,
        memory[body + NODE.bodies]!,
      ),
  }),

  /** The following commands of the stream are recorded in body `index` of the condition's node. */
  bodyBegin: command({
    op: 38,
    call: 'cuStreamBeginCaptureToGraph',
    words: BODY,
    length: 2,
    operands: noOperands,
    makes: undefined,
    trace,
    inFlight: undefined,
    copies: undefined,
    takesTime: false,
    visit: 'never',
    launches: 0,
    runsAfterFailure: false,
    withoutStream: 'fails',
    mustWait: undefined,
    execute: ({ conditionals }, memory, body, stream) =>
      conditionals.begin(stream, memory[body + BODY.condition]!, memory[body + BODY.index]!),
  }),

  /** `capture`: the number of the body's capture. */
  bodyEnd: command({
    op: 39,
    call: 'cuStreamEndCapture',
    words: BODY_END,
    length: 3,
    operands: noOperands,
    makes: undefined,
    trace,
    inFlight: undefined,
    copies: undefined,
    takesTime: false,
    visit: 'never',
    launches: 0,
    runsAfterFailure: true,
    withoutStream: 'is executed',
    mustWait: undefined,
    execute: ({ conditionals }, memory, body, stream) =>
      conditionals.end(stream, memory[body + BODY_END.condition]!, memory[body + BODY_END.index]!),
  }),

  /** No later command uses the condition. */
  conditionForget: command({
    op: 40,
    call: '',
    words: { condition: 0 },
    length: 1,
    operands: noOperands,
    makes: undefined,
    trace,
    inFlight: undefined,
    copies: undefined,
    takesTime: false,
    visit: 'never',
    launches: 0,
    runsAfterFailure: false,
    withoutStream: 'is executed',
    mustWait: undefined,
    execute: ({ conditionals }, memory, body) => conditionals.forget(memory[body]!),
  }),
} satisfies Record<string, Command>;

/**
 * Returns the number of the capture, or of the body's capture, that a command ends; 0 for any other
 * command.
 */
export function endedCapture(op: number, memory: Int32Array, body: number): number {
  return op === captures.captureEnd.op
    ? memory[body + END.capture]!
    : op === captures.bodyEnd.op
      ? memory[body + BODY_END.capture]!
      : 0;
}
