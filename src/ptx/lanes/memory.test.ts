// Loads, stores and atomics of a unit's threads that go to places of their own, or to one place.

import { describe, expect, it } from 'vitest';
import { STATUS } from '../index.js';
import { Grid, kernelText } from '../run-grid.test-support.js';

describe('lanes', () => {
  it.each([
    ['u8', 1, [0, 3, 15, -6]],
    ['s8', 1, [1, 2, 0]],
    ['u16', 2, [2, -4, 1026]],
    ['s16', 2, [0, 2]],
    ['f32', 4, [-8, 0, 4]],
    ['b64', 8, [8, 0, 4096]],
    ['v2.u32', 8, [0, 16, 8]],
    ['v4.u8', 4, [4, 0]],
    ['u32', 4, [0, 5000, 4]],
  ] as const)('read neighbours of places that differ freely: %s', (type, size, offsets) => {
    const wide = size === 8;
    const target = (at: number): string =>
      type === 'v2.u32'
        ? `{%x${2 * at}, %x${2 * at + 1}}`
        : type === 'v4.u8'
          ? `{%x${4 * at}, %x${4 * at + 1}, %x${4 * at + 2}, %x${4 * at + 3}}`
          : type === 'b64'
            ? `%d${at}`
            : type === 'f32'
              ? `%f${at}`
              : `%x${at}`;
    const registers = type === 'v2.u32' ? 2 : type === 'v4.u8' ? 4 : 1;
    const loads = (from: number): string =>
      offsets
        .map((offset, at) => `ld.global.${type} ${target(from + at)}, [%p+${offset}];`)
        .join(' ');
    const total = 3 * offsets.length;
    const cells = Array.from({ length: total * registers }, (_, at) =>
      type === 'b64'
        ? `st.global.b64 [%o+${8 * at}], %d${at};`
        : type === 'f32'
          ? `st.global.f32 [%o+${8 * at}], %f${at};`
          : `st.global.u32 [%o+${8 * at}], %x${at};`,
    );
    const source = kernelText(
      'k',
      '.param .u64 in, .param .u64 out',
      `.reg .b64 %in, %o, %p, %q, %d<${total}>; .reg .f32 %f<${total}>;
        .reg .b32 %t, %i, %x<${total * registers}>; .reg .pred %c;
      ld.param.u64 %in, [in]; ld.param.u64 %o, [out]; mov.u32 %t, %tid.x;
      mad.wide.u32 %o, %t, ${8 * cells.length}, %o;
      mul.lo.u32 %i, %t, 2654435761; shr.u32 %i, %i, 22; mul.wide.u32 %q, %i, ${size};
        add.s64 %p, %in, %q; add.s64 %p, %p, 64;
      ${loads(0)} add.s64 %p, %p, ${2 * size};
        ${loads(offsets.length)} setp.lt.u32 %c, %i, 512; @%c bra low;
          add.s64 %p, %p, ${size}; low: ${loads(2 * offsets.length)} ${cells.join(' ')} ret;`,
    );
    const [one, lanes] = [false, true].map((simd) => {
      const grid = new Grid(source, { simd });
      const from = grid.put(
        Uint32Array.from(
          { length: 8192 },
          (_, at) => Math.imul(at + 1, 2654435761) >>> (type === 'f32' ? 2 : 0),
        ),
      );
      const out = grid.put(new Uint32Array(2 * 64 * cells.length));
      expect(
        grid.run('k', [{ i64: from.address }, { i64: out.address }], { grid: [1], block: [64] })
          .status,
      ).toBe(STATUS.done);
      expect(grid.width('k', { grid: [1], block: [64] }) > 1).toBe(simd);
      return [...out.view];
    });
    expect(lanes).toEqual(one);
    expect(new Set(lanes).size).toBeGreaterThan(wide ? 64 : 16);
  });

  // An address that is computed from a byte, or from a masked value, is within its variable; others
  // are checked.
  it.each(
    ['', '@%p ', '@!%p '].flatMap((who) =>
      [
        'mul.wide.u16 %i, %h, 4;',
        'cvt.u32.u16 %i0, %h; and.b32 %i1, %i0, 63; shl.b32 %i, %i1, 2;',
        'cvt.u32.u16 %i0, %h; mul.lo.u32 %i, %i0, %four;',
      ].map((index) => [who, index] as const),
    ),
  )('count in shared memory alike: %s%s', (who, index) => {
    const operations = [
      'add.u32',
      'min.s32',
      'max.u32',
      'and.b32',
      'or.b32',
      'xor.b32',
      'exch.b32',
      'inc.u32',
      'dec.u32',
      'add.f32',
    ];
    const body = `.reg .b64 %in, %o, %a;
      .reg .b32 %r<${operations.length}>, %f, %t, %b, %c, %s, %n, %four, %i, %i0, %i1, %bins;
        .reg .b16 %h; .reg .pred %p, %q; .shared .align 4 .b8 bins[1024];
        .shared .align 4 .b8 own[${4 * 128 * operations.length}];
      ld.param.u64 %in, [in]; ld.param.u64 %o, [out]; mov.u32 %t, %tid.x;
      mov.u32 %four, %ntid.y; shl.b32 %four, %four, 2;
      shl.b32 %c, %t, 2; mov.u32 %s, bins; add.s32 %c, %s, %c; st.shared.u32 [%c], 0;
      st.shared.u32 [%c+512], 0;
      shl.b32 %c, %t, 2; mov.u32 %s, own; add.s32 %c, %s, %c;
      ${operations
        .map(
          (_, at) => `mad.lo.u32 %f, %t, ${at + 3}, 1000;
        st.shared.u32 [%c+${512 * at}], %f;`,
        )
        .join(' ')} bar.sync 0;
      mov.u32 %n, 0; cvt.u64.u32 %a, %t; add.s64 %a, %in, %a; mov.u32 %bins, bins;
      again: ld.global.nc.u8 %h, [%a]; ${index} add.s32 %b, %bins, %i; and.b32 %f, %b, 32;
        setp.eq.u32 %p, %f, 0; ${who}red.shared.add.u32 [%b], 3;
      ${operations
        .map(
          (operation, at) => `${who}atom.shared.${operation} %r${at},
        [%c+${512 * at}], %b;`,
        )
        .join(' ')} ${who}atom.shared.cas.b32 %f, [%c], %r0, %t;
      add.s64 %a, %a, 7; add.u32 %n, %n, 1; setp.lt.u32 %q, %n, 40; @%q bra again; bar.sync 0;
      mad.wide.u32 %a, %t, 64, %o;
      ${operations
        .map(
          (_, at) =>
            `ld.shared.u32 %f, [%c+${512 * at}];
        add.u32 %r${at}, %r${at}, %f; st.global.u32 ` + `[%a+${4 * at}], %r${at};`,
        )
        .join(' ')}
      mad.lo.u32 %c, %t, 4, %bins; ld.shared.u32 %f, [%c]; st.global.u32 [%a+48], %f;
      ld.shared.u32 %f, [%c+512]; st.global.u32 [%a+52], %f; ret;`;
    const results = [false, true].map((simd) => {
      const grid = new Grid(kernelText('k', '.param .u64 in, .param .u64 out', body), { simd });
      const [from, out] = [
        grid.put(Uint8Array.from({ length: 1024 }, (_, at) => Math.imul(at, 0x9e3779b1) >>> 24)),
        grid.put(new Uint32Array(16 * 128)),
      ];
      expect(
        grid.run('k', [{ i64: from.address }, { i64: out.address }], { grid: [1], block: [128] })
          .status,
      ).toBe(STATUS.done);
      expect(grid.width('k', { grid: [1], block: [128] })).toBe(simd ? 16 : 1);
      return [...out.view];
    });
    expect(results[1]).toEqual(results[0]);
    expect(
      results[0]!
        .filter((_, at) => at % 16 >= 12 && at % 16 < 14)
        .reduce((sum, count) => sum + count, 0),
    ).toBeGreaterThan(0);
  });

  it.each([0, 1, 5, 0x80000000, 0x00010000, 0xffffffff])(
    "leave the last thread's value where several store to one place: mask %i",
    (mask) => {
      const sizes = ['u8', 'u16', 'u32', 'u64', 'v2.u32', 'v4.u32', 'v2.u64'];
      const value = (type: string): string =>
        type === 'u64'
          ? '%d'
          : type === 'v2.u64'
            ? '{%d, %e}'
            : type === 'v2.u32'
              ? '{%x, %t}'
              : type === 'v4.u32'
                ? '{%x, %t, %t, %x}'
                : '%x';
      const source = kernelText(
        'k',
        '.param .u64 out',
        `.reg .b64 %o, %d, %e; .reg .b32 %t, %x, %m; .reg .pred %p; ld.param.u64 %o, [out];
          mov.u32 %t, %tid.x; mul.lo.u32 %x, %t, 2654435761;
      mul.wide.u32 %d, %x, %x; not.b64 %e, %d; mov.u32 %m, ${mask}; shr.u32 %m, %m, %t;
        and.b32 %m, %m, 1; setp.ne.u32 %p, %m, 0;
      ${sizes
        .map(
          (type, index) => `@%p st.global.${type} [%o+${16 * index}],
        ${value(type)};`,
        )
        .join(' ')} @!%p bra end;
          st.global.u32 [%o+${16 * sizes.length}], %t; end: ret;`,
      );
      const [one, lanes] = [false, true].map((simd) => {
        const grid = new Grid(source, { simd });
        const out = grid.put(new Uint32Array(64));
        expect(grid.run('k', [{ i64: out.address }], { grid: [1], block: [32] }).status).toBe(
          STATUS.done,
        );
        expect(grid.width('k', { grid: [1], block: [32] }) > 1).toBe(simd);
        return [...out.view];
      });
      expect(lanes).toEqual(one);
      expect(lanes!.some((word) => word !== 0)).toBe(mask !== 0);
    },
  );
});
