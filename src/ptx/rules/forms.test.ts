// The table of forms: every form compiles, everything else is rejected, and every rule has its
// rows.

import { describe, expect, it } from 'vitest';
import { compilePtx } from '../index.js';
import { isScalarType } from '../scalar-types.js';
import { FORMS_OF, INSTRUCTIONS, RULES, allForms } from '../isa/table.js';
import { UNKNOWN } from '../isa/traits.js';
import { casesOf, formKernel } from './form-cases.test-support.js';
import { formComplaint } from './forms.js';
import { UNCOVERED_MNEMONICS } from './uncovered.js';
import { scaled } from '../../../test/random-runs.js';

/** Instructions after which what follows is not reached. */
const LEAVES = new Set(['bra', 'brx', 'ret', 'exit', 'trap', 'brkpt']);

function compiles(text: string): void {
  const { wasm } = compilePtx(formKernel(text));
  if (!WebAssembly.validate(wasm as Uint8Array<ArrayBuffer>))
    throw new Error('the module is not valid');
}

describe('every form compiles', () => {
  for (const [mnemonic, rows] of FORMS_OF) {
    it(mnemonic, { tags: 'random' }, () => {
      for (const row of rows) {
        const all = casesOf(row).map(({ text }) => text);
        const step = Math.ceil(all.length / scaled(all.length));
        const cases = all.filter((_, at) => at % step === 0);
        expect(cases.length).toBeGreaterThan(0);
        try {
          for (const chunk of LEAVES.has(mnemonic) ? cases : [cases.join('\n')]) compiles(chunk);
        } catch {
          // Finds the one that fails.
          for (const text of cases)
            expect(() => {
              compiles(text);
            }, text).not.toThrow();
          throw new Error(`the forms of ${mnemonic} compile one by one but not together`);
        }
      }
    });
  }
});

describe('what is in no form is rejected', () => {
  const complaint = (text: string): unknown => {
    const [mnemonic, ...modifiers] = text.split('.');
    return formComplaint(INSTRUCTIONS.get(mnemonic!) ?? UNKNOWN, mnemonic!, modifiers, 3)?.code;
  };
  it.each([
    'add.sat.u32',
    'add.cc.s16',
    'mul.u32',
    'mul.wide.u64',
    'fma.f32',
    'fma.rn.sat.bf16',
    'and.u32',
    'shl.s32',
    'setp.lt.b32',
    'setp.f32',
    'cvt.sat.u32.u8',
    'cvt.u8.f32',
    'cvt.rn.f64.f32',
    'atom.exch.u32',
    'atom.add.s64',
    'red.cas.b32',
    'ld.relaxed.u32',
    'ld.acquire.gpu.const.u32',
    'st.global.nc.u32',
    'mbarrier.arrive.relaxed.b64',
    'cp.async.global.shared',
    'bar.sync.popc',
    'popc.u32',
    'div.approx.f64',
    'tanh.f32',
    'max.s32.relu.sat',
    'vadd4.u32.u32.u32.sat.add',
  ])('%s', (text) => {
    expect(complaint(text)).toBeDefined();
  });
  it.each(['add.s32.sat', 'ld.u32.global.volatile', 'fma.f32.ftz.rn'])(
    '%s: modifiers may stand in any order',
    (text) => {
      expect(complaint(text)).toBeUndefined();
    },
  );
  it('types keep their order', () => {
    expect(complaint('cvt.rzi.s32.f32')).toBeUndefined();
    expect(complaint('cvt.rzi.f32.s32')).toBe('unsupported');
  });
  it('the error names the instruction and its line, and other kernels still compile', () => {
    const source =
      '.version 9.0\n.target sm_90\n.address_size 64\n.entry bad()\n{\n.reg .b32 ' +
      '%r<3>;\nadd.sat.s32.cc %r0, %r1, %r2;\nret;\n}\n.entry good() { ret; }\n';
    const { kernels, failures } = compilePtx(source);
    expect(kernels.map((kernel) => kernel.name)).toEqual(['good']);
    expect(failures[0]!.error.message).toContain(
      "ptx:7:1: error: instruction 'add.sat.s32.cc': this combination of types and modifiers " +
        'is not covered',
    );
  });
  it.each([
    'tcgen05.wait::ld.sync.aligned',
    'multimem.ld_reduce.global.add.u32 %r0, [%l0]',
    'cp.async.bulk.tensor.1d.shared::cluster.global.mbarrier::complete_tx::bytes.cta_group::2 ' +
      '[%r0], [%l0, {%r1}], [%r2]',
  ])('%s is refused by name', (text) => {
    expect(() => compilePtx(formKernel(`${text};`))).toThrow(
      new RegExp(`instruction '${text.split(/[ .]/)[0]!}\\.`),
    );
  });
});

describe('the table is complete', () => {
  /** Control flow and cuts have no rule: the compiler handles them. */
  const BUILT_IN = [
    'bra',
    'brx',
    'ret',
    'exit',
    'trap',
    'brkpt',
    'shfl',
    'vote',
    'match',
    'redux',
    'activemask',
    'elect',
    'mma',
    'ldmatrix',
    'stmatrix',
    'movmatrix',
  ];
  it('a mnemonic with forms has a rule', () => {
    expect(
      [...FORMS_OF.keys()].filter(
        (mnemonic) => !RULES.has(mnemonic) && !BUILT_IN.includes(mnemonic),
      ),
    ).toEqual([]);
  });
  it('no mnemonic is both covered and not covered', () => {
    expect(
      [...UNCOVERED_MNEMONICS].filter((mnemonic) => RULES.has(mnemonic) || FORMS_OF.has(mnemonic)),
    ).toEqual([]);
  });
  it('types come after other words or in their place, and no place mixes the two', () => {
    for (const { mnemonic, places } of allForms()) {
      for (const { words } of places) {
        const types = words.filter(isScalarType).length;
        // cvt.pack and mma name types of few bits, which no register has.
        if (mnemonic !== 'cvt' && mnemonic !== 'mma')
          expect(types === 0 || types === words.length, `${mnemonic}: ${words.join(' ')}`).toBe(
            true,
          );
      }
    }
  });
});
