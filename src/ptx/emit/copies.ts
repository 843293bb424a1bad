// Which bytes of what a function loads decide anything, and which are only put elsewhere. Padding
// of a structure, and the bits beside a bit-field that is set for the first time, are loaded and
// stored again by right programs although nobody has written them: in code compiled with `check` a
// load tells which of its bytes are more than that.

import type { Block } from '../analysis/blocks.js';
import { eachInstruction } from '../analysis/liveness.js';
import type { Arg, Inst, Register } from '../analysis/program.js';
import { Choices } from './choices.js';
import { isScalarType, scalarType } from '../scalar-types.js';
import type { ScalarType } from '../scalar-types.js';

const ALL = 2n ** 64n - 1n;
/** Beside the bits of a value that decide something: that some of it gets into memory. */
const STORED = 2n ** 64n;

const maskOf = (bits: number): bigint => (bits > 0 ? (1n << BigInt(Math.min(bits, 64))) - 1n : 0n);

const typesOf = ({ modifiers }: Inst): ScalarType[] =>
  modifiers.filter(isScalarType).map(scalarType);

/** The values that a load or store moves, and how many bytes each has. */
function elementsOf(
  inst: Inst,
  arg: Arg | undefined,
): { elements: readonly Arg[]; bytes: number; type: ScalarType } | undefined {
  const type = typesOf(inst).at(-1);
  if (arg === undefined || type === undefined) return undefined;
  const elements = arg.kind === 'vector' ? arg.elements : [arg];
  return { elements, bytes: Math.min(type.bits, 64) / 8, type };
}

/** The register of call-parameter space that `ld` and `st` name like memory. */
function parameterOf(inst: Inst): Register | undefined {
  const address = inst.args[inst.mnemonic === 'ld' ? 1 : 0];
  return address?.kind === 'address' && address.symbol?.kind === 'paramRegister'
    ? address.symbol.register
    : undefined;
}

/**
 * Instructions whose results are made of their operands alone do not stand here. A kernel's
 * parameters are always written.
 */
const OUT_OF_MEMORY = new Set(['ldu', 'atom', 'call', 'tex', 'tld4', 'suld', 'ldmatrix', 'wmma']);

const givesLoaded = (inst: Inst): boolean =>
  OUT_OF_MEMORY.has(inst.mnemonic) ||
  (inst.mnemonic === 'ld' &&
    (!inst.modifiers.includes('param') || parameterOf(inst) !== undefined));

/** What a store writes that was only loaded before. */
export interface StoredCopy {
  /** Bytes of the store, from its first. */
  at: number;
  bytes: number;
  /** The load, by its number in the block, and which of its bytes come first. */
  slot: number;
  from: number;
}

/** The registers that a load from memory sets, each with its bytes of the load. */
function partsOf(inst: Inst): { register: Register; bytes: number }[] | undefined {
  const moved =
    inst.mnemonic === 'ld' && parameterOf(inst) === undefined
      ? elementsOf(inst, inst.args[0])
      : undefined;
  return moved?.elements.flatMap((element, index) =>
    element.kind === 'register'
      ? [
          {
            register: element.register,
            bytes: ((2 ** moved.bytes - 1) << (index * moved.bytes)) | 0,
          },
        ]
      : [],
  );
}

export class Copies {
  /** By register: the bits that decide something, in any of the values it has. */
  private readonly needed: bigint[];
  private readonly slots = new Map<Inst, number>();
  private readonly stored = new Map<Inst, StoredCopy[]>();
  /** By register: whether any of its values comes out of memory. */
  private readonly loaded: boolean[];
  private readonly choices: Choices;
  private changed = false;

  /** `read`: registers whose values leave the function. */
  constructor(blocks: readonly Block[], registers: number, read: readonly Register[]) {
    this.needed = new Array<bigint>(registers).fill(0n);
    for (const { id } of read) this.needed[id] = ALL;
    this.loaded = new Array<boolean>(registers).fill(false);
    this.choices = new Choices(blocks, partsOf);
    this.findNeeded(blocks);
    for (const block of blocks) this.followLoads(block);
  }

  /** Of a load: a bit for each byte that decides something, and -1 where all do. */
  decisive(inst: Inst): number {
    const moved = inst.mnemonic === 'ld' ? elementsOf(inst, inst.args[0]) : undefined;
    if (moved === undefined) return -1;
    const { elements, bytes, type } = moved;
    let mask = 0;
    let any = 0n;
    elements.forEach((element, index) => {
      if (element.kind !== 'register') return;
      const needed = this.needed[element.register.id]!;
      any |= needed;
      for (let byte = 0; byte < bytes; byte++)
        if (((needed >> BigInt(8 * byte)) & 0xffn) !== 0n) mask |= 1 << (index * bytes + byte);
      // The sign is all that stands above.
      if (type.kind === 'signed' && (needed & ALL) >> BigInt(8 * bytes) !== 0n)
        mask |= 1 << (index * bytes + bytes - 1);
    });
    // Who loads for nothing means to read.
    if (any === 0n) return -1;
    return mask === (elements.length * bytes === 32 ? -1 : 2 ** (elements.length * bytes) - 1)
      ? -1
      : mask;
  }

  /** Of a load whose bytes a store of its block writes: its number. */
  slot(inst: Inst): number | undefined {
    return this.slots.get(inst);
  }

  /**
   * Of a `selp` whose result decides something: by number of a load, the bytes that its two values
   * are made of.
   */
  chosen(inst: Inst): { slot: number; bytes: number }[][] | undefined {
    const sides = this.choices.of(inst);
    if (sides === undefined || (this.wanted(inst.args[0]) & ALL) === 0n) return undefined;
    return sides.map((side) =>
      side.map(({ load, bytes }) => ({ slot: this.slots.get(load)!, bytes })),
    );
  }

  /** Of a store: which of its bytes were only loaded. */
  of(inst: Inst): readonly StoredCopy[] {
    return this.stored.get(inst) ?? [];
  }

  // Backwards from what decides something

  private findNeeded(blocks: readonly Block[]): void {
    const all: Inst[] = [];
    for (const block of blocks)
      eachInstruction(block, (inst) => {
        all.push(inst);
      });
    this.findLoaded(all);
    // Against the order of the code nearly everything is seen in one pass; loops take another.
    do {
      this.changed = false;
      for (let at = all.length - 1; at >= 0; at--) this.visit(all[at]!);
    } while (this.changed);
  }

  private findLoaded(all: readonly Inst[]): void {
    do {
      this.changed = false;
      for (const inst of all) {
        if (!givesLoaded(inst) && !this.valuesOf(inst).some(({ id }) => this.loaded[id])) continue;
        for (const { id } of inst.defs) {
          if (this.loaded[id]) continue;
          this.loaded[id] = true;
          this.changed = true;
        }
      }
    } while (this.changed);
  }

  /**
   * What a result is made of. What `selp` chooses by is not: a place that was searched for is none
   * of the values it was found by.
   */
  private valuesOf({ mnemonic, args, uses }: Inst): readonly Register[] {
    return mnemonic === 'selp'
      ? args.slice(1, 3).flatMap((arg) => (arg.kind === 'register' ? [arg.register] : []))
      : uses;
  }

  private need({ id }: Register, bits: bigint): void {
    const before = this.needed[id]!;
    const after = before | bits;
    if (after === before) return;
    this.needed[id] = after;
    this.changed = true;
  }

  /** The instruction needs these bits of an operand. */
  private take(arg: Arg | undefined, bits: bigint, width = 64): void {
    switch (arg?.kind) {
      case 'register':
        this.need(arg.register, bits & (STORED | maskOf(width)));
        return;
      case 'vector': {
        const each = width / arg.elements.length;
        arg.elements.forEach((element, index) => {
          this.take(element, (bits & STORED) | ((bits & ALL) >> BigInt(index * each)), each);
        });
        return;
      }
      case 'address':
        if (arg.base) this.need(arg.base, ALL);
        if (arg.symbol?.kind === 'incoming') this.need(arg.symbol.pointer, ALL);
        arg.extra.forEach((extra) => {
          this.take(extra, ALL);
        });
        return;
      case 'pair':
        this.take(arg.first, ALL);
        this.take(arg.second, ALL);
        return;
      case 'not':
      case 'negated':
      case 'selected':
        this.take(arg.operand, ALL);
        return;
    }
  }

  /** What is needed of a result. */
  private wanted(arg: Arg | undefined, width = 64): bigint {
    switch (arg?.kind) {
      case 'register':
        return this.needed[arg.register.id]!;
      case 'vector': {
        const each = width / arg.elements.length;
        return arg.elements.reduce((sum, element, index) => {
          const bits = this.wanted(element, each);
          return sum | (bits & STORED) | ((bits & maskOf(each)) << BigInt(index * each));
        }, 0n);
      }
      case 'pair':
        return ALL;
      default:
        return 0n;
    }
  }

  private visit(inst: Inst): void {
    const { predicate } = inst;
    if (predicate !== undefined) this.need(predicate.register, ALL);
    if (this.visitChoice(inst)) return;
    if (PASSES[inst.mnemonic]?.(inst, this.passing) === true) return;
    // Anything else looks at all that it is given. What a predicate leaves alone is named as read,
    // too.
    const kept = predicate === undefined ? undefined : new Set(inst.defs);
    for (const register of inst.uses) if (kept?.has(register) !== true) this.need(register, ALL);
  }

  /**
   * What a `selp` chooses of what its block has loaded is told there, and decides nothing before.
   */
  private visitChoice(inst: Inst): boolean {
    const { args } = inst;
    if (this.choices.passes(inst)) {
      for (const arg of args.slice(1)) this.take(arg, STORED);
      return true;
    }
    const sides = this.choices.of(inst);
    if (sides === undefined) return false;
    const bits = this.wanted(args[0]);
    sides.forEach((side, index) => {
      this.take(args[1 + index], side.length > 0 ? STORED : bits);
    });
    this.take(args[3], ALL);
    return true;
  }

  private readonly passing: Passing = {
    wanted: (arg, width) => this.wanted(arg, width),
    take: (arg, bits, width) => {
      this.take(arg, bits, width);
    },
    wantedOf: (register) => this.needed[register.id]!,
    need: (register, bits) => {
      this.need(register, bits);
    },
    isLoaded: (register) => this.loaded[register.id]!,
  };

  // Forwards from a load to the stores of its block

  private followLoads({ insts }: Block): void {
    /** What a register holds of a load. */
    const held = new Map<number, { load: Inst; from: number; bytes: number }>();
    let slots = 0;
    for (const inst of insts) {
      for (const { load } of this.choices.of(inst)?.flat() ?? [])
        if (!this.slots.has(load)) this.slots.set(load, slots++);
    }
    for (const inst of insts) {
      const { mnemonic, defs, predicate } = inst;
      if (mnemonic === 'call') {
        // The loads of what is called have the same numbers.
        held.clear();
        continue;
      }
      if (mnemonic === 'st' && parameterOf(inst) === undefined) {
        const moved = elementsOf(inst, inst.args[1]);
        const copies: StoredCopy[] = [];
        moved?.elements.forEach((element, index) => {
          const source = element.kind === 'register' ? held.get(element.register.id) : undefined;
          if (source === undefined) return;
          let slot = this.slots.get(source.load);
          if (slot === undefined) this.slots.set(source.load, (slot = slots++));
          copies.push({
            at: index * moved.bytes,
            bytes: Math.min(moved.bytes, source.bytes),
            slot,
            from: source.from,
          });
        });
        if (copies.length > 0) this.stored.set(inst, copies);
        continue;
      }
      const [target, from] = inst.args;
      const moved =
        (mnemonic === 'mov' || mnemonic === 'copy') &&
        target?.kind === 'register' &&
        from?.kind === 'register'
          ? held.get(from.register.id)
          : undefined;
      for (const { id } of defs) held.delete(id);
      if (predicate !== undefined) continue;
      if (moved !== undefined) held.set(defs[0]!.id, moved);
      if (mnemonic !== 'ld' || parameterOf(inst) !== undefined) continue;
      const loaded = elementsOf(inst, target);
      loaded?.elements.forEach((element, index) => {
        if (element.kind === 'register')
          held.set(element.register.id, {
            load: inst,
            from: index * loaded.bytes,
            bytes: loaded.bytes,
          });
      });
    }
  }
}

/** What the rows below work with. */
interface Passing {
  /** The bits that are needed of a result. */
  readonly wanted: (arg: Arg | undefined, width?: number) => bigint;
  /** Bits of an operand are needed. */
  readonly take: (arg: Arg | undefined, bits: bigint, width?: number) => void;
  /** The same of a register of call-parameter space. */
  readonly wantedOf: (register: Register) => bigint;
  readonly need: (register: Register, bits: bigint) => void;
  readonly isLoaded: (register: Register) => boolean;
}

/** A constant operand. */
const constantOf = (arg: Arg | undefined): bigint | undefined =>
  arg?.kind === 'integer' ? BigInt.asUintN(64, arg.value) : undefined;

/** Where any bit may come from any. */
const smeared = (bits: bigint): bigint => ((bits & ALL) === 0n ? bits : bits | ALL);

const isInteger = ({ kind, bits }: ScalarType): boolean =>
  kind !== 'float' && kind !== 'predicate' && bits <= 64;

/**
 * Passes bits of the operands on to a result, and tells which. False where this form of the
 * instruction looks at all of them.
 */
type Pass = (inst: Inst, passing: Passing) => boolean;

const widthOf = (inst: Inst): number => typesOf(inst).at(-1)?.bits ?? 32;

/** Of these operands what is needed of the result, and of the others all. */
const passes =
  (...operands: number[]): Pass =>
  (inst, { take, wanted }) => {
    // The second type of slct is that of its control.
    const width = typesOf(inst)[0]?.bits ?? 64;
    const bits = wanted(inst.args[0], width);
    inst.args.forEach((arg, index) => {
      if (index > 0) take(arg, operands.includes(index) ? bits : ALL, width);
    });
    return true;
  };

const move: Pass = ({ args: [target, source], mnemonic, modifiers }, { take, wanted }) => {
  const width = mnemonic === 'mov' ? scalarType(modifiers.find(isScalarType) ?? 'b64').bits : 64;
  if (width === 128) {
    // Two halves each.
    if (target?.kind !== 'vector' || source?.kind !== 'vector') return false;
    target.elements.forEach((half, index) => {
      take(source.elements[index], wanted(half));
    });
    return true;
  }
  take(source, wanted(target, width), width);
  return true;
};

/**
 * `i < n && next < last`, without a branch: compilers compare what was loaded too far, and the
 * other predicate, that came out of no memory, settles it. Merges read one past their ends like
 * that. So a comparison behind such a guard looks at nothing.
 */
function guarded({ args: [target, a, b] }: Inst, { take, wanted, isLoaded }: Passing): boolean {
  if (
    a?.kind !== 'register' ||
    b?.kind !== 'register' ||
    isLoaded(a.register) === isLoaded(b.register)
  )
    return false;
  const bits = wanted(target, 1);
  const [guard, value] = isLoaded(a.register) ? [b, a] : [a, b];
  take(guard, bits);
  take(value, bits === 0n ? 0n : STORED);
  return true;
}

const isOfPredicates = ({ modifiers }: Inst): boolean => modifiers.includes('pred');

/**
 * A comparison looks at what it compares where its result decides something. One that is combined
 * with another does at once.
 */
const compare: Pass = ({ args, defs, modifiers }, { take, wanted }) => {
  const [target, ...operands] = args;
  if (
    target?.kind !== 'register' ||
    defs.length !== 1 ||
    operands.length !== 2 ||
    modifiers.some((word) => word === 'f16x2' || word === 'bf16x2')
  )
    return false;
  const bits = wanted(target);
  for (const operand of operands) take(operand, (bits & ALL) === 0n ? bits : ALL);
  return true;
};

const and: Pass = (inst, passing) => {
  const {
    args: [target, a, b],
  } = inst;
  if (isOfPredicates(inst) && guarded(inst, passing)) return true;
  const width = widthOf(inst);
  const bits = passing.wanted(target, width);
  passing.take(a, bits & (STORED | (constantOf(b) ?? ALL)), width);
  passing.take(b, bits & (STORED | (constantOf(a) ?? ALL)), width);
  return true;
};

const or: Pass = (inst, passing) => {
  const {
    args: [target, a, b],
  } = inst;
  if (isOfPredicates(inst) && guarded(inst, passing)) return true;
  const width = widthOf(inst);
  const bits = passing.wanted(target, width);
  passing.take(a, bits & ~(constantOf(b) ?? 0n), width);
  passing.take(b, bits & ~(constantOf(a) ?? 0n), width);
  return true;
};

const shift =
  (left: boolean): Pass =>
  (inst, { take, wanted }) => {
    const {
      args: [target, value, amount],
    } = inst;
    const type = typesOf(inst).at(-1)!;
    const bits = wanted(target) & (STORED | maskOf(type.bits));
    const stored = bits & STORED;
    const constant = constantOf(amount);
    take(amount, ALL);
    if (constant === undefined) {
      take(value, smeared(bits), type.bits);
      return true;
    }
    const count = constant < 64n ? constant : 64n;
    let from = left ? (bits & ALL) >> count : (bits & ALL) << count;
    // Above what is shifted in stands the sign.
    if (!left && type.kind === 'signed' && (from & ~maskOf(type.bits)) !== 0n)
      from |= 1n << BigInt(type.bits - 1);
    take(value, stored | (from & maskOf(type.bits)), type.bits);
    return true;
  };

const funnel: Pass = ({ args: [target, low, high, amount] }, { take, wanted }) => {
  const bits = smeared(wanted(target));
  take(low, bits);
  take(high, bits);
  take(amount, ALL);
  return true;
};

const permute: Pass = ({ args: [target, a, b, selector], modifiers }, { take, wanted }) => {
  const bits = wanted(target);
  const constant = modifiers.length === 1 ? constantOf(selector) : undefined;
  take(selector, ALL);
  if (constant === undefined) {
    take(a, smeared(bits));
    take(b, smeared(bits));
    return true;
  }
  const from = [bits & STORED, bits & STORED];
  for (let byte = 0n; byte < 4n; byte++) {
    const needed = (bits >> (8n * byte)) & 0xffn;
    if (needed === 0n) continue;
    const part = (constant >> (4n * byte)) & 15n;
    from[Number((part >> 2n) & 1n)]! |= ((part & 8n) === 0n ? needed : 0x80n) << (8n * (part & 3n));
  }
  take(a, from[0]!);
  take(b, from[1]!);
  return true;
};

const extract: Pass = (inst, { take, wanted }) => {
  const {
    args: [target, value, position, length],
  } = inst;
  const type = typesOf(inst).at(-1)!;
  const bits = wanted(target);
  take(position, ALL);
  take(length, ALL);
  const [at, count] = [constantOf(position), constantOf(length)];
  // A field that leaves the value has its sign elsewhere.
  if (at === undefined || count === undefined || count === 0n || at + count > BigInt(type.bits)) {
    take(value, smeared(bits), type.bits);
    return true;
  }
  const field = maskOf(Number(count));
  let from = bits & field;
  if (type.kind === 'signed' && (bits & ALL & ~field) !== 0n) from |= 1n << (count - 1n);
  take(value, (bits & STORED) | (from << at), type.bits);
  return true;
};

const insert: Pass = (inst, { take, wanted }) => {
  const {
    args: [target, field, value, position, length],
  } = inst;
  const width = widthOf(inst);
  const bits = wanted(target);
  take(position, ALL);
  take(length, ALL);
  const [at, count] = [constantOf(position), constantOf(length)];
  if (at === undefined || count === undefined || at > 63n || count > 64n) {
    take(field, smeared(bits), width);
    take(value, bits, width);
    return true;
  }
  const mask = maskOf(Number(count));
  take(field, (bits & STORED) | (((bits & ALL) >> at) & mask), width);
  take(value, bits & ~(mask << at), width);
  return true;
};

const logic3: Pass = ({ args: [target, a, b, c, table] }, { take, wanted }) => {
  if (target?.kind !== 'register' || table?.kind !== 'integer') return false;
  for (const operand of [a, b, c]) take(operand, wanted(target));
  return true;
};

const convert: Pass = (inst, { take, wanted }) => {
  const types = typesOf(inst);
  const [to, from] = types;
  if (
    types.length !== 2 ||
    !isInteger(to!) ||
    !isInteger(from!) ||
    inst.modifiers.includes('sat') ||
    inst.modifiers.includes('pack')
  )
    return false;
  // A narrow result is extended to its register as its type says.
  let bits = wanted(inst.args[0]);
  if (to!.kind === 'signed' && (bits & ALL & ~maskOf(to!.bits)) !== 0n)
    bits |= 1n << BigInt(to!.bits - 1);
  bits &= STORED | maskOf(to!.bits);
  if (from!.kind === 'signed' && (bits & ALL & ~maskOf(from!.bits)) !== 0n)
    bits |= 1n << BigInt(from!.bits - 1);
  take(inst.args[1], bits, from!.bits);
  return true;
};

/** Bits that a parameter's register is read or written for, by `ld` and `st`. */
const load: Pass = (inst, { take, wanted, need }) => {
  const parameter = parameterOf(inst);
  if (parameter === undefined) {
    take(inst.args[1], ALL);
    return true;
  }
  const type = typesOf(inst).at(-1);
  const bits = wanted(inst.args[0]);
  const above =
    type?.kind === 'signed' && (bits & ALL & ~maskOf(type.bits)) !== 0n
      ? 1n << BigInt(type.bits - 1)
      : 0n;
  need(parameter, (bits & (STORED | maskOf(type?.bits ?? 64))) | above);
  return true;
};

const store: Pass = (inst, { take, wantedOf }) => {
  const moved = elementsOf(inst, inst.args[1]);
  if (moved === undefined || inst.modifiers.includes('bulk')) return false;
  const parameter = parameterOf(inst);
  inst.args.forEach((arg, index) => {
    if (index !== 1) take(arg, ALL);
  });
  const bits = parameter === undefined ? STORED : wantedOf(parameter);
  for (const element of moved.elements) take(element, bits);
  return true;
};

/** Instructions that do not look at what they are given, or at a part of it only. All others do. */
const PASSES: Readonly<Record<string, Pass>> = {
  mov: move,
  copy: move,
  setp: compare,
  and,
  or,
  xor: passes(1, 2),
  not: passes(1),
  shl: shift(true),
  shr: shift(false),
  shf: funnel,
  prmt: permute,
  bfe: extract,
  bfi: insert,
  lop3: logic3,
  cvt: convert,
  selp: passes(1, 2),
  slct: passes(1, 2),
  // Structures go from lane to lane word by word.
  shfl: ({ args: [target, value, ...rest] }, { take, wanted }) => {
    take(value, wanted(target?.kind === 'pair' ? target.first : target));
    for (const arg of rest) take(arg, ALL);
    return true;
  },
  ld: load,
  st: store,
};
