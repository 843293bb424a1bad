/**
 * Global value numbering: in the order of the dominator tree, each operation is simplified again
 * (phis may have been removed) and looked up among those above it. Loads of memory that the kernel
 * does not write are values like others; other loads stay valid up to the next possible write.
 */
import { resolve } from '../ssa/function.js';
import type {
  Block,
  MemoryAccess,
  NumberType,
  RegisterType,
  SsaFunction,
  Value,
} from '../ssa/function.js';
import { isPure } from '../ssa/operations.js';
import { simplify } from '../ssa/simplify.js';
import type { Shape } from '../ssa/simplify.js';
import { orderOf } from './order.js';

/** A table whose entries since a mark can be removed. */
class Scoped {
  private readonly entries = new Map<string, Value>();
  private readonly log: [string, Value | undefined][] = [];

  get mark(): number {
    return this.log.length;
  }

  get(key: string): Value | undefined {
    return this.entries.get(key);
  }

  set(key: string, value: Value): void {
    this.log.push([key, this.entries.get(key)]);
    this.entries.set(key, value);
  }

  back(mark: number): void {
    while (this.log.length > mark) {
      const [key, before] = this.log.pop()!;
      if (before === undefined) this.entries.delete(key);
      else this.entries.set(key, before);
    }
  }
}

export function keyOf(value: Value): string {
  let key = `${value.op}|${value.detail}|${value.type}|${value.as ?? ''}`;
  for (const arg of value.args) key += `|${arg.id}`;
  if (value.memory) key += `|${value.memory.offset}|${value.memory.form}|${value.memory.space}`;
  return key;
}

const bytesOf: Readonly<Record<MemoryAccess['form'], number>> = {
  s8: 1,
  u8: 1,
  s16: 2,
  u16: 2,
  b16: 2,
  b32: 4,
  b64: 8,
  f32: 4,
  f64: 8,
};
/** Forms in which a load gives the stored value. */
const whole = new Set<MemoryAccess['form']>(['b32', 'b64', 'f32', 'f64', 'b16']);

interface Known {
  readonly base: Value;
  readonly memory: MemoryAccess;
  readonly value: Value;
}

/** The known contents of memory. */
class Memory {
  private known: Known[];

  constructor(known: Known[] = []) {
    this.known = known;
  }

  copy(): Memory {
    return new Memory([...this.known]);
  }

  find(base: Value, memory: MemoryAccess): Value | undefined {
    for (const entry of this.known) {
      if (
        entry.base === base &&
        entry.memory.offset === memory.offset &&
        entry.memory.form === memory.form &&
        entry.memory.space === memory.space
      )
        return entry.value;
    }
    return undefined;
  }

  /** The number of entries is limited, so that a lookup takes no longer in long blocks. */
  record(entry: Known): void {
    if (this.known.length >= 32) this.known.shift();
    this.known.push(entry);
  }

  written(base: Value, memory: MemoryAccess): void {
    const [from, to] = [memory.offset, memory.offset + bytesOf[memory.form]];
    this.known = this.known.filter(
      (entry) =>
        entry.memory.region !== memory.region ||
        (entry.base === base &&
          (entry.memory.offset >= to || entry.memory.offset + bytesOf[entry.memory.form] <= from)),
    );
  }

  invalidate(): void {
    this.known = [];
  }
}

/** Operations after which other threads' writes may be visible. */
const synchronises = new Set([
  'barrier',
  'barrierReduce',
  'fence',
  'atomic',
  'print',
  'copyAsync',
  'copyWait',
  'instruction',
]);

export function shareValues(f: SsaFunction): void {
  const order = orderOf(f);
  const children = new Map<Block, Block[]>();
  for (const block of order.blocks) {
    if (block === f.entry) continue;
    const above = order.dominator.get(block)!;
    const list = children.get(above);
    if (list) list.push(block);
    else children.set(above, [block]);
  }
  const table = new Scoped();

  const visit = (block: Block, memory: Memory): void => {
    const old = block.values;
    const values: Value[] = [];
    block.values = values;
    let span: Value['span'];
    const add = (value: Value): Value => {
      const key = keyOf(value);
      const known = table.get(key);
      if (known !== undefined) return known;
      table.set(key, value);
      value.block = block;
      values.push(value);
      return value;
    };
    const make = (
      op: string,
      type: RegisterType,
      args: Value[],
      detail = '',
      as?: NumberType,
    ): Value => {
      const shape: Shape = { op, type, args: args.map(resolve), detail, as };
      const simpler = simplify(shape, make, f);
      if (simpler !== undefined) return resolve(simpler);
      const value = f.value(op, type, shape.args, detail, as);
      value.span = span;
      return add(value);
    };
    for (const value of old) {
      ({ span } = value);
      for (let at = 0; at < value.args.length; at++) value.args[at] = resolve(value.args[at]!);
      if (isPure(value.op)) {
        const simpler = simplify(value, make, f);
        const kept = simpler === undefined ? add(value) : resolve(simpler);
        if (kept !== value) value.replacement = kept;
        continue;
      }
      const access = value.memory;
      if (value.op === 'load' && access?.cache !== 'volatile') {
        if (access!.readonly) {
          const kept = add(value);
          if (kept !== value) value.replacement = kept;
          continue;
        }
        const base = value.args[0]!;
        const known = memory.find(base, access!);
        if (known !== undefined && known.type === value.type) {
          value.replacement = known;
          continue;
        }
        memory.record({ base, memory: access!, value });
      } else if (value.op === 'store') {
        memory.written(value.args[0]!, access!);
        if (whole.has(access!.form) && access!.cache !== 'volatile')
          memory.record({ base: value.args[0]!, memory: access!, value: value.args[1]! });
      } else if (value.op === 'clear') {
        memory.invalidate();
      } else if (synchronises.has(value.op) || value.op === 'load') {
        memory.invalidate();
      }
      values.push(value);
    }
    if (block.end?.kind === 'branch') block.end = { ...block.end, test: resolve(block.end.test) };
  };

  // Depth first, without recursion: chains of blocks can be long.
  type Step = { readonly block: Block; readonly memory: Memory } | number;
  const stack: Step[] = [{ block: f.entry, memory: new Memory() }];
  for (let step = stack.pop(); step !== undefined; step = stack.pop()) {
    if (typeof step === 'number') {
      table.back(step);
      continue;
    }
    stack.push(table.mark);
    const { block, memory } = step;
    visit(block, memory);
    const below = children.get(block) ?? [];
    for (let at = below.length - 1; at >= 0; at--) {
      const child = below[at]!;
      // No code lies between a block and a successor with this one predecessor.
      const only = child.before.length === 1 && child.before[0] === block;
      stack.push({ block: child, memory: only ? memory.copy() : new Memory() });
    }
  }
  for (const block of f.blocks) for (const phi of block.phis) phi.args = phi.args.map(resolve);
}
