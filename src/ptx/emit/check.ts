// Calls of the checker's functions, in code compiled with `check`: ../check.ts describes what they
// report.

import { CHECK_GAP } from '../check.js';
import { ACCESS, ACCESS_SPACES, ARRIVAL, IN_FLIGHT, SHUFFLE } from '../check.js';
import type { Arg, Inst, LoweredFunction } from '../analysis/program.js';
import { FAULT } from '../context.js';
import { scalarType } from '../scalar-types.js';
import type { Signature } from '../wasm/signature.js';
import type { Emitter } from './emitter.js';
import type { AccessSpace, Place } from './place.js';

const B32 = scalarType('b32');
const PREDICATE = scalarType('pred');
const none: Signature['results'] = [];

/** What code compiled with `check` imports from `env`, besides the memory and host functions. */
export const CHECK_FUNCTIONS: Readonly<Record<string, Signature>> = {
  /** ctx, thread, address, bytes, ACCESS, line → whether to stop. */
  check_access: { params: ['i32', 'i32', 'i32', 'i32', 'i32', 'i32'], results: ['i32'] },
  /**
   * The same for a load that uses only some of its bytes: a bit for each used byte, and the load's
   * number or -1.
   */
  check_load: {
    params: ['i32', 'i32', 'i32', 'i32', 'i32', 'i32', 'i32', 'i32'],
    results: ['i32'],
  },
  /**
   * ctx, thread, number of a load, a bit for each of its bytes from which a chosen value is
   * computed.
   */
  check_chosen: { params: ['i32', 'i32', 'i32', 'i32'], results: none },
  /** address, bytes, number of a load, the first of its bytes that are stored here. */
  check_stored: { params: ['i32', 'i32', 'i32', 'i32'], results: none },
  /** to, from, bytes: a copy from memory to memory. */
  check_copied: { params: ['i32', 'i32', 'i32'], results: none },
  /** ctx, thread, whether its scope is the block only. */
  check_fence: { params: ['i32', 'i32', 'i32'], results: none },
  /** ctx, thread, ARRIVAL, a, b, line */
  check_arrive: { params: ['i32', 'i32', 'i32', 'i32', 'i32', 'i32'], results: none },
  /** ctx, first thread, end: some of these threads may have been released. */
  check_released: { params: ['i32', 'i32', 'i32'], results: none },
  /** ctx: all threads of the block's cluster have arrived at its barrier. */
  check_cluster: { params: ['i32'], results: none },
  /** ctx, thread, address, number of the function: the lifetime of its frame begins. */
  check_frame: { params: ['i32', 'i32', 'i32', 'i32'], results: none },
  /**
   * ctx, thread, line: the thread and line of the next call of a function that does not get them.
   */
  check_caller: { params: ['i32', 'i32', 'i32'], results: none },
  /** ctx, thread, IN_FLIGHT, GROUP_EVENT or the groups that may stay in flight */
  check_group: { params: ['i32', 'i32', 'i32', 'i32'], results: none },
  /**
   * address, bytes, ACCESS: an access in such a function; an exception ends the function if it has
   * to stop.
   */
  check_touch: { params: ['i32', 'i32', 'i32'], results: none },
};

const STRONG = new Set(['volatile', 'relaxed', 'acquire', 'release', 'acq_rel', 'mmio']);

/** The access of waiting at an mbarrier, and of arriving. */
const AWAITS = ACCESS.atomic | ACCESS.strong | ACCESS.acquire | ACCESS.barrier;
export const ARRIVES = AWAITS | ACCESS.release;

/** What the instruction does at the address `arg`. */
function accessKind(inst: Inst, arg: Arg): number {
  const { mnemonic, modifiers } = inst;
  switch (mnemonic) {
    case 'ld':
    case 'ldu':
    case 'ldmatrix':
      return ACCESS.read;
    // The third operand of an asynchronous one is the mbarrier that counts its bytes.
    case 'st':
    case 'stmatrix':
      return inst.args.indexOf(arg) === 2 ? ARRIVES : ACCESS.write;
    case 'atom':
    case 'red':
      return inst.args.indexOf(arg) === 2 ? ARRIVES : ACCESS.atomic | ACCESS.strong;
    case 'mbarrier':
      if (modifiers[0] === 'init') return ACCESS.write;
      // A thread may end a barrier after one lane of each warp has learned that the others have
      // finished, which orders no access of the other lanes. The last thread in the destructor of a
      // cuda::pipeline does so. The access is strong, as those of the others to the barrier are.
      if (modifiers[0] === 'inval') return ACCESS.write | ACCESS.strong;
      return modifiers[0]!.endsWith('_wait') ? AWAITS : ARRIVES;
    case 'wmma':
      return modifiers[0] === 'load' ? ACCESS.read : ACCESS.write;
    // cp.async.mbarrier.arrive, and the mbarrier that counts bytes.
    case 'cp':
      if (modifiers.includes('mbarrier')) return ARRIVES;
      if (inst.args.indexOf(arg) >= (modifiers.includes('tensor') ? 2 : 3)) return ARRIVES;
      if (modifiers.includes('reduce')) {
        if (inst.args[0] === arg) return ACCESS.atomic | ACCESS.strong;
      } else if (inst.args[1] === arg) return ACCESS.read | ACCESS.copy;
  }
  return inst.args.indexOf(arg) === 0 ? ACCESS.write : ACCESS.read;
}

function accessFlags(inst: Inst, arg: Arg, space: AccessSpace): number {
  const { modifiers } = inst;
  let flags = accessKind(inst, arg);
  if (modifiers.some((word) => STRONG.has(word))) flags |= ACCESS.strong;
  if (modifiers.includes('acquire') || modifiers.includes('acq_rel')) flags |= ACCESS.acquire;
  if (modifiers.includes('release') || modifiers.includes('acq_rel')) flags |= ACCESS.release;
  if (modifiers.includes('cta')) flags |= ACCESS.block;
  if (inst.mnemonic === 'st' && !modifiers.includes('async') && !modifiers.includes('bulk'))
    flags |= ACCESS.store;
  return (
    flags |
    (inFlight(inst, arg) << ACCESS.inFlightShift) |
    (ACCESS_SPACES.indexOf(space) << ACCESS.spaceShift)
  );
}

/** The operations among which an access is in flight after its instruction; 0 if it is not. */
function inFlight({ mnemonic, modifiers, args }: Inst, arg: Arg): number {
  if (mnemonic !== 'cp' || args.indexOf(arg) > 1) return 0;
  if (modifiers.includes('bulk_group')) return IN_FLIGHT.bulk;
  return modifiers.includes('bulk') || modifiers.includes('mbarrier') ? 0 : IN_FLIGHT.copy;
}

/** Reports what happens to the thread's groups of asynchronous operations. */
export function emitGroupCheck(
  e: Emitter,
  operations: (typeof IN_FLIGHT)[keyof typeof IN_FLIGHT],
  event: number,
): void {
  if (!e.around.check) return;
  e.code.get(e.ctx).get(e.thread).i32(operations).i32(event);
  e.call('check_group');
}

/** Reports an access whose address has been checked. */
export function emitAccessCheck(
  e: Emitter,
  place: Place,
  arg: Arg,
  size: number | (() => void),
  space: AccessSpace,
): void {
  // Parameters of the kernel are complete, and the offset was checked at compile time.
  if (arg.kind === 'address' && arg.symbol?.kind === 'entryParam') return;
  const { code, inst } = e;
  const flags = accessFlags(inst, arg, space);
  const decisive = e.copies?.decisive(inst) ?? -1;
  const slot = e.copies?.slot(inst) ?? -1;
  if (decisive === -1 && slot < 0) emitTouch(e, place, size, flags);
  else
    emitTouch(e, place, size, flags, () => {
      code.i32(decisive).i32(slot);
    });
  if (inst.args[0] !== arg) return;
  for (const { at, bytes, slot: load, from } of e.copies?.of(inst) ?? []) {
    code
      .get(place.local)
      .i32(place.offset + at)
      .op('i32.add')
      .i32(bytes)
      .i32(load)
      .i32(from);
    e.call('check_stored');
  }
}

/** Reports the loaded bytes from which the value that a `selp` chooses is computed. */
export function emitChoiceCheck(e: Emitter): void {
  const { code, inst } = e;
  const sides = inst.mnemonic === 'selp' ? e.copies?.chosen(inst) : undefined;
  sides?.forEach((side, index) => {
    if (side.length === 0) return;
    e.push(inst.args[3]!, PREDICATE);
    if (index === 1) code.op('i32.eqz');
    e.when(() => {
      for (const { slot, bytes } of side) {
        code.get(e.ctx).get(e.thread).i32(slot).i32(bytes);
        e.call('check_chosen');
      }
    });
  });
}

/** Reports a copy from memory to memory, whether the bytes were written before or not. */
export function emitCopyCheck(
  e: Emitter,
  target: Place,
  source: Place,
  pushBytes: () => void,
): void {
  if (!e.around.check) return;
  for (const { local, offset } of [target, source]) e.code.get(local).i32(offset).op('i32.add');
  pushBytes();
  e.call('check_copied');
}

/**
 * The same for an instruction that accesses memory in a function. `size` is the bytes, or code that
 * pushes them; `load` pushes what a load reports in addition.
 */
export function emitTouch(
  e: Emitter,
  place: Place,
  size: number | (() => void),
  flags: number,
  load?: () => void,
): void {
  const { code } = e;
  const pushAddress = (): void => {
    code.get(place.local);
    if (place.offset) code.i32(place.offset).op('i32.add');
  };
  code.get(e.ctx).get(e.thread);
  pushAddress();
  if (typeof size === 'number') code.i32(size);
  else size();
  code.i32(flags).i32(e.line);
  load?.();
  e.call(load ? 'check_load' : 'check_access');
  e.when(() => {
    code.get(e.ctx).i32(FAULT.checked).get(e.thread).i32(e.line);
    pushAddress();
    code.op('i64.extend_i32_u');
    e.call('fault');
    e.leaveFaulted();
  });
}

export function emitFenceCheck(e: Emitter): void {
  e.code
    .get(e.ctx)
    .get(e.thread)
    .i32(e.has('cta') ? 1 : 0);
  e.call('check_fence');
}

/** Reports the caller of a host or run-time function that does not get the thread and the line. */
export function emitCallerCheck(e: Emitter): void {
  e.code.get(e.ctx).get(e.thread).i32(e.line);
  e.call('check_caller');
}

/** Warp operations whose last operand is the mask. */
const MASKED = new Set(['shfl', 'vote', 'match', 'redux', 'elect']);

/** Reports what the thread is about to wait for. */
export function emitArrivalCheck(e: Emitter): void {
  const { code, inst } = e;
  const { kind, a, b } = arrivalOf(inst);
  code.get(e.ctx).get(e.thread).i32(kind);
  for (const operand of [a, b]) {
    if (typeof operand === 'number') code.i32(operand);
    else if (typeof operand === 'function') operand(e);
    else e.push(operand, B32);
  }
  code.i32(e.line);
  e.call('check_arrive');
}

/**
 * A number that is reported for a thread's arrival: an operand, a constant, or code that pushes it.
 */
type Told = Arg | number | ((e: Emitter) => void);

/** `shfl.idx`: the lane in bits 0 to 4, the control word above, and a bit that marks it. */
const shuffleSource =
  (args: readonly Arg[]) =>
  (e: Emitter): void => {
    const { code } = e;
    e.push(args[2]!, B32);
    code.i32(31).op('i32.and');
    e.push(args[3]!, B32);
    code
      .i32(0x1f1f)
      .op('i32.and')
      .i32(SHUFFLE.control)
      .op('i32.shl')
      .op('i32.or')
      .i32(SHUFFLE.named)
      .op('i32.or');
  };

function arrivalOf(inst: Inst): { kind: number; a: Told; b: Told } {
  const { mnemonic, modifiers, args, source } = inst;
  if ((mnemonic === 'bar' || mnemonic === 'barrier') && !modifiers.includes('warp')) {
    if (modifiers.includes('cluster')) return { kind: ARRIVAL.cluster, a: 0, b: 0 };
    const kind = modifiers.includes('arrive')
      ? ARRIVAL.arrive
      : mnemonic === 'bar' || modifiers.includes('aligned')
        ? ARRIVAL.alignedBarrier
        : ARRIVAL.barrier;
    const [a = 0, b = 0] = modifiers.includes('red') ? args.slice(1, -1) : args;
    return { kind, a, b };
  }
  // wmma.load and wmma.store wait as bar.warp.sync does (analysis/blocks.ts), but order no
  // accesses.
  if (modifiers.includes('warp') && source.mnemonic === mnemonic)
    return { kind: ARRIVAL.warpBarrier, a: args[0] ?? -1, b: 0 };
  if (!modifiers.includes('sync')) return { kind: ARRIVAL.gathering, a: 0, b: 0 };
  // Matrix operations name no threads: they are for the whole warp. A shuffle that names its source
  // reports which.
  const b = mnemonic === 'shfl' && modifiers.includes('idx') ? shuffleSource(args) : 0;
  return { kind: ARRIVAL.warpOperation, a: MASKED.has(mnemonic) ? (args.at(-1) ?? -1) : -1, b };
}

/** Runs at the beginning of a called function. The frame's address is on the stack. */
export function emitFrameCheck(e: Emitter, lowered: LoweredFunction): void {
  const frames = e.around.check!.frames;
  const number =
    frames.push({
      name: lowered.source.name,
      bytes: lowered.frameBytes,
      variables: lowered.frameVariables,
    }) - 1;
  e.code.get(e.ctx).get(e.thread);
  e.pushFrame();
  e.code.i32(number);
  e.call('check_frame');
}

export const gapOf = (check: boolean): number => (check ? CHECK_GAP : 0);
