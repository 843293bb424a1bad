/**
 * Random kernels as a program has them: the text of a function, well typed by the language's rules
 * (`docs/kernels.md`), whose results do not depend on the order of threads. Each thread writes
 * elements of its own, or adds to counters; convergent operations are where all threads reach them.
 */
import type { StorageType } from '../../../src/compiler/tree.js';
import {
  ARRAYS,
  BELOW,
  ExpressionWriter,
  FIELDS,
  FIELD_NAMES,
  INTEGERS,
  NUMERIC,
  READ_AS,
  SUMS,
  TYPES,
} from './random-expressions.js';

const MOST_DEPTH = 3;

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

class Writer extends ExpressionWriter {
  /** The dtype of the elements of dynamic shared memory. */
  private readonly dynamic: StorageType | undefined;
  private readonly lines: string[] = [];
  private names = 0;
  private depth = 0;

  constructor(seed: number) {
    super(seed);
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
}

export function randomSource(seed: number): RandomSource {
  return new Writer(seed).write();
}
