/** y = a * x + y with one rounding, in four shapes. */
import { Values } from '../host-values.js';
import { f32, f64 } from '../reference/rounded.js';
import type { SampleModule } from '../sample-case.js';

const random = new Values(1);
const n = 1000;
const a = 2.7182817459106445;
const x = random.wildFloats(n + 4);
const y = random.wildFloats(n + 4);
const dx = random.wildDoubles(n);
const dy = random.wildDoubles(n);

/** Elements after the first `count` stay. */
const saxpy = (count: number) => (): Float32Array =>
  y.map((value, i) => (i < count ? f32.fma(a, x[i]!, value) : value));

export const K01_SAXPY: SampleModule = {
  name: 'k01_saxpy',
  cases: [
    {
      kernel: 'saxpy',
      name: '1000 of 1024 threads, all kinds of floats',
      memory: { x, y },
      launches: [{ grid: 4, block: 256, args: [n, a, 'x', 'y'] }],
      outputs: { y: { equal: 'bits', reference: saxpy(n) } },
    },
    {
      kernel: 'saxpy',
      name: 'no elements',
      memory: { x, y },
      launches: [{ grid: 1, block: 33, args: [-2147483648, a, 'x', 'y'] }],
      outputs: { y: { equal: 'bits', reference: saxpy(0) } },
    },
    {
      kernel: 'saxpy_stride',
      name: 'a grid that goes over the array three times',
      memory: { x, y },
      launches: [{ grid: 3, block: 96, args: [BigInt(n), a, 'x', 'y'] }],
      outputs: { y: { equal: 'bits', reference: saxpy(n) } },
    },
    {
      kernel: 'saxpy4',
      name: 'vectors of four, blocks of 37',
      memory: { x, y },
      launches: [{ grid: 8, block: 37, args: [n / 4, a, 'x', 'y'] }],
      outputs: { y: { equal: 'bits', reference: saxpy(n) } },
    },
    {
      kernel: 'daxpy',
      name: 'all kinds of doubles',
      memory: { x: dx, y: dy },
      launches: [{ grid: 4, block: 256, args: [n, Math.PI, 'x', 'y'] }],
      outputs: {
        y: {
          equal: 'bits',
          reference: () => dy.map((value, i) => f64.fma(Math.PI, dx[i]!, value)),
        },
      },
    },
  ],
};
