// Loads of unwritten words, of which `selp` chooses.

import { describe, expect, test } from 'vitest';
import { CheckedDevice, kernelOf } from '../testing/checked-device.js';

/**
 * Loads both words of `s`, of which only the first was written. `bound` is in %p3: whether the
 * second one counts.
 */
function kindsOf(choose: string, bound: 'setp.ne.u32' | 'setp.eq.u32'): string[] {
  const device = new CheckedDevice().load(
    kernelOf(
      1,
      `.shared .align 4 .f32 s[2];
.reg .f32 %v<12>; .reg .pred %q<8>; .reg .b32 %w<8>;
mov.f32 %v1, 0f40000000;
st.shared.f32 [s], %v1;
ld.shared.f32 %v2, [s];
ld.shared.f32 %v3, [s+4];
${bound} %q3, %r0, %r0;
${choose}
mul.f32 %v4, %v4, 0f40000000;
st.global.f32 [%rd0], %v4;`,
    ),
  );
  device.launch('k', [[device.words(0)]], { block: 1 });
  return device.fails().map(({ kind, place }) => `${kind} ${place?.instruction}`);
}

describe.each([
  ['a value', 'selp.f32 %v4, %v3, %v2, %q3;'],
  ['the other way round', 'not.pred %q4, %q3;\nselp.f32 %v4, %v2, %v3, %q4;'],
  ['a sum', 'add.f32 %v5, %v2, %v3;\nselp.f32 %v4, %v5, %v2, %q3;'],
  [
    'a greatest value, as of cub::BlockReduce',
    'setp.leu.f32 %q1, %v2, %v3;\nand.pred %q2, %q3, %q1;\nselp.f32 %v4, %v3, %v2, %q2;',
  ],
  [
    'a value that has gone through several instructions',
    'mov.f32 %v5, %v3;\nmul.f32 %v6, %v5, %v5;\nneg.f32 %v7, %v6;\nselp.f32 %v4, %v7, %v2, %q3;',
  ],
  [
    'one after the other',
    'add.f32 %v5, %v2, %v3;\nselp.f32 %v6, %v5, %v2, %q3;\nadd.f32 %v7, %v6, %v3;\nselp.f32 ' +
      '%v4, %v7, %v6, %q3;',
  ],
])('%s', (name, choose) => {
  test('a word that selp discards does not count as read', () => {
    expect(kindsOf(choose, 'setp.ne.u32')).toEqual([]);
  });

  test.skipIf(name.startsWith('a greatest'))('a word that selp chooses counts as read', () => {
    expect(kindsOf(choose, 'setp.eq.u32')).toEqual(['uninitialised ld.shared.f32 %v3, [s+4];']);
  });
});

test('the words of a sum that is used besides the choice count as read', () => {
  expect(
    kindsOf(
      'add.f32 %v5, %v2, %v3;\nst.global.f32 [%rd0], %v5;\nselp.f32 %v4, %v5, %v2, %q3;',
      'setp.ne.u32',
    ),
  ).toEqual(['uninitialised ld.shared.f32 %v3, [s+4];']);
});

test('a word in a predicate of selp counts as read', () => {
  expect(
    kindsOf('setp.gt.f32 %q5, %v3, 0f00000000;\nselp.f32 %v4, %v2, %v1, %q5;', 'setp.ne.u32'),
  ).toEqual(['uninitialised ld.shared.f32 %v3, [s+4];']);
});
