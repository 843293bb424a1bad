/**
 * Conditional nodes of graphs: what a launch does depends on what the device has computed, and the
 * host does not wait.
 *
 * A body is recorded on the stream that has the node: work queued there is part of the body. A body
 * may fork to streams that are not part of the capture around it, and may contain conditional
 * nodes. The node waits for all that was recorded before it, and its launches count as uses of all
 * memory that any of the bodies uses. A body cannot allocate.
 */
import { OP } from '../runtime/commands.js';
import { CudaError } from '../ground/errors.js';
import { checkInteger, checkOptions, invalid } from '../ground/arguments.js';
import { DeviceBuffer } from './buffer.js';
import { checkSupported, loadedSetter, notPrepared } from './condition-setter.js';
import { GraphCondition } from './graph-condition.js';
import { Stream } from './stream.js';

/** Dtypes of buffers that decide a conditional node: every dtype but floats and complex numbers. */
export type ConditionName = 'bool' | 'u8' | 'i8' | 'u16' | 'i16' | 'u32' | 'i32' | 'u64' | 'i64';

/**
 * The condition of a node: a condition that a kernel of the graph sets, or the first element of a
 * buffer, read at the node's place.
 */
export type ConditionSource = GraphCondition | DeviceBuffer<ConditionName>;

/** Queues the work of a body on the stream that it is passed. It is synchronous. */
export type GraphBody = (stream: Stream) => void;

/** The most bodies of a switch. */
const MOST_BODIES = 128;

/** How the kernel derives the condition from an element; see condition-setter.ts. */
const MODE = { itself: 0, nonzero: 1, zero: 2, equals: 3 } as const;

/** CU_GRAPH_COND_TYPE_* */
const IF = 0;
const WHILE = 1;
const SWITCH = 2;

/**
 * The condition of a conditional node of the graph that is being recorded on the stream. Kernels of
 * the graph take it for a `cudaGraphConditionalHandle`, and set it with `cudaGraphSetConditional`;
 * the last value that was set before the node counts. It is made within {@link Stream.capture}, for
 * one node. cuGraphConditionalHandleCreate
 *
 * @param options.initial the value at the beginning of each launch; default 0
 * @example
 * ```ts
 * using stream = device.createStream();
 * using y = device.alloc(i32, 1);
 * await using graph = await stream.capture(() => {
 *   const condition = graphCondition(stream, { initial: 1 }); // kernels of the graph may set it
 *   graphIf(stream, condition, (body) => void y.fill(body, 7));
 * });
 * await graph.launch(stream);
 * console.log(await y.read(stream)); // Int32Array(1) [ 7 ]
 * ```
 * @throws CudaError with code ERR_CUDA_CAPTURE where the stream is not being captured,
 *   ERR_CUDA_UNSUPPORTED before CUDA 12.4
 */
export function graphCondition(stream: Stream, options: { initial?: number } = {}): GraphCondition {
  checkCaptured(stream, 'graphCondition');
  checkOptions('options', options, ['initial']);
  const { initial = 0 } = options;
  checkInteger('options.initial', initial, 0, 0xffffffff);
  checkSupported(stream.device, 'a conditional node', false);
  return new GraphCondition(stream, initial);
}

/**
 * Records a node that runs `then` where the condition is not zero, else `otherwise`. The device
 * decides when the launch reaches the node. cuGraphAddNode with CU_GRAPH_COND_TYPE_IF
 *
 * @param condition a buffer is read by a kernel of the library: see {@link prepareConditions}
 * @example
 * ```ts
 * await prepareConditions(device);
 * using stream = device.createStream();
 * using y = device.alloc(i32, 2);
 * await using graph = await stream.capture(() => {
 *   graphIf(stream, y.slice(0, 1), (body) => void y.fill(body, 7));
 * });
 * await y.write(stream, Int32Array.of(1, 2));
 * await graph.launch(stream);
 * console.log(await y.read(stream)); // Int32Array(2) [ 7, 7 ]
 * ```
 * @throws CudaError with code ERR_CUDA_CAPTURE where the stream is not being captured;
 *   ERR_CUDA_UNSUPPORTED before CUDA 12.4, and for a GraphCondition with `otherwise` before 12.8
 */
export function graphIf(
  stream: Stream,
  condition: ConditionSource,
  then: GraphBody,
  otherwise?: GraphBody,
): void {
  checkCaptured(stream, 'graphIf');
  checkBody('then', then);
  if (otherwise !== undefined) checkBody('otherwise', otherwise);
  const bodies = otherwise === undefined ? [then] : [then, otherwise];
  if (condition instanceof GraphCondition) {
    checkSupported(
      stream.device,
      bodies.length > 1 ? 'an if with an else' : 'an if',
      bodies.length > 1,
    );
    record(stream, condition, IF, bodies);
    return;
  }
  checkBuffer(stream, condition);
  if (hasSeveral(stream)) record(stream, from(stream, condition, MODE.nonzero), IF, bodies);
  else singly(stream, condition, bodies, (index) => (index === 0 ? MODE.nonzero : MODE.zero));
}

/**
 * Records a node that runs `body` repeatedly while the condition is not zero, and not at all where
 * it is zero at first. A kernel before the node and one in the body set a {@link GraphCondition}; a
 * buffer is read there. cuGraphAddNode with CU_GRAPH_COND_TYPE_WHILE
 *
 * @example
 * ```ts
 * await prepareConditions(device);
 * using stream = device.createStream();
 * using left = device.alloc(i32, 1);
 * await using graph = await stream.capture(() => {
 *   graphWhile(stream, left, (body) => void left.fill(body, 0)); // until it is zero
 * });
 * await left.fill(stream, 1);
 * await graph.launch(stream);
 * console.log(await left.read(stream)); // Int32Array(1) [ 0 ]
 * ```
 * @throws as {@link graphIf}
 */
export function graphWhile(stream: Stream, condition: ConditionSource, body: GraphBody): void {
  checkCaptured(stream, 'graphWhile');
  checkBody('body', body);
  checkSupported(stream.device, 'a while', false);
  if (condition instanceof GraphCondition) {
    record(stream, condition, WHILE, [body]);
    return;
  }
  checkBuffer(stream, condition);
  const decides = from(stream, condition, MODE.nonzero);
  record(stream, decides, WHILE, [
    (within): void => {
      const given: unknown = body(within);
      set(within, condition, MODE.nonzero, decides);
      return given as undefined;
    },
  ]);
}

/**
 * Records a node that runs the body whose number equals the condition, and none where there is no
 * such body. cuGraphAddNode with CU_GRAPH_COND_TYPE_SWITCH
 *
 * @param bodies at most 128
 * @example
 * ```ts
 * await prepareConditions(device);
 * using stream = device.createStream();
 * using choice = device.alloc(i32, 1);
 * using y = device.alloc(i32, 1);
 * await using graph = await stream.capture(() => {
 *   graphSwitch(stream, choice, [(body) => void y.fill(body, 7), (body) => void y.fill(body, 8)]);
 * });
 * choice.fill(stream, 1);
 * await graph.launch(stream);
 * console.log(await y.read(stream)); // Int32Array(1) [ 8 ]
 * ```
 * @throws as {@link graphIf}; for a GraphCondition ERR_CUDA_UNSUPPORTED before CUDA 12.8
 */
export function graphSwitch(
  stream: Stream,
  condition: ConditionSource,
  bodies: readonly GraphBody[],
): void {
  checkCaptured(stream, 'graphSwitch');
  if (!Array.isArray(bodies) || bodies.length < 1 || bodies.length > MOST_BODIES)
    throw invalid('bodies', `a list of 1 to ${MOST_BODIES} functions`, bodies);
  [...(bodies as unknown[])].forEach((body, index) => {
    checkBody(`bodies[${index}]`, body);
  });
  if (condition instanceof GraphCondition) {
    checkSupported(stream.device, 'a switch', true);
    record(stream, condition, SWITCH, bodies);
    return;
  }
  checkBuffer(stream, condition);
  if (hasSeveral(stream)) record(stream, from(stream, condition, MODE.itself), SWITCH, bodies);
  else singly(stream, condition, bodies, (index) => MODE.equals + index);
}

/**
 * Records one node for each body, in place of one node with several. All of them read the buffer
 * before the first one runs.
 */
function singly(
  stream: Stream,
  buffer: DeviceBuffer,
  bodies: readonly GraphBody[],
  mode: (index: number) => number,
): void {
  checkSupported(stream.device, 'a conditional node', false);
  const conditions = bodies.map((_, index) => from(stream, buffer, mode(index)));
  bodies.forEach((body, index) => {
    record(stream, conditions[index]!, IF, [body]);
  });
}

/** A condition that is set from the buffer here. */
function from(stream: Stream, buffer: DeviceBuffer, mode: number): GraphCondition {
  const condition = graphCondition(stream);
  set(stream, buffer, mode, condition);
  return condition;
}

function set(stream: Stream, buffer: DeviceBuffer, mode: number, condition: GraphCondition): void {
  const kernel = loadedSetter(stream.device);
  if (kernel instanceof Promise) {
    kernel.catch(() => undefined);
    throw notPrepared(buffer);
  }
  kernel.launch(stream, { grid: 1, block: 1 }, buffer, buffer.dtype.bytes, mode, condition);
}

function record(
  stream: Stream,
  condition: GraphCondition,
  type: number,
  bodies: readonly GraphBody[],
): void {
  condition.take(stream);
  stream.captureScope!.gather(stream);
  put(stream, OP.conditionalNode, condition.handle, type, bodies.length);
  bodies.forEach((body, index) => {
    recordBody(stream, condition, index, body);
  });
}

function recordBody(
  stream: Stream,
  condition: GraphCondition,
  index: number,
  body: GraphBody,
): void {
  const scope = stream.captureScope!.within(stream);
  put(stream, OP.bodyBegin, condition.handle, index);
  try {
    const given: unknown = body(stream);
    if (typeof (given as { then?: unknown } | null | undefined)?.then === 'function') {
      (given as PromiseLike<unknown>).then(undefined, () => undefined);
      throw invalid(
        'body',
        'a function that returns without waiting',
        given,
        'Remove async and await: captured work is only recorded.',
      );
    }
  } finally {
    scope.end();
    put(stream, OP.bodyEnd, condition.handle, index, scope.number);
    scope.release();
  }
}

/** Queues a command of the capture. */
function put(stream: Stream, op: number, ...words: readonly number[]): void {
  const body = stream.begin(op, 4 + words.length, stream.nextRoot());
  words.forEach((word, i) => {
    stream.runtime.ring.memory[body + i] = word;
  });
  stream.commit();
}

function hasSeveral(stream: Stream): boolean {
  return stream.runtime.info.conditionalNodes === 'all';
}

function checkCaptured(stream: unknown, what: string): asserts stream is Stream {
  if (!(stream instanceof Stream)) throw invalid('stream', 'a Stream', stream);
  stream.check();
  if (stream.captureScope === undefined) {
    throw new CudaError(
      'ERR_CUDA_CAPTURE',
      `${what}: ${stream.title} is not being captured. Call it within stream.capture(…).`,
    );
  }
}

function checkBody(argument: string, body: unknown): void {
  if (typeof body !== 'function')
    throw invalid(argument, 'a function that queues work on the stream', body);
}

function checkBuffer(stream: Stream, buffer: unknown): asserts buffer is DeviceBuffer {
  if (!(buffer instanceof DeviceBuffer))
    throw invalid('condition', 'a GraphCondition, or a buffer of whole numbers or bool', buffer);
  if (buffer.dtype.kind === 'float' || buffer.dtype.kind === 'complex')
    throw invalid(
      'condition',
      'a buffer of whole numbers or bool',
      buffer,
      'Compare in a kernel, and write whether it holds.',
    );
  if (buffer.length < 1) throw invalid('condition', 'a buffer of at least one element', buffer);
  checkSupported(stream.device, 'a conditional node', false);
}
