// Finds the functions that stay functions: those that are called, and those whose address is taken.

import { functionAddress } from './data-layout.js';
import { lowerFunction } from './lower.js';
import type { LoweringContext } from './lowering-state.js';
import type { PtxFunction } from '../syntax/ast.js';
import { isLabel } from './program.js';
import type { LoweredFunction } from './program.js';

/** @param taken the functions whose address is taken; others are added when they are found */
export function calledFunctions(
  kernels: readonly LoweredFunction[],
  context: LoweringContext,
  taken: PtxFunction[],
): Map<PtxFunction, LoweredFunction> {
  const { module } = context;
  const found = new Map<PtxFunction, LoweredFunction>();
  const add = (first: PtxFunction): void => {
    const queue = [first];
    for (let target = queue.pop(); target; target = queue.pop()) {
      if (found.has(target)) continue;
      if (module.perThread.length) {
        throw module.source.error(
          'unsupported',
          `'${target.name}' is recursive or called through a pointer, and the module has ` +
            'registers or .local variables outside functions: not covered. Declare them in ' +
            'each function',
          target.at,
        );
      }
      const lowered = lowerFunction(target, context);
      found.set(target, lowered);
      const pointed = addressesIn(lowered);
      for (const each of pointed) functionAddress(each, taken);
      queue.push(...lowered.calls, ...pointed.filter((each) => !context.waiting.includes(each)));
    }
  };
  for (const lowered of kernels) {
    for (const callee of lowered.calls) add(callee);
    for (const pointed of addressesIn(lowered)) functionAddress(pointed, taken);
  }
  if ([...kernels, ...found.values()].some(({ indirectCalls }) => indirectCalls))
    for (const target of taken) if (target.body && !context.waiting.includes(target)) add(target);
  return found;
}

function addressesIn(lowered: LoweredFunction): PtxFunction[] {
  const found: PtxFunction[] = [];
  const { code } = lowered;
  for (let at = 0; at < code.length; at++) {
    const entry = code[at]!;
    if (isLabel(entry)) continue;
    for (let place = 0; place < entry.args.length; place++) {
      const arg = entry.args[place]!;
      if (arg.kind === 'symbol' && arg.symbol.kind === 'function') found.push(arg.symbol.target);
    }
  }
  return found;
}
