/**
 * The second parameter of a kernel's body, for the type checker. Nothing here exists at run time:
 * reading a body finds these members by their names. Every integer dtype is `number` to the type
 * checker; the compiler tracks the dtype.
 */
import type { KernelDTypeName } from '../ground/dtype.js';

/** Three indices or lengths. */
export interface Dim3 {
  readonly x: number;
  readonly y: number;
  readonly z: number;
}

/** dtypes of shared and local arrays, as names of methods. */
export type ArrayMethods = Readonly<Record<Exclude<KernelDTypeName, 'bool'>, ArrayMethod>> & {
  readonly bool: ArrayMethod<boolean>;
};

/**
 * Declares an array. Lengths are compile-time constants, one for each axis. `shared.f32(16, 17)` is
 * indexed `[row][column]`.
 */
export interface ArrayMethod<T = number> {
  (length: number): KernelArray<T>;
  (rows: number, columns: number): KernelArray<KernelArray<T>>;
  (planes: number, rows: number, columns: number): KernelArray<KernelArray<KernelArray<T>>>;
}

/** An {@link ArrayMethod}; without lengths the array is as long as the launch's bytes. */
export interface DynamicArrayMethod<T = number> extends ArrayMethod<T> {
  (): KernelArray<T>;
}

/** Elements of an array in a kernel. */
export interface KernelArray<T> {
  readonly length: number;
  [index: number]: T;
}

/** The target of an atomic: a tensor, a row of one, a shared array. */
export interface AtomicTarget {
  readonly length: number;
  [index: number]: number;
}

/**
 * A matrix fragment in a local array: the elements of the matrix that this thread holds.
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
  /**
   * The value of the lane `delta` above; the lane's own value where there is none. shfl.sync.down
   */
  shuffleDown(value: number, delta: number, mask?: number): number;
  /** The value of the lane `delta` below; the lane's own value where there is none. shfl.sync.up */
  shuffleUp(value: number, delta: number, mask?: number): number;
  /** The value of the lane whose number differs in the bits of `bits`. shfl.sync.bfly */
  shuffleXor(value: number, bits: number, mask?: number): number;
  /**
   * The sum over all lanes; the last warp of a block may have fewer than 32. It is the same in each
   * lane: a butterfly of shuffles adds in the order 16, 8, 4, 2, 1.
   */
  sum(value: number): number;
  /** The maximum of all lanes. A NaN in any lane gives NaN. */
  max(value: number): number;
  /** The minimum of all lanes. A NaN in any lane gives NaN. */
  min(value: number): number;
  /** Whether any lane's predicate is true. vote.sync.any */
  any(predicate: boolean, mask?: number): boolean;
  /** Whether every lane's predicate is true. vote.sync.all */
  all(predicate: boolean, mask?: number): boolean;
  /** A u32 whose bit n is the predicate of lane n. vote.sync.ballot */
  ballot(predicate: boolean, mask?: number): number;
  /** Lanes whose value equals this one's, as bits; u32. match.any.sync */
  match(value: number, mask?: number): number;
  /** Lanes that run converged, as bits; u32. activemask */
  activeMask(): number;
  /** Waits for the lanes of the mask, and makes their writes visible. bar.warp.sync */
  sync(mask?: number): void;
  /**
   * sum += a · b on the tensor cores: a is 16 × 16, b 16 × 8, sum 16 × 8. All 32 lanes take part,
   * and each holds its part in local arrays (or rows of them): `a` of 8 and `b` of 4 elements of
   * f16 or bf16, or 4 and 2 for a common dimension of 8; and `sum` of 4 elements of f32. With g =
   * lane / 4 and t = lane % 4, element i is
   *
   * | | row | column |
   * |---|---|---|
   * | `a[i]` | g + 8 · (i / 2 % 2) | 2 · t + i % 2 + 8 · (i / 4) |
   * | `b[i]` | 2 · t + i % 2 + 8 · (i / 2) | g |
   * | `sum[i]` | g + 8 · (i / 2) | 2 · t + i % 2 |
   *
   * So a pair of elements of `sum` lies where a pair of an `a` does: a result can be a factor of
   * the next product. On the CPU device and in simulation products are added in the order of the
   * common dimension, rounded to f32 at each step; tensor cores add several products at once, and
   * results differ in the last bits. Compute capability 8.0. mma.sync.m16n8k16, .m16n8k8
   */
  mma(sum: MatrixFragment, a: MatrixFragment, b: MatrixFragment): void;
  /**
   * {@link mma} of f32 elements without the lowest 13 bits of the fraction (tf32): a is 16 × 8 in 4
   * elements of each lane, b 8 × 8 in 2, sum 16 × 8 in 4. `a[i]`: row g + 8 · (i % 2), column t + 4
   * · (i / 2). `b[i]`: row t + 4 · i, column g. Compute capability 8.0. mma.sync.m16n8k8 of tf32
   */
  mmaTf32(sum: MatrixFragment, a: MatrixFragment, b: MatrixFragment): void;
  /**
   * Reads matrices of 8 × 8 elements of f16 or bf16 from shared memory into a fragment of the same
   * dtype: a fragment of 8 elements takes four matrices, one of 4 two, one of 2 one. Each lane
   * gives the place of one row of 8 elements, a multiple of 8 elements: lane r gives row r % 8 of
   * matrix r / 8. Elements 2m and 2m + 1 of the fragment are then columns 2 · (lane % 4) and the
   * next, of row lane / 4, of matrix m. Four matrices are the `a` of {@link mma}: rows 0 to 7, rows
   * 8 to 15, and the same of columns 8 to 15. Four are also two `b`, in an array of two axes:
   * `gpu.local.f16(2, 4)`. ldmatrix.x4
   */
  loadMatrices(
    fragment: MatrixFragment | KernelArray<MatrixFragment>,
    from: KernelArray<number>,
    index: number,
  ): void;
  /**
   * {@link loadMatrices} of transposed matrices: the elements are rows 2 · (lane % 4) and the next,
   * of column lane / 4. That is the `b` of {@link mma} where shared memory holds it by rows.
   * ldmatrix.x4.trans
   */
  loadMatricesTransposed(
    fragment: MatrixFragment | KernelArray<MatrixFragment>,
    from: KernelArray<number>,
    index: number,
  ): void;
  /**
   * Writes a fragment's matrices of 8 × 8 elements to shared memory, as {@link loadMatrices} reads
   * them: lane r gives the place of row r % 8 of matrix r / 8. Compute capability 9.0. stmatrix.x4
   */
  storeMatrices(
    to: KernelArray<number>,
    index: number,
    fragment: MatrixFragment | KernelArray<MatrixFragment>,
  ): void;
}

/**
 * Copies from tensors to shared memory that run while the thread computes. A thread waits for its
 * own copies only: a barrier after `wait` makes those of the block visible. Compute capability 8.0.
 */
export interface AsyncCopies {
  /**
   * Begins to copy `count` elements, a compile-time constant: 16 bytes, or 8 or 4; both places have
   * to be a multiple of that size. The elements are adjacent in memory, whatever the tensor's
   * strides are. With `given` only so many are read, and the others become zeros, as edges need it.
   * With `given` 0 nothing is read, and `fromIndex` may lie outside. The elements can be read after
   * `wait`. cp.async.cg, for less than 16 bytes cp.async.ca
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
   * Waits until at most `pending` of the thread's groups, a compile-time constant, are in progress;
   * with 0 until all of its copies have ended. cp.async.wait_group, cp.async.wait_all
   */
  wait(pending: number): void;
}

/**
 * Operations of a warp group: four adjacent warps, of which the first has a number that is a
 * multiple of 4. All its threads execute each operation. Compute capability 9.0, and no other.
 */
export interface WarpGroup {
  /**
   * Makes writes to the sums, and to fragments of `a`, visible to the products that follow. Before
   * the first product, and whenever other code has written to them. wgmma.fence
   */
  begin(): void;
  /**
   * Begins sums += a · b on the tensor cores: 64 rows by N columns. Each thread has N / 2 elements
   * of the sums, f32 (also f16 for factors of f16 and f8; i32 for i8 and u8). With w the warp's
   * number in its group, g = lane / 4 and t = lane % 4, element i is row
   * 16 · w + g + 8 · (i / 2 % 2), column 8 · (i / 4) + 2 · t + i % 2.
   *
   * Factors are in shared arrays of two axes, whose lines have 128, 64 or 32 bytes, as
   * `gpu.tensor.load` writes them. `a` has a line for each row, `b` one for each column, from
   * `aLine` and `bLine` on; the common dimension runs along the lines, from `aColumn` and `bColumn`
   * on: 16 elements of f16 and bf16, 8 of f32 (which are read as tf32), 32 of f8, i8 and u8. One
   * factor may be f8e4m3 and the other f8e5m2, and so with i8 and u8. With `panelA` or `panelB`,
   * for 16 bits only, lines run along the common dimension instead, and contain rows of `a` or
   * columns of `b`; a panel is as many lines as the constant says, and the next line's worth of
   * rows or columns begins after it.
   *
   * Sums that have just been made zeros by constants are overwritten: no register is cleared.
   *
   * The sums can be read after {@link wait}. They are those of the tensor cores: products are
   * exact, and several are added at once. wgmma.mma_async
   */
  mma(
    sums: MatrixFragment,
    a: KernelArray<KernelArray<number>>,
    aLine: number,
    aColumn: number,
    b: KernelArray<KernelArray<number>>,
    bLine: number,
    bColumn: number,
    panelA?: number,
    panelB?: number,
  ): void;
  /**
   * {@link mma} with `a` in registers: 8 elements of f16 or bf16 in each thread, 4 of f32, 16 of
   * f8, i8 or u8, of the warp's 16 rows, as those of `gpu.warp.mma`. They may be written again
   * after {@link wait}.
   */
  mmaOfRegisters(
    sums: MatrixFragment,
    a: MatrixFragment,
    b: KernelArray<KernelArray<number>>,
    bLine: number,
    bColumn: number,
    panelB?: number,
  ): void;
  /** Makes a group of the products that were begun since the last one. wgmma.commit_group */
  commit(): void;
  /**
   * Waits until at most `pending` groups, a compile-time constant, are in progress. The sums can be
   * read after `wait(0)`. wgmma.wait_group
   */
  wait(pending: number): void;
  /** Takes registers that other warp groups have released, up to this number. setmaxnreg.inc */
  moreRegisters(registers: number): void;
  /** Releases registers down to this number for other warp groups. setmaxnreg.dec */
  fewerRegisters(registers: number): void;
}

/**
 * Copies of boxes between tensors and shared memory, which one thread begins. Compute capability
 * 9.0. Shared memory is an array of two axes whose lines have 128, 64 or 32 bytes: a box is lines
 * of the tensor's last axis. The units of 16 bytes in a line are swizzled, as products of warp
 * groups read them; other code has to compute their places: unit u of line l is at u ^ (l % 8) for
 * lines of 128 bytes.
 */
export interface TensorCopies {
  /**
   * Begins to copy `count` lines, a compile-time constant of at most 256, from the tensor's box at
   * these indices, one for each axis, to the array's lines from `line` on. What is beyond the
   * tensor becomes zero. The mbarrier counts the bytes: announce them with `gpu.barrier.expect`.
   * cp.async.bulk.tensor
   */
  load(
    to: KernelArray<KernelArray<number>>,
    line: number,
    count: number,
    from: { readonly length: number; readonly [index: number]: unknown },
    barriers: KernelArray<number>,
    barrier: number,
    ...indices: readonly number[]
  ): void;
  /**
   * The same copy to the blocks of the cluster whose bits are set in `blocks`, at the same lines of
   * each; in each of them, the same mbarrier counts the bytes. cp.async.bulk.tensor, multicast
   */
  multicast(
    blocks: number,
    to: KernelArray<KernelArray<number>>,
    line: number,
    count: number,
    from: { readonly length: number; readonly [index: number]: unknown },
    barriers: KernelArray<number>,
    barrier: number,
    ...indices: readonly number[]
  ): void;
  /**
   * Begins to copy `count` lines of the array to the tensor's box at these indices; what is beyond
   * the tensor is left out. Writes to the array are made visible by `gpu.fence.async()` before.
   * cp.async.bulk.tensor
   */
  store(
    to: { readonly length: number; readonly [index: number]: unknown },
    from: KernelArray<KernelArray<number>>,
    line: number,
    count: number,
    ...indices: readonly number[]
  ): void;
  /**
   * {@link store} that adds the lines to the tensor's elements: each addition is atomic, and those
   * of several threads have no order. Elements are i32, u32, u64, f16, bf16 or f32.
   * cp.reduce.async.bulk.tensor.add
   */
  add(
    to: { readonly length: number; readonly [index: number]: unknown },
    from: KernelArray<KernelArray<number>>,
    line: number,
    count: number,
    ...indices: readonly number[]
  ): void;
  /** Makes a group of the stores that this thread has begun. cp.async.bulk.commit_group */
  commit(): void;
  /**
   * Waits until at most `pending` of the thread's groups are in progress. cp.async.bulk.wait_group
   */
  wait(pending: number): void;
  /** The same, for what they read: the array may be written again. cp.async.bulk.wait_group.read */
  waitRead(pending: number): void;
}

/**
 * mbarriers in a shared array of u64. A phase ends when as many threads as `init` was given have
 * arrived, and all announced bytes have been copied; phases alternate between parity 0 and 1.
 */
export interface Barriers {
  /** Begins with phase 0 and this number of arrivals. One thread does it. mbarrier.init */
  init(barriers: KernelArray<number>, barrier: number, arrivals: number): void;
  /** mbarrier.arrive */
  arrive(barriers: KernelArray<number>, barrier: number): void;
  /**
   * Arrives at the same barrier of another block of the cluster, which tells that copies and
   * products have read something. Writes of threads are made visible to other blocks by
   * `gpu.cluster.sync()`. mapa, mbarrier.arrive
   */
  arriveIn(barriers: KernelArray<number>, barrier: number, rank: number): void;
  /** Arrives, and announces bytes that are going to be copied. mbarrier.arrive.expect_tx */
  expect(barriers: KernelArray<number>, barrier: number, bytes: number): void;
  /** Waits for the end of the phase of this parity. mbarrier.try_wait.parity */
  wait(barriers: KernelArray<number>, barrier: number, parity: number): void;
}

/** The cluster of the block. Compute capability 9.0. */
export interface Cluster {
  /** The block's number in its cluster. %cluster_ctarank */
  readonly rank: number;
  /**
   * Reads 1, 2 or 4 adjacent elements of 32 bits from the same shared array of the block of this
   * rank, to a local array of as many. They begin at a multiple of their bytes.
   * mapa, ld.shared::cluster
   */
  load(to: KernelArray<number>, from: KernelArray<number>, index: number, rank: number): void;
  /** Waits for all threads of the cluster. barrier.cluster.arrive, .wait */
  sync(): void;
}

/** Operations of a block. Every thread of the block has to reach each of them. */
export interface Block {
  /** Waits for all threads of the block, and makes their writes visible. bar.sync 0 */
  sync(): void;
  /**
   * Waits for `threads` threads, a multiple of 32, that name the same barrier of 1 to 15. Warps
   * arrive as a whole. bar.sync
   */
  syncThreads(barrier: number, threads: number): void;
  /** A barrier that gives the number of threads whose predicate is true. bar.red.popc */
  count(predicate: boolean): number;
  /** A barrier that gives whether any predicate is true. bar.red.or */
  any(predicate: boolean): boolean;
  /** A barrier that gives whether all predicates are true. bar.red.and */
  all(predicate: boolean): boolean;
  /**
   * The sum over the block, the same in every thread: a butterfly within each warp, then one over
   * their sums, through shared memory.
   */
  sum(value: number): number;
  /** The maximum of the block. A NaN in any thread gives NaN. */
  max(value: number): number;
  /** The minimum of the block. A NaN in any thread gives NaN. */
  min(value: number): number;
}

/** Operations of the grid. */
export interface Grid {
  /** Waits for all threads of the grid. A kernel that uses it is launched cooperatively. */
  sync(): void;
  /**
   * Waits until the grids that this one depends on have ended, and their writes are visible. Where
   * the launch has `{ programmatic: true }`, the thread may read or write no memory of another
   * kernel before; without that option it has no effect. Compute capability 9.0.
   * griddepcontrol.wait
   */
  waitForDependencies(): void;
  /**
   * Lets the next grid of the stream begin, where its launch has `{ programmatic: true }`, once all
   * blocks of this one have called it or ended. Writes need not be before it: the next grid waits
   * for the end of this one. Compute capability 9.0. griddepcontrol.launch_dependents
   */
  launchDependents(): void;
}

/** Makes the thread's own writes visible before those that follow. */
export interface Fences {
  /** membar.cta */
  block(): void;
  /** membar.gl */
  device(): void;
  /** membar.sys */
  system(): void;
  /** Makes writes to shared memory visible to tensor copies and warp groups. fence.proxy.async */
  async(): void;
  /** Makes initialised mbarriers visible to the cluster and to copies. fence.mbarrier_init */
  barriers(): void;
}

/**
 * Single instructions of the device for f32. They are fast, and their results differ in the last
 * bits between devices. Bounds as in the PTX ISA.
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
  /** 2 to the power of the value; 0 below 2^-126. ex2.approx.ftz.f32 */
  exp2(value: number): number;
  /** e to the power of the value: ex2.approx.ftz of its product with log2(e). */
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

/** The second parameter of every kernel's body. */
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

  /** Memory that the block shares; `gpu.shared.f32(16, 16)`. It is not initialised. */
  readonly shared: ArrayMethods;
  /**
   * The block's shared memory whose bytes the launch gives (`sharedBytes`);
   * `gpu.dynamicShared.f32()`, or with lengths as for {@link shared}, which have to fit into those
   * bytes. All such arrays begin at its first byte; without lengths `length` is the number of
   * elements that fit. %dynamic_smem_size
   */
  readonly dynamicShared: Readonly<
    Record<Exclude<keyof ArrayMethods, 'bool'>, DynamicArrayMethod>
  > & { readonly bool: DynamicArrayMethod<boolean> };
  /** Memory of the thread; `gpu.local.f32(4)`. It is zero at the declaration. */
  readonly local: ArrayMethods;

  readonly warp: Warp;
  readonly group: WarpGroup;
  readonly tensor: TensorCopies;
  readonly barrier: Barriers;
  readonly cluster: Cluster;
  readonly block: Block;
  readonly grid: Grid;
  readonly fence: Fences;
  readonly async: AsyncCopies;
  readonly fast: Fast;

  /**
   * Casts. Floats to integers truncate, saturate, and give 0 for NaN; wider integers wrap. A cast
   * to f16, bf16 and narrower integers gives the value after a store and a load.
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
  /**
   * 1 / sqrt(value), both steps rounded: the same bits on every device. `fast.rsqrt` is one
   * instruction.
   */
  rsqrt(value: number): number;
  /** Rounds to the nearest integer, ties to even; `Math.round` takes ties upwards. cvt.rni */
  rint(value: number): number;
  /** The error function. */
  erf(value: number): number;
  /** Upper half of the product of two integers of one type. */
  mulhi(a: number, b: number): number;
  /** Number of bits that are set. */
  popcount(value: number): number;
  /** The number of zero bits above the highest set bit. */
  clz(value: number): number;
  /** The bits in reverse order. */
  reverseBits(value: number): number;
  /** The magnitude of the first with the sign of the second. */
  copysign(magnitude: number, sign: number): number;
  /** `value` between the bounds. */
  clamp(value: number, lowest: number, highest: number): number;

  /**
   * Adds, and gives the value from before. Relaxed order, device scope, as all atomics of elements
   * of 16 bits and more. Those of i16 and u16, and all but the sum of f16 and bf16, are a loop of
   * atom.cas. atom.add
   */
  atomicAdd(target: AtomicTarget, index: number, value: number): number;
  /** atom.min; for floats a loop of atom.cas, in which NaN changes nothing, and is not changed. */
  atomicMin(target: AtomicTarget, index: number, value: number): number;
  /** atom.max; for floats a loop of atom.cas, in which NaN changes nothing, and is not changed. */
  atomicMax(target: AtomicTarget, index: number, value: number): number;
  atomicAnd(target: AtomicTarget, index: number, value: number): number;
  atomicOr(target: AtomicTarget, index: number, value: number): number;
  atomicXor(target: AtomicTarget, index: number, value: number): number;
  /** Writes, and gives the value from before. */
  atomicExchange(target: AtomicTarget, index: number, value: number): number;
  /** Writes `value` where the element equals `expected`; gives the value from before. atom.cas */
  atomicCompareExchange(
    target: AtomicTarget,
    index: number,
    expected: number,
    value: number,
  ): number;
  /** Reads memory that other threads may be writing; an earlier read is not reused. ld.volatile */
  volatileLoad(target: AtomicTarget, index: number): number;
  /** st.volatile */
  volatileStore(target: AtomicTarget, index: number, value: number): void;
  /**
   * Reads an element with the hint that it is accessed once: caches evict it first. For arrays
   * other than tensors it is an ordinary read. ld.global.cs
   */
  streamingLoad(
    target: { readonly length: number; readonly [index: number]: number },
    index: number,
  ): number;
  /**
   * Writes an element with the hint that it is accessed once. For arrays other than tensors it is
   * an ordinary write. st.global.cs
   */
  streamingStore(target: AtomicTarget, index: number, value: number): void;

  /**
   * Unrolls the loop that follows by `turns` iterations; without `turns` completely. It is a hint.
   */
  unroll(turns?: number): void;
  /** Cycles of the multiprocessor's clock; i64. */
  clock(): number;
  /** Nanoseconds of the device's timer; u64. */
  globalTimer(): number;
  /** Ends the grid with a failure. */
  trap(): never;
}
