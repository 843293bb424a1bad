/**
 * The start of a thread of a CPU device's crew, which only runs blocks of grids. It is built into a
 * small script of its own, which is contained as text in the runtime thread's script: that thread
 * starts the crew.
 */
import { readlinkSync } from 'node:fs';
import { receiveMessageOnPort, workerData } from 'node:worker_threads';
import type { MessagePort } from 'node:worker_threads';

import { MEMBER, memberAt } from '../../driver/cpu/crew/control.js';
import type { MemberMessage, MemberStart } from '../../driver/cpu/crew/control.js';
import { serveCrew } from '../../driver/cpu/crew/member.js';

const { port, ...start } = workerData as MemberStart & { port: MessagePort };

/** Returns Linux's number of this thread; 0 elsewhere. */
function threadNumber(): number {
  try {
    return Number(/\d+$/.exec(readlinkSync('/proc/thread-self'))?.[0] ?? 0);
  } catch {
    return 0;
  }
}

new Int32Array(start.control)[memberAt(start.member) + MEMBER.thread] = threadNumber();
serveCrew(
  start,
  () => (receiveMessageOnPort(port) as { message: MemberMessage } | undefined)?.message,
);
