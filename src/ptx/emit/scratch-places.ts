// The offsets in a block's scratch memory that both back ends share; frames come after them. The
// sizes are those of `scratchBytes`.

import type { Emitter } from './emitter.js';
import { MAIL, SCRATCH } from './frame-layout.js';
import type { FrameLayout } from './frame-layout.js';

export function statesBase(e: Emitter): number {
  return e.hoist('states', 'i32', (code) => {
    code.get(e.contextField('scratch')).i32(SCRATCH.states).op('i32.add');
  });
}

/** The start of the mailboxes, after the states. */
export function mailBase(e: Emitter, layout: FrameLayout): number {
  return e.hoist('mail', 'i32', (code) => {
    code.get(e.contextField('scratch')).i32(SCRATCH.states).op('i32.add');
    if (layout.stateful)
      code
        .get(e.contextField('threads'))
        .i32(4)
        .op('i32.mul')
        .i32(127)
        .op('i32.add')
        .i32(-128)
        .op('i32.and')
        .op('i32.add');
  });
}

/** The warps' matrices, after the mailboxes and the marks for the cluster's barrier. */
export function matricesBase(e: Emitter, layout: FrameLayout): number {
  const mail = mailBase(e, layout);
  return e.hoist('matrices', 'i32', (code) => {
    code.get(mail);
    if (layout.mail)
      code.get(e.contextField('threads')).i32(MAIL.bytes).op('i32.mul').op('i32.add');
    if (layout.cluster)
      code
        .get(e.contextField('threads'))
        .i32(15)
        .op('i32.add')
        .i32(-16)
        .op('i32.and')
        .op('i32.add');
  });
}

/** The address of a thread's mailbox. */
export function pushMailbox(e: Emitter, layout: FrameLayout): void {
  e.code.get(mailBase(e, layout)).get(e.thread).i32(MAIL.bytes).op('i32.mul').op('i32.add');
}
