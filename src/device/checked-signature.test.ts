import { readFileSync, readdirSync } from 'node:fs';
import { expect, test } from 'vitest';

import { kernelSignatures } from '../ptx/index.js';
import type { KernelSignature } from '../ptx/index.js';
import { checkSignature } from './checked-signature.js';
import { sourceSignatures } from '../nvrtc/source-signatures.js';
import { bytesOf, sizeOf } from '../nvrtc/structure-bytes.js';

function ptx(...params: string[]): KernelSignature {
  const list = params.map((param, i) =>
    param.includes('%') ? `.param ${param.replace('%', `p${i}`)}` : `.param ${param} p${i}`,
  );
  return kernelSignatures(
    '.version 8.0\n.target sm_80\n.address_size 64\n.visible .entry ' +
      `k(${list.join(', ')})\n{ ret; }`,
  )[0]!;
}

const source = (
  list: string,
  before = '',
): ReturnType<typeof sourceSignatures>['kernels'][number] =>
  sourceSignatures(`${before} extern "C" __global__ void k(${list}) {}`).kernels[0]!;

test.each([
  ['float* y, const int* x', ['.u64', '.u64']],
  [
    'float a, double b, int c, unsigned d, long long e, bool f, char g',
    ['.f32', '.f64', '.u32', '.u32', '.u64', '.u8', '.u8'],
  ],
  ['float4 v, int2 w, uchar3 u', ['.align 16 .b8 %[16]', '.align 8 .b8 %[8]', '.align 1 .b8 %[3]']],
  ['half h, half2 i', ['.align 2 .b8 %[2]', '.align 4 .b8 %[4]']],
  ['P p, const P* q', ['.align 8 .b8 %[24]', '.u64']],
  ['Foo f, float** pp', ['.u32', '.u64']],
])('%s agrees with its compiled form', (list, params) => {
  expect(() => {
    checkSignature(source(list, 'struct P { char c; double d; short s[3]; };'), ptx(...params));
  }).not.toThrow();
});

test.each([
  [
    'float a',
    ['.u32'],
    "parameter 0 (a) of kernel 'k' is f32 in its source and .u32 when compiled",
  ],
  ['float* a', ['.f64'], 'is inout f32 in its source and .f64'],
  ['int a, int b', ['.u32'], 'has 2 parameters in its source and 1 when compiled'],
  [
    'P p',
    ['.align 4 .b8 %[12]'],
    'a structure of 24 bytes, aligned to 8 in its source and a structure of 12 bytes, aligned to 4',
  ],
])('%s does not agree with another form', (list, params, message) => {
  const found = source(list, 'struct P { char c; double d; short s[3]; };');
  let error: unknown;
  try {
    checkSignature(found, ptx(...params));
  } catch (thrown) {
    error = thrown;
  }
  expect(error).toMatchObject({ code: 'ERR_CUDA_INTERNAL' });
  expect((error as Error).message).toContain(message);
});

test('an object is encoded as C lays it out', () => {
  const type = source(
    'P p',
    'struct V { float2 xy; }; struct P { bool on; V v; unsigned short s[2]; long long n; };',
  ).parameters![0]!.type;
  expect(sizeOf(type)).toEqual({ bytes: 32, align: 8 });
  const bytes = bytesOf('p', type, { on: true, v: { xy: { x: 1, y: 2 } }, s: [3, 65535], n: -1n });
  const view = new DataView(bytes.buffer);
  expect([
    bytes[0],
    view.getFloat32(8, true),
    view.getFloat32(12, true),
    view.getUint16(16, true),
    view.getUint16(18, true),
    view.getBigInt64(24, true),
  ]).toEqual([1, 1, 2, 3, 65535, -1n]);
  expect(() => bytesOf('p', type, { on: true, v: { xy: { x: 1, y: 2 } }, s: [3], n: 1 })).toThrow(
    'p.s: expected a list of 2',
  );
  expect(() => bytesOf('p', type, { on: true, v: { xy: { x: 1 } }, s: [3, 4], n: 1 })).toThrow(
    'p.v.xy.y: expected a number for f32',
  );
  expect(() =>
    bytesOf('p', type, { on: true, v: { xy: { x: 1, y: 2 } }, s: [3, 65536], n: 1 }),
  ).toThrow('p.s[1]');
  expect(() =>
    bytesOf('p', type, { on: true, v: { xy: { x: 1, y: 2 } }, s: [3, 4], n: 1, m: 2 }),
  ).toThrow('p.m');
});

test('the samples agree with their PTX', () => {
  const samples = new URL('../../test/samples/', import.meta.url);
  let compared = 0;
  for (const file of readdirSync(new URL('kernels/', samples)).filter((each) =>
    each.endsWith('.cu'),
  )) {
    let compiled: KernelSignature[];
    try {
      compiled = kernelSignatures(
        readFileSync(
          new URL(`../../src/ptx/samples/sm_80/${file.replace('.cu', '.ptx')}`, import.meta.url),
          'utf8',
        ),
      );
    } catch {
      continue;
    }
    for (const kernel of sourceSignatures(readFileSync(new URL(`kernels/${file}`, samples), 'utf8'))
      .kernels) {
      const other = compiled.find(({ name }) => name === kernel.name);
      if (other === undefined) continue;
      checkSignature(kernel, other);
      compared++;
    }
  }
  expect(compared).toBeGreaterThan(20);
});
