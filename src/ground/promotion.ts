/**
 * Promotion: the dtype of the result of an operation on two dtypes, as the Python array API
 * standard has it. Dtypes of one kind have a common dtype, the least one that has all values of
 * both; dtypes of two kinds have none. Floats of 16 and 8 bits, which the standard does not have,
 * follow the same rule.
 */
import { DTYPE_FACTS } from './dtype.js';
import type { DTypeName, FactsOf } from './dtype.js';

/** Pairs of dtypes of which none has all values of the other, with the dtype that has. */
const JOINS = {
  u8: { i8: 'i16' },
  u16: { i8: 'i32', i16: 'i32' },
  u32: { i8: 'i64', i16: 'i64', i32: 'i64' },
  f16: { bf16: 'f32' },
  f8e4m3: { f8e5m2: 'f16' },
  f64: { complex64: 'complex128' },
} as const satisfies Partial<Record<DTypeName, Partial<Record<DTypeName, DTypeName>>>>;

/** The dtypes that a dtype has all values of, itself among them. */
type Held = { [D in DTypeName]: D | FactsOf<D>['holds'][number] };
type Joins = typeof JOINS;
type Joined<A, B> = A extends keyof Joins
  ? B extends keyof Joins[A]
    ? Joins[A][B]
    : never
  : never;

/** The common dtype of two; `never` where they are of two kinds. */
export type Promoted<A extends DTypeName, B extends DTypeName> = B extends Held[A]
  ? A
  : A extends Held[B]
    ? B
    : Joined<A, B> | Joined<B, A>;

/** For each dtype those that have a common dtype with it. */
type Partners = {
  [A in DTypeName]: {
    [B in DTypeName]: [Promoted<A, B>] extends [never] ? never : B;
  }[DTypeName];
};
/** The dtypes that have a common dtype with this one. */
export type PartnerOf<A extends DTypeName> = Partners[A];

/** The common dtype of two; undefined where none has all values of both, and for two kinds. */
export function promoted(a: DTypeName, b: DTypeName): DTypeName | undefined {
  if (a === b || holds(a, b)) return a;
  if (holds(b, a)) return b;
  return joined(a, b) ?? joined(b, a);
}

/** Whether a dtype has all values of another of its kind. */
function holds(wide: DTypeName, narrow: DTypeName): boolean {
  return (DTYPE_FACTS[wide].holds as readonly DTypeName[]).includes(narrow);
}

function joined(a: DTypeName, b: DTypeName): DTypeName | undefined {
  return (JOINS as Partial<Record<DTypeName, Partial<Record<DTypeName, DTypeName>>>>)[a]?.[b];
}

/** Whether every value of a dtype is a value of the other, which promotion would take. */
export function canPromote(from: DTypeName, to: DTypeName): boolean {
  return promoted(from, to) === to;
}
