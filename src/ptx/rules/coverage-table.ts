// The coverage table as Markdown: one row for each mnemonic, from the forms. `npm run docs:ptx`
// writes it.

import { isScalarType } from '../scalar-types.js';
import type { Form } from '../isa/form.js';
import { FORMS_OF, RULES } from '../isa/table.js';
import { UNCOVERED_MNEMONICS } from './uncovered.js';

/** What the ISA leaves open, and what differs from it. */
const NOTES: Readonly<Record<string, string>> = {
  alloca: 'up to 4096 bytes per thread and function; more is a stack overflow',
  applypriority: 'a hint: does nothing',
  atom:
    'in global memory WebAssembly atomics, always with the order of `sc`; 128 ' +
    'bits under one lock for all modules; f16 and bf16 are rounded once; sums of f32 in global ' +
    'memory are flushed, in shared memory not',
  bar: 'does not wait for threads that have exited',
  barrier: '`.cluster` does not wait for threads that have exited',
  brkpt: 'ends the launch with an error: there is no debugger',
  call:
    'direct, through a pointer with `.callprototype`, `.calltargets` or a table of functions, ' +
    'recursive; `vprintf`, `malloc`, `free`, `__assertfail`, `cudaGraphSetConditional` are ' +
    'provided',
  cp:
    'copies are done at once, and waits for them do nothing; prefetches do nothing. Values of ' +
    'tf32 tensors are rounded by loads',
  createpolicy: 'policies have no effect: all are zero',
  cvt: '`.rs` with formats of 4 to 8 bits adds the random bits below the last bit that is kept',
  discard: 'a hint: does nothing',
  div: '`.approx` and `.full` are rounded correctly; division of integers by zero gives all ones',
  getctarank: 'for an address in no other block, the rank of the own block',
  griddepcontrol: 'does nothing: grids of a stream run one after the other',
  ld:
    'cache operators, eviction priorities, prefetch sizes and policies have no effect; ' +
    '`volatile`, `relaxed`, `acquire` and `mmio` are atomic loads, for each element of a ' +
    'vector; `.b128` is one load, under the lock of `atom`',
  mapa: 'for a rank that the cluster does not have, an address that faults',
  ldmatrix: 'all lanes of the warp have to reach it',
  movmatrix: 'like `ldmatrix`',
  stmatrix: 'like `ldmatrix`',
  mma:
    'refused: `.block_scale` (`.kind::mxf8f6f4`, `.kind::mxf4`, `.kind::mxf4nvf4`). Sums run ' +
    'over k in ascending order, each rounded',
  wgmma:
    'computed when all four warps of the group have arrived: the instructions that wait do ' +
    'nothing. Sums run over k in ascending order, each rounded. Refused: `.sp`',
  mbarrier: 'a wait gives way to other threads; time limits of `try_wait` have no effect',
  nanosleep: 'gives way to other threads, for an unspecified time',
  pmevent: 'does nothing',
  prefetch: 'a hint: does nothing',
  prefetchu: 'a hint: does nothing',
  red: 'like `atom`',
  rem: 'division by zero gives the dividend',
  setmaxnreg: 'does nothing',
  shfl: 'a read from a lane without a thread gives the own value',
  st: 'like `ld`',
  trap: 'ends the launch with an error',
};

const REFUSED: Readonly<Record<string, string>> = {
  clusterlaunchcontrol: 'work that one cluster takes from another',
  multimem: 'memory of several GPUs',
  tcgen05: 'tensor memory',
};

/** Parts of instructions that are otherwise covered. */
const PARTS_REFUSED: readonly (readonly [string, string])[] = [
  [
    '`cp.async.bulk.tensor` with `.im2col::w`, `.im2col::w::128` and `.cta_group`',
    'tensor copies of sm_100 for convolutions and pairs of blocks',
  ],
  ['`mma` with `.block_scale`', 'scaled blocks, of sm_120a only'],
  [
    '`tex` with a depth comparison, with `.2dms` and `.a2dms`, and of `.cube` with integers; ' +
      '`tld4` of `.cube` and `.acube`',
    'depth comparison and multisampling, which texture objects of this device do not have',
  ],
  ['levels of mipmapped textures (`.level` and `.grad` read the only level)', 'mipmapped arrays'],
  ['`suld.p`', 'formatted loads: the ISA has formatted stores only'],
  [
    'barriers, shuffles and votes in recursive functions; a loop there, or in a function ' +
      'called through a pointer, that waits for another thread ends with a timeout',
    'functions that wait are inlined',
  ],
  ['kernels that launch kernels (calls of `__cudaCDP2…`)', "CUDA's device runtime"],
];

const unique = (words: Iterable<string>): string[] => [...new Set(words)];
const code = (words: readonly string[]): string => words.map((word) => `\`${word}\``).join(' ');

function combinations({ places }: Form): number {
  return places.reduce(
    (product, { words, optional }) => product * (words.length + (optional ? 1 : 0)),
    1,
  );
}

/** `add{.rn,.rz}[.ftz].f32 T, T, T` */
function signature({ mnemonic, places, operands, sinceText }: Form): string {
  const parts = places.map(({ words, optional }) => {
    const alternatives = words.map((word) => `.${word}`).join('|');
    return optional ? `[${alternatives}]` : words.length > 1 ? `{${alternatives}}` : alternatives;
  });
  const since = sinceText === '' ? '' : `   // ${sinceText}`;
  return `${mnemonic}${parts.join('')} ${operands.join(', ')}`.trimEnd() + since;
}

export function coverageTable(): string {
  const rows = [...FORMS_OF]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([mnemonic, forms]) => {
      const words = forms.flatMap(({ places }) => places.flatMap((place) => [...place.words]));
      const types = unique(words.filter(isScalarType));
      const modifiers = unique(words.filter((word) => !isScalarType(word)));
      const count = forms.reduce((sum, row) => sum + combinations(row), 0);
      return (
        `| ${mnemonic} | ${code(types)} | ${code(modifiers)} | ${count} | ` +
        `${NOTES[mnemonic] ?? ''} |`
      );
    });
  // copy is an instruction of the compiler.
  const others = [...RULES.keys()]
    .filter((mnemonic) => !FORMS_OF.has(mnemonic) && mnemonic !== 'copy')
    .sort();
  const refused = [...UNCOVERED_MNEMONICS]
    .sort()
    .map((mnemonic) => `| ${mnemonic} | ${REFUSED[mnemonic] ?? ''} |`);
  const forms = [...FORMS_OF].flatMap(([, list]) => unique(list.map(signature)));
  return [
    '# PTX coverage',
    '',
    'The instructions of the PTX ISA 9.0 that the embedded CPU device runs. `npm run docs:ptx` ' +
      'makes this page from',
    'the rows in `src/ptx/isa/`. A test compiles an instruction of every row, and compares this ' +
      'page with the rows.',
    '',
    'Modifiers may come in any order, types only in theirs. The compiler rejects a combination ' +
      'that is in no row, with',
    'line, column and the instruction; the other kernels of the module still ' + 'compile.',
    '',
    '| instruction | types | modifiers | combinations | notes |',
    '|---|---|---|---:|---|',
    ...rows,
    '',
    ...(others.length
      ? ['Covered by rules that check their forms themselves: ' + code(others) + '.', '']
      : []),
    '## Refused',
    '',
    '| instruction | needs |',
    '|---|---|',
    ...refused,
    ...PARTS_REFUSED.map(([what, why]) => `| ${what} | ${why} |`),
    '',
    '## Rows',
    '',
    'An instruction has one of the words in braces, and at most one of those in brackets. `T` ' +
      'is a register of the last type,',
    '`T1` of the first, `{T}` a vector, `p` a predicate, `[A]` an address in the space that the ' +
      'instruction names, `[g]` a global',
    'and `[s]` a shared one, `{d}` the accumulators of a lane; `?` marks an operand that may be ' +
      'left out. The .version',
    'and the .target after a row are the first that have it; single words of a row may need ' +
      'later ones.',
    '',
    '```',
    ...forms,
    '```',
    '',
  ].join('\n');
}
