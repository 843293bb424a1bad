// The contents of a report: the kind of a finding, its place, and its text.

import { ACCESS, FAULT } from '../../../ptx/index.js';
import type { WasmModule } from '../../../ptx/index.js';
import type {
  CheckKind,
  CheckMemory,
  CheckPlace,
  CheckReport,
} from '../../../ground/check-report.js';
import { hex } from '../failure.js';
import type { BlockWatch } from './block-watch.js';
import type { LaunchWatch } from '../kernels/launch-watch.js';
import { nameMemory } from './memory-map.js';
import type { Earlier } from './race-check.js';

export class ReportWriter {
  private readonly seed: number | undefined;
  /** Lines of the PTX of modules that something was found in. */
  private readonly texts = new WeakMap<WasmModule, readonly string[]>();

  constructor(seed: number | undefined) {
    this.seed = seed;
  }

  placeOf({ work, block, thread, line, action }: Earlier): CheckPlace {
    const { launch } = work;
    if (launch === undefined) return { action: `${action} (${work.name})` };
    return {
      action,
      kernel: launch.kernel,
      ...this.lineOf(launch, line),
      block: launch.blockIndex(block),
      thread: launch.threadIndex(thread),
    };
  }

  place(watch: BlockWatch, thread: number, line: number, action: string): CheckPlace {
    const { launch } = watch;
    return {
      action,
      kernel: launch.kernel,
      ...this.lineOf(launch, line),
      block: watch.index,
      thread: launch.threadIndex(thread),
    };
  }

  private lineOf(
    launch: LaunchWatch,
    line: number,
  ): Pick<CheckPlace, 'line' | 'instruction' | 'source'> {
    const { compiled } = launch.func.module;
    const source = compiled.check!.lines.get(line);
    let texts = this.texts.get(compiled);
    if (texts === undefined) {
      texts = compiled.check!.text.split('\n');
      this.texts.set(compiled, texts);
    }
    const instruction = texts[line - 1]?.trim();
    return {
      line,
      ...(instruction ? { instruction } : {}),
      ...(source === undefined ? {} : { source }),
    };
  }

  report(
    kind: CheckKind,
    what: string,
    parts: {
      place?: CheckPlace;
      other?: CheckPlace;
      address?: number;
      bytes?: number;
      memory?: CheckMemory | undefined;
      waits?: NonNullable<CheckReport['waits']>;
    },
  ): CheckReport {
    const { place, other, memory, ...rest } = parts;
    const lines = [what];
    if (place !== undefined) lines.push(`by ${placeText(place)}`, ...instructionText(place));
    if (other !== undefined) lines.push(`and ${placeText(other)}`, ...instructionText(other));
    if (memory !== undefined) lines.push(nameMemory(memory));
    return {
      kind,
      message: lines.join('\n  '),
      count: 1,
      ...rest,
      ...(place === undefined ? {} : { place }),
      ...(other === undefined ? {} : { other }),
      ...(memory === undefined ? {} : { memory }),
      ...(this.seed === undefined ? {} : { seed: this.seed }),
    };
  }
}

const WARP = 'two threads of a warp';

/** Between which two a race is. */
export function racers({ launch, number }: BlockWatch, thread: number, earlier: Earlier): string {
  if (earlier.work !== launch) return 'two streams';
  if (earlier.block !== number) return 'two blocks';
  if (thread === earlier.thread) return 'a thread and its own asynchronous operation';
  return thread >>> 5 === earlier.thread >>> 5 ? WARP : 'two threads of a block';
}

export const raceText = (kind: 'race' | 'same-value', two: string, address: number): string =>
  kind === 'same-value'
    ? `${two} store the same value at ${hex(address)}: nothing orders the two stores`
    : `race of ${two} at ${hex(address)}: nothing orders the two ` +
      `accesses${two === WARP ? ' (a __syncwarp() is missing between them)' : ''}`;

/** An access that a kernel's own checks refused. */
export function faultText(
  kind: number,
  address: bigint,
  memory: CheckMemory | undefined,
): [kind: CheckKind, message: string] {
  const at = hex(address);
  if (kind === FAULT.misaligned) return ['misaligned', `misaligned access at ${at}`];
  return memory?.freed
    ? ['use-after-free', `access to freed memory at ${at}`]
    : ['out-of-bounds', `access out of bounds at ${at}`];
}

/** `memory`: what is or was at the address, which is no block of malloc that can be freed. */
export const freeText = (
  address: number,
  memory: CheckMemory | undefined,
): [kind: CheckKind, message: string] =>
  memory?.freed && memory.address === address
    ? ['double-free', `free of ${hex(address)}, which was freed already`]
    : ['invalid-free', `free of ${hex(address)}, which malloc did not return`];

/** What is the same for all threads that find the same. */
export function keyOf(
  kind: CheckKind,
  line: number | undefined,
  other: CheckPlace | undefined,
): string {
  return [kind, line, other?.kernel, other?.line, other?.action].join();
}

export function actionOf(flags: number): 'read' | 'write' | 'atomic' {
  if ((flags & ACCESS.atomic) !== 0) return 'atomic';
  return (flags & ACCESS.write) !== 0 ? 'write' : 'read';
}

function placeText({ action, kernel, line, source, block, thread }: CheckPlace): string {
  return [
    kernel === undefined ? action : `${kernel}: ${action}`,
    ...(source === undefined ? [] : [`${source.file}:${source.line}`]),
    ...(line === undefined || line === 0 ? [] : [`PTX line ${line}`]),
    ...(block === undefined ? [] : [`block (${block.join()})`]),
    ...(thread === undefined ? [] : [`thread (${thread.join()})`]),
  ].join(', ');
}

/** Inline assembly may be in one long line. */
const LONGEST_INSTRUCTION = 120;

function instructionText({ instruction }: CheckPlace): string[] {
  if (instruction === undefined) return [];
  const isLong = instruction.length > LONGEST_INSTRUCTION;
  return [`  ${isLong ? `${instruction.slice(0, LONGEST_INSTRUCTION)} …` : instruction}`];
}
