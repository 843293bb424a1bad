/** Dead code elimination. */
import { resolve } from '../ssa/function.js';
import type { SsaFunction, Value } from '../ssa/function.js';
import { isPure } from '../ssa/operations.js';

/** Whether a value may be removed where it has no use. Loads may, except volatile ones. */
function droppable(value: Value): boolean {
  return (
    isPure(value.op) ||
    value.op === 'phi' ||
    (value.op === 'load' && value.memory?.cache !== 'volatile')
  );
}

/** Replaces each operand by its replacement, and removes values without a use. */
export function dropDead(f: SsaFunction): void {
  const used = new Uint8Array(f.valueCount);
  const open: Value[] = [];
  const use = (value: Value): void => {
    if (used[value.id]) return;
    used[value.id] = 1;
    open.push(value);
  };
  for (const block of f.blocks) {
    for (const value of block.values) if (!droppable(value)) use(value);
    if (block.end?.kind === 'branch') {
      block.end = { ...block.end, test: resolve(block.end.test) };
      use(block.end.test);
    }
  }
  for (let value = open.pop(); value !== undefined; value = open.pop()) {
    for (let at = 0; at < value.args.length; at++) {
      const arg = resolve(value.args[at]!);
      value.args[at] = arg;
      use(arg);
    }
  }
  for (const block of f.blocks) {
    block.values = block.values.filter(
      (value) => used[value.id] === 1 && value.replacement === undefined,
    );
    block.phis = block.phis.filter((phi) => used[phi.id] === 1 && phi.replacement === undefined);
  }
}
