// Kernels that are too large for one function give the same results when they are divided into
// several.

import * as fc from '../../../test/fast-check.js';
import { describe, expect, it } from 'vitest';
import { Grid, kernelText } from '../run-grid.test-support.js';
import { someOf } from '../../../test/random-runs.js';

const HEAD = `.reg .b64 %p, %i; .reg .b32 %t, %n, %r<8>; .reg .f32 %f<4>; .reg .pred %q<4>;
  .shared .align 4 .b8 s[512];
  ld.param.u64 %p, [out]; mov.u32 %t, %tid.x; mul.wide.u32 %i, %t, 16; add.u64 %p, %p, %i;
  mov.u32 %n, 0;
  ld.global.u32 %r0, [%p]; mov.u32 %r1, 1; mov.u32 %r2, %t; mov.u32 %r3, 3;
  cvt.rn.f32.u32 %f0, %t; mov.f32 %f1, 0f3f800000;`;
const TAIL =
  'st.global.u32 [%p], %r1; st.global.u32 [%p+4], %r2; st.global.u32 [%p+8], %r3; ' +
  'st.global.f32 [%p+12], %f0; ret;';

/** Pieces of code; `#` is replaced by a unique number. */
const PIECES = {
  arithmetic:
    'mad.lo.u32 %r1, %r1, 5, %r2; xor.b32 %r2, %r2, %r1; add.u32 %r3, %r3, %r0; fma.rn.f32 ' +
    '%f0, %f0, %f1, %f1;',
  branch:
    'and.b32 %r4, %r1, 1; setp.eq.u32 %q0, %r4, 0; @%q0 bra E#; add.u32 %r2, %r2, 7; bra J#; ' +
    'E#: sub.u32 %r3, %r3, 5; J#: add.u32 %r1, %r1, %r3;',
  loop:
    'and.b32 %r4, %r2, 3; mov.u32 %r5, 0; L#: add.u32 %r1, %r1, %r5; add.u32 %r3, %r3, %r1; ' +
    'add.u32 %r5, %r5, 1; setp.le.u32 %q1, %r5, %r4; @%q1 bra L#;',
  longLoop:
    'mov.u32 %r6, 0; B#: mad.lo.u32 %r1, %r1, 3, %r6; shfl.sync.bfly.b32 %r7, %r1, 1, 31, ' +
    '-1; xor.b32 %r2, %r2, %r7; bar.sync 0; add.u32 %r3, %r3, %r2; add.u32 %r6, %r6, 1; ' +
    'setp.lt.u32 %q2, %r6, 3; @%q2 bra B#;',
  barrier:
    'mov.u32 %r4, s; mad.lo.u32 %r5, %t, 4, %r4; st.shared.u32 [%r5], %r1; bar.sync 0; ' +
    'xor.b32 %r6, %t, 33; mad.lo.u32 %r6, %r6, 4, %r4; ld.shared.u32 %r7, [%r6]; add.u32 ' +
    '%r2, %r2, %r7; bar.sync 0;',
  shuffle:
    'shfl.sync.idx.b32 %r7, %r3, 5, 31, -1; add.u32 %r1, %r1, %r7; and.b32 %r4, %r1, 1; ' +
    'setp.eq.u32 %q3, %r4, 0; vote.sync.ballot.b32 %r6, %q3, -1; xor.b32 %r2, %r2, %r6;',
  leave:
    'setp.eq.u32 %q0, %n, %t; @%q0 bra X#; bra Y#; X#: add.u32 %r3, %r3, 1; Y#: add.u32 %n, %n, 1;',
  memory: 'ld.global.u32 %r7, [%p+4]; add.u32 %r7, %r7, %r1; st.global.u32 [%p+4], %r7;',
} as const;
type Piece = keyof typeof PIECES;

const textOf = (pieces: readonly Piece[]): string => {
  const texts = pieces.map((piece, index) => PIECES[piece].replaceAll('#', String(index)));
  return kernelText('k', '.param .u64 out', [HEAD, ...texts, TAIL].join('\n'));
};

function results(
  text: string,
  largestFunction: number | undefined,
  fuel?: number,
): { words: number[]; parts: number } {
  const grid = new Grid(text, largestFunction === undefined ? {} : { largestFunction });
  const out = grid.put(Uint32Array.from({ length: 4 * 64 }, (_, index) => index * 2654435761));
  const outcome = grid.run('k', [{ i64: out.address }], {
    grid: [1],
    block: [64],
    ...(fuel === undefined ? {} : { fuel }),
  });
  expect(outcome.status).toBe(0);
  const names = new TextDecoder('latin1').decode(grid.module.wasm).match(/k part \d+/g) ?? [];
  return { words: [...out.view], parts: names.length };
}

describe('a kernel that becomes several functions', () => {
  someOf(2, it)(Object.keys(PIECES) as Piece[])('of %s', (piece) => {
    // Waits and loops take much code, and each is an entry of every part.
    const text = textOf(
      new Array<Piece>(['longLoop', 'barrier', 'shuffle', 'loop'].includes(piece) ? 24 : 300).fill(
        piece,
      ),
    );
    const divided = results(text, 4000);
    expect(divided.parts).toBeGreaterThan(1);
    expect(divided.words).toEqual(results(text, undefined).words);
    expect(results(text, 4000, 7).words).toEqual(divided.words);
  });

  it('of pieces at random', { tags: 'random' }, () => {
    fc.assert(
      fc.property(
        fc.array(fc.constantFrom(...(Object.keys(PIECES) as Piece[])), {
          minLength: 6,
          maxLength: 30,
        }),
        fc.integer({ min: 3000, max: 9000 }),
        fc.constantFrom(undefined, 1, 50),
        (pieces, largest, fuel) => {
          const text = textOf(pieces);
          expect(results(text, largest, fuel).words).toEqual(results(text, undefined).words);
        },
      ),
      { numRuns: 40 },
    );
  });

  it(
    'of many more instructions than a function of an engine holds, in one block',
    { tags: 'thorough' },
    () => {
      const count = 250_000;
      const text = kernelText(
        'k',
        '.param .u64 out',
        `.reg .b64 %p; .reg .b32 %r<3>; ld.param.u64 %p, [out]; mov.u32 %r1, 0;
      ${'ld.global.u32 %r2, [%p]; add.u32 %r1, %r1, %r2;\n'.repeat(count / 2)} st.global.u32
        [%p+4], %r1; ret;`,
      );
      const grid = new Grid(text);
      const out = grid.put(Uint32Array.of(3, 0));
      expect(grid.run('k', [{ i64: out.address }], { grid: [1], block: [1] }).status).toBe(0);
      expect(out.view[1]).toBe((3 * count) / 2);
    },
  );
});
