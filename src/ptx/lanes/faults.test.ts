// The faults of bad accesses: which thread, line and address lanes blame.

import * as fc from '../../../test/fast-check.js';
import { scaled } from '../../../test/random-runs.js';
import { describe, expect, it } from 'vitest';
import { FAULT, STATUS } from '../index.js';
import { Grid, kernelText } from '../run-grid.test-support.js';
import { SHAPES, kernel, program, run } from './random-programs.test-support.js';

const RUNS = 150;

describe('lanes', () => {
  it(
    'blame the thread, the line and the address that the scalar back end blames',
    { tags: 'random' },
    () => {
      const bad = fc.record({
        part: fc.nat(3),
        thread: fc.nat(40),
        address: fc.constantFrom('16', '0x7fffff000', '%in+2', '%base64+512', '%base64+4'),
        access: fc.constantFrom(
          'ld.global.u32 %r0, [%a];',
          'st.global.f32 [%a], %f0;',
          'ld.global.v4.u32 {%r0, %r1, %r2, %r3}, [%a];',
          'ld.u8 %r0, [%a];',
          'st.global.b64 [%a], %d0;',
          'cvt.u32.u64 %x, %a; ld.shared.u32 %r2, [%x];',
          'cvt.u32.u64 %x, %a; st.shared.u16 [%x], %r2;',
          'atom.global.add.u32 %r1, [%a], 1;',
        ),
      });
      let faults = 0;
      fc.assert(
        fc.property(
          program,
          fc.constantFrom(...SHAPES),
          bad,
          (made, block, { part, thread, address, access }) => {
            const { parts } = made as Parameters<typeof kernel>[0];
            const [from, plus = '0'] = address.split('+');
            const one =
              `setp.eq.u32 %m, %t, ${thread}; add.s64 %a, %mine16, 1024; ` +
              `${
                from!.startsWith('%')
                  ? `add.s64 %o, ${from}, ${plus};`
                  : `mov.u64 %o,
                ${from};`
              } ` +
              `selp.b64 %a, %o, %a, %m; @%m ${access.split('; ').join('; @%m ')}`;
            parts[part % parts.length]![0].push({ kind: 'text', text: one });
            const source = kernel(made as Parameters<typeof kernel>[0])
              .replace('%log, %sum', '%base64, %log, %sum')
              .replace(
                'mov.u32 %base, cells;',
                'mov.u32 %base, cells; cvt.u64.u32 %base64, %base;',
              );
            const [scalar, lanes] = [false, true].map((simd) =>
              run(source, block, { simd, relaxedFma: true }),
            ) as [ReturnType<typeof run>, ReturnType<typeof run>];
            expect(lanes.status, source).toBe(scalar.status);
            expect(lanes.fault, source).toEqual(scalar.fault);
            if (scalar.fault) faults++;
          },
        ),
        { numRuns: RUNS },
      );
      expect(faults).toBeGreaterThan(scaled(RUNS) / 10);
    },
  );

  it('report the first running thread whose access is bad', () => {
    const source = kernelText(
      'k',
      '.param .u64 out',
      `.reg .b64 %o, %p; .reg .b32 %t; .reg .pred %q; ld.param.u64 %o, [out]; mov.u32 %t, %tid.x;
      setp.lt.u32 %q, %t, 6; @%q bra done; mad.wide.u32 %p, %t, 4, %o; st.global.u32 [%p], %t;
      setp.lt.u32 %q, %t, 10; @%q bra done;
      cvt.u64.u32 %p, %t; ld.global.u32 %t, [%p]; done: ret;`,
    );
    for (const simd of [false, true]) {
      const grid = new Grid(source, { simd, pages: 16 });
      const out = grid.put(new Uint32Array(64));
      const { status, fault } = grid.run('k', [{ i64: out.address }], { grid: [1], block: [32] });
      expect(status).toBe(STATUS.fault);
      expect(fault?.kind).toBe(FAULT.outOfBounds);
      expect(fault?.thread).toBe(10);
      expect(fault?.address).toBe(10n);
    }
  });

  it.each([
    ['%x', 2 ** 20],
    ['%y', 2 ** 20 - 4],
    ['%z', 2 ** 20 - 8],
    ['%x', 512],
    ['%x', 2 ** 32 + 70000],
    ['%x', 70001],
  ])(
    'name the load of several in a row whose address is bad: that of %s, at %i',
    (register, place) => {
      const source = kernelText(
        'k',
        '.param .u64 in, .param .u64 out',
        `.reg .b64 %in, %o, %p, %q; .reg .b32 %t, %i, %x, %y, %z; .reg .pred %c;
      ld.param.u64 %in, [in]; ld.param.u64 %o, [out]; mov.u32 %t, %tid.x;
      mad.wide.u32 %o, %t, 4, %o;
      mul.lo.u32 %i, %t, 40503; and.b32 %i, %i, 252; cvt.u64.u32 %q, %i; add.s64 %p, %in, %q;
      setp.eq.u32 %c, %t, 37; selp.b64 %p, ${place}, %p, %c;
      ld.global.u32 %x, [%p];\nld.global.u32 %y, [%p+4];\nld.global.u32 %z,
      [%p+8];\nadd.u32 %x, %x, %y; add.u32 %x, %x, %z; st.global.u32 [%o], %x; ret;`,
      );
      const [one, lanes] = [false, true].map((simd) => {
        const grid = new Grid(source, { simd, pages: 16 });
        const from = grid.put(new Uint32Array(1024));
        const out = grid.put(new Uint32Array(64));
        const { status, fault } = grid.run('k', [{ i64: from.address }, { i64: out.address }], {
          grid: [1],
          block: [64],
        });
        return { status, fault };
      });
      expect(lanes).toEqual(one);
      expect(one!.status).toBe(STATUS.fault);
      expect(one!.fault?.thread).toBe(37);
      expect(source.split('\n')[one!.fault!.line - 1]!.trim()).toContain(
        `ld.global.u32 ${register},`,
      );
    },
  );

  it('find the fault of an atomic that may pass the end of its variable', () => {
    const body = `.reg .b64 %in; .reg .b32 %t, %b, %i, %s; .reg .b16 %h;
      .shared .align 4 .b8 bins[1024];
      ld.param.u64 %in, [in]; mov.u32 %t, %tid.x; ld.param.u64 %in, [in];
      mad.wide.u32 %in, %t, 1, %in; ld.global.u8 %h, [%in];
      mul.wide.u16 %i, %h, 4; mov.u32 %s, bins; add.s32 %b, %s, %i;
      red.shared.add.u32 [%b+4], 1; ret;`;
    const faults = [false, true].map((simd) => {
      const grid = new Grid(kernelText('k', '.param .u64 in', body), { simd });
      const from = grid.put(Uint8Array.from({ length: 64 }, (_, at) => 192 + at));
      const { status, fault } = grid.run('k', [{ i64: from.address }], { grid: [1], block: [64] });
      expect(status).toBe(STATUS.fault);
      expect(grid.width('k', { grid: [1], block: [64] })).toBe(simd ? 32 : 1);
      return fault;
    });
    expect(faults[0]?.thread).toBe(63);
    expect(faults[1]).toEqual(faults[0]);
  });

  it('blame the block of a call whose access is bad, and have run those before it', () => {
    const grid = new Grid(
      kernelText(
        'k',
        '.param .u64 out',
        `
    .reg .b64 %out, %at; .reg .b32 %t, %n, %c, %g;
    ld.param.u64 %out, [out]; mov.u32 %t, %tid.x; mov.u32 %n, %ntid.x; mov.u32 %c, %ctaid.x;
    mad.lo.u32 %g, %c, %n, %t;
    mad.wide.u32 %at, %g, 65536, %out; st.global.u32 [%at], %g; ret;`,
      ),
      { simd: true, pages: 66 },
    );
    const out = 131072;
    expect(grid.repeat('k', [{ i64: out }], { grid: [4], block: [32] })).toBe(STATUS.fault);
    expect(grid.lastFault()).toMatchObject({ block: 2, thread: 0 });
    expect(grid.view().getUint32(out + 63 * 65536, true)).toBe(63);
  });
});
