/** Gravity, in float with tiles and in double. */
import { near } from '../equality.js';
import { Values } from '../host-values.js';
import type { SampleModule } from '../sample-case.js';

const random = new Values(9);
const n = 256;
const p = random.floats(n * 4, -1, 1);
const v = random.floats(n * 4, -1, 1);
const [dt, eps] = [Math.fround(0.01), Math.fround(0.1)];

function velocity(i: number): number[] {
  const a = [0, 0, 0];
  for (let j = 0; j < n; j++) {
    const d = [0, 1, 2].map((k) => p[j * 4 + k]! - p[i * 4 + k]!);
    const r = 1 / Math.sqrt(d[0]! ** 2 + d[1]! ** 2 + d[2]! ** 2 + eps);
    d.forEach((value, k) => {
      a[k]! += value * p[j * 4 + 3]! * r ** 3;
    });
  }
  const q = a.map((value, k) => v[i * 4 + k]! + value * dt);
  return [...q, Math.hypot(...q)];
}

const m = 61;
const bodies = random.doubles(m * 4, 0.5, 1.5);
const acc = random.doubles(64 * 3, -1, 1);
function pull(i: number): number {
  let sum = 0;
  for (let j = 0; j < m; j++) {
    const dx = bodies[j * 4]! - bodies[i * 4]!;
    sum += dx / Math.sqrt(dx * dx + 1e-9) / Math.sqrt(bodies[j * 4 + 3]!);
  }
  return sum;
}

export const K09_NBODY: SampleModule = {
  name: 'k09_nbody',
  cases: [
    {
      // 256 terms of at most 32 with rsqrt.approx (2 ulp) to the third; times dt.
      kernel: 'nbody',
      name: '256 bodies',
      memory: { p, v },
      launches: [{ grid: 2, block: 128, args: ['p', 'v', n, 0.01, 0.1] }],
      outputs: {
        v: {
          equal: near(4, 2),
          reference: () => Array.from({ length: n }, (_, i) => velocity(i)).flat(),
          referenceEqual: near(16, 2),
        },
      },
    },
    {
      // rsqrt.approx.f64 has the accuracy of a double; 61 terms of about 1.
      kernel: 'nbody_d',
      name: '61 bodies',
      memory: { bodies, acc },
      launches: [{ grid: 1, block: m, args: ['bodies', 'acc', m] }],
      outputs: {
        acc: {
          equal: near(16, 64),
          reference: () =>
            acc.map((value, at) => (at % 3 === 0 && at < m * 3 ? pull(at / 3) : value)),
          referenceEqual: near(64, 64),
        },
      },
    },
  ],
};
