// wgmma under the checker: what is read from shared memory, and until when.

import { expect, test } from 'vitest';

import type { CheckReport } from '../../../ground/check-report.js';
import { CheckedDevice } from '../testing/checked-device.js';

/**
 * A warp writes operands, a warp group multiplies them, one of its threads releases them, and the
 * warp writes the next ones. All core matrices are the 128 bytes of `s`.
 */
function kernel(beforeProduct: string, betweenProductAndRelease: string, after: string): string {
  return `.version 8.0
.target sm_90a
.address_size 64
.visible .entry k() {
.shared .align 1024 .b32 s[32];
.shared .align 8 .b64 full;
.shared .align 8 .b64 empty;
.reg .b32 %r<8>; .reg .b64 %rd<4>; .reg .f32 %f<4>; .reg .pred %p<4>;
mov.u32 %r0, %tid.x;
setp.ne.u32 %p0, %r0, 0;
@%p0 bra READY;
mbarrier.init.shared.b64 [full], 32;
mbarrier.init.shared.b64 [empty], 1;
READY: bar.sync 0;
mov.u32 %r1, s;
setp.ge.u32 %p1, %r0, 128;
@%p1 bra PRODUCER;
shr.u32 %r2, %r1, 4; and.b32 %r2, %r2, 0x3fff; cvt.u64.u32 %rd0, %r2;
${beforeProduct}
setp.ne.u32 %p2, %r0, %r0;
wgmma.fence.sync.aligned;
wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f0,%f1,%f2,%f3}, %rd0, %rd0, %p2, 1, 1, 0, 0;
wgmma.commit_group.sync.aligned;
${betweenProductAndRelease}
setp.eq.u32 %p3, %r0, 37;
@%p3 mbarrier.arrive.shared.b64 %rd1, [empty];
${after}
ret;
PRODUCER:
and.b32 %r3, %r0, 31; shl.b32 %r3, %r3, 2; add.u32 %r3, %r3, %r1;
st.shared.b32 [%r3], %r0;
fence.proxy.async;
mbarrier.arrive.shared.b64 %rd1, [full];
EMPTY: mbarrier.try_wait.parity.shared.b64 %p3, [empty], 0;
@!%p3 bra EMPTY;
st.shared.b32 [%r3], %r0;
ret;
}`;
}

const FULL = 'FULL: mbarrier.try_wait.parity.shared.b64 %p3, [full], 0;\n@!%p3 bra FULL;';
const DONE = 'wgmma.wait_group.sync.aligned 0;';

function run(text: string): readonly CheckReport[] {
  const device = new CheckedDevice().load(text);
  device.launch('k', [], { block: 160 });
  return device.fails();
}

test('a product that waits for its operands, and is waited for before they change', () => {
  expect(run(kernel(FULL, DONE, ''))).toEqual([]);
});

test('a product that does not wait for its operands', () => {
  expect(run(kernel('', DONE, ''))).toMatchObject([
    {
      kind: 'race',
      place: { instruction: expect.stringMatching(/st\.shared|wgmma\.mma/) as string },
      memory: { label: 's', space: 'shared' },
    },
    { kind: 'uninitialised', place: { instruction: expect.stringMatching(/wgmma/) as string } },
  ]);
});

test('operands that change before the product is waited for', () => {
  expect(run(kernel(FULL, '', DONE))).toMatchObject([
    {
      kind: 'race',
      place: { instruction: expect.stringMatching(/st\.shared|wgmma\.mma/) as string },
      other: { instruction: expect.stringMatching(/st\.shared|wgmma\.mma/) as string },
      memory: { label: 's' },
    },
  ]);
});

test('a product whose descriptor names memory beyond the variable', () => {
  const [report] = run(kernel(`${FULL}\nadd.u64 %rd0, %rd0, 0x0000004000000000;`, DONE, ''));
  expect(report).toMatchObject({ kind: 'out-of-bounds' });
});
