/** Tensors made of other libraries' containers, and tensors in JSON. */
import { Device, f32, f64, i64 } from 'async-cuda';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';

import { openTestDevice } from '../core/test-device.js';

let device: Device;
beforeAll(async () => {
  device = Device.of(await openTestDevice());
});
afterAll(() => device.close());

test('in JSON a tensor has its shape, dtype and device, without its elements', async () => {
  using plain = await device.tensor(f32, [1, 2, 3, 4], [2, 2]);
  using labelled = await device.zeros(i64, [2], { label: 'counts' });
  const where = `${device.kind}:${device.ordinal}`;
  expect(JSON.parse(JSON.stringify({ plain, labelled }))).toEqual({
    plain: { type: 'Tensor', dtype: 'f32', shape: [2, 2], device: where },
    labelled: { type: 'Tensor', dtype: 'i64', shape: [2], device: where, label: 'counts' },
  });
  expect(JSON.parse(JSON.stringify(plain.transpose()))).toMatchObject({ shape: [2, 2] });
});

describe('the remedies in errors of device.tensor for other containers work', () => {
  /**
   * Like a Vector of Apache Arrow: elements by get(), a length, an iterator, and its values in one
   * array.
   */
  class Vector {
    readonly length = 3;
    get(index: number): number {
      return [1.5, 2.5, 3.5][index]!;
    }
    toArray(): Float64Array {
      return Float64Array.of(1.5, 2.5, 3.5);
    }
    *[Symbol.iterator](): Generator<number> {
      yield* this.toArray();
    }
  }
  const vector = new Vector();

  test('a vector of Arrow', async () => {
    expect(() => device.tensor(f64, vector as never)).toThrow(
      'source: expected a Float64Array, a list of elements, or an ArrayBuffer of their ' +
        'bytes, got Vector',
    );
    expect(() => device.tensor(f64, vector as never)).toThrow('Write source.toArray().');
    using t = await device.tensor(f64, vector.toArray());
    expect([...(await t.read())]).toEqual([1.5, 2.5, 3.5]);
  });

  test('a Set', async () => {
    const set = new Set([1, 2]);
    expect(() => device.tensor(f64, set as never)).toThrow('Write Array.from(source).');
    using t = await device.tensor(f64, Array.from(set));
    expect([...(await t.read())]).toEqual([1, 2]);
  });

  test.each(['ArrayBuffer', 'SharedArrayBuffer'] as const)('an %s of the bytes', async (kind) => {
    const buffer = new globalThis[kind](24);
    new Float64Array(buffer).set([1, 2, 3]);
    using t = await device.tensor(f64, buffer);
    using shaped = await device.tensor(f64, buffer, [3, 1]);
    expect([t.shape, [...(await t.read())], shaped.shape]).toEqual([[3], [1, 2, 3], [3, 1]]);
    expect(() => device.tensor(f64, new globalThis[kind](7))).toThrow(
      'source: expected bytes of whole elements of f64, of 8 each',
    );
  });
});
