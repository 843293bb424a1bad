import { expect, test } from 'vitest';
import { runKernel } from '../../../test/compiler/emit/run-kernel.js';
import { readKernel } from '../read/read-kernel.js';
import { simulateKernel } from '../simulate/simulate.js';
import { mathsTexts } from './index.js';
import { f32OfBits, f64OfBits, runnable } from './run-text.test-support.js';
import { someOf } from '../../../test/random-runs.js';

const count = 512;
const special = [0, 1, 2, 0.5, 1e-40, 1e-310, 3.4e38, 1e300, Infinity, NaN, 105616, 1e9].flatMap(
  (value) => [value, -value],
);

/** Special numbers, random bits, and numbers of usual sizes. */
function fill(array: Float32Array | Float64Array, seed: number): void {
  let state = seed;
  const word = (): number => {
    state = (Math.imul(state, 1664525) + 1013904223) | 0;
    return (state ^ (state >>> 15)) >>> 0;
  };
  const wide = array instanceof Float64Array;
  for (let at = 0; at < array.length; at++) {
    if (at % 4 === 0) array[at] = special[word() % special.length]!;
    else if (at % 4 === 1)
      array[at] = wide ? f64OfBits((BigInt(word()) << 32n) | BigInt(word())) : f32OfBits(word());
    else array[at] = (word() / 2 ** 31 - 1) * (at % 4 === 2 ? 3 : 90);
  }
}

const callOf = (name: string): string =>
  `${name === 'erf' || name === 'rsqrt' ? 'gpu' : 'Math'}.${name}`;
const isPair = (name: string): boolean => ['pow', 'atan2', 'hypot'].includes(name);

someOf(
  6,
  test,
)(
  Object.keys(mathsTexts).flatMap((name) =>
    (['f32', 'f64'] as const).map((type) => [name, type] as const),
  ),
)(
  '%s of %s has the same bits as a text, in simulation and as PTX on the CPU device',
  (name, type) => {
    const Elements = type === 'f32' ? Float32Array : Float64Array;
    const [x, y] = [new Elements(count), new Elements(count)];
    fill(x, 1);
    fill(y, 2);
    const tensor = (access: 'input' | 'output') =>
      ({ kind: 'tensor', element: { storage: type }, access, rank: 1 }) as const;
    const tree = readKernel({
      name: 'each',
      signature: { x: tensor('input'), y: tensor('input'), out: tensor('output') },
      indexType: 'i32',
      uses: {},
      text:
        '({ x, y, out }, gpu) => { const i = gpu.globalId.x; out[i] = ' +
        `${callOf(name)}(x[i]${isPair(name) ? ', y[i]' : ''}); }`,
    });
    const simulated = new Elements(count);
    simulateKernel(tree, { grid: count / 128, block: 128, args: { x, y, out: simulated } });
    const ran = runKernel(tree, {
      values: { x, y, out: new Elements(count) },
      grid: [count / 128],
      block: [128],
    });
    expect(ran.outcome.fault).toBeUndefined();
    const compiled = ran.of<Float32Array | Float64Array>('out');
    const run = runnable(name, mathsTexts[name]![type]!, type);
    for (let at = 0; at < count; at++) {
      const wanted = run(x[at]!, y[at]!);
      const label = `${name}(${x[at]}, ${y[at]})`;
      expect(simulated[at], `${label} in simulation`).toBe(wanted);
      expect(compiled[at], `${label} as PTX`).toBe(wanted);
    }
  },
);
