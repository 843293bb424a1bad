/**
 * The places of a kernel's parameters, for launches that pass `kernelParams`: native arrays of
 * pointers, made once for each function from cuFuncGetParamInfo (CUDA 12.4). The parameters
 * themselves are written into one of a few blocks of native memory that launches reuse, so a
 * function has one array for each block.
 */
import { CUresult } from '../../ground/result.js';
import type { Binding } from './binding.js';
import { NativeMemory } from '../../native/native-memory.js';

export interface ParamLayout {
  /** The function, as `node:ffi` takes it. */
  readonly func: bigint;
  /** The end of the last parameter. */
  readonly bytes: number;
  /** The address of `kernelParams` for each block; 0 for a function without parameters. */
  readonly addresses: readonly number[];
  /** The same addresses, as `node:ffi` takes them. */
  readonly pointers: readonly bigint[];
  /** Keeps the arrays alive; undefined for a function without parameters. */
  readonly memory: NativeMemory | undefined;
}

export class ParamLayouts {
  private readonly binding: Binding;
  private readonly blocks: readonly number[];
  private readonly layouts = new Map<number, ParamLayout>();
  private unloadsSeen = 0;
  private lastFunction = 0;
  private last: ParamLayout = {
    func: 0n,
    bytes: 0,
    addresses: [],
    pointers: [],
    memory: undefined,
  };

  /** @param blocks addresses of the blocks that the parameters of a launch may be written to */
  constructor(binding: Binding, blocks: readonly number[]) {
    this.binding = binding;
    this.blocks = blocks;
  }

  /** Whether the driver returns the places of parameters. */
  get available(): boolean {
    return this.binding.calls.cuFuncGetParamInfo.available;
  }

  /**
   * Returns the places of a function's parameters. @throws {DriverError} where the driver does not
   * have the function
   */
  find(func: number): ParamLayout {
    // A function handle names the same function only until a module is unloaded, by any thread.
    return func === this.lastFunction && this.binding.unloads[0] === this.unloadsSeen
      ? this.last
      : this.look(func);
  }

  private look(func: number): ParamLayout {
    const unloads = this.binding.unloads[0]!;
    if (unloads !== this.unloadsSeen) {
      this.layouts.clear();
      this.unloadsSeen = unloads;
    }
    this.lastFunction = 0;
    let layout = this.layouts.get(func);
    if (layout === undefined) {
      layout = this.read(func);
      this.layouts.set(func, layout);
    }
    this.last = layout;
    this.lastFunction = func;
    return layout;
  }

  private read(func: number): ParamLayout {
    const {
      koffi,
      scratch,
      calls: { cuFuncGetParamInfo },
    } = this.binding;
    const { blocks } = this;
    const offsets: number[] = [];
    let end = 0;
    for (;;) {
      const r = cuFuncGetParamInfo.run(func, offsets.length, scratch.address, scratch.address + 8);
      if (r === CUresult.CUDA_ERROR_INVALID_VALUE) break; // past the last parameter
      if (r !== 0) throw cuFuncGetParamInfo.failure(r, `parameter ${offsets.length}`);
      offsets.push(scratch.u64(0));
      end = Math.max(end, scratch.u64(0) + scratch.u64(8));
    }
    if (offsets.length === 0) {
      return {
        func: BigInt(func),
        bytes: 0,
        addresses: blocks.map(() => 0),
        pointers: blocks.map(() => 0n),
        memory: undefined,
      };
    }
    const size = 8 * offsets.length;
    const memory = new NativeMemory(koffi, size * blocks.length);
    blocks.forEach((block, i) => {
      offsets.forEach((offset, k) => memory.setU64(size * i + 8 * k, block + offset));
    });
    const addresses = blocks.map((_, i) => memory.address + size * i);
    return { func: BigInt(func), bytes: end, addresses, pointers: addresses.map(BigInt), memory };
  }
}
