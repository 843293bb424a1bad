/** The condition of a conditional node of a graph. Kernels set it on the device. */
import { OP } from '../runtime/commands.js';
import { CudaError } from '../ground/errors.js';
import type { CaptureScope } from './capture.js';
import { Resource } from './resource.js';
import type { Stream } from './stream.js';

/**
 * The handle of a condition in commands. It is not memory: there is nothing to keep or to order.
 */
class ConditionResource extends Resource {
  override get isMemory(): boolean {
    return false;
  }
}

/**
 * The condition of a conditional node. Made by {@link graphCondition}, in a capture. Kernels take
 * it for a `cudaGraphConditionalHandle`.
 *
 * @example
 * ```ts
 * using stream = device.createStream();
 * using y = device.alloc(i32, 1);
 * y.fill(stream, 1);
 * await using graph = await stream.capture(() => {
 *   const condition = graphCondition(stream); // 0 at the beginning of each launch
 *   graphIf(stream, condition, (body) => void y.fill(body, 7));
 * });
 * await graph.launch(stream);
 * console.log(await y.read(stream)); // Int32Array(1) [ 1 ]
 * ```
 */
export class GraphCondition {
  /** @internal */
  readonly handle: number;
  /** The resource, for arguments of kernels. @internal */
  readonly resource: Resource;
  /** Offset of the argument: 0, as for every handle. @internal */
  readonly byteOffset = 0;
  /** @internal */
  readonly byteLength = 8;
  private readonly stream: Stream;
  private readonly scope: CaptureScope;
  private taken = false;

  /** @internal */
  constructor(stream: Stream, initial: number) {
    const { runtime } = stream;
    this.stream = stream;
    this.scope = stream.captureScope!;
    this.handle = runtime.handles.take();
    this.resource = new ConditionResource(this.handle);
    this.scope.conditions.push(this.handle);
    const body = stream.begin(OP.conditionCreate, 6, stream.nextRoot());
    runtime.ring.memory[body] = this.handle;
    runtime.ring.memory[body + 1] = initial | 0;
    stream.commit();
  }

  /** Throws for a kernel that is not part of the graph. @internal */
  checkArgument(stream: Stream, argument: string): void {
    if (
      !this.scope.ended &&
      stream.captureScope !== undefined &&
      stream.runtime === this.stream.runtime
    )
      return;
    throw new CudaError(
      'ERR_CUDA_CAPTURE',
      `${argument}: the condition belongs to the capture of ${this.stream.title}: only ` +
        'kernels that are recorded there can set it.',
    );
  }

  /** Assigns the condition to the node that is recorded on `stream` now. @internal */
  take(stream: Stream): void {
    if (this.taken)
      throw new CudaError(
        'ERR_CUDA_CAPTURE',
        'condition: it decides another node already. Make one for each with ' +
          'graphCondition(stream).',
      );
    if (stream.captureScope !== this.scope) {
      throw new CudaError(
        'ERR_CUDA_CAPTURE',
        'condition: it was made in another graph, or outside of the body that the node is ' +
          'in. Make it with graphCondition(stream) where the node is.',
      );
    }
    this.taken = true;
  }

  toString(): string {
    return `GraphCondition of ${this.stream.title}${this.scope.ended ? ', recorded' : ''}`;
  }

  [Symbol.for('nodejs.util.inspect.custom')](): string {
    return this.toString();
  }
}
