/**
 * Values that share a register. An instruction that reads and writes the same registers, as a
 * product of a warp group does with its sums, gives new values for those that it reads. A copy
 * between the two would have to wait for the instruction, and ptxas would execute products one
 * after the other; so the new value takes the old one's register wherever no two values that are
 * live at once would meet in it. Factors in registers share them with the phis between them, too.
 */
import type { Block, SsaFunction, Value } from '../ssa/function.js';
import { successors } from '../ssa/function.js';
import { shapeOf } from '../ssa/instructions.js';

export type Roots = ReadonlyMap<Value, Value>;

/** Pairs of an instruction's old and new value, in order. */
function pairsOf(value: Value): [old: Value, made: Value][] {
  const pairs: [Value, Value][] = [];
  let argument = 0;
  let part = 0;
  for (const each of shapeOf(value).operands) {
    const count = each.operand === 'registers' ? each.count : 1;
    if (each.operand === 'registers' && each.writes)
      for (let at = 0; at < count; at++)
        pairs.push([value.args[argument + at]!, value.parts![part++]!]);
    argument += count;
  }
  return pairs;
}

/** Values that an instruction reads from registers while the thread goes on. */
function factorsOf(value: Value): Value[] {
  let argument = 0;
  return shapeOf(value).operands.flatMap((each) => {
    const first = argument;
    argument += each.operand === 'registers' ? each.count : 1;
    return each.operand === 'registers' && !each.writes ? value.args.slice(first, argument) : [];
  });
}

/** Where the values of a set are live. */
class Liveness {
  private readonly liveOut = new Map<Block, Set<Value>>();
  private readonly position = new Map<Value, number>();
  private readonly last = new Map<Block, Map<Value, number>>();
  private readonly liveIn = new Map<Block, Set<Value>>();

  constructor(f: SsaFunction, of: ReadonlySet<Value>) {
    for (const block of f.blocks) {
      const last = new Map<Value, number>();
      block.values.forEach((value, at) => {
        this.position.set(value, at);
        for (const arg of value.args) if (of.has(arg)) last.set(arg, at);
      });
      if (block.end?.kind === 'branch' && of.has(block.end.test))
        last.set(block.end.test, block.values.length);
      this.last.set(block, last);
      this.liveIn.set(block, new Set());
      this.liveOut.set(block, new Set());
    }
    const open = new Set(f.blocks);
    for (const block of open) {
      open.delete(block);
      const out = this.liveOut.get(block)!;
      for (const next of successors(block)) {
        for (const value of this.liveIn.get(next)!) out.add(value);
        const edge = next.before.indexOf(block);
        for (const phi of next.phis) {
          const from = phi.args[edge]!;
          if (of.has(from)) out.add(from);
        }
      }
      const live = this.liveIn.get(block)!;
      const before = live.size;
      for (const value of [...out, ...this.last.get(block)!.keys()])
        if (value.block !== block) live.add(value);
      if (live.size > before) for (const previous of block.before) open.add(previous);
    }
  }

  /** Whether `value` is live where `definition` has just been made. */
  at(definition: Value, value: Value): boolean {
    const block = definition.block!;
    // All phis of a block are written before any of them is read.
    if (definition.op === 'phi' && value.op === 'phi' && value.block === block) return true;
    if (this.liveOut.get(block)!.has(value)) {
      return value.block !== block || this.isBefore(value, definition);
    }
    if (definition.op === 'phi') return this.liveIn.get(block)!.has(value);
    const last = this.last.get(block)!.get(value);
    return (
      last !== undefined &&
      last > this.position.get(definition)! &&
      (value.block !== block || this.isBefore(value, definition))
    );
  }

  private isBefore(value: Value, other: Value): boolean {
    if (value.op === 'phi') return true;
    if (other.op === 'phi') return false;
    return this.position.get(value)! <= this.position.get(other)!;
  }
}

/** Adds the phis that join values of the set, and the values that they join. */
function withPhis(f: SsaFunction, values: Set<Value>): [old: Value, made: Value][] {
  const phis = f.blocks.flatMap((block) => block.phis);
  const joined: [Value, Value][] = [];
  const done = new Set<Value>();
  for (let found = true; found;) {
    found = false;
    for (const phi of phis) {
      if (done.has(phi) || !(values.has(phi) || phi.args.some((arg) => values.has(arg)))) continue;
      done.add(phi);
      found = true;
      for (const arg of phi.args) {
        if (!isKept(arg)) continue;
        values.add(arg);
        joined.push([arg, phi]);
      }
      values.add(phi);
    }
  }
  return joined;
}

/** Whether a value has a register. */
const isKept = ({ constant, op }: Value): boolean => constant === undefined && op !== 'undefined';

/** The value whose register each value takes; values without an entry have their own. */
export function sharedRegisters(f: SsaFunction): Roots {
  const instructions = f.blocks.flatMap(({ values }) =>
    values.filter(({ op, parts }) => op === 'instruction' && parts !== undefined),
  );
  if (instructions.length === 0) return new Map();
  const pairs = instructions.flatMap(pairsOf).filter(([old]) => isKept(old));
  const values = new Set([...pairs.flat(), ...instructions.flatMap(factorsOf).filter(isKept)]);
  const joined = withPhis(f, values);
  const liveness = new Liveness(f, values);
  const roots = new Map<Value, Value>();
  const members = new Map<Value, readonly Value[]>();
  for (const [old, made] of [...pairs, ...joined]) {
    const [root, other] = [roots.get(old) ?? old, roots.get(made) ?? made];
    if (root === other || root.type !== other.type) continue;
    const [ones, others] = [members.get(root) ?? [root], members.get(other) ?? [other]];
    if (ones.some((a) => others.some((b) => liveness.at(a, b) || liveness.at(b, a)))) continue;
    const all = [...ones, ...others];
    members.set(root, all);
    for (const each of all) roots.set(each, root);
  }
  return roots;
}
