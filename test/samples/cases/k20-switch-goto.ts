/** A dense switch, and jumps into the middle of loops. */
import { Values } from '../host-values.js';
import type { SampleCase, SampleModule } from '../sample-case.js';

const random = new Values(20);

// The first 33 values are read by all: the threads that own them fall through the switch.
const op = Int32Array.from({ length: 130 }, (_, t) =>
  t < 33 ? [32, -1, 1000, -2147483648][t % 4]! : (t * 5) % 34,
);
const a = random.wildIntegers(130);
function switched(x: number, t: number): number {
  const n = op[t]!;
  if (n < 0 || n > 31) return x;
  const sum = (Math.imul(x, n) + a[n]!) | 0;
  return sum & n ? sum ^ a[n + 1]! : sum;
}

const steps = Int32Array.from({ length: 256 }, (_, i) => (i % 3) + 1);
/** goto, as a machine with three states. */
function jumped(n: number): number {
  let i = 0;
  let at: 'A' | 'B' = n & 1 ? 'B' : 'A';
  for (;;) {
    if (at === 'A') {
      i += steps[i]!;
      if (i > n) return i;
    }
    i = Math.imul(i, steps[i + 1]!);
    if (i >= 90) return i;
    at = i < 7 ? 'A' : 'B';
  }
}

const irreducible = (n: number): SampleCase => ({
  kernel: 'irrg',
  name: `n = ${n}`,
  memory: { a: steps },
  launches: [{ grid: 1, block: 1, args: ['a', n] }],
  outputs: { a: { equal: 'bits', reference: () => [jumped(n), ...steps.slice(1)] } },
});

export const K20_SWITCH_GOTO: SampleModule = {
  name: 'k20_switch_goto',
  cases: [
    {
      kernel: 'big',
      name: 'every case, extreme integers',
      memory: { op, a },
      launches: [{ grid: 1, block: 130, args: ['op', 'a'] }],
      outputs: { a: { equal: 'bits', reference: () => a.map(switched) } },
    },
    ...[0, 2, 6, 9, 30, 31].map(irreducible),
  ],
};
