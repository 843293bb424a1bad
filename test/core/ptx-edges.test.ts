/**
 * Edge cases of PTX instructions on either device. Each row expects the result of an H200 (driver
 * 13.0), which the CPU device follows where the ISA leaves a result open.
 */
import { CoreDevice, u32 } from 'async-cuda/core';
import { expect, test } from 'vitest';
import { someOf } from '../random-runs.js';

interface Case {
  name: string;
  /** Reads 32 bits at [%rd1], and leaves a word in %r9. */
  body: string;
  block?: number;
  /** Pairs of an input and the expected result. */
  values: readonly (readonly [given: number, wanted: number])[];
}

const unary = (name: string, ...values: Case['values']): Case => ({
  name,
  body: `ld.global.f32 %f1, [%rd1]; ${name} %f2, %f1; mov.b32 %r9, %f2;`,
  values,
});
const half = (name: string, ...values: Case['values']): Case => ({
  name,
  body: `ld.global.u16 %h1, [%rd1]; ${name} %h2, %h1; cvt.u32.u16 %r9, %h2;`,
  values,
});
const divide = (name: string, divisor: string, ...values: Case['values']): Case => ({
  name: `${name} by 0f${divisor}`,
  body:
    `ld.global.f32 %f1, [%rd1]; mov.f32 %f3, 0f${divisor}; ${name} %f2, %f1, %f3; mov.b32 %r9, ` +
    '%f2;',
  values,
});
const field = (name: string, wide: string, ...values: Case['values']): Case => ({
  name: `${name} at a position that is read`,
  body: `ld.global.u32 %r1, [%rd1]; ${wide}`,
  values,
});
const barrier = (text: string, block: number, wanted: number): Case => ({
  name: `${text} in a block of ${block}`,
  body: `mov.u32 %r9, 77; setp.ge.u32 %p1, %r2, 0; ${text}`,
  block,
  values: [[0, wanted]],
});

const NAN = 0x7fffffff;
const CASES: readonly Case[] = [
  unary(
    'sin.approx.f32',
    [0x80000000, 0x80000000],
    [0, 0],
    [1, 0],
    [0x80000001, 0x80000000],
    [0x7f800000, NAN],
  ),
  unary('sin.approx.ftz.f32', [0x80000000, 0x80000000], [0x807fffff, 0x80000000]),
  unary('cos.approx.f32', [0x80000000, 0x3f800000], [1, 0x3f800000]),
  unary(
    'tanh.approx.f32',
    [0x80000000, 0x80000000],
    [0x80000001, 0x80000001],
    [0xff800000, 0xbf800000],
  ),
  unary('ex2.approx.f32', [0x80000001, 0x3f800000], [0xff800000, 0]),
  unary('lg2.approx.ftz.f32', [0x80000001, 0xff800000], [1, 0xff800000], [0xbf800000, NAN]),
  unary('rcp.approx.ftz.f32', [0x80000001, 0xff800000], [0xff800000, 0x80000000]),
  unary('rsqrt.approx.ftz.f32', [0x80000001, 0xff800000], [0x80000000, 0xff800000]),
  unary('sqrt.approx.ftz.f32', [0x80000001, 0x80000000], [0xbf800000, NAN]),
  half('tanh.approx.f16', [0x8000, 0x8000], [0x8001, 0x8001], [0xfc00, 0xbc00]),
  half('tanh.approx.bf16', [0x8000, 0x8000], [0xff80, 0xbf80]),
  divide('div.approx.f32', '7E800000', [0x7e800000, 0x3f800000]),
  divide(
    'div.approx.f32',
    '7E800001',
    [0x7f7fffff, 0],
    [0xff7fffff, 0x80000000],
    [0x7f800000, NAN],
  ),
  divide('div.approx.ftz.f32', 'FF000000', [0x3f800000, 0x80000000], [0xff800000, NAN]),
  divide('div.full.f32', '7F000000', [0x7f000000, 0x3f800000], [0x7f800000, 0x7f800000]),
  field(
    'bfe.u32',
    'mov.u32 %r3, 0x12345678; bfe.u32 %r9, %r3, %r1, 8;',
    [0, 0x78],
    [32, 0],
    [256, 0x78],
    [264, 0x56],
  ),
  field(
    'bfe.u64',
    'mov.u64 %rd3, 0x12345678; bfe.u64 %rd3, %rd3, %r1, 8; cvt.u32.u64 %r9, %rd3;',
    [0, 0x78],
    [64, 0],
    [256, 0],
    [264, 0],
  ),
  field('bfi.b32', 'bfi.b32 %r9, -1, 0, %r1, 8;', [4, 0xff0], [256, 0xff]),
  field(
    'bfi.b64',
    'mov.u64 %rd3, 0; bfi.b64 %rd3, -1, %rd3, %r1, 8; cvt.u32.u64 %r9, %rd3;',
    [4, 0xff0],
    [256, 0],
  ),
  {
    name: 'a constant behind a register',
    body: 'ld.global.u32 %r1, [%rd1]; mad.lo.u32 %r9, %r1+3, %r1+-1, 1;',
    values: [[5, 33]],
  },
  barrier('bar.sync 1, 32;', 1, 77),
  barrier('barrier.sync 1, 32;', 7, 77),
  barrier('bar.sync 1, 64;', 33, 77),
  barrier('bar.sync 1, 32;', 64, 77),
  barrier('bar.red.popc.u32 %r9, 1, 32, %p1;', 7, 7),
  barrier('barrier.red.popc.u32 %r9, 1, 64, %p1;', 33, 33),
];

someOf(8, test)(CASES)('$name', async ({ body, block = 1, values }) => {
  await using device = await CoreDevice.open(process.env['ASYNC_CUDA_TEST_DEVICE'] ?? 'cpu');
  await using module = await device.loadModule(`.version 7.8
.target sm_90
.address_size 64
.visible .entry k(.param .u64 p)
{
  .reg .b64 %rd<5>; .reg .b32 %r<10>; .reg .b16 %h<3>; .reg .f32 %f<5>; .reg .pred %p<2>;
  ld.param.u64 %rd1, [p]; mov.u32 %r2, %tid.x;
  ${body}
  st.global.u32 [%rd1+4], %r9;
  ret;
}
`);
  using cells = device.alloc(u32, 2);
  for (const [given, wanted] of values) {
    await cells.write(device.stream, new Uint32Array([given, 0]));
    module.kernel('k').launch(device.stream, { grid: 1, block }, cells);
    const [, got = 0] = await cells.read(device.stream);
    // The CPU device's NaN has the machine's bits.
    const isNaN32 = (bits: number): boolean => (bits & 0x7fffffff) > 0x7f800000;
    if (wanted === NAN) expect(isNaN32(got)).toBe(true);
    else expect(got.toString(16)).toBe(wanted.toString(16));
  }
});
