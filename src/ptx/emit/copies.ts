// Which bytes of a function's loads have an effect, and which are only stored elsewhere. Correct
// programs load and store padding of structures, and the bits next to a bit-field that is set for
// the first time, although nothing has written them: in code compiled with `check` a load reports
// which of its bytes are used in another way.

import type { Block } from '../analysis/blocks.js';
import { eachInstruction } from '../analysis/liveness.js';
import type { Arg, Inst, Register } from '../analysis/program.js';
import { Choices } from './choices.js';
import { isScalarType, scalarType } from '../scalar-types.js';
import type { ScalarType } from '../scalar-types.js';

const ALL = 2n ** 64n - 1n;
/** Besides the bits of a value that have an effect: some of it is stored to memory. */
const STORED = 2n ** 64n;

const maskOf = (bits: number): bigint => (bits > 0 ? (1n << BigInt(Math.min(bits, 64))) - 1n : 0n);

const typesOf = ({ modifiers }: Inst): ScalarType[] =>
  modifiers.filter(isScalarType).map(scalarType);

/** The values that a load or store moves, and the bytes of each. */
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
 * Instructions whose results come from memory. A kernel's parameters are always written, and do not
 * count.
 */
const OUT_OF_MEMORY = new Set(['ldu', 'atom', 'call', 'tex', 'tld4', 'suld', 'ldmatrix', 'wmma']);

const givesLoaded = (inst: Inst): boolean =>
  OUT_OF_MEMORY.has(inst.mnemonic) ||
  (inst.mnemonic === 'ld' &&
    (!inst.modifiers.includes('param') || parameterOf(inst) !== undefined));

/** A part of a store that was only loaded before. */
export interface StoredCopy {
  /** The first byte of the part in the store. */
  at: number;
  bytes: number;
  /** The load's number in the block, and the first byte of the part in the load. */
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
  /** For each register, the bits of its values that have an effect. */
  private readonly needed: bigint[];
  private readonly slots = new Map<Inst, number>();
  private readonly stored = new Map<Inst, StoredCopy[]>();
  /** For each register, whether any of its values comes from memory. */
  private readonly loaded: boolean[];
  private readonly choices: Choices;
  private changed = false;

  /** `read`: the registers whose values leave the function. */
  constructor(blocks: readonly Block[], registers: number, read: readonly Register[]) {
    this.needed = new Array<bigint>(registers).fill(0n);
    for (const { id } of read) this.needed[id] = ALL;
    this.loaded = new Array<boolean>(registers).fill(false);
    this.choices = new Choices(blocks, partsOf);
    this.findNeeded(blocks);
    for (const block of blocks) this.followLoads(block);
  }

  /** For a load, a bit for each byte that has an effect, or -1 if all do. */
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
      // All bits above are the sign.
      if (type.kind === 'signed' && (needed & ALL) >> BigInt(8 * bytes) !== 0n)
        mask |= 1 << (index * bytes + bytes - 1);
    });
    // A load without any use is meant as a read.
    if (any === 0n) return -1;
    return mask === (elements.length * bytes === 32 ? -1 : 2 ** (elements.length * bytes) - 1)
      ? -1
      : mask;
  }

  /** For a load whose bytes a store of its block writes: its number. */
  slot(inst: Inst): number | undefined {
    return this.slots.get(inst);
  }

  /**
   * For a `selp` whose result has an effect: by the number of a load, the bytes from which its two
   * values are computed.
   */
  chosen(inst: Inst): { slot: number; bytes: number }[][] | undefined {
    const sides = this.choices.of(inst);
    if (sides === undefined || (this.wanted(inst.args[0]) & ALL) === 0n) return undefined;
    return sides.map((side) =>
      side.map(({ load, bytes }) => ({ slot: this.slots.get(load)!, bytes })),
    );
  }

  /** For a store, the parts that were only loaded. */
  of(inst: Inst): readonly StoredCopy[] {
    return this.stored.get(inst) ?? [];
  }

  // Backwards from what has an effect.

  private findNeeded(blocks: readonly Block[]): void {
    const all: Inst[] = [];
    for (const block of blocks)
      eachInstruction(block, (inst) => {
        all.push(inst);
      });
    this.findLoaded(all);
    // Against the order of the code one pass finds nearly everything; loops need another one.
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
   * The operands from which a result is computed. The predicate of a `selp` is not one of them: a
   * position that was searched for does not contain the values by which it was found.
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

  /** Marks bits of an operand that the instruction needs. */
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

  /** The bits of a result that are needed. */
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
    // Any other instruction uses all of its operands. What its predicate leaves unchanged is named
    // as read, too.
    const kept = predicate === undefined ? undefined : new Set(inst.defs);
    for (const register of inst.uses) if (kept?.has(register) !== true) this.need(register, ALL);
  }

  /**
   * The `selp` reports which of the values loaded in its block it chooses; before it they have no
   * effect.
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

  // Forwards from a load to the stores of its block.

  private followLoads({ insts }: Block): void {
    /** The part of a load in a register. */
    const held = new Map<number, { load: Inst; from: number; bytes: number }>();
    let slots = 0;
    for (const inst of insts) {
      for (const { load } of this.choices.of(inst)?.flat() ?? [])
        if (!this.slots.has(load)) this.slots.set(load, slots++);
    }
    for (const inst of insts) {
      const { mnemonic, defs, predicate } = inst;
      if (mnemonic === 'call') {
        // The loads of the called function have the same numbers.
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

/** The context of the rows below. */
interface Passing {
  /** The bits that are needed of a result. */
  readonly wanted: (arg: Arg | undefined, width?: number) => bigint;
  /** Marks bits of an operand as needed. */
  readonly take: (arg: Arg | undefined, bits: bigint, width?: number) => void;
  /** `wanted` for a register of call-parameter space. */
  readonly wantedOf: (register: Register) => bigint;
  readonly need: (register: Register, bits: bigint) => void;
  readonly isLoaded: (register: Register) => boolean;
}

/** A constant operand. */
const constantOf = (arg: Arg | undefined): bigint | undefined =>
  arg?.kind === 'integer' ? BigInt.asUintN(64, arg.value) : undefined;

/** Any bit of the result may depend on any bit of the operand. */
const smeared = (bits: bigint): bigint => ((bits & ALL) === 0n ? bits : bits | ALL);

const isInteger = ({ kind, bits }: ScalarType): boolean =>
  kind !== 'float' && kind !== 'predicate' && bits <= 64;

/**
 * Marks the bits of the operands that the needed bits of a result depend on. False if this form of
 * the instruction uses all of them.
 */
type Pass = (inst: Inst, passing: Passing) => boolean;

const widthOf = (inst: Inst): number => typesOf(inst).at(-1)?.bits ?? 32;

/** Needs of these operands what is needed of the result, and all of the others. */
const passes =
  (...operands: number[]): Pass =>
  (inst, { take, wanted }) => {
    // The second type of slct is that of its control operand.
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
    // Two halves for each.
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
 * `i < n && next < last` without a branch: compilers compare what was loaded past the end, and the
 * other predicate, which does not come from memory, decides. Merges that read one past their ends
 * do this. A comparison after such a guard has no effect by itself.
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
 * A comparison uses its operands if its result has an effect. One that is combined with another
 * predicate always does.
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
    // The bits above those that are shifted in are the sign.
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
  // A field that extends past the value has its sign elsewhere.
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
  // A narrow result is extended to its register by its type.
  let bits = wanted(inst.args[0]);
  if (to!.kind === 'signed' && (bits & ALL & ~maskOf(to!.bits)) !== 0n)
    bits |= 1n << BigInt(to!.bits - 1);
  bits &= STORED | maskOf(to!.bits);
  if (from!.kind === 'signed' && (bits & ALL & ~maskOf(from!.bits)) !== 0n)
    bits |= 1n << BigInt(from!.bits - 1);
  take(inst.args[1], bits, from!.bits);
  return true;
};

/** The bits of a parameter's register that `ld` and `st` read or write. */
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

/** Instructions that do not use their operands, or use only a part of them. All others use them. */
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
  // Structures are exchanged between lanes word by word.
  shfl: ({ args: [target, value, ...rest] }, { take, wanted }) => {
    take(value, wanted(target?.kind === 'pair' ? target.first : target));
    for (const arg of rest) take(arg, ALL);
    return true;
  },
  ld: load,
  st: store,
};
