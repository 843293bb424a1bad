/**
 * Where a thread of a CPU device's crew starts: nothing but the blocks of grids. Built into a small script of its own,
 * which lies as text in the runtime thread's: that one starts the crew.
 */
import { receiveMessageOnPort, workerData } from 'node:worker_threads';
import type { MessagePort } from 'node:worker_threads';

import type { MemberMessage, MemberStart } from '../../driver/cpu/crew/control.js';
import { serveCrew } from '../../driver/cpu/crew/member.js';

const { port, ...start } = workerData as MemberStart & { port: MessagePort };

serveCrew(start, () => (receiveMessageOnPort(port) as { message: MemberMessage } | undefined)?.message);
