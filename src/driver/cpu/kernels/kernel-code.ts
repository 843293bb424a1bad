/**
 * The code of a kernel. Every kernel has code that runs its threads one by one, compiled with its
 * module; one that is launched with many threads gets code that runs several at once in vector
 * lanes, for the shape of its blocks.
 */
import type { WasmKernel, LaneCode } from '../../../ptx/index.js';
import type { RunBlock } from './run-block.js';
import { alignedRun, vectorProbe } from './aligned-run.js';
import { engineModule } from './engine-module.js';
import type { EngineModule } from './engine-module.js';
import type { KernelContext } from './kernel-context.js';

/** A WebAssembly module with the data that other threads need to instantiate it, too. */
export interface CodeModule extends EngineModule {
  /** The address of the variables that it works on. */
  readonly dataAddress: number;
  readonly hostImports: readonly string[];
  readonly exportNames: readonly string[];
  /** Whether it runs several threads at once. */
  readonly inLanes: boolean;
}

export interface KernelCode {
  readonly module: CodeModule;
  /** The index of its export in the module. */
  readonly index: number;
  readonly run: RunBlock;
  /** Whether one call can run several blocks. */
  readonly runsOn: boolean;
  /**
   * Runs several blocks in one slot side by side, for a kernel for which that is faster; with its
   * index. See `TEAM` of the compiler.
   */
  readonly sideBySide?: { readonly run: RunBlock; readonly index: number };
  /** Returns the bytes of scratch for a block. */
  blockBytes(threads: number): number;
}

/**
 * Number of threads that a kernel must have been launched with before it is compiled for lanes,
 * which takes milliseconds.
 */
export const THREADS_BEFORE_LANES = 1 << 14;

/** Instances share the compiled module. */
const compiled = new WeakMap<LaneCode, EngineModule>();

/** Chooses between a kernel's codes, and caches them. */
export class KernelCodes {
  private readonly context: KernelContext;
  private readonly kernel: WasmKernel;
  private readonly plain: KernelCode;
  private readonly inLanes = new Map<LaneCode, KernelCode>();
  private threads = 0;
  private toldUntil = -Infinity;

  constructor(context: KernelContext, kernel: WasmKernel, plain: KernelCode) {
    this.context = context;
    this.kernel = kernel;
    this.plain = plain;
  }

  /**
   * Returns the code for a launch of this many threads in blocks of this shape, which is about to
   * be made.
   */
  choose(threads: number, block: Int32Array): KernelCode {
    const code = this.forShape(threads, block);
    const { optimisingMs } = code.module;
    if (optimisingMs > 0) this.tell(optimisingMs);
    return code;
  }

  /** Reports V8's optimising time, at most once per interval, since kernels are launched often. */
  private tell(ms: number): void {
    const { now, optimises } = this.context.machine.services;
    if (now() < this.toldUntil) return;
    this.toldUntil = now() + ms;
    optimises(ms);
  }

  private forShape(threads: number, block: Int32Array): KernelCode {
    this.threads += threads;
    const { threadsBeforeLanes } = this.context.machine.services;
    if (
      this.threads <
      (this.kernel.inWarpSteps && threadsBeforeLanes < Infinity ? 0 : threadsBeforeLanes)
    )
      return this.plain;
    const lanes = this.kernel.inLanes([block[0]!, block[1]!, block[2]!]);
    if (typeof lanes === 'string') return this.plain;
    let known = this.inLanes.get(lanes);
    if (known === undefined) {
      known = this.instantiate(lanes);
      this.inLanes.set(lanes, known);
    }
    return known;
  }

  /** The modules of the kernel besides its own. */
  get modules(): Iterable<CodeModule> {
    return [...this.inLanes.values()].map(({ module }) => module);
  }

  private instantiate(lanes: LaneCode): KernelCode {
    let code = compiled.get(lanes);
    if (code === undefined) compiled.set(lanes, (code = engineModule(lanes.wasm, true)));
    const { dataAddress } = this.plain.module;
    const { exports } = new WebAssembly.Instance(code.wasm, {
      env: {
        memory: this.context.memory.memory,
        dataBase: new WebAssembly.Global({ value: 'i32', mutable: false }, dataAddress | 0),
        probe: vectorProbe(),
      },
    });
    const { exportName, sideBySide } = lanes;
    const aligned = (name: string): RunBlock =>
      alignedRun(exports[name] as RunBlock, this.context.machine.services.now);
    return {
      module: {
        ...code,
        dataAddress,
        hostImports: [],
        exportNames: [exportName, ...(sideBySide === undefined ? [] : [sideBySide])],
        inLanes: true,
      },
      index: 0,
      run: aligned(exportName),
      ...(sideBySide === undefined ? {} : { sideBySide: { run: aligned(sideBySide), index: 1 } }),
      runsOn: lanes.runsOn,
      blockBytes: (threads) => lanes.blockBytes(threads),
    };
  }
}
