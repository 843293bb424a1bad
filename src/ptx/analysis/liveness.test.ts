import * as fc from '../../../test/fast-check.js';
import { expect, it } from 'vitest';

import { UNKNOWN } from '../isa/traits.js';
import { scalarType } from '../scalar-types.js';
import type { Block, Ending } from './blocks.js';
import { successors } from './blocks.js';
import { computeLiveness } from './liveness.js';
import type { Inst, Register } from './program.js';

const REGISTERS = 12;
const registers: Register[] = Array.from({ length: REGISTERS }, (_, id) => ({
  id,
  name: `%r${id}`,
  type: scalarType(id % 3 ? 'b32' : 'b64'),
}));

const names = fc.array(fc.nat(REGISTERS - 1), { maxLength: 2 });
const graph = fc.integer({ min: 1, max: 90 }).chain((count) =>
  fc.array(
    fc.record({
      insts: fc.array(fc.record({ uses: names, defs: names }), { maxLength: 3 }),
      ends: fc.constantFrom('next', 'branch', 'return'),
      to: fc.nat(count - 1),
    }),
    { minLength: count, maxLength: count },
  ),
);

const inst = (uses: readonly number[], defs: readonly number[]): Inst => ({
  mnemonic: 'add',
  traits: UNKNOWN,
  modifiers: [],
  args: [],
  predicate: undefined,
  targets: [],
  call: undefined,
  source: {
    kind: 'instruction',
    mnemonic: 'add',
    modifiers: [],
    operands: [],
    start: 0,
    end: 0,
    line: 1,
  },
  uses: uses.map((id) => registers[id]!),
  defs: defs.map((id) => registers[id]!),
});

/**
 * The definition: a register is live where it is read before it is written, or where it is live
 * after the block and not written in it.
 */
function byDefinition(blocks: readonly Block[]): Set<number>[] {
  const live = blocks.map(() => new Set<number>());
  for (let changed = true; changed;) {
    changed = false;
    for (const block of [...blocks].reverse()) {
      const now = new Set(successors(block).flatMap((to) => [...live[to]!]));
      const all = 'inst' in block.ending ? [...block.insts, block.ending.inst] : block.insts;
      for (const { uses, defs } of [...all].reverse()) {
        for (const { id } of defs) now.delete(id);
        for (const { id } of uses) now.add(id);
      }
      if (now.size === live[block.index]!.size) continue;
      live[block.index] = now;
      changed = true;
    }
  }
  return live;
}

it(
  'registers are live where the definition requires it, in few blocks or in most',
  { tags: 'random' },
  () => {
    let [short, long] = [0, 0];
    fc.assert(
      fc.property(graph, (shapes) => {
        const blocks = shapes.map(({ insts, ends, to }, index): Block => {
          const next = index + 1 < shapes.length ? index + 1 : to;
          const ending: Ending =
            ends === 'return' && index + 1 < shapes.length && index % 5 === 0
              ? { kind: 'return' }
              : ends === 'branch'
                ? { kind: 'branch', inst: inst([index % REGISTERS], []), yes: to, no: next }
                : { kind: 'jump', to: next };
          return { index, insts: insts.map(({ uses, defs }) => inst(uses, defs)), ending };
        });
        const expected = byDefinition(blocks);
        const liveness = computeLiveness(blocks, registers);
        blocks.forEach(({ index }) => {
          expect(liveness.liveIn(index).map(({ id }) => id)).toEqual(
            [...expected[index]!].sort((a, b) => a - b),
          );
        });
        const cells = expected.map((ids) =>
          [...ids].reduce((sum, id) => sum + (registers[id]!.type.bits === 64 ? 2 : 1), 0),
        );
        expect(liveness.pressure).toBe(Math.max(...cells));
        for (const { id } of registers) {
          const reached = expected.filter((ids) => ids.has(id)).length;
          if (reached > 32) long++;
          else if (reached) short++;
          if (reached) expect(liveness.isLocal(registers[id]!)).toBe(false);
        }
      }),
      { numRuns: 300, leastRuns: 30 },
    );
    expect([short > 100, long > 100]).toEqual([true, true]);
  },
);
