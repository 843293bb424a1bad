/**
 * Values of another realm, as programs under Jest and in node:vm create them: they are recognised
 * by what they are, and not by their class.
 */
import { runInNewContext } from 'node:vm';

import {
  CudaArgumentError,
  Device,
  bool,
  f16,
  f32,
  i32,
  input,
  kernel,
  output,
  struct,
} from 'async-cuda';
import {
  layouts,
  loadNpy,
  loadSafetensors,
  readNpy,
  readSafetensors,
  saveNpy,
  saveSafetensors,
  writeNpy,
  writeSafetensors,
} from 'async-cuda/tensor';
import type { AnyTensor } from 'async-cuda/tensor';
import { beforeAll, expect, test } from 'vitest';

import { ELEMENTWISE } from '../core/kernels/elementwise.js';
import { failure, onDevice } from '../core/test-device.js';

const there = <T>(code: string, values: Readonly<Record<string, unknown>> = {}): T =>
  runInNewContext(code, { ...values }) as T;
const bytesThere = (bytes: Uint8Array): Uint8Array => {
  const copy = there<Uint8Array>(`new Uint8Array(${bytes.length})`);
  copy.set(bytes);
  return copy;
};
/** A minimal implementation other than Node's. */
class OtherSignal extends EventTarget {
  aborted = false;
  reason: unknown = undefined;
  get [Symbol.toStringTag](): string {
    return 'AbortSignal';
  }
  throwIfAborted(): void {
    if (this.aborted) throw this.reason;
  }
  abort(reason: unknown): void {
    this.aborted = true;
    this.reason = reason;
    this.dispatchEvent(new Event('abort'));
  }
}

onDevice('Values of another realm', (host) => {
  let device: Device;
  beforeAll(() => {
    device = Device.of(host.device);
  });

  test('Maps are taken as tensors and metadata of safetensors files', async () => {
    const data = { dtype: f32, layout: layouts.contiguous([2]), bytes: new Uint8Array(8) };
    const file = writeSafetensors(there('new Map([["a", data]])', { data }), {
      metadata: there('new Map([["format", "pt"]])'),
    });
    expect([...readSafetensors(file).tensors.keys()]).toEqual(['a']);
    expect([...readSafetensors(file).metadata]).toEqual([['format', 'pt']]);
    using x = await device.ones(f32, [3]);
    expect([
      ...readSafetensors(await saveSafetensors(there('new Map([["x", x]])', { x }))).tensors.keys(),
    ]).toEqual(['x']);
    expect([
      ...readSafetensors(
        await saveSafetensors(there('({ x })', { x }), there('({ metadata: { a: "b" } })')),
      ).metadata,
    ]).toEqual([['a', 'b']]);
  });

  test('bytes of files are taken', async () => {
    using x = await device.tensor(f32, [1, 2, 3]);
    const npy = bytesThere(await saveNpy(x as AnyTensor));
    expect(readNpy(npy).layout.shape).toEqual([3]);
    expect([...((await loadNpy(device, npy).andThen((y) => y.read())) as Float32Array)]).toEqual([
      1, 2, 3,
    ]);
    const tensors = await loadSafetensors(device, bytesThere(await saveSafetensors({ x })));
    expect([...((await tensors.get('x')!.read()) as Float32Array)]).toEqual([1, 2, 3]);
    tensors.get('x')!.close();
    expect(
      writeNpy({
        dtype: f32,
        layout: layouts.contiguous([1]),
        bytes: bytesThere(Uint8Array.of(0, 0, 128, 63)),
      }).length,
    ).toBeGreaterThan(64);
  });

  test('typed arrays and lists are taken as elements', async () => {
    expect([
      ...(await device.tensor(f32, there('new Float32Array([1, 2])')).andThen((y) => y.read())),
    ]).toEqual([1, 2]);
    expect([...(await device.tensor(f16, there('[1, 2.5]')).andThen((y) => y.read()))]).toEqual([
      1, 2.5,
    ]);
    expect([
      ...(await device
        .tensor(bool, there('new Uint8Array([2, 0])'), there<[2, 1]>('[2, 1]'))
        .andThen((y) => y.read())),
    ]).toEqual([1, 0]);
    using y = await device.zeros(f32, [2]);
    const into = there<Float32Array>('new Float32Array(2)');
    await y.write(there('new Float32Array([3, 4]).buffer'));
    expect(await y.read({ into })).toBe(into);
    expect([...into]).toEqual([3, 4]);
  });

  test('options are taken, also an empty object', async () => {
    expect([
      ...(await device.arange(i32, 3, there('({ start: 5 })')).andThen((y) => y.read())),
    ]).toEqual([5, 6, 7]);
    expect([
      ...(await device.zeros(i32, [1], there('({})')).andThen((y) => y.read(there('({})')))),
    ]).toEqual([0]);
    expect((await failure(() => device.zeros(i32, [1], there('new Map()')))).message).toContain(
      'expected an object with label',
    );
    expect(
      (await failure(() => device.zeros(i32, [1], there('({ lable: "x" })')))).message,
    ).toContain("Did you mean 'label'");
  });

  test('modules are taken as bytes', async () => {
    const module = await host.device.loadModule(bytesThere(new TextEncoder().encode(ELEMENTWISE)));
    expect(module.kernelNames).toContain('add1');
    await module.close();
  });

  test('kernels take lists, arrays and structures, and simulations arrays', async () => {
    const weighted = kernel(
      'weighted',
      { out: output(f32), x: input(f32), p: struct({ a: f32 }) },
      ({ out, x, p }, gpu) => {
        const i = gpu.globalId.x;
        if (i < out.length) out[i] = x[i]! * gpu.WEIGHTS[i]! + gpu.MORE[i]! + p.a;
      },
      {
        uses: {
          WEIGHTS: there<Float32Array>('new Float32Array([2, 3])'),
          MORE: there<number[]>('[10, 20]'),
        },
      },
    );
    const p = there<{ a: number }>('({ a: 0.5 })');
    expect([
      ...(await weighted({
        out: device.zeros(f32, [2]),
        x: device.tensor(f32, [1, 1]),
        p,
      }).andThen(({ out }) => out.read())),
    ]).toEqual([12.5, 23.5]);
    const out = there<Float32Array>('new Float32Array(2)');
    await weighted.simulate({ out, x: there('new Float32Array([1, 1])'), p });
    expect([...out]).toEqual([12.5, 23.5]);
    const half = kernel('half', { out: output(f16) }, ({ out }, gpu) => {
      if (gpu.globalId.x < out.length) out[gpu.globalId.x] = 1.5;
    });
    const halves = there<Float32Array>('new Float32Array(1)');
    await half.simulate({ out: halves as never });
    expect([...halves]).toEqual([1.5]);
  });

  test('signals are recognised by their behaviour', async () => {
    const signal = new OtherSignal();
    using buffer = host.device.alloc(i32, 4);
    buffer.fill(host.stream, 3);
    const chunks: Int32Array[] = [];
    for await (const chunk of buffer.chunks(host.stream, { length: 2, signal: signal as never }))
      chunks.push(chunk);
    expect(chunks.flatMap((chunk) => [...chunk])).toEqual([3, 3, 3, 3]);
    const read: Int32Array[] = [];
    for await (const chunk of buffer.readable(host.stream, { length: 2, signal: signal as never }))
      read.push(chunk as Int32Array);
    expect(read).toHaveLength(2);
    const reader = buffer.readable(host.stream, { length: 2, signal: signal as never }).getReader();
    await reader.read();
    const reason = there<Error>('new Error("enough")');
    signal.abort(reason);
    await expect(reader.read()).rejects.toBe(reason);
    expect(await failure(() => buffer.chunks(host.stream, { signal: {} as never }))).toBeInstanceOf(
      CudaArgumentError,
    );
  });

  test('errors are rethrown unchanged', async () => {
    const error = there<Error>('new RangeError("mine")');
    expect(
      await failure(() =>
        device
          .zeros(i32, [1])
          .andThen((x) => x.read())
          .map(() => {
            throw error;
          }),
      ),
    ).toBe(error);
    expect(await failure(() => host.stream.call(() => Promise.reject(error)))).toBe(error);
  });
});
