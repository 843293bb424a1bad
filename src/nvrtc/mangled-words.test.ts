/** Integers among parameters, of names that NVRTC gives. */
import { expect, test } from 'vitest';

import { mangledWords } from './mangled-words.js';

test.each<[string, string, readonly (string | undefined)[]]>([
  ['f(float*, int, unsigned, bool)', '_Z1fPfijb', [undefined, 'signed', 'unsigned', 'bool']],
  ['characters', '_Z1fchaPKc', ['signed', 'unsigned', 'signed', undefined]],
  [
    'all sizes',
    '_Z1fstlmxyfd',
    ['signed', 'unsigned', 'signed', 'unsigned', 'signed', 'unsigned', undefined, undefined],
  ],
  ['no parameters', '_Z1fv', []],
  ['a restrict pointer to const', '_Z1fPKfPfi', [undefined, undefined, 'signed']],
  [
    'a structure and its pointer again',
    '_Z1f3FooPS_S0_i',
    [undefined, undefined, undefined, 'signed'],
  ],
  ['an instance: fill<float>(T*, T, int)', '_Z4fillIfEvPT_S0_i', [undefined, undefined, 'signed']],
  ['an instance: fill<int>(T*, T)', '_Z4fillIiEvPT_S0_', [undefined, 'signed']],
  ['two types and a number', '_Z3twoIjbLi4EEvPT_S0_T0_', [undefined, 'unsigned', 'bool']],
  ['in a namespace', '_ZN5inner6hiddenEPfi', [undefined, 'signed']],
  ['an instance in a namespace', '_ZN5inner4fillIhEEvPT_S1_i', [undefined, 'unsigned', 'signed']],
  ['a structure of a namespace', '_ZN5inner1fENS_3FooEi', [undefined, 'signed']],
  ['an instance by value', '_Z1f4PairIifEi', [undefined, 'signed']],
  ['an array that is pointed to', '_Z1fPA4_fi', [undefined, 'signed']],
])('%s', (_, name, expected) => {
  const words = mangledWords(name);
  expect(expected.map((__, index) => words.get(index))).toEqual(expected);
});

test('what is not read, or not mangled, has none', () => {
  for (const name of [
    'f',
    '_Z',
    '_Z1',
    '_Z9f',
    '_Z1fDpT_',
    '_Z1fIiE',
    '_Z1fT_i',
    '_Z1fS3_i',
    '_ZN1fi',
    '_Z1fPFviEi',
    '_Z1fIXadL_Z1gvEEEvi',
  ])
    expect([...mangledWords(name)]).toEqual([]);
});
