/** Tile kernels and arguments that are refused. */
import { Device, f32, i32, inout, input, output, tileKernel } from 'async-cuda';
import type { DeviceOp } from 'async-cuda';
import { beforeAll, expect, test } from 'vitest';

import { failure, onDevice } from '../core/test-device.js';
import { scaled, softmax } from './tile-kernels.test-support.js';

onDevice('Refusals of tile kernels', (host) => {
  let device: Device;
  beforeAll(() => {
    device = Device.of(host.device);
  });

  test('reductions with too much shared memory are refused in terms of the kernel', async () => {
    const many = tileKernel(
      'many',
      { y: output(f32), x: input(f32) },
      ({ y, x }, { sum }) => {
        const v = x.load();
        y.store(
          sum(v, 0) +
            sum(v * 2, 0) +
            sum(v * 3, 0) +
            sum(v * 4, 0) +
            sum(v * 5, 0) +
            sum(v * 6, 0) +
            sum(v * 7, 0),
        );
      },
      { tile: [32, 256] },
    );
    const { message } = await failure(() => many({ x: device.ones(f32, [32, 256]) }));
    expect(message).toContain(
      'take 57344 bytes of shared memory in tiles of 32 rows × 256 columns, and a block has ' +
        '49152: sum(v * 7, 0)',
    );
    expect(message).toContain('Take smaller tiles, or fewer of these in one kernel');
    expect(message).not.toContain('$');
  });

  test('wrong shapes and dtypes are refused, with what to write instead', async () => {
    using x = await device.ones(f32, [4, 100]);
    const messageOf = async (op: () => DeviceOp<unknown>): Promise<string> =>
      (await failure(op)).message;
    expect(await messageOf(() => scaled({ y: device.zeros(f32, [4, 1]), x, by: 1 }))).toContain(
      'Every tile would write the same elements',
    );
    expect(await messageOf(() => softmax({ y: device.zeros(f32, [4, 1]), x }))).toContain(
      'y has one element for each row here, and this value differs along a row',
    );
    expect(await messageOf(() => softmax({ y: device.zeros(f32, [3, 100]), x }))).toContain(
      "args.x of kernel 'softmax': expected a Tensor whose shape goes with [3, 100]",
    );
    expect(await messageOf(() => softmax({ x: device.zeros(f32, [1, 200_000]) }))).toContain(
      'expected tensors whose tiles fit in the registers of a block',
    );
    expect(() =>
      tileKernel(
        't',
        { y: output(f32) },
        () => {
          /* nothing */
        },
        { tile: [0, 4] },
      ),
    ).toThrow(
      'options.tile[0]: expected a whole number of at least 1, null for all that there are, ' +
        'or { walk }',
    );
    expect(() =>
      tileKernel(
        't',
        { y: output(f32) },
        () => {
          /* nothing */
        },
        { tile: [4] as never as [4, 4] },
      ),
    ).toThrow('options.tile: expected the rows and columns of a tile');
    expect(() =>
      tileKernel(
        't',
        { y: output(f32) },
        () => {
          /* nothing */
        },
        { tile: [1, 4], uses: { sum: 1 } },
      ),
    ).toThrow('options.uses.sum: expected another name');
    expect(() =>
      tileKernel(
        't',
        { y: input(f32) },
        () => {
          /* nothing */
        },
        { tile: [1, 4] },
      ),
    ).toThrow('at least one output');
    const loop = tileKernel(
      'loop',
      { y: inout(f32) },
      ({ y }) => {
        for (let i = 0; i < 3; i++) y.store(i);
      },
      { tile: [1, 4] },
    );
    expect(await messageOf(() => loop({ y: device.ones(f32, [3]) }))).toContain(
      'A tile kernel consists of variables, stores and loops over tiles: for (let i = 0; i < ' +
        '3; i++) y.store(i);',
    );
    const bare = tileKernel(
      'bare',
      { y: output(f32), x: input(f32) },
      ({ y, x }) => {
        // @ts-expect-error: a tensor is no number
        y.store(x * 2);
      },
      { tile: [1, 4] },
    );
    expect(await messageOf(() => bare({ x }))).toContain(
      'x is a tensor, and its tile has to be read first',
    );
    const whole = tileKernel(
      'whole',
      { y: output(i32), x: input(f32) },
      ({ y, x }) => {
        y.store(x.load());
      },
      { tile: [1, 4] },
    );
    expect(await messageOf(() => whole({ x }))).toContain('gpu.i32');
    const untouched = tileKernel(
      'untouched',
      { y: output(f32), x: input(f32) },
      // eslint-disable-next-line @typescript-eslint/no-unused-vars -- a value that is not stored
      ({ y, x }) => {
        // eslint-disable-next-line @typescript-eslint/no-unused-vars
        const v = x.load();
      },
      { tile: [1, null] },
    );
    expect(await messageOf(() => untouched({ x }))).toContain(
      'y is an output, and nothing is stored to it',
    );
  });
});
