// Shared memory without variables. Halide's code, which has dynamic shared memory only, counts
// addresses in it from 0: on a GPU a block's shared memory begins there. In the CPU device it
// begins anywhere in the one memory, so the addresses in such a text count from a variable at its
// beginning.

import type { PtxModule, Statement } from '../syntax/ast.js';
import type { Inst, SharedVariable } from './program.js';

/**
 * A variable at the beginning of a block's shared memory, in modules that name nothing there: all
 * of it is dynamic.
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
  // The registers that contain addresses of it name a part, too.
  if (source.text.includes('%reserved_smem_offset')) return undefined;
  return { name: '(shared memory)', size: 0, align: 16, dynamic: true };
}

/**
 * Whether an instruction's operand is an address of the block's own shared memory. Bulk copies and
 * accesses to other blocks of a cluster are not: their addresses come from `mapa` and `mbarrier`.
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
