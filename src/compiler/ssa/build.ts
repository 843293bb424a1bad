/** Builds the SSA form of a typed tree. */
import type { KernelTree } from '../tree.js';
import { Builder } from './builder.js';
import type { BuildOptions, BuildRules } from './builder.js';
import { buildValue } from './expressions.js';
import { storageBytes } from '../storage-types.js';
import type { SsaFunction } from './function.js';
import { buildStatements } from './statements.js';
import { summaryOf } from './summary.js';

const rules: BuildRules = { value: buildValue, statements: buildStatements };

/**
 * The number of registers that local arrays may take, one or all together. Arrays of a tile kernel
 * are live one after the other.
 */
const MOST_REGISTERS = 256;
const MOST_OF_ALL = 4096;

/**
 * Builds the function. Local arrays are built as registers at first. An array that has a computed
 * index lies in memory, and the function is built again: at most once for each such array, and
 * mostly once for all.
 */
export function buildFunction(tree: KernelTree, options: BuildOptions): SsaFunction {
  const inMemory = new Set<number>();
  const { fragments } = summaryOf(tree.body);
  for (;;) {
    const b = new Builder(tree, options, rules);
    let next = tree.locals.length;
    let elements = 0;
    tree.arrays.forEach((array, index) => {
      if (array.space !== 'local' || inMemory.has(index) || !options.optimise) return;
      const paired = fragments.has(index) && storageBytes[array.storage] === 2;
      const variables = paired ? array.length / 2 : array.length;
      if (variables > MOST_REGISTERS || elements + variables > MOST_OF_ALL) return;
      elements += variables;
      b.registers.set(index, next);
      if (paired) b.paired.add(index);
      next += variables;
    });
    for (const [array, first] of b.registers) {
      for (let at = 0; at < b.variablesOf(array); at++)
        b.write(first + at, b.constant(b.elementRegister(array), 0));
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
