/**
 * Runs a case through the public library: memory is written, kernels are launched, outputs are
 * read.
 */
import { f32, f64, i16, i32, i64, i8, u16, u32, u64, u8 } from 'async-cuda/core';
import type {
  DType,
  DeviceArray,
  DeviceBuffer,
  KernelArgument,
  Surface,
  Texture,
} from 'async-cuda/core';

import type { TestDevice } from '../core/test-device.js';
import type { HostArray, ImageArgument, SampleArgument, SampleCase } from './sample-case.js';

function dtypeOf(values: HostArray): DType {
  if (values instanceof Float32Array) return f32;
  if (values instanceof Float64Array) return f64;
  if (values instanceof Int8Array) return i8;
  if (values instanceof Uint8Array) return u8;
  if (values instanceof Int16Array) return i16;
  if (values instanceof Uint16Array) return u16;
  if (values instanceof Int32Array) return i32;
  if (values instanceof Uint32Array) return u32;
  return values instanceof BigInt64Array ? i64 : u64;
}

export async function runCase(
  host: TestDevice,
  ptx: string,
  sample: SampleCase,
): Promise<Map<string, HostArray>> {
  const { device, stream } = host;
  const module = await host.load(ptx);
  const buffers = new Map<string, DeviceBuffer>();
  const arrays = new Map<string, DeviceArray>();
  const objects: (Texture | Surface)[] = [];
  const image = async ({
    image: kind,
    memory,
    width,
    height,
  }: ImageArgument): Promise<Texture | Surface> => {
    const values = sample.memory[memory]!;
    const array = await device.allocArray(dtypeOf(values), {
      width,
      height,
      channels: values.length / (width * height),
      surface: kind === 'surface',
    });
    arrays.set(memory, array);
    await array.write(stream, values as never);
    const object = await (kind === 'texture'
      ? device.createTexture(array)
      : device.createSurface(array));
    objects.push(object);
    return object;
  };
  const argument = async (value: SampleArgument): Promise<KernelArgument> => {
    if (typeof value === 'string') return buffers.get(value)!;
    return typeof value !== 'object' || value instanceof Uint8Array ? value : image(value);
  };
  try {
    for (const [name, values] of Object.entries(sample.memory)) {
      const buffer = device.alloc(dtypeOf(values), values.length, { label: name });
      buffers.set(name, buffer);
      buffer.write(stream, values as never);
    }
    for (const [name, values] of Object.entries(sample.variables ?? {})) {
      using bytes = await module.global(name);
      await bytes
        .slice(0, values.byteLength)
        .write(stream, new Uint8Array(values.buffer, values.byteOffset, values.byteLength));
    }
    for (const { kernel = sample.kernel, args, shared = 0, ...options } of sample.launches)
      module
        .kernel(kernel)
        .launch(
          stream,
          { ...options, sharedBytes: shared },
          ...(await Promise.all(args.map(argument))),
        );
    const outputs = new Map<string, HostArray>();
    for (const name of Object.keys(sample.outputs))
      outputs.set(name, (await (arrays.get(name) ?? buffers.get(name)!).read(stream)) as HostArray);
    return outputs;
  } finally {
    for (const object of objects) await object.close();
    for (const array of arrays.values()) await array.close();
    for (const buffer of buffers.values()) buffer.close();
  }
}
