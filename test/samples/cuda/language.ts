/** What the language offers beyond arrays of numbers. */
import { Values } from '../host-values.js';
import type { SampleModule } from '../sample-case.js';

const random = new Values(34);
const n = 300;
const numbers = random.wildIntegers(n);
const divisors = random.wildIntegers(n);

const LOW = 2n ** 64n - 1n;
const unsigned = (value: bigint, bits: number): bigint => BigInt.asUintN(bits, value);
const signed = (value: bigint, bits: number): bigint => BigInt.asIntN(bits, value);

/** Words whose halves are often all zeros or ones. */
const wide = (): BigUint64Array =>
  new BigUint64Array(
    Int32Array.from({ length: 4 * n }, () =>
      random.one([0, -1, 1, random.word(), random.word(), random.below(256)]),
    ).buffer,
  );
const [a128, b128] = [wide(), wide()];
function results128(): bigint[] {
  const words: bigint[] = [];
  const flags: bigint[] = [];
  for (let i = 0; i < n; i++) {
    const x = (a128[2 * i + 1]! << 64n) | a128[2 * i]!;
    let y = (b128[2 * i + 1]! << 64n) | b128[2 * i]!;
    const sx = signed(x, 128);
    let sy = signed(y, 128);
    if (y === 0n) [y, sy] = [7n, -3n];
    const shift = b128[2 * i]! & 127n;
    for (const result of [
      x + y,
      x - y,
      x * y,
      x / y,
      x % y,
      sx / sy,
      sx % sy,
      x << shift,
      x >> shift,
      sx >> shift,
    ])
      words.push(result & LOW, unsigned(result, 128) >> 64n);
    flags.push(
      BigInt(x < y) | (BigInt(sx < sy) << 1n) | (BigInt(a128[2 * i]! > 1_000_000_000n) << 2n),
    );
  }
  return [...words, ...flags];
}

const prime = 2n ** 255n - 19n;
const R = 2n ** 256n;
const wordsOf = (value: bigint): number[] =>
  Array.from({ length: 8 }, (_, i) => Number((value >> BigInt(32 * i)) & 0xffffffffn));
const residues = (): Uint32Array =>
  Uint32Array.from({ length: 8 * n }, (_, i) =>
    i % 8 === 7 ? random.word() >>> 1 : random.word(),
  );
const [aMod, bMod] = [residues(), residues()];
function power(base: bigint, exponent: bigint): bigint {
  return exponent === 0n
    ? 1n
    : (power((base * base) % prime, exponent >> 1n) * (exponent & 1n ? base : 1n)) % prime;
}
function reduced(): number[] {
  const inverse = power(R % prime, prime - 2n);
  const value = (words: Uint32Array, i: number): bigint =>
    words.slice(8 * i, 8 * i + 8).reduceRight((sum, word) => (sum << 32n) | BigInt(word), 0n);
  return Array.from({ length: n }, (_, i) =>
    wordsOf((((value(aMod, i) * value(bMod, i)) % prime) * inverse) % prime),
  ).flat();
}
/** -1/prime modulo 2^32: prime is -19 there. */
const negatedInverse = ((): number => {
  for (let k = 0n; ; k++)
    if ((k * 2n ** 32n + 1n) % 19n === 0n) return Number((k * 2n ** 32n + 1n) / 19n);
})();

function field(v: number): number {
  const value = v >>> 0;
  const low = ((value & 7) + 3) & 7;
  const narrow = Number(signed(signed(BigInt(value >>> 3), 7) - BigInt(low), 7));
  const e = signed(-BigInt(value), 24);
  const d = unsigned(BigInt(value) * BigInt(value) + e, 40);
  const bytes = (value ^ (0x55 << (8 * (value & 3)))) >>> 0;
  return (Number(narrow < 0) + 2 * Number(e >= 0n) + bytes * 4 + Number(d >> 13n)) % 2 ** 32;
}

const four = new Uint8Array(4096);
const view = new DataView(four.buffer);
view.setInt32(0, 1000, true);
for (let i = 0; i < 1000; i++) view.setFloat32(4 + 4 * i, i * 0.5 - 7, true);
view.setFloat64(4008, 0.25, true);
for (let i = 0; i < 79; i++) view.setInt8(4016 + i, i - 40);
const indices = random.integers(n, 0, 4999);

function called(v: number): number {
  const x = v & 1023;
  const functions: readonly ((a: number, b: number) => number)[] = [
    (a, b) => a + b,
    (a, b) => a - b,
    Math.imul,
    (a, b) => (b === 0 ? -1 : Math.trunc(a / b)),
  ];
  const ackermann = x & 8 ? 2 * (x & 7) + 3 : 0;
  const sum = functions[x & 3]!(v, x) + (x & 1 ? Math.imul(x, 3) : Math.trunc(x / 3)) + ackermann;
  return (sum * 2 + ((x % 37) % 2 === 0 ? 1 : 0)) | 0;
}

function median(v: number, i: number): number {
  const length = (v & 63) + 1;
  return Int32Array.from({ length }, (_, k) => numbers[(i + k) % n]!).sort()[length >> 1]!;
}

function evaluated(v: number, i: number): number {
  let value = 4 + (i & 7) + i;
  for (let k = 0; k < (v & 3); k++) value *= k + 2;
  return value + i + 1000;
}

function edgeCases(x32: number, y32: number): bigint[] {
  const [x, y] = [BigInt(x32), BigInt(y32)];
  const shift = unsigned(y, 7);
  const both = (unsigned(x, 32) << 32n) | unsigned(y, 32);
  const half = signed(x, 16);
  const overflows = y === -1n && x === -(2n ** 31n);
  const quotient = y === 0n || overflows ? 0n : x / y;
  return [
    unsigned(x << shift, 32),
    unsigned(x >> shift, 32),
    unsigned(x, 32) >> shift,
    unsigned(both << shift, 64),
    unsigned(signed(both, 64) >> shift, 64),
    unsigned(half >> shift, 16),
    unsigned(half << shift, 16),
    unsigned(y === 0n ? 0n : x % y, 32) | (unsigned(quotient, 32) << 32n),
  ];
}

/**
 * push 1, swap; then: dup, push 3, mul, push 7, xor, swap, dec, jump to the swap before `dup` while
 * not zero; swap, shl, halt
 */
const program = Uint8Array.of(0, 1, 5, 5, 0, 3, 3, 0, 7, 9, 5, 7, 6, 3, 5, 10, 8);
function machine(i: number): number {
  const stack = new Int32Array(8);
  let [sp, pc, steps] = [1, 0, 0];
  stack[0] = (i % 23) + 1;
  const top = (): number => (sp - 1) & 7;
  const second = (): number => (sp - 2) & 7;
  while (++steps <= 500) {
    const op = program[pc++]!;
    if (op === 8) break;
    if (op === 0) stack[sp++ & 7] = program[pc++]!;
    else if (op === 5) [stack[top()], stack[second()]] = [stack[second()]!, stack[top()]!];
    else if (op === 6) pc = stack[top()] === 0 ? pc + 1 : program[pc]!;
    else if (op === 7) stack[top()]!--;
    else if (op === 10) stack[top()]! <<= 1;
    else {
      sp--;
      stack[top()] =
        op === 3 ? Math.imul(stack[top()]!, stack[sp & 7]!) : stack[top()]! ^ stack[sp & 7]!;
    }
  }
  return (Math.imul(stack[top()]!, 1000) + steps) | 0;
}

const fibonacci = [0, 1];
for (let i = 2; i < 20; i++) fibonacci.push(fibonacci[i - 1]! + fibonacci[i - 2]!);
function folded(v: number): number {
  const k = v & 15;
  let captured = v;
  const g = (r: number, j: number): number =>
    (Math.imul(r, 31) + (j ^ v) + fibonacci[j]! + fibonacci[k]!) | 0;
  const h = (r: number, j: number): number => {
    captured = (captured + j) | 0;
    return r ^ g(r, j);
  };
  const fold = (count: number, step: (r: number, j: number) => number): number =>
    Array.from({ length: count }, (_, j) => j).reduce(step, 0);
  return (fold(k, g) + Math.imul(fold(16 - k, h), 3) + captured) | 0;
}

export const LANGUAGE: SampleModule = {
  name: 'language',
  cases: [
    {
      kernel: 'i128',
      name: 'halves of zeros and ones',
      memory: { a128, b128, out: new BigUint64Array(21 * n) },
      launches: [{ grid: 3, block: 128, args: ['a128', 'b128', 'out', n] }],
      outputs: { out: { equal: 'bits', reference: results128 } },
    },
    {
      kernel: 'mont',
      name: 'modulo 2^255 - 19',
      memory: { aMod, bMod, out: new Uint32Array(8 * n) },
      launches: [
        {
          grid: 3,
          block: 100,
          args: [
            'aMod',
            'bMod',
            'out',
            new Uint8Array(Uint32Array.from(wordsOf(prime)).buffer),
            negatedInverse,
            n,
          ],
        },
      ],
      outputs: { out: { equal: 'bits', reference: reduced } },
    },
    {
      kernel: 'fields',
      name: 'any words',
      memory: { numbers, structures: new Uint32Array(6 * n), out: new Uint32Array(n) },
      launches: [{ grid: 3, block: 128, args: ['numbers', 'structures', 'out', n] }],
      outputs: { out: { equal: 'bits', reference: () => Array.from(numbers, field) } },
    },
    {
      kernel: 'big4k',
      name: 'indexed by data',
      memory: { indices, out: new Float32Array(n) },
      launches: [{ grid: 3, block: 128, args: [four, 'indices', 'out', n] }],
      outputs: {
        out: {
          equal: 'bits',
          reference: () =>
            Array.from(indices, (i) => (i % 1000) - 14 + 0.25 + ((i % 1000) % 79) - 40),
        },
      },
    },
    {
      kernel: 'calls',
      name: 'any numbers',
      memory: { numbers, out: new Int32Array(n) },
      launches: [{ grid: 3, block: 128, args: ['numbers', 'out', n] }],
      outputs: { out: { equal: 'bits', reference: () => Array.from(numbers, called) } },
    },
    {
      kernel: 'stack',
      name: '1 to 64 words',
      memory: { numbers, out: new Int32Array(n) },
      launches: [{ grid: 3, block: 128, args: ['numbers', 'out', n] }],
      outputs: { out: { equal: 'bits', reference: () => Array.from(numbers, median) } },
    },
    {
      kernel: 'heap',
      name: 'up to four objects a thread',
      memory: { numbers, out: new Int32Array(n), log: new Int32Array(1) },
      launches: [{ grid: 3, block: 128, args: ['numbers', 'out', 'log', n] }],
      outputs: {
        out: { equal: 'bits', reference: () => Array.from(numbers, evaluated) },
        log: {
          equal: 'bits',
          reference: () => [numbers.reduce((sum, v) => sum + [0, 2, 5, 9][v & 3]!, 0)],
        },
      },
    },
    {
      kernel: 'edges',
      name: 'any numbers',
      memory: { numbers, divisors, out: new BigUint64Array(8 * n) },
      launches: [{ grid: 3, block: 128, args: ['numbers', 'divisors', 'out', n] }],
      outputs: {
        out: {
          equal: 'bits',
          reference: () => Array.from(numbers, (x, i) => edgeCases(x, divisors[i]!)).flat(),
        },
      },
    },
    {
      kernel: 'vm',
      name: 'loops of 1 to 23 rounds',
      memory: { program, out: new Int32Array(n) },
      launches: [{ grid: 3, block: 128, args: ['program', 'out', n] }],
      outputs: {
        out: { equal: 'bits', reference: () => Array.from({ length: n }, (_, i) => machine(i)) },
      },
    },
    {
      kernel: 'lambdas',
      name: 'captured by value and by reference',
      memory: { numbers, out: new Int32Array(n) },
      launches: [{ grid: 3, block: 128, args: ['numbers', 'out', n] }],
      outputs: { out: { equal: 'bits', reference: () => Array.from(numbers, folded) } },
    },
  ],
};
