// Carry chains against a model with integers of any size: over branches, in loops, and with a
// suspension between two instructions of a chain.

import * as fc from '../../../test/fast-check.js';
import { describe, expect, it } from 'vitest';
import { STATUS } from '../index.js';
import { Grid, kernelText } from '../run-grid.test-support.js';

const REGISTERS = 4;
const THREADS = 40;
const OPERATIONS = [
  'add.cc',
  'addc',
  'addc.cc',
  'sub.cc',
  'subc',
  'subc.cc',
  'mad.lo.cc',
  'mad.hi.cc',
  'madc.lo',
  'madc.hi',
  'madc.lo.cc',
  'madc.hi.cc',
] as const;

interface Step {
  kind: 'step';
  operation: (typeof OPERATIONS)[number];
  type: 'u32' | 's32' | 'u64' | 's64';
  to: number;
  from: [number, number, number];
  when?: [register: number, bit: number] | undefined;
}
type Part =
  | Step
  | { kind: 'if'; register: number; bit: number; then: Part[]; otherwise: Part[] }
  | { kind: 'loop'; times: number; body: Part[] }
  | { kind: 'barrier' };

const bitsOf = (type: Step['type']): number => Number(type.slice(1));

/** The effect on one thread's registers of 64 bits and on its flag. */
function run(parts: readonly Part[], registers: bigint[], state: { carry: bigint }): void {
  for (const part of parts) {
    if (part.kind === 'if')
      run(
        ((registers[part.register]! >> BigInt(part.bit)) & 1n) === 1n ? part.then : part.otherwise,
        registers,
        state,
      );
    else if (part.kind === 'loop')
      for (let turn = 0; turn < part.times; turn++) run(part.body, registers, state);
    else if (part.kind === 'step') step(part, registers, state);
  }
}

function step(
  { operation, type, to, from, when }: Step,
  registers: bigint[],
  state: { carry: bigint },
): void {
  if (when && ((registers[when[0]]! >> BigInt(when[1])) & 1n) === 0n) return;
  const bits = bitsOf(type);
  const read = (index: number): bigint =>
    type.startsWith('s')
      ? BigInt.asIntN(bits, registers[from[index]!]!)
      : BigInt.asUintN(bits, registers[from[index]!]!);
  const [mnemonic = '', ...modifiers] = operation.split('.');
  const carried = mnemonic.endsWith('c') ? state.carry : 0n;
  const plain = (value: bigint): bigint => BigInt.asUintN(bits, value);
  let sum: bigint;
  if (mnemonic.startsWith('add')) {
    sum = plain(read(0)) + plain(read(1)) + carried;
  } else if (mnemonic.startsWith('sub')) {
    // The machine adds the complement of the subtrahend; the carry of that sum means that there is
    // no borrow.
    sum = plain(read(0)) + plain(~read(1)) + (mnemonic === 'subc' ? state.carry : 1n);
  } else {
    const product = read(0) * read(1);
    sum =
      plain(modifiers.includes('hi') ? product >> BigInt(bits) : product) +
      plain(read(2)) +
      carried;
  }
  if (modifiers.includes('cc')) state.carry = sum >> BigInt(bits);
  // A result of 32 bits is written to the lower half.
  registers[to] = bits === 64 ? plain(sum) : ((registers[to]! >> 32n) << 32n) | plain(sum);
}

/** The same in PTX, with labels of its own. */
function write(parts: readonly Part[]): string {
  let labels = 0;
  const all = (list: readonly Part[], depth: number): string =>
    list.map((part) => one(part, depth)).join('\n');
  const one = (part: Part, depth: number): string => {
    if (part.kind === 'barrier') return 'bar.sync 0;';
    const label = `L${labels++}`;
    const test = (register: number, bit: number): string =>
      `shr.u64 %x, %v${register}, ${bit}; and.b64 %x, %x, 1; setp.eq.u64 %p, %x, 1;`;
    if (part.kind === 'if') {
      return (
        `${test(part.register, part.bit)} @!%p bra ` +
        `${label}else;\n${all(part.then, depth)}\nbra.uni ` +
        `${label}end;\n${label}else:\n${all(part.otherwise, depth)}\n${label}end:`
      );
    }
    if (part.kind === 'loop') {
      return (
        `mov.u32 %n${depth}, 0;\n${label}:\n${all(part.body, depth + 1)}\nadd.u32 %n${depth}, ` +
        `%n${depth}, 1; setp.lt.u32 %p, %n${depth}, ${part.times}; @%p bra ${label};`
      );
    }
    const { operation, type, to, from, when } = part;
    const operands = operation.startsWith('mad') ? 3 : 2;
    const guard = when ? `${test(...when)} @%p ` : '';
    if (bitsOf(type) === 64)
      return `${guard}${operation}.${type} %v${to}, ${from
        .slice(0, operands)
        .map((index) => `%v${index}`)
        .join(', ')};`;
    return `${from
      .map(
        (index, place) => `cvt.u32.u64 %a${place},
      %v${index};`,
      )
      .join(' ')} cvt.u32.u64 %r, %v${to};
        ${guard}${operation}.${type} %r, ${['%a0', '%a1', '%a2'].slice(0, operands).join(', ')};
      shr.u64 %x, %v${to}, 32; shl.b64 %x, %x, 32; cvt.u64.u32 %v${to}, %r;
        or.b64 %v${to}, %v${to}, %x;`;
  };
  return all(parts, 0);
}

function execute(
  parts: readonly Part[],
  inputs: BigUint64Array,
  simd: boolean,
  fuel?: number,
): { out: BigUint64Array; lanes: unknown } {
  const registers = Array.from({ length: REGISTERS }, (_, index) => index);
  const grid = new Grid(
    kernelText(
      'k',
      '.param .u64 in, .param .u64 out',
      `.reg .b64 %i, %o, %x, %v<${REGISTERS}>; .reg .b32 %t, %r, %a<3>, %n<8>; .reg .pred %p;
    ld.param.u64 %i, [in]; ld.param.u64 %o, [out]; mov.u32 %t, %tid.x;
    mul.wide.u32 %x, %t, ${8 * REGISTERS}; add.u64 %i, %i, %x; add.u64 %o, %o, %x;
    ${registers
      .map(
        (index) => `ld.global.u64 %v${index},
      [%i+${8 * index}];`,
      )
      .join(' ')} sub.cc.u32 %r, 0, 1;
    ${write(parts)}
    ${registers.map((index) => `st.global.u64 [%o+${8 * index}], %v${index};`).join(' ')} ret;`,
    ),
    { simd },
  );
  const input = grid.put(inputs);
  const output = grid.put(new BigUint64Array(inputs.length));
  const outcome = grid.run('k', [{ i64: input.address }, { i64: output.address }], {
    grid: [1],
    block: [THREADS],
    ...(fuel === undefined ? {} : { fuel }),
  });
  expect(outcome.status).toBe(STATUS.done);
  return { out: output.view, lanes: grid.kernel('k').inLanes([THREADS, 1, 1]) };
}

/** Values at which carries change. */
const EDGES = [
  0n,
  1n,
  2n,
  0x7fffffffn,
  0x80000000n,
  0xffffffffn,
  0x100000000n,
  0x7fffffffffffffffn,
  0x8000000000000000n,
  0xfffffffffffffffen,
  0xffffffffffffffffn,
];
const register = fc.nat({ max: REGISTERS - 1 });
const bit = fc.nat({ max: 63 });
const stepArbitrary: fc.Arbitrary<Step> = fc.record({
  kind: fc.constant('step' as const),
  operation: fc.constantFrom(...OPERATIONS),
  type: fc.constantFrom('u32', 's32', 'u64', 's64'),
  to: register,
  from: fc.tuple(register, register, register),
  when: fc.option(fc.tuple(register, bit), { nil: undefined, freq: 3 }),
});
/** Barriers are where all threads pass. */
const parts = (depth: number, together: boolean): fc.Arbitrary<Part[]> =>
  fc.array(
    fc.oneof(
      { arbitrary: stepArbitrary as fc.Arbitrary<Part>, weight: 6 },
      ...(together ? [{ arbitrary: fc.constant<Part>({ kind: 'barrier' }), weight: 1 }] : []),
      ...(depth === 0
        ? []
        : [
            {
              arbitrary: fc.record({
                kind: fc.constant('if' as const),
                register,
                bit,
                then: parts(depth - 1, false),
                otherwise: parts(depth - 1, false),
              }) as fc.Arbitrary<Part>,
              weight: 1,
            },
            {
              arbitrary: fc.record({
                kind: fc.constant('loop' as const),
                times: fc.integer({ min: 1, max: 5 }),
                body: parts(depth - 1, together),
              }) as fc.Arbitrary<Part>,
              weight: 1,
            },
          ]),
    ),
    { minLength: 1, maxLength: 6 },
  );
const values = fc.array(
  fc.oneof(fc.constantFrom(...EDGES), fc.bigInt({ min: 0n, max: 0xffffffffffffffffn })),
  { minLength: REGISTERS * THREADS, maxLength: REGISTERS * THREADS },
);

function expected(list: readonly Part[], inputs: readonly bigint[]): bigint[] {
  const out: bigint[] = [];
  for (let thread = 0; thread < THREADS; thread++) {
    const registers = inputs.slice(REGISTERS * thread, REGISTERS * (thread + 1));
    // As after `sub.cc.u32 %r, 0, 1`.
    run(list, registers, { carry: 0n });
    out.push(...registers);
  }
  return out;
}

describe('carry chains', () => {
  it(
    'over branches, loops and barriers, thread by thread and where lanes are asked for',
    { tags: 'random' },
    () => {
      fc.assert(
        fc.property(parts(2, true), values, fc.boolean(), (list, inputs, simd) => {
          const { out, lanes } = execute(list, BigUint64Array.from(inputs), simd);
          expect([...out]).toEqual(expected(list, inputs));
          expect(lanes).toBe(simd ? 'it has carry chains' : lanes);
        }),
        { numRuns: 150 },
      );
    },
  );
  it('where the fuel of a call ends within a chain', { tags: 'random' }, () => {
    fc.assert(
      fc.property(parts(2, true), values, fc.integer({ min: 1, max: 9 }), (list, inputs, fuel) => {
        expect([...execute(list, BigUint64Array.from(inputs), false, fuel).out]).toEqual(
          expected(list, inputs),
        );
      }),
      { numRuns: 100 },
    );
  });
  it('a sum of 256 bits whose loop waits at a barrier after every word', () => {
    const list: Part[] = [
      { kind: 'step', operation: 'add.cc', type: 'u64', to: 0, from: [0, 1, 0] },
      {
        kind: 'loop',
        times: 5,
        body: [
          { kind: 'barrier' },
          { kind: 'step', operation: 'addc.cc', type: 'u64', to: 2, from: [2, 3, 0] },
        ],
      },
    ];
    const inputs = Array.from(
      { length: REGISTERS * THREADS },
      (_, index) => EDGES[(index * 7 + 3) % EDGES.length]!,
    );
    expect([...execute(list, BigUint64Array.from(inputs), false).out]).toEqual(
      expected(list, inputs),
    );
  });
});
