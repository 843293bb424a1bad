// Shared memory that no variable names. Halide's code, which has dynamic shared memory only, takes
// addresses in it for counts from 0: on a GPU that is where a block's shared memory begins. Here it
// begins anywhere in the one memory, so such a text has its addresses counted from a variable that
// stands for the beginning.

import type { PtxModule, Statement } from '../syntax/ast.js';
import type { Inst, SharedVariable } from './program.js';

/**
 * The beginning of a block's shared memory, in modules where nothing has a name there: all of it is
 * dynamic.
 */
export function unnamedShared({
  variables,
  functions,
  source,
}: PtxModule): SharedVariable | undefined {
  const named = (statements: readonly Statement[]): boolean =>
    statements.some((statement) =>
      statement.kind === 'block'
        ? named(statement.statements)
        : statement.kind === 'variable' && statement.space === 'shared',
    );
  if (
    variables.some(({ space }) => space === 'shared') ||
    functions.some(({ body }) => named(body ?? []))
  )
    return undefined;
  // The registers that are addresses of it name a part, too.
  if (source.text.includes('%reserved_smem_offset')) return undefined;
  return { name: '(shared memory)', size: 0, align: 16, dynamic: true };
}

/**
 * Whether an instruction's operand is an address of the block's own shared memory. Copies by bulk
 * and what reaches other blocks of a cluster stay as they are: their addresses are those that
 * `mapa` and `mbarrier` make.
 */
export function isOwnSharedAddress({ mnemonic, modifiers, args }: Inst, index: number): boolean {
  if (
    args[index]?.kind !== 'address' ||
    modifiers.includes('bulk') ||
    modifiers.includes('shared::cluster')
  )
    return false;
  if (!modifiers.includes('shared') && !modifiers.includes('shared::cta')) return false;
  // `cp.async` copies from global memory.
  return mnemonic !== 'cp' || index === 0;
}
