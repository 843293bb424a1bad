/**
 * Small models in the ONNX format, written by hand: protocol buffers with the numbers of
 * onnx.proto.
 */

type Field = readonly [number: number, value: number | bigint | string | Uint8Array];

function varint(value: bigint): number[] {
  const bytes: number[] = [];
  let rest = BigInt.asUintN(64, value);
  do {
    const low = Number(rest & 0x7fn);
    rest >>= 7n;
    bytes.push(rest === 0n ? low : low | 0x80);
  } while (rest !== 0n);
  return bytes;
}

function message(...fields: readonly Field[]): Uint8Array {
  return Uint8Array.from(
    fields.flatMap(([number, value]) => {
      if (typeof value === 'number' || typeof value === 'bigint')
        return [...varint(BigInt(number << 3)), ...varint(BigInt(value))];
      const bytes = typeof value === 'string' ? new TextEncoder().encode(value) : value;
      return [...varint(BigInt((number << 3) | 2)), ...varint(BigInt(bytes.length)), ...bytes];
    }),
  );
}

/** TensorProto.DataType */
export const FLOAT = 1;
export const INT64 = 7;

/** A ValueInfoProto: an extent that is text is a dynamic one, by its name. */
function valueInfo(name: string, type: number, shape: readonly (number | string)[]): Uint8Array {
  const dims = shape.map((extent): Field => [
    1,
    typeof extent === 'number' ? message([1, extent]) : message([2, extent]),
  ]);
  return message([1, name], [2, message([1, message([1, type], [2, message(...dims)])])]);
}

export interface NodeText {
  readonly op: string;
  readonly name?: string;
  readonly inputs: readonly string[];
  readonly outputs: readonly string[];
  readonly attributes?: Readonly<Record<string, string | number>>;
}

function node({ op, name, inputs, outputs, attributes = {} }: NodeText): Uint8Array {
  return message(
    ...inputs.map((input): Field => [1, input]),
    ...outputs.map((output): Field => [2, output]),
    ...(name === undefined ? [] : [[3, name] as const]),
    [4, op],
    ...Object.entries(attributes).map(([key, value]): Field => [
      5,
      typeof value === 'string'
        ? message([1, key], [4, value], [20, 3])
        : message([1, key], [3, value], [20, 2]),
    ]),
  );
}

export interface ModelText {
  readonly nodes: readonly NodeText[];
  readonly inputs: Readonly<
    Record<string, readonly [type: number, shape: readonly (number | string)[]]>
  >;
  readonly outputs: Readonly<
    Record<string, readonly [type: number, shape: readonly (number | string)[]]>
  >;
  /** Constants: float32 of a shape, or int64. */
  readonly constants?: Readonly<
    Record<
      string,
      { readonly shape: readonly number[]; readonly values: Float32Array | BigInt64Array }
    >
  >;
  readonly opset?: number;
}

export function onnxModel({
  nodes,
  inputs,
  outputs,
  constants = {},
  opset = 12,
}: ModelText): Uint8Array {
  const graph = message(
    ...nodes.map((each): Field => [1, node(each)]),
    [2, 'test-model'],
    ...Object.entries(constants).map(([name, { shape, values }]): Field => [
      5,
      message(
        ...shape.map((extent): Field => [1, extent]),
        [2, values instanceof Float32Array ? FLOAT : INT64],
        [8, name],
        [9, new Uint8Array(values.buffer, values.byteOffset, values.byteLength)],
      ),
    ]),
    ...Object.entries(inputs).map(([name, [type, shape]]): Field => [
      11,
      valueInfo(name, type, shape),
    ]),
    ...Object.entries(outputs).map(([name, [type, shape]]): Field => [
      12,
      valueInfo(name, type, shape),
    ]),
  );
  return message([1, 7], [2, 'onnx-example'], [7, graph], [8, message([1, ''], [2, opset])]);
}

/**
 * SIMPLE_ONNX of async-tensorrt's tests with the correct shape of its output: X float[1,2], padded
 * by one row below and one column to the right.
 */
export const simpleOnnx: Uint8Array = onnxModel({
  nodes: [{ op: 'Pad', inputs: ['X', 'Pads'], outputs: ['Y'], attributes: { mode: 'constant' } }],
  inputs: { X: [FLOAT, [1, 2]] },
  outputs: { Y: [FLOAT, [2, 3]] },
  constants: { Pads: { shape: [4], values: BigInt64Array.of(0n, 0n, 1n, 1n) } },
});

/** y = relu(x) of a batch of any size. */
export const dynamicOnnx: Uint8Array = onnxModel({
  nodes: [{ op: 'Relu', name: 'first', inputs: ['x'], outputs: ['y'] }],
  inputs: { x: [FLOAT, ['batch', 4]] },
  outputs: { y: [FLOAT, ['batch', 4]] },
});
