/**
 * Finds the outputs of a model whose shapes may depend on the values of inputs, not on the inputs'
 * shapes alone: memory cannot be given for those before a run, whatever the model declares. They
 * are found in the model itself (onnx.proto), whose constants are skipped: only the other parts of
 * a file are read. In other formats none are found.
 */
import { open } from 'node:fs/promises';
import { setImmediate } from 'node:timers/promises';

import type { ModelSource as PlacedModel } from './thread/messages.js';

/** Operators whose outputs are not analysed: other graphs make them. */
const OF_GRAPHS: ReadonlySet<string> = new Set([
  'If',
  'Loop',
  'SequenceMap',
  'BeamSearch',
  'GreedySearch',
  'Sampling',
]);

/** Operators whose number of output elements depends on their inputs' values. */
const BY_VALUE: ReadonlySet<string> = new Set([
  'NonZero',
  'NonMaxSuppression',
  'Unique',
  'Compress',
  'StringSplit',
  'ImageDecoder',
  'Tokenizer',
]);

/**
 * Operators with inputs that determine the shape, by their places. Axes do: an extent of 1 is
 * removed, or summed over.
 */
const SHAPE_INPUTS: Readonly<Record<string, readonly number[]>> = {
  Reshape: [1],
  Expand: [1],
  Tile: [1],
  ConstantOfShape: [0],
  Range: [0, 1, 2],
  Slice: [1, 2, 3, 4],
  Resize: [1, 2, 3],
  Upsample: [1],
  Pad: [1, 3],
  TopK: [1],
  OneHot: [1],
  Squeeze: [1],
  Unsqueeze: [1],
  Split: [1],
  ReduceMax: [1],
  ReduceMin: [1],
  ReduceMean: [1],
  ReduceSum: [1],
  ReduceProd: [1],
  ReduceL1: [1],
  ReduceL2: [1],
  ReduceLogSum: [1],
  ReduceLogSumExp: [1],
  ReduceSumSquare: [1],
  CenterCropPad: [1],
  AffineGrid: [1],
  MaxUnpool: [2],
  Col2Im: [1, 2],
  DFT: [1, 2],
  STFT: [1, 3],
  HannWindow: [0],
  HammingWindow: [0],
  BlackmanWindow: [0],
  MelWeightMatrix: [0, 1],
  SequenceAt: [1],
  SplitToSequence: [1],
  SequenceErase: [1],
};
/** Operators that return their input's extents. */
const SHAPES: ReadonlySet<string> = new Set(['Shape', 'Size']);
/** Operators whose values do not follow from their inputs' values. */
const RANDOM = /^(Random|Multinomial|Bernoulli)/;

interface OnnxNode {
  readonly op: string;
  readonly inputs: readonly string[];
  readonly outputs: readonly string[];
}

/** The parts of a graph that are read. */
interface OnnxGraph {
  readonly nodes: readonly OnnxNode[];
  readonly constants: ReadonlySet<string>;
  readonly outputs: readonly string[];
}

/**
 * Returns the names of those outputs. Never rejects: loading reports a file that cannot be read.
 */
export async function outputsByValue(model: PlacedModel): Promise<ReadonlySet<string>> {
  try {
    if ('bytes' in model) return byValue(await readModel(bytesIn(new Uint8Array(model.bytes))));
    const file = await open(model.path);
    try {
      return byValue(await readModel(await bytesOf(file)));
    } finally {
      await file.close();
    }
  } catch {
    return new Set();
  }
}

function byValue({ nodes, constants, outputs }: OnnxGraph): ReadonlySet<string> {
  /**
   * Names of values that inputs' shapes decide, and of tensors whose shapes depend on the values of
   * inputs.
   */
  const [decided, open] = [new Set(constants), new Set<string>()];
  // An input that was left out has no name.
  decided.add('');
  for (const { op, inputs, outputs: made } of nodes) {
    const isOpen =
      OF_GRAPHS.has(op) ||
      inputs.some((name) => open.has(name)) ||
      (BY_VALUE.has(op) && !inputs.every((name) => decided.has(name))) ||
      (SHAPE_INPUTS[op] ?? []).some(
        (place) => inputs[place] !== undefined && !decided.has(inputs[place]),
      );
    const isDecided =
      !RANDOM.test(op) && !isOpen && (SHAPES.has(op) || inputs.every((name) => decided.has(name)));
    for (const name of made) {
      // The number of extents is the rank, which is known for open shapes too.
      if (isOpen && !SHAPES.has(op)) open.add(name);
      if (isDecided) decided.add(name);
    }
  }
  return new Set(outputs.filter((name) => open.has(name)));
}

// Protocol buffers

/** Bytes of a message, read as they are needed. */
interface Bytes {
  readonly length: number;
  /** Returns at least that many bytes from there on, where there are as many. */
  at(from: number, count: number): Uint8Array | Promise<Uint8Array>;
}

const MOST_OF_NODE = 1 << 16;
const MOST_OF_NAME = 1 << 12;
const WINDOW = 1 << 14;
/** Fields between turns of the event loop: they take some tenths of a millisecond. */
const FIELDS_IN_A_ROW = 500;
const BYTES = 2;
const text = new TextDecoder();

function bytesIn(bytes: Uint8Array): Bytes {
  return { length: bytes.length, at: (from, count) => bytes.subarray(from, from + count) };
}

async function bytesOf(file: Awaited<ReturnType<typeof open>>): Promise<Bytes> {
  const { size } = await file.stat();
  let start = 0;
  let window = new Uint8Array();
  return {
    length: size,
    async at(from, count) {
      if (from < start || from + count > start + window.length) {
        const { buffer, bytesRead } = await file.read(
          new Uint8Array(Math.max(count, WINDOW)),
          0,
          undefined,
          from,
        );
        [start, window] = [from, buffer.subarray(0, bytesRead)];
      }
      return window.subarray(from - start, from - start + count);
    },
  };
}

interface Field {
  readonly number: number;
  readonly wire: number;
  /** The offsets of its contents. */
  readonly from: number;
  readonly end: number;
}

/** Yields the fields of the message at these offsets. @throws where it is none */
async function* fieldsIn(bytes: Bytes, from: number, end: number): AsyncGenerator<Field> {
  let fields = 0;
  for (let at = from; at < end;) {
    if (++fields % FIELDS_IN_A_ROW === 0) await setImmediate();
    const field = fieldAt(await bytes.at(at, 20), at);
    if (field.end > end) throw new Error('a field that is longer than its message');
    yield field;
    at = field.end;
  }
}

function fieldAt(head: Uint8Array, at: number): Field {
  const [tag, afterTag] = varint(head, 0);
  const [number, wire] = [Math.floor(tag / 8), tag % 8];
  if (wire === BYTES) {
    const [length, next] = varint(head, afterTag);
    return { number, wire, from: at + next, end: at + next + length };
  }
  const size =
    wire === 0 ? varint(head, afterTag)[1] - afterTag : wire === 1 ? 8 : wire === 5 ? 4 : NaN;
  if (Number.isNaN(size)) throw new Error('no wire type');
  return { number, wire, from: at + afterTag, end: at + afterTag + size };
}

function varint(bytes: Uint8Array, at: number): [value: number, next: number] {
  let value = 0;
  for (let i = at, scale = 1; i < bytes.length && i < at + 10; i++, scale *= 128) {
    value += (bytes[i]! & 127) * scale;
    if (bytes[i]! < 128) return [value, i + 1];
  }
  throw new Error('no number');
}

/** Reads a ModelProto: its graph is field 7. */
async function readModel(bytes: Bytes): Promise<OnnxGraph> {
  for await (const { number, wire, from, end } of fieldsIn(bytes, 0, bytes.length)) {
    if (number === 7 && wire === BYTES) return readGraph(bytes, from, end);
  }
  throw new Error('no graph');
}

/** Reads a GraphProto: node 1, initializer 5, output 12, sparse_initializer 15. */
async function readGraph(bytes: Bytes, begin: number, end: number): Promise<OnnxGraph> {
  const nodes: OnnxNode[] = [];
  const constants = new Set<string>();
  const outputs: string[] = [];
  for await (const { number, wire, from, end: next } of fieldsIn(bytes, begin, end)) {
    if (wire !== BYTES) continue;
    const part = async (most: number): Promise<Uint8Array> =>
      await bytes.at(from, Math.min(next - from, most));
    if (number === 1) nodes.push(nodeIn(await part(MOST_OF_NODE)));
    else if (number === 12) outputs.push(...textsIn(await part(MOST_OF_NAME), 1));
    // In a TensorProto the name, 8, comes before raw_data, 9. The fields before the name are short,
    // or the tensor is a constant all the same.
    else if (number === 5)
      for (const name of textsIn(await part(MOST_OF_NAME), 8)) constants.add(name);
  }
  return { nodes, constants, outputs };
}

/** Reads a NodeProto: input 1, output 2, op_type 4; attributes follow. */
function nodeIn(bytes: Uint8Array): OnnxNode {
  return { inputs: textsIn(bytes, 1), outputs: textsIn(bytes, 2), op: textsIn(bytes, 4)[0] ?? '' };
}

/** Returns the texts of a field, as far as the message was read. */
function textsIn(bytes: Uint8Array, number: number): string[] {
  const found: string[] = [];
  for (let at = 0; at < bytes.length;) {
    const field = fieldAt(bytes.subarray(at, at + 20), at);
    if (field.end > bytes.length) break;
    if (field.number === number && field.wire === BYTES)
      found.push(text.decode(bytes.subarray(field.from, field.end)));
    at = field.end;
  }
  return found;
}
