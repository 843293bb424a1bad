/** The values and the expressions of random kernels. */
import { readAs } from '../../../src/compiler/storage-types.js';
import { Random } from '../../compiler/fuzz/random-kernel.test-support.js';
import type { StorageType, ValueType } from '../../../src/compiler/tree.js';

export const BLOCKS = 2;
export const THREADS = 64;
/** Elements of every tensor: one for each thread. */
export const LENGTH = BLOCKS * THREADS;
/** The extents of `m`, a matrix of f32 with its columns contiguous in memory. */
export const [ROWS, COLUMNS] = [8, 16];
/** Elements of `sums_i32` and its like, which begin as zeros. */
export const SUMS = 8;

/**
 * Fields of the structures of kernels: `rows`, one for each thread, which it may change, `table`,
 * and the scalar `one`.
 */
export const FIELDS = {
  a: 'f32',
  b: 'i64',
  c: 'bool',
  d: 'i16',
  e: 'f64',
  g: 'u8',
  h: 'f16',
  k: 'u32',
  l: 'i32',
} as const satisfies Readonly<Record<string, StorageType>>;
export const FIELD_NAMES = Object.keys(FIELDS) as (keyof typeof FIELDS)[];
/** Bytes of dynamic shared memory: eight for each thread. */
export const SHARED_BYTES = 8 * THREADS;

export const READ_AS = readAs;
export const STORAGES = Object.keys(READ_AS) as StorageType[];
/** Dtypes of `gpu.shared` and `gpu.local`. */
export const ARRAYS = STORAGES.filter((storage) => !storage.startsWith('f8') && storage !== 'bool');
export const TYPES: readonly ValueType[] = ['bool', 'i32', 'u32', 'i64', 'u64', 'f32', 'f64'];
export const NUMERIC = TYPES.slice(1);
export const INTEGERS: readonly ValueType[] = ['i32', 'u32', 'i64', 'u64'];

/** Operand types that leave the type of an expression unchanged. */
export const BELOW: Readonly<Record<ValueType, readonly ValueType[]>> = {
  bool: ['bool'],
  i32: ['i32', 'bool'],
  u32: ['u32', 'i32', 'bool'],
  i64: ['i64', 'i32', 'u32', 'bool'],
  u64: ['u64', 'i64', 'i32', 'u32', 'bool'],
  f32: ['f32', 'i32', 'u32', 'i64', 'u64'],
  f64: ['f64', 'f32', 'i32', 'u32', 'i64', 'u64'],
};

const LITERALS = ['0', '1', '2', '3', '7', '10', '31', '100', '127'];
const FRACTIONS = ['0.5', '1.5', '0.1', '2.75', '1e-3', '3.0', '1e10'];
const FUNCTIONS_OF_F32 = [
  'exp',
  'log',
  'sin',
  'cos',
  'tan',
  'atan',
  'asin',
  'acos',
  'sinh',
  'cosh',
  'tanh',
  'asinh',
  'acosh',
  'atanh',
  'expm1',
  'log1p',
  'log2',
  'log10',
  'cbrt',
];
/** Functions that are written in the language make a text long: the most of them in one kernel. */
const MOST_FUNCTIONS = 4;

export interface Variable {
  readonly name: string;
  readonly type: ValueType;
  readonly constant: boolean;
}

interface Scope {
  variables: Variable[];
  /** Labels of loops around; those without a name are the innermost. */
  loops: string[];
  /** Whether all threads of the block reach this place. */
  uniform: boolean;
  /**
   * Whether this is a device function, which sees neither tensors nor the kernel's declarations.
   */
  inFunction: boolean;
}

/** Writes random expressions of a type, from the names of the kernel that are visible. */
export abstract class ExpressionWriter {
  protected readonly random: Random;
  protected readonly together: boolean;
  protected readonly structures: boolean;
  protected readonly inputs: StorageType[];
  protected readonly outputs: StorageType[];
  protected readonly scalars: StorageType[];
  protected readonly functions: Record<
    string,
    { text: string; takes: ValueType[]; gives: ValueType }
  > = {};
  protected readonly locals: { name: string; storage: StorageType }[] = [];
  protected scope: Scope = { variables: [], loops: [], uniform: true, inFunction: false };
  private called = 0;

  constructor(seed: number) {
    this.random = new Random(seed);
    this.together = this.random.chance(60);
    const some = (percent: number): StorageType[] =>
      STORAGES.filter(
        (storage) => storage === 'i32' || storage === 'f32' || this.random.chance(percent),
      );
    [this.inputs, this.outputs, this.scalars] = [some(50), some(50), some(20)];
    this.structures = this.random.chance(40);
  }

  protected variables(types: readonly ValueType[], changed = false): Variable[] {
    return this.scope.variables.filter(
      ({ type, constant }) => types.includes(type) && !(changed && constant),
    );
  }

  protected index(mask: number): string {
    const { random } = this;
    if (this.scope.inFunction || random.chance(30))
      return `(${random.pick(['gpu.lane', 'gpu.threadIdx.x', 'gpu.globalId.x'])} & ${mask})`;
    return random.chance(70)
      ? `(${this.expression('i32', 2)} & ${mask})`
      : `(gpu.i32(${this.expression(random.pick(NUMERIC), 2)}) & ${mask})`;
  }

  /** A condition need not be a bool. */
  protected condition(): string {
    return this.random.chance(85)
      ? this.expression('bool', 2)
      : this.expression(this.random.pick(NUMERIC), 2);
  }

  protected expression(type: ValueType, depth = 3): string {
    const { random } = this;
    if (depth <= 0 || random.chance(15)) return this.leaf(type);
    const of = (other: ValueType): string => this.expression(other, depth - 1);
    const apart = (make: () => string): string => {
      const { scope } = this;
      this.scope = { ...scope, uniform: false };
      const made = make();
      this.scope = scope;
      return made;
    };
    const ways: (() => string)[] = [
      () => this.leaf(type),
      () => {
        const test = of('bool');
        return apart(() => `(${test} ? ${of(type)} : ${of(type)})`);
      },
    ];
    const free = this.variables([type], true).filter(({ name }) => !name.startsWith('p'));
    if (free.length > 0) {
      const { name } = random.pick(free);
      ways.push(() => `(${name} = ${of(type)})`);
      if (type !== 'bool')
        ways.push(() => random.pick([`${name}++`, `--${name}`, `(${name} += ${of(type)})`]));
    }
    if (type === 'bool') ways.push(...this.truths(of, apart));
    else ways.push(...this.numbers(type, of));
    if (INTEGERS.includes(type)) ways.push(...this.integers(type, of));
    if (type === 'f32' || type === 'f64') ways.push(...this.floats(type, of));
    if (this.together && this.scope.uniform) ways.push(...this.exchanges(type, of));
    return random.pick(ways)();
  }

  private leaf(type: ValueType): string {
    const { random, scope } = this;
    const known = this.variables([type]);
    if (known.length > 0 && random.chance(60)) return random.pick(known).name;
    if (!scope.inFunction) {
      const scalars = this.scalars.filter((storage) => READ_AS[storage] === type);
      if (scalars.length > 0 && random.chance(20)) return `s_${random.pick(scalars)}`;
      const inputs = this.inputs.filter((storage) => READ_AS[storage] === type);
      if (inputs.length > 0 && random.chance(50)) {
        const array = `x_${random.pick(inputs)}`;
        return `${array}[${random.chance(60) ? 'i' : `i ^ ${random.below(LENGTH)}`}]`;
      }
      const outputs = this.outputs.filter((storage) => READ_AS[storage] === type);
      if (outputs.length > 0 && random.chance(30)) return `y_${random.pick(outputs)}[i]`;
      const fields = this.structures
        ? FIELD_NAMES.filter((field) => READ_AS[FIELDS[field]] === type)
        : [];
      if (fields.length > 0 && random.chance(40)) {
        const row = random.pick(['one', 'rows[i]', 'table[i]', `table[${random.below(LENGTH)}]`]);
        return `${row}.${random.pick(fields)}`;
      }
      if (type === 'f32' && random.chance(20))
        return `m[gpu.lane & ${ROWS - 1}][i & ${COLUMNS - 1}]`;
    }
    if (type === 'bool')
      return random.pick(['true', 'false', '(gpu.lane < 16)', '(gpu.threadIdx.x === 5)']);
    if (type === 'i32' && random.chance(50))
      return random.pick([
        'gpu.threadIdx.x',
        'gpu.blockIdx.x',
        'gpu.blockDim.x',
        'gpu.gridDim.x',
        'gpu.lane',
        'gpu.warpIdx',
        ...(scope.inFunction ? [] : ['x_f32.length']),
      ]);
    if (type === 'f32' && random.chance(20))
      return random.pick([
        'gpu.f32(Math.PI)',
        ...(scope.inFunction ? [] : ['gpu.f32(gpu.SCALE)', 'gpu.WEIGHTS[2]']),
      ]);
    const literals = type.startsWith('f')
      ? [...LITERALS, ...FRACTIONS, '-1', '-0.5', 'Infinity']
      : [...LITERALS, ...(type.startsWith('i') ? ['-1', '-100'] : ['0x9e3779b9'])];
    return `gpu.${type}(${random.pick(literals)})`;
  }

  private truths(
    of: (type: ValueType) => string,
    apart: (make: () => string) => string,
  ): (() => string)[] {
    const { random } = this;
    const compare = (): string =>
      `(${of(random.pick(NUMERIC))} ${random.pick(['<', '<=', '>', '>=', '===', '!=='])} ` +
      `${random.chance(30) ? random.pick(LITERALS) : of(random.pick(NUMERIC))})`;
    return [
      compare,
      compare,
      compare,
      () => {
        const left = of('bool');
        return apart(() => `(${left} ${random.pick(['&&', '||'])} ${of('bool')})`);
      },
      () => `!${of('bool')}`,
    ];
  }

  /** Operators of every numeric type. */
  private numbers(type: ValueType, of: (type: ValueType) => string): (() => string)[] {
    const { random } = this;
    /** With an operand that leaves the type unchanged, on either side. */
    const mixed = (operator: string): string => {
      const [a, b] = [
        of(type),
        random.chance(35) ? random.pick(LITERALS) : of(random.pick(BELOW[type])),
      ];
      return random.chance(50) ? `(${a} ${operator} ${b})` : `(${b} ${operator} ${a})`;
    };
    const functions = this.scope.inFunction
      ? []
      : Object.entries(this.functions).filter(([, { gives }]) => gives === type);
    const fused = (): string =>
      `(${of(type)} * ${of(type)} ${random.pick(['+', '-'])} ${of(type)})`;
    return [
      () => mixed('+'),
      () => mixed('-'),
      () => mixed('*'),
      fused,
      () => `gpu.${type}(${of(random.pick(TYPES))})`,
      () => `Math.${random.pick(['min', 'max'])}(${of(type)}, ${of(random.pick(BELOW[type]))})`,
      // A negated unsigned number may only be used as bits.
      () => `Math.abs(${of(type)})`,
      () =>
        type === 'u32' || type === 'u64' ? `((- ${of(type)}) & ${of(type)})` : `(- ${of(type)})`,
      () => `gpu.clamp(${of(type)}, ${of(type)}, ${of(type)})`,
      () => this.loaded(type),
      ...functions.map(
        ([name, { takes }]) =>
          (): string =>
            this.called++ < MOST_FUNCTIONS
              ? `gpu.${name}(${takes.map((each) => `gpu.${each}(${of(each)})`).join(', ')})`
              : this.leaf(type),
      ),
    ];
  }

  /** An element at an index that is computed. */
  private loaded(type: ValueType): string {
    const { random } = this;
    if (this.scope.inFunction) return this.leaf(type);
    const own = this.locals.filter(({ storage }) => READ_AS[storage] === type);
    if (own.length > 0 && random.chance(60)) return `${random.pick(own).name}[${this.index(3)}]`;
    if (type === 'f32' && random.chance(20))
      return `m[${this.index(ROWS - 1)}][${this.index(COLUMNS - 1)}]`;
    const fields = this.structures
      ? FIELD_NAMES.filter((field) => READ_AS[FIELDS[field]] === type)
      : [];
    if (fields.length > 0 && random.chance(30))
      return `table[${this.index(LENGTH - 1)}].${random.pick(fields)}`;
    const inputs = this.inputs.filter((storage) => READ_AS[storage] === type);
    return inputs.length === 0
      ? this.leaf(type)
      : `x_${random.pick(inputs)}[${this.index(LENGTH - 1)}]`;
  }

  private integers(type: ValueType, of: (type: ValueType) => string): (() => string)[] {
    const { random } = this;
    const operate = (): string =>
      `(${of(type)} ${random.pick(['&', '|', '^'])} ${of(random.pick(BELOW[type]))})`;
    const shift = (): string =>
      `(${of(type)} ${random.pick(['<<', '>>'])} ` +
      `${random.chance(50) ? random.below(64) : of(random.pick(INTEGERS))})`;
    const ways: (() => string)[] = [
      operate,
      shift,
      () => `(${of(type)} ${random.pick(['/', '%'])} (${of(type)} | 1))`,
      () => `(${of(type)} ${random.pick(['/', '%'])} ${random.pick(LITERALS.slice(1))})`,
      () => `(~${of(type)})`,
      () => `gpu.mulhi(${of(type)}, ${of(type)})`,
      () => `gpu.reverseBits(${of(type)})`,
    ];
    if (type === 'u32')
      ways.push(
        () => `(${of(random.pick(['i32', 'u32']))} >>> ${random.below(32)})`,
        () => `(${of(random.pick(['f32', 'f64', 'i32']))} >>> 0)`,
        () => this.bitsOf('f32'),
      );
    if (type === 'u64')
      ways.push(
        () => `(${of(random.pick(['i64', 'u64']))} >>> ${random.below(64)})`,
        () => this.bitsOf('f64'),
      );
    if (type === 'i32') {
      ways.push(
        () => `(${of(random.pick(['f32', 'f64']))} | 0)`,
        () => `(~~${of(random.pick(['f32', 'f64']))})`,
        () => `gpu.${random.pick(['i8', 'u8', 'i16', 'u16'])}(${of(random.pick(NUMERIC))})`,
        () => `Math.imul(${of('i32')}, ${of('i32')})`,
        () => `Math.clz32(${of('i32')})`,
        () => `gpu.${random.pick(['popcount', 'clz'])}(${of(random.pick(INTEGERS))})`,
        () => `Math.sign(${of('i32')})`,
      );
    }
    return ways;
  }

  /** The bits of a NaN are not compared. */
  private bitsOf(type: 'f32' | 'f64'): string {
    const known = this.variables([type]);
    if (known.length === 0) return this.leaf(type === 'f32' ? 'u32' : 'u64');
    const { name } = this.random.pick(known);
    return `gpu.bits(${name} === ${name} ? ${name} : gpu.${type}(1))`;
  }

  private floats(type: 'f32' | 'f64', of: (type: ValueType) => string): (() => string)[] {
    const { random } = this;
    const ways: (() => string)[] = [
      () =>
        `(${of(type)} / ` +
        `${random.chance(30) ? random.pick([...LITERALS.slice(1), ...FRACTIONS]) : of(type)})`,
      () => `(${of(type)} * ${random.pick(FRACTIONS)})`,
      () => `(${of(type)} % ${of(type)})`,
      () => `Math.sqrt(${of(type)})`,
      () => `Math.${random.pick(['floor', 'ceil', 'trunc', 'round', 'sign'])}(${of(type)})`,
      () => `gpu.rint(${of(type)})`,
      () => `gpu.fma(${of(type)}, ${of(type)}, ${of(type)})`,
      () => `gpu.rsqrt(${of(type)})`,
    ];
    const known = this.variables([type]);
    if (known.length > 0) {
      const { name } = random.pick(known);
      ways.push(() => `gpu.copysign(${of(type)}, ${name} === ${name} ? ${name} : gpu.${type}(1))`);
    }
    if (type === 'f64') return ways;
    const costly = (write: () => string) => (): string =>
      this.called++ < MOST_FUNCTIONS ? write() : this.leaf('f32');
    return [
      ...ways,
      costly(() => `Math.${random.pick(FUNCTIONS_OF_F32)}(${of('f32')})`),
      costly(() => `Math.${random.pick(['atan2', 'pow', 'hypot'])}(${of('f32')}, ${of('f32')})`),
      costly(() => `(${of('f32')} ** ${random.pick(['2', '3', '0.5'])})`),
      costly(() => `gpu.erf(${of('f32')})`),
      () => `gpu.fromBits(${of('u32')})`,
      () => `gpu.${random.pick(['f16', 'bf16'])}(${of('f32')})`,
      () => `Math.fround(${of(random.pick(['f32', 'f64']))})`,
      () => `(gpu.f32(${of(random.pick(INTEGERS))}) * 0.25)`,
    ];
  }

  /** Operations that all lanes, or all threads, do together. */
  private exchanges(type: ValueType, of: (type: ValueType) => string): (() => string)[] {
    const { random } = this;
    if (type === 'bool')
      return [
        () => `gpu.${random.pick(['warp', 'block'])}.${random.pick(['any', 'all'])}(${of('bool')})`,
      ];
    const ways = [
      (): string =>
        `gpu.warp.shuffle${random.pick(['', 'Up', 'Down', 'Xor'])}(${of(type)}, ` +
        `${random.below(32)})`,
      () => `gpu.warp.shuffle(${of(type)}, ${of('i32')} & 31)`,
      () => {
        const scope = random.pick(['warp', 'warp', 'block']);
        return `gpu.${scope}.${random.pick(['sum', 'min', 'max'])}(${of(type)})`;
      },
    ];
    if (type === 'u32')
      ways.push(
        () => `gpu.warp.ballot(${of('bool')})`,
        () => `gpu.warp.match(${of(random.pick(INTEGERS))})`,
      );
    if (type === 'i32') ways.push(() => `gpu.block.count(${of('bool')})`);
    return ways;
  }
}
