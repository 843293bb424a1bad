/**
 * Tensors in files, `.npy` and safetensors, as operations. They take and give the bytes of a file;
 * the program reads and writes the file itself.
 */
import type { DTypeName, CoreDevice } from '../core/index.js';
import { invalid } from '../ground/arguments.js';
import { isMap, isUrl } from '../ground/other-realms.js';
import { allOf, operation } from '../ops/index.js';
import type { AnyDevice, DeviceOp } from '../ops/index.js';
import { coreOf } from '../ops/scheduling.js';
import { contiguous } from './layout.js';
import { uninitialized } from './make.js';
import { readNpy, writeNpy } from './npy.js';
import type { ReadNpyOptions } from './npy.js';
import { readSafetensors, writeSafetensors } from './safetensors.js';
import type { WriteSafetensorsOptions } from './safetensors.js';
import { packed, wordsOf } from './tensor-data.js';
import type { TensorData } from './tensor-data.js';
import { Tensor } from './tensor.js';
import type { AnyTensor } from './tensor.js';

/** A tensor with a file's elements, bit for bit (bool as 0 and 1), in row-major order. */
function fromData(device: CoreDevice, data: TensorData): DeviceOp<Tensor> {
  const { dtype, layout } = data;
  return uninitialized(device, dtype, layout.shape).andThen((tensor) => {
    const words = wordsOf({ ...data, layout: contiguous(layout.shape), bytes: packed(data) });
    // In a bool every byte but 0 is true, and becomes 1.
    return dtype.name === 'bool'
      ? (tensor as unknown as Tensor<'bool'>).write(words as Uint8Array)
      : (tensor as unknown as Tensor).writeBits(words);
  });
}

/** @throws CudaArgumentError for a path, which is often passed by mistake */
function checkBytes(file: unknown): void {
  if (typeof file === 'string' || isUrl(file))
    throw invalid(
      'file',
      'a Uint8Array, the bytes of the file',
      file,
      'Read them first: await readFile(path).',
    );
}

/** The elements of a tensor on the host, bit for bit (bool as 0 and 1), in row-major order. */
function toData<D extends DTypeName>(argument: string, tensor: Tensor<D>): DeviceOp<TensorData<D>> {
  if (!((tensor as unknown) instanceof Tensor)) throw invalid(argument, 'a Tensor', tensor);
  return tensor.contiguous().andThen((dense) =>
    (dense.dtype.name === 'bool' ? dense.read() : dense.readBits()).map((words) => {
      if (dense !== tensor) dense.close();
      const { buffer, byteOffset, byteLength } = words as unknown as Uint8Array;
      return {
        dtype: tensor.dtype,
        layout: contiguous(tensor.shape),
        bytes: new Uint8Array(buffer, byteOffset, byteLength),
      };
    }),
  );
}

/**
 * Makes a tensor of a `.npy` file. The file is parsed and checked at the call; the operation copies
 * it to the device. cuMemcpyHtoDAsync
 *
 * @throws CudaFormatError for bytes that are no such file, or whose dtype has to be named in the
 *   options; CudaArgumentError for a path in place of bytes
 *
 * @example
 * ```ts
 * using x = await device.tensor(f32, [1, 2, 3]);
 * const file = await saveNpy(x);
 * using y = await loadNpy(device, file);
 * console.log(y.shape, (await y.read()).join(' ')); // [ 3 ] 1 2 3
 * ```
 */
export function loadNpy(
  device: AnyDevice,
  file: Uint8Array,
  options?: ReadNpyOptions,
): DeviceOp<Tensor> {
  checkBytes(file);
  return fromData(coreOf(device), readNpy(file, options));
}

/**
 * Gives a tensor as the bytes of a `.npy` file. cuMemcpyDtoHAsync
 *
 * @example
 * ```ts
 * using x = await device.zeros(f32, [2, 3]);
 * const file = await saveNpy(x);
 * console.log(readNpy(file).layout.shape); // [ 2, 3 ]
 * ```
 */
export function saveNpy(tensor: AnyTensor): DeviceOp<Uint8Array> {
  return toData('tensor', tensor).map((data) => writeNpy(data));
}

/**
 * Makes the tensors of a safetensors file, in a map by their names. With `names` only these are
 * made, and dtypes of the others do not matter. The file is parsed and checked at the call; the
 * operation copies it to the device. cuMemcpyHtoDAsync
 *
 * @throws CudaFormatError for bytes that are no such file, or a dtype that tensors do not have;
 *   CudaArgumentError for a name that the file does not have
 *
 * @example
 * ```ts
 * using weight = await device.tensor(f32, [1, 2, 3]);
 * const file = await saveSafetensors({ weight });
 * const tensors = await loadSafetensors(device, file);
 * console.log((await tensors.get('weight')!.read()).join(' ')); // 1 2 3
 * for (const tensor of tensors.values()) tensor.close();
 * ```
 */
export function loadSafetensors(
  device: AnyDevice,
  file: Uint8Array,
  names?: readonly string[],
): DeviceOp<Map<string, Tensor>> {
  checkBytes(file);
  const core = coreOf(device);
  const { tensors } = readSafetensors(file, names);
  const wanted = [...tensors.keys()];
  return allOf([...tensors.values()].map((data) => fromData(core, data))).map(
    (made) => new Map(made.map((tensor, index) => [wanted[index]!, tensor])),
  );
}

/**
 * Gives tensors, by their names, as the bytes of a safetensors file. cuMemcpyDtoHAsync
 *
 * @example
 * ```ts
 * using weight = await device.tensor(f32, [1, 2, 3, 4], [2, 2]);
 * using bias = await device.tensor(f32, [5, 6]);
 * const file = await saveSafetensors({ weight, bias }, { metadata: { format: 'pt' } });
 * console.log([...readSafetensors(file).tensors.keys()]); // [ 'bias', 'weight' ]
 * ```
 */
export function saveSafetensors(
  tensors: Readonly<Record<string, AnyTensor>> | ReadonlyMap<string, AnyTensor>,
  options?: WriteSafetensorsOptions,
): DeviceOp<Uint8Array> {
  if (
    typeof tensors !== 'object' ||
    (tensors as unknown) === null ||
    (tensors as unknown) instanceof Tensor
  ) {
    throw invalid(
      'tensors',
      'an object or a Map of tensors by their names',
      tensors,
      'Write saveSafetensors({ weights }).',
    );
  }
  const entries = isMap(tensors) ? [...tensors] : Object.entries(tensors);
  const [first] = entries;
  if (first === undefined) return operation(undefined, () => writeSafetensors({}, options));
  return allOf(
    entries.map(([name, tensor]) => toData(`tensors[${JSON.stringify(name)}]`, tensor)),
  ).map((data) =>
    writeSafetensors(new Map(data.map((each, index) => [entries[index]![0], each])), options),
  );
}
