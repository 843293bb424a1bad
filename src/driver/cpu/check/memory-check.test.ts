// Memory errors in every state space, one kernel each.

import { describe, expect, test } from 'vitest';
import type { CheckKind, CheckReport } from '../../../ground/check-report.js';
import { CheckedDevice, kernelOf } from '../testing/checked-device.js';

function only(reports: readonly CheckReport[]): CheckReport {
  expect(reports.map(({ kind }) => kind)).toHaveLength(1);
  return reports[0]!;
}

describe('global memory', () => {
  const store = kernelOf(
    1,
    'mul.wide.u32 %rd1, %r0, 4;\nadd.u64 %rd2, %rd0, %rd1;\nst.global.u32 [%rd2], %r0;',
  );

  test('accesses within an allocation are no errors', () => {
    const device = new CheckedDevice().load(store);
    device.launch('k', [[device.cu.cuMemAlloc(256)]], { block: 64 });
    expect(device.fails()).toEqual([]);
    expect(device.reports).toEqual([]);
  });

  test('the first byte after an allocation', () => {
    const device = new CheckedDevice().load(store);
    const address = device.cu.cuMemAlloc(252);
    // The next allocation begins where this one's range ends.
    device.cu.cuMemAlloc(256);
    device.launch('k', [[address]], { block: 64 });
    expect(only(device.fails())).toMatchObject({
      kind: 'out-of-bounds',
      address: address + 252,
      bytes: 4,
      place: { action: 'write', kernel: 'k', line: 11, block: [0, 0, 0], thread: [63, 0, 0] },
      memory: { space: 'global', address, bytes: 252, offset: 252 },
    });
  });

  test('a range that is full to its end has a gap after it', () => {
    const device = new CheckedDevice().load(store);
    const address = device.cu.cuMemAlloc(256);
    device.cu.cuMemAlloc(256);
    device.launch('k', [[address]], { block: 65 });
    expect(only(device.fails())).toMatchObject({
      kind: 'out-of-bounds',
      memory: { address, offset: 256 },
    });
  });

  test('before an allocation', () => {
    const device = new CheckedDevice().load(kernelOf(1, 'ld.global.u8 %h0, [%rd0+-1];'));
    device.cu.cuMemAlloc(256);
    const address = device.words(1);
    device.launch('k', [[address]]);
    expect(only(device.fails())).toMatchObject({
      kind: 'out-of-bounds',
      place: { action: 'read' },
      memory: { address, offset: -1 },
    });
  });

  test('an address outside of all memory', () => {
    const device = new CheckedDevice().load(kernelOf(1, 'ld.global.u32 %r1, [%rd0];'));
    device.launch('k', [[8]]);
    expect(only(device.fails())).toMatchObject({ kind: 'out-of-bounds', address: 8 });
  });

  test('a misaligned address', () => {
    const device = new CheckedDevice().load(kernelOf(1, 'ld.global.u32 %r1, [%rd0+2];'));
    const address = device.words(1, 2);
    device.launch('k', [[address]]);
    expect(only(device.fails())).toMatchObject({ kind: 'misaligned', address: address + 2 });
  });

  test('memory that was freed, also after new allocations', () => {
    const device = new CheckedDevice().load(store);
    const address = device.cu.cuMemAllocAsync(256, device.stream);
    device.cu.cuMemFreeAsync(address, device.stream);
    device.cu.cuStreamSynchronize(device.stream);
    for (let i = 0; i < 10; i++) device.cu.cuMemAllocAsync(256, device.stream);
    device.launch('k', [[address]]);
    expect(only(device.fails())).toMatchObject({
      kind: 'use-after-free',
      memory: { address, bytes: 256, freed: true },
    });
  });

  test('work queued before a free is not an access after it', () => {
    const device = new CheckedDevice().load(store);
    const address = device.cu.cuMemAlloc(256);
    device.launch('k', [[address]]);
    device.cu.cuMemFree(address);
    expect(device.fails()).toEqual([]);
  });

  test('bytes that were never written', () => {
    const device = new CheckedDevice().load(kernelOf(1, 'ld.global.u32 %r1, [%rd0];'));
    const address = device.cu.cuMemAlloc(64);
    device.cu.cuMemsetD8Async(address, 0, 3, device.stream);
    device.launch('k', [[address]]);
    expect(only(device.fails())).toMatchObject({
      kind: 'uninitialised',
      address: address + 3,
      memory: { address, offset: 3 },
    });
  });

  test('fills, copies and kernels count as writes', () => {
    const device = new CheckedDevice().load(
      kernelOf(
        2,
        'ld.global.u32 %r1, [%rd0];\nst.global.u32 [%rd1], %r1;\nld.global.u32 %r2, [%rd1];',
      ),
    );
    const from = device.words(1, 2);
    const copy = device.cu.cuMemAlloc(8);
    device.cu.cuMemcpyDtoDAsync(copy, from, 8, device.stream);
    device.launch('k', [[copy], [device.cu.cuMemAlloc(4)]]);
    const filled = device.cu.cuMemAlloc(8);
    device.cu.cuMemsetD32Async(filled, 0x01020304, 2, device.stream);
    device.launch('k', [[filled + 4], [device.cu.cuMemAlloc(4)]]);
    expect(device.fails()).toEqual([]);
  });

  test('a copy of unwritten bytes is unwritten', () => {
    const device = new CheckedDevice().load(kernelOf(1, 'ld.global.u32 %r1, [%rd0];'));
    const to = device.words(1, 2);
    device.cu.cuMemcpyDtoDAsync(to, device.cu.cuMemAlloc(8), 8, device.stream);
    device.launch('k', [[to]]);
    expect(only(device.fails())).toMatchObject({ kind: 'uninitialised' });
  });

  test('an access past a variable of a module is an error where the next one begins', () => {
    const device = new CheckedDevice().load(
      kernelOf(
        0,
        'mov.u64 %rd1, a;\nld.global.u32 %r1, [%rd1+8];',
        '.global .u32 a[2];\n.global .u32 b[2];',
      ),
    );
    device.launch('k', []);
    expect(only(device.fails())).toMatchObject({
      kind: 'out-of-bounds',
      memory: { label: 'a', bytes: 8, offset: 8 },
    });
  });

  test('a variable of a module begins as zeros', () => {
    const device = new CheckedDevice().load(
      kernelOf(0, 'ld.global.u32 %r1, [a+4];', '.global .u32 a[2];'),
    );
    device.launch('k', []);
    expect(device.fails()).toEqual([]);
  });
});

describe('a value that is only moved', () => {
  /**
   * Runs a kernel on a word whose first byte and last two bytes are written, and on a word that was
   * never written.
   */
  function found(body: string, reads = ''): readonly CheckReport[] {
    const device = new CheckedDevice();
    const { cu } = device;
    const [from, to] = [cu.cuMemAlloc(64), cu.cuMemAlloc(64)];
    cu.cuMemsetD8Async(from, 1, 1, device.stream);
    cu.cuMemsetD8Async(from + 2, 1, 2, device.stream);
    device.load(kernelOf(2, body)).launch('k', [[from], [to]]);
    if (reads !== '') device.load(kernelOf(2, reads)).launch('k', [[from], [to]]);
    return device.fails();
  }

  test('may have padding in it, which the copy has, too', () => {
    const copy = 'ld.global.u32 %r1, [%rd0];\nmov.b32 %r2, %r1;\nst.global.u32 [%rd1], %r2;';
    expect(found(copy, 'ld.global.u8 %h1, [%rd1];\nld.global.u16 %h2, [%rd1+2];')).toEqual([]);
    expect(only(found(copy, 'ld.global.u16 %h1, [%rd1];'))).toMatchObject({
      kind: 'uninitialised',
      memory: { offset: 1 },
    });
  });

  test('is reported where it is used', () => {
    const copy =
      'ld.global.v2.u32 {%r1, %r2}, [%rd0+8];\nst.global.v2.u32 [%rd1+8], {%r2, ' +
      '%r1};\nst.global.u8 [%rd1+9], %b0;';
    expect(found(copy)).toEqual([]);
    expect(
      only(
        found(
          `${copy}\nld.global.u32 %r3, [%rd1+12];\nadd.u32 %r3, %r3, 1;\nst.global.u32 ` +
            '[%rd1], %r3;',
        ),
      ),
    ).toMatchObject({ kind: 'uninitialised', place: { line: 12 }, memory: { offset: 12 } });
    expect(found(`${copy}\nld.global.u8 %h1, [%rd1+9];`)).toEqual([]);
  });

  test('the first store to a field of bits', () => {
    const store =
      'ld.global.u32 %r1, [%rd1];\nand.b32 %r2, %r1, -16;\nor.b32 %r3, %r2, ' +
      '5;\nst.global.u32 [%rd1], %r3;\n' +
      'ld.global.u32 %r4, [%rd1];\nbfi.b32 %r5, %r0, %r4, 4, 12;\nst.global.u32 [%rd1], ' +
      '%r5;\nld.global.u32 %r6, [%rd1];\nbfe.u32 %r7, %r6, 4, 12;\nadd.u32 %r7, %r7, ' +
      '1;\nst.global.u32 [%rd1+4], %r7;';
    expect(found(store)).toEqual([]);
  });

  const parts: [what: string, offset: number | undefined, code: string][] = [
    ['a byte by a mask', undefined, 'and.b32 %r2, %r1, 255;'],
    ['the next by a mask', 1, 'and.b32 %r2, %r1, 65280;'],
    ['a half by a shift', undefined, 'shr.u32 %r2, %r1, 16;'],
    ['more by a shift', 1, 'shr.u32 %r2, %r1, 15;'],
    ['a byte by a conversion', undefined, 'cvt.s32.s8 %r2, %r1;'],
    ['two by a conversion', 1, 'cvt.s32.s16 %r2, %r1;'],
    ['a field', undefined, 'bfe.s32 %r2, %r1, 16, 3;'],
    ['a field beside it', 1, 'bfe.s32 %r2, %r1, 12, 4;'],
    ['bytes that are permuted', undefined, 'prmt.b32 %r2, %r1, 0, 0x4402;'],
    ['another one of them', 1, 'prmt.b32 %r2, %r1, 0, 0x4401;'],
    ['a half that is unpacked', undefined, 'mov.b32 {%h1, %h2}, %r1;\ncvt.u32.u16 %r2, %h2;'],
    ['the other half', 1, 'mov.b32 {%h1, %h2}, %r1;\ncvt.u32.u16 %r2, %h1;'],
    ['all of it', 1, 'mov.b32 %r2, %r1;'],
  ];
  test.each(parts)('only the bytes that are used have to be written: %s', (_, offset, code) => {
    const reports = found(
      `ld.global.u32 %r1, [%rd0];\n${code}\nsetp.eq.u32 %p0, %r2, 0;\n@%p0 st.global.u32 ` +
        '[%rd1], %r2;',
    );
    expect(reports.map(({ memory }) => memory?.offset)).toEqual(
      offset === undefined ? [] : [offset],
    );
  });

  test('an element of a vector that is not used', () => {
    const load = 'ld.global.v4.u8 {%h0, %h1, %h2, %h3}, [%rd0];\n';
    expect(found(`${load}add.u16 %h0, %h0, %h3;\nst.global.u16 [%rd1], %h0;`)).toEqual([]);
    expect(found(`${load}add.u16 %h0, %h0, %h1;\nst.global.u16 [%rd1], %h0;`)).toMatchObject([
      { kind: 'uninitialised', memory: { offset: 1 } },
    ]);
  });

  // Both sides of `a && b` are computed where that is cheaper than a branch: a merge compares the
  // value after its end.
  test.each([
    ['and', 'and.pred %p2, %p1, %p0;'],
    ['or', 'or.pred %p2, %p0, %p1;'],
    ['negated', 'not.pred %p3, %p0;\nand.pred %p2, %p1, %p3;'],
  ])('a comparison that a bound may settle uses nothing: %s', (_, both) => {
    const body = (bound: string): string =>
      `ld.global.u32 %r1, [%rd0];\nsetp.lt.s32 %p0, %r1, 5;\n${bound}\nsetp.lt.u32 %p1, %r2, ` +
      `4;\n${both}\n@%p2 st.global.u32 [%rd1], %r0;`;
    expect(found(body('mov.u32 %r2, %ntid.x;'))).toEqual([]);
    expect(
      found(
        body('ld.global.u8 %r3, [%rd0+2];\nsetp.gt.u32 %p4, %r3, 0;\nselp.u32 %r2, 1, 2, %p4;'),
      ),
    ).toEqual([]);
    expect(only(found(body('ld.global.u8 %r2, [%rd0+2];')))).toMatchObject({
      kind: 'uninitialised',
      place: { line: 9 },
      memory: { offset: 1 },
    });
  });

  test('a comparison that a bound may settle, and whose result is used elsewhere', () => {
    const compared =
      'ld.global.u32 %r1, [%rd0];\nsetp.lt.s32 %p0, %r1, 5;\nsetp.lt.u32 %p1, %r0, ' +
      '4;\nand.pred %p2, %p1, %p0;\n@%p2 st.global.u32 [%rd1], %r0;\n';
    for (const looked of [
      '@%p0 st.global.u32 [%rd1], %r0;',
      'add.u32 %r1, %r1, 1;\nst.global.u32 [%rd1], %r1;',
    ]) {
      expect(only(found(compared + looked))).toMatchObject({
        kind: 'uninitialised',
        memory: { offset: 1 },
      });
    }
  });

  test('results and arguments of functions are used', () => {
    const device = new CheckedDevice().load(
      kernelOf(
        1,
        'call (%r1), f, (%rd0, %r0);\nst.global.u32 [%rd0+4], %r1;',
        '.func (.reg .u32 out) f (.reg .u64 p, .reg .u32 n) {\n.reg .pred %p;\nld.global.u32 ' +
          'out, [p];\nsetp.gt.u32 %p, n, 0;\n@%p call (out), f, (p, out);\nret;\n}',
      ),
    );
    device.launch('k', [[device.cu.cuMemAlloc(8)]]);
    expect(only(device.fails())).toMatchObject({ kind: 'uninitialised' });
  });
});

describe('other spaces', () => {
  const cases: [what: string, kind: CheckKind, body: string, before: string, expected: object][] = [
    [
      'shared: behind a variable',
      'out-of-bounds',
      'st.shared.u32 [%r1+16], %r0;',
      '',
      { space: 'shared', label: 's', bytes: 16, offset: 16 },
    ],
    [
      'shared: unwritten',
      'uninitialised',
      'ld.shared.u32 %r2, [s+4];',
      '',
      { space: 'shared', label: 's', offset: 4 },
    ],
    [
      'local: unwritten',
      'uninitialised',
      'st.local.u32 [l], %r0;\nld.local.v2.u32 {%r2, %r3}, [l];',
      '',
      { space: 'local', label: 'l', offset: 4 },
    ],
    [
      'local: behind a variable',
      'out-of-bounds',
      'mov.u64 %rd1, l;\nadd.u64 %rd1, %rd1, 16;\nst.local.u32 [%rd1], %r0;',
      '',
      { space: 'local', label: 'l', bytes: 16, offset: 16 },
    ],
    [
      'const: behind a variable',
      'out-of-bounds',
      'mov.u64 %rd1, c;\nld.const.u32 %r2, [%rd1+8];',
      '',
      { space: 'const', label: 'c', bytes: 8, offset: 8 },
    ],
    [
      'const: written',
      'read-only',
      'cvta.const.u64 %rd1, c;\nst.u32 [%rd1], %r0;',
      '',
      { space: 'const', label: 'c', offset: 0 },
    ],
    [
      'const: crooked',
      'misaligned',
      'mov.u64 %rd1, c;\nld.const.u32 %r2, [%rd1+1];',
      '',
      { space: 'const', label: 'c' },
    ],
    [
      'a shared address in a global access',
      'wrong-space',
      'cvta.shared.u64 %rd1, s;\nst.global.u32 [%rd1], %r0;',
      '',
      { space: 'shared', label: 's' },
    ],
    [
      'a local address in a shared access',
      'out-of-bounds',
      'cvta.local.u64 %rd1, l;\nst.shared.u32 [%rd1], %r0;',
      '',
      { space: 'local', label: 'l' },
    ],
  ];
  test.each(cases)('%s', (_, kind, body, before, memory) => {
    const device = new CheckedDevice().load(
      kernelOf(
        0,
        `.shared .align 4 .u32 s[4];\n.shared .align 4 .u32 t[4];\n.local .align 8 .u32 ` +
          `l[4];\n.local .align 4 .u32 m[4];\nmov.u32 %r1, s;\n${body}`,
        `.const .u32 c[2] = {1, 2};\n.const .u32 d[2] = {1, 2};${before}`,
      ),
    );
    device.launch('k', []);
    expect(only(device.fails())).toMatchObject({
      kind,
      memory,
      place: { kernel: 'k', thread: [0, 0, 0] },
    });
  });

  test('dynamic shared memory ends at sharedBytes of the launch', () => {
    const text = kernelOf(
      0,
      'mov.u32 %r1, d;\nshl.b32 %r2, %r0, 2;\nadd.u32 %r1, %r1, %r2;\nst.shared.u32 [%r1], %r0;',
      '.extern .shared .align 4 .b8 d[];',
    );
    const device = new CheckedDevice().load(text);
    device.launch('k', [], { block: 32, shared: 128 });
    expect(device.fails()).toEqual([]);
    device.launch('k', [], { block: 32, shared: 124 });
    const report = only(device.fails());
    expect(report).toMatchObject({ kind: 'out-of-bounds', place: { thread: [31, 0, 0] } });
    expect(report.message).toMatch('the launch gave 124 bytes of it (sharedBytes)');
  });

  test('dynamic shared memory that the launch gave none of', () => {
    for (const access of [
      'st.shared.u32 [%r1], %r0;',
      'st.shared.u32 [%r1+4096], %r0;',
      'cvta.shared.u64 %rd1, d;\nst.u32 [%rd1], %r0;',
    ]) {
      for (const before of ['', '.shared .align 4 .u32 t[4];\n']) {
        const device = new CheckedDevice().load(
          kernelOf(0, `${before}mov.u32 %r1, d;\n${access}`, '.extern .shared .align 4 .b8 d[];'),
        );
        device.words(1, 2, 3);
        device.launch('k', []);
        const report = only(device.fails());
        expect(report).toMatchObject({
          kind: 'out-of-bounds',
          memory: { space: 'shared', label: 'dynamic shared memory', bytes: 0 },
        });
        expect(report.message).toMatch('the launch gave 0 bytes of it (sharedBytes)');
      }
    }
  });

  test('a parameter cannot be written', () => {
    const device = new CheckedDevice().load(
      kernelOf(1, 'mov.u64 %rd1, p0;\ncvta.param.u64 %rd1, %rd1;\nst.u32 [%rd1], %r0;'),
    );
    device.launch('k', [[0]]);
    expect(only(device.fails())).toMatchObject({ kind: 'read-only' });
  });

  test('the local memory of another thread', () => {
    const device = new CheckedDevice().load(
      kernelOf(
        0,
        '.local .align 4 .u32 l[4];\n.shared .align 8 .u64 s;\nst.local.u32 [l], ' +
          '%r0;\ncvta.local.u64 %rd1, l;\nsetp.eq.u32 %p0, %r0, 0;\n@%p0 st.shared.u64 [s], ' +
          '%rd1;\nbar.sync 0;\nld.shared.u64 %rd2, [s];\nld.u32 %r2, [%rd2];',
      ),
    );
    device.launch('k', [], { block: 2 });
    const report = only(device.fails());
    expect(report).toMatchObject({ kind: 'out-of-bounds', place: { thread: [1, 0, 0] } });
    expect(report.message).toMatch('local memory of another thread');
  });

  test('the same local variable of every thread is its own', () => {
    const device = new CheckedDevice().load(
      kernelOf(
        0,
        '.local .align 4 .u32 l[4];\nst.local.u32 [l], %r0;\nbar.sync 0;\nld.local.u32 %r2, [l];',
      ),
    );
    device.launch('k', [], { block: 64 });
    expect(device.fails()).toEqual([]);
  });

  test('local variables are found where a large alignment has put them', () => {
    const device = new CheckedDevice().load(
      kernelOf(
        0,
        '.local .align 4 .u32 l[4];\n.local .align 4096 .u32 m[4];\nst.local.u32 [l+12], ' +
          '%r0;\nst.local.u32 [m+12], %r0;\nbar.sync 0;\nld.local.u32 %r2, ' +
          '[l+12];\nld.local.u32 %r2, [m+12];\nsetp.eq.u32 %p0, %r0, 5;\n@%p0 st.local.u32 ' +
          '[m+16], %r0;',
      ),
    );
    device.launch('k', [], { block: 40 });
    expect(only(device.fails())).toMatchObject({
      kind: 'out-of-bounds',
      memory: { space: 'local', label: 'm', bytes: 16, offset: 16 },
      place: { thread: [5, 0, 0] },
    });
  });
});

test('shared memory of the system, for cooperative groups, counts as written', () => {
  const meet = (address: string): string =>
    `${address}\natom.shared.and.b32 %r2, [%r1], -2;\nst.global.u32 [%rd0], %r2;`;
  const reports = (body: string, before = ''): readonly CheckReport[] => {
    const device = new CheckedDevice().load(kernelOf(1, meet(body), before));
    device.launch('k', [[device.words(0)]]);
    return device.fails();
  };
  expect(reports('mov.u32 %r1, %reserved_smem_offset_1;\nadd.u32 %r1, %r1, 4;')).toEqual([]);
  expect(only(reports('mov.u32 %r1, s;', '.shared .align 4 .b8 s[8];'))).toMatchObject({
    kind: 'uninitialised',
  });
});
