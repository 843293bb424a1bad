/**
 * Random kernels as a program has them: the text of a function, well typed by the language's rules
 * (`docs/kernels.md`), whose results do not depend on the order of threads. Each thread writes
 * elements of its own, or adds to counters; convergent operations are where all threads reach them.
 */
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
const FIELD_NAMES = Object.keys(FIELDS) as (keyof typeof FIELDS)[];
/** Bytes of dynamic shared memory: eight for each thread. */
export const SHARED_BYTES = 8 * THREADS;

/** The parameters of a kernel, and its text. */
export interface RandomSource {
  readonly text: string;
  /** Device functions, by name. */
  readonly functions: Readonly<Record<string, string>>;
  readonly constants: Readonly<Record<string, number | readonly number[]>>;
  /**
   * Tensors that are read, named `x_` and the dtype, and those that are written, named `y_` and the
   * dtype.
   */
  readonly inputs: readonly StorageType[];
  readonly outputs: readonly StorageType[];
  /** Scalars, named `s_` and the dtype. */
  readonly scalars: readonly StorageType[];
  /** Tensors that all threads add to, named `sums_` and the dtype. */
  readonly sums: readonly StorageType[];
  /** Whether it has structures, and dynamic shared memory. */
  readonly structures: boolean;
  readonly dynamic: boolean;
}

export const READ_AS = readAs;
const STORAGES = Object.keys(READ_AS) as StorageType[];
/** Dtypes of `gpu.shared` and `gpu.local`. */
const ARRAYS = STORAGES.filter((storage) => !storage.startsWith('f8') && storage !== 'bool');
const TYPES: readonly ValueType[] = ['bool', 'i32', 'u32', 'i64', 'u64', 'f32', 'f64'];
const NUMERIC = TYPES.slice(1);
const INTEGERS: readonly ValueType[] = ['i32', 'u32', 'i64', 'u64'];

/** Operand types that leave the type of an expression unchanged. */
const BELOW: Readonly<Record<ValueType, readonly ValueType[]>> = {
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
const MOST_DEPTH = 3;

interface Variable {
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

class Writer {
  private readonly random: Random;
  private readonly together: boolean;
  private readonly structures: boolean;
  /** The dtype of the elements of dynamic shared memory. */
  private readonly dynamic: StorageType | undefined;
  private readonly lines: string[] = [];
  private readonly inputs: StorageType[];
  private readonly outputs: StorageType[];
  private readonly scalars: StorageType[];
  private readonly functions: Record<
    string,
    { text: string; takes: ValueType[]; gives: ValueType }
  > = {};
  private readonly locals: { name: string; storage: StorageType }[] = [];
  private scope: Scope = { variables: [], loops: [], uniform: true, inFunction: false };
  private names = 0;
  private depth = 0;
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
    this.dynamic = this.together && this.random.chance(40) ? this.random.pick(ARRAYS) : undefined;
  }

  write(): RandomSource {
    const { random } = this;
    for (let k = random.below(3); k > 0; k--) this.declareFunction();
    const parameters = [
      'm',
      ...this.inputs.map((each) => `x_${each}`),
      ...this.outputs.map((each) => `y_${each}`),
      ...this.scalars.map((each) => `s_${each}`),
      ...SUMMED.map((each) => `sums_${each}`),
      ...(this.structures ? ['rows', 'table', 'one'] : []),
    ];
    this.lines.push(`({ ${parameters.join(', ')} }, gpu) => {`, 'const i = gpu.globalId.x;');
    this.scope.variables.push({ name: 'i', type: 'i32', constant: true });
    for (const storage of ARRAYS) {
      if (!random.chance(15)) continue;
      this.locals.push({ name: `own_${storage}`, storage });
      this.lines.push(`const own_${storage} = gpu.local.${storage}(4);`);
    }
    if (this.dynamic !== undefined)
      this.lines.push(`const spare = gpu.dynamicShared.${this.dynamic}();`);
    this.statements(4 + random.below(8));
    for (const storage of this.outputs)
      this.lines.push(`y_${storage}[i] = ${this.expression(READ_AS[storage])};`);
    this.lines.push('}');
    return {
      text: this.lines.join('\n'),
      functions: Object.fromEntries(
        Object.entries(this.functions).map(([name, { text }]) => [name, text]),
      ),
      constants: CONSTANTS,
      inputs: this.inputs,
      outputs: this.outputs,
      scalars: this.scalars,
      sums: SUMMED,
      structures: this.structures,
      dynamic: this.dynamic !== undefined,
    };
  }

  private name(prefix: string): string {
    return `${prefix}${this.names++}`;
  }

  /**
   * Runs `make` in a scope: its variables are not visible after it, and where threads diverge there
   * are no convergent operations.
   */
  private inside<T>(
    make: () => T,
    { apart = true, loop }: { apart?: boolean; loop?: string } = {},
  ): T {
    const { scope } = this;
    this.scope = {
      ...scope,
      variables: [...scope.variables],
      loops: loop === undefined ? scope.loops : [...scope.loops, loop],
      uniform: scope.uniform && !apart,
    };
    this.depth++;
    const made = make();
    this.depth--;
    this.scope = scope;
    return made;
  }

  // Device functions.

  private declareFunction(): void {
    const { random, scope, depth } = this;
    const takes = Array.from({ length: 1 + random.below(2) }, () => random.pick(NUMERIC));
    const gives = random.pick(NUMERIC);
    const parameters = takes.map((type, at) => ({ name: `p${at}`, type, constant: false }));
    this.scope = { variables: parameters, loops: [], uniform: false, inFunction: true };
    const early = random.chance(40)
      ? `if (${this.expression('bool', 2)}) return gpu.${gives}(${this.expression(gives, 2)}); `
      : '';
    const text =
      `(${[...parameters.map(({ name }) => name), 'gpu'].join(', ')}) => { ${early}return ` +
      `gpu.${gives}(${this.expression(gives, 2)}); }`;
    this.scope = scope;
    this.depth = depth;
    this.functions[`f${Object.keys(this.functions).length}`] = { text, takes, gives };
  }

  // Statements.

  private statements(count: number): void {
    for (let k = 0; k < count; k++) this.statement();
  }

  private block(
    header: string,
    count: number,
    options: { apart?: boolean; loop?: string } = {},
  ): void {
    this.lines.push(`${header} {`);
    this.inside(() => {
      this.statements(count);
    }, options);
    this.lines.push('}');
  }

  private statement(): void {
    const { random } = this;
    const nested = this.depth < MOST_DEPTH;
    const kind = random.below(100);
    if (kind < 32) this.declare();
    else if (kind < 46) this.assign();
    else if (kind < 54) this.store();
    else if (kind < 60) this.lines.push(this.storeLocal());
    else if (kind < 70 && nested) this.branch();
    else if (kind < 82 && nested) this.loop();
    else if (kind < 86 && nested) this.switch();
    else if (kind < 88 && nested) this.block('', 2, { apart: false });
    else if (kind < 91) this.leave();
    else if (kind < 97 && this.together && this.scope.uniform) this.meet();
    else this.count();
  }

  private declare(): void {
    const { random } = this;
    const type = random.pick(TYPES);
    const constant = random.chance(40);
    const value = this.expression(type);
    // A name of an outer scope may be declared again inside, and is then another variable.
    const outer =
      this.depth > 0 && random.chance(10)
        ? this.scope.variables.filter(({ name }) => name.startsWith('v'))
        : [];
    const name =
      outer.length > 0 && !value.includes(outer[0]!.name) && !this.isInBlock(outer[0]!.name)
        ? outer[0]!.name
        : this.name('v');
    this.lines.push(`${constant ? 'const' : 'let'} ${name} = ${value};`);
    this.scope.variables = [
      ...this.scope.variables.filter((each) => each.name !== name),
      { name, type, constant },
    ];
  }

  /**
   * Whether the current block uses the name already: a declaration after a use is an error in
   * JavaScript.
   */
  private isInBlock(name: string): boolean {
    for (let at = this.lines.length - 1, ended = 0; at >= 0; at--) {
      const line = this.lines[at]!;
      if (line.includes(name)) return true;
      if (line.startsWith('}')) ended++;
      if (line.endsWith('{') && ended-- === 0) return false;
    }
    return false;
  }

  private variables(types: readonly ValueType[], changed = false): Variable[] {
    return this.scope.variables.filter(
      ({ type, constant }) => types.includes(type) && !(changed && constant),
    );
  }

  private assign(): void {
    const { random } = this;
    const free = this.variables(TYPES, true);
    if (free.length === 0) return this.declare();
    const { name, type } = random.pick(free);
    if (type === 'bool' || random.chance(40)) {
      this.lines.push(`${name} = ${this.expression(type)};`);
      return;
    }
    if (INTEGERS.includes(type)) {
      const operator = random.pick(['+', '-', '*', '&', '|', '^', '<<', '>>', '/', '%']);
      const right =
        operator === '<<' || operator === '>>'
          ? this.expression(random.pick(INTEGERS), 2)
          : this.expression(random.pick(BELOW[type]), 2);
      this.lines.push(
        `${name} ${operator}= ${operator === '/' || operator === '%' ? `(${right} | 1)` : right};`,
      );
      return;
    }
    this.lines.push(
      `${name} ${random.pick(['+', '-', '*', '/'])}= ${this.expression(random.pick(BELOW[type]))};`,
    );
  }

  private store(): void {
    const { random } = this;
    if (this.structures && random.chance(40)) {
      const field = random.pick(FIELD_NAMES);
      const type = READ_AS[FIELDS[field]];
      const compound = type !== 'bool' && random.chance(40);
      this.lines.push(
        `rows[i].${field} ${compound ? random.pick(['+=', '-=', '*=']) : '='} ` +
          `${this.expression(type)};`,
      );
      return;
    }
    const storage = random.pick(this.outputs);
    const type = READ_AS[storage];
    const compound = type !== 'bool' && random.chance(30);
    this.lines.push(
      `y_${storage}[i] ${compound ? random.pick(['+=', '-=', '*=']) : '='} ` +
        `${this.expression(compound || type === 'bool' ? type : random.pick(BELOW[type]))};`,
    );
  }

  private storeLocal(): string {
    const { random } = this;
    if (this.locals.length === 0) return `y_i32[i] = ${this.expression('i32')};`;
    const { name, storage } = random.pick(this.locals);
    return (
      `${name}[${this.index(3)}] ${random.pick(['=', '=', '+='])} ` +
      `${this.expression(READ_AS[storage])};`
    );
  }

  private branch(): void {
    const { random } = this;
    this.block(`if (${this.condition()})`, 1 + random.below(3));
    if (random.chance(25))
      this.block(`else if (${this.inside(() => this.condition())})`, 1 + random.below(2));
    if (random.chance(40)) this.block('else', 1 + random.below(2));
  }

  private loop(): void {
    const { random } = this;
    const counter = this.name('k');
    const label = random.chance(30) ? this.name('around') : '';
    const header = label === '' ? '' : `${label}: `;
    const turns = 1 + random.below(4);
    const kind = random.below(4);
    // No thread leaves a loop of a fixed number of iterations that has convergent operations.
    const meets = kind === 0 && this.together && random.chance(40);
    if (kind < 2) {
      const limit = kind === 0 ? `${turns}` : this.inside(() => this.index(3));
      const [from, test, step] = random.pick([
        ['0', `${counter} < ${limit}`, `${counter}++`],
        [limit, `${counter} > 0`, `${counter}--`],
        ['0', `${counter} < ${limit}`, `${counter} += 2`],
      ]) as [string, string, string];
      if (random.chance(15)) this.lines.push(`gpu.unroll(${random.chance(50) ? '' : '2'});`);
      this.lines.push(`${header}for (let ${counter} = ${from}; ${test}; ${step}) {`);
      this.inside(
        () => {
          this.scope.variables.push({ name: counter, type: 'i32', constant: true });
          if (meets) this.scope.loops = [];
          this.statements(1 + random.below(3));
        },
        meets ? { apart: false } : { loop: label },
      );
      this.lines.push('}');
      return;
    }
    this.lines.push(`let ${counter} = 0;`);
    const more = random.chance(50) ? ` && ${this.inside(() => this.expression('bool', 2))}` : '';
    if (kind === 2)
      return this.block(`${header}while (${counter}++ < ${turns}${more})`, 1 + random.below(3), {
        loop: label,
      });
    this.lines.push(`${header}do {`);
    this.inside(
      () => {
        this.statements(1 + random.below(3));
      },
      { loop: label },
    );
    this.lines.push(`} while (++${counter} < ${turns}${more});`);
  }

  private switch(): void {
    const { random } = this;
    this.lines.push(`switch (${this.index(3)}) {`);
    for (const value of [0, 1, 2].filter(() => random.chance(70))) {
      this.lines.push(`case ${value}: {`);
      this.inside(() => {
        this.statements(1);
      });
      this.lines.push('}', random.chance(70) ? 'break;' : '');
    }
    if (random.chance(60)) {
      this.lines.push('default: {');
      this.inside(() => {
        this.statements(1);
      });
      this.lines.push('}');
    }
    this.lines.push('}');
  }

  /** Leaves a loop, or the kernel where no thread waits for others. */
  private leave(): void {
    const { random } = this;
    const { loops } = this.scope;
    const ways = loops.flatMap((label, at) =>
      label !== ''
        ? [`break ${label};`, `continue ${label};`]
        : at === loops.length - 1
          ? ['continue;']
          : [],
    );
    if (!this.together) ways.push('return;');
    if (ways.length === 0 || (this.depth === 0 && this.together)) return this.declare();
    this.lines.push(`if (${this.condition()}) ${random.pick(ways)}`);
  }

  /** Each thread writes an element, all wait, each reads another's. */
  private meet(): void {
    const { random } = this;
    const shared = this.dynamic !== undefined && random.chance(50);
    const storage = shared ? this.dynamic! : random.pick(ARRAYS);
    const type = READ_AS[storage];
    const [tile, name] = [shared ? 'spare' : this.name('tile'), this.name('v')];
    if (shared) {
      this.lines.push(
        `spare[gpu.threadIdx.x] = ${this.expression(type)};`,
        'gpu.block.sync();',
        `const ${name} = spare[${this.index(63)}];`,
        'gpu.block.sync();',
      );
      this.scope.variables.push({ name, type, constant: true });
      return;
    }
    if (random.chance(40)) {
      const counts = random.pick(['i32', 'u32', 'u64'] as const);
      this.lines.push(
        `const ${tile} = gpu.shared.${counts}(4);`,
        `if (gpu.threadIdx.x < 4) ${tile}[gpu.threadIdx.x] = 0;`,
        'gpu.block.sync();',
        `gpu.atomic${random.pick(['Add', 'Max', 'Or', 'Xor'])}(${tile}, ${this.index(3)}, ` +
          `${this.inside(() => this.expression(counts))});`,
        'gpu.block.sync();',
        `const ${name} = ${tile}[${this.index(3)}];`,
        'gpu.block.sync();',
      );
      this.scope.variables.push({ name, type: counts, constant: true });
      return;
    }
    const square = random.chance(30);
    const at = (index: string): string =>
      square ? `[(${index}) >> 3][(${index}) & 7]` : `[${index}]`;
    this.lines.push(
      `const ${tile} = gpu.shared.${storage}(${square ? '8, 8' : '64'});`,
      `${tile}${at('gpu.threadIdx.x')} = ${this.expression(type)};`,
      'gpu.block.sync();',
      `const ${name} = ` +
        `${tile}${at(square ? `gpu.threadIdx.x ^ ${random.below(64)}` : this.index(63))};`,
      'gpu.block.sync();',
    );
    this.scope.variables.push({ name, type, constant: true });
  }

  /** An atomic whose order does not matter, and whose old value is not used. */
  private count(): void {
    const { random } = this;
    const storage = random.pick(SUMMED);
    // Sums of small whole numbers are exact, so that their order does not matter.
    if (storage === 'f32')
      this.lines.push(
        `gpu.atomicAdd(sums_f32, ${this.index(SUMS - 1)}, ` +
          `gpu.f32(${this.expression('i32', 2)} & 255));`,
      );
    else
      this.lines.push(
        `gpu.atomic${ATOMICS[storage]!}(sums_${storage}, ${this.index(SUMS - 1)}, ` +
          `${this.expression(storage)});`,
      );
  }

  // Expressions.

  private index(mask: number): string {
    const { random } = this;
    if (this.scope.inFunction || random.chance(30))
      return `(${random.pick(['gpu.lane', 'gpu.threadIdx.x', 'gpu.globalId.x'])} & ${mask})`;
    return random.chance(70)
      ? `(${this.expression('i32', 2)} & ${mask})`
      : `(gpu.i32(${this.expression(random.pick(NUMERIC), 2)}) & ${mask})`;
  }

  /** A condition need not be a bool. */
  private condition(): string {
    return this.random.chance(85)
      ? this.expression('bool', 2)
      : this.expression(this.random.pick(NUMERIC), 2);
  }

  private expression(type: ValueType, depth = 3): string {
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

const CONSTANTS = { SCALE: 3, WEIGHTS: [1, 2.5, -0.75] };

/** The atomic of each of the sums: its result is the same in any order. */
const ATOMICS: Partial<Record<StorageType, string>> = {
  i32: 'Min',
  u32: 'Add',
  i64: 'Max',
  u64: 'Xor',
  f32: 'Add',
};
const SUMMED = ['i32', 'u32', 'i64', 'u64', 'f32'] as const satisfies readonly StorageType[];

export function randomSource(seed: number): RandomSource {
  return new Writer(seed).write();
}
