/**
 * Converts a kernel's fault to the driver's error: the result code that a GPU would return, and a
 * sentence that names the kernel, the line of PTX, the block, the thread and the address.
 */
import { CTX, FAULT, STATUS } from '../../../ptx/index.js';
import type { CheckKind, CheckReport } from '../../../ground/check-report.js';
import { CUresult } from '../../../ground/result.js';
import { summary } from '../check/summary.js';
import { hex } from '../failure.js';
import type { BlockSlot } from './block-slots.js';
import type { LaunchOperation } from './launch-operation.js';
import { waitsOf, waitsText } from './waits.js';

export interface Fault {
  result: CUresult;
  detail: string;
  /** The reports of a checked device. */
  reports?: readonly CheckReport[];
}

interface FaultKind {
  result: CUresult;
  says: (address: string) => string;
}

/** The result codes where the checker stopped a kernel: those of a GPU, where it has one. */
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
  [FAULT.outOfBounds]: {
    result: CUresult.CUDA_ERROR_ILLEGAL_ADDRESS,
    says: (address) => `read or write out of bounds at ${address}`,
  },
  [FAULT.misaligned]: {
    result: CUresult.CUDA_ERROR_MISALIGNED_ADDRESS,
    says: (address) => `misaligned read or write at ${address}`,
  },
  [FAULT.trap]: {
    result: CUresult.CUDA_ERROR_LAUNCH_FAILED,
    says: () => 'the kernel executed trap',
  },
  [FAULT.breakpoint]: {
    result: CUresult.CUDA_ERROR_LAUNCH_FAILED,
    says: () => 'the kernel executed brkpt, and no debugger is attached',
  },
  [FAULT.assert]: { result: CUresult.CUDA_ERROR_ASSERT, says: () => 'an assertion failed' },
  [FAULT.divergentBarrier]: STUCK,
  [FAULT.stackOverflow]: {
    result: CUresult.CUDA_ERROR_HARDWARE_STACK_ERROR,
    says: () => 'calls are nested deeper than the call stack',
  },
  [FAULT.invalidCall]: {
    result: CUresult.CUDA_ERROR_INVALID_PC,
    says: (address) => `indirect call of ${address}, which is no function`,
  },
  [FAULT.tensorMap]: {
    result: CUresult.CUDA_ERROR_ILLEGAL_INSTRUCTION,
    says: (address) =>
      `the bytes at ${address} are no tensor map, or none that the instruction can use with ` +
      'these coordinates',
  },
  [FAULT.checked]: { result: CUresult.CUDA_ERROR_LAUNCH_FAILED, says: () => 'the kernel failed' },
  [FAULT.runaway]: {
    result: CUresult.CUDA_ERROR_LAUNCH_TIMEOUT,
    says: () => 'a loop that cannot be suspended ran without end',
  },
};

/** A fault without a code: the block's context was overwritten. */
const OVERWRITTEN: FaultKind = {
  result: CUresult.CUDA_ERROR_LAUNCH_FAILED,
  says: () =>
    'what the device keeps of a running block was overwritten, as by a write far past the ' +
    "end of a buffer. Device.open('cpu', { check: true }) tells which",
};

/** Describes the fault of a kernel that returned `fault` or `stuck`. */
export function describeFault(launch: LaunchOperation, slot: BlockSlot, status: number): Fault {
  const { context, name } = launch.func;
  const { words } = context.memory;
  const ctx = launch.faultyBlock(slot);
  const at = ctx >>> 2;
  const kind =
    status === STATUS.stuck ? STUCK : (KINDS[words[at + (CTX.faultKind >> 2)]!] ?? OVERWRITTEN);
  // The address is computed exactly, since one just below null is near 2^64.
  const [low, high] = [
    words[at + (CTX.faultAddress >> 2)]!,
    words[at + (CTX.faultAddress >> 2) + 1]!,
  ];
  const address = BigInt.asUintN(32, BigInt(low)) | (BigInt.asUintN(32, BigInt(high)) << 32n);
  const line = words[at + (CTX.faultLine >> 2)]!;
  const thread = words[at + (CTX.faultThread >> 2)]!;
  const failed = describeAssertion(launch);
  if (failed !== undefined) return failed;
  if (launch.watch !== undefined) {
    const reports = context.checker!.describeFault(
      launch.watch,
      ctx,
      status === STATUS.stuck ? FAULT.divergentBarrier : words[at + (CTX.faultKind >> 2)]!,
      thread,
      line,
      address,
    );
    const { fatal } = launch.watch;
    if (fatal !== undefined) return checked(fatal, reports);
  }
  if (kind === STUCK)
    return {
      result: kind.result,
      detail: `${name}: ${kind.says('')}: ${waitingText(launch, ctx)}`,
    };
  // The place of the fault is overwritten, too.
  if (kind === OVERWRITTEN) return { result: kind.result, detail: `${name}: ${kind.says('')}` };
  const where = [
    line > 0 ? `PTX line ${line}` : '',
    blockText(launch, ctx),
    threadText(launch, thread),
  ];
  return {
    result: kind.result,
    detail:
      `${name}: ${kind.says(hex(address))}, ` + where.filter((part) => part !== '').join(', '),
  };
}

/** Describes the first assertion that failed in the grid: later failures may follow from it. */
export function describeAssertion(launch: LaunchOperation): Fault | undefined {
  const failed = launch.failedAssertion;
  if (failed === undefined) return undefined;
  return {
    result: CUresult.CUDA_ERROR_ASSERT,
    detail: `${launch.func.name}: ${failed.text}, ${failed.place}`,
  };
}

function checked(fatal: CheckReport, reports: readonly CheckReport[]): Fault {
  return {
    result: CHECKED[fatal.kind] ?? CUresult.CUDA_ERROR_LAUNCH_FAILED,
    detail: summary([fatal, ...reports.filter((report) => report !== fatal)]),
    reports,
  };
}

/** The number of blocks that are listed one by one. */
const LISTED = 8;

/**
 * Describes a grid in which no block makes progress. `waiting` are the addresses of the blocks that
 * have begun.
 */
export function describeStall(
  launch: LaunchOperation,
  waiting: readonly number[],
  unstarted: number,
  milliseconds: number,
): Fault {
  const failed = describeAssertion(launch);
  if (failed !== undefined) return failed;
  if (launch.watch !== undefined) {
    const reports = launch.func.context.checker!.describeStall(
      launch.watch,
      waiting,
      unstarted,
      milliseconds,
    );
    return checked(launch.watch.fatal!, reports);
  }
  const told = waiting.slice(0, LISTED).map((ctx) => waitingText(launch, ctx));
  if (waiting.length > LISTED) told.push(`${waiting.length - LISTED} more blocks wait`);
  if (unstarted > 0) told.push(`${unstarted} have not begun`);
  return {
    result: CUresult.CUDA_ERROR_LAUNCH_TIMEOUT,
    detail:
      `${launch.func.name}: the blocks wait for each other: none has got any further for ` +
      `${milliseconds / 1000} s, and no other work is queued` +
      ' that could release them (for a kernel that waits for the host, raise stallLimit): ' +
      `${told.join('; ')}`,
  };
}

function waitingText(launch: LaunchOperation, ctx: number): string {
  return [
    blockText(launch, ctx),
    waitsText(waitsOf(launch.func, ctx), (thread) => threadText(launch, thread)),
  ]
    .filter((part) => part !== '')
    .join(': ');
}

/** Describes the trap by which WebAssembly stopped the kernel. */
export function describeTrap(launch: LaunchOperation, slot: BlockSlot, trap: unknown): Fault {
  const ctx = launch.faultyBlock(slot);
  const failed = describeAssertion(launch);
  if (failed !== undefined) return failed;
  if (launch.watch !== undefined) {
    const reports = launch.func.context.checker!.describeFault(
      launch.watch,
      ctx,
      FAULT.none,
      0,
      0,
      0n,
    );
    const { fatal } = launch.watch;
    if (fatal !== undefined) return checked(fatal, reports);
  }
  const message = trap instanceof Error ? trap.message : String(trap);
  let result: CUresult = CUresult.CUDA_ERROR_LAUNCH_FAILED;
  if (message.includes('out of bounds')) result = CUresult.CUDA_ERROR_ILLEGAL_ADDRESS;
  else if (message.includes('call stack')) result = CUresult.CUDA_ERROR_HARDWARE_STACK_ERROR;
  return { result, detail: `${launch.func.name}: ${message}, ${blockText(launch, ctx)}` };
}

function blockText(launch: LaunchOperation, ctx: number): string {
  const at = (ctx + CTX.ctaid) >>> 2;
  const { words } = launch.func.context.memory;
  return `block (${words[at]},${words[at + 1]},${words[at + 2]})`;
}

function threadText(launch: LaunchOperation, thread: number): string {
  const [x = 1, y = 1] = launch.block;
  return `thread (${thread % x},${Math.floor(thread / x) % y},${Math.floor(thread / (x * y))})`;
}
