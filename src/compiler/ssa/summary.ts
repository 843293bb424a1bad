/** Properties of a part of the tree, for decisions about loops. */
import { instructionRow } from '../instructions.js';
import type { InstructionName } from '../instructions.js';
import type { Expression, Fragment, InstructionOperand, Statement } from '../tree.js';

export interface Summary {
  /** The number of expressions and statements. */
  size: number;
  readonly locals: Set<number>;
  /** Arrays that are stored to. */
  readonly arrays: Set<number>;
  /** Whether it has a loop. */
  loops: boolean;
  /**
   * Whether it has a convergent operation, which must not be duplicated where threads may have
   * diverged.
   */
  convergent: boolean;
  /** Whether it has a jump out: break, continue or return. */
  jumps: boolean;
  /** Arrays with an index: unrolling is worthwhile where they can become registers. */
  readonly indexed: Set<number>;
  /** Local arrays that hold parts of matrices. */
  readonly fragments: Set<number>;
  /** Shared arrays whose lines are swizzled. */
  readonly swizzled: Set<number>;
  readonly reads: Set<number>;
}

const together = new Set([
  'shuffle',
  'vote',
  'match',
  'activemask',
  'barrierReduce',
  'barrier',
  'matrixProduct',
  'loadMatrices',
  'instruction',
]);
const known = new WeakMap<object, Summary>();

type Part = Expression | Statement;

function empty(): Summary {
  return {
    size: 0,
    locals: new Set(),
    arrays: new Set(),
    loops: false,
    convergent: false,
    jumps: false,
    indexed: new Set(),
    fragments: new Set(),
    swizzled: new Set(),
    reads: new Set(),
  };
}

function add(to: Summary, from: Summary): void {
  to.size += from.size;
  for (const local of from.locals) to.locals.add(local);
  for (const array of from.arrays) to.arrays.add(array);
  for (const array of from.indexed) to.indexed.add(array);
  for (const array of from.fragments) to.fragments.add(array);
  for (const array of from.swizzled) to.swizzled.add(array);
  for (const local of from.reads) to.reads.add(local);
  to.loops ||= from.loops;
  to.convergent ||= from.convergent;
  to.jumps ||= from.jumps;
}

function visit(to: Summary, node: unknown): void {
  if (Array.isArray(node)) {
    for (const one of node) visit(to, one);
    return;
  }
  if (typeof node !== 'object' || node === null) return;
  const part = node as Partial<Part> & Record<string, unknown>;
  const name = (part.op ?? part.kind) as string | undefined;
  if (name === undefined || name === 'param' || name === 'array') {
    // A place, or a node with one.
    if ('memory' in part) {
      const { memory } = part as unknown as { memory: { kind: string; array: number } };
      if (memory.kind === 'array') to.indexed.add(memory.array);
      visit(to, part['index']);
    } else if ('array' in part && 'length' in part) {
      // A fragment.
      to.indexed.add(part['array'] as number);
      to.fragments.add(part['array'] as number);
      visit(to, part['index']);
    }
    return;
  }
  to.size++;
  if (together.has(name)) to.convergent = true;
  switch (name) {
    case 'assign':
      to.locals.add(part['local'] as number);
      break;
    case 'local':
      to.reads.add(part['local'] as number);
      break;
    case 'store': {
      const { memory } = part['place'] as { memory: { kind: string; array: number } };
      if (memory.kind === 'array') to.arrays.add(memory.array);
      break;
    }
    case 'matrixProduct':
      to.arrays.add((part['sum'] as Fragment).array);
      break;
    case 'loadMatrices':
      to.arrays.add((part['to'] as Fragment).array);
      break;
    case 'instruction':
      for (const each of part['operands'] as readonly InstructionOperand[]) {
        if (each.kind === 'fragment' && each.writes) to.arrays.add(each.fragment.array);
        else if (
          each.kind === 'address' &&
          each.place.memory.kind === 'array' &&
          instructionRow(part['name'] as InstructionName).swizzles === true
        )
          to.swizzled.add(each.place.memory.array);
      }
      break;
    case 'clear':
      to.arrays.add(part['array'] as number);
      break;
    case 'break':
    case 'continue':
    case 'return':
      to.jumps = true;
      break;
    case 'loop':
      to.loops = true;
      break;
    default:
      break;
  }
  for (const key in part) {
    if (key !== 'span') visit(to, part[key]);
  }
}

/** Gives the summary of a part of a tree; it is computed once. */
export function summaryOf(part: Part | readonly Part[]): Summary {
  const found = known.get(part);
  if (found) return found;
  const summary = empty();
  if (Array.isArray(part)) for (const one of part as readonly Part[]) add(summary, summaryOf(one));
  else visit(summary, part);
  known.set(part, summary);
  return summary;
}
