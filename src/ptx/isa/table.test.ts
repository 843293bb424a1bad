// The table of instructions: each mnemonic has one row, and an alias is one more row.

import { readFileSync, readdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { compilePtx } from '../index.js';
import { UNCOVERED_MNEMONICS } from '../rules/uncovered.js';
import { ARITHMETIC } from './arithmetic.js';
import { BITS } from './bits.js';
import { INSTRUCTIONS, tableOf } from './table.js';

/** In the file of one family, a mnemonic that occurs twice does not compile. */
describe('the table of instructions', () => {
  it('rejects a mnemonic that has two rows', () => {
    expect(() => tableOf([ARITHMETIC, BITS, { add: ARITHMETIC.add }])).toThrow(
      "instruction 'add' has two rows",
    );
  });

  it('gives the forms of a row its mnemonic, those of a row under another name, too', () => {
    const table = tableOf([{ rem: ARITHMETIC.rem, remainder: ARITHMETIC.rem }]);
    expect(table.get('rem')!.forms.map(({ mnemonic }) => mnemonic)).toEqual(['rem']);
    expect(table.get('remainder')!.forms.map(({ mnemonic }) => mnemonic)).toEqual(['remainder']);
  });

  it('has no row for what is not covered', () => {
    expect([...UNCOVERED_MNEMONICS].filter((mnemonic) => INSTRUCTIONS.has(mnemonic))).toEqual([]);
  });

  it('has a scalar rule in each row, or a place in the structure of the code', () => {
    const without = [...INSTRUCTIONS].filter(([, { scalar }]) => !scalar).map(([name]) => name);
    const flow = ['bra', 'brx', 'ret', 'exit', 'trap', 'brkpt'];
    const cuts = [...INSTRUCTIONS]
      .filter(([, { waits }]) => waits.cut([]) === 'warp')
      .map(([name]) => name);
    expect(without.sort()).toEqual([...flow, ...cuts].sort());
  });

  it('has only rows that a test of src/ptx executes', () => {
    const folder = fileURLToPath(new URL('..', import.meta.url));
    // The tests of lanes compare a rule with another one, and not with the ISA.
    const texts = readdirSync(folder, { recursive: true, encoding: 'utf8' })
      .filter((file) => file.endsWith('.test.ts') && !/^(isa|lanes)\b/.test(file))
      .map((file) => readFileSync(`${folder}/${file}`, 'utf8'))
      .join('\n');
    const isTested = (mnemonic: string): boolean =>
      // The tests write the packed forms vadd2 and vadd4 as vadd and a number.
      new RegExp(
        String.raw`(?<![\w.%])${mnemonic.replace(/^(v[a-z]+)[24]$/, '$1')}(\.[\w$]|;| [%[{]|: \()`,
      ).test(texts);
    // Parts of lowered code, which no text contains.
    const internal = ['copy'];
    const untested = [...INSTRUCTIONS.keys()].filter((mnemonic) => !isTested(mnemonic));
    expect(untested).toEqual(internal);
  });

  it('has meanings only for instructions that just compute, and for loads', () => {
    for (const [mnemonic, { effect, meaning }] of INSTRUCTIONS)
      if (meaning !== 'opaque')
        expect(effect, mnemonic).toBe(meaning === 'load' ? 'repeatable' : 'none');
  });

  it('compiles no mnemonic without a row', () => {
    expect(() =>
      compilePtx(
        '.version 8.0\n.target sm_80\n.address_size 64\n.entry k() { .reg .b32 %r<2>; ' +
          'remainder.s32 %r0, %r1, 3; ret; }',
      ),
    ).toThrow("'remainder' is no instruction of PTX");
  });
});
