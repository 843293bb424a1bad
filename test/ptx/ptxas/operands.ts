/**
 * Operands of every kind in every place of every row, assembled by ptxas: `PTXAS=… npx tsx
 * test/ptx/ptxas/operands.ts [sm_100a@9.0 …] [--only MNEMONIC] [--most 40000 [--seed 1]]`. Prints
 * where the two differ, by instruction, place and kind of operand. There are some 250,000 cases, of
 * which `--most` takes a sample that `--seed` draws.
 */
import { parseArgs } from 'node:util';
import { compilePtx } from '../../../src/ptx/index.js';
import {
  SKELETON_LINES,
  casesOf,
  formKernel,
} from '../../../src/ptx/rules/form-cases.test-support.js';
import { allForms } from '../../../src/ptx/isa/table.js';
import { isScalarType } from '../../../src/ptx/scalar-types.js';
import { Random } from '../fuzz/random.js';
import { refusedLines } from './assemble.js';

/** Operands of every kind, valid in a place or not. */
const KINDS: readonly (readonly [string, string])[] = [
  ['predicate', '%p1'],
  ['negated predicate', '!%p1'],
  ['b16', '%h9'],
  ['b32', '%r9'],
  ['f32', '%f9'],
  ['b64', '%l9'],
  ['f64', '%d9'],
  ['b128', '%q1'],
  ...['0', '15', '16', '31', '33', '128', '255', '256', '65536', '1048576'].map(
    (value) => [`value ${value}`, value] as const,
  ),
  ['integer', '5'],
  ['negative integer', '-3'],
  ['large integer', '0x123456789abcdef'],
  ['unsigned integer', '7U'],
  ['single', '0f3f800000'],
  ['double', '0d3ff0000000000000'],
  ['decimal', '1.5'],
  ['WARP_SZ', 'WARP_SZ'],
  ['expression', '(1 << 3) + 1'],
  ['comparison', '3 > 2'],
  ['special register', '%tid.x'],
  ['64-bit special register', '%clock64'],
  ['special register vector', '%tid'],
  ['sink', '_'],
  ['symbol', 'shared'],
  ['symbol and offset', 'shared+4'],
  ['function', 'f'],
  ['label', 'label'],
  ['address', '[%l9]'],
  ['address and offset', '[%l9+16]'],
  ['negative offset', '[%l9+-16]'],
  ['minus', '[%l9-16]'],
  ['32-bit address', '[%r9]'],
  ['symbol address', '[shared]'],
  ['symbol address and offset', '[shared+16]'],
  ['absolute address', '[64]'],
  ['pair', '{%r9, %r10}'],
  ['pair of halves', '{%h9, %h10}'],
  ['pair of immediates', '{1, 2}'],
  ['pair with a sink', '{%r9, _}'],
  ['four', '{%r9, %r10, %r11, %r12}'],
  ['one', '{%r9}'],
  ['half of a word', '%r9.h0'],
  ['component', '%tid.y'],
  ['two results', '%r9|%p2'],
  ['two predicates', '%p1|%p2'],
  ['sink and predicate', '_|%p2'],
  ['predicate and sink', '%p1|_'],
];

function splitOperands(text: string): [string, string[]] {
  const [, name = '', rest = ''] = /^(\S+?)(?:\s+(.*))?;$/.exec(text)!;
  const list: string[] = [];
  let depth = 0;
  let at = 0;
  for (let i = 0; i <= rest.length; i++) {
    const c = rest[i];
    if (c === '{' || c === '[' || c === '(') depth++;
    else if (c === '}' || c === ']' || c === ')') depth--;
    else if ((c === ',' && depth === 0) || c === undefined) {
      const part = rest.slice(at, i).trim();
      if (part) list.push(part);
      at = i + 1;
    }
  }
  return [name, list];
}

function accepted(text: string): string | undefined {
  try {
    const { failures } = compilePtx(text);
    return failures[0]?.error.message;
  } catch (error) {
    return (error as Error).message;
  }
}

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { only: { type: 'string' }, most: { type: 'string' }, seed: { type: 'string' } },
});
for (const pair of positionals.length ? positionals : ['sm_100a@9.0']) {
  const [target = '', version = '9.0'] = pair.split('@');
  const cases: { text: string; label: string }[] = [];
  const seen = new Set<string>();
  const done = new Set<string>();
  for (const row of allForms()) {
    if (values.only !== undefined && !values.only.split(',').includes(row.mnemonic)) continue;
    // One row for each set of operands: those of matrices differ in their lengths only.
    const key = `${row.mnemonic} ${row.operands.join(' ')}`;
    if (done.has(key) || row.mnemonic.startsWith('mma')) continue;
    done.add(key);
    const all = casesOf(row);
    // One of each type.
    const chosen = new Map(
      all.map((each) => [each.modifiers.filter(isScalarType).join('.'), each] as const),
    );
    for (const { text } of chosen.values()) {
      const [name, operands] = splitOperands(text);
      const add = (list: readonly string[], label: string): void => {
        const t = `${name} ${list.join(', ')}`.trimEnd() + ';';
        if (seen.has(t)) return;
        seen.add(t);
        cases.push({ text: t, label: `${row.mnemonic} ${label}` });
      };
      add(operands, 'base');
      for (let i = 0; i < operands.length; i++) {
        for (const [kind, as] of KINDS)
          add(
            operands.map((o, j) => (j === i ? as : o)),
            `#${i} ${kind}`,
          );
        add(
          operands.filter((_, j) => j !== i),
          `#${i} missing`,
        );
      }
      add([...operands, '%r9'], 'one more');
      add([...operands, '7'], 'one more immediate');
    }
  }
  const random = new Random(Number(values.seed ?? 1));
  const most = Number(values.most ?? cases.length);
  if (cases.length > most)
    cases.splice(0, cases.length, ...cases.filter(() => random.below(cases.length) < most));
  const number = Number(/\d+/.exec(target)![0]);
  const theirs = await refusedLines(
    cases.map((c) => c.text),
    (texts) => formKernel(texts.join('\n'), version, target),
    SKELETON_LINES,
    number < 75 ? 'sm_75' : target,
  );
  let differences = 0;
  cases.forEach(({ text, label }, i) => {
    const ours = accepted(formKernel(text, version, target));
    const their = theirs[i];
    if ((ours === undefined) === (their === undefined)) return;
    differences++;
    console.log(
      `${target}@${version} ` +
        (ours === undefined
          ? `ACC ${label}: ${text}   ${their!}`
          : `REF ${label}: ${text}   ${ours.split('\n')[0]!}`),
    );
  });
  console.log(`${target}@${version}: ${cases.length} cases, ${differences} differences`);
}
