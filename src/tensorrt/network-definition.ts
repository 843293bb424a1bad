/** NetworkDefinition: a parser writes a model to it, and a builder builds it. */
import { checkText, invalid } from '../ground/arguments.js';
import type { TensorInfo } from '../engine/engine.js';
import { dtypeNameOf } from './data-types.js';
import type { OpenTensorRT } from './library.js';
import { NativeHandle } from './native-handle.js';
import type { TensorDescription } from './thread/descriptions.js';

/** The public parts of a network. */
export interface NetworkTensors {
  readonly name: string;
  readonly layers: number;
  readonly inputs: readonly TensorInfo[];
  readonly outputs: readonly TensorInfo[];
}

/**
 * A network, into which a parser reads a model. `builder.createNetwork()` makes it.
 * INetworkDefinition
 *
 * @example
 * ```ts no-run
 * await using builder = await Builder.create();
 * const network: NetworkDefinition = await builder.createNetwork({ stronglyTyped: true });
 * await (await OnnxParser.create(network)).parseFile('model.onnx');
 * const { inputs } = await network.tensors();
 * console.log(inputs[0]?.shape); // [ -1, 3, 224, 224 ]
 * ```
 */
export class NetworkDefinition extends NativeHandle {
  /** Whether each layer computes in the types of the model. */
  readonly stronglyTyped: boolean;
  /** @internal */
  readonly library: OpenTensorRT;

  /** @internal */
  constructor(
    builder: NativeHandle,
    number: number,
    stronglyTyped: boolean,
    library: OpenTensorRT,
  ) {
    super(builder.thread, number, 'a network definition', builder);
    this.stronglyTyped = stronglyTyped;
    this.library = library;
  }

  /** Returns its inputs and outputs, in their order. */
  async tensors(): Promise<NetworkTensors> {
    const { inputs, outputs, layers, name } = await this.thread.call('networkTensors', this.handle);
    return { name, layers, inputs: inputs.map(infoOf), outputs: outputs.map(infoOf) };
  }

  /**
   * Renames an input or output.
   *
   * @throws CudaArgumentError where there is none of that name
   */
  async rename(name: string, to: string): Promise<void> {
    checkText('to', to);
    const { inputs, outputs } = await this.tensors();
    for (const [kind, list] of [
      ['input', inputs],
      ['output', outputs],
    ] as const) {
      const index = list.findIndex((tensor) => tensor.name === name);
      if (index !== -1) return this.thread.call('renameTensor', this.handle, kind, index, to);
    }
    throw invalid(
      'name',
      `one of ${[...inputs, ...outputs].map((tensor) => `'${tensor.name}'`).join(', ')}`,
      name,
    );
  }
}

function infoOf({ name, type, shape, dimensions }: TensorDescription): TensorInfo {
  return {
    name,
    dtype: dtypeNameOf(type, name),
    shape,
    ...(dimensions.some((each) => each !== undefined) ? { dimensions } : {}),
  };
}
