/** NetworkDefinition: what a parser writes a model to, and a builder builds. */
import { checkText, invalid } from '../ground/arguments.js';
import type { TensorInfo } from '../engine/engine.js';
import { dtypeNameOf } from './data-types.js';
import type { OpenTensorRT } from './library.js';
import { NativeHandle } from './native-handle.js';
import type { TensorDescription } from './thread/descriptions.js';

/** What a network consists of, as far as its users see. */
export interface NetworkTensors {
  readonly name: string;
  readonly layers: number;
  readonly inputs: readonly TensorInfo[];
  readonly outputs: readonly TensorInfo[];
}

export class NetworkDefinition extends NativeHandle {
  /** Whether each layer computes in the types that the model gives. */
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

  /** Its inputs and outputs, in their order. */
  async tensors(): Promise<NetworkTensors> {
    const { inputs, outputs, layers, name } = await this.thread.call('networkTensors', this.handle);
    return { name, layers, inputs: inputs.map(infoOf), outputs: outputs.map(infoOf) };
  }

  /**
   * Another name for an input or output. @throws CudaArgumentError where there is none of that name
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
