// Which locals still hold something where a loop begins, read from a function's bytes. Engines
// carry every such local round the loop in a register of its own, also one whose value no way
// through the code ever needs: they do not know which of a loop's entries control takes. Whoever
// wrote the code does, and can say so by clearing those locals.

import { operands, vectorOperands } from './immediates.js';

/**
 * Blocks of the function times words of their sets: past that the answer costs more than it is
 * worth.
 */
const MOST_WORDS = 1 << 22;

interface Label {
  /** Where branches go. */
  target: number;
  /** Where control goes on behind its end; a loop's end is passed through. */
  after: number;
  /** Of an `if` that has had no `else`: where control goes on if it does not hold. */
  otherwise: number;
  /** Of a loop that is asked about: its place in the question. */
  loop: number;
}

/**
 * For each loop the locals that are alive where it begins and that its code sets. `loops` are the
 * offsets in `code` behind their block types. Undefined for functions so large that it would take
 * long.
 */
export function carriedLocals(
  code: Uint8Array,
  localCount: number,
  loops: readonly number[],
): number[][] | undefined {
  const words = Math.ceil(localCount / 32);
  const nexts: number[][] = [];
  const used: Int32Array[] = [];
  const defined: Int32Array[] = [];
  const order: number[] = [];
  const headers: number[] = [];
  const set = loops.map(() => new Int32Array(words));
  const block = (): number => {
    nexts.push([]);
    used.push(new Int32Array(words));
    defined.push(new Int32Array(words));
    return nexts.length - 1;
  };
  let now = block();
  const begin = (index: number): void => {
    now = index;
    order.push(index);
  };
  begin(now);
  const labels: Label[] = [];
  let at = 0;
  const number = (): number => {
    let value = 0;
    for (let shift = 0; ; shift += 7) {
      const byte = code[at++]!;
      if (shift < 32) value |= (byte & 127) << shift;
      if (byte < 128) return value;
    }
  };
  const branch = (depth: number): void => {
    const label = labels[labels.length - 1 - depth];
    if (label) nexts[now]!.push(label.target);
  };
  while (at < code.length) {
    if (nexts.length * words > MOST_WORDS) return undefined;
    const opcode = code[at++]!;
    switch (opcode) {
      case 0x02:
      case 0x03:
      case 0x04: {
        number();
        const loop = opcode === 0x03 ? loops.indexOf(at) : -1;
        const after = block();
        const inner = block();
        nexts[now]!.push(inner);
        const otherwise = opcode === 0x04 ? block() : -1;
        if (otherwise >= 0) nexts[now]!.push(otherwise);
        labels.push({ target: opcode === 0x03 ? inner : after, after, otherwise, loop });
        if (loop >= 0) headers[loop] = inner;
        begin(inner);
        break;
      }
      case 0x05: {
        const label = labels.at(-1)!;
        nexts[now]!.push(label.after);
        begin(label.otherwise);
        label.otherwise = -1;
        break;
      }
      case 0x0b: {
        const label = labels.pop();
        if (!label) {
          at = code.length;
          break;
        }
        nexts[now]!.push(label.after);
        if (label.otherwise >= 0) {
          begin(label.otherwise);
          nexts[now]!.push(label.after);
        }
        begin(label.after);
        break;
      }
      case 0x0c:
      case 0x0d: {
        branch(number());
        const next = block();
        if (opcode === 0x0d) nexts[now]!.push(next);
        begin(next);
        break;
      }
      case 0x0e:
        for (let count = number(); count >= 0; count--) branch(number());
        begin(block());
        break;
      case 0x00:
      case 0x0f:
        begin(block());
        break;
      case 0x20: {
        const local = number();
        if (!(defined[now]![local >> 5]! & (1 << local))) used[now]![local >> 5]! |= 1 << local;
        break;
      }
      case 0x21:
      case 0x22: {
        const local = number();
        defined[now]![local >> 5]! |= 1 << local;
        for (const { loop } of labels) if (loop >= 0) set[loop]![local >> 5]! |= 1 << local;
        break;
      }
      case 0xfc: {
        const operation = number();
        at += operation === 0x0a ? 2 : operation === 0x0b ? 1 : 0;
        break;
      }
      case 0xfd: {
        const { numbers, bytes } = vectorOperands(number());
        for (let left = numbers; left > 0; left--) number();
        at += bytes;
        break;
      }
      case 0xfe:
        if (number() === 0x03) at++;
        else {
          number();
          number();
        }
        break;
      default: {
        const { numbers, bytes } = operands(opcode);
        for (let left = numbers; left > 0; left--) number();
        at += bytes;
      }
    }
  }
  const live = used.map((bits) => bits.slice());
  for (let changes = true; changes;) {
    changes = false;
    for (let index = order.length - 1; index >= 0; index--) {
      const from = order[index]!;
      const here = live[from]!;
      const kept = defined[from]!;
      for (const to of nexts[from]!) {
        const there = live[to]!;
        for (let word = 0; word < words; word++) {
          const more = there[word]! & ~kept[word]! & ~here[word]!;
          if (more === 0) continue;
          here[word]! |= more;
          changes = true;
        }
      }
    }
  }
  return loops.map((_, loop) => {
    const alive = live[headers[loop]!]!;
    const found: number[] = [];
    for (let local = 0; local < localCount; local++)
      if (alive[local >> 5]! & set[loop]![local >> 5]! & (1 << local)) found.push(local);
    return found;
  });
}
