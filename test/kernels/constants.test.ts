/**
 * Bigint constants in kernels of 32 bits and less, and bigints in place of numbers: they are taken
 * where they fit, and are else an error with what to write.
 */
import { Device, i32, i64, inout, kernel, u8 } from 'async-cuda';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';

import { openTestDevice } from '../core/test-device.js';
import { someOf } from '../random-runs.js';

let device: Device;
beforeAll(async () => {
  device = Device.of(await openTestDevice());
});
afterAll(() => device.close());

const body = (statement: string): never =>
  (0, eval)(`({ y }, gpu) => { if (gpu.globalId.x === 0) { ${statement}; } }`) as never;
const uses = { K: 6n, FAR: 2n ** 40n, L: [1n, 2n ** 40n] };

test.each([
  ['y[0] = 5n', 5],
  ['y[0] = gpu.K', 6],
  ['y[0] = gpu.K + y[1]', 8],
  ['y[0] += 5n', 6],
  ['const a = 7n; y[0] = a', 7],
  ['y[0] = gpu.L[0]', 1],
  ['y[0] = -2147483648n', -(2 ** 31)],
  ['y[0] = 0xffffffffn', -1],
  ['y[0] = gpu.i32(gpu.FAR + 3n)', 3],
])('%s writes the i32 %i', async (statement, expected) => {
  using y = await device.tensor(i32, [1, 2]);
  await kernel('constant', { y: inout(i32) }, body(statement), { uses })({ y });
  expect([...(await y.read())][0]).toBe(expected);
});

someOf(
  2,
  test,
)([
  [
    'y[0] = 1099511627776n',
    '1099511627776n does not fit in the 32 bits of i32',
    'gpu.i32(1099511627776n)',
  ],
  [
    'y[0] = gpu.FAR',
    'gpu.FAR, which is 1099511627776n, does not fit in the 32 bits of i32',
    'gpu.i32(gpu.FAR)',
  ],
  [
    'y[0] = gpu.L[1]',
    'which is 1099511627776n, does not fit in the 32 bits of i32',
    'gpu.i32(gpu.L[1])',
  ],
  ['y[0] = -2147483649n', '-2147483649n', 'for its low 32 bits, or make the elements i64'],
])('%s is a compile error with its place', async (statement, what, fix) => {
  const error = await kernel('constant', { y: inout(i32) }, body(statement), { uses })
    .prepare(device)
    .then(
      () => undefined,
      (reason: unknown) => reason as Error,
    );
  expect(error).toMatchObject({ code: 'ERR_CUDA_COMPILE' });
  expect(error!.message).toContain(what);
  expect(error!.message).toContain(fix);
});

test('elements of 8 bits take constants of 8 bits', async () => {
  await expect(
    kernel('bytes', { y: inout(u8) }, body('y[0] = 256n')).prepare(device),
  ).rejects.toThrow('256n does not fit in the 8 bits of u8');
  await expect(
    kernel('bytes', { y: inout(u8) }, body('y[0] = 255n')).prepare(device),
  ).resolves.not.toThrow();
});

test('an i64 takes all of them', async () => {
  using y = await device.tensor(i64, [1n]);
  await kernel('wide', { y: inout(i64) }, body('y[0] = gpu.FAR'), { uses })({ y } as never);
  expect([...(await y.read())]).toEqual([2n ** 40n]);
});

describe('a bigint in place of a number is an error with what to write', () => {
  const advice = 'Write 5: bigints are for i64 and u64.';
  const scale = kernel('scale', { y: inout(i32), n: i32 }, ({ y, n }) => {
    y[0] = n;
  });
  const any = (value: unknown): never => value as never;

  test('as an argument', async () => {
    using y = await device.zeros(i32, [1]);
    expect(() => scale({ y, n: any(5n) })).toThrow(advice);
    expect(() => scale({ y, n: any(2n ** 40n) })).not.toThrow(advice);
  });

  test.each<[string, () => unknown]>([
    ['an element', () => device.tensor(i32, any([5n]))],
    ['a value', () => device.full(i32, [2], any(5n))],
    ['an extent', () => device.zeros(i32, any([5n]))],
  ])('as %s', async (_, act) => {
    await expect((async () => act())()).rejects.toThrow(advice);
  });
});

someOf(
  2,
  test,
)([
  [
    'gpu.atomic(y, 0, 1)',
    new RegExp(
      'gpu has no atomic, [^]*It has atomicAdd, atomicMin, atomicMax, atomicAnd, atomicOr, ' +
        'atomicXor, atomicExchange, atomicCompareExchange\\.',
    ),
  ],
  ['gpu.atomicSub(y, 0, 1)', /It has atomicAdd/],
  ['y[0] = gpu.lanes', /It has lane/],
  ['gpu.warp.summ(1)', /gpu\.warp has no summ.*It has gpu\.warp\.sum/s],
  ['y[0] = gpu.TILE', /Give it through uses: \{ TILE \}/],
])('the error for %s lists the existing names', async (statement, message) => {
  await expect(kernel('names', { y: inout(i32) }, body(statement)).prepare(device)).rejects.toThrow(
    message,
  );
});
