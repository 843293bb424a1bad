/** Test only: compiles a tree and runs it on the embedded CPU device's compiler, on one thread. */

import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { Grid } from '../../../src/ptx/run-grid.test-support.js';
import type { Argument, Dimensions, Outcome } from '../../../src/ptx/run-grid.test-support.js';
import type { KernelTree } from '../../../src/compiler/tree.js';
import { emitKernel } from '../../../src/compiler/emit/emit.js';
import type { EmitTarget, EmittedKernel } from '../../../src/compiler/emit/emit.js';

export type HostArray =
  | Float32Array
  | Float64Array
  | Int32Array
  | Uint32Array
  | Uint8Array
  | Uint16Array
  | BigInt64Array
  | BigUint64Array;

export interface Run {
  readonly values?: Readonly<Record<string, HostArray | number | bigint>>;
  readonly grid?: Dimensions;
  readonly block?: Dimensions;
  readonly dynamicShared?: number;
  readonly interleave?: boolean;
  readonly target?: Partial<EmitTarget>;
  /** Where it is false, ptxas does not read the text. */
  readonly shown?: boolean;
}

export interface Ran {
  readonly outcome: Outcome;
  readonly grid: Grid;
  readonly emitted: EmittedKernel;
  /** The present contents of a tensor. */
  of<T extends HostArray>(name: string): T;
}

/** Runs the kernel; where ptxas is installed, it reads each emitted text. */
export function runKernel(tree: KernelTree, run: Run): Ran {
  const emitted = emitKernel(tree, { capability: '8.0', ...run.target });
  if (run.shown !== false) offer(emitted);
  let grid: Grid;
  try {
    grid = new Grid(emitted.ptx);
  } catch (error) {
    throw new Error(`${String(error)}\n${emitted.ptx}`, { cause: error });
  }
  const views = new Map<string, { address: number; view: HostArray }>();
  const args = emitted.abi.map((param): Argument => {
    const { name } = tree.params[param.param]!;
    const value = run.values?.[name];
    if (value === undefined) throw new Error(`no value for ${name}`);
    if (param.kind === 'pointer') {
      const put = grid.put(value as Int32Array);
      views.set(name, put as { address: number; view: HostArray });
      return { i64: put.address };
    }
    if (param.kind === 'length') {
      const length = (value as HostArray).length;
      return tree.indexType === 'i64' ? { i64: length } : { i32: length };
    }
    if (param.kind !== 'scalar') throw new Error('views are not run here');
    if (param.storage === 'f32') return { f32: Number(value) };
    if (param.storage === 'f64') return { f64: Number(value) };
    if (param.storage === 'i64' || param.storage === 'u64') return { i64: value as bigint };
    if (param.storage === 'i32' || param.storage === 'u32') return { i32: Number(value) };
    return { bytes: new Uint8Array(new Uint16Array([Number(value)]).buffer) };
  });
  const outcome = grid.run(emitted.entry, args, {
    grid: run.grid ?? [1],
    block: run.block ?? [32],
    ...(run.dynamicShared === undefined ? {} : { dynamicShared: run.dynamicShared }),
    ...(run.interleave === true ? { interleave: true, fuel: 1000, maxCalls: 100_000 } : {}),
  });
  return {
    outcome,
    grid,
    emitted,
    of: <T extends HostArray>(name: string) => views.get(name)!.view as T,
  };
}

/** The path of ptxas: ASYNC_CUDA_PTXAS, or the one on PATH. */
function findPtxas(): string | undefined {
  const named = process.env['ASYNC_CUDA_PTXAS'];
  if (named !== undefined) return named;
  return (process.env['PATH'] ?? '')
    .split(delimiter)
    .map((folder) => join(folder, 'ptxas'))
    .find((path) => existsSync(path));
}

const ptxas = findPtxas();
if (ptxas === undefined)
  console.warn(
    'ptxas was not found: what it says of the emitted PTX is NOT tested. ASYNC_CUDA_PTXAS ' +
      'names it.',
  );

const offered = new Set<string>();

/** Throws the errors of ptxas. */
export function offer(emitted: EmittedKernel): void {
  if (ptxas === undefined || offered.has(emitted.ptx)) return;
  offered.add(emitted.ptx);
  try {
    execFileSync(ptxas, [`-arch=${emitted.target}`, '-o', '/dev/null', '-'], {
      input: emitted.ptx,
      encoding: 'utf8',
      stdio: ['pipe', 'pipe', 'pipe'],
    });
  } catch (error) {
    throw new Error(`ptxas: ${String((error as { stderr?: string }).stderr)}\n${emitted.ptx}`, {
      cause: error,
    });
  }
}
