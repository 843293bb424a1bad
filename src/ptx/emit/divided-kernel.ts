// A kernel that is too large for one function, as several functions: see analysis/parts.ts. A
// function with the signature of other kernels' bodies calls one part after the other, each for all
// threads that are in it.

import type { Block } from '../analysis/blocks.js';
import { computeLiveness } from '../analysis/liveness.js';
import type { Liveness } from '../analysis/liveness.js';
import { divide, entriesOf } from '../analysis/parts.js';
import type { LoweredFunction } from '../analysis/program.js';
import { analyseShape } from '../analysis/regions.js';
import type { Shape } from '../analysis/regions.js';
import { CTX } from '../context.js';
import type { Rules } from '../rules/rule.js';
import type { LocalType } from '../scalar-types.js';
import { Code } from '../wasm/code.js';
import type { ModuleBuilder } from '../wasm/module.js';
import type { Surroundings } from './surroundings.js';
import { SCRATCH } from './frame-layout.js';
import { KernelEmitter } from './kernel.js';

/**
 * A part may be as large as this fraction of a function, since parts of equally many instructions
 * differ in size.
 */
const SHARE = 0.5;
/** The number of attempts, each with parts of half as many instructions. */
const MOST_TRIES = 6;
/**
 * With fewer instructions a part consists mostly of code that suspends threads and resumes them.
 */
const FEWEST = 16;

export interface Emitted {
  locals: readonly LocalType[];
  code: Uint8Array;
}

export interface Limits {
  bytes: number;
  locals: number;
}

export const fitsLimits = ({ locals, code }: Emitted, limits: Limits): boolean =>
  code.length <= limits.bytes && locals.length <= limits.locals;

export interface DividedKernel {
  /** What all parts have in common. */
  whole: KernelEmitter;
  blocks: readonly Block[];
  shape: Shape;
  liveness: Liveness;
  functions: readonly Emitted[];
}

/** Undefined if no number of parts makes them small enough. */
export function divideKernel(
  lowered: LoweredFunction,
  blocks: readonly Block[],
  shape: Shape,
  { locals, code }: Emitted,
  limits: Limits,
  rules: Rules,
  around: Surroundings,
  callsFunctions: boolean,
): DividedKernel | undefined {
  const instructions = shape.order.reduce((sum, index) => sum + blocks[index]!.insts.length + 1, 0);
  const excess = Math.max(code.length / limits.bytes, locals.length / limits.locals);
  let most = Math.floor((instructions / excess) * SHARE);
  for (let tries = 0; tries < MOST_TRIES && most >= FEWEST; tries++, most >>= 1) {
    const division = divide(blocks, shape, most);
    const liveness = computeLiveness(division.blocks, lowered.registers);
    const wholeShape = analyseShape(division.blocks);
    const whole = new KernelEmitter(
      lowered,
      division.blocks,
      wholeShape,
      liveness,
      rules,
      around,
      callsFunctions,
      { entries: entriesOf(division) },
    );
    const functions: Emitted[] = [];
    for (const { blocks: own, shape: ownShape, members } of division.parts) {
      const emitted = new KernelEmitter(
        lowered,
        own,
        ownShape,
        liveness,
        rules,
        around,
        callsFunctions,
        { whole, members },
      ).emit();
      if (!fitsLimits(emitted, limits)) break;
      functions.push(emitted);
    }
    if (functions.length === division.parts.length) {
      return { whole, blocks: division.blocks, shape: wholeShape, liveness, functions };
    }
  }
  return undefined;
}

/**
 * (ctx, from, to) → status for all parts. If one yields, the next call begins with it, at the
 * thread at which it stopped.
 *
 * @param byWarps calls are for the threads of one warp
 */
export function callParts(
  parts: readonly number[],
  byWarps: boolean,
  module: ModuleBuilder,
): Emitted {
  const code = new Code({
    local: () => 'i32',
    global: (index) => module.globalType(index),
    function: (index) => module.signature(index),
    results: () => ['i32'],
  });
  const [ctx, from, to, scratch, status, part] = [0, 1, 2, 3, 4, 5];
  code.get(ctx).memory('i32.load', CTX.scratch).set(scratch);
  code.get(scratch).memory('i32.load', SCRATCH.pass).set(part);
  parts.forEach((index, number) => {
    code.get(part).i32(number).op('i32.le_s').op('if').byte(0x40);
    code.get(ctx).get(from).get(to).op('call').u32(index).set(status);
    code.get(status).op('if').byte(0x40);
    code
      .get(scratch)
      .i32(number)
      .memory('i32.store', SCRATCH.pass)
      .get(status)
      .op('return')
      .op('end');
    if (byWarps) code.get(to).i32(1).op('i32.sub').i32(-32).op('i32.and').set(from);
    else code.i32(0).set(from);
    code.op('end');
  });
  code.get(scratch).i32(0).memory('i32.store', SCRATCH.pass).i32(0).op('end');
  return { locals: ['i32', 'i32', 'i32'], code: code.finish() };
}
