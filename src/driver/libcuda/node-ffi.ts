/**
 * Node's own foreign function interface (`node:ffi`, experimental, Node 26) for the few calls that
 * are made again and again. Optimised code calls C in 5 ns where every argument is a pointer given
 * as a bigint that exists already, against 44 ns through koffi; with any other type, or a bigint
 * made for the call, it is no faster (measured, Node 26.10).
 *
 * It is used where it is found and never needed. Arguments of 32 bits cross as pointers too: the
 * calling conventions of x86-64 and AArch64 leave the upper half of the register unspecified.
 */
import type { CUresult } from '../../ground/result.js';
import { CALLS } from './calls.js';
import type { NativeMemory } from '../../native/native-memory.js';

type PointerCall<A extends bigint[]> = (...args: A) => CUresult;

/** Each is undefined where the library has no such symbol. */
export interface PointerCalls {
  readonly cuLaunchKernelEx:
    PointerCall<[config: bigint, f: bigint, kernelParams: bigint, extra: bigint]> | undefined;
  readonly cuStreamQuery: PointerCall<[stream: bigint]> | undefined;
  readonly cuGraphLaunch: PointerCall<[exec: bigint, stream: bigint]> | undefined;
  readonly cuStreamWriteValue32:
    PointerCall<[stream: bigint, addr: bigint, value: bigint, flags: bigint]> | undefined;
}

/** A handle as a bigint, kept for the next call: the same one is mostly used again and again. */
export class KeptPointer {
  private handle = 0;
  private pointer = 0n;

  of(handle: number): bigint {
    if (handle !== this.handle) {
      this.handle = handle;
      this.pointer = BigInt(handle);
    }
    return this.pointer;
  }
}

/**
 * 32 bits that are others each time, as a bigint: read from a typed array it is made within
 * optimised code (3 ns; BigInt() takes 20). All hosts that CUDA runs on are little-endian.
 */
export class FreshPointer {
  private readonly pointers = new BigUint64Array(1);
  private readonly words = new Int32Array(this.pointers.buffer);

  of(value: number): bigint {
    this.words[0] = value;
    return this.pointers[0]!;
  }
}

interface NodeFfi {
  dlopen(
    path: string,
    functions: Record<string, { arguments: readonly string[]; return: string }>,
  ): {
    functions: Record<string, (...args: bigint[]) => number>;
  };
}

/**
 * The calls by way of `node:ffi`; undefined where Node has none, does not allow it, or it does not
 * work as expected.
 */
export function pointerCalls(path: string, scratch: NativeMemory): PointerCalls | undefined {
  const ffi = loadNodeFfi();
  if (ffi === undefined) return undefined;
  const bind = (
    name: keyof PointerCalls | 'cuDriverGetVersion',
  ): ((...args: bigint[]) => number) | undefined => {
    const row = CALLS[name];
    for (const symbol of row.symbols) {
      try {
        return ffi.dlopen(path, {
          [symbol]: { arguments: row.args.map(() => 'pointer'), return: 'int32' },
        }).functions[symbol];
      } catch {
        // The next older symbol, or none: koffi says what is missing.
      }
    }
    return undefined;
  };
  // An interface that may still change is tried before it is trusted.
  scratch.i32[0] = -1;
  try {
    if (bind('cuDriverGetVersion')?.(BigInt(scratch.address)) !== 0 || scratch.i32[0] <= 0)
      return undefined;
  } catch {
    return undefined;
  }
  return {
    cuLaunchKernelEx: bind('cuLaunchKernelEx'),
    cuStreamQuery: bind('cuStreamQuery'),
    cuGraphLaunch: bind('cuGraphLaunch'),
    cuStreamWriteValue32: bind('cuStreamWriteValue32'),
  };
}

function loadNodeFfi(): NodeFfi | undefined {
  const host = process as { getBuiltinModule?: (name: string) => unknown };
  if (host.getBuiltinModule === undefined) return undefined;
  // Node warns of it when it is loaded; whoever uses this package did not choose it and has nothing
  // to do about it.
  const emitWarning: unknown = Reflect.get(process, 'emitWarning');
  process.emitWarning = () => undefined;
  try {
    return host.getBuiltinModule('node:ffi') as NodeFfi | undefined;
  } catch {
    return undefined;
  } finally {
    Reflect.set(process, 'emitWarning', emitWarning);
  }
}
