/**
 * Node's own foreign function interface (`node:ffi`, experimental, Node 26) for the few calls that
 * are made repeatedly. Optimised code calls C in 5 ns where every argument is a pointer passed as
 * an existing bigint, against 44 ns through koffi; with any other type, or a bigint made for the
 * call, it is no faster (measured, Node 26.10).
 *
 * It is used where it is available and never required. Arguments of 32 bits are passed as pointers,
 * too: the calling conventions of x86-64 and AArch64 leave the upper half of the register
 * unspecified.
 */
import type { PointerCallsOf, Prototype } from './call-row.js';
import type { CALLS } from './calls.js';
import type { NativeMemory } from '../../native/native-memory.js';

/** The calls whose rows have `nodeFfi`. */
export type PointerCalls = PointerCallsOf<typeof CALLS>;

/** A handle as a bigint, kept for the next call, which mostly has the same one. */
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
 * Thirty-two bits that differ from call to call, as a bigint: read from a typed array it is made
 * within optimised code (3 ns; BigInt() takes 20). All hosts that CUDA runs on are little-endian.
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
 * Returns the calls through `node:ffi`; undefined where Node does not have it, does not allow it,
 * or it does not work as expected.
 */
export function pointerCalls(
  path: string,
  scratch: NativeMemory,
  rows: typeof CALLS,
): PointerCalls | undefined {
  const ffi = loadNodeFfi();
  if (ffi === undefined) return undefined;
  const bind = (row: Prototype): ((...args: bigint[]) => number) | undefined => {
    for (const symbol of row.symbols) {
      try {
        return ffi.dlopen(path, {
          [symbol]: { arguments: row.args.map(() => 'pointer'), return: 'int32' },
        }).functions[symbol];
      } catch {
        // The next older symbol is tried; if there is none, koffi reports what is missing.
      }
    }
    return undefined;
  };
  // The interface may still change, so one call is tried first.
  scratch.i32[0] = -1;
  try {
    if (bind(rows.cuDriverGetVersion)?.(BigInt(scratch.address)) !== 0 || scratch.i32[0] <= 0)
      return undefined;
  } catch {
    return undefined;
  }
  return Object.fromEntries(
    Object.entries<Prototype>(rows)
      .filter(([, row]) => row.nodeFfi)
      .map(([name, row]) => [name, bind(row)]),
  ) as unknown as PointerCalls;
}

function loadNodeFfi(): NodeFfi | undefined {
  const host = process as { getBuiltinModule?: (name: string) => unknown };
  if (host.getBuiltinModule === undefined) return undefined;
  // Node warns when it is loaded. A user of this package did not choose it, so the warning is
  // suppressed.
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
