/**
 * Reads a parameter list of CUDA C++ in the type checker: `'f32'` for a scalar, `'input f32'` and
 * `'inout f32'` for pointers, `'input any'` and `'inout any'` for pointers to other than element
 * types, an object with `fields` for a structure, `'unknown'` for a type that is not understood;
 * `undefined` where the list is not understood.
 */
import type { OneLine, Trim } from './blank-types.js';
import type { Entry, Notes } from './outline-notes.js';
import type { KeywordTypes, LibraryTypes, VectorTypes } from './type-names.js';

/** A structure's fields: scalars, structures, and arrays of them as `[element, length]`. */
export interface StructureType<Fields = unknown> {
  readonly fields: Fields;
}

/**
 * The description of each parameter of a list, with the notes on the text; undefined where the list
 * is not understood.
 */
export type ParametersOf<
  List extends string,
  C extends Notes,
> = List extends `${string}${'(' | '<' | '{' | '=' | '...' | '/'}${string}`
  ? undefined
  : List extends ''
    ? []
    : Whole<Each<List, C, [], ''>>;

type Whole<P> = P extends readonly ['void']
  ? []
  : P extends readonly unknown[]
    ? Broken extends P[number]
      ? undefined
      : P
    : undefined;

/** A limit of more parameters than kernels have. */
type MostParameters = `${HalfOfMost}${HalfOfMost}`;
type HalfOfMost = '................................................................';

type Each<
  List extends string,
  C extends Notes,
  Out extends readonly unknown[],
  Steps extends string,
> = List extends `${infer P},${infer R}`
  ? Steps extends MostParameters
    ? undefined
    : Each<R, C, [...Out, ParameterOf<OneLine<P>, C>], `${Steps}.`>
  : [...Out, ParameterOf<OneLine<List>, C>];

/** Whether the text defines a macro of a name. */
export type Macro<T extends string> = `${string}${Entry}#${T} ${string}`;

/** A parameter that may be several, or none. */
interface Broken {
  readonly broken: true;
}

type Qualifier = 'const' | 'volatile' | '__restrict__' | '__restrict';

type ParameterOf<P extends string, C extends Notes> = P extends `${infer Base}*${infer Tail}`
  ? Tail extends `${string}${'*' | '&' | '[' | ':'}${string}`
    ? 'unknown'
    : NameIn<Tail, C> extends Broken
      ? Broken
      : PointerTo<Pointee<Base, C>>
  : P extends `${string}${'&' | '['}${string}`
    ? 'unknown'
    : P extends `${infer W} ${infer R}`
      ? ScalarOf<W, R, C>
      : ValueOf<P, C>;

/** The rest of a declarator: qualifiers and a name, or none. */
type NameIn<T extends string, C extends Notes> = T extends ` ${infer R}`
  ? NameIn<R, C>
  : T extends `${Qualifier} ${infer R}`
    ? NameIn<R, C>
    : T extends `${string} ${string}`
      ? Broken
      : C extends Macro<T>
        ? Broken
        : T;

/** Words that end a type without a name after it. */
type TypeWord =
  | 'const'
  | 'volatile'
  | 'int'
  | 'char'
  | 'short'
  | 'long'
  | 'float'
  | 'double'
  | 'bool'
  | 'unsigned'
  | 'signed';

/** A parameter by value, split into its type and its name. */
type ScalarOf<
  T extends string,
  R extends string,
  C extends Notes,
> = R extends `${infer W} ${infer More}`
  ? ScalarOf<`${T} ${W}`, More, C>
  : R extends TypeWord
    ? ValueOf<`${T} ${R}`, C>
    : C extends Macro<R>
      ? Broken
      : ValueOf<T, C>;

/** The description of a pointer to a pointee. */
type PointerTo<B> = B extends Broken
  ? Broken
  : B extends ['const', infer T]
    ? T extends string
      ? ToElement<T, 'input'>
      : 'input any'
    : B extends string
      ? ToElement<B, 'inout'>
      : 'inout any';

type ToElement<T extends string, Access extends string> = T extends 'unknown' | 'void'
  ? `${Access} any`
  : // This is a pointer to pointers.
    T extends `${string} ${string}`
    ? 'unknown'
    : `${Access} ${T}`;

/** The type of a pointee; `['const', …]` where it is read only. Vectors count as their elements. */
type Pointee<Base extends string, C extends Notes> = Base extends `${infer B} `
  ? Pointee<B, C>
  : Base extends `const ${infer B}`
    ? ReadOnly<Pointee<B, C>>
    : Base extends `${infer B} const`
      ? ReadOnly<Pointee<B, C>>
      : Base extends `volatile ${infer B}`
        ? Pointee<B, C>
        : Base extends `${infer B} volatile`
          ? Pointee<B, C>
          : Base extends 'void'
            ? 'void'
            : TypeNamed<Base, C> extends infer T
              ? T extends { vector: [infer D, unknown] }
                ? D
                : T
              : never;

type ReadOnly<T> = T extends Broken | ['const', unknown] ? T : ['const', T];

/** The description of a type by value. */
type ValueOf<T extends string, C extends Notes> = T extends keyof KeywordTypes
  ? T extends 'char'
    ? 'i8'
    : KeywordTypes[T]
  : T extends '' | 'void'
    ? 'void'
    : T extends `const ${infer R}`
      ? ValueOf<R, C>
      : T extends `${infer R} const`
        ? ValueOf<R, C>
        : T extends `__grid_constant__ ${infer R}`
          ? ValueOf<R, C>
          : T extends `${infer R} __grid_constant__`
            ? ValueOf<R, C>
            : T extends 'volatile' | `volatile ${string}` | `${string} volatile`
              ? 'unknown'
              : TypeNamed<T, C> extends infer V
                ? V extends { vector: [infer D, infer N] }
                  ? StructureType<VectorFields<D, N>>
                  : V extends 'char'
                    ? 'i8'
                    : V
                : never;

type VectorFields<D, N> = N extends 2
  ? { x: D; y: D }
  : N extends 3
    ? { x: D; y: D; z: D }
    : { x: D; y: D; z: D; w: D };

/**
 * A type by its name alone: a dtype, a pointer by an alias, `{ vector }`, a structure, or unknown.
 */
type TypeNamed<
  T extends string,
  C extends Notes,
  Steps extends string = '',
> = T extends keyof KeywordTypes
  ? KeywordTypes[T]
  : Steps extends '........'
    ? 'unknown'
    : T extends `struct ${infer R}`
      ? R extends `${string} ${string}`
        ? Broken
        : Declared<R, C, Steps>
      : T extends `${'std' | '::std' | 'cuda::std'}::${infer R}`
        ? R extends keyof LibraryTypes
          ? LibraryTypes[R]
          : 'unknown'
        : T extends `enum ${infer R}`
          ? R extends `${string} ${string}`
            ? Broken
            : 'unknown'
          : T extends `${string} ${string}`
            ? T extends
                'long int' | 'long double' | 'unsigned long' | 'unsigned long int' | 'signed long'
              ? 'unknown'
              : Broken
            : C extends Macro<T>
              ? Broken
              : Declared<T, C, Steps>;

/** The declaration of a name by the text, then by headers. */
type Declared<T extends string, C extends Notes, Steps extends string> = C extends
  `${string}${Entry}!doubt${string}` | `${string}${Entry}${T}?${string}`
  ? 'unknown'
  : C extends `${string}${Entry}${T}${'=' | '{'}${string}${Entry}${T}${'=' | '{'}${string}`
    ? 'unknown'
    : C extends `${string}${Entry}${T}=${infer A};${string}`
      ? Aliased<A, C, `${Steps}.`>
      : C extends `${string}${Entry}${T}{${infer Body}}${string}`
        ? Structure<Body, C, `${Steps}.`>
        : T extends keyof LibraryTypes
          ? LibraryTypes[T]
          : T extends keyof VectorTypes
            ? { vector: VectorTypes[T] }
            : 'unknown';

/**
 * The type of an alias. A const that is part of it is supported for pointers only: `typedef const
 * float *In`.
 */
type Aliased<
  A extends string,
  C extends Notes,
  Steps extends string,
> = A extends `${infer Base}*${infer Tail}`
  ? Tail extends ''
    ? PointerTo<Pointee<Base, C>>
    : 'unknown'
  : A extends `const ${string}` | `${string} const` | `volatile ${string}`
    ? 'unknown'
    : TypeNamed<A, C, Steps>;

// Structures
// ------------------------------------------------------------------------------------------------

type Structure<
  Body extends string,
  C extends Notes,
  Steps extends string,
> = Body extends `${string}${'(' | ':' | '*' | '&' | '=' | '<' | '"' | '#' | '~' | '@'}${string}`
  ? 'unknown'
  : Fields<Body, C, never, Steps, ''> extends infer F
    ? [F] extends [never]
      ? 'unknown'
      : 'unknown' extends F
        ? 'unknown'
        : StructureType<{
            [
              K in F as K extends readonly [infer N extends string, unknown] ? N : never
            ]: K extends readonly [string, infer T] ? T : never;
          }>
    : never;

/**
 * The fields of a body as a union of `[name, type]`; with `'unknown'` among them where one is not
 * understood.
 */
type Fields<
  Body extends string,
  C extends Notes,
  Out,
  Depth extends string,
  Steps extends string,
> = Steps extends MostParameters
  ? 'unknown'
  : Body extends `${infer F};${infer R}`
    ? Fields<R, C, Out | FieldOf<OneLine<F>, C, Depth>, Depth, `${Steps}.`>
    : Out;

type FieldOf<F extends string, C extends Notes, Depth extends string> = F extends ''
  ? never
  : F extends `${infer W} ${infer R}`
    ? SplitField<W, R, C, Depth>
    : 'unknown';

type SplitField<
  T extends string,
  R extends string,
  C extends Notes,
  Depth extends string,
> = R extends `${infer A},${infer B}`
  ? A extends `${infer W} ${infer More}`
    ? W extends `${string}[${string}`
      ? Declarators<R, FieldType<T, C, Depth>, C>
      : SplitField<`${T} ${W}`, `${More},${B}`, C, Depth>
    : Declarators<R, FieldType<T, C, Depth>, C>
  : R extends `${infer W} ${infer More}`
    ? More extends `[${string}`
      ? Declarators<`${W}${More}`, FieldType<T, C, Depth>, C>
      : W extends `${string}[${string}`
        ? 'unknown'
        : SplitField<`${T} ${W}`, More, C, Depth>
    : Declarators<R, FieldType<T, C, Depth>, C>;

type FieldType<T extends string, C extends Notes, Depth extends string> =
  TypeNamed<T, C, Depth> extends infer V
    ? V extends { vector: [infer D, infer N] }
      ? StructureType<VectorFields<D, N>>
      : V extends 'char'
        ? 'i8'
        : V extends Broken | `${string} ${string}`
          ? 'unknown'
          : V
    : never;

/** The declarators of `x, y[4]`. */
type Declarators<R extends string, T, C extends Notes> = T extends 'unknown'
  ? 'unknown'
  : R extends `${infer A},${infer B}`
    ? Declarator<Trim<A>, T, C> | Declarators<B, T, C>
    : Declarator<Trim<R>, T, C>;

type Declarator<D extends string, T, C extends Notes> = D extends `${infer Name}[${infer Sizes}`
  ? Arrays<Sizes, T> extends infer A
    ? A extends 'unknown'
      ? 'unknown'
      : Named<Trim<Name>, A, C>
    : never
  : Named<D, T, C>;

type Named<N extends string, T, C extends Notes> = N extends '' | `${string}${' ' | ']'}${string}`
  ? 'unknown'
  : C extends Macro<N>
    ? 'unknown'
    : [N, T];

/** The type of `3][4]` of T: an array of three arrays of four. */
type Arrays<S extends string, T> = S extends `${infer N extends number}]${infer More}`
  ? number extends N
    ? 'unknown'
    : More extends ''
      ? [T, N]
      : More extends `[${infer R}`
        ? Arrays<R, T> extends infer Inner
          ? Inner extends 'unknown'
            ? 'unknown'
            : [Inner, N]
          : never
        : 'unknown'
  : 'unknown';
