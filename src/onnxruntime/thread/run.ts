/** One run of a session on tensors where they lie. */
import { NativeMemory } from '../../native/native-memory.js';
import type { MadeValue, PlacedTensor, RunRequest } from './messages.js';
import type { OrtLibrary } from './ort-library.js';
import { typeAndShape } from './session.js';
import { bytesOf } from './type-bytes.js';

/** OrtDeviceAllocator, OrtMemTypeDefault */
const DEVICE_ALLOCATOR = 0;
const DEFAULT_MEMORY = 0;
const PLACES = { cpu: 'Cpu', cuda: 'Cuda' } as const;

/** Made once for each place, and kept. */
const memoryInfos = new Map<string, number>();

function memoryInfo(ort: OrtLibrary, { memory, ordinal }: RunRequest): number {
  const id = memory === 'cpu' ? 0 : ordinal;
  const key = `${ort.path} ${memory} ${id}`;
  let info = memoryInfos.get(key);
  if (info === undefined) {
    info = ort.give('CreateMemoryInfo', PLACES[memory], DEVICE_ALLOCATOR, id, DEFAULT_MEMORY);
    memoryInfos.set(key, info);
  }
  return info;
}

/** Where an empty tensor lies: the library takes no null pointer. */
let nothing: NativeMemory | undefined;

/** Outputs that the library made are returned; whoever gets them releases them. */
export function run(ort: OrtLibrary, request: RunRequest): (MadeValue | undefined)[] {
  const { session, runOptions, inputNames, outputNames } = request;
  if (request.unset) ort.do('RunOptionsUnsetTerminate', runOptions);
  const info = memoryInfo(ort, request);
  const values: number[] = [];
  const valueOf = ({ type, shape, address, bytes }: PlacedTensor): number => {
    nothing ??= new NativeMemory(ort.koffi, 64);
    const extents = new NativeMemory(ort.koffi, Math.max(8, shape.length * 8));
    shape.forEach((extent, i) => { extents.setU64(i * 8, extent); });
    const value = ort.give('CreateTensorWithDataAsOrtValue', info, bytes === 0 ? nothing.address : address, bytes, extents.address, shape.length, type);
    values.push(value);
    return value;
  };
  try {
    const inputs = request.inputs.map(valueOf);
    const outputs = request.outputs.map((output) => (output === undefined ? 0 : valueOf(output)));
    const pointers = new NativeMemory(ort.koffi, (inputs.length + outputs.length) * 8 + 8);
    [...inputs, ...outputs].forEach((pointer, i) => { pointers.setU64(i * 8, pointer); });
    const outputsAt = inputs.length * 8;
    try {
      ort.do('Run', session, runOptions, inputNames, pointers.address, inputs.length, outputNames, outputs.length, pointers.address + outputsAt);
    } catch (error) {
      outputs.forEach((given, i) => {
        const made = pointers.u64(outputsAt + i * 8);
        if (given === 0 && made !== 0) ort.ask('ReleaseValue', made);
      });
      throw error;
    }
    return outputs.map((given, i) => (given === 0 ? made(ort, pointers.u64(outputsAt + i * 8)) : undefined));
  } finally {
    for (const value of values) ort.ask('ReleaseValue', value);
  }
}

function made(ort: OrtLibrary, value: number): MadeValue {
  const info = ort.give('GetTensorTypeAndShape', value);
  const { type, shape } = typeAndShape(ort, info);
  ort.ask('ReleaseTensorTypeAndShapeInfo', info);
  return { value, data: ort.give('GetTensorMutableData', value), shape, bytes: shape.reduce((product, extent) => product * extent, bytesOf(type)) };
}
