/**
 * Divisions of floats by one divisor share its reciprocal. For operands of usual size a division is
 * a refined reciprocal, a product and a correction by the remainder (Markstein), and only the last
 * two differ. The quotients are those of `div.rn`, which takes the same steps. The pass runs last,
 * because the other passes do not handle its operations.
 */
import type { Block, SsaFunction, Value } from '../ssa/function.js';

/**
 * The smallest group: with fewer divisions the test of the operands' size costs as much as it
 * saves.
 */
const FEWEST = 4;
/** The largest group: dividends stay in registers until their size is tested. */
const MOST = 8;

interface Group {
  readonly members: Value[];
  /** The number of the value after which all are divided. */
  at: number;
  /** The first use of one of them. */
  used: number;
}

/** Groups of divisions of a block that can happen at one place. */
function groupsIn(block: Block): Group[] {
  const places = new Map<Value, number>();
  const used = new Map<Value, number>();
  block.values.forEach((value, at) => {
    places.set(value, at);
    for (const arg of value.args) if (!used.has(arg)) used.set(arg, at);
  });
  const open = new Map<Value, Group>();
  const groups: Group[] = [];
  block.values.forEach((value, at) => {
    if (value.op !== 'div' || value.type !== 'f32') return;
    const divisor = value.args[1]!;
    const own = used.get(value) ?? Infinity;
    const group = open.get(divisor);
    const after =
      group === undefined
        ? at
        : Math.max(group.at, ...value.args.map((arg) => places.get(arg) ?? -1));
    if (group !== undefined && group.members.length < MOST && after < group.used) {
      group.members.push(value);
      group.at = after;
      group.used = Math.min(group.used, own);
      return;
    }
    const made = { members: [value], at, used: own };
    open.set(divisor, made);
    groups.push(made);
  });
  return groups.filter(({ members }) => members.length >= FEWEST);
}

function divideIn(f: SsaFunction, block: Block, groups: readonly Group[]): void {
  const reciprocals = new Map<Value, Value>();
  const after = new Map<number, Value[]>();
  const gone = new Set<Value>();
  const make = (op: string, args: Value[], like: Value): Value => {
    const made = f.value(op, 'f32', args);
    made.block = block;
    made.span = like.span;
    return made;
  };
  for (const { members, at } of groups) {
    const [first] = members;
    const divisor = first!.args[1]!;
    const made: Value[] = [];
    let reciprocal = reciprocals.get(divisor);
    if (reciprocal === undefined) {
      reciprocal = make('reciprocal', [divisor], first!);
      reciprocals.set(divisor, reciprocal);
      made.push(reciprocal);
    }
    const quotients = make(
      'quotients',
      [divisor, reciprocal, ...members.map((member) => member.args[0]!)],
      first!,
    );
    quotients.parts = members;
    for (const member of members) {
      gone.add(member);
      member.op = 'part';
      member.args = [quotients];
    }
    after.set(at, [...(after.get(at) ?? []), ...made, quotients, ...members]);
  }
  block.values = block.values.flatMap((value, at) => [
    ...(gone.has(value) ? [] : [value]),
    ...(after.get(at) ?? []),
  ]);
}

export function shareReciprocals(f: SsaFunction): void {
  for (const block of f.blocks) {
    const groups = groupsIn(block);
    if (groups.length > 0) divideIn(f, block, groups);
  }
}
