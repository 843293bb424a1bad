/** Shared, local and dynamic shared memory that a body declares. */
import { STORAGES } from '../storage-types.js';
import type { DeclaredArray, StorageType } from '../tree.js';
import { arity, known, number, type Call } from './calls.js';
import { storageBytes } from './types.js';
import type { Value } from './values.js';
import { commonType } from './operands.js';

/**
 * A module declares at most 48 KiB of shared memory (ptxas); a thread has 512 KiB of local memory
 * (CUDA C++ Programming Guide, table of compute capabilities).
 */
const limits = {
  shared: { bytes: 48 << 10, fix: 'Use gpu.dynamicShared, whose bytes the launch gives.' },
  local: { bytes: 512 << 10, fix: 'Use a tensor.' },
} as const;

/** The constant lengths of a call, one for each axis. */
function lengths(call: Call): number[] {
  const { pass, node, name } = call;
  const dims = call.args.map((_, at) => known(call, at));
  for (const [at, dim] of dims.entries()) {
    if (dim < 1)
      pass.fail(
        call.argNodes[at] ?? node,
        `${name} takes lengths from 1, and got ${dim}`,
        'Give it the number of elements.',
      );
  }
  return dims;
}

function declare(space: 'shared' | 'local', storage: StorageType) {
  return (call: Call): Value => {
    const { pass, node, name } = call;
    arity(call, 1, 3);
    const dims = lengths(call);
    const length = dims.reduce((a, b) => a * b, 1);
    const { bytes, fix } = limits[space];
    if (length * storageBytes[storage] > bytes) {
      pass.fail(
        node,
        `${name} of ${length} elements takes ${length * storageBytes[storage]} bytes, and ` +
          `${space} memory has ${bytes} here`,
        fix,
      );
    }
    const declared: DeclaredArray = { name: pass.uniqueName(space), space, storage, length };
    // As in CUDA, there is one shared array for each place that declares it, however often the
    // function around it is called.
    const key =
      space === 'shared'
        ? `${pass.frame.text}:${node.start}:${storage}:${dims.join('x')}`
        : pass.freshKey(node, 'array');
    const array = pass.array(key, declared);
    const all = pass.arrays.reduce(
      (sum, each) => sum + (each.space === space ? each.length * storageBytes[each.storage] : 0),
      0,
    );
    if (all > bytes)
      pass.fail(
        node,
        `With this ${name} the kernel's ${space} arrays take ${all} bytes, and ${space} ` +
          `memory has ${bytes} here`,
        fix,
      );
    if (space === 'local') pass.emit({ kind: 'clear', array, span: pass.span(node) });
    return { kind: 'array', array, dims };
  };
}

export function arrayFunctions(space: 'shared' | 'local'): Record<string, (call: Call) => Value> {
  return Object.fromEntries(STORAGES.map((storage) => [storage, declare(space, storage)]));
}

/** Declares an array of a value's type, in kernels that the compiler itself writes. */
export function arrayLike(space: 'shared' | 'local') {
  return (call: Call): Value =>
    declare(space, commonType(number(call, 1)))({ ...call, args: call.args.slice(0, 1) });
}

/**
 * Dynamic shared memory. Without lengths an array has as many elements as the launch's bytes hold.
 */
export const dynamicArrayFunctions: Readonly<Record<string, (call: Call) => Value>> =
  Object.fromEntries(
    STORAGES.map((storage) => [
      storage,
      (call: Call): Value => {
        arity(call, 0, 3);
        const dims = call.args.length === 0 ? [undefined] : lengths(call);
        const array = call.pass.array(`dynamic:${storage}`, {
          name: call.pass.uniqueName('dynamic'),
          space: 'dynamic',
          storage,
          length: 0,
        });
        return { kind: 'array', array, dims };
      },
    ]),
  );
