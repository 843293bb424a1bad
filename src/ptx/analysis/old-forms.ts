// Forms of older texts, which leave something out. ptxas takes `mad.f32` without a rounding for
// targets before sm_20, and in PTX before 4.1 for later targets.

import type { Instruction, PtxModule, Statement } from '../syntax/ast.js';
import { targetNumber, versionNumber } from './targets.js';

const ROUNDINGS = ['rn', 'rz', 'rm', 'rp'];

/** Adds what such texts leave to the assembler. */
export function completeOldForms({ version, target, functions }: PtxModule): void {
  const old = targetNumber(target) < 20;
  if (!old && versionNumber(version) >= versionNumber('4.1')) return;
  // The ISA on such a `mad.f32` on later GPUs: fma.rn.ftz.f32 if it is for a target before sm_20,
  // fma.rn.f32 otherwise.
  const left = old ? ['rn', 'ftz'] : ['rn'];
  const completed = new Map<readonly string[], readonly string[]>();
  const complete = (instruction: Instruction): void => {
    const { modifiers } = instruction;
    if (
      instruction.mnemonic !== 'mad' ||
      !modifiers.includes('f32') ||
      modifiers.some((word) => ROUNDINGS.includes(word))
    )
      return;
    const known = completed.get(modifiers) ?? [
      ...left.filter((word) => !modifiers.includes(word)),
      ...modifiers,
    ];
    completed.set(modifiers, known);
    instruction.modifiers = known;
  };
  const visit = (statements: readonly Statement[]): void => {
    for (const statement of statements) {
      if (statement.kind === 'block') visit(statement.statements);
      else if (statement.kind === 'instruction') complete(statement);
    }
  };
  for (const { body } of functions) visit(body ?? []);
}
