/** The SSA form of a typed tree. */
import type { KernelTree } from '../tree.js';
import { Builder, readAs, registerOf } from './builder.js';
import type { BuildOptions } from './builder.js';
import type { SsaFunction } from './function.js';
import { buildStatements } from './statements.js';

/** Elements of one local array, and of all, that are tried as registers. Those of a tile kernel live one after the other. */
const MOST_REGISTERS = 256;
const MOST_OF_ALL = 4096;

/**
 * Local arrays are taken for registers at first. Where one turns out to be indexed by what is no constant it lies in memory, and all is built
 * again: at most once for each such array, and mostly once for all.
 */
export function buildFunction(tree: KernelTree, options: BuildOptions): SsaFunction {
  const inMemory = new Set<number>();
  for (;;) {
    const b = new Builder(tree, options);
    let next = tree.locals.length;
    let elements = 0;
    tree.arrays.forEach((array, index) => {
      if (array.space !== 'local' || inMemory.has(index) || !options.optimise || array.length > MOST_REGISTERS || elements + array.length > MOST_OF_ALL) return;
      elements += array.length;
      b.registers.set(index, next);
      next += array.length;
    });
    for (const [array, first] of b.registers) {
      const zero = b.constant(registerOf[readAs(tree.arrays[array]!.storage)], 0);
      for (let at = 0; at < tree.arrays[array]!.length; at++) b.write(first + at, zero);
    }
    buildStatements(b, tree.body);
    b.finish();
    if (b.indexed.size === 0) {
      b.f.entry.values.unshift(...b.firstValues);
      return b.f;
    }
    for (const array of b.indexed) inMemory.add(array);
  }
}
