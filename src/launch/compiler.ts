/**
 * The way from a kernel's source to PTX. The compiler is loaded when the first kernel is compiled: a program that finds all
 * of its kernels on disk does without.
 */
import type { KernelSource } from '../kernel/signature.js';
import type { AbiParam, KernelTree } from '../kernel/tree.js';

/** What PTX is made for. */
export interface CompileTarget {
  /** Compute capability: major and minor. */
  readonly capability: readonly [major: number, minor: number];
}

/** What a launch has to know of a kernel. Plain data: it is kept on disk. */
export interface CompiledKernel {
  readonly ptx: string;
  /** The PTX's parameters. */
  readonly abi: readonly AbiParam[];
  /** Has to be launched with all blocks running at once. */
  readonly cooperative: boolean;
  /** Has shared memory whose bytes the launch gives. */
  readonly dynamicShared: boolean;
}

/** Reads and types a kernel. @throws KernelSourceError */
export async function treeOf(source: KernelSource): Promise<KernelTree> {
  const { readKernel } = await import('../kernel/read/index.js');
  return readKernel(source);
}

/** @throws KernelSourceError */
export async function compile(source: KernelSource, target: CompileTarget): Promise<CompiledKernel> {
  const { readKernel } = await import('../kernel/read/index.js');
  const { emitKernel } = await import('../kernel/emit/index.js');
  const tree = readKernel(source);
  const { ptx } = emitKernel(tree, target);
  return { ptx, abi: tree.abi, cooperative: tree.cooperative, dynamicShared: tree.arrays.some(({ space }) => space === 'dynamic') };
}
