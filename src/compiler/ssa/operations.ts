/**
 * The operations of the SSA form: what each is free of, which is what optimising needs to know.
 * Those that are not listed have effects: they stay where they are, in their order.
 */

export interface OperationFacts {
  /** Its operands may change places. */
  readonly commutes?: boolean;
  /** Roughly the instructions that it takes; what may be done in vain stays below a few. */
  readonly cost: number;
}

const one: OperationFacts = { cost: 1 };
const commutes: OperationFacts = { cost: 1, commutes: true };

/** Operations whose value depends on nothing but their operands. */
export const pureOperations: Readonly<Record<string, OperationFacts>> = {
  constant: { cost: 0 },
  undefined: { cost: 0 },
  parameter: { cost: 0 },
  special: one,
  symbol: one,
  // A generic address as one of global memory.
  global: one,
  add: commutes,
  sub: one,
  mul: commutes,
  // 32-bit operands, 64-bit product.
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
  // Integers to a wider or narrower register, or to the bits of 8 and 16 in it.
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
  // Four of the eight bytes of two operands, which `detail` chooses.
  permute: one,
  // One of the elements that are read at once, or of the registers that an operation gives.
  part: { cost: 0 },
};

export function isPure(op: string): boolean {
  return op in pureOperations;
}
