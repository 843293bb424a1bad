// The interface that writes a thread's arrival at a cut.

import type { Emitter } from './emitter.js';

/** Writes code for one thread that has a mailbox, and whose warp has room for matrices. */
export type MailEmitter = Emitter & { pushMailbox(): void; pushMatrixResults(): void };
