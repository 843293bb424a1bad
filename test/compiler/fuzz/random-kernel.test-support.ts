/**
 * Test only: random kernels, well typed, whose results depend on no order of threads. Every thread
 * writes elements of its own; shared memory is written and read with barriers between; convergent
 * operations are in uniform control flow.
 */
import { readAs } from '../../../src/compiler/storage-types.js';
import { TreeBuilder } from '../../../src/compiler/tree-builder.test-support.js';
import type { Elements } from '../../../src/compiler/tree-builder.test-support.js';
import type {
  BinaryOperator,
  CompareOperator,
  Expression,
  KernelTree,
  Statement,
  StorageType,
  UnaryOperator,
  ValueType,
} from '../../../src/compiler/tree.js';

/** Numbers from a seed; the same seed gives the same ones. */
export class Random {
  private state: number;

  constructor(seed: number) {
    this.state = Math.imul(seed ^ 0x9e3779b9, 0x85ebca6b) >>> 0;
  }

  /** 32 bits. (mulberry32) */
  bits(): number {
    this.state = (this.state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(this.state ^ (this.state >>> 15), this.state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return (mixed ^ (mixed >>> 14)) >>> 0;
  }

  below(limit: number): number {
    return this.bits() % limit;
  }

  chance(percent: number): boolean {
    return this.below(100) < percent;
  }

  pick<T>(from: readonly T[]): T {
    return from[this.below(from.length)]!;
  }
}

export const BLOCKS = 2;
export const THREADS = 32;
/** Elements of every tensor. */
export const LENGTH = 64;

const TYPES: readonly ValueType[] = ['bool', 'i32', 'u32', 'i64', 'u64', 'f32', 'f64'];
const NUMERIC: readonly ValueType[] = ['i32', 'u32', 'i64', 'u64', 'f32', 'f64'];
const INTEGERS: readonly ValueType[] = ['i32', 'u32', 'i64', 'u64'];
export const STORAGES: readonly StorageType[] = [
  'bool',
  'i8',
  'u8',
  'i16',
  'u16',
  'i32',
  'u32',
  'i64',
  'u64',
  'f16',
  'bf16',
  'f8e4m3',
  'f8e5m2',
  'f32',
  'f64',
];
export const READ_AS = readAs;

const isFloat = (type: ValueType): boolean => type === 'f32' || type === 'f64';
const is64 = (type: ValueType): boolean => type === 'i64' || type === 'u64';

const INTERESTING_FLOATS = [
  0,
  -0,
  1,
  -1,
  0.5,
  1.5,
  2.5,
  -2.5,
  0.1,
  3,
  16777216,
  16777217,
  4294967296,
  2147483648,
  -2147483649,
  1e10,
  -1e20,
  1e30,
  1e-30,
  1e-40,
  65504,
  65520,
  448,
  1e300,
  Infinity,
  -Infinity,
  NaN,
];
const INTERESTING_INTEGERS = [
  0n,
  1n,
  2n,
  3n,
  5n,
  7n,
  31n,
  32n,
  63n,
  255n,
  256n,
  32767n,
  65535n,
  65536n,
  16777217n,
  0x7fffffffn,
  0x80000000n,
  0xffffffffn,
  0x100000000n,
  0x7fffffffffffffffn,
  -1n,
  -2n,
  -128n,
  -0x80000000n,
  -0x8000000000000000n,
];

/** A value that the type holds. */
export function randomValue(random: Random, type: ValueType): number | bigint | boolean {
  if (type === 'bool') return random.chance(50);
  if (isFloat(type)) {
    const value = random.chance(40)
      ? random.pick(INTERESTING_FLOATS)
      : (random.bits() / 2 ** 32 - 0.5) * 2 ** (random.below(60) - 30);
    return type === 'f32' ? Math.fround(value) : value;
  }
  const value = random.chance(60)
    ? random.pick(INTERESTING_INTEGERS)
    : (BigInt(random.bits()) << 32n) | BigInt(random.bits());
  switch (type) {
    case 'i32':
      return Number(BigInt.asIntN(32, value));
    case 'u32':
      return Number(BigInt.asUintN(32, value));
    case 'i64':
      return BigInt.asIntN(64, value);
    default:
      return BigInt.asUintN(64, value);
  }
}

type Local = Expression & { op: 'local' };

export interface RandomKernel {
  readonly tree: KernelTree;
  /** Names of tensors that are written, with what they hold. */
  readonly outputs: readonly { readonly name: string; readonly storage: StorageType }[];
  readonly inputs: readonly { readonly name: string; readonly storage: StorageType }[];
  readonly scalars: readonly { readonly name: string; readonly storage: StorageType }[];
}

class Maker {
  private readonly random: Random;
  private readonly t: TreeBuilder;
  private readonly inputs: { name: string; storage: StorageType; elements: Elements }[] = [];
  private readonly outputs: { name: string; storage: StorageType; elements: Elements }[] = [];
  private readonly scalars: { name: string; storage: StorageType; value: Expression }[] = [];
  private readonly arrays: { storage: StorageType; elements: Elements }[] = [];
  /** Variables that have a value here. */
  private known: Local[] = [];
  /** Variables that loops count with. */
  private readonly counters = new Set<number>();
  /** Enclosing loops and groups that a break may leave. */
  private around: { id: number; loop: boolean }[] = [];
  private names = 0;
  private depth = 0;
  /** Whether all threads of the block reach this place. */
  private uniform = true;
  private readonly together: boolean;

  constructor(seed: number) {
    this.random = new Random(seed);
    this.t = new TreeBuilder(`random${seed}`);
    this.t.indexType = this.random.chance(15) ? 'i64' : 'i32';
    this.together = this.random.chance(50);
  }

  make(): RandomKernel {
    const { random, t } = this;
    for (const storage of STORAGES) {
      if (!random.chance(50) && storage !== 'i32' && storage !== 'f32') continue;
      const access = { inputs: `a_${storage}`, outputs: `r_${storage}` };
      this.inputs.push({
        name: access.inputs,
        storage,
        elements: t.tensor(access.inputs, storage, 'input'),
      });
      this.outputs.push({
        name: access.outputs,
        storage,
        elements: t.tensor(access.outputs, storage),
      });
      if (random.chance(30))
        this.scalars.push({
          name: `s_${storage}`,
          storage,
          value: t.scalar(`s_${storage}`, storage),
        });
    }
    for (const storage of ['i32', 'f32', 'u8', 'f16'] as const) {
      if (random.chance(25))
        this.arrays.push({ storage, elements: t.array(`own_${storage}`, 'local', storage, 4) });
    }
    const body = this.statements(3 + random.below(6));
    for (const output of this.outputs) body.push(this.write(output));
    const strip = ({ name, storage }: { name: string; storage: StorageType }) => ({
      name,
      storage,
    });
    return {
      tree: t.tree(...body),
      inputs: this.inputs.map(strip),
      outputs: this.outputs.map(strip),
      scalars: this.scalars.map(strip),
    };
  }

  private get index(): Expression {
    return this.t.globalX;
  }

  private write({ elements, storage }: { elements: Elements; storage: StorageType }): Statement {
    return this.t.store(elements, this.index, this.expression(READ_AS[storage]));
  }

  // Statements.

  /** Inner declarations are not visible after the block. */
  private statements(count: number): Statement[] {
    const { known } = this;
    this.known = [...known];
    const made: Statement[] = [];
    for (let at = 0; at < count; at++) made.push(...this.statement());
    this.known = known;
    return made;
  }

  /** Runs `make` as in code where threads have diverged. */
  private apart<T>(make: () => T): T {
    const { uniform } = this;
    this.uniform = false;
    const made = make();
    this.uniform = uniform;
    return made;
  }

  private statement(): Statement[] {
    const { random, t } = this;
    const nested = this.depth < 3;
    const kind = random.below(100);
    if (kind < 40) return [this.declare(random.pick(TYPES))];
    if (kind < 52) {
      const free = this.known.filter((local) => !this.counters.has(local.local));
      if (free.length === 0) return [this.declare(random.pick(TYPES))];
      const local = random.pick(free);
      return [t.set(local, this.expression(local.type))];
    }
    if (kind < 60) return [this.write(random.pick(this.outputs))];
    if (kind < 66 && this.arrays.length > 0) {
      const { elements, storage } = random.pick(this.arrays);
      return [
        random.chance(15)
          ? t.clear(elements)
          : t.store(elements, this.masked(3), this.expression(READ_AS[storage])),
      ];
    }
    if (kind < 76 && nested) {
      const test = this.expression('bool');
      return this.apart(() =>
        this.within(() => [
          t.if(
            test,
            this.statements(1 + random.below(3)),
            random.chance(50) ? this.statements(1 + random.below(2)) : [],
          ),
        ]),
      );
    }
    if (kind < 86 && nested) return this.within(() => this.loop());
    if (kind < 90 && nested) return this.within(() => [this.group()]);
    if (kind < 95 && this.together && this.uniform) return this.share();
    if (kind < 97 && !this.together && nested)
      return [t.if(t.compare('gt', this.masked(63), t.i32(60)), [t.return()])];
    return [this.add()];
  }

  private within<T>(make: () => T): T {
    this.depth++;
    const made = make();
    this.depth--;
    return made;
  }

  private declare(type: ValueType): Statement {
    const value = this.expression(type);
    const local = this.t.local(this.random.chance(20) ? 'v' : `v${this.names++}`, type, false);
    this.known.push(local);
    return this.t.set(local, value);
  }

  private loop(): Statement[] {
    const { random, t } = this;
    const counter = t.local(`i${this.names++}`, random.pick(['i32', 'u32'] as const));
    const one = t.constant(counter.type, 1);
    const limit = t.constant(counter.type, 1 + random.below(4));
    this.counters.add(counter.local);
    const { known } = this;
    this.known = [...known, counter];
    const leaves = random.chance(50);
    // The counter changes in the body, on both sides of a branch, instead of in the update: then no
    // other statement may continue the loop.
    const inBody = random.chance(30);
    const step = (by: Expression): Statement => t.set(counter, t.add(counter, by));
    const make = (): Statement =>
      t.loop(
        random.chance(70)
          ? t.compare('lt', counter, limit)
          : t.logical(
              'and',
              t.compare('lt', counter, limit),
              this.apart(() => this.expression('bool', 2)),
            ),
        inBody ? [] : [step(one)],
        (id) => {
          this.around.push({ id, loop: !inBody });
          const body = this.statements(1 + random.below(3));
          if (leaves) {
            const test = this.expression('bool', 2);
            body.splice(
              random.below(body.length + 1),
              0,
              t.if(test, [!inBody && random.chance(50) ? t.next(id) : t.leave(id)]),
            );
          }
          this.around.pop();
          // The counter may skip values, so that the test reads what a branch has written.
          if (inBody)
            body.push(
              t.if(this.expression('bool', 2), [
                step(t.add(one, one)),
                ...(random.chance(50) ? [t.next(id)] : []),
              ]),
              step(one),
            );
          else if (random.chance(30))
            body.splice(
              random.below(body.length + 1),
              0,
              t.if(this.expression('bool', 2), [
                step(one),
                ...(random.chance(50) ? [t.next(id)] : []),
              ]),
            );
          return body;
        },
        random.chance(35),
      );
    // A loop that some threads leave early has no convergent operations.
    const loop = this.apart(make);
    this.known = known;
    return [t.set(counter, t.constant(counter.type, 0)), loop];
  }

  private group(): Statement {
    const { random, t } = this;
    return this.apart(() =>
      t.group((id) => {
        this.around.push({ id, loop: false });
        const body = this.statements(1 + random.below(2));
        const leave = t.if(this.expression('bool', 2), [
          random.chance(70) ? t.leave(id) : this.jump(),
        ]);
        const rest = this.statements(1 + random.below(2));
        this.around.pop();
        return [...body, leave, ...rest];
      }),
    );
  }

  /** A jump out of any enclosing group or loop. */
  private jump(): Statement {
    const target = this.random.pick(this.around);
    return target.loop && this.random.chance(50) ? this.t.next(target.id) : this.t.leave(target.id);
  }

  /**
   * Every thread writes its element of a shared array, all wait at a barrier, and every thread
   * reads another's.
   */
  private share(): Statement[] {
    const { random, t } = this;
    const storage = random.pick(STORAGES);
    const tile = t.array(`tile${this.names++}`, 'shared', storage, THREADS);
    const local = t.local(`v${this.names++}`, READ_AS[storage]);
    const made = [
      t.store(tile, t.threadX, this.expression(READ_AS[storage])),
      t.sync(),
      t.set(local, t.load(tile, this.masked(THREADS - 1))),
    ];
    this.known.push(local);
    return made;
  }

  /** An atomic operation on an element of the thread's own. */
  private add(): Statement {
    const { random, t } = this;
    const able = this.outputs.filter(({ storage }) =>
      ['i32', 'u32', 'i64', 'u64', 'f32', 'f64'].includes(storage),
    );
    const { elements, storage } = random.pick(able);
    const type = READ_AS[storage];
    const operator = random.pick(
      isFloat(type)
        ? (['add', 'exch'] as const)
        : (['add', 'min', 'max', 'and', 'or', 'xor', 'exch', 'cas'] as const),
    );
    const operand = this.expression(type, 2);
    return t.evaluate(
      t.atomic(
        operator,
        elements,
        this.index,
        operand,
        operator === 'cas' ? this.expression(type, 1) : undefined,
      ),
    );
  }

  // Expressions.

  /** An integer from 0 to `mask`. */
  private masked(mask: number): Expression {
    return this.t.binary('and', this.expression('i32', 2), this.t.i32(mask));
  }

  expression(type: ValueType, depth = 4): Expression {
    const { random } = this;
    if (depth <= 0 || random.chance(15)) return this.leaf(type);
    const make = random.pick(this.makers(type));
    return make(depth - 1);
  }

  private leaf(type: ValueType): Expression {
    const { random, t } = this;
    const locals = this.known.filter((local) => local.type === type);
    if (locals.length > 0 && random.chance(60)) return random.pick(locals);
    const scalars = this.scalars.filter((scalar) => scalar.value.type === type);
    if (scalars.length > 0 && random.chance(30)) return random.pick(scalars).value;
    if (type === 'i32' && random.chance(30))
      return t.special(
        random.pick([
          'threadIdx.x',
          'blockIdx.x',
          'blockDim.x',
          'gridDim.x',
          'lane',
          'warp',
        ] as const),
      );
    const inputs = this.inputs.filter(({ storage }) => READ_AS[storage] === type);
    if (inputs.length > 0 && random.chance(50))
      return t.load(random.pick(inputs).elements, this.index);
    return t.constant(type, randomValue(random, type));
  }

  /** The bits of a NaN are not compared. */
  private number(type: 'f32' | 'f64', depth: number): Expression {
    const { t } = this;
    const local = t.local(`n${this.names++}`, type);
    const value = this.expression(type, depth);
    return t.block(
      [t.set(local, value)],
      t.choose(t.compare('eq', local, local), local, t.constant(type, 1)),
    );
  }

  private makers(type: ValueType): ((depth: number) => Expression)[] {
    const { random, t } = this;
    const of = (depth: number, other = type): Expression => this.expression(other, depth);
    const binary =
      (operators: readonly BinaryOperator[]) =>
      (depth: number): Expression =>
        t.binary(random.pick(operators), of(depth), of(depth));
    const unary =
      (operators: readonly UnaryOperator[]) =>
      (depth: number): Expression =>
        t.unary(random.pick(operators), of(depth));
    const common = [
      (depth: number): Expression => {
        const test = of(depth, 'bool');
        return this.apart(() => t.choose(test, of(depth), of(depth)));
      },
      (depth: number): Expression =>
        t.convert(type, of(depth, random.pick(TYPES.filter((other) => other !== type)))),
      (depth: number): Expression => this.assigned(type, depth),
      (depth: number): Expression => this.loaded(type, depth),
    ];
    if (this.together && this.uniform && type !== 'bool')
      common.push((depth) => this.shuffled(type, depth));
    if (type === 'bool') {
      return [
        ...common,
        (depth) => {
          const other = random.pick(NUMERIC);
          return t.compare(
            random.pick(['lt', 'le', 'gt', 'ge', 'eq', 'ne'] as readonly CompareOperator[]),
            of(depth, other),
            of(depth, other),
          );
        },
        (depth) => {
          const left = of(depth);
          return t.logical(
            random.pick(['and', 'or'] as const),
            left,
            this.apart(() => of(depth)),
          );
        },
        (depth) => t.unary('not', of(depth)),
        ...(this.together && this.uniform
          ? [
              (depth: number): Expression =>
                random.chance(50)
                  ? t.vote(random.pick(['any', 'all'] as const), of(depth))
                  : t.reduce(random.pick(['and', 'or'] as const), of(depth)),
            ]
          : []),
      ];
    }
    if (isFloat(type)) {
      const float = type as 'f32' | 'f64';
      const integer: ValueType =
        type === 'f32'
          ? random.pick(['u32', 'i32'] as const)
          : random.pick(['u64', 'i64'] as const);
      return [
        ...common,
        binary(['add', 'sub', 'mul']),
        binary(['add', 'sub', 'mul', 'div']),
        binary(['min', 'max']),
        unary(['neg', 'abs', 'floor', 'ceil', 'trunc', 'rint']),
        unary(['sqrt', 'neg']),
        (depth) => t.fma(of(depth), of(depth), of(depth)),
        (depth) => t.binary('copysign', of(depth), this.number(float, depth)),
        (depth) => t.binary('rem', of(depth), of(depth)),
        (depth) => t.bitcast(type, of(depth, integer)),
        ...(type === 'f32'
          ? [
              (depth: number): Expression =>
                t.narrow(random.pick(['f16', 'bf16', 'f8e4m3', 'f8e5m2'] as const), of(depth)),
            ]
          : []),
      ];
    }
    return [
      ...common,
      binary(['add', 'sub', 'mul']),
      binary(['and', 'or', 'xor']),
      binary(['min', 'max', 'mulhi']),
      unary(['neg', 'not', 'abs', 'brev']),
      (depth) =>
        t.binary(
          random.pick(['div', 'rem'] as const),
          of(depth),
          t.binary('or', of(depth), t.constant(type, is64(type) ? 1n : 1)),
        ),
      (depth) => t.binary(random.pick(['shl', 'shr'] as const), of(depth), of(depth, 'u32')),
      (depth) =>
        t.bitcast(
          type,
          type === 'i32' || type === 'u32'
            ? random.chance(50)
              ? this.number('f32', depth)
              : of(depth, type === 'i32' ? 'u32' : 'i32')
            : random.chance(50)
              ? this.number('f64', depth)
              : of(depth, type === 'i64' ? 'u64' : 'i64'),
        ),
      ...(type === 'i32'
        ? [
            (depth: number): Expression =>
              t.unary(
                random.pick(['popc', 'clz'] as const),
                of(depth, random.pick(INTEGERS)),
                'i32',
              ),
            (depth: number): Expression =>
              t.narrow(random.pick(['i8', 'u8', 'i16', 'u16'] as const), of(depth)),
            ...(this.together && this.uniform
              ? [(depth: number): Expression => t.reduce('count', of(depth, 'bool'))]
              : []),
          ]
        : []),
      ...(type === 'u32' && this.together && this.uniform
        ? [
            (depth: number): Expression =>
              random.chance(50)
                ? t.vote('ballot', of(depth, 'bool'))
                : t.match(of(depth, random.pick(INTEGERS))),
          ]
        : []),
    ];
  }

  /** A variable that is assigned inside of the expression. */
  private assigned(type: ValueType, depth: number): Expression {
    const { random, t } = this;
    const free = this.known.filter(
      (local) => local.type === type && !this.counters.has(local.local),
    );
    if (free.length === 0 || random.chance(30)) {
      const local = t.local(`t${this.names++}`, type);
      const value = this.expression(type, depth);
      const statements =
        random.chance(20) && this.depth < 3
          ? this.apart(() => this.within(() => this.statements(1)))
          : [];
      return t.block(
        [t.set(local, value), ...statements],
        random.chance(50)
          ? local
          : this.apart(() =>
              t.choose(this.expression('bool', depth), local, this.expression(type, depth)),
            ),
      );
    }
    const local = random.pick(free);
    return t.block([t.set(local, this.expression(type, depth))], local);
  }

  private loaded(type: ValueType, depth: number): Expression {
    const { random, t } = this;
    const own = this.arrays.filter(({ storage }) => READ_AS[storage] === type);
    if (own.length > 0 && random.chance(50))
      return t.load(random.pick(own).elements, this.masked(3));
    const inputs = this.inputs.filter(({ storage }) => READ_AS[storage] === type);
    if (inputs.length === 0) return this.leaf(type);
    const index = t.binary('and', this.expression('i32', Math.min(depth, 2)), t.i32(LENGTH - 1));
    return t.load(
      random.pick(inputs).elements,
      random.pick([index, t.convert('u32', index), t.convert('i64', index)]),
    );
  }

  private shuffled(type: ValueType, depth: number): Expression {
    const { random, t } = this;
    return t.shuffle(
      random.pick(['idx', 'up', 'down', 'bfly'] as const),
      this.expression(type, depth),
      this.masked(31),
      undefined,
      random.pick([32, 32, 16, 8, 4, 2]),
    );
  }
}

export function randomKernel(seed: number): RandomKernel {
  return new Maker(seed).make();
}
