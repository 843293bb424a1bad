/**
 * The second parameter of a kernel's body, as the type checker sees it. Nothing here exists at run
 * time: reading a body finds these by their property names. Every integer dtype is `number` to the
 * type checker; the compiler knows which.
 */
import type { PtxName } from '../ground/dtype.js';

/** Three indices or lengths. */
export interface Dim3 {
  readonly x: number;
  readonly y: number;
  readonly z: number;
}

/** dtypes of shared and local arrays, as names of methods. */
export type ArrayMethods = Readonly<Record<PtxName, ArrayMethod>> & {
  readonly bool: ArrayMethod<boolean>;
};

/**
 * Lengths are compile-time constants: one for each axis. `shared.f32(16, 17)` is indexed
 * `[row][column]`.
 */
export interface ArrayMethod<T = number> {
  (length: number): KernelArray<T>;
  (rows: number, columns: number): KernelArray<KernelArray<T>>;
  (planes: number, rows: number, columns: number): KernelArray<KernelArray<KernelArray<T>>>;
}

/** As {@link ArrayMethod}; without lengths as long as the launch's bytes. */
export interface DynamicArrayMethod<T = number> extends ArrayMethod<T> {
  (): KernelArray<T>;
}

/** Elements of an array in a kernel. */
export interface KernelArray<T> {
  readonly length: number;
  [index: number]: T;
}

/** What atomics change: a tensor, a row of one, a shared array. */
export interface AtomicTarget {
  readonly length: number;
  [index: number]: number;
}

/**
 * Part of a local array: this thread's elements of a matrix that is spread over the warp.
 * `gpu.local.f16(4, 8)[i]` is one of 8 elements.
 */
export type MatrixFragment = KernelArray<number>;

/**
 * Operations of a warp. All 32 lanes take part unless `mask` names fewer; `mask` must not name a
 * lane that has left the kernel.
 */
export interface Warp {
  /** The value of lane `lane`. shfl.sync.idx */
  shuffle(value: number, lane: number, mask?: number): number;
  /** The value of the lane `delta` above; the own one where there is none. shfl.sync.down */
  shuffleDown(value: number, delta: number, mask?: number): number;
  /** The value of the lane `delta` below; the own one where there is none. shfl.sync.up */
  shuffleUp(value: number, delta: number, mask?: number): number;
  /** The value of the lane whose number differs in the bits of `bits`. shfl.sync.bfly */
  shuffleXor(value: number, bits: number, mask?: number): number;
  /**
   * Sum over all lanes, of which the last warp of a block may have fewer than 32; the same in each:
   * a butterfly of shuffles, in this order: 16, 8, 4, 2, 1.
   */
  sum(value: number): number;
  /** Largest of all lanes; NaN wins. */
  max(value: number): number;
  /** Smallest of all lanes; NaN wins. */
  min(value: number): number;
  /** Whether any lane's predicate is true. vote.sync.any */
  any(predicate: boolean, mask?: number): boolean;
  /** Whether every lane's predicate is true. vote.sync.all */
  all(predicate: boolean, mask?: number): boolean;
  /** Bit n: the predicate of lane n; u32. vote.sync.ballot */
  ballot(predicate: boolean, mask?: number): number;
  /** Lanes whose value equals this one's, as bits; u32. match.any.sync */
  match(value: number, mask?: number): number;
  /** Lanes that are here together; u32. activemask */
  activeMask(): number;
  /** Waits for the lanes of the mask, and makes their writes seen. bar.warp.sync */
  sync(mask?: number): void;
  /**
   * sum += a · b on the tensor cores: a is 16 × 16, b 16 × 8, sum 16 × 8. All 32 lanes come here
   * together, and each holds its part in local arrays (or rows of them): of f16 or bf16 `a` of 8
   * and `b` of 4 elements, or for a common dimension of 8, 4 and 2; and of f32 `sum` of 4. With g =
   * lane / 4 and t = lane % 4, element i is
   *
   * | | row | column |
   * |---|---|---|
   * | `a[i]` | g + 8 · (i / 2 % 2) | 2 · t + i % 2 + 8 · (i / 4) |
   * | `b[i]` | 2 · t + i % 2 + 8 · (i / 2) | g |
   * | `sum[i]` | g + 8 · (i / 2) | 2 · t + i % 2 |
   *
   * So a pair of elements of `sum` lies where a pair of an `a` does: what was computed can be a
   * factor of the next product. The order of the common dimension is that of the sum on the CPU
   * device and in simulation, rounded to f32 at each step; tensor cores add several products at
   * once, and results differ in the last bits. Compute capability 8.0. mma.sync.m16n8k16, .m16n8k8
   */
  mma(sum: MatrixFragment, a: MatrixFragment, b: MatrixFragment): void;
  /**
   * {@link mma} of f32 elements whose lowest 13 bits of the fraction are left out (tf32): a is 16 ×
   * 8 in 4 elements of each lane, b 8 × 8 in 2, sum 16 × 8 in 4. `a[i]`: row g + 8 · (i % 2),
   * column t + 4 · (i / 2). `b[i]`: row t + 4 · i, column g. Compute capability 8.0.
   * mma.sync.m16n8k8 of tf32
   */
  mmaTf32(sum: MatrixFragment, a: MatrixFragment, b: MatrixFragment): void;
  /**
   * Reads matrices of 8 × 8 elements of f16 or bf16 from shared memory into a fragment of the same
   * dtype: of 8 elements four matrices, of 4 two, of 2 one. Each lane says where one row of 8
   * elements begins, at a multiple of 8 elements: lane r row r % 8 of matrix r / 8. Elements 2m and
   * 2m + 1 of the fragment are then columns 2 · (lane % 4) and the next, of row lane / 4, of matrix
   * m. Four matrices are the `a` of {@link mma}: rows 0 to 7, rows 8 to 15, and the same of columns
   * 8 to 15. Four are also two `b`: of two axes, `gpu.local.f16(2, 4)`. ldmatrix.x4
   */
  loadMatrices(
    fragment: MatrixFragment | KernelArray<MatrixFragment>,
    from: KernelArray<number>,
    index: number,
  ): void;
  /**
   * {@link loadMatrices} of matrices that are transposed: the elements are rows 2 · (lane % 4) and
   * the next, of column lane / 4. That is the `b` of {@link mma} where shared memory holds it by
   * rows. ldmatrix.x4.trans
   */
  loadMatricesTransposed(
    fragment: MatrixFragment | KernelArray<MatrixFragment>,
    from: KernelArray<number>,
    index: number,
  ): void;
}

/**
 * Copies from tensors to shared memory that go on while the thread computes. A thread waits for its
 * own copies only: a barrier after `wait` makes those of the block seen. Compute capability 8.0.
 */
export interface AsyncCopies {
  /**
   * Begins to copy `count` elements, a compile-time constant: 16 bytes, or 8 or 4, which both
   * places lie at a multiple of. The elements are neighbours in memory, also where the tensor's
   * strides are others. With `given` only so many are read, and the others become zeros: at edges.
   * With none given nothing is read, and `fromIndex` may lie outside. Nothing but `wait` tells when
   * they are there. cp.async.cg, of less than 16 bytes cp.async.ca
   */
  copy(
    to: KernelArray<number>,
    toIndex: number,
    from: { readonly length: number; readonly [index: number]: number },
    fromIndex: number,
    count: number,
    given?: number,
  ): void;
  /** Makes a group of the copies that were begun since the last one. cp.async.commit_group */
  commit(): void;
  /**
   * Waits until at most `pending` of the thread's groups, a compile-time constant, are under way;
   * with 0 for all that it has begun. cp.async.wait_group, cp.async.wait_all
   */
  wait(pending: number): void;
}

/** Threads of a block. Every thread of it must come to each of these. */
export interface Block {
  /** Waits for all threads of the block, and makes their writes seen. bar.sync 0 */
  sync(): void;
  /** A barrier that gives the number of threads whose predicate is true. bar.red.popc */
  count(predicate: boolean): number;
  /** A barrier that tells whether any predicate is true. bar.red.or */
  any(predicate: boolean): boolean;
  /** A barrier that tells whether all predicates are true. bar.red.and */
  all(predicate: boolean): boolean;
  /**
   * Sum over the block, the same in every thread: warps by butterfly, then their sums likewise, by
   * way of shared memory.
   */
  sum(value: number): number;
  /** Largest of the block; NaN wins. */
  max(value: number): number;
  /** Smallest of the block; NaN wins. */
  min(value: number): number;
}

/**
 * The grid, where the kernel was launched as a cooperative one: by itself, where a body uses it.
 */
export interface Grid {
  /** Waits for all threads of the grid. */
  sync(): void;
}

/** Makes the thread's own writes seen before those that follow. */
export interface Fences {
  /** membar.cta */
  block(): void;
  /** membar.gl */
  device(): void;
  /** membar.sys */
  system(): void;
}

/**
 * Single instructions of the device: fast, and differing in the last bits between devices. f32
 * only. Bounds as the PTX ISA states them.
 */
export interface Fast {
  /** div.approx.f32: within 2 units in the last place. */
  div(a: number, b: number): number;
  /** rcp.approx.ftz.f32: within 1 unit in the last place. */
  rcp(value: number): number;
  /** sqrt.approx.f32 */
  sqrt(value: number): number;
  /** rsqrt.approx.f32 */
  rsqrt(value: number): number;
  /** 2 to the power of the value. ex2.approx.f32 */
  exp2(value: number): number;
  /** e to the power of the value: ex2.approx of its product with log2(e). */
  exp(value: number): number;
  /** lg2.approx.f32 */
  log2(value: number): number;
  /** lg2.approx times ln(2). */
  log(value: number): number;
  /** sin.approx.f32; absolute error grows beyond [-pi, pi]. */
  sin(value: number): number;
  /** cos.approx.f32 */
  cos(value: number): number;
  /** tanh.approx.f32; compute capability 7.5 */
  tanh(value: number): number;
}

/** What every kernel's body finds in its second parameter. */
export interface Gpu {
  /** Index of the thread in its block. */
  readonly threadIdx: Dim3;
  /** Index of the block in the grid. */
  readonly blockIdx: Dim3;
  /** Threads of a block. */
  readonly blockDim: Dim3;
  /** Blocks of the grid. */
  readonly gridDim: Dim3;
  /** blockIdx · blockDim + threadIdx. */
  readonly globalId: Dim3;
  /** gridDim · blockDim. */
  readonly globalSize: Dim3;
  /** Lane of the thread in its warp, 0 to 31. */
  readonly lane: number;
  /** Number of the warp in its block. */
  readonly warpIdx: number;
  /** 32. */
  readonly warpSize: number;

  /** Shared by the block; `gpu.shared.f32(16, 16)`. Not initialised. */
  readonly shared: ArrayMethods;
  /**
   * The block's shared memory whose bytes the launch gives (`sharedBytes`);
   * `gpu.dynamicShared.f32()`, or with lengths as for {@link shared}, which those bytes have to
   * hold. All of them begin at its first byte; without lengths `length` is how many elements the
   * launch's bytes hold. %dynamic_smem_size
   */
  readonly dynamicShared: Readonly<
    Record<Exclude<keyof ArrayMethods, 'bool'>, DynamicArrayMethod>
  > & { readonly bool: DynamicArrayMethod<boolean> };
  /** Of the thread; `gpu.local.f32(4)`. Zeros. */
  readonly local: ArrayMethods;

  readonly warp: Warp;
  readonly block: Block;
  readonly grid: Grid;
  readonly fence: Fences;
  readonly async: AsyncCopies;
  readonly fast: Fast;

  /**
   * Casts. Floats to integers truncate, saturate, and give 0 for NaN; wider integers wrap; to f16,
   * bf16 and narrower integers: what would be read after writing there.
   */
  i8(value: number | boolean): number;
  u8(value: number | boolean): number;
  i16(value: number | boolean): number;
  u16(value: number | boolean): number;
  i32(value: number | boolean): number;
  u32(value: number | boolean): number;
  i64(value: number | boolean): number;
  u64(value: number | boolean): number;
  f16(value: number | boolean): number;
  bf16(value: number | boolean): number;
  f32(value: number | boolean): number;
  f64(value: number | boolean): number;
  /** The bits of an f32 as u32, of an f64 as u64. */
  bits(value: number): number;
  /** The f32 of a u32's (i32's) bits, the f64 of a u64's (i64's). */
  fromBits(value: number): number;

  /** a · b + c, rounded once. */
  fma(a: number, b: number, c: number): number;
  /** 1 / sqrt(value), each rounded: the same bits everywhere. `fast.rsqrt` is one instruction. */
  rsqrt(value: number): number;
  /** To the nearest integer, ties to even; `Math.round` takes ties upwards. cvt.rni */
  rint(value: number): number;
  /** The error function. */
  erf(value: number): number;
  /** Upper half of the product of two integers of one type. */
  mulhi(a: number, b: number): number;
  /** Number of bits that are set. */
  popcount(value: number): number;
  /** Zero bits above the highest that is set. */
  clz(value: number): number;
  /** The bits in reverse order. */
  reverseBits(value: number): number;
  /** The magnitude of the first with the sign of the second. */
  copysign(magnitude: number, sign: number): number;
  /** `value` between the bounds. */
  clamp(value: number, lowest: number, highest: number): number;

  /**
   * Adds, and gives what was there. Relaxed order, device scope. As all atomics of elements of 16
   * bits and more; of 16, i16 and u16 are a loop of atom.cas, as is all but the sum of f16 and
   * bf16. atom.add
   */
  atomicAdd(target: AtomicTarget, index: number, value: number): number;
  /** atom.min; of floats a loop of atom.cas, in which NaN changes nothing, and is not changed. */
  atomicMin(target: AtomicTarget, index: number, value: number): number;
  /** atom.max; of floats a loop of atom.cas, in which NaN changes nothing, and is not changed. */
  atomicMax(target: AtomicTarget, index: number, value: number): number;
  atomicAnd(target: AtomicTarget, index: number, value: number): number;
  atomicOr(target: AtomicTarget, index: number, value: number): number;
  atomicXor(target: AtomicTarget, index: number, value: number): number;
  /** Writes, and gives what was there. */
  atomicExchange(target: AtomicTarget, index: number, value: number): number;
  /** Writes `value` where the element equals `expected`; gives what was there. atom.cas */
  atomicCompareExchange(
    target: AtomicTarget,
    index: number,
    expected: number,
    value: number,
  ): number;
  /** Reads what other threads may be writing, not what was read before. ld.volatile */
  volatileLoad(target: AtomicTarget, index: number): number;
  /** st.volatile */
  volatileStore(target: AtomicTarget, index: number, value: number): void;
  /**
   * Reads what is not read again soon: it is the first to leave the caches. Of tensors; elsewhere
   * an ordinary read. ld.global.cs
   */
  streamingLoad(
    target: { readonly length: number; readonly [index: number]: number },
    index: number,
  ): number;
  /** Writes what is not read again soon. Of tensors; elsewhere an ordinary write. st.global.cs */
  streamingStore(target: AtomicTarget, index: number, value: number): void;

  /** Puts `turns` turns of the loop that follows in a row. A hint. */
  unroll(turns?: number): void;
  /** Cycles of the multiprocessor's clock; i64. */
  clock(): number;
  /** Nanoseconds of the device's timer; u64. */
  globalTimer(): number;
  /** Ends the grid with a failure. */
  trap(): never;
}
