/** PTX of the kernels of tensors: strided copies and conversions, sequences, random numbers. */
import { DTYPES, isKernelDType } from '../ground/dtype.js';
import type { DTypeName, KernelDTypeName } from '../ground/dtype.js';
import { CONVERSION_REGISTERS, carrierOf, readText, writeText } from './conversion-ptx.js';

const HEADER = '.version 7.0\n.target sm_70\n.address_size 64\n';

/** Puts the thread's number into %i0, and returns where there is no such element. */
const numbered = (count: string): string =>
  `ld.param.u32 %n, [${count}]; mov.u32 %i1, %ctaid.x; mov.u32 %i2, %ntid.x; mov.u32 %i3, ` +
  '%tid.x; mad.lo.u32 %i0, %i1, %i2, %i3; setp.ge.u32 %p0, %i0, %n; @%p0 ret;';

const REGISTERS = `.reg .b32 %i<8>; .reg .b32 %n; .reg .pred %p<2>; .reg .b64 %a<4>;
  ${CONVERSION_REGISTERS}`;

/**
 * `copy(in, out, n, then for each axis: extent, stride of in, stride of out)` copies element by
 * element in row-major order. Strides are in bytes. The extent of the outermost axis is a parameter
 * although the kernel does not read it.
 */
export function copyText(from: DTypeName, to: DTypeName, rank: number): string {
  const axes = Array.from({ length: rank }, (_, axis) => axis);
  const walk = axes
    .slice()
    .reverse()
    .map((axis) => {
      const index =
        axis === 0
          ? 'mov.u32 %i2, %i1;'
          : `ld.param.u32 %i3, [extent${axis}]; div.u32 %i4, %i1, %i3; mul.lo.u32 %i5, %i4, ` +
            '%i3; sub.u32 %i2, %i1, %i5; mov.u32 %i1, %i4;';
      return (
        `${index} cvt.s64.u32 %a2, %i2; ld.param.s64 %a3, [in${axis}]; mad.lo.s64 %a0, %a2, ` +
        `%a3, %a0; ld.param.s64 %a3, [out${axis}]; mad.lo.s64 %a1, %a2, %a3, %a1;`
      );
    });
  // Without a conversion the bits are moved, whatever their dtype.
  const [type, register] = MOVED[DTYPES[from].bytes]!;
  const moved =
    from === to || !isKernelDType(from) || !isKernelDType(to)
      ? `ld.global.${type} ${register}, [%a0]; st.global.${type} [%a1], ${register};`
      : `${readText(from, '[%a0]')}\n  ${writeText(carrierOf(from), to, '[%a1]')}`;
  const params = axes.map(
    (axis) => `,\n  .param .u32 extent${axis}, .param .s64 in${axis}, .param .s64 out${axis}`,
  );
  return `${HEADER}.visible .entry copy(.param .u64 in, .param .u64 out,
  .param .u32 n${params.join('')}) {
  ${REGISTERS}
  ${numbered('n')}
  ld.param.u64 %a0, [in]; ld.param.u64 %a1, [out]; cvta.to.global.u64 %a0, %a0;
  cvta.to.global.u64 %a1, %a1; mov.u32 %i1, %i0;
  ${walk.join('\n  ')}
  ${moved}
  ret;
}`;
}

/** PTX type and register by which an element of so many bytes is moved. */
const MOVED: Readonly<Record<number, readonly [type: string, register: string]>> = {
  1: ['b8', '%w0'],
  2: ['b16', '%h0'],
  4: ['b32', '%w0'],
  8: ['b64', '%d0'],
  // A vector access needs aligned addresses: elements lie at multiples of their size.
  16: ['v2.b64', '{%d0, %d1}'],
};

/** Puts the address of the thread's element of a contiguous output into %a1. */
const element = (dtype: KernelDTypeName): string =>
  'ld.param.u64 %a1, [out]; cvta.to.global.u64 %a1, %a1; mul.wide.u32 %a2, %i0, ' +
  `${DTYPES[dtype].bytes}; add.u64 %a1, %a1, %a2;`;

/**
 * `integers(out, n, first, step)` and `floats(out, n, first, step, last)` write first + i·step; the
 * last float is `last` itself. `eye(out, n, columns, diagonal)` writes 1 where column = row +
 * diagonal, and 0 elsewhere.
 */
export function sequenceText(dtype: KernelDTypeName): string {
  return `${HEADER}.visible .entry integers(.param .u64 out, .param .u32 n, .param .s64 first,
  .param .s64 step) {
  ${REGISTERS}
  ${numbered('n')} ${element(dtype)}
  ld.param.s64 %d0, [first]; ld.param.s64 %d1, [step]; cvt.s64.u32 %d2, %i0;
  mad.lo.s64 %d0, %d2, %d1, %d0;
  ${writeText('s64', dtype, '[%a1]')}
  ret;
}
.visible .entry floats(.param .u64 out, .param .u32 n, .param .f64 first, .param .f64 step,
  .param .f64 last) {
  ${REGISTERS}
  ${numbered('n')} ${element(dtype)}
  ld.param.f64 %g0, [first]; ld.param.f64 %g1, [step]; {.reg .f64 %x; cvt.rn.f64.u32 %x, %i0;
  fma.rn.f64 %g0, %x, %g1, %g0;
  ld.param.f64 %x, [last]; add.u32 %i2, %i0, 1; setp.eq.u32 %p1, %i2, %n;
  selp.f64 %g0, %x, %g0, %p1;}
  ${writeText('f64', dtype, '[%a1]')}
  ret;
}
// 1 where column = row + diagonal
.visible .entry eye(.param .u64 out, .param .u32 n, .param .u32 columns, .param .s32 diagonal) {
  ${REGISTERS}
  ${numbered('n')} ${element(dtype)}
  ld.param.u32 %i2, [columns]; div.u32 %i3, %i0, %i2; mul.lo.u32 %i4, %i3, %i2;
  sub.u32 %i4, %i0, %i4; ld.param.s32 %i5, [diagonal]; sub.s32 %i4, %i4, %i3;
  setp.eq.s32 %p1, %i4, %i5; selp.u32 %w0, 1, 0, %p1;
  ${writeText('u32', dtype, '[%a1]')}
  ret;
}`;
}

/** Constants of Philox4x32. */
const PHILOX = { m0: 0xd2511f53, m1: 0xcd9e8d57, w0: 0x9e3779b9, w1: 0xbb67ae85, rounds: 10 };

/**
 * `uniform(out, n, seed, from, width)` and `normal(out, n, seed, mean, deviation)` write random
 * numbers. Each thread writes four elements, by Philox4x32-10 with the thread's number as counter
 * and the seed as key: element i comes from word i mod 4 of counter ⌊i/4⌋, for each size and
 * device.
 */
export function randomText(dtype: KernelDTypeName): string {
  const double = dtype === 'f64';
  const nextKey = `add.u32 %k0, %k0, ${PHILOX.w0}; add.u32 %k1, %k1, ${PHILOX.w1};`;
  const rounds = Array.from(
    { length: PHILOX.rounds },
    (_, round) => `mul.wide.u32 %a2, %c0, ${PHILOX.m0}; mul.wide.u32 %a3, %c2, ${PHILOX.m1};
  mov.b64 {%l0, %h0x}, %a2; mov.b64 {%l1, %h1x}, %a3;
  xor.b32 %t0, %h1x, %c1; xor.b32 %c0, %t0, %k0; mov.u32 %c1, %l1; xor.b32 %t0, %h0x, %c3;
  xor.b32 %c2, %t0, %k1; mov.u32 %c3, %l0; ${round < PHILOX.rounds - 1 ? nextKey : ''}`,
  );
  const begin = `.reg .b32 %c<4>; .reg .b32 %k<2>; .reg .b32 %l<2>; .reg .b32 %h0x, %h1x, %t0;
  .reg .f32 %v<4>; .reg .f32 %s<4>; .reg .f64 %y<2>;
  ld.param.u32 %n, [n]; mov.u32 %i1, %ctaid.x; mov.u32 %i2, %ntid.x; mov.u32 %i3, %tid.x;
  mad.lo.u32 %c0, %i1, %i2, %i3; shl.b32 %i0, %c0, 2; setp.ge.u32 %p0, %i0, %n; @%p0 ret;
  mov.u32 %c1, 0; mov.u32 %c2, 0; mov.u32 %c3, 0; ld.param.u32 %k0, [seed];
  ld.param.u32 %k1, [seed+4]; ${element(dtype)} mov.u64 %a0, %a1;
  ${rounds.join('\n  ')}`;
  const put = (k: number, value: string): string =>
    `${value} add.u32 %i4, %i0, ${k}; setp.ge.u32 %p1, %i4, %n; @%p1 ret; ` +
    `${writeText(double ? 'f64' : 'f32', dtype, `[%a0+${k * DTYPES[dtype].bytes}]`)}`;
  const param = double ? 'f64' : 'f32';
  // A float comes from the upper 24 bits, a double from all 32.
  const uniform = (k: number): string =>
    double
      ? `cvt.rn.f64.u32 %g0, %c${k}; mul.rn.f64 %g0, %g0, 0d3DF0000000000000; ld.param.f64 ` +
        '%y0, [first]; ld.param.f64 %y1, [second]; fma.rn.f64 %g0, %g0, %y1, %y0;'
      : `shr.u32 %t0, %c${k}, 8; cvt.rn.f32.u32 %f0, %t0; mul.rn.f32 %f0, %f0, 0f33800000; ` +
        'ld.param.f32 %s0, [first]; ld.param.f32 %s1, [second]; fma.rn.f32 %f0, %f0, %s1, %s0;';
  // The Box-Muller transform: √(-2 ln u) times cosine and sine of 2πv, with u in (0, 1].
  const pair = (
    k: number,
  ): string => `shr.u32 %t0, %c${k}, 8; add.u32 %t0, %t0, 1; cvt.rn.f32.u32 %s0, %t0;
  mul.rn.f32 %s0, %s0, 0f33800000; lg2.approx.f32 %s0, %s0; mul.rn.f32 %s0, %s0, 0fBFB17218;
  sqrt.rn.f32 %s0, %s0;
  shr.u32 %t0, %c${k + 1}, 8; cvt.rn.f32.u32 %s1, %t0; mul.rn.f32 %s1, %s1, 0f33800000;
  mul.rn.f32 %s1, %s1, 0f40C90FDB; cos.approx.f32 %s2, %s1; sin.approx.f32 %s3, %s1;
  mul.rn.f32 %v${k}, %s0, %s2; mul.rn.f32 %v${k + 1}, %s0, %s3;`;
  const normal = (k: number): string =>
    double
      ? `cvt.f64.f32 %g0, %v${k}; ld.param.f64 %y0, [first]; ld.param.f64 %y1, [second]; ` +
        'fma.rn.f64 %g0, %g0, %y1, %y0;'
      : `ld.param.f32 %s0, [first]; ld.param.f32 %s1, [second]; fma.rn.f32 %f0, %v${k}, %s1, %s0;`;
  const entry = (
    name: string,
    before: string,
    value: (k: number) => string,
  ): string => `.visible .entry ${name}(.param .u64 out, .param .u32 n, .param .u64 seed,
  .param .${param} first, .param .${param} second) {
  ${REGISTERS}
  ${begin}
  ${before}
  ${[0, 1, 2, 3].map((k) => put(k, value(k))).join('\n  ')}
  ret;
}
`;
  const entries = [entry('uniform', '', uniform), entry('normal', `${pair(0)} ${pair(2)}`, normal)];
  return `${HEADER}${entries.join('')}`;
}
