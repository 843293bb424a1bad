/**
 * Shapes as types: `[2, 3]` where extents are literal, `number` in place of an extent that is not,
 * `number[]` where the rank is not known either.
 *
 * Each operation has one type that gives the resulting shape, or a {@link ShapeError} with a text
 * that describes the mistake. A function takes `argument & Checked<…>`, so that the compiler's
 * message has the text, and gives `Known<…>`. What is not known at compile time is checked at run
 * time, by the function of the same name.
 */
import type { Divide, Add, IsNatural, Least, Multiply, Subtract } from './decimal-types.js';

/** Extents of the axes, outermost first. A scalar's shape is `[]`. */
export type Shape = readonly number[];

/**
 * The type of a shape mismatch, to which no argument is assignable; the message is part of its
 * name.
 */
export interface ShapeError<Message extends string> {
  readonly 'shapes do not fit': Message;
}

/**
 * The shape as it is in the types of tensors and layouts: without `readonly`, so that `Layout<[2,
 * 3]>` is always the same type.
 */
export type Dims<S extends Shape> = { -readonly [K in keyof S]: S[K] };

/**
 * `unknown` for a shape, and the error for an error: the type of an argument is intersected with
 * it. It is an indexed access since the compiler would infer type parameters from the branches of a
 * conditional type.
 */
export type Checked<Result> = { fits: unknown; not: Result }[Result extends Shape ? 'fits' : 'not'];

/** The shape, or `number[]` in place of an error. */
export type Known<Result> = Result extends Shape ? Result : number[];

/** Whether the rank is not known. */
type AnyRank<S extends Shape> = number extends S['length'] ? true : false;

type Joined<S extends readonly unknown[]> = S extends readonly [infer First, ...infer Rest]
  ? Rest extends []
    ? ShownExtent<First>
    : `${ShownExtent<First>}, ${Joined<Rest>}`
  : '';

type ShownExtent<E> = E extends number ? (number extends E ? '?' : `${E}`) : '?';

/** A shape as messages show it: `[2, ?]`. */
export type Shown<S extends Shape> = number extends S['length'] ? '[…]' : `[${Joined<S>}]`;

/** Elements of a shape: the product of its extents. */
export type Numel<S extends Shape> = AnyRank<S> extends true ? number : ProductOf<S>;

type ProductOf<S extends Shape, Out extends number = 1> = S extends readonly [
  infer First extends number,
  ...infer Rest extends Shape,
]
  ? ProductOf<Rest, Multiply<Out, First>>
  : Out;

// Axes

type Reversed<S extends readonly unknown[]> = S extends readonly [infer First, ...infer Rest]
  ? [...Reversed<Rest>, First]
  : [];

/** Positions of the axes, `['0', '1']`. */
type Positions<S extends Shape> = { -readonly [K in keyof S]: K };

/**
 * The position of an axis, such as `'1'`; negative numbers count from the end. It is `never` for an
 * axis that the shape does not have.
 */
type Position<S extends Shape, Axis extends number> = `${Axis}` extends `-${infer Back}`
  ? FromEnd<['', ...Reversed<Positions<S>>], Back>
  : `${Axis}` extends keyof S
    ? `${Axis}`
    : never;

type FromEnd<From extends readonly unknown[], Back extends string> =
  Back extends Exclude<keyof From, '0'> ? From[Back] : never;

type At<S extends Shape, P> = P extends keyof S ? Extract<S[P], number> : number;

type NoAxis<S extends Shape, Axis extends number> = ShapeError<`${Shown<S>} has no axis ${Axis}`>;

// Permutations

/** The shape that `permute` gives. */
export type Permuted<S extends Shape, Axes extends Shape> =
  AnyRank<S> extends true
    ? { -readonly [K in keyof Axes]: number }
    : AnyRank<Axes> extends true
      ? { -readonly [K in keyof S]: number }
      : S['length'] extends Axes['length']
        ? Picked<S, Axes>
        : ShapeError<`${Shown<S>} has ${S['length']} axes, and ${Axes['length']} were named`>;

type Picked<
  S extends Shape,
  Axes extends Shape,
  Seen = never,
  Out extends number[] = [],
> = Axes extends readonly [infer Axis extends number, ...infer Rest extends Shape]
  ? number extends Axis
    ? Picked<S, Rest, Seen, [...Out, number]>
    : [Position<S, Axis>] extends [never]
      ? NoAxis<S, Axis>
      : Position<S, Axis> extends Seen
        ? ShapeError<`axis ${Axis} is named twice`>
        : Picked<S, Rest, Seen | Position<S, Axis>, [...Out, At<S, Position<S, Axis>>]>
  : Out;

/** The shape with two axes exchanged. */
export type Transposed<S extends Shape, A extends number, B extends number> =
  AnyRank<S> extends true
    ? number[]
    : number extends A | B
      ? { -readonly [K in keyof S]: number }
      : [Position<S, A>] extends [never]
        ? NoAxis<S, A>
        : [Position<S, B>] extends [never]
          ? NoAxis<S, B>
          : {
              -readonly [K in keyof S]: K extends Position<S, A>
                ? At<S, Position<S, B>>
                : K extends Position<S, B>
                  ? At<S, Position<S, A>>
                  : S[K];
            };

// Axes of extent 1

type Filtered<S extends Shape, Out extends number[] = []> = S extends readonly [
  infer First extends number,
  ...infer Rest extends Shape,
]
  ? number extends First
    ? number[]
    : Filtered<Rest, First extends 1 ? Out : [...Out, First]>
  : Out;

type Without<
  S extends Shape,
  P,
  Names extends readonly unknown[] = Positions<S>,
  Out extends number[] = [],
> = S extends readonly [infer First extends number, ...infer Rest extends Shape]
  ? Names extends readonly [infer Name, ...infer Others]
    ? Without<Rest, P, Others, Name extends P ? Out : [...Out, First]>
    : never
  : Out;

/** The shape without its axes of extent 1, or without the one that is named. */
export type Squeezed<S extends Shape, Axis extends number | undefined> =
  AnyRank<S> extends true
    ? number[]
    : Axis extends number
      ? number extends Axis
        ? number[]
        : [Position<S, Axis>] extends [never]
          ? NoAxis<S, Axis>
          : At<S, Position<S, Axis>> extends infer E extends number
            ? number extends E
              ? Without<S, Position<S, Axis>>
              : E extends 1
                ? Without<S, Position<S, Axis>>
                : ShapeError<`axis ${Axis} of ${Shown<S>} has extent ${E}, not 1`>
            : never
      : Filtered<S>;

type InsertedAt<
  S extends Shape,
  P extends string,
  Seen extends number[] = [],
> = `${Seen['length']}` extends P
  ? [...Seen, 1, ...S]
  : S extends readonly [infer First extends number, ...infer Rest extends Shape]
    ? InsertedAt<Rest, P, [...Seen, First]>
    : never;

/** The shape with one more axis of extent 1, which is axis `Axis` of the result. */
export type Unsqueezed<S extends Shape, Axis extends number> =
  AnyRank<S> extends true
    ? number[]
    : number extends Axis
      ? number[]
      : [Position<[...S, 1], Axis>] extends [never]
        ? NoAxis<[...S, 1], Axis>
        : Position<[...S, 1], Axis> extends infer P extends string
          ? InsertedAt<S, P>
          : never;

// Reshape

/** Whether the extents are known to be equal, and not 0, which would make every product 0. */
type SameExtent<A extends number, B extends number> = A extends 0
  ? false
  : [IsNatural<A>, IsNatural<B>] extends [true, true]
    ? [A, B] extends [B, A]
      ? true
      : false
    : false;

/** Both shapes without their common first and last extents, so that there is less to multiply. */
type Cancelled<S extends Shape, T extends Shape> = [S, T] extends [
  readonly [infer A extends number, ...infer SRest extends Shape],
  readonly [infer B extends number, ...infer TRest extends Shape],
]
  ? SameExtent<A, B> extends true
    ? Cancelled<SRest, TRest>
    : CancelledEnds<S, T>
  : [S, T];

type CancelledEnds<S extends Shape, T extends Shape> = [S, T] extends [
  readonly [...infer SRest extends Shape, infer A extends number],
  readonly [...infer TRest extends Shape, infer B extends number],
]
  ? SameExtent<A, B> extends true
    ? CancelledEnds<SRest, TRest>
    : [S, T]
  : [S, T];

/** The extents before and after the first -1, together; `undefined` where there is none. */
type AroundOpen<T extends Shape, Seen extends number[] = []> = T extends readonly [
  infer First extends number,
  ...infer Rest extends Shape,
]
  ? number extends First
    ? AroundOpen<Rest, [...Seen, First]>
    : First extends -1
      ? [...Seen, ...Rest]
      : AroundOpen<Rest, [...Seen, First]>
  : undefined;

type Filled<T extends Shape, Extent extends number> = {
  -readonly [K in keyof T]: number extends T[K] ? number : T[K] extends -1 ? Extent : T[K];
};

type CannotReshape<
  S extends Shape,
  T extends Shape,
  Why extends string,
> = ShapeError<`${Shown<S>} cannot be reshaped to ${Shown<T>}: ${Why}`>;

/** The shape `T` with its -1 replaced, for as many elements as `S` has. */
export type Reshaped<S extends Shape, T extends Shape> =
  AnyRank<T> extends true
    ? number[]
    : AnyRank<S> extends true
      ? Filled<T, number>
      : Cancelled<S, T> extends [infer SLeft extends Shape, infer TLeft extends Shape]
        ? AroundOpen<TLeft> extends infer Others extends Shape
          ? AroundOpen<Others> extends Shape
            ? CannotReshape<S, T, 'only one extent can be -1'>
            : Opened<S, T, Divide<ProductOf<SLeft>, ProductOf<Others>>>
          : AreSame<ProductOf<SLeft>, ProductOf<TLeft>> extends false
            ? CannotReshape<S, T, `${Elements<S>} are not ${Elements<T>}`>
            : Dims<T>
        : never;

type Elements<S extends Shape> = `${Numel<S>} elements`;

type Opened<S extends Shape, T extends Shape, Result> = Result extends [
  infer Extent extends number,
  infer Rest extends number,
]
  ? [Extent] extends [never]
    ? CannotReshape<S, T, 'beside an extent of 0, -1 could be anything'>
    : number extends Rest
      ? Filled<T, number>
      : Rest extends 0
        ? Filled<T, Extent>
        : CannotReshape<S, T, `${Elements<S>} are no multiple of the other extents`>
  : never;

/** `false` where both are known and differ. */
type AreSame<A extends number, B extends number> = [IsNatural<A>, IsNatural<B>] extends [true, true]
  ? [A, B] extends [B, A]
    ? true
    : false
  : true;

// Broadcast

/**
 * The extent that two extents broadcast to; `never` where they do not. An unknown one and one
 * larger than 1 give the latter.
 */
type BroadcastExtent<A extends number, B extends number> = number extends A
  ? number extends B
    ? number
    : B extends 1
      ? number
      : B
  : number extends B
    ? A extends 1
      ? number
      : A
    : A extends 1
      ? B
      : B extends 1
        ? A
        : [A, B] extends [B, A]
          ? A
          : never;

type BroadcastEnds<
  S extends Shape,
  T extends Shape,
  WholeS extends Shape,
  WholeT extends Shape,
  Out extends number[] = [],
> = S extends readonly [...infer SRest extends Shape, infer A extends number]
  ? T extends readonly [...infer TRest extends Shape, infer B extends number]
    ? [BroadcastExtent<A, B>] extends [never]
      ? ShapeError<`${Shown<WholeS>} and ${Shown<WholeT>} do not broadcast: ${A} against ${B}`>
      : BroadcastEnds<SRest, TRest, WholeS, WholeT, [BroadcastExtent<A, B>, ...Out]>
    : [...S, ...Out]
  : [...T, ...Out];

/** The shape that two shapes broadcast to, by NumPy's rules. */
export type Broadcast<S extends Shape, T extends Shape> =
  AnyRank<S> extends true
    ? number[]
    : AnyRank<T> extends true
      ? number[]
      : BroadcastEnds<S, T, S, T>;

type Stretched<
  S extends Shape,
  T extends Shape,
  WholeS extends Shape,
  WholeT extends Shape,
> = S extends readonly [...infer SRest extends Shape, infer A extends number]
  ? T extends readonly [...infer TRest extends Shape, infer B extends number]
    ? A extends 1
      ? Stretched<SRest, TRest, WholeS, WholeT>
      : AreSame<A, B> extends true
        ? Stretched<SRest, TRest, WholeS, WholeT>
        : ShapeError<`${Shown<WholeS>} does not broadcast to ${Shown<WholeT>}: ${A} against ${B}`>
    : ShapeError<`${Shown<WholeS>} has more axes than ${Shown<WholeT>}`>
  : Dims<WholeT>;

/** `T`, if a tensor of shape `S` broadcasts to it. */
export type BroadcastTo<S extends Shape, T extends Shape> =
  AnyRank<S> extends true ? Dims<T> : AnyRank<T> extends true ? number[] : Stretched<S, T, S, T>;

// Slices

/**
 * An index of one axis, as between Python's brackets: a number takes that element and drops the
 * axis, `[start, stop]` and `[start, stop, step]` take a range, `null` takes the whole axis, and
 * one `'...'` takes all axes without an index. Negative numbers count from the end; a start or stop
 * that is `null` or left out is the axis' end.
 */
export type Index = number | Range | null | '...';

/** `start:stop:step` of Python. */
export type Range = readonly [start?: number | null, stop?: number | null, step?: number];

/**
 * The position of a start or stop on an axis: negative numbers count from the end, and the axis'
 * ends limit it.
 */
type Bound<Extent extends number, B> = B extends number
  ? number extends B
    ? number
    : `${B}` extends `-${infer Back extends number}`
      ? Subtract<Extent, Back>
      : Least<B, Extent>
  : never;

type RangeStart<R extends Range> = R extends readonly [infer Start, ...unknown[]] ? Start : null;
type RangeStop<R extends Range> = R extends readonly [unknown, infer Stop, ...unknown[]]
  ? Stop
  : null;
type RangeStep<R extends Range> = R extends readonly [unknown, unknown, infer Step] ? Step : 1;

type RangeExtent<Extent extends number, R extends Range> = number extends R['length']
  ? number
  : RangeStep<R> extends 1
    ? Subtract<
        RangeStop<R> extends null ? Extent : Bound<Extent, RangeStop<R>>,
        RangeStart<R> extends null ? 0 : Bound<Extent, RangeStart<R>>
      >
    : [RangeStart<R>, RangeStop<R>, RangeStep<R>] extends [null, null, -1]
      ? Extent
      : number;

/** Whether an index is known to be outside an axis. */
type Outside<Extent extends number, I extends number> = number extends I
  ? false
  : IsNatural<Extent> extends false
    ? false
    : `${I}` extends `-${infer Back extends number}`
      ? [Least<Back, Extent>, Back] extends [Back, Least<Back, Extent>]
        ? false
        : true
      : Extent extends 0
        ? true
        : [Subtract<Extent, I>] extends [0]
          ? true
          : false;

type Taken<
  S extends Shape,
  I extends readonly Index[],
  WholeS extends Shape,
  Out extends number[] = [],
> = I extends readonly [infer Head extends Index, ...infer Rest extends readonly Index[]]
  ? Head extends '...'
    ? Rest['length'] extends S['length']
      ? Taken<S, Rest, WholeS, Out>
      : S extends readonly [infer Extent extends number, ...infer SRest extends Shape]
        ? Taken<SRest, I, WholeS, [...Out, Extent]>
        : ShapeError<`more indices than ${Shown<WholeS>} has axes`>
    : S extends readonly [infer Extent extends number, ...infer SRest extends Shape]
      ? Head extends null
        ? Taken<SRest, Rest, WholeS, [...Out, Extent]>
        : Head extends Range
          ? Taken<SRest, Rest, WholeS, [...Out, RangeExtent<Extent, Head>]>
          : Head extends number
            ? Outside<Extent, Head> extends true
              ? ShapeError<`${Head} is outside an axis of ${Extent} elements, of ${Shown<WholeS>}`>
              : Taken<SRest, Rest, WholeS, Out>
            : never
      : ShapeError<`more indices than ${Shown<WholeS>} has axes`>
  : [...Out, ...S];

/** The shape of a slice. Extents of ranges with a step other than 1 are `number`. */
export type Sliced<S extends Shape, I extends readonly Index[]> =
  AnyRank<S> extends true ? number[] : number extends I['length'] ? number[] : Taken<S, I, S>;

// Reinterpretation

type WithLast<S extends Shape, Last extends number> = S extends readonly [
  ...infer Rest extends Shape,
  number,
]
  ? [...Rest, Last]
  : never;
type Last<S extends Shape> = S extends readonly [...Shape, infer E extends number] ? E : never;
type LastAxis<S extends Shape> = `the last axis of ${Shown<S>}`;

/**
 * The shape of elements of `From` bytes that are read as elements of `To` bytes: the extent of the
 * last axis changes.
 */
export type Reinterpreted<S extends Shape, From extends number, To extends number> = number extends
  From | To
  ? { -readonly [K in keyof S]: number }
  : [From, To] extends [To, From]
    ? Dims<S>
    : AnyRank<S> extends true
      ? number[]
      : S extends readonly []
        ? ShapeError<`a scalar of ${From} bytes cannot be read as elements of ${To}`>
        : Divide<From, To> extends [infer More extends number, infer Rest extends number]
          ? Rest extends 0
            ? WithLast<S, Multiply<Last<S>, More>>
            : Divide<Last<S>, Divide<To, From>[0]> extends [
                  infer Fewer extends number,
                  infer Over extends number,
                ]
              ? number extends Over
                ? WithLast<S, number>
                : Over extends 0
                  ? WithLast<S, Fewer>
                  : ShapeError<`${LastAxis<S>} has no whole number of elements of ${To} bytes`>
              : never
          : never;

// Partitions

type CeilDivide<A extends number, B extends number> =
  Divide<A, B> extends [infer Q extends number, infer R extends number]
    ? number extends R
      ? number
      : R extends 0
        ? Q
        : Add<Q, 1>
    : number;

type GridOf<S extends Shape, T extends Shape, Out extends number[] = []> = S extends readonly [
  infer A extends number,
  ...infer SRest extends Shape,
]
  ? T extends readonly [infer B extends number, ...infer TRest extends Shape]
    ? GridOf<SRest, TRest, [...Out, CeilDivide<A, B>]>
    : never
  : Out;

/** The number of tiles of shape `T` along each axis of `S`. */
export type Tiled<S extends Shape, T extends Shape> =
  AnyRank<S> extends true
    ? { -readonly [K in keyof T]: number }
    : AnyRank<T> extends true
      ? { -readonly [K in keyof S]: number }
      : S['length'] extends T['length']
        ? GridOf<S, T>
        : ShapeError<`${TilesOf<T>} do not cover ${Shown<S>}, which has ${S['length']}`>;

type TilesOf<T extends Shape> = `tiles of ${T['length']} axes, ${Shown<T>},`;
