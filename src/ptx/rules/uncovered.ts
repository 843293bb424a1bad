/**
 * Mnemonics of the PTX ISA (up to 9.0) that have no rule yet. A kernel that uses one is set aside; a mnemonic that is
 * neither here nor in a rule is no PTX, and an error of the whole module.
 */
export const UNCOVERED_MNEMONICS: ReadonlySet<string> = new Set([
  'tex', 'tld4', 'txq', 'suld', 'sust', 'sured', 'suq', 'istypep',
  'wmma', 'mma', 'ldmatrix', 'stmatrix', 'movmatrix', 'wgmma', 'tcgen05',
  'tensormap', 'cp', 'multimem', 'clusterlaunchcontrol', 'mapa', 'getctarank', 'griddepcontrol', 'setmaxnreg',
  'applypriority', 'discard', 'createpolicy', 'pmevent', 'alloca', 'stacksave', 'stackrestore',
  'vadd', 'vsub', 'vabsdiff', 'vmin', 'vmax', 'vshl', 'vshr', 'vmad', 'vset',
  'barrier', 'bar', 'mbarrier', 'fence', 'membar', 'red', 'atom', 'ld', 'st', 'ldu', 'prefetch', 'prefetchu', 'isspacep', 'cvta',
  'cvt', 'szext', 'bmsk', 'fns', 'dp2a', 'dp4a', 'add', 'sub', 'mul', 'mad', 'fma', 'div', 'rem', 'abs', 'neg', 'min', 'max',
]);
