// Clears locals of registers: those that a path reads before it writes them, and those that engines
// would carry from unit to unit though none reads them.

import type { Block } from '../../analysis/blocks.js';
import type { Register } from '../../analysis/program.js';
import { writesZerosAtOnce } from '../../runtime/engine.js';
import { withDeadCleared } from '../dead-local-clearing.js';
import type { LaneKernelEmitter } from '../lane-kernel.js';

/**
 * The most vectors that are cleared where a unit begins: with more of them clearing costs more than
 * it brings. An engine that writes zeros at once, with 110 vectors cleared there, made a scan 1.7
 * times as slow, and a transpose 1.5 times.
 */
const MOST_CLEARED = writesZerosAtOnce ? 12 : 128;

export function forgetting(k: LaneKernelEmitter, code: Uint8Array): Uint8Array {
  if (!k.runs('dead-local clearing')) return code;
  return withDeadCleared(code, {
    units: k.unitStarts,
    general: k.generalStarts,
    ofInstructions: k.free('v128'),
    most: MOST_CLEARED,
    localCount: k.paramCount + k.localTypes.length,
    isVector: (local) => local >= k.paramCount && k.localTypes[local - k.paramCount] === 'v128',
  });
}

/** Registers that some path reads before it writes them start at zero. */
export function clearRegisters(k: LaneKernelEmitter): void {
  clearLocals(k, k.liveness.liveIn(0));
}

/** What the general code may need of those that hand over to it. */
export function handedRegisters(k: LaneKernelEmitter): ReadonlySet<Register> {
  return (k.handed ??= new Set(
    [...k.codePlan.general.blocks.values()]
      .filter(({ entries }) => entries.size > 0)
      .flatMap(({ block, entries }) => knownAt(k, block, Math.max(...entries.keys())))
      .filter((register) => !k.isBlockLocal(register)),
  ));
}

/** Registers that have a value before an instruction of a block. */
export function knownAt(k: LaneKernelEmitter, { index, insts }: Block, place: number): Register[] {
  return [...k.liveness.liveIn(index), ...insts.slice(0, place).flatMap((inst) => inst.defs)];
}

/** Where the general code begins, which control seldom reaches. No thread waits. */
export function beginGeneral(k: LaneKernelEmitter): void {
  k.generalStarts.push(k.code.length);
  for (const block of k.kernel.shape.order)
    if (k.plan.waitsAt(block)) k.clearMasks(k.waitMasks(block));
}

/** Clears registers in the form that the general code has them in. */
export function clearInGeneralForm(k: LaneKernelEmitter, registers: readonly Register[]): void {
  const { wholeUnit } = k;
  k.wholeUnit = false;
  clearLocals(k, registers);
  k.wholeUnit = wholeUnit;
}

function clearLocals(k: LaneKernelEmitter, registers: Iterable<Register>): void {
  const { code } = k;
  for (const register of registers) {
    if (k.isVarying(register)) {
      for (const local of k.laneLocal(register)) code.v128([0, 0, 0, 0]).set(local);
      continue;
    }
    const { wasm } = register.type;
    if (wasm === 'i64') code.i64(0);
    else if (wasm === 'f32') code.f32(0);
    else if (wasm === 'f64') code.f64(0);
    else code.i32(0);
    code.set(k.registerLocal(register));
  }
}
