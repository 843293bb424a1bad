/** Small ONNX models as bytes: as much of protobuf and of onnx.proto as tests need. */

type Field = readonly [number: number, value: number | string | Uint8Array];

function varint(value: number): number[] {
  const bytes: number[] = [];
  let rest = BigInt.asUintN(64, BigInt(value));
  do {
    bytes.push(Number(rest & 127n) | (rest > 127n ? 128 : 0));
    rest >>= 7n;
  } while (rest > 0n);
  return bytes;
}

/** A message: numbers as varints, texts and messages with their lengths. */
function message(...fields: readonly Field[]): Uint8Array {
  const parts = fields.map(([number, value]) => {
    if (typeof value === 'number')
      return Uint8Array.from([...varint(number * 8), ...varint(value)]);
    const bytes = typeof value === 'string' ? new TextEncoder().encode(value) : value;
    return Buffer.concat([
      Uint8Array.from([...varint(number * 8 + 2), ...varint(bytes.length)]),
      bytes,
    ]);
  });
  return new Uint8Array(Buffer.concat(parts));
}

/** TensorProto.DataType */
export const ONNX = {
  f32: 1,
  u8: 2,
  i8: 3,
  u16: 4,
  i16: 5,
  i32: 6,
  i64: 7,
  string: 8,
  bool: 9,
  f16: 10,
  f64: 11,
  u32: 12,
  u64: 13,
  complex64: 14,
  bf16: 16,
} as const;
export type OnnxType = keyof typeof ONNX;

/** `['x', 'f32', ['batch', 3]]`: a text is the name of an extent, '' one that has none. */
export type Value = readonly [name: string, type: OnnxType, shape: readonly (number | string)[]];

function valueInfo([name, type, shape]: Value): Uint8Array {
  const dims = shape.map((extent): Field => [
    1,
    typeof extent === 'number'
      ? message([1, extent])
      : extent === ''
        ? message()
        : message([2, extent]),
  ]);
  return message([1, name], [2, message([1, message([1, ONNX[type]], [2, message(...dims)])])]);
}

export type Attribute = number | readonly number[] | string;

export interface NodeSpec {
  readonly op: string;
  readonly inputs: readonly string[];
  readonly outputs: readonly string[];
  readonly attributes?: Readonly<Record<string, Attribute>>;
  readonly name?: string;
}

function attribute(name: string, value: Attribute): Uint8Array {
  if (typeof value === 'number') return message([1, name], [3, value], [20, 2]);
  if (typeof value === 'string') return message([1, name], [4, value], [20, 3]);
  return message([1, name], ...value.map((each): Field => [8, each]), [20, 7]);
}

/** A constant of the model. */
export interface Constant {
  readonly name: string;
  readonly type: OnnxType;
  readonly shape: readonly number[];
  readonly data: ArrayBufferView;
}

export interface ModelSpec {
  readonly inputs: readonly Value[];
  readonly outputs: readonly Value[];
  readonly nodes: readonly NodeSpec[];
  readonly constants?: readonly Constant[];
  readonly opset?: number;
}

export function onnxModel({
  inputs,
  outputs,
  nodes,
  constants = [],
  opset = 17,
}: ModelSpec): Uint8Array {
  const graph = message(
    ...nodes.map(({ op, inputs: taken, outputs: given, attributes = {}, name = '' }): Field => [
      1,
      message(
        ...taken.map((each): Field => [1, each]),
        ...given.map((each): Field => [2, each]),
        [3, name],
        [4, op],
        ...Object.entries(attributes).map(([key, value]): Field => [5, attribute(key, value)]),
      ),
    ]),
    [2, 'test'],
    ...constants.map(({ name, type, shape, data }): Field => [
      5,
      message(
        ...shape.map((extent): Field => [1, extent]),
        [2, ONNX[type]],
        [8, name],
        [9, new Uint8Array(data.buffer, data.byteOffset, data.byteLength)],
      ),
    ]),
    ...inputs.map((each): Field => [11, valueInfo(each)]),
    ...outputs.map((each): Field => [12, valueInfo(each)]),
  );
  return message([1, 8], [7, graph], [8, message([1, ''], [2, opset])]);
}

/** c = a + b, of equal shapes. */
export function addModel(
  type: OnnxType = 'f32',
  shape: readonly (number | string)[] = ['n'],
): Uint8Array {
  return onnxModel({
    inputs: [
      ['a', type, shape],
      ['b', type, shape],
    ],
    outputs: [['c', type, shape]],
    nodes: [{ op: 'Add', inputs: ['a', 'b'], outputs: ['c'] }],
  });
}

/** `count` matrix products, one after the other: so many times n³ multiplications. */
export function longModel(n: number, count: number): Uint8Array {
  const names = Array.from({ length: count + 1 }, (_, i) =>
    i === 0 ? 'x' : i === count ? 'y' : `t${i}`,
  );
  const nodes = names
    .slice(1)
    .map((name, i): NodeSpec => ({ op: 'MatMul', inputs: [names[i]!, 'x'], outputs: [name] }));
  return onnxModel({ inputs: [['x', 'f32', [n, n]]], outputs: [['y', 'f32', [n, n]]], nodes });
}

/**
 * Fails where `i` is another number than that of x's elements, with every provider: CUDA's Gather,
 * for example, takes any index.
 */
export const RESHAPE = onnxModel({
  inputs: [
    ['x', 'f32', [4]],
    ['i', 'i64', [1]],
  ],
  outputs: [['y', 'f32', [4]]],
  nodes: [{ op: 'Reshape', inputs: ['x', 'i'], outputs: ['y'] }],
});
