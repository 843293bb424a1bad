/**
 * The pure operations of the SSA form and their properties, for optimisation. Operations that are
 * not listed have effects: they stay in their place and order.
 */

export interface OperationFacts {
  /** Whether its operands commute. */
  readonly commutes?: boolean;
  /** The approximate number of instructions; speculation computes only a few. */
  readonly cost: number;
}

const one: OperationFacts = { cost: 1 };
const commutes: OperationFacts = { cost: 1, commutes: true };

/** Operations whose value depends only on their operands. */
export const pureOperations: Readonly<Record<string, OperationFacts>> = {
  constant: { cost: 0 },
  undefined: { cost: 0 },
  parameter: { cost: 0 },
  special: one,
  symbol: one,
  // A generic address as a global one.
  global: one,
  add: commutes,
  sub: one,
  mul: commutes,
  // The operands have 32 bits, the product 64.
  wide: commutes,
  mulhi: { cost: 2, commutes: true },
  div: { cost: 10 },
  rem: { cost: 10 },
  fma: one,
  and: commutes,
  or: commutes,
  xor: commutes,
  not: one,
  shl: one,
  shr: one,
  min: commutes,
  max: commutes,
  neg: one,
  abs: one,
  floor: one,
  ceil: one,
  trunc: one,
  rint: one,
  sqrt: { cost: 10 },
  popc: one,
  clz: one,
  brev: one,
  copysign: one,
  compare: one,
  select: one,
  // Integers to a wider or narrower register, or to their lowest 8 or 16 bits.
  extend: one,
  truncate: one,
  narrow: one,
  convert: one,
  bits: one,
  approximate: { cost: 2 },
  // Two halves of 64 bits.
  low: one,
  high: one,
  pair: one,
  // Two halves of 32 bits.
  lowHalf: one,
  highHalf: one,
  halves: one,
  // Four of the eight bytes of two operands; `detail` selects them.
  permute: one,
  // One of the elements of a vector load, or of the registers of an operation's results.
  part: { cost: 0 },
};

export function isPure(op: string): boolean {
  return op in pureOperations;
}
