/**
 * From what a kernel reports to what the driver returns: the result code that a GPU would give, and a sentence that
 * names the kernel, the line of PTX, the block, the thread and the address.
 */
import { CTX, FAULT, STATUS, waitingThreads } from '../../../ptx/index.js';
import type { CheckKind, CheckReport } from '../../check-report.js';
import { CUresult } from '../../result.js';
import { summary } from '../check/checker.js';
import { hex } from '../failure.js';
import type { BlockSlot } from './block-slots.js';
import type { LaunchOperation } from './launch-operation.js';
import { describeWaits } from './waits.js';

export interface Fault {
  result: CUresult;
  detail: string;
  /** What a device that is checked says about it. */
  reports?: readonly CheckReport[];
}

interface FaultKind {
  result: CUresult;
  says: (address: string, assertion: string | undefined) => string;
}

/** What the driver says where the checker stopped a kernel: what a GPU would, where it has a word for it. */
const CHECKED: Readonly<Partial<Record<CheckKind, CUresult>>> = {
  'out-of-bounds': CUresult.CUDA_ERROR_ILLEGAL_ADDRESS,
  'use-after-free': CUresult.CUDA_ERROR_ILLEGAL_ADDRESS,
  misaligned: CUresult.CUDA_ERROR_MISALIGNED_ADDRESS,
  'wrong-space': CUresult.CUDA_ERROR_INVALID_ADDRESS_SPACE,
};

const STUCK: FaultKind = {
  result: CUresult.CUDA_ERROR_LAUNCH_FAILED,
  says: () => 'every thread of the block waits at a barrier that the others will never reach',
};

const KINDS: Readonly<Record<number, FaultKind>> = {
  [FAULT.outOfBounds]: { result: CUresult.CUDA_ERROR_ILLEGAL_ADDRESS, says: (address) => `read or write out of bounds at ${address}` },
  [FAULT.misaligned]: { result: CUresult.CUDA_ERROR_MISALIGNED_ADDRESS, says: (address) => `misaligned read or write at ${address}` },
  [FAULT.trap]: { result: CUresult.CUDA_ERROR_LAUNCH_FAILED, says: () => 'the kernel executed trap' },
  [FAULT.assert]: { result: CUresult.CUDA_ERROR_ASSERT, says: (_, assertion) => assertion ?? 'an assertion failed' },
  [FAULT.divergentBarrier]: STUCK,
  [FAULT.stackOverflow]: { result: CUresult.CUDA_ERROR_HARDWARE_STACK_ERROR, says: () => 'calls are nested deeper than the call stack' },
  [FAULT.invalidCall]: { result: CUresult.CUDA_ERROR_INVALID_PC, says: (address) => `indirect call of ${address}, which is no function` },
  [FAULT.runaway]: { result: CUresult.CUDA_ERROR_LAUNCH_TIMEOUT, says: () => 'a loop that cannot be suspended ran without end' },
};

const UNKNOWN: FaultKind = { result: CUresult.CUDA_ERROR_LAUNCH_FAILED, says: () => 'the kernel failed' };

/** A kernel returned `fault` or `stuck`. */
export function describeFault(launch: LaunchOperation, slot: BlockSlot, status: number): Fault {
  const { context, name } = launch.func;
  const { words } = context.memory;
  const at = slot.address >>> 2;
  const kind = status === STATUS.stuck ? STUCK : KINDS[words[at + (CTX.faultKind >> 2)]!] ?? UNKNOWN;
  const address = (words[at + (CTX.faultAddress >> 2)]! >>> 0) + (words[at + (CTX.faultAddress >> 2) + 1]! >>> 0) * 2 ** 32;
  const line = words[at + (CTX.faultLine >> 2)]!;
  const thread = words[at + (CTX.faultThread >> 2)]!;
  const assertion = context.failedAssertion;
  context.failedAssertion = undefined;
  if (launch.watch !== undefined) {
    const reports = context.checker!.describeFault(launch.watch, slot, words[at + (CTX.faultKind >> 2)]!, thread, line, address);
    const { fatal } = launch.watch;
    if (fatal !== undefined) return checked(fatal, reports);
  }
  const waits = kind === STUCK ? `: ${describeWaits(waitingThreads(words, slot.address, launch.func.kernel.waits)).text}` : '';
  const where = [line > 0 ? `PTX line ${line}` : '', blockText(launch, slot), status === STATUS.stuck ? '' : threadText(launch, thread)];
  return {
    result: kind.result,
    detail: `${name}: ${kind.says(hex(address), assertion)}${waits}, ${where.filter((part) => part !== '').join(', ')}`,
  };
}

function checked(fatal: CheckReport, reports: readonly CheckReport[]): Fault {
  return { result: CHECKED[fatal.kind] ?? CUresult.CUDA_ERROR_LAUNCH_FAILED, detail: summary([fatal, ...reports.filter((report) => report !== fatal)]), reports };
}

/** WebAssembly stopped the kernel itself. */
export function describeTrap(launch: LaunchOperation, slot: BlockSlot, trap: unknown): Fault {
  if (launch.watch !== undefined) {
    const reports = launch.func.context.checker!.describeFault(launch.watch, slot, FAULT.none, 0, 0, 0);
    const { fatal } = launch.watch;
    if (fatal !== undefined) return checked(fatal, reports);
  }
  const message = trap instanceof Error ? trap.message : String(trap);
  let result: CUresult = CUresult.CUDA_ERROR_LAUNCH_FAILED;
  if (message.includes('out of bounds')) result = CUresult.CUDA_ERROR_ILLEGAL_ADDRESS;
  else if (message.includes('call stack')) result = CUresult.CUDA_ERROR_HARDWARE_STACK_ERROR;
  return { result, detail: `${launch.func.name}: ${message}, ${blockText(launch, slot)}` };
}

function blockText(launch: LaunchOperation, slot: BlockSlot): string {
  const at = (slot.address + CTX.ctaid) >>> 2;
  const { words } = launch.func.context.memory;
  return `block (${words[at]},${words[at + 1]},${words[at + 2]})`;
}

function threadText(launch: LaunchOperation, thread: number): string {
  const [x = 1, y = 1] = launch.block;
  return `thread (${thread % x},${Math.floor(thread / x) % y},${Math.floor(thread / (x * y))})`;
}
