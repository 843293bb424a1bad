// Instructions of Hopper: what is read, the PTX of it, and errors.

import { describe, expect, test } from 'vitest';

import { emitKernel } from '../emit/emit.js';
import { KernelSourceError } from '../source-error.js';
import type { KernelSource, Signature } from '../signature.js';
import { readKernel } from './read-kernel.js';

const signature: Signature = {
  out: { kind: 'tensor', element: { storage: 'f32' }, access: 'inout', rank: 1 },
  a: { kind: 'tensor', element: { storage: 'f16' }, access: 'input', rank: 2 },
  y: { kind: 'tensor', element: { storage: 'f16' }, access: 'output', rank: 3 },
  line: { kind: 'tensor', element: { storage: 'f16' }, access: 'input', rank: 1 },
  n: { kind: 'scalar', storage: 'i32' },
};

const source = (body: string): KernelSource => ({
  name: 'k',
  signature,
  text: `({ out, a, y, line, n }, gpu) => {
    const tile = gpu.dynamicShared.f16(256, 64);
    const bars = gpu.shared.u64(4);
    ${body}
  }`,
  uses: {},
  indexType: 'i32',
});

const ptxOf = (body: string, capability = '9.0'): string =>
  emitKernel(readKernel(source(body)), { capability }).ptx;

/** Instructions without the spaces before them, but for moves and parameters. */
const linesOf = (ptx: string): string[] => ptx.split('\n').map((line) => line.trim());

/** The text with registers of a kind alike. */
const pattern = (text: string): string => text.replace(/(%[a-z]+)\d+/g, '$1');

const errorOf = (body: string, capability = '9.0'): string => {
  try {
    ptxOf(body, capability);
  } catch (error) {
    if (error instanceof KernelSourceError) return error.message;
    throw error;
  }
  return 'compiled';
};

describe('PTX', () => {
  test('products are for sm_90a, others for sm_90', () => {
    expect(ptxOf('gpu.group.begin();')).toMatch(/^\.version 8\.0\n\.target sm_90a\n/);
    expect(ptxOf('gpu.cluster.sync();')).toMatch(/^\.version 8\.0\n\.target sm_90\n/);
    expect(ptxOf('gpu.block.syncThreads(1, 64);', '7.5')).toContain('bar.sync 1, 64;');
  });

  test('a product and its wait keep the sums in their registers', () => {
    const lines = linesOf(
      ptxOf(`
        const sums = gpu.local.f32(4);
        let step = 0;
        do {
          gpu.group.begin();
          gpu.group.mma(sums, tile, 0, 0, tile, 64, 16);
          gpu.group.mma(sums, tile, 0, 16, tile, 64, 32);
          gpu.group.commit();
          gpu.group.wait(1);
          step++;
        } while (step < n);
        gpu.group.wait(0);
        for (let i = 0; i < 4; i++) out[i] = sums[i];`),
    );
    const products = lines.filter((line) => line.startsWith('wgmma.mma_async'));
    expect(products).toHaveLength(2);
    const registers = products.map((line) => /\{.*?\}/.exec(line)![0]);
    expect(registers[0]).toBe(registers[1]);
    expect(pattern(products[0]!)).toBe(
      'wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f, %f, %f, %f}, %rd, %rd, %p, ' +
        '1, 1, 0, 0;',
    );
    // Only the zeros at the beginning are moved.
    expect(lines.filter((line) => line.startsWith('mov.f32'))).toHaveLength(4);
    const stored = lines.filter((line) => line.startsWith('st.global')).join('\n');
    for (const register of /\{(.*)\}/.exec(registers[0]!)![1]!.split(', '))
      expect(stored).toContain(register);
  });

  test('a product overwrites sums that were made zeros', () => {
    const lines = linesOf(
      ptxOf(`
        const sums = gpu.local.f32(4);
        for (let step = 0; step < n; step++) {
          for (let i = 0; i < 4; i++) sums[i] = 0;
          gpu.group.mma(sums, tile, 0, 0, tile, 64, 0);
          gpu.group.mma(sums, tile, 0, 16, tile, 64, 16);
          gpu.group.wait(0);
          out[step] = sums[0] + sums[1] + sums[2] + sums[3];
        }`),
    );
    expect(lines.filter((line) => line.startsWith('mov.f32'))).toEqual([]);
    expect(
      lines
        .filter((line) => /^setp\.\w+\.u32 %p\d+, 0, 0;/.test(line))
        .map((line) => line.slice(0, 7)),
    ).toEqual(['setp.ne', 'setp.eq']);
  });

  test('a factor in registers is written to the same ones after the wait', () => {
    const lines = linesOf(
      ptxOf(`
        const sums = gpu.local.f32(4);
        const part = gpu.local.f16(8);
        for (let i = 0; i < 8; i++) part[i] = out[i];
        let step = 0;
        do {
          gpu.group.mmaOfRegisters(sums, part, tile, 64, 0, 64);
          gpu.group.wait(0);
          for (let i = 0; i < 8; i++) part[i] = out[step + i];
          step++;
        } while (step < n);
        gpu.group.mmaOfRegisters(sums, part, tile, 64, 0, 64);
        gpu.group.wait(0);
        out[0] = sums[0];`),
    );
    const factors = lines
      .filter((line) => line.startsWith('wgmma.mma_async'))
      .map((line) => /\}, (\{.*?\})/.exec(line)![1]);
    expect(factors).toHaveLength(2);
    expect(factors[0]).toBe(factors[1]);
    for (const register of factors[0]!.slice(1, -1).split(', '))
      expect(lines.filter((line) => line.startsWith(`mov.b32 ${register}, %r`))).toEqual([]);
  });

  test('places of one base register differ by a sum', () => {
    const text = ptxOf(`
        const sums = gpu.local.f32(4);
        gpu.group.mma(sums, tile, n, 0, tile, n + 64, 16);`);
    expect(pattern(text)).toMatch(
      /bfe\.u32 %r, %r, 4, 14;\s+or\.b32 %r, %r, 65536;\s+add\.u32 %r, %r, 514;/,
    );
  });

  test('sums that are read between two products are copied', () => {
    const lines = linesOf(
      ptxOf(`
        const sums = gpu.local.f32(4);
        gpu.group.mma(sums, tile, 0, 0, tile, 64, 0);
        gpu.group.wait(0);
        const before = sums[0];
        gpu.group.mma(sums, tile, 0, 16, tile, 64, 16);
        gpu.group.wait(0);
        out[0] = before;
        out[1] = sums[0];`),
    );
    const products = lines.filter((line) => line.startsWith('wgmma.mma_async'));
    const [first, second] = products.map((line) => /\{(.*?)\}/.exec(line)![1]!.split(', '));
    // The first sum is live across the second product, the others are not.
    expect(first![0]).not.toBe(second![0]);
    expect(first!.slice(1)).toEqual(second!.slice(1));
  });

  test('transposed factors, and factors in registers', () => {
    expect(
      ptxOf('const s = gpu.local.f32(32); gpu.group.mma(s, tile, 0, 0, tile, 64, 0, 64, 64);'),
    ).toMatch(/m64n64k16\.f32\.f16\.f16 .*, 1, 1, 1, 1;/);
    expect(
      ptxOf(
        'const s = gpu.local.f32(32); const f = gpu.local.f16(8); ' +
          'gpu.group.mmaOfRegisters(s, f, tile, 64, 0, 64);',
      ),
    ).toMatch(
      /m64n64k16\.f32\.f16\.f16 \{.*\}, \{%r\d+, %r\d+, %r\d+, %r\d+\}, %rd\d+, %p\d+, 1, 1, 1;/,
    );
  });

  test('copies of boxes', () => {
    const emitted = emitKernel(
      readKernel(
        source(`
          gpu.tensor.load(tile, 64, 128, a, bars, 1, n, 3);
          gpu.tensor.store(y, tile, 0, 32, 1, 2, n);
          gpu.tensor.add(y, tile, 8, 32, 1, 2, n);
          gpu.tensor.commit();
          gpu.tensor.waitRead(0);`),
      ),
      { capability: '9.0' },
    );
    expect(emitted.abi.filter(({ kind }) => kind === 'map')).toEqual([
      { kind: 'map', param: 1, box: [128, 64], swizzle: 128 },
      { kind: 'map', param: 2, box: [1, 32, 64], swizzle: 128 },
    ]);
    const text = pattern(emitted.ptx);
    expect(text).toContain(
      'cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes ' +
        '[__dynamic_shared+8192], [%rd, {%r, %r}], [__shared_1+8];',
    );
    expect(text).toContain(
      'cp.async.bulk.tensor.3d.global.shared::cta.bulk_group [%rd, {%r, %r, %r}], ' +
        '[__dynamic_shared];',
    );
    expect(text).toContain(
      'cp.reduce.async.bulk.tensor.3d.global.shared::cta.add.bulk_group [%rd, {%r, %r, %r}], ' +
        '[__dynamic_shared+1024];',
    );
    expect(emitted.ptx).toContain('.extern .shared .align 1024 .b8 __dynamic_shared[];');
  });

  test('barriers wait in a loop', () => {
    const lines = linesOf(
      ptxOf(`
        gpu.barrier.init(bars, 0, 1);
        gpu.fence.barriers();
        gpu.barrier.expect(bars, 0, 64);
        gpu.barrier.arrive(bars, 1);
        gpu.barrier.arriveIn(bars, 2, 1);
        gpu.barrier.wait(bars, 3, 0);`),
    );
    const at = lines.findIndex((line) => line.startsWith('mbarrier.try_wait.parity'));
    expect(lines[at + 1]).toBe(`@!%p1 bra ${lines[at - 1]!.replace(':', '')};`);
    expect(lines.some((line) => line.startsWith('mapa.shared::cluster.u32'))).toBe(true);
  });
});

describe('errors', () => {
  test.each([
    ['gpu.group.wait(8);', 'takes how many groups may be under way, 0 to 7, and got 8'],
    ['gpu.group.moreRegisters(100);', 'from 24 to 256, a multiple of 8, and got 100'],
    [
      'const s = gpu.local.f32(6); gpu.group.mma(s, tile, 0, 0, tile, 0, 0);',
      'has 6 elements in each thread, which makes 12 columns',
    ],
    [
      'const s = gpu.local.f64(4); gpu.group.mma(s, tile, 0, 0, tile, 0, 0);',
      'sums in f32 or f16, and argument 1 is an array of f64',
    ],
    [
      'const s = gpu.local.f32(4); gpu.group.mma(s, bars, 0, 0, tile, 0, 0);',
      'has 1 axes and lines of 0 bytes',
    ],
    [
      'const s = gpu.local.f32(4); gpu.group.mma(s, tile, 0, 0, gpu.shared.f16(8, 40), 0, 0);',
      'lines of 80 bytes, and has to have two axes and lines of 128, 64 or 32 bytes',
    ],
    ['gpu.barrier.arrive(tile, 0);', 'has to be a shared array of u64'],
    ['gpu.tensor.load(tile, 0, 64, line, bars, 0, 1, 1);', 'has 1 axes, and has to have 2 to 5'],
    [
      'gpu.tensor.load(tile, 0, 64, a, bars, 0, 1, 1, 1);',
      "each of the tensor's 2 axes, and got 3",
    ],
    ['gpu.tensor.load(tile, 0, 300, a, bars, 0, 1, 1);', 'copies 1 to 256 lines, and got 300'],
    [
      'gpu.tensor.load(gpu.shared.f32(8, 32), 0, 8, a, bars, 0, 1, 1);',
      'elements of f16, the shared array of f32',
    ],
    ['if (gpu.lane === 0) gpu.group.commit();', 'Not all lanes of the warp reach this operation'],
  ])('%s', (body, message) => {
    expect(errorOf(body)).toContain(message);
  });

  test('a device without them', () => {
    expect(errorOf('gpu.group.begin();', '8.0')).toContain(
      'gpu.group.begin needs a device of compute capability 9.0 exactly, and this code is for 8.0',
    );
    expect(errorOf('gpu.group.begin();', '10.0')).toContain('and this code is for 10.0');
    expect(errorOf('gpu.cluster.sync();', '10.0')).toBe('compiled');
    expect(errorOf('gpu.fence.async();', '8.0')).toContain('9.0, and this code is for 8.0');
  });
});
