/**
 * Mnemonics of the PTX ISA (up to 9.0) that have no rule. A kernel that uses one is a failure of
 * its own; a mnemonic that is neither here nor in a row is not PTX, and an error of the whole
 * module.
 */
export const UNCOVERED_MNEMONICS: ReadonlySet<string> = new Set([
  'tcgen05',
  'multimem',
  'clusterlaunchcontrol',
]);
