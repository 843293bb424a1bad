import { expect, test } from 'vitest';

import { Grid, kernelText, sample } from '../run-grid.test-support.js';

const sideBySide = (text: string, name: string): boolean => {
  const lanes = new Grid(text, { simd: true }).kernel(name).inLanes([256, 1, 1]);
  if (typeof lanes === 'string') throw new Error(lanes);
  return lanes.sideBySide !== undefined;
};

const loop = (stride: string, access: string): string =>
  kernelText(
    'k',
    '.param .u64 p, .param .u32 n',
    `
  .reg .pred %p; .reg .b32 %r<8>; .reg .b64 %rd<4>; .reg .b16 %h;
  ld.param.u64 %rd0, [p]; ld.param.u32 %r0, [n];
  mov.u32 %r1, %ctaid.x; mov.u32 %r2, %tid.x; mov.u32 %r3, %ntid.x;
  mad.lo.u32 %r4, %r1, %r3, %r2;
  ${stride}
again:
  mul.wide.u32 %rd1, %r4, 4; add.s64 %rd2, %rd0, %rd1;
  ${access}
  add.u32 %r4, %r4, %r5;
  setp.lt.u32 %p, %r4, %r0;
  @%p bra again;
  ret;`,
  );
const GRID = 'mov.u32 %r6, %nctaid.x; mul.lo.u32 %r5, %r6, %r3;';
const ACCESS = 'st.global.u32 [%rd2], %r4;';

test('blocks may run side by side that go through memory with the stride of the grid', () => {
  expect(sideBySide(loop(GRID, ACCESS), 'k')).toBe(true);
  expect(sideBySide(sample('k03_reduce'), 'reduce_sum')).toBe(true);
});

test('others run one after the other', () => {
  // A block that goes through a row by itself does not profit from other blocks.
  expect(sideBySide(loop('mov.u32 %r5, %r3;', ACCESS), 'k')).toBe(false);
  expect(sideBySide(sample('k05_softmax'), 'rms_norm')).toBe(false);
  // Bytes: many turns for little memory.
  expect(sideBySide(sample('k06_hist'), 'hist256')).toBe(false);
  // There is no loop, or one that waits at barriers.
  expect(sideBySide(sample('k08_transpose'), 'transpose')).toBe(false);
  expect(sideBySide(sample('k04_sgemm'), 'sgemm_tiled')).toBe(false);
});
