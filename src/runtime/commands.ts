/**
 * All commands of the ring: the rows of `commands/`, by name and by number.
 *
 * To add a command, add a row to the file of its kind. The row is then part of {@link OP}, and of
 * the arrays below that the decoder, traces and errors read.
 */
import { captures } from './commands/captures.js';
import type { Command, Execute } from './commands/command.js';
import { copies } from './commands/copies.js';
import { events } from './commands/events.js';
import { launches } from './commands/launches.js';
import { memories } from './commands/memory.js';
import { ACCESS_SHIFT, ACCESS_WRITE, HANDLE_MASK } from './commands/record.js';
import { streams } from './commands/streams.js';

export * from './commands/record.js';
export {
  COPY_DEVICE_TO_DEVICE,
  COPY_DEVICE_TO_HOST,
  COPY_FROM_ARRAY,
  COPY_HOST_TO_DEVICE,
  COPY_PEER,
  COPY_TO_ARRAY,
} from './commands/copy-shapes.js';
export {
  LAUNCH_CLUSTER,
  LAUNCH_COOPERATIVE,
  LAUNCH_EX,
  LAUNCH_PRIORITY,
  LAUNCH_PROGRAMMATIC,
} from './commands/launches.js';
export * from './commands/line-references.js';
export { MAP, MAP_AXES, MAP_WORDS } from './commands/launch-maps.js';

const COMMANDS = {
  ...launches,
  ...copies,
  ...memories,
  ...events,
  ...streams,
  ...captures,
};

export type CommandName = keyof typeof COMMANDS;
type Numbers = { readonly [Name in CommandName]: (typeof COMMANDS)[Name]['op'] };

/** The commands whose number another command has, too. */
type Repeated = {
  [Name in CommandName]: Numbers[Name] extends Numbers[Exclude<CommandName, Name>] ? Name : never;
}[CommandName];
/** Does not compile where two commands have the same number; the error names them. */
const NONE_REPEATED: [Repeated] extends [never]
  ? true
  : `${Repeated} has the number of another command` = true;

/** The number of each command. */
export const OP = Object.fromEntries(
  Object.entries(COMMANDS).map(([name, { op }]) => [name, op]),
) as Numbers;

const BY_NUMBER: readonly (Command | undefined)[] = byNumber();

function byNumber(): (Command | undefined)[] {
  const groups = [launches, copies, memories, events, streams, captures];
  const named = groups.reduce((sum, group) => sum + Object.keys(group).length, 0);
  if (!NONE_REPEATED || named !== Object.keys(COMMANDS).length)
    throw new Error('two commands have the same name');
  const rows: (Command | undefined)[] = Array.from({ length: 256 }, () => undefined);
  for (const row of Object.values<Command>(COMMANDS)) rows[row.op] = row;
  return rows;
}

/** Returns the command with the number `op`; undefined where there is none. */
export function commandOf(op: number): Command | undefined {
  return BY_NUMBER[op];
}

/**
 * Properties that the decoder reads for every command, as bits of {@link TRAITS}: one load for each
 * command instead of several from its row.
 */
export const TRAIT = {
  /** The command takes one place in the stream's queue of launches. */
  launch: 1,
  /** The command takes several places. */
  launches: 2,
  /** The command may have to wait. */
  waits: 4,
  runsAfterFailure: 8,
  visitAlways: 16,
  visitBelowLimit: 32,
  visitShort: 64,
} as const;

export const TRAITS: Uint8Array = Uint8Array.from(BY_NUMBER, (row) => {
  if (row === undefined) return 0;
  const { launches: places, mustWait, runsAfterFailure, visit } = row;
  return (
    (places === 1 ? TRAIT.launch : 0) |
    (places === 'asked' ? TRAIT.launches : 0) |
    (mustWait === undefined ? 0 : TRAIT.waits) |
    (runsAfterFailure ? TRAIT.runsAfterFailure : 0) |
    (visit === 'always' ? TRAIT.visitAlways : 0) |
    (visit === 'below the limit' ? TRAIT.visitBelowLimit : 0) |
    (visit === 'where short' ? TRAIT.visitShort : 0)
  );
});

/** The number of words of each command's body, by number. */
export const LENGTHS: Uint8Array = Uint8Array.from(BY_NUMBER, (row) => row?.length ?? 0);

/** The function that executes each command, by number. */
export const EXECUTE: readonly Execute[] = BY_NUMBER.map((row, op) =>
  row === undefined
    ? () => {
        throw new Error(`the ring holds a command with the unknown number ${op}`);
      }
    : row.execute,
);

/**
 * Returns the memory that a command uses: handle | access << {@link ACCESS_SHIFT} of each operand.
 */
export function operandsOf(op: number, memory: Int32Array, body: number): number[] {
  return BY_NUMBER[op]?.operands(memory, body) ?? [];
}

/**
 * Returns the handles of the memory that a command writes or makes. A copy into staging has no
 * operand for it: staging belongs to all transfers, and only the operation fails.
 */
export function writtenHandles(op: number, memory: Int32Array, body: number): number[] {
  const makes = BY_NUMBER[op]?.makes;
  if (makes !== undefined) return [memory[body + makes]! & HANDLE_MASK];
  return operandsOf(op, memory, body)
    .filter((word) => ((word >>> ACCESS_SHIFT) & ACCESS_WRITE) !== 0)
    .map((word) => word & HANDLE_MASK);
}
