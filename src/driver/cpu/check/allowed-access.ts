// Whether a kernel's access is to memory that is allocated, of the space that its instruction
// names.

import { ACCESS, ACCESS_SPACES } from '../../../ptx/index.js';
import type { CheckKind } from '../../../ground/check-report.js';
import type { BlockWatch } from './block-watch.js';
import { BYTE } from './shadow.js';
import type { Shadow } from './shadow.js';

const SPACES: Readonly<Record<string, number>> = {
  global: BYTE.global,
  const: BYTE.global,
  shared: BYTE.shared,
  cluster: BYTE.shared,
  local: BYTE.local,
};

export function mayAccess(
  watch: BlockWatch,
  thread: number,
  address: number,
  flags: number,
  writes: boolean,
  all: number,
  any: number,
): boolean {
  if ((all & BYTE.live) === 0) return false;
  if (writes && (any & BYTE.readOnly) !== 0) return false;
  const wanted = SPACES[ACCESS_SPACES[flags >>> ACCESS.spaceShift]!];
  const space = any & BYTE.spaceMask;
  if (wanted !== undefined && space !== wanted) return false;
  return space !== BYTE.local || ownFrame(watch, thread, address);
}

export function ownFrame(watch: BlockWatch, thread: number, address: number): boolean {
  const { frameBytes } = watch.launch.check;
  const own = watch.frames + thread * frameBytes;
  // The stack of called functions is used by one thread at a time.
  return address >= watch.stack || (address >= own && address < own + frameBytes);
}

/** The frame of a called function begins to live. */
export function enterFrame(
  watch: BlockWatch,
  shadow: Shadow,
  address: number,
  number: number,
): void {
  const frame = watch.launch.func.module.compiled.check!.frames[number]!;
  const end = watch.stack + watch.launch.check.stackBytes;
  // What lies above belonged to calls that have returned.
  const { calls } = watch;
  while (calls.length > 0 && calls.at(-1)!.address >= address) calls.pop();
  calls.push({ address, number });
  shadow.set(address, Math.min(end - address, 4096), 0);
  for (const { offset, size } of frame.variables)
    shadow.set(address + offset, size, BYTE.live | BYTE.local);
}

/** Why an access is refused: the kind of the report and its text, which begins with `what`. */
export function refusal(
  watch: BlockWatch,
  thread: number,
  address: number,
  what: string,
  flags: number,
  all: number,
  any: number,
  freed: boolean,
): [CheckKind, string] {
  if ((all & BYTE.live) === 0)
    return freed
      ? ['use-after-free', `${what} after the memory was freed`]
      : ['out-of-bounds', `${what} out of bounds`];
  if ((any & BYTE.spaceMask) === BYTE.local && !ownFrame(watch, thread, address))
    return ['out-of-bounds', `${what} in the local memory of another thread`];
  if ((any & BYTE.readOnly) !== 0) return ['read-only', `${what}, which kernels cannot write`];
  return [
    'wrong-space',
    `${what}: the instruction is for .${ACCESS_SPACES[flags >>> ACCESS.spaceShift]!} ` +
      'memory, the address is not',
  ];
}
