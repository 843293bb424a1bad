/**
 * From what a kernel reports to what the driver returns: the result code that a GPU would give, and a sentence that
 * names the kernel, the line of PTX, the block, the thread and the address.
 */
import { CTX, FAULT, STATUS } from '../../../ptx/index.js';
import { CUresult } from '../../result.js';
import { hex } from '../failure.js';
import type { BlockSlot } from './block-slots.js';
import type { LaunchOperation } from './launch-operation.js';

export interface Fault {
  result: CUresult;
  detail: string;
}

interface FaultKind {
  result: CUresult;
  says: (address: string, assertion: string | undefined) => string;
}

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
  if (kind === STUCK) return { result: kind.result, detail: `${name}: ${kind.says('', undefined)}: ${waitingText(launch, slot)}` };
  const where = [line > 0 ? `PTX line ${line}` : '', blockText(launch, slot), threadText(launch, thread)];
  return {
    result: kind.result,
    detail: `${name}: ${kind.says(hex(address), assertion)}, ${where.filter((part) => part !== '').join(', ')}`,
  };
}

/** Blocks that are told one by one. */
const TOLD = 8;

/** No block of the grid gets any further. `waiting` are the slots of those that have begun. */
export function describeStall(launch: LaunchOperation, waiting: readonly BlockSlot[], unstarted: number, milliseconds: number): Fault {
  const told = waiting.slice(0, TOLD).map((slot) => waitingText(launch, slot));
  if (waiting.length > TOLD) told.push(`${waiting.length - TOLD} more blocks wait`);
  if (unstarted > 0) told.push(`${unstarted} have not begun`);
  return {
    result: CUresult.CUDA_ERROR_LAUNCH_TIMEOUT,
    detail: `${launch.func.name}: the blocks wait for each other: none has got any further for ${milliseconds / 1000} s, and no other work is queued`
      + ` that could release them (for a kernel that waits for the host, raise stallLimit): ${told.join('; ')}`,
  };
}

function waitingText(launch: LaunchOperation, slot: BlockSlot): string {
  const { context, kernel } = launch.func;
  const { words } = context.memory;
  const scratch = words[(slot.address + CTX.scratch) >>> 2]!;
  const places = kernel.waiting(words, scratch, words[(slot.address + CTX.threads) >>> 2]!).map(({ line, threads, first }) => (
    `${threads === 1 ? threadText(launch, first) : `${threads} threads from ${threadText(launch, first)} on`}${line > 0 ? ` at PTX line ${line}` : ''}`));
  return `${blockText(launch, slot)}${places.length === 0 ? '' : `: ${places.join(', ')}`}`;
}

/** WebAssembly stopped the kernel itself. */
export function describeTrap(launch: LaunchOperation, slot: BlockSlot, trap: unknown): Fault {
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
