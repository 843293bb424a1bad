/** Runs a case through the public library: memory is written, kernels are launched, outputs are read. */
import { f32, f64, i16, i32, i64, i8, u16, u32, u64, u8 } from 'async-cuda/core';
import type { DType, DeviceBuffer, KernelArgument } from 'async-cuda/core';

import type { TestDevice } from '../core/test-device.js';
import type { HostArray, SampleArgument, SampleCase } from './sample-case.js';

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

export async function runCase(host: TestDevice, ptx: string, sample: SampleCase): Promise<Map<string, HostArray>> {
  const { device, stream } = host;
  const module = await host.load(ptx);
  const kernel = module.kernel(sample.kernel);
  const buffers = new Map<string, DeviceBuffer>();
  const argument = (value: SampleArgument): KernelArgument => {
    if (typeof value !== 'object' && typeof value !== 'string') return value;
    if (value instanceof Uint8Array) return value;
    if (typeof value === 'string') return buffers.get(value)!;
    throw new Error(`async-cuda/core makes no ${value.image} objects`);
  };
  try {
    for (const [name, values] of Object.entries(sample.memory)) {
      const buffer = device.alloc(dtypeOf(values), values.length, { label: name });
      buffers.set(name, buffer);
      buffer.write(stream, values as never);
    }
    for (const [name, values] of Object.entries(sample.variables ?? {})) {
      using bytes = await module.global(name);
      await bytes.slice(0, values.byteLength).write(stream, new Uint8Array(values.buffer, values.byteOffset, values.byteLength));
    }
    for (const { args, ...options } of sample.launches) kernel.launch(stream, options, ...args.map(argument));
    const outputs = new Map<string, HostArray>();
    for (const name of Object.keys(sample.outputs)) outputs.set(name, (await buffers.get(name)!.read(stream)) as HostArray);
    return outputs;
  } finally {
    for (const buffer of buffers.values()) buffer.close();
  }
}
