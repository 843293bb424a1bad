/** One run of a session on tensors in place. */
import { NativeMemory } from '../../native/native-memory.js';
import type { BindRequest, Bound, MadeValue, PlacedTensor, RunRequest } from './messages.js';
import type { OrtLibrary } from './ort-library.js';
import { typeAndShape } from './session.js';
import { bytesOf } from './type-bytes.js';

/** OrtDeviceAllocator, OrtMemTypeDefault */
const DEVICE_ALLOCATOR = 0;
const DEFAULT_MEMORY = 0;
const PLACES = { cpu: 'Cpu', cuda: 'Cuda' } as const;

/** The library's descriptions of memory, made once for each place, and kept. */
const memoryInfos = new Map<string, number>();

function memoryInfo(
  ort: OrtLibrary,
  { memory, ordinal }: Pick<RunRequest, 'memory' | 'ordinal'>,
): number {
  const id = memory === 'cpu' ? 0 : ordinal;
  const key = `${ort.path} ${memory} ${id}`;
  let info = memoryInfos.get(key);
  if (info === undefined) {
    info = ort.give('CreateMemoryInfo', PLACES[memory], DEVICE_ALLOCATOR, id, DEFAULT_MEMORY);
    memoryInfos.set(key, info);
  }
  return info;
}

/** The memory of an empty tensor: the library takes no null pointer. */
let nothing: NativeMemory | undefined;

function tensorValue(
  ort: OrtLibrary,
  info: number,
  { type, shape, address, bytes }: PlacedTensor,
  empty: number,
): number {
  const extents = new NativeMemory(ort.koffi, Math.max(8, shape.length * 8));
  shape.forEach((extent, i) => {
    extents.setU64(i * 8, extent);
  });
  return ort.give(
    'CreateTensorWithDataAsOrtValue',
    info,
    bytes === 0 ? empty : address,
    bytes,
    extents.address,
    shape.length,
    type,
  );
}

/** Makes values of tensors, and arrays of their pointers and names. */
export function bind(ort: OrtLibrary, request: BindRequest): Bound {
  const { inputNames, outputNames } = request;
  const info = memoryInfo(ort, request);
  const values: number[] = [];
  try {
    const texts = [...inputNames, ...outputNames].map((name) => Buffer.from(`${name}\0`));
    const textBytes = texts.reduce((sum, text) => sum + text.length, 0);
    const count = texts.length;
    // The memory of empty tensors, names, their pointers, values: 8-byte words first.
    const memory = new NativeMemory(ort.koffi, 64 + 16 * count + textBytes);
    const [names, pointers] = [64, 64 + 8 * count];
    let text = 64 + 16 * count;
    texts.forEach((bytes, i) => {
      memory.setU64(names + 8 * i, memory.address + text);
      memory.bytes.set(bytes, text);
      text += bytes.length;
    });
    [...request.inputs, ...request.outputs].forEach((tensor, i) => {
      const value = tensorValue(ort, info, tensor, memory.address);
      values.push(value);
      memory.setU64(pointers + 8 * i, value);
    });
    const outputsFrom = 8 * inputNames.length;
    return {
      values,
      inputNames: memory.address + names,
      inputs: memory.address + pointers,
      outputNames: memory.address + names + outputsFrom,
      outputs: memory.address + pointers + outputsFrom,
      memory: memory.bytes.buffer as SharedArrayBuffer,
    };
  } catch (error) {
    for (const value of values) ort.call('ReleaseValue', value);
    throw error;
  }
}

/** Runs a session. Returns the outputs that the library made; the caller releases them. */
export function run(ort: OrtLibrary, request: RunRequest): (MadeValue | undefined)[] {
  const { session, runOptions, inputNames, outputNames } = request;
  if (request.unset) ort.do('RunOptionsUnsetTerminate', runOptions);
  const info = memoryInfo(ort, request);
  const values: number[] = [];
  const valueOf = (tensor: PlacedTensor): number => {
    nothing ??= new NativeMemory(ort.koffi, 64);
    const value = tensorValue(ort, info, tensor, nothing.address);
    values.push(value);
    return value;
  };
  try {
    const inputs = request.inputs.map(valueOf);
    const outputs = request.outputs.map((output) => (output === undefined ? 0 : valueOf(output)));
    const pointers = new NativeMemory(ort.koffi, (inputs.length + outputs.length) * 8 + 8);
    [...inputs, ...outputs].forEach((pointer, i) => {
      pointers.setU64(i * 8, pointer);
    });
    const outputsAt = inputs.length * 8;
    try {
      ort.do(
        'Run',
        session,
        runOptions,
        inputNames,
        pointers.address,
        inputs.length,
        outputNames,
        outputs.length,
        pointers.address + outputsAt,
      );
    } catch (error) {
      outputs.forEach((given, i) => {
        const made = pointers.u64(outputsAt + i * 8);
        if (given === 0 && made !== 0) ort.call('ReleaseValue', made);
      });
      throw error;
    }
    return outputs.map((given, i) =>
      given === 0 ? made(ort, pointers.u64(outputsAt + i * 8)) : undefined,
    );
  } finally {
    for (const value of values) ort.call('ReleaseValue', value);
  }
}

function made(ort: OrtLibrary, value: number): MadeValue {
  const info = ort.give('GetTensorTypeAndShape', value);
  const { type, shape } = typeAndShape(ort, info);
  ort.call('ReleaseTensorTypeAndShapeInfo', info);
  return {
    value,
    data: ort.give('GetTensorMutableData', value),
    shape,
    bytes: shape.reduce((product, extent) => product * extent, bytesOf(type)),
  };
}
