/** Commands for events: of this device, and those of other devices that a stream waits for. */
import { HANDLE, SLOT_CROSSED, SLOT_WORDS } from '../layout.js';
import { command, noOperands } from './command.js';
import type { Command, Execution } from './command.js';
import { RECORD_BODY, RECORD_ROOT } from './record.js';

const WAIT = { event: 0, record: 1 } as const;
const PEER_WAIT = { device: 0, event: 1, number: 2 } as const;

/**
 * Whether the operation of a stream that could not be created fails: an event of the library's own
 * (root 0) does not, because no operation waits for it.
 */
function isUsers(_decoder: Execution, memory: Int32Array, body: number): boolean {
  return memory[body - RECORD_BODY + RECORD_ROOT] !== 0;
}

export const events = {
  eventCreate: command({
    op: 12,
    call: '',
    words: { event: 0, flags: 1 },
    length: 2,
    operands: noOperands,
    makes: 0,
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
      const handle = memory[body]!;
      shared.status[handle] = HANDLE.failed;
      shared.values[handle] = driver.cuEventCreate(memory[body + 1]!);
      shared.status[handle] = HANDLE.live;
    },
  }),

  eventDestroy: command({
    op: 13,
    call: '',
    words: { event: 0 },
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
    withoutStream: 'is executed',
    mustWait: undefined,
    execute: ({ aside }, memory, body) => aside.destroyEvent(memory[body]!),
  }),

  record: command({
    op: 8,
    call: 'cuEventRecord',
    words: { event: 0 },
    length: 1,
    operands: noOperands,
    makes: undefined,
    trace: () => ({ kind: 'record', memory: [] }),
    inFlight: undefined,
    copies: undefined,
    takesTime: false,
    visit: 'always',
    launches: 0,
    runsAfterFailure: false,
    withoutStream: isUsers,
    mustWait: undefined,
    execute: ({ driver, shared }, memory, body, stream) =>
      driver.cuEventRecord(shared.values[memory[body]!]!, shared.streams[stream]!),
  }),

  /**
   * `record` is 0 in the ring. Where the command is set aside, the decoder writes the number of the
   * event's record to wait for there.
   */
  wait: command({
    op: 9,
    call: 'cuStreamWaitEvent',
    words: WAIT,
    length: 2,
    operands: noOperands,
    makes: undefined,
    trace: () => ({ kind: 'wait', memory: [] }),
    inFlight: undefined,
    copies: undefined,
    takesTime: false,
    visit: 'always',
    launches: 0,
    runsAfterFailure: false,
    withoutStream: isUsers,
    mustWait: ({ aside }, memory, body, _stream, resumed) => {
      const event = memory[body + WAIT.event]!;
      const last = aside.lastRecord(event);
      if (last === undefined) return undefined;
      // Only the records set aside before this wait count: a later one may itself depend on this
      // stream.
      const value = resumed ? memory[body + WAIT.record]! : last;
      return aside.isRecordIssued(event, value)
        ? undefined
        : { reason: 'event', on: event, value, consumed: false };
    },
    execute: ({ driver, shared, operands }, memory, body, stream) =>
      driver.cuStreamWaitEvent(
        shared.streams[stream]!,
        operands.address(memory[body + WAIT.event]!),
        0,
      ),
  }),

  /**
   * `event`: the event that another device waits for. `mustBeReached`: 1 where that device has to
   * be notified when this one has reached it.
   */
  announce: command({
    op: 34,
    call: '',
    words: { event: 0, mustBeReached: 1 },
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
    execute: ({ announcements, aside }, memory, body) => {
      const event = memory[body]!;
      announcements.announce(event, memory[body + 1] === 1, aside.lastRecord(event) !== undefined);
    },
  }),

  /** The number of the other device, the handle of its event, the number of the wait. */
  peerWait: command({
    op: 30,
    call: 'cuStreamWaitEvent',
    words: PEER_WAIT,
    length: 3,
    operands: noOperands,
    makes: undefined,
    trace: () => ({ kind: 'wait', memory: [] }),
    inFlight: undefined,
    copies: undefined,
    takesTime: false,
    visit: 'never',
    launches: 0,
    runsAfterFailure: false,
    withoutStream: (decoder, memory, body, stream) => {
      crossed(decoder, memory, body, stream);
      return false;
    },
    mustWait: ({ peers }, memory, body) => {
      const device = memory[body + PEER_WAIT.device]!;
      const event = memory[body + PEER_WAIT.event]!;
      return peers.ready(device, event)
        ? undefined
        : { reason: 'peer', on: device, value: event, consumed: false };
    },
    execute: (decoder, memory, body, stream) => {
      try {
        decoder.peers.wait(
          memory[body + PEER_WAIT.device]!,
          memory[body + PEER_WAIT.event]!,
          decoder.shared.streams[stream]!,
        );
      } finally {
        crossed(decoder, memory, body, stream);
      }
    },
  }),
} satisfies Record<string, Command>;

/** Publishes that the stream need not wait for the other device any more. */
function crossed({ shared }: Execution, memory: Int32Array, body: number, stream: number): void {
  Atomics.store(shared.slots, stream * SLOT_WORDS + SLOT_CROSSED, memory[body + PEER_WAIT.number]!);
}
