/**
 * Kernels of a wanted size, made of sample kernels' bodies: what the compile-time benchmark and its
 * test compile.
 */

const MEDIAN = `
    cvt.rn.f32.u32 %f1, %r4; mul.f32 %f2, %f1, 0f3F000000; fma.rn.f32 %f3, %f2, %f1, %f2;
    setp.gt.f32 %p1, %f3, %f2; @%p1 bra SKIP;
    add.s32 %r5, %r4, 1; shl.b32 %r6, %r5, 2; xor.b32 %r7, %r6, %r4; and.b32 %r8, %r7, 255;
    mul.lo.s32 %r9, %r8, %r5; mad.lo.s32 %r10, %r9, 3, %r4;
    mul.wide.s32 %rd5, %r8, 4; add.s64 %rd6, %rd2, %rd5; ld.global.f32 %f4, [%rd6];
    sub.f32 %f5, %f4, %f3; max.f32 %f6, %f5, %f1; abs.f32 %f7, %f6; selp.f32 %f8, %f7, %f6, %p1;
    st.global.f32 [%rd6], %f8; cvt.rzi.s32.f32 %r11, %f8; min.s32 %r12, %r11, %r10;
    setp.lt.s32 %p2, %r12, %r4; selp.b32 %r4, %r12, %r10, %p2; sqrt.rn.f32 %f9, %f7;
    div.rn.f32 %f1, %f9, %f2;
SKIP:
    add.f32 %f10, %f10, %f1; shr.u32 %r13, %r4, 3; or.b32 %r4, %r13, %r3;`;
const PER_PIECE = 27;

/**
 * A kernel of about so many instructions, with a branch in every 27 and a loop around every eighth
 * of them.
 */
export function kernelOfSize(instructions: number): string {
  const pieces = Math.max(1, Math.round((instructions - 20) / PER_PIECE));
  const body: string[] = [];
  for (let piece = 0; piece < pieces; piece++) {
    const loop = piece % 8 === 7;
    if (loop) body.push(`mov.u32 %r14, 0;\nLOOP${piece}:`);
    body.push(MEDIAN.replaceAll('SKIP', `SKIP${piece}`).trim());
    if (loop) body.push(`add.s32 %r14, %r14, 1; setp.lt.s32 %p3, %r14, 4; @%p3 bra LOOP${piece};`);
    // Every piece has registers of its own, as a compiler's output does; four are carried on.
    if (piece) {
      const carried = /^(%r[34]|%r14|%rd2|%f1|%f10)$/;
      for (let at = body.length - (loop ? 3 : 1); at < body.length; at++) {
        body[at] = body[at]!.replaceAll(
          /%(r|rd|f|p)(\d+)/g,
          (name, kind: string, number: string) =>
            carried.test(name) ? name : `%${kind}${Number(number) + 16 * piece}`,
        );
      }
    }
  }
  const registers = 16 * pieces + 16;
  return `.version 8.0
.target sm_80
.address_size 64
.visible .entry large(.param .u64 large_param_0, .param .u32 large_param_1)
{
.reg .pred %p<${registers}>; .reg .f32 %f<${registers}>; .reg .b32 %r<${registers}>;
.reg .b64 %rd<${registers}>;
ld.param.u64 %rd1, [large_param_0];
cvta.to.global.u64 %rd2, %rd1;
mov.u32 %r1, %tid.x;
mov.u32 %r2, %ctaid.x;
mad.lo.s32 %r3, %r2, 32, %r1;
mov.u32 %r4, %r3;
mov.f32 %f10, 0f00000000;
${body.join('\n')}
st.global.f32 [%rd2], %f10;
ret;
}
`;
}

/**
 * A kernel `branches` of so many labels, each of which may go to each other: V8 takes long to
 * optimise it.
 */
export function manyBranches(labels: number): string {
  const lines: string[] = [];
  for (let from = 0; from < labels; from++) {
    lines.push(`L${from}: add.u32 %r, %r, ${from + 1};`);
    for (let to = 0; to < labels; to++)
      lines.push(`setp.eq.u32 %p, %r, ${from * labels + to}; @%p bra L${to};`);
    lines.push('setp.gt.u32 %p, %r, 1000; @%p bra END;');
  }
  return `.version 7.8
.target sm_80
.address_size 64
.visible .entry branches(.param .u64 words)
{
.reg .u32 %r; .reg .u64 %a; .reg .pred %p;
ld.param.u64 %a, [words];
ld.global.u32 %r, [%a];
${lines.join('\n')}
bra L0;
END: st.global.u32 [%a], %r;
ret;
}
`;
}

const LONG_HEAD = `.version 7.8
.target sm_80
.address_size 64
.visible .entry branches(.param .u64 words)
{
.reg .u32 %r<3>; .reg .u64 %a; .reg .pred %p;
ld.param.u64 %a, [words];
ld.global.u32 %r1, [%a];
`;
const lines = (count: number, line: (index: number) => string): string =>
  Array.from({ length: count }, (_, index) => line(index)).join('\n');
const withHead = (body: string): string => `${LONG_HEAD}${body}
st.global.u32 [%a], %r1;
ret;
}
`;
const branches = (count: number, to: (index: number) => number): string =>
  lines(count, (at) => `setp.eq.u32 %p, %r1, ${1_000_000 + at}; @%p bra B${to(at)};`);
const labels = (count: number): string => lines(count, (at) => `B${at}: add.u32 %r1, %r1, ${at};`);

/** Kernels that V8 optimises slowly. Branches are not taken, but those of the loops in a row. */
export const LONG_SHAPES = {
  'loops, each in the next': (size) =>
    withHead(`${labels(size)}\n${branches(size, (at) => size - 1 - at)}`),
  'loops that overlap': (size) => withHead(`${labels(size)}\n${branches(size, (at) => at)}`),
  'loops in a row': (size) =>
    withHead(
      lines(
        size,
        (at) => `mov.u32 %r2, 0;
    B${at}: add.u32 %r2, %r2, 1; add.u32 %r1, %r1, %r2; setp.lt.u32 %p, %r2, 2; @%p bra B${at};`,
      ),
    ),
  'branches to one label': (size) => withHead(`${labels(size)}\n${branches(size, () => 0)}`),
  'no branches': (size) => withHead(lines(size, (at) => `mad.lo.u32 %r1, %r1, ${at + 3}, ${at};`)),
} satisfies Record<string, (size: number) => string>;

export type LongShape = keyof typeof LONG_SHAPES;
