// Calls of the watching functions, in code compiled with `check`: see ../check.ts for what they are told.

import { CHECK_GAP } from '../check.js';
import { ACCESS, ACCESS_SPACES, ARRIVAL } from '../check.js';
import type { Arg, Inst, LoweredFunction } from '../analysis/program.js';
import { FAULT } from '../context.js';
import { scalarType } from '../scalar-types.js';
import type { Signature } from '../wasm/module.js';
import type { Emitter } from './emitter.js';
import type { AccessSpace, Place } from './memory-access.js';

const none: Signature['results'] = [];

/** What code compiled with `check` imports from `env`, beside the memory and host functions. */
export const CHECK_FUNCTIONS: Readonly<Record<string, Signature>> = {
  /** ctx, thread, address, bytes, ACCESS, line → whether to stop */
  check_access: { params: ['i32', 'i32', 'i32', 'i32', 'i32', 'i32'], results: ['i32'] },
  /** ctx, thread, whether its scope is the block only */
  check_fence: { params: ['i32', 'i32', 'i32'], results: none },
  /** ctx, thread, ARRIVAL, a, b, line */
  check_arrive: { params: ['i32', 'i32', 'i32', 'i32', 'i32', 'i32'], results: none },
  /** ctx, first thread, end: some of these threads may have been released */
  check_released: { params: ['i32', 'i32', 'i32'], results: none },
  /** ctx, thread, address, number of the function: its frame begins to live */
  check_frame: { params: ['i32', 'i32', 'i32', 'i32'], results: none },
  /** ctx, thread, line: a host function is called next */
  check_host: { params: ['i32', 'i32', 'i32'], results: none },
};

const STRONG = new Set(['volatile', 'relaxed', 'acquire', 'release', 'acq_rel', 'mmio']);

/** What the instruction does at the address `arg`. */
function accessKind(inst: Inst, arg: Arg): number {
  const { mnemonic, modifiers } = inst;
  switch (mnemonic) {
    case 'ld': case 'ldu': case 'ldmatrix': return ACCESS.read;
    case 'st': case 'stmatrix': return ACCESS.write;
    case 'atom': case 'red': return ACCESS.atomic | ACCESS.strong;
    case 'mbarrier':
      if (modifiers[0] === 'init' || modifiers[0] === 'inval') return ACCESS.write;
      return ACCESS.atomic | ACCESS.strong | ACCESS.acquire | ACCESS.release;
    case 'cp':
      if (modifiers.includes('mbarrier')) return ACCESS.atomic | ACCESS.strong | ACCESS.acquire | ACCESS.release;
  }
  return inst.args.indexOf(arg) === 0 ? ACCESS.write : ACCESS.read;
}

function accessFlags(inst: Inst, arg: Arg, space: AccessSpace): number {
  const { modifiers } = inst;
  let flags = accessKind(inst, arg);
  if (modifiers.some(word => STRONG.has(word))) flags |= ACCESS.strong;
  if (modifiers.includes('acquire') || modifiers.includes('acq_rel')) flags |= ACCESS.acquire;
  if (modifiers.includes('release') || modifiers.includes('acq_rel')) flags |= ACCESS.release;
  if (modifiers.includes('cta')) flags |= ACCESS.block;
  return flags | ACCESS_SPACES.indexOf(space) << ACCESS.spaceShift;
}

/** Tells of an access whose address is known to be one of the memory's. */
export function emitAccessCheck(e: Emitter, place: Place, arg: Arg & { kind: 'address' }, size: number, space: AccessSpace): void {
  // Parameters of the kernel are there and complete, and the offset was checked when it was compiled.
  if (arg.symbol?.kind === 'entryParam') return;
  const { code } = e;
  const pushAddress = (): void => {
    code.get(place.local);
    if (place.offset) code.i32(place.offset).op('i32.add');
  };
  code.get(e.ctx).get(e.thread);
  pushAddress();
  code.i32(size).i32(accessFlags(e.inst, arg, space)).i32(e.line);
  e.call('check_access');
  e.when(() => {
    code.get(e.ctx).i32(FAULT.checked).get(e.thread).i32(e.line);
    pushAddress();
    code.op('i64.extend_i32_u');
    e.call('fault');
    e.leaveFaulted();
  });
}

export function emitFenceCheck(e: Emitter): void {
  e.code.get(e.ctx).get(e.thread).i32(e.has('cta') ? 1 : 0);
  e.call('check_fence');
}

export function emitHostCallCheck(e: Emitter): void {
  e.code.get(e.ctx).get(e.thread).i32(e.line);
  e.call('check_host');
}

/** Tells what the thread will wait for. */
export function emitArrivalCheck(e: Emitter): void {
  const { code, inst: { mnemonic, modifiers, args } } = e;
  const b32 = scalarType('b32');
  let kind: number = ARRIVAL.gathering;
  let a: Arg | undefined;
  let b: Arg | undefined;
  if ((mnemonic === 'bar' || mnemonic === 'barrier') && !modifiers.includes('warp')) {
    kind = modifiers.includes('arrive') ? ARRIVAL.arrive
      : mnemonic === 'bar' || modifiers.includes('aligned') ? ARRIVAL.alignedBarrier : ARRIVAL.barrier;
    const operands = modifiers.includes('red') ? args.slice(1, -1) : args;
    [a, b] = operands;
  } else if (modifiers.includes('warp')) {
    kind = ARRIVAL.warpBarrier;
    a = args[0];
  } else if (modifiers.includes('sync')) {
    kind = ARRIVAL.warpOperation;
    a = args.at(-1);
  }
  code.get(e.ctx).get(e.thread).i32(kind);
  for (const operand of [a, b]) {
    if (operand) e.push(operand, b32);
    else code.i32(0);
  }
  code.i32(e.line);
  e.call('check_arrive');
}

/** At the beginning of a called function, whose frame's address is on the stack. */
export function emitFrameCheck(e: Emitter, lowered: LoweredFunction): void {
  const frames = e.around.check!.frames;
  const number = frames.push({ name: lowered.source.name, bytes: lowered.frameBytes, variables: lowered.frameVariables }) - 1;
  e.code.get(e.ctx).get(e.thread);
  e.pushFrame();
  e.code.i32(number);
  e.call('check_frame');
}

export const gapOf = (check: boolean): number => check ? CHECK_GAP : 0;
