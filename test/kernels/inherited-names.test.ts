/**
 * Kernels whose parameters have names that every object inherits: an argument that is not passed is
 * missing.
 */
import {
  CudaArgumentError,
  Device,
  elementKernel,
  f32,
  inout,
  input,
  kernel,
  output,
  struct,
  tileKernel,
} from 'async-cuda';
import type { AnyTensor } from 'async-cuda/tensor';
import { beforeAll, expect, test } from 'vitest';

import { failure, onDevice } from '../core/test-device.js';

type Called = (
  args: Readonly<Record<string, unknown>>,
) => PromiseLike<Readonly<Record<string, AnyTensor>>>;

/** A literal with the key `__proto__` would set the prototype. */
const object = (...entries: readonly (readonly [string, unknown])[]): never =>
  Object.fromEntries(entries) as never;

/** Names are part of the text of a kernel's function, which is compiled. */
const body = (parameters: string, text: string): never =>
  (0, eval)(`(${parameters}) => { ${text}; }`) as never;

onDevice('Names that every object inherits', (host) => {
  let device: Device;
  beforeAll(() => {
    device = Device.of(host.device);
  });

  const read = async (tensor: AnyTensor): Promise<number[]> => [
    ...((await tensor.read()) as Iterable<number>),
  ];

  test.each(['toString', 'constructor', 'hasOwnProperty', 'valueOf', '__proto__'])(
    '%s',
    async (name) => {
      using x = await device.tensor(f32, [1, 2, 3, 4]);

      const madeOutput = elementKernel(
        'made',
        object([name, output(f32)], ['x', input(f32)]),
        body('{ x }', 'return x * 2'),
      ) as unknown as Called;
      const made = (await madeOutput({ x }))[name]!;
      expect(await read(made)).toEqual([2, 4, 6, 8]);
      made.close();

      const text = body(`{ ${name}: y, x }`, 'y.store(x.load() * 2)');
      using rows = x.reshape([2, 2]);
      const axes = object([name, ['row', 'column']], ['x', ['row', 'column']]);
      for (const options of [{ tile: [1, null] }, { tile: { row: 1, column: null }, axes }]) {
        const tiles = tileKernel(
          'tiles',
          object([name, output(f32)], ['x', input(f32)]),
          text,
          options as never,
        ) as unknown as Called;
        const stored = (await tiles({ x: rows }))[name]!;
        expect(await read(stored)).toEqual([2, 4, 6, 8]);
        stored.close();
      }

      const scaled = elementKernel(
        'scaled',
        object(['y', output(f32)], [name, input(f32)], ['k', f32]),
        body(`{ ${name}: x, k }`, 'return x * k'),
      ) as unknown as Called;
      // In another order than the parameters'.
      const { y } = await scaled(object(['k', 3], [name, x]));
      expect(await read(y!)).toEqual([3, 6, 9, 12]);
      y!.close();

      const missing = await failure(() => scaled({ k: 3 }));
      expect(missing).toBeInstanceOf(CudaArgumentError);
      expect([missing.argument, missing.message.includes('got nothing')]).toEqual([
        `args.${name}`,
        true,
      ]);

      const simple = kernel(
        'simple',
        object(['y', inout(f32)], [name, f32]),
        body(`{ y, ${name}: v }, gpu`, 'const i = gpu.globalId.x; if (i < y.length) y[i] = v'),
      );
      const left = await failure(() => (simple as unknown as Called)({ y: x }));
      expect([left.argument, left.message.includes('got nothing')]).toEqual([`args.${name}`, true]);

      const pair = struct(object([name, f32], ['b', f32]));
      expect(Object.entries(pair.unpack(pair.pack([object([name, 3], ['b', 4])]))[0]!)).toEqual([
        [name, 3],
        ['b', 4],
      ]);
      expect(() => pair.pack([object(['b', 4])])).toThrow('got undefined');
    },
  );
});
