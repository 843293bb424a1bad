// The committed coverage table is the one that the rows give.

import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { coverageTable } from './coverage-table.js';
import { FORMS_OF } from '../isa/table.js';
import { UNCOVERED_MNEMONICS } from './uncovered.js';

it('docs/ptx-coverage.md is up to date: npm run docs:ptx writes it', () => {
  expect(readFileSync(new URL('../../../docs/ptx-coverage.md', import.meta.url), 'utf8')).toBe(
    coverageTable(),
  );
});

it('has a row for each mnemonic, covered or refused', () => {
  const lines = coverageTable().split('\n');
  for (const mnemonic of [...FORMS_OF.keys(), ...UNCOVERED_MNEMONICS]) {
    expect(
      lines.filter((line) => line.startsWith(`| ${mnemonic} |`)),
      mnemonic,
    ).toHaveLength(1);
  }
});
