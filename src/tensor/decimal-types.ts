/**
 * Arithmetic on literal number types, for shapes: `Multiply<1024, 768>` is `786432`. It goes digit
 * by digit in decimal: a product of two extents costs some hundred instantiations, where counting
 * with tuples is limited to 10,000.
 *
 * Operands are whole numbers of at least 0. Where an operand is no literal, the result is `number`.
 */

type Digit = '0' | '1' | '2' | '3' | '4' | '5' | '6' | '7' | '8' | '9';
/** The digits of a number, least significant first. */
type Digits = Digit[];

type Units = {
  '0': [];
  '1': [0];
  '2': [0, 0];
  '3': [0, 0, 0];
  '4': [0, 0, 0, 0];
  '5': [0, 0, 0, 0, 0];
  '6': [0, 0, 0, 0, 0, 0];
  '7': [0, 0, 0, 0, 0, 0, 0];
  '8': [0, 0, 0, 0, 0, 0, 0, 0];
  '9': [0, 0, 0, 0, 0, 0, 0, 0, 0];
};

/** The ones digit and the carried digit of the numbers from 0 to 19. */
type Ones = [
  '0',
  '1',
  '2',
  '3',
  '4',
  '5',
  '6',
  '7',
  '8',
  '9',
  '0',
  '1',
  '2',
  '3',
  '4',
  '5',
  '6',
  '7',
  '8',
  '9',
];
type Tens = [
  '0',
  '0',
  '0',
  '0',
  '0',
  '0',
  '0',
  '0',
  '0',
  '0',
  '1',
  '1',
  '1',
  '1',
  '1',
  '1',
  '1',
  '1',
  '1',
  '1',
];

/** The nine's complement: subtracting a digit is adding its complement and one. */
type Nines = {
  '0': '9';
  '1': '8';
  '2': '7';
  '3': '6';
  '4': '5';
  '5': '4';
  '6': '3';
  '7': '2';
  '8': '1';
  '9': '0';
};

type Products = {
  '0': ['00', '00', '00', '00', '00', '00', '00', '00', '00', '00'];
  '1': ['00', '01', '02', '03', '04', '05', '06', '07', '08', '09'];
  '2': ['00', '02', '04', '06', '08', '10', '12', '14', '16', '18'];
  '3': ['00', '03', '06', '09', '12', '15', '18', '21', '24', '27'];
  '4': ['00', '04', '08', '12', '16', '20', '24', '28', '32', '36'];
  '5': ['00', '05', '10', '15', '20', '25', '30', '35', '40', '45'];
  '6': ['00', '06', '12', '18', '24', '30', '36', '42', '48', '54'];
  '7': ['00', '07', '14', '21', '28', '35', '42', '49', '56', '63'];
  '8': ['00', '08', '16', '24', '32', '40', '48', '56', '64', '72'];
  '9': ['00', '09', '18', '27', '36', '45', '54', '63', '72', '81'];
};

type Ten = 0 | 1 | 2 | 3 | 4 | 5 | 6 | 7 | 8 | 9 | 10 | 11 | 12 | 13 | 14 | 15 | 16 | 17 | 18 | 19;
/** The sum of three digits, of which the last is a carry of 0 or 1. */
type Count<A extends Digit, B extends Digit, C extends Digit> = [
  ...Units[A],
  ...Units[B],
  ...Units[C],
]['length'] &
  Ten;

/** Whether the type is one whole number of at least 0, written out. */
export type IsNatural<N extends number> = number extends N
  ? false
  : `${N}` extends `-${string}` | `${string}.${string}` | `${string}e${string}` | 'NaN' | 'Infinity'
    ? false
    : true;

type Read<
  Text extends string,
  Out extends Digits = [],
> = Text extends `${infer First extends Digit}${infer Rest}` ? Read<Rest, [First, ...Out]> : Out;

type DigitsOf<N extends number> = Read<`${N}`>;

type Trimmed<A extends Digits> = A extends [...infer Rest extends Digits, '0']
  ? Rest extends []
    ? ['0']
    : Trimmed<Rest>
  : A;

type Written<A extends Digits, Out extends string = ''> = A extends [
  infer First extends Digit,
  ...infer Rest extends Digits,
]
  ? Written<Rest, `${First}${Out}`>
  : Out;

type NumberOf<A> = A extends Digits
  ? Written<Trimmed<A>> extends `${infer N extends number}`
    ? N
    : number
  : never;

/** A + B + the carry. */
type Sum<
  A extends Digits,
  B extends Digits,
  Carry extends Digit = '0',
  Out extends Digits = [],
> = A extends [infer a extends Digit, ...infer As extends Digits]
  ? B extends [infer b extends Digit, ...infer Bs extends Digits]
    ? Sum<As, Bs, Tens[Count<a, b, Carry>], [...Out, Ones[Count<a, b, Carry>]]>
    : Carry extends '0'
      ? [...Out, ...A]
      : Sum<As, [], Tens[Count<a, '0', Carry>], [...Out, Ones[Count<a, '0', Carry>]]>
  : B extends []
    ? Carry extends '0'
      ? Out
      : [...Out, Carry]
    : Sum<B, A, Carry, Out>;

/** A − B; `undefined` where B is larger. */
type Difference<
  A extends Digits,
  B extends Digits,
  Carry extends Digit = '1',
  Out extends Digits = [],
> = A extends [infer a extends Digit, ...infer As extends Digits]
  ? B extends [infer b extends Digit, ...infer Bs extends Digits]
    ? Difference<As, Bs, Tens[Count<a, Nines[b], Carry>], [...Out, Ones[Count<a, Nines[b], Carry>]]>
    : Difference<As, [], Tens[Count<a, '9', Carry>], [...Out, Ones[Count<a, '9', Carry>]]>
  : B extends []
    ? Carry extends '1'
      ? Trimmed<Out>
      : undefined
    : Trimmed<B> extends ['0']
      ? Difference<A, [], Carry, Out>
      : undefined;

type TimesDigit<
  A extends Digits,
  B extends Digit,
  Carry extends Digit = '0',
  Out extends Digits = [],
> = A extends [infer a extends Digit, ...infer As extends Digits]
  ? Products[B][a] extends `${infer tens extends Digit}${infer ones extends Digit}`
    ? TimesDigit<
        As,
        B,
        Ones[Count<tens, Tens[Count<ones, Carry, '0'>], '0'>],
        [...Out, Ones[Count<ones, Carry, '0'>]]
      >
    : never
  : Carry extends '0'
    ? Out
    : [...Out, Carry];

/** From the highest digit of B on: ten times the sum so far, plus A times the digit. */
type Product<A extends Digits, B extends Digits, Out extends Digits = []> = B extends [
  ...infer Rest extends Digits,
  infer b extends Digit,
]
  ? Sum<TimesDigit<A, b>, Out extends [] ? [] : ['0', ...Out]> extends infer Next extends Digits
    ? Product<A, Rest, Next>
    : never
  : Out;

type Counted = ['0', '1', '2', '3', '4', '5', '6', '7', '8', '9'];

/** The quotient of A and B, which is less than ten, and the remainder. */
type Subtracted<A extends Digits, B extends Digits, Times extends 0[] = []> =
  Difference<A, B> extends infer Rest extends Digits
    ? Subtracted<Rest, B, [...Times, 0]>
    : [Counted[Times['length'] & keyof Counted] & Digit, A];

/** Quotient and remainder, by long division. */
type Quotient<
  A extends Digits,
  B extends Digits,
  Rest extends Digits = [],
  Out extends Digits = [],
> = A extends [...infer Lower extends Digits, infer a extends Digit]
  ? Subtracted<Rest extends ['0'] ? [a] : [a, ...Rest], B> extends [
      infer q extends Digit,
      infer Left extends Digits,
    ]
    ? Quotient<Lower, B, Left, [q, ...Out]>
    : never
  : [Out, Rest];

/** A + B. */
export type Add<A extends number, B extends number> = A extends 0
  ? B
  : B extends 0
    ? A
    : [IsNatural<A>, IsNatural<B>] extends [true, true]
      ? NumberOf<Sum<DigitsOf<A>, DigitsOf<B>>>
      : number;

/** A − B, no less than 0. */
export type Subtract<A extends number, B extends number> = B extends 0
  ? A
  : [IsNatural<A>, IsNatural<B>] extends [true, true]
    ? Difference<DigitsOf<A>, DigitsOf<B>> extends infer D extends Digits
      ? NumberOf<D>
      : 0
    : number;

/** A · B. */
export type Multiply<A extends number, B extends number> = [IsNatural<A>, IsNatural<B>] extends [
  true,
  true,
]
  ? A extends 0 | 1
    ? A extends 0
      ? 0
      : B
    : B extends 0 | 1
      ? B extends 0
        ? 0
        : A
      : NumberOf<Product<DigitsOf<A>, DigitsOf<B>>>
  : number;

/**
 * `[quotient, remainder]` of A / B; both `number` where one is no literal, both `never` where B is
 * 0.
 */
export type Divide<A extends number, B extends number> = [IsNatural<A>, IsNatural<B>] extends [
  true,
  true,
]
  ? B extends 0
    ? [never, never]
    : B extends 1
      ? [A, 0]
      : Quotient<DigitsOf<A>, DigitsOf<B>> extends [infer Q extends Digits, infer R extends Digits]
        ? [NumberOf<Q>, NumberOf<R>]
        : never
  : [number, number];

/** The lesser of A and B. */
export type Least<A extends number, B extends number> = [IsNatural<A>, IsNatural<B>] extends [
  true,
  true,
]
  ? Difference<DigitsOf<A>, DigitsOf<B>> extends undefined
    ? A
    : B
  : number;
