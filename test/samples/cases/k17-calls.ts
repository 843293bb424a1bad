/**
 * Calls: recursion, function pointers, virtual functions, structures by value; arrays in local
 * memory; a switch.
 */
import { SPECIAL_F32, Values } from '../host-values.js';
import type { SampleModule } from '../sample-case.js';

const { fround } = Math;
const random = new Values(17);
const fib = (k: number): number => (k < 2 ? k : fib(k - 1) + fib(k - 2));

const a = random.wildFloats(100);
const b = random.wildFloats(100);
const k = random.integers(100, 0, 2147483647);
const specials = Float32Array.from(SPECIAL_F32);

/** float v[12]; int n; */
function big(v: readonly number[], n: number): Uint8Array {
  const bytes = new ArrayBuffer(52);
  new Float32Array(bytes).set(v);
  new Int32Array(bytes)[12] = n;
  return new Uint8Array(bytes);
}
const fractions = [0.1, -2.5, 3e7, 1e-3, 7, -0.3, 12, 5.5, -1e6, 0.25, 9, -3].map(fround);
const whole = [1, -2, 3, 4, -5, 6, 7, 8, 9, 10, 11, 12];
const scaledSum = (s: number): number =>
  fround(fractions.reduce((sum, value) => fround(sum + fround(value * s)), 0) - 77);

// Each entry leads further up, so that the walk ends.
const next = Int32Array.from({ length: 64 }, (_, x) => x + 1 + random.below(3));
function walk(start: number, n: number): number {
  const stack = [start];
  let sum = 0;
  while (stack.length > 0) {
    const x = stack.pop()!;
    sum = (sum + x) | 0;
    if (x < n && stack.length < 60) {
      stack.push(next[x]!);
      if (next[x]! & 1) stack.push(next[x + 1]!);
    }
  }
  return sum;
}

// The first eight leave their outputs alone, thread 0's with the value that is there: what others
// read does not change.
const operands = Int32Array.of(5, 5, 5, 5, 5, 5, 5, 5, ...random.wildIntegers(92));
const operations = Int32Array.from({ length: 100 }, (_, i) => (i < 8 ? 9 : (i * 7) % 12));
operations.forEach((operation, i) => {
  if (operation === 8) operands[i] = (i % 10) - 2;
  if (operation === 9) operands[i] = 5;
});
const results = random.integers(100, -1000, 1000);
// Below 8, so that the loop of case 8 stays among them.
results.set([5, 3, 0, 6, 1, 7, 2, 4]);
function switched(i: number): number {
  const x = operands[i]!;
  switch (operations[i]) {
    case 0:
      return (x + 1) | 0;
    case 1:
      return Math.imul(x, x);
    case 2:
      return -x | 0;
    case 3:
      return x ^ 0x55;
    case 4:
      return x >> 2;
    case 5:
      return (results[i]! / (x | 1)) | 0;
    case 6:
      return (x >>> 0).toString(2).replaceAll('0', '').length;
    case 7:
      return results[x & 7]!;
    case 8: {
      let all = x;
      for (let k = 0; k < all; k++) all ^= results[k]!;
      return all;
    }
    case 9:
      return results[i]!;
    default:
      return 0;
  }
}

export const K17_CALLS: SampleModule = {
  name: 'k17_calls',
  cases: [
    {
      kernel: 'recursion',
      name: 'fib(0) to fib(15)',
      memory: { o: new Int32Array(40) },
      launches: [{ grid: 1, block: 40, args: ['o'] }],
      outputs: {
        o: { equal: 'bits', reference: () => Array.from({ length: 40 }, (_, i) => fib(i & 15)) },
      },
    },
    {
      kernel: 'fptr',
      name: 'three functions, all kinds of floats',
      memory: { a, b, c: new Float32Array(100), k },
      launches: [{ grid: 1, block: 100, args: ['a', 'b', 'c', 'k'] }],
      outputs: {
        c: {
          equal: 'bits',
          reference: () => a.map((x, i) => [x + b[i]!, x * b[i]!, x - b[i]!][k[i]! % 3]!),
        },
      },
    },
    {
      kernel: 'virt',
      name: 'the derived class',
      memory: { o: specials },
      launches: [{ grid: 1, block: specials.length, args: ['o', -1] }],
      outputs: { o: { equal: 'bits', reference: () => specials.map((x) => 3 * x) } },
    },
    {
      kernel: 'virt',
      name: 'the base class',
      memory: { o: specials },
      launches: [{ grid: 1, block: specials.length, args: ['o', 0] }],
      outputs: { o: { equal: 'bits', reference: () => specials } },
    },
    {
      kernel: 'structs',
      name: 'fractions, one thread',
      memory: { o: Float32Array.of(1.7, 5) },
      launches: [{ grid: 1, block: 1, args: [big(fractions, -77), 'o'] }],
      outputs: { o: { equal: 'bits', reference: () => [scaledSum(fround(1.7)), 5] } },
    },
    {
      // The sum is what o[0] was: threads that read it late read the same.
      kernel: 'structs',
      name: 'whole numbers, 40 threads',
      memory: { o: new Float32Array(40).fill(2) },
      launches: [{ grid: 1, block: 40, args: [big(whole, 2 - 2 * 64), 'o'] }],
      outputs: { o: { equal: 'bits', reference: () => new Float32Array(40).fill(2) } },
    },
    {
      kernel: 'localarr',
      name: 'stacks of different depths',
      memory: { next, o: new Int32Array(33) },
      launches: [{ grid: 1, block: 33, args: ['next', 'o', 25] }],
      outputs: {
        o: { equal: 'bits', reference: () => Array.from({ length: 33 }, (_, t) => walk(t, 25)) },
      },
    },
    {
      kernel: 'sw',
      name: 'every case, extreme integers',
      memory: { operations, operands, results },
      launches: [{ grid: 2, block: 64, args: ['operations', 'operands', 'results', 100] }],
      outputs: {
        results: {
          equal: 'bits',
          reference: () => Array.from({ length: 100 }, (_, i) => switched(i)),
        },
      },
    },
  ],
};
