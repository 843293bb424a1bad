/** Commands for streams, their fences and holds, and for the ring itself. */
import {
  ISSUED_LAUNCHES,
  ISSUED_STRIDE,
  ISSUED_UNMADE,
  SLOT_FENCE,
  SLOT_HOLD,
  SLOT_REACHED,
  SLOT_WORDS,
  wakeJs,
} from '../layout.js';
import { command, noOperands } from './command.js';
import type { Command } from './command.js';
import { FLAG_HOT, RECORD_BODY } from './record.js';

const STREAM = { slot: 0, flags: 1, priority: 2 } as const;
/** A slot of completion words, and the value to write there or to wait for. */
const SLOT = { slot: 0, value: 1 } as const;

export const streams = {
  streamCreate: command({
    op: 10,
    call: '',
    words: STREAM,
    length: 3,
    operands: noOperands,
    makes: undefined,
    trace: undefined,
    inFlight: undefined,
    copies: undefined,
    takesTime: false,
    visit: 'never',
    launches: 0,
    runsAfterFailure: false,
    withoutStream: 'fails',
    mustWait: undefined,
    execute: ({ driver, shared }, memory, body) => {
      const { issued } = shared;
      const slot = memory[body + STREAM.slot]!;
      const base = slot * ISSUED_STRIDE;
      if (issued[base + ISSUED_UNMADE] !== 0) issued[base + ISSUED_LAUNCHES] = 0;
      issued[base + ISSUED_UNMADE] = 0;
      shared.streams[slot] = 0;
      shared.streams[slot] = driver.cuStreamCreateWithPriority(
        memory[body + STREAM.flags]!,
        memory[body + STREAM.priority]!,
      );
    },
  }),

  streamDestroy: command({
    op: 11,
    call: '',
    words: { slot: 0 },
    length: 1,
    operands: noOperands,
    makes: undefined,
    trace: undefined,
    inFlight: undefined,
    copies: undefined,
    takesTime: false,
    visit: 'never',
    launches: 0,
    runsAfterFailure: false,
    withoutStream: 'is skipped',
    mustWait: undefined,
    execute: ({ driver, shared }, memory, body) => {
      const slot = memory[body]!;
      const destroyed = shared.streams[slot]!;
      shared.streams[slot] = 0;
      driver.cuStreamDestroy(destroyed);
    },
  }),

  /** The device writes `value` into the slot when it reaches this point of the stream. */
  fence: command({
    op: 3,
    call: 'cuStreamWriteValue32',
    words: SLOT,
    length: 2,
    operands: noOperands,
    makes: undefined,
    trace: undefined,
    inFlight: undefined,
    copies: undefined,
    takesTime: false,
    visit: 'always',
    launches: 0,
    runsAfterFailure: true,
    // A stream that could not be created has nothing in flight: the fence passes at once.
    withoutStream: ({ shared }, memory, body) => {
      const slot = memory[body + SLOT.slot]!;
      Atomics.store(shared.slots, slot * SLOT_WORDS + SLOT_FENCE, memory[body + SLOT.value]!);
      return false;
    },
    mustWait: undefined,
    execute: ({ text, fences }, memory, body, stream) => {
      const slot = memory[body + SLOT.slot]!;
      const value = memory[body + SLOT.value]!;
      if (text !== undefined && text.streams !== 0 && text.takeFence(stream, slot, value)) return;
      fences.ask(slot, stream, value);
      if ((memory[body - RECORD_BODY]! & (FLAG_HOT << 8)) !== 0) fences.hot = true;
    },
  }),

  /** The stream waits until `value` is written into the slot's hold word. */
  hold: command({
    op: 14,
    call: '',
    words: SLOT,
    length: 2,
    operands: noOperands,
    makes: undefined,
    trace: undefined,
    inFlight: undefined,
    copies: undefined,
    takesTime: true,
    visit: 'never',
    launches: 0,
    runsAfterFailure: false,
    withoutStream: 'is executed',
    mustWait: ({ shared, aside }, memory, body) => {
      const slot = memory[body + SLOT.slot]!;
      const value = memory[body + SLOT.value]!;
      // From here on the holder sends its commands past the hold. Earlier it does not, so that they
      // do not overtake the commands before the hold.
      Atomics.store(shared.slots, slot * SLOT_WORDS + SLOT_REACHED, value);
      wakeJs(shared.control);
      return aside.isHeld(slot, value)
        ? { reason: 'hold', on: slot, value, consumed: true }
        : undefined;
    },
    execute: () => undefined,
  }),

  /**
   * The commands that wait for that hold may continue. It is a command and not a plain store, so
   * that the commands that were sent past the hold come first.
   */
  release: command({
    op: 28,
    call: '',
    words: SLOT,
    length: 2,
    operands: noOperands,
    makes: undefined,
    trace: undefined,
    inFlight: undefined,
    copies: undefined,
    takesTime: false,
    visit: 'never',
    launches: 0,
    runsAfterFailure: false,
    withoutStream: 'fails',
    mustWait: undefined,
    execute: ({ shared }, memory, body) => {
      const slot = memory[body + SLOT.slot]!;
      Atomics.store(shared.slots, slot * SLOT_WORDS + SLOT_HOLD, memory[body + SLOT.value]!);
    },
  }),

  /**
   * A message waits in the thread's port: a procedure and its arguments, or a message about a peer.
   */
  call: command({
    op: 18,
    call: '',
    words: {},
    length: 0,
    operands: noOperands,
    makes: undefined,
    trace: undefined,
    inFlight: undefined,
    copies: undefined,
    takesTime: false,
    visit: 'never',
    launches: 0,
    runsAfterFailure: false,
    withoutStream: 'fails',
    mustWait: undefined,
    execute: (decoder) => decoder.call(),
  }),

  /** Fills the end of the ring, so that no record wraps. It has no body. */
  pad: command({
    op: 27,
    call: '',
    words: {},
    length: 0,
    operands: noOperands,
    makes: undefined,
    trace: undefined,
    inFlight: undefined,
    copies: undefined,
    takesTime: false,
    visit: 'always',
    launches: 0,
    runsAfterFailure: false,
    withoutStream: 'is skipped',
    mustWait: undefined,
    execute: () => undefined,
  }),
} satisfies Record<string, Command>;
