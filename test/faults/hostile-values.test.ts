/**
 * Values that no program passes on purpose: each is a typed error that names the argument, and none
 * hangs or ends the process.
 */
import { Device, f32, f64, i32, i64, inout, input, kernel } from 'async-cuda';
import { sum } from 'async-cuda/library';
import { readNpy, readSafetensors } from 'async-cuda/tensor';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';

import { openTestDevice } from '../core/test-device.js';

let device: Device;
beforeAll(async () => {
  device = Device.of(await openTestDevice());
});
afterAll(() => device.close());

const any = (value: unknown): never => value as never;
const detached = (): Float32Array => {
  const array = new Float32Array(4);
  structuredClone(array.buffer, { transfer: [array.buffer] });
  return array;
};
const revoked = (): unknown => {
  const { proxy, revoke } = Proxy.revocable([], {});
  revoke();
  return proxy;
};
const cyclic = (): unknown => {
  const list: unknown[] = [];
  list.push(list);
  return list;
};
const deep = (): unknown => {
  let list: unknown = 1;
  for (let i = 0; i < 20_000; i++) list = [list];
  return list;
};
/** A list of four thousand million holes. */
const sparse = (): unknown => {
  const list: unknown[] = [];
  list[2 ** 32 - 2] = 1;
  return list;
};
const HOSTILE: readonly (readonly [name: string, value: unknown])[] = [
  ['a detached array', detached()],
  ['a revoked Proxy', revoked()],
  ['a Proxy of a typed array', new Proxy(new Float32Array(4), {})],
  ['a list that has itself', cyclic()],
  ['a list 20,000 deep', deep()],
  ['a list with a hole', [1, , 3]],
  ['a list of 2^32 holes', sparse()],
  ['a symbol', Symbol('x')],
  ['a list of symbols', [Symbol('x')]],
  ['an object without a prototype', Object.create(null)],
  ['an object of a huge length', { length: 2 ** 53 }],
  ['a text', 'abc'],
  ['null', null],
];

/** The error that a function throws, or that its result rejects with. */
async function errorOf(act: () => unknown): Promise<unknown> {
  try {
    await act();
  } catch (error) {
    return error;
  }
  return undefined;
}

const ARGUMENTS: readonly (readonly [name: string, act: (value: unknown) => unknown])[] = [
  ['elements', (value) => device.tensor(f32, any(value))],
  ['elements of i64', (value) => device.tensor(i64, any(value))],
  ['a shape', (value) => device.zeros(f32, any(value))],
  ['a shape of elements', (value) => device.tensor(f32, [1, 2], any(value))],
  [
    'a new shape',
    async (value) => {
      using t = await device.zeros(f32, [4]);
      t.reshape(any(value));
    },
  ],
  [
    'an order of axes',
    async (value) => {
      using t = await device.zeros(f32, [2, 2, 2]);
      t.permute(any(value));
    },
  ],
  [
    'axes of a sum',
    async (value) => {
      using t = await device.zeros(f32, [2, 2, 2]);
      await sum(t, { axis: any(value) });
    },
  ],
  [
    'a grid',
    async (value) => {
      using y = await device.zeros(i32, [4]);
      await fill({ y }, { grid: any(value) });
    },
  ],
  [
    'constants of a kernel',
    (value) =>
      kernel(
        'uses',
        { y: inout(i32) },
        ({ y }) => {
          y[0] = 1;
        },
        { uses: { L: any(value) } },
      ),
  ],
];
const fill = kernel('fill', { y: inout(i32) }, ({ y }, gpu) => {
  const i = gpu.globalId.x;
  if (i < y.length) y[i] = 1;
});

describe.each(ARGUMENTS)('as %s', (_, act) => {
  test.each(HOSTILE)('%s is a typed error', { timeout: 10_000 }, async (name, value) => {
    // Values without a check of their own: revoked Proxies, where objects are only read.
    const error = (await errorOf(() => act(value))) as { code?: string } | undefined;
    expect(error, name).toMatchObject({ code: 'ERR_CUDA_INVALID_ARGUMENT' });
  });
});

test('arguments of a simulation that are detached or symbols are refused', async () => {
  const half = kernel('half', { y: inout(f32), n: i32 }, ({ y, n }) => {
    y[0] = n;
  });
  for (const args of [
    { y: detached(), n: 1 },
    { y: new Float32Array(1), n: Symbol('n') },
  ]) {
    expect(await errorOf(() => half.simulate(any(args), { grid: 1, block: 1 }))).toMatchObject({
      code: 'ERR_CUDA_INVALID_ARGUMENT',
    });
  }
});

test('an error of a getter is passed on', async () => {
  const own = new Error('mine');
  const copy = kernel('copy', { y: inout(f32), x: input(f32) }, ({ y, x }) => {
    y[0] = x[0]!;
  });
  expect(
    await errorOf(() =>
      copy(
        any({
          get y() {
            throw own;
          },
          x: null,
        }),
      ),
    ),
  ).toBe(own);
});

test('a Proxy of a plain list is a list', async () => {
  using t = await device.tensor(f64, new Proxy([1, 2, 3], {}));
  expect([...(await t.read())]).toEqual([1, 2, 3]);
});

describe('headers of files', () => {
  const safetensors = (json: string): Uint8Array => {
    const header = Buffer.from(json);
    const file = Buffer.alloc(8 + header.length);
    file.writeBigUInt64LE(BigInt(header.length));
    header.copy(file, 8);
    return file;
  };
  const npy = (literal: string): Uint8Array => {
    const header = Buffer.from(`${literal}\n`);
    const head = Buffer.from([0x93, 0x4e, 0x55, 0x4d, 0x50, 0x59, 2, 0, 0, 0, 0, 0]);
    head.writeUInt32LE(header.length, 8);
    return Buffer.concat([head, header]);
  };
  const nested = (open: string, close: string, depth = 100_000): string =>
    `${open.repeat(depth)}${close.repeat(depth)}`;

  test.each([
    ['lists', `{"a":${nested('[', ']')}}`],
    ['objects', `${'{"a":'.repeat(100_000)}1${'}'.repeat(100_000)}`],
    ['lists that do not end', `{"a":${'['.repeat(100_000)}`],
    ['lists in the metadata', `{"__metadata__":{"a":${nested('[', ']')}}}`],
    ['brackets in a text, and lists behind it', `{"[[[\\"":${nested('[', ']')}}`],
  ])('safetensors with nested %s are an ERR_CUDA_FORMAT', (_, json) => {
    expect(() => readSafetensors(safetensors(json))).toThrow(
      expect.objectContaining({ name: 'CudaFormatError', code: 'ERR_CUDA_FORMAT' }) as Error,
    );
  });

  test('brackets within names do not count as nesting', () => {
    const name = '[{'.repeat(100);
    const { tensors } = readSafetensors(
      safetensors(JSON.stringify({ [name]: { dtype: 'F32', shape: [0], data_offsets: [0, 0] } })),
    );
    expect([...tensors.keys()]).toEqual([name]);
  });

  test.each([
    ['lists', `{'descr': ${nested('[', ']')}, 'fortran_order': False, 'shape': (1,)}`],
    ['tuples', `{'descr': '<f4', 'fortran_order': False, 'shape': ${nested('(', ')')}}`],
    ['dictionaries', `${"{'a':".repeat(50_000)}1${'}'.repeat(50_000)}`],
    [
      'very many extents',
      `{'descr': '<f4', 'fortran_order': False, 'shape': (${'1,'.repeat(100_000)})}`,
    ],
  ])('npy with nested %s are an ERR_CUDA_FORMAT', (_, literal) => {
    expect(() => readNpy(npy(literal))).toThrow(
      expect.objectContaining({ name: 'CudaFormatError', code: 'ERR_CUDA_FORMAT' }) as Error,
    );
  });
});
