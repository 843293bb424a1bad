/**
 * A kernel in static single assignment form: values in blocks, and blocks that end in one jump.
 * `build.ts` builds it from the typed tree, `../optimise` optimises it, and `../emit` writes its
 * PTX.
 */
import type { AbiParam, Span } from '../tree.js';

/**
 * Kinds of PTX registers. The sign belongs to the operation; `none` is the type of an operation
 * without a value.
 */
export type RegisterType = 'pred' | 'b16' | 'b32' | 'b64' | 'f32' | 'f64' | 'none';

/** The type in which an operation reads its operands, where the registers do not determine it. */
export type NumberType = 'pred' | 's32' | 'u32' | 'b32' | 's64' | 'u64' | 'b64' | 'f32' | 'f64';

export type Scope = 'block' | 'device' | 'system';

/** 32-bit and 64-bit constants are signed. */
export type Constant = number | bigint | boolean;

/** The memory access of `load`, `store` and `atomic`. */
export interface MemoryAccess {
  readonly space: 'global' | 'shared' | 'local';
  /** The bits in memory. `b16` is read into a 16-bit register, other narrow forms into 32 bits. */
  readonly form: 's8' | 'u8' | 's16' | 'u16' | 'b16' | 'b32' | 'b64' | 'f32' | 'f64';
  /** Bytes to add to the address. */
  readonly offset: number;
  /** Whether no thread writes the memory while the kernel runs. */
  readonly readonly: boolean;
  readonly cache?: 'streaming' | 'volatile' | undefined;
  /** Accesses of different regions never overlap. */
  readonly region: string;
}

/** One operation and its value. `operations.ts` lists the values of `op`. */
export class Value {
  readonly id: number;
  op: string;
  readonly type: RegisterType;
  args: Value[];
  /**
   * A property that distinguishes operations of one name: a comparison, the name of a special
   * register, a mode.
   */
  detail: string;
  /** The type in which operands are read, where that matters. */
  readonly as: NumberType | undefined;
  constant: Constant | undefined;
  memory: MemoryAccess | undefined;
  block: Block | undefined;
  span: Span | undefined;
  /** The values that one vector load gives. */
  parts: readonly Value[] | undefined;
  /** The value that has replaced this one. */
  replacement: Value | undefined;
  /** Bounds of the value, where its operation does not determine them. */
  range: readonly [number, number] | undefined;

  constructor(
    id: number,
    op: string,
    type: RegisterType,
    args: Value[],
    detail: string,
    as: NumberType | undefined,
  ) {
    this.id = id;
    this.op = op;
    this.type = type;
    this.args = args;
    this.detail = detail;
    this.as = as;
    this.constant = undefined;
    this.memory = undefined;
    this.block = undefined;
    this.span = undefined;
    this.parts = undefined;
    this.replacement = undefined;
    this.range = undefined;
  }
}

/** The end of a block. */
export type Ending =
  | { readonly kind: 'jump'; readonly to: Block }
  | {
      readonly kind: 'branch';
      readonly test: Value;
      readonly then: Block;
      readonly otherwise: Block;
    }
  | { readonly kind: 'return' };

export class Block {
  readonly id: number;
  /** Operands of a phi are in the order of `before`. */
  phis: Value[] = [];
  values: Value[] = [];
  before: Block[] = [];
  end: Ending | undefined = undefined;
  /** The number of loops around the block. */
  readonly depth: number;
  /** Whether the loop is unrolled already, or is not to be: ptxas must not unroll it. */
  keepRolled = false;

  constructor(id: number, depth: number) {
    this.id = id;
    this.depth = depth;
  }
}

/** An array of the kernel that stays in memory. */
export interface ArraySymbol {
  readonly symbol: string;
  readonly space: 'shared' | 'local' | 'dynamic';
  readonly bytes: number;
  readonly align: number;
}

/** Text in constant memory of the module: formats and messages. */
export interface TextSymbol {
  readonly symbol: string;
  readonly text: string;
}

export class SsaFunction {
  readonly entry: Block;
  /** Blocks in the order of the source. */
  blocks: Block[] = [];
  abi: AbiParam[];
  readonly arrays = new Map<number, ArraySymbol>();
  readonly texts: TextSymbol[] = [];
  /** Bytes of the stack for arguments of printf. */
  printBytes = 0;
  private nextValue = 0;
  private nextBlock = 0;
  private readonly constants = new Map<string, Value>();

  constructor(abi: readonly AbiParam[]) {
    this.abi = [...abi];
    this.entry = this.block(0);
    this.blocks.push(this.entry);
  }

  /** Makes a block that has no place yet. */
  block(depth: number): Block {
    return new Block(this.nextBlock++, depth);
  }

  value(op: string, type: RegisterType, args: Value[], detail = '', as?: NumberType): Value {
    return new Value(this.nextValue++, op, type, args, detail, as);
  }

  get valueCount(): number {
    return this.nextValue;
  }

  get blockCount(): number {
    return this.nextBlock;
  }

  /** Gives the one value of a constant. 32-bit integers are signed. */
  constant(type: RegisterType, constant: Constant): Value {
    const held =
      type === 'b32'
        ? Number(constant) | 0
        : type === 'b64'
          ? BigInt.asIntN(64, BigInt(constant))
          : type === 'pred'
            ? Boolean(constant)
            : Number(constant);
    const key = `${type} ${Object.is(held, -0) ? '-0' : String(held)}`;
    let value = this.constants.get(key);
    if (value === undefined) {
      value = this.value('constant', type, []);
      value.constant = held;
      this.constants.set(key, value);
    }
    return value;
  }

  /** The value of a variable on a path without an assignment: no code that runs uses it. */
  undefinedOf(type: RegisterType): Value {
    return this.once(`undefined ${type}`, () => this.value('undefined', type, []));
  }

  text(text: string): string {
    const known = this.texts.find((entry) => entry.text === text);
    if (known) return known.symbol;
    const symbol = this.texts.length === 0 ? '$str' : `$str$${this.texts.length}`;
    this.texts.push({ symbol, text });
    return symbol;
  }

  private once(key: string, make: () => Value): Value {
    let value = this.constants.get(key);
    if (value === undefined) {
      value = make();
      this.constants.set(key, value);
    }
    return value;
  }
}

/** Gives the value that has replaced this one. */
export function resolve(value: Value): Value {
  let last = value;
  while (last.replacement !== undefined) last = last.replacement;
  // The chain is shortened, so that a long one is followed once.
  while (value.replacement !== undefined && value.replacement !== last) {
    const next: Value = value.replacement;
    value.replacement = last;
    value = next;
  }
  return last;
}

/** The successors of a block. */
export function successors(block: Block): readonly Block[] {
  const { end } = block;
  if (end === undefined || end.kind === 'return') return [];
  return end.kind === 'jump' ? [end.to] : [end.then, end.otherwise];
}
