/**
 * Instructions of the device. Their operands are values, addresses and registers of local arrays;
 * what an instruction writes to registers are new values, which its PTX keeps in the same
 * registers.
 */
import { instructionRow } from '../instructions.js';
import type { InstructionName } from '../instructions.js';
import type { Fragment, Statement, StorageType } from '../tree.js';
import type { Builder } from './builder.js';
import type { RegisterType, Value } from './function.js';
import { fragmentRegister, readFragment, wordsOf, writeFragment } from './matrices.js';
import { addressOf } from './places.js';

/** An operand of an instruction, by the arguments of its operation that belong to it. */
export type OperandShape =
  | { readonly operand: 'value' }
  /** An address, and the bytes to add to it. */
  | { readonly operand: 'address'; readonly offset: number }
  /** So many registers, of which those that are written are parts of the value, in their order. */
  | { readonly operand: 'registers'; readonly count: number; readonly writes: boolean };

/** An instruction's `detail`, as text. */
export interface InstructionShape {
  readonly name: InstructionName;
  readonly detail: readonly (string | number)[];
  readonly operands: readonly OperandShape[];
}

export const shapeOf = (value: Value): InstructionShape =>
  JSON.parse(value.detail) as InstructionShape;

export function buildInstruction(
  b: Builder,
  { name, detail, operands }: Extract<Statement, { kind: 'instruction' }>,
): void {
  const { capability, specific } = instructionRow(name);
  if (b.options.capability < capability || (specific && b.options.capability !== capability)) {
    const text = (number: number): string => `${Math.floor(number / 10)}.${number % 10}`;
    throw b.error(
      `gpu.${name} needs a device of compute capability ${text(capability)}` +
        `${specific ? ' exactly' : ''}, and this code is for ${text(b.options.capability)}`,
      'Use another kernel there.',
    );
  }
  const args: Value[] = [];
  const shapes = operands.map((each): OperandShape => {
    switch (each.kind) {
      case 'value':
        args.push(b.value(each.value));
        return { operand: 'value' };
      case 'address': {
        const { base, offset } = addressOf(b, each.place, false);
        args.push(base);
        return { operand: 'address', offset };
      }
      case 'fragment': {
        const registers = readFragment(b, each.fragment);
        args.push(...registers);
        return { operand: 'registers', count: registers.length, writes: each.writes };
      }
    }
  });
  const shape: InstructionShape = { name, detail, operands: shapes };
  const value = b.effect('instruction', 'none', args, JSON.stringify(shape));
  const written = operands.flatMap((each) =>
    each.kind === 'fragment' && each.writes ? [each.fragment] : [],
  );
  const storageOf = ({ array }: Fragment): StorageType => b.tree.arrays[array]!.storage;
  const types = written.flatMap((fragment) =>
    new Array<RegisterType>(wordsOf(fragment.length, storageOf(fragment))).fill(
      fragmentRegister(storageOf(fragment)),
    ),
  );
  const parts = types.map((type, at) => b.effect('part', type, [value], String(at)));
  if (parts.length > 0) value.parts = parts;
  let from = 0;
  for (const fragment of written) {
    const count = wordsOf(fragment.length, storageOf(fragment));
    writeFragment(b, fragment, parts.slice(from, from + count));
    from += count;
  }
}
