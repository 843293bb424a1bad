// Clears locals of registers, so that engines do not carry values from turn to turn that no turn
// reads.

import type { Block } from '../../analysis/blocks.js';
import { instructionsOf } from '../../analysis/liveness.js';
import type { Register } from '../../analysis/program.js';
import { writesZerosAtOnce } from '../../runtime/engine.js';
import { withDeadCleared } from '../dead-local-clearing.js';
import type { LaneKernelEmitter } from '../lane-kernel.js';

/** The most registers that are cleared with those restored at an entry. */
const MOST_RESTORED = writesZerosAtOnce ? 12 : Infinity;

/**
 * The most vectors that are cleared at the beginning of a turn, in code that does not begin with
 * code for whole units: with more of them clearing costs more than it brings. An engine that writes
 * zeros at once, with 110 vectors cleared there, made a scan 1.7 times as slow, and a transpose 1.5
 * times.
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

/**
 * A turn reads no value of the turn before. Without clearing, engines carry all registers from one
 * to the next, since for them any entry may come after any.
 */
export function clearForTurn(k: LaneKernelEmitter): void {
  if (!k.runs('turn clearing')) return;
  const waited = blocksWaitedAt(k);
  if (waited.length * k.groups > MOST_CLEARED) return;
  const restored = new Set(handedRegisters(k));
  for (const entry of k.frames.live)
    k.frames.spills.needed(entry).forEach((register) => restored.add(register));
  if ([...restored].filter((register) => k.isVarying(register)).length * k.groups > MOST_RESTORED)
    return;
  clearLocals(k, restored);
  for (const block of waited) k.clearMasks(k.waitMasks(block));
}

/** Blocks at which threads wait. */
function blocksWaitedAt(k: LaneKernelEmitter): number[] {
  return k.kernel.shape.order.filter((block) => k.plan.waitsAt(block));
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

/**
 * Where the general code begins, which control seldom reaches: it reads only these registers of
 * what was computed before. No thread waits.
 */
export function clearAllBut(k: LaneKernelEmitter, kept: ReadonlySet<Register>): void {
  k.generalStarts.push(k.code.length);
  if (k.runs('turn clearing'))
    clearInGeneralForm(
      k,
      ownRegisters(k).filter((register) => !kept.has(register)),
    );
  for (const block of blocksWaitedAt(k)) k.clearMasks(k.waitMasks(block));
}

/** Registers that keep their locals throughout. */
function ownRegisters(k: LaneKernelEmitter): Register[] {
  const { blocks, shape } = k.kernel;
  const defs = shape.order.flatMap((index) =>
    instructionsOf(blocks[index]!).flatMap((inst) => inst.defs),
  );
  return [...new Set(defs)].filter((register) => !k.isBlockLocal(register));
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
