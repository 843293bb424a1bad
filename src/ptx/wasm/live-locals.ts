// Finds the locals that are live at the start of a loop from a function's bytes. Engines carry
// every such local round the loop in a register, even if no path that the program can take needs
// its value: they cannot derive by which of a loop's entries control comes. The compiler does, and
// clears those locals.

import { opcode } from './opcodes.js';
import { Reader } from './reader.js';

/**
 * The limit for the number of blocks times the words of a set: beyond it the result costs more than
 * it brings.
 */
const MOST_WORDS = 1 << 22;

interface Label {
  /** The block to which branches go. */
  target: number;
  /** The block at which control continues after the end; a loop's end is passed through. */
  after: number;
  /** For an `if` that has no `else` so far: where control continues if the condition is false. */
  otherwise: number;
  /** For a loop in the question: its index there. */
  loop: number;
}

const BLOCK = opcode('block');
const LOOP = opcode('loop');
const IF = opcode('if');
const ELSE = opcode('else');
const END = opcode('end');
const BR = opcode('br');
const BR_IF = opcode('br_if');
const BR_TABLE = opcode('br_table');
const UNREACHABLE = opcode('unreachable');
const RETURN = opcode('return');
const LOCAL_GET = opcode('local.get');
const LOCAL_SET = opcode('local.set');
const LOCAL_TEE = opcode('local.tee');

/** A function's basic blocks, and which locals each of them uses and defines. */
class ControlFlowGraph {
  /** Blocks in the order of the code. */
  readonly order: number[] = [];
  /** For each block, its successors. */
  readonly nexts: number[][] = [];
  /** Sets of locals: those that a block reads before it writes them, and those that it writes. */
  readonly used: Int32Array[] = [];
  readonly defined: Int32Array[] = [];
  /** For each loop in the question, its first block, and the locals that its code sets. */
  readonly headers: number[] = [];
  readonly set: readonly Int32Array[];
  private readonly words: number;
  private readonly reader: Reader;
  private readonly loops: readonly number[];
  private readonly labels: Label[] = [];
  private now: number;

  constructor(code: Uint8Array, words: number, loops: readonly number[]) {
    this.words = words;
    this.loops = loops;
    this.reader = new Reader(code, 0);
    this.set = loops.map(() => new Int32Array(words));
    this.now = this.block();
    this.begin(this.now);
  }

  /** Reads all of the code; false for a function that is too large. */
  read(): boolean {
    const { reader } = this;
    while (reader.at < reader.bytes.length) {
      if (this.nexts.length * this.words > MOST_WORDS) return false;
      this.instruction(reader.opcode());
    }
    return true;
  }

  private block(): number {
    this.nexts.push([]);
    this.used.push(new Int32Array(this.words));
    this.defined.push(new Int32Array(this.words));
    return this.nexts.length - 1;
  }

  private begin(index: number): void {
    this.now = index;
    this.order.push(index);
  }

  private goTo(index: number): void {
    this.nexts[this.now]!.push(index);
  }

  private branch(depth: number): void {
    const label = this.labels[this.labels.length - 1 - depth];
    if (label) this.goTo(label.target);
  }

  private instruction(code: number): void {
    const { reader } = this;
    switch (code) {
      case BLOCK:
      case LOOP:
      case IF:
        reader.skipImmediates(code);
        this.open(code);
        return;
      case ELSE: {
        const label = this.labels.at(-1)!;
        this.goTo(label.after);
        this.begin(label.otherwise);
        label.otherwise = -1;
        return;
      }
      case END:
        this.close();
        return;
      case BR:
      case BR_IF: {
        this.branch(reader.number());
        const next = this.block();
        if (code === BR_IF) this.goTo(next);
        this.begin(next);
        return;
      }
      case BR_TABLE:
        for (let count = reader.number(); count >= 0; count--) this.branch(reader.number());
        this.begin(this.block());
        return;
      case UNREACHABLE:
      case RETURN:
        this.begin(this.block());
        return;
      case LOCAL_GET:
        this.use(reader.number());
        return;
      case LOCAL_SET:
      case LOCAL_TEE:
        this.define(reader.number());
        return;
      default:
        reader.skipImmediates(code);
    }
  }

  private open(code: number): void {
    const isLoop = code === LOOP;
    const loop = isLoop ? this.loops.indexOf(this.reader.at) : -1;
    const after = this.block();
    const inner = this.block();
    this.goTo(inner);
    const otherwise = code === IF ? this.block() : -1;
    if (otherwise >= 0) this.goTo(otherwise);
    this.labels.push({ target: isLoop ? inner : after, after, otherwise, loop });
    if (loop >= 0) this.headers[loop] = inner;
    this.begin(inner);
  }

  private close(): void {
    const label = this.labels.pop();
    if (!label) {
      this.reader.at = this.reader.bytes.length;
      return;
    }
    this.goTo(label.after);
    if (label.otherwise >= 0) {
      this.begin(label.otherwise);
      this.goTo(label.after);
    }
    this.begin(label.after);
  }

  private use(local: number): void {
    const word = local >> 5;
    if (!(this.defined[this.now]![word]! & (1 << local))) this.used[this.now]![word]! |= 1 << local;
  }

  private define(local: number): void {
    const word = local >> 5;
    this.defined[this.now]![word]! |= 1 << local;
    for (const { loop } of this.labels) if (loop >= 0) this.set[loop]![word]! |= 1 << local;
  }
}

/** The locals that are live at the start of each block. */
function liveLocals({ used, defined, nexts, order }: ControlFlowGraph): Int32Array[] {
  const live = used.map((bits) => bits.slice());
  for (let changes = true; changes;) {
    changes = false;
    for (let index = order.length - 1; index >= 0; index--) {
      const from = order[index]!;
      const here = live[from]!;
      const kept = defined[from]!;
      for (const to of nexts[from]!) {
        const there = live[to]!;
        for (let word = 0; word < here.length; word++) {
          const more = there[word]! & ~kept[word]! & ~here[word]!;
          if (more === 0) continue;
          here[word]! |= more;
          changes = true;
        }
      }
    }
  }
  return live;
}

/**
 * For each loop, the locals that are live at its start and that its code sets. `loops` are the
 * offsets in `code` after their block types. Undefined for functions that are so large that it
 * would take long.
 */
export function carriedLocals(
  code: Uint8Array,
  localCount: number,
  loops: readonly number[],
): number[][] | undefined {
  const graph = new ControlFlowGraph(code, Math.ceil(localCount / 32), loops);
  if (!graph.read()) return undefined;
  const live = liveLocals(graph);
  return loops.map((_, loop) => {
    const alive = live[graph.headers[loop]!]!;
    const set = graph.set[loop]!;
    const found: number[] = [];
    for (let local = 0; local < localCount; local++)
      if (alive[local >> 5]! & set[local >> 5]! & (1 << local)) found.push(local);
    return found;
  });
}
