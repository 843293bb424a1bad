/** Activations by approximate instructions, compared with those in double precision. */
import { Device, f32, input, kernel, output } from 'async-cuda';
import { expect, test } from 'vitest';

import { FAST_ACTIVATIONS } from '../../src/library/activations.js';
import type { ActivationName } from '../../src/library/activations.js';
import { onDevice, range } from '../core/test-device.js';

/** The complement of the error function, with a small relative error for z >= 0. */
function erfc(z: number): number {
  if (z < 2) {
    let [sum, term] = [0, z];
    for (let n = 0; n < 100; n++) {
      sum += term / (2 * n + 1);
      term *= -(z * z) / (n + 1);
    }
    return 1 - (2 / Math.sqrt(Math.PI)) * sum;
  }
  let fraction = z;
  for (let n = 100; n > 0; n--) fraction = z + n / 2 / fraction;
  return Math.exp(-z * z) / Math.sqrt(Math.PI) / fraction;
}

const EXACT: Readonly<Record<Exclude<ActivationName, 'relu'>, (x: number) => number>> = {
  gelu: (x) => (x < 0 ? (x / 2) * erfc(-x * Math.SQRT1_2) : x - (x / 2) * erfc(x * Math.SQRT1_2)),
  geluTanh: (x) => x / (1 + Math.exp(-2 * Math.sqrt(2 / Math.PI) * (x + 0.044715 * x ** 3))),
  silu: (x) => x / (1 + Math.exp(-x)),
};

type Name = keyof typeof EXACT;
const NAMES = Object.keys(EXACT) as Name[];

onDevice('Activations by approximate instructions', (host) => {
  /** The activation of each number. */
  const computed = async (name: Name, given: Float32Array): Promise<Float32Array> => {
    const apply = kernel(
      `fast_${name}`,
      { y: output(f32), x: input(f32) },
      ({ y, x }, gpu) => {
        const i = gpu.globalId.x;
        if (i < y.length) y[i] = gpu.activation(x[i]!);
      },
      { uses: { activation: FAST_ACTIVATIONS[name] as (x: number) => number } },
    );
    const device = Device.of(host.device);
    using x = await device.tensor(f32, given);
    using y = await device.zeros(f32, [given.length]);
    await apply({ y, x }).runOn(host.device.stream);
    return (await y.read()) as Float32Array;
  };

  test.for(NAMES)('%s is within 2^-16 of its value', async (name) => {
    const given = Float32Array.from(range(24_001).map((i) => (i - 12_000) / 1000));
    const got = await computed(name, given);
    const wrong = range(given.length).filter((i) => {
      const wanted = EXACT[name](given[i]!);
      // A GELU by tanh becomes less than any normal number, which the instructions give as zero.
      if (Math.abs(wanted) < 2 ** -100) return Math.abs(got[i]!) > 2 ** -99;
      return !(Math.abs(got[i]! - wanted) <= 2 ** -16 * Math.abs(wanted));
    });
    expect(wrong.map((i) => [given[i], got[i], EXACT[name](given[i]!)])).toEqual([]);
  });

  test.for(NAMES)('%s of infinity, zeros and NaN', async (name) => {
    const got = await computed(name, Float32Array.from([Infinity, 0, -0, NaN, 1e30, -1e30]));
    expect([...got]).toEqual([Infinity, 0, -0, NaN, Math.fround(1e30), -0]);
  });
});
