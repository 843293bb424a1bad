/** Random kernels, which write the same bits with and without optimisation. */
import * as fc from '../../fast-check.js';
import { expect, test } from 'vitest';
import type {
  BinaryOperator,
  CompareOperator,
  Expression,
  ValueType,
} from '../../../src/compiler/tree.js';
import { runKernel } from './run-kernel.js';
import {
  TreeBuilder,
  add,
  binary,
  bitcast,
  compare,
  conditional,
  constant,
  convert,
  fma,
  logical,
  lt,
  mul,
  narrow,
  shuffle,
  unary,
} from '../../../src/compiler/emit/trees.test-support.js';
import type { Elements, Variable } from '../../../src/compiler/emit/trees.test-support.js';

/** Draws from a seed, which determines the whole kernel, so that a failing seed reproduces it. */
class Dice {
  private state: number;

  constructor(seed: number) {
    this.state = seed >>> 0;
  }

  below(count: number): number {
    this.state = (Math.imul(this.state, 1664525) + 1013904223) >>> 0;
    return Math.floor((this.state / 2 ** 32) * count);
  }

  of<T>(list: readonly T[]): T {
    return list[this.below(list.length)]!;
  }
}

type NumberType = Exclude<ValueType, 'bool'>;
const numberTypes: readonly NumberType[] = ['i32', 'u32', 'f32', 'i32', 'f32', 'i64', 'u64', 'f64'];
const isFloat = (type: ValueType): boolean => type[0] === 'f';
const constants: Readonly<Record<NumberType, readonly (number | bigint)[]>> = {
  i32: [0, 1, 2, 4, -1, 7, 32, 1000, -2147483648, 2147483647],
  u32: [0, 1, 3, 8, 255, 4294967295],
  i64: [0n, 1n, -1n, 16n, 4294967296n],
  u64: [0n, 1n, 12n, 18446744073709551615n],
  f32: [0, -0, 1, -1, 0.5, 2, 1.5, 3, 0.25],
  f64: [0, 1, -2, 0.1, 1e10, 0.5],
};

class Kernel {
  readonly t = new TreeBuilder('random');
  private readonly dice: Dice;
  private readonly variables: Variable[] = [];
  private readonly input: Elements;
  private readonly words: Elements;
  private readonly out: Elements;
  private readonly local: Elements;
  private readonly table: Elements;
  private readonly n: Expression;
  private readonly thread: Expression;
  /** The enclosing loops. */
  private depth = 0;
  private statements = 0;
  /** Whether threads may have diverged. */
  private apart = 0;

  constructor(seed: number) {
    this.dice = new Dice(seed);
    this.input = this.t.tensor('x', 'f32', 'input');
    this.words = this.t.tensor('w', 'i32', 'input');
    this.out = this.t.tensor('y', 'i32');
    this.n = this.t.scalar('n', 'i32');
    this.thread = this.t.special('threadIdx.x');
    this.local = this.t.array('local', 'i32', 8);
    this.table = this.t.array('local', 'f32', 16);
    for (const type of ['i32', 'u32', 'f32', 'i64', 'f64'] as const)
      this.variables.push(this.t.variable(constant(this.dice.of(constants[type]), type), type));
    this.block(3 + this.dice.below(6));
    let hash = this.variables
      .map((variable) => this.bits(variable.value))
      .reduce((a, b) => binary('xor', mul(a, 31), b));
    for (let at = 0; at < 8; at++) hash = add(mul(hash, 7), this.local.at(at));
    this.t.group(() => this.out.put(add(this.thread, 32), hash));
  }

  private bits(value: Expression): Expression {
    if (value.type === 'f32') return bitcast(this.tidy(value), 'i32');
    if (value.type === 'f64') return convert(bitcast(this.tidy(value), 'i64'), 'i32');
    return convert(value, 'i32');
  }

  /** NaN has many bits; one is taken. */
  private tidy(value: Expression): Expression {
    return conditional(compare('eq', value, value), value, constant(0.125, value.type));
  }

  private value(type: ValueType, depth: number): Expression {
    const { dice } = this;
    if (type === 'bool') return this.test(depth);
    if (depth <= 0 || dice.below(5) === 0) {
      const fitting = this.variables.filter((variable) => variable.type === type);
      if (fitting.length > 0 && dice.below(3) > 0) return dice.of(fitting).value;
      if (type === 'i32' && dice.below(2) === 0) return dice.of([this.thread, this.n]);
      return constant(dice.of(constants[type]), type);
    }
    const next = (): Expression => this.value(type, depth - 1);
    switch (dice.below(12)) {
      case 0: {
        const from = dice.of(numberTypes);
        return from === type ? next() : convert(this.value(from, depth - 1), type);
      }
      case 1:
        return conditional(this.test(depth - 1), next(), next());
      case 2:
        return type === 'f32'
          ? this.input.at(this.index(depth, 63))
          : type === 'i32'
            ? this.words.at(this.index(depth, 63))
            : next();
      case 3:
        return type === 'f32'
          ? this.table.at(this.index(depth, 15))
          : type === 'i32'
            ? this.local.at(this.index(depth, 7))
            : next();
      case 4:
        return isFloat(type)
          ? fma(next(), next(), next())
          : unary(dice.of(['neg', 'not', 'popc', 'brev'] as const), next());
      case 5:
        return isFloat(type)
          ? unary(dice.of(['neg', 'abs', 'floor', 'trunc', 'rint', 'ceil'] as const), next())
          : binary(dice.of(['shl', 'shr'] as const), next(), this.value('u32', depth - 1));
      case 6:
        return type === 'i32'
          ? narrow(next(), dice.of(['i8', 'u8', 'i16', 'u16'] as const))
          : type === 'f32'
            ? narrow(next(), dice.of(['f16', 'bf16', 'f8e4m3'] as const))
            : next();
      case 7:
        return this.apart === 0 && this.depth === 0 && type === 'i32'
          ? shuffle('bfly', next(), 1 + dice.below(16))
          : next();
      case 8:
        // The divisor is never zero, and the least number is never divided by -1.
        if (isFloat(type)) return binary(dice.of(['div', 'rem'] as const), next(), next());
        return type === 'i32'
          ? binary(dice.of(['div', 'rem'] as const), next(), add(binary('and', next(), 15), 1))
          : next();
      default: {
        const operators: readonly BinaryOperator[] = isFloat(type)
          ? ['add', 'sub', 'mul', 'min', 'max']
          : ['add', 'sub', 'mul', 'and', 'or', 'xor', 'min', 'max', 'mulhi', 'add', 'sub'];
        return binary(dice.of(operators), next(), next());
      }
    }
  }

  private index(depth: number, mask: number): Expression {
    const { dice } = this;
    return dice.below(3) === 0
      ? constant(dice.below(mask + 1))
      : binary('and', this.value('i32', depth - 1), mask);
  }

  private test(depth: number): Expression {
    const { dice } = this;
    switch (dice.below(5)) {
      case 0:
        return logical(dice.of(['and', 'or'] as const), this.test(depth - 1), this.test(depth - 1));
      case 1:
        return unary('not', this.test(depth - 1));
      default: {
        const type = dice.of(numberTypes);
        return compare(
          dice.of<CompareOperator>(['lt', 'le', 'gt', 'ge', 'eq', 'ne']),
          this.value(type, Math.min(depth - 1, 1)),
          this.value(type, 0),
        );
      }
    }
  }

  private block(count: number): void {
    for (let at = 0; at < count; at++) this.statement();
  }

  private parted(body: () => void): () => void {
    return () => {
      this.apart++;
      // The variables of the block are not visible after it.
      const held = this.variables.length;
      body();
      this.variables.length = held;
      this.apart--;
    };
  }

  private statement(): void {
    const { dice, t } = this;
    if (++this.statements > 60) return;
    const inner = this.depth + this.apart < 4;
    switch (dice.below(inner ? 12 : 6)) {
      case 0:
        this.out.put(add(binary('and', this.thread, 31), 0), this.value('i32', 3));
        return;
      case 1:
        this.local.put(this.index(2, 7), this.value('i32', 2));
        return;
      case 2:
        this.table.put(this.index(2, 15), this.value('f32', 2));
        return;
      case 3: {
        const type = dice.of(numberTypes);
        this.variables.push(t.variable(this.value(type, 3), type));
        return;
      }
      case 4:
      case 5: {
        const variable = dice.of(this.variables);
        variable.set(this.value(variable.type, 3));
        return;
      }
      case 6:
      case 7:
        t.if(
          this.test(2),
          this.parted(() => this.block(1 + dice.below(3))),
          dice.below(2) === 0 ? this.parted(() => this.block(1 + dice.below(2))) : undefined,
        );
        return;
      case 8:
      case 9:
        this.loop();
        return;
      case 10:
        t.group((id) =>
          this.parted(() => {
            this.block(1);
            t.if(this.test(1), () => t.break(id));
            this.block(2);
          })(),
        );
        return;
      default:
        if (dice.below(6) === 0) t.if(compare('eq', this.value('i32', 2), 12345), () => t.return());
    }
  }

  /** Ends after a few iterations whatever its body is: no other statement writes the counter. */
  private loop(): void {
    const { dice, t } = this;
    const limit = dice.of<Expression>([
      constant(3),
      constant(8),
      binary('and', this.value('i32', 1), 7),
      this.n,
      binary('and', this.thread, 7),
    ]);
    const end = t.variable(limit);
    const kind = dice.below(4);
    const step = 1 + dice.below(3);
    this.depth++;
    const inside = (id: number): void =>
      this.parted(() => {
        this.block(1 + dice.below(3));
        if (kind === 1) t.if(this.test(1), () => t.continue(id));
        if (kind === 2) t.if(this.test(1), () => t.break(id));
        this.block(1);
      })();
    const i = t.variable(0);
    const bound = limit.op === 'constant' ? limit : end.value;
    const readable: Variable = { ...i, set: () => undefined };
    this.variables.push(readable);
    t.loop(lt(i.value, bound), inside, () => i.set(add(i.value, step)), {
      testAfter: kind === 3,
      ...(dice.below(6) === 0 ? { unroll: dice.below(5) } : {}),
    });
    this.variables.splice(this.variables.indexOf(readable), 1);
    this.depth--;
  }
}

const input = Float32Array.from({ length: 64 }, (_, at) =>
  Math.fround([0, -0, 1, -1.5, 1e-40, 3e38, NaN, Infinity][at % 8]! * (1 + at / 16)),
);
const words = Int32Array.from(
  { length: 64 },
  (_, at) => Math.imul(at * at + 1, 0x9e3779b9) >> (at % 20),
);

function outputOf(seed: number, optimise: boolean): { status: number; y: number[]; ptx: string } {
  const { outcome, of, emitted } = runKernel(new Kernel(seed).t.tree, {
    values: { x: input, w: words, y: new Int32Array(64), n: 5 },
    target: { optimise, ...(optimise ? { block: [32, 1, 1] as const } : {}) },
    shown: seed % 8 === 0,
  });
  return { status: outcome.status, y: [...of<Int32Array>('y')], ptx: emitted.ptx };
}

test(
  'random kernels write the same bits, optimised or not',
  { tags: 'random', timeout: 600_000 },
  () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 2 ** 31 - 1 }), (seed) => {
        const plain = outputOf(seed, false);
        const optimised = outputOf(seed, true);
        expect(optimised.status).toBe(plain.status);
        expect(optimised.y).toEqual(plain.y);
      }),
      { numRuns: 60, interruptAfterTimeLimit: 500_000 },
    );
  },
);
