/**
 * Code for GPUs before Volta: the last warp of a reduction, with nothing between its steps. Its
 * accesses are volatile, or should be: of plain ones ptxas may move the loads up, and an H200 then
 * gives 70 for 64 words. The CPU device runs those in step, too.
 */
import { expect, test } from 'vitest';

import { i32 } from '../../src/core/index.js';
import { onCpu, onDevice } from '../core/test-device.js';

type Access = 'volatile.shared' | 'shared';

const step = (
  access: Access,
  distance: number,
): string => `ld.${access}.u32 %r3, [%r2+${4 * distance}];
ld.${access}.u32 %r4, [%r2];
add.u32 %r4, %r4, %r3;
st.${access}.u32 [%r2], %r4;`;

/** Four instructions that leave %r3 as it is: 0xaaaaaaab is the inverse of 3. */
const NOTHING =
  'mul.lo.u32 %r3, %r3, 3; xor.b32 %r3, %r3, %r1; xor.b32 %r3, %r3, %r1; ' +
  'mul.lo.u32 %r3, %r3, 0xaaaaaaab;\n';

/** `filler` instructions make it a kernel whose units would otherwise be half a warp. */
const reduction = (access: Access, threads: number, filler: number): string => `.version 7.0
.target sm_70
.address_size 64
.visible .entry reduce(.param .u64 words)
{
.reg .u64 %rd<5>; .reg .u32 %r<16>; .reg .pred %p;
.shared .align 4 .b8 sums[${8 * threads}];
ld.param.u64 %rd1, [words];
mov.u32 %r1, %tid.x;
mul.wide.u32 %rd2, %r1, 4;
add.s64 %rd3, %rd1, %rd2;
ld.global.u32 %r3, [%rd3];
${NOTHING.repeat(filler)}
mov.u32 %r2, sums;
mad.lo.u32 %r2, %r1, 4, %r2;
st.shared.u32 [%r2], %r3;
bar.sync 0;
setp.ge.u32 %p, %r1, 32;
@%p bra END;
${[32, 16, 8, 4, 2, 1]
  .filter((distance) => distance < threads)
  .map((distance) => step(access, distance))
  .join('\n')}
setp.ne.u32 %p, %r1, 0;
@%p bra END;
st.global.u32 [%rd1], %r4;
END: ret;
}
`;

onDevice('A warp with nothing between its steps', (host) => {
  const accesses: readonly Access[] = onCpu ? ['volatile.shared', 'shared'] : ['volatile.shared'];
  test.each(
    accesses.flatMap((access) =>
      [
        [64, 0],
        [32, 0],
        [64, 40],
      ].map(([threads, filler]) => ({ access, threads: threads!, filler: filler! })),
    ),
  )(
    'reduces $threads words by $access accesses at the first launch ($filler times more code)',
    async ({ access, threads, filler }) => {
      const module = await host.device.loadModule(reduction(access, threads, filler));
      const words = host.device.alloc(i32, threads);
      await words.write(
        host.stream,
        Int32Array.from({ length: threads }, (_, i) => i + 1),
      );
      await module.kernel('reduce').launch(host.stream, { grid: 1, block: threads }, words);
      expect((await words.read(host.stream))[0]).toBe((threads * (threads + 1)) / 2);
      words.close();
    },
  );
});
