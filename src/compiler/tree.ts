/**
 * The typed tree of a kernel: reading a source gives it, and the PTX back end and the simulation
 * start from it. Everything that JavaScript leaves open is decided here: every expression has one
 * type, conversions are written out, names are resolved, device functions are inlined,
 * multiply-adds that are fused are `fma`. The tree has one meaning, bit for bit, so that both users
 * of it give the same results; the exceptions are the operations of {@link ApproximateName}.
 *
 * Operands are evaluated from left to right. Statements inside expressions (`Block`) come from
 * assignments that are used as values, from comma expressions and from inlined functions.
 */
import type { InstructionName } from './instructions.js';
import type { StructField, StructLayout } from '../ground/struct-layout.js';
import type { ComputeType } from '../ground/dtype-row.js';
import type { KernelDTypeName } from '../ground/dtype.js';

/**
 * Types of values. Narrower dtypes exist in memory only: they are widened when read, and rounded or
 * wrapped when written.
 */
export type ValueType = ComputeType;

/** dtypes in memory. */
export type StorageType = KernelDTypeName;

/**
 * Characters of the text that was read, from `start` to before `end`. The text is `texts[text]` of
 * the tree: 0 is the kernel's body, the others are device functions.
 */
export interface Span {
  readonly text: number;
  readonly start: number;
  readonly end: number;
}

export type ElementType = { readonly storage: StorageType } | { readonly struct: StructLayout };

/** A parameter that the caller gives by name. */
export type TreeParam =
  | {
      readonly kind: 'tensor';
      readonly name: string;
      readonly element: ElementType;
      readonly access: 'input' | 'output' | 'inout';
      /**
       * The number of axes that the body indexes. With 1 the tensor is one run of elements whatever
       * its shape; with more the strides are passed.
       */
      readonly rank: number;
    }
  | { readonly kind: 'scalar'; readonly name: string; readonly storage: StorageType }
  | { readonly kind: 'struct'; readonly name: string; readonly struct: StructLayout };

/**
 * A parameter of the compiled kernel, in the order of its PTX parameters. Reading lists those that
 * the body uses.
 */
export type AbiParam =
  /** Address of a tensor's first element; u64. */
  | { readonly kind: 'pointer'; readonly param: number }
  /** Number of elements of a tensor; of the tree's index type. */
  | { readonly kind: 'length'; readonly param: number }
  /** Length of one axis; index type. */
  | { readonly kind: 'extent'; readonly param: number; readonly axis: number }
  /** Elements from one index of the axis to the next; index type. */
  | { readonly kind: 'stride'; readonly param: number; readonly axis: number }
  /**
   * Address of a tensor map, by which boxes of a tensor are copied: `box` elements along each axis,
   * the last axis swizzled over so many bytes (0: not at all); u64.
   */
  | {
      readonly kind: 'map';
      readonly param: number;
      readonly box: readonly number[];
      readonly swizzle: 0 | 32 | 64 | 128;
      /** Whether a box is pixels of images, as many as the axis before the last one has. */
      readonly pixels?: true;
    }
  /** A scalar in its storage type; one field of a structure where `field` is given. */
  | {
      readonly kind: 'scalar';
      readonly param: number;
      readonly field?: number;
      readonly storage: StorageType;
    };

/**
 * A variable of the body. Each is assigned before it is read on every path; reading checks that.
 */
export interface LocalVariable {
  readonly name: string;
  readonly type: ValueType;
  /** Whether it is assigned once, where it is declared. */
  readonly constant: boolean;
}

/** Memory that the kernel itself declares. */
export interface DeclaredArray {
  readonly name: string;
  /**
   * `shared`: one per block. `local`: one per thread, zeros at its declaration. `dynamic`: shared
   * memory whose length the launch gives.
   */
  readonly space: 'shared' | 'local' | 'dynamic';
  readonly storage: StorageType;
  /** Elements in all; 0 for `dynamic`. */
  readonly length: number;
}

/** A typed kernel. */
export interface KernelTree {
  readonly name: string;
  readonly params: readonly TreeParam[];
  readonly abi: readonly AbiParam[];
  readonly locals: readonly LocalVariable[];
  readonly arrays: readonly DeclaredArray[];
  readonly body: readonly Statement[];
  /**
   * The type of `length`, extents, strides and of the indices of threads: i32, or i64 for tensors
   * of 2^31 elements and more.
   */
  readonly indexType: 'i32' | 'i64';
  /** Whether it uses a barrier of the whole grid, and has to be launched cooperatively. */
  readonly cooperative: boolean;
  /**
   * Whether it waits for the grid before it, which until then may write its inputs: loads of them
   * stay behind the wait.
   */
  readonly dependent: boolean;
  /** Source texts that spans point into. */
  readonly texts: readonly string[];
}

interface Node {
  readonly span: Span;
}

/** The place of a value in memory. Bounds are checked only where the kernel requests it. */
export interface Place extends Node {
  readonly memory:
    | { readonly kind: 'param'; readonly param: number }
    | { readonly kind: 'array'; readonly array: number };
  /** Elements from the memory's beginning; i32, u32 or i64. */
  readonly index: Expression;
  /** The field of a structure. */
  readonly field?: StructField;
  /** The storage type of the element. */
  readonly storage: StorageType;
}

/**
 * Elements of a local array that a warp's matrix operations use: this thread's part of a matrix. It
 * begins at `index` (i32), a multiple of `length`.
 */
export interface Fragment {
  readonly array: number;
  readonly index: Expression;
  /** Elements. */
  readonly length: number;
}

/** An operand of an instruction: a value, the address of a place, or registers. */
export type InstructionOperand =
  | { readonly kind: 'value'; readonly value: Expression }
  | { readonly kind: 'address'; readonly place: Place }
  | { readonly kind: 'fragment'; readonly fragment: Fragment; readonly writes: boolean };

/** The expressions of an instruction's operands, in their order. */
export const operandExpressions = (
  operands: readonly InstructionOperand[],
): readonly Expression[] =>
  operands.map((each) =>
    each.kind === 'value'
      ? each.value
      : each.kind === 'address'
        ? each.place.index
        : each.fragment.index,
  );

/** Shapes of matrix products: rows of a, columns of b, and their common dimension. */
export type MatrixShape = 'm16n8k16' | 'm16n8k8';
/** The type in which elements are multiplied. tf32 is an f32 without its lowest 13 bits. */
export type MatrixType = 'f16' | 'bf16' | 'tf32';

/**
 * Operand and result have one type, except for `popc` and `clz`, which give i32 for every integer
 * type.
 */
export type UnaryOperator =
  'neg' | 'not' | 'abs' | 'floor' | 'ceil' | 'trunc' | 'rint' | 'sqrt' | 'popc' | 'clz' | 'brev';
/**
 * Both operands and the result have one type. Shifts take a u32 on the right, of which 5 bits (6
 * for 64-bit) count, as in JavaScript. Integers wrap. `div` of integers truncates, `rem` has the
 * sign of the dividend; by zero both are unspecified, as in PTX. `shr` is arithmetic for i32 and
 * i64, else logical. `min` and `max` of floats are those of Math: a NaN operand gives NaN, and -0 <
 * +0. `rem` of floats is JavaScript's `%`, exact. `mulhi` is the upper half of the product of
 * integers.
 */
export type BinaryOperator =
  | 'add'
  | 'sub'
  | 'mul'
  | 'div'
  | 'rem'
  | 'and'
  | 'or'
  | 'xor'
  | 'shl'
  | 'shr'
  | 'min'
  | 'max'
  | 'mulhi'
  | 'copysign';
export type CompareOperator = 'lt' | 'le' | 'gt' | 'ge' | 'eq' | 'ne';
/**
 * Single instructions whose results differ in the last bits between devices, within the bounds of
 * the PTX ISA.
 */
export type ApproximateName =
  'div' | 'rcp' | 'sqrt' | 'rsqrt' | 'ex2' | 'lg2' | 'sin' | 'cos' | 'tanh';
/**
 * Indices of the thread. `globalId` has the tree's index type, the others are i32. `lane` and
 * `warp` count within the warp and the block, `clusterRank` blocks within the cluster;
 * `dynamicSharedBytes` is the number of bytes of the launch.
 */
export type SpecialName =
  | `${'threadIdx' | 'blockIdx' | 'blockDim' | 'gridDim'}.${'x' | 'y' | 'z'}`
  | `${'globalId' | 'globalSize'}.${'x' | 'y' | 'z'}`
  | 'lane'
  | 'warp'
  | 'dynamicSharedBytes'
  | 'clusterRank'
  | 'clock'
  | 'globaltimer';

/** An expression, and the type of its value. */
export type Expression = Node & { readonly type: ValueType } &
  /** A bigint for i64 and u64, a boolean for bool, else a number that the type holds exactly. */
  (
    | { readonly op: 'constant'; readonly value: number | bigint | boolean }
    | { readonly op: 'local'; readonly local: number }
    /** A scalar of the ABI (all kinds but `pointer`), widened. */
    | { readonly op: 'abi'; readonly abi: number }
    | { readonly op: 'special'; readonly name: SpecialName }
    | { readonly op: 'unary'; readonly operator: UnaryOperator; readonly operand: Expression }
    | {
        readonly op: 'binary';
        readonly operator: BinaryOperator;
        readonly left: Expression;
        readonly right: Expression;
      }
    /** a * b + c, rounded once; f32 or f64. */
    | { readonly op: 'fma'; readonly a: Expression; readonly b: Expression; readonly c: Expression }
    /** bool. Operands have one type. Comparisons with NaN are false, `ne` true. */
    | {
        readonly op: 'compare';
        readonly operator: CompareOperator;
        readonly left: Expression;
        readonly right: Expression;
      }
    /** bool; the right side is evaluated only where the left does not decide. */
    | {
        readonly op: 'logical';
        readonly operator: 'and' | 'or';
        readonly left: Expression;
        readonly right: Expression;
      }
    /** Only the chosen side is evaluated. */
    | {
        readonly op: 'conditional';
        readonly test: Expression;
        readonly then: Expression;
        readonly otherwise: Expression;
      }
    /**
     * Converts from the operand's type to the node's. Integers wrap or extend by the operand's
     * sign; integers to floats and floats to floats round to nearest even; floats to integers
     * truncate, saturate, and give 0 for NaN. To bool it gives whether the operand is not zero;
     * bool gives 0 and 1. `odd`: to f32, rounded to odd (`round-to-odd.ts`), as the step before a
     * narrower float.
     */
    | { readonly op: 'convert'; readonly operand: Expression; readonly odd?: true }
    /** Converts to the storage type and back: the value after a store and a load. */
    | { readonly op: 'narrow'; readonly storage: StorageType; readonly operand: Expression }
    /** The same bits in another type of the same size. */
    | { readonly op: 'bitcast'; readonly operand: Expression }
    | {
        readonly op: 'approximate';
        readonly name: ApproximateName;
        readonly operands: readonly Expression[];
      }
    | { readonly op: 'load'; readonly place: Place; readonly cache?: 'streaming' | 'volatile' }
    /**
     * Reads, changes and writes at once; gives the value from before. `cas` writes `operand` where
     * the value equals `compare`. Relaxed order, and device scope by default.
     */
    | {
        readonly op: 'atomic';
        readonly operator: 'add' | 'min' | 'max' | 'and' | 'or' | 'xor' | 'exch' | 'cas';
        readonly place: Place;
        readonly operand: Expression;
        readonly compare?: Expression;
        readonly scope: 'block' | 'device' | 'system';
      }
    /**
     * All threads that `mask` (u32) names take part. Where the lane of `shfl` is beyond the warp's
     * bounds, the result is the lane's own value. Values have 32 or 64 bits.
     */
    | {
        readonly op: 'shuffle';
        readonly mode: 'idx' | 'up' | 'down' | 'bfly';
        readonly value: Expression;
        readonly lane: Expression;
        readonly width: number;
        readonly mask: Expression;
      }
    /** `ballot` gives u32, the others bool. */
    | {
        readonly op: 'vote';
        readonly mode: 'any' | 'all' | 'uni' | 'ballot';
        readonly predicate: Expression;
        readonly mask: Expression;
      }
    /** Lanes whose value equals this one's (`any`: u32). */
    | { readonly op: 'match'; readonly value: Expression; readonly mask: Expression }
    /** Lanes that run converged; u32. */
    | { readonly op: 'activemask' }
    /**
     * Barrier of the block that also counts or joins a predicate. `count` gives i32, the others
     * bool.
     */
    | {
        readonly op: 'barrierReduce';
        readonly mode: 'and' | 'or' | 'count';
        readonly predicate: Expression;
      }
    | {
        readonly op: 'block';
        readonly statements: readonly Statement[];
        readonly value: Expression;
      }
  );

export type Statement = Node &
  (
    | { readonly kind: 'assign'; readonly local: number; readonly value: Expression }
    /**
     * Floats are rounded to nearest even, to f8 saturating; integers wrap. The value has the type
     * that the storage is read as.
     */
    | {
        readonly kind: 'store';
        readonly place: Place;
        readonly value: Expression;
        readonly cache?: 'streaming' | 'volatile';
      }
    /** Elements of a `local` array become zero. */
    | { readonly kind: 'clear'; readonly array: number }
    | {
        readonly kind: 'if';
        readonly test: Expression;
        readonly then: readonly Statement[];
        readonly otherwise: readonly Statement[];
      }
    /**
     * Repeats while `test` holds (it is tested before each iteration, or after each with
     * `testAfter`; without a test the loop is endless), then runs `update`. `continue` goes to
     * `update`, and from there to the test. `unroll`: the iterations to unroll by, from the source;
     * 0 for all of them.
     */
    | {
        readonly kind: 'loop';
        readonly id: number;
        readonly test?: Expression;
        readonly testAfter: boolean;
        readonly body: readonly Statement[];
        readonly update: readonly Statement[];
        readonly unroll?: number;
      }
    /** A group that `break` can leave: an inlined function, a switch. */
    | { readonly kind: 'group'; readonly id: number; readonly body: readonly Statement[] }
    /** Leaves the loop or group of this id. */
    | { readonly kind: 'break'; readonly id: number }
    | { readonly kind: 'continue'; readonly id: number }
    /** The thread ends. */
    | { readonly kind: 'return' }
    /** The value is dropped. */
    | { readonly kind: 'evaluate'; readonly value: Expression }
    /**
     * `block`: a barrier of all threads of the block. `warp`: of those in `mask`. `grid`: of the
     * grid, which is cooperative.
     */
    | { readonly kind: 'barrier'; readonly of: 'block' | 'grid' }
    | { readonly kind: 'barrier'; readonly of: 'warp'; readonly mask: Expression }
    | { readonly kind: 'fence'; readonly scope: 'block' | 'device' | 'system' }
    /**
     * sum += a · b over a warp's fragments; all lanes of the warp take part. Each element of the
     * sum takes the products in the order of the common dimension, each added in f32 and rounded to
     * nearest; tensor cores add several at once, so that results differ in the last bits.
     */
    | {
        readonly kind: 'matrixProduct';
        readonly shape: MatrixShape;
        readonly type: MatrixType;
        readonly sum: Fragment;
        readonly a: Fragment;
        readonly b: Fragment;
      }
    /**
     * Reads `to.length / 2` matrices (1, 2 or 4) of 8 × 8 elements of 16 bits from shared memory;
     * all lanes of a warp take part. Row r of matrix m begins at `from` of lane 8 · m + r. Elements
     * 2 · m and 2 · m + 1 of `to` in lane l are columns 2 · (l % 4) and the next of row l / 4;
     * transposed, they are the same rows of column l / 4.
     */
    | {
        readonly kind: 'loadMatrices';
        readonly to: Fragment;
        readonly from: Place;
        readonly transposed: boolean;
      }
    /**
     * Begins to copy `count` elements (4, 8 or 16 bytes) from global to shared memory. With `given`
     * (i32) only so many are read, and the others become zeros; where it is 0 or less nothing is
     * read, and the index of `from` may be any.
     */
    | {
        readonly kind: 'copyAsync';
        readonly to: Place;
        readonly from: Place;
        readonly count: number;
        readonly given?: Expression;
      }
    /** Makes a group of the copies that this thread has begun since the last commit. */
    | { readonly kind: 'copyCommit' }
    /**
     * Waits until at most `pending` of this thread's groups, the latest, are in progress; with 0
     * until all of its copies have ended.
     */
    | { readonly kind: 'copyWait'; readonly pending: number }
    /** An instruction of the device (`instructions.ts`). */
    | {
        readonly kind: 'instruction';
        readonly name: InstructionName;
        /** Properties that are part of the instruction's name. */
        readonly detail: readonly (string | number)[];
        readonly operands: readonly InstructionOperand[];
      }
    /** The device's printf: `format` is as in C, arguments are i32, u32, i64, u64 or f64. */
    | { readonly kind: 'print'; readonly format: string; readonly values: readonly Expression[] }
    /** The kernel fails with an assertion of this message where `test` is false. */
    | { readonly kind: 'assert'; readonly test: Expression; readonly message: string }
    | { readonly kind: 'trap' }
  );
