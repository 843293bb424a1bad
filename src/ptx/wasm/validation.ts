// Validates a function's code while it is written, by the algorithm of the appendix 'Validation
// Algorithm' of the WebAssembly specification: the types of values on the stack, of locals and of
// blocks. Engines reject ill-typed code, too, but name an offset in a finished module; this throws
// where the instruction is written. scripts/build.mjs leaves it out of the package.

import type { LocalType } from '../scalar-types.js';
import { nameOf, typesOf } from './opcodes.js';
import type { Opcode } from './opcodes.js';
import { Reader } from './reader.js';
import { VALUE_TYPE } from './signature.js';
import type { Signature } from './signature.js';

/** What the types of a function's instructions depend on. */
export interface FunctionTypes {
  /** The type of a parameter or local. */
  local(index: number): LocalType | undefined;
  global(index: number): LocalType | undefined;
  function(index: number): Signature<LocalType> | undefined;
  /** The results of the function itself. */
  results(): readonly LocalType[];
}

/** A value in unreachable code may have any type. */
type ValueType = LocalType | 'any';

/** The stack of values is an immutable list, so that code can be removed again. */
interface Value {
  readonly type: ValueType;
  readonly below: Value | undefined;
}

/** A block that is open, or the function. Blocks of this compiler take no values. */
interface Frame {
  readonly opened: Opcode | 'function';
  /** Undefined for the function, whose results are known only when it is complete. */
  readonly results: readonly LocalType[] | undefined;
  /** The values below the block's own. */
  readonly base: Value | undefined;
  /**
   * Set after a branch that is always taken: instructions then find as many values as they take.
   */
  readonly unreachable: boolean;
  readonly outer: Frame | undefined;
}

const LETTERS: Readonly<Record<string, LocalType>> = {
  i: 'i32',
  j: 'i64',
  f: 'f32',
  d: 'f64',
  V: 'v128',
};
const BLOCK_RESULTS = new Map<number, readonly LocalType[]>([
  [0x40, []],
  ...Object.entries(VALUE_TYPE).map(([type, byte]): [number, readonly LocalType[]] => [
    byte,
    [type as LocalType],
  ]),
]);

/** An instruction's operands, the last one first, and its results. */
interface Types {
  readonly operands: readonly LocalType[];
  readonly results: readonly LocalType[];
}

const known = new Map<Opcode, Types | undefined>();

/** Undefined for an instruction whose types depend on more than its name. */
function typesByName(name: Opcode): Types | undefined {
  const types = known.get(name);
  if (types || known.has(name)) return types;
  const text = typesOf(name);
  const [operands, results] = text.split('>') as [string, string];
  const read = (letters: string): LocalType[] => [...letters].map((letter) => LETTERS[letter]!);
  const made =
    text === '' ? undefined : { operands: read(operands).reverse(), results: read(results) };
  known.set(name, made);
  return made;
}

export class Validator {
  private readonly types: FunctionTypes;
  private top: Value | undefined = undefined;
  private frame: Frame | undefined;
  /**
   * Where each instruction begins, in ascending order, and the stack at that point: three arrays,
   * which need no object for each instruction.
   */
  private readonly starts: number[] = [];
  private readonly tops: (Value | undefined)[] = [];
  private readonly frames: (Frame | undefined)[] = [];
  private readonly reader = new Reader(new Uint8Array(), 0);
  /** How many bytes are valid, and the instruction to which the next ones belong. */
  private validated = 0;
  /** How many bytes there have to be before the next instruction can be complete. */
  private least = 1;
  private name: Opcode = 'nop';

  constructor(types: FunctionTypes) {
    this.types = types;
    this.frame = {
      opened: 'function',
      results: undefined,
      base: undefined,
      unreachable: false,
      outer: undefined,
    };
  }

  /** Validates all instructions that are complete now. */
  read(bytes: Uint8Array, length: number): void {
    // An instruction's bytes come one by one: most calls end here.
    if (length < this.least) return;
    const { reader } = this;
    reader.bytes = bytes;
    reader.end = length;
    while (this.validated < length) {
      reader.at = this.validated;
      const code = reader.opcode();
      if (reader.at > length) break;
      const name = nameOf(code);
      if (name === undefined) throw this.error(`0x${code.toString(16)} is no instruction`);
      this.name = name;
      const immediates = reader.at;
      reader.skipImmediatesOf(name);
      if (reader.at > length) break;
      const next = reader.at;
      this.starts.push(this.validated);
      this.tops.push(this.top);
      this.frames.push(this.frame);
      reader.at = immediates;
      this.step();
      this.validated = next;
    }
    // Bytes still to come are read as zeros, which end a number: it may need more of them.
    this.least = this.validated < length ? reader.at : length + 1;
  }

  /** Goes back to the state before the bytes from `start` on. */
  cut(start: number): void {
    if (this.validated > start) {
      let index = this.starts.length;
      while (index > 0 && this.starts[index - 1]! >= start) index--;
      this.top = this.tops[index];
      this.frame = this.frames[index];
      this.starts.length = this.tops.length = this.frames.length = index;
    }
    this.validated = Math.min(this.validated, start);
    this.least = this.validated + 1;
  }

  private step(): void {
    if (!this.frame) throw this.error('the function has ended');
    const types = typesByName(this.name);
    if (types) {
      for (const type of types.operands) this.pop(type);
      this.push(types.results);
      return;
    }
    switch (this.name) {
      case 'local.get':
        this.push([this.local()]);
        return;
      case 'local.set':
        this.pop(this.local());
        return;
      case 'local.tee': {
        const type = this.local();
        this.pop(type);
        this.push([type]);
        return;
      }
      case 'global.get':
        this.push([this.global()]);
        return;
      case 'global.set':
        this.pop(this.global());
        return;
      case 'drop':
        this.pop('any');
        return;
      case 'select': {
        this.pop('i32');
        const first = this.pop('any');
        const second = this.pop(first);
        this.top = { type: first === 'any' ? second : first, below: this.top };
        return;
      }
      case 'call': {
        const index = this.reader.number();
        const signature = this.types.function(index);
        if (!signature) throw this.error(`there is no function ${index}`);
        this.popAll(signature.params);
        this.push(signature.results);
        return;
      }
      default:
        this.control();
    }
  }

  private control(): void {
    switch (this.name) {
      case 'if':
        this.pop('i32');
        this.open(this.blockResults(), this.frame);
        return;
      case 'block':
      case 'loop':
        this.open(this.blockResults(), this.frame);
        return;
      case 'else':
      case 'end': {
        const { opened, outer } = this.frame!;
        const results = this.resultsOf(this.frame!);
        this.popAll(results);
        if (this.top !== this.frame!.base) throw this.error('values are left on the stack');
        if (this.name === 'else') {
          if (opened !== 'if') throw this.error(`it is in a ${opened}`);
          this.open(results, outer);
          return;
        }
        if (opened === 'if' && results.length > 0) throw this.error('the if has no else');
        this.frame = outer;
        if (outer) this.push(results);
        return;
      }
      case 'br':
        this.popAll(this.labelTypes(this.reader.number()));
        this.leave();
        return;
      case 'br_if': {
        this.pop('i32');
        const types = this.labelTypes(this.reader.number());
        this.popAll(types);
        this.push(types);
        return;
      }
      case 'br_table': {
        this.pop('i32');
        const top = this.top;
        for (let left = this.reader.number() + 1; left > 0; left--) {
          this.top = top;
          this.popAll(this.labelTypes(this.reader.number()));
        }
        this.leave();
        return;
      }
      case 'return':
        this.popAll(this.types.results());
        this.leave();
        return;
      case 'unreachable':
        this.leave();
        return;
      default:
        throw this.error('the validator does not know it');
    }
  }

  private push(types: readonly LocalType[]): void {
    for (const type of types) this.top = { type, below: this.top };
  }

  private pop(wanted: ValueType): ValueType {
    const { top } = this;
    const { base, unreachable } = this.frame!;
    if (top === base) {
      if (unreachable) return wanted;
      throw this.error(`it needs ${wanted === 'any' ? 'a value' : wanted}`);
    }
    const { type, below } = top!;
    if (type !== wanted && type !== 'any' && wanted !== 'any')
      throw this.error(`it needs ${wanted} where ${type} is`);
    this.top = below;
    return type;
  }

  private popAll(types: readonly LocalType[]): void {
    for (let index = types.length - 1; index >= 0; index--) this.pop(types[index]!);
  }

  private open(results: readonly LocalType[], outer: Frame | undefined): void {
    const opened = this.name;
    this.frame = { opened, results, base: this.top, unreachable: false, outer };
  }

  private resultsOf(frame: Frame): readonly LocalType[] {
    return frame.results ?? this.types.results();
  }

  /** Marks the code that follows as unreachable. */
  private leave(): void {
    this.top = this.frame!.base;
    this.frame = { ...this.frame!, unreachable: true };
  }

  private labelTypes(depth: number): readonly LocalType[] {
    let frame = this.frame;
    for (let left = depth; left > 0; left--) frame = frame?.outer;
    if (!frame) throw this.error(`no block is open at depth ${depth}`);
    return frame.opened === 'loop' ? [] : this.resultsOf(frame);
  }

  private blockResults(): readonly LocalType[] {
    const byte = this.reader.byte();
    const results = BLOCK_RESULTS.get(byte);
    if (!results) throw this.error(`0x${byte.toString(16)} is no type of a block`);
    return results;
  }

  private local(): LocalType {
    const index = this.reader.number();
    const type = this.types.local(index);
    if (!type) throw this.error(`there is no local ${index}`);
    return type;
  }

  private global(): LocalType {
    const index = this.reader.number();
    const type = this.types.global(index);
    if (!type) throw this.error(`there is no global ${index}`);
    return type;
  }

  private error(message: string): Error {
    const types: string[] = [];
    for (let value = this.top; value; value = value.below) types.push(value.type);
    const stack = types.length ? types.reverse().join(' ') : 'nothing';
    return new Error(
      `Ill-typed WebAssembly: '${this.name}' at byte ${this.validated}: ${message}. The stack ` +
        `holds ${stack}${this.frame?.unreachable ? ', in code that is not reached' : ''}.`,
    );
  }
}
