/**
 * Every row of the table of forms, and similar texts that no row has, assembled by ptxas: `PTXAS=…
 * npx tsx test/ptx/ptxas/forms.ts [sm_100a@9.0 …] [--only MNEMONIC]`. Prints where the two differ.
 * Exit status 1 if they do.
 */
import { parseArgs } from 'node:util';
import {
  SKELETON_LINES,
  casesOf,
  casesWith,
  formKernel,
} from '../../../src/ptx/rules/form-cases.test-support.js';
import { INSTRUCTIONS, allForms } from '../../../src/ptx/isa/table.js';
import { UNKNOWN } from '../../../src/ptx/isa/traits.js';
import { formComplaint, sinceComplaint, tooEarly } from '../../../src/ptx/rules/forms.js';
import { isScalarType } from '../../../src/ptx/scalar-types.js';
import { Random } from '../fuzz/random.js';
import { assemble } from './assemble.js';

const FORMS = allForms();

const BATCH = 100;
/** The oldest architecture that ptxas still writes code for; it reads PTX for older ones. */
const OLDEST = 75;

interface Case {
  text: string;
  complaint: string | undefined;
}

const complaintOf = (
  mnemonic: string,
  modifiers: readonly string[],
  version: string,
  target: string,
): string | undefined => {
  const row = INSTRUCTIONS.get(mnemonic) ?? UNKNOWN;
  return (
    formComplaint(row, mnemonic, modifiers, 0)?.message ??
    sinceComplaint(row, mnemonic, modifiers, 0, version, target)
  );
};

/** The instructions of the rows. */
function rowCases(version: string, target: string, only: string | undefined): Case[] {
  const found = new Map<string, Case>();
  for (const row of FORMS) {
    if (only !== undefined && row.mnemonic !== only) continue;
    for (const { text, modifiers } of casesOf(row)) {
      // Rows differ in operands: one may require what another excludes.
      const complaint = tooEarly(row.mnemonic, row.since(modifiers), version, target);
      if (!found.has(text) || complaint === undefined) found.set(text, { text, complaint });
    }
  }
  return [...found.values()];
}

/** One word is added, removed or replaced: ptxas should also refuse a result that no row has. */
function neighbours(version: string, target: string, only: string | undefined): Case[] {
  const random = new Random(1);
  const found = new Map<string, Case>();
  // ptxas accepts these words in any instruction.
  const strange = new Set([
    'pred',
    'b8x16',
    'b6x16_p32',
    'b4x16_p64',
    'row',
    'col',
    // The fields of tensor maps.
    ...FORMS.filter((row) => row.mnemonic === 'tensormap').flatMap((row) =>
      row.places.slice(2, 3).flatMap((place) => [...place.words]),
    ),
    ...FORMS.filter((row) => row.mnemonic === 'testp').flatMap((row) => [...row.places[0]!.words]),
  ]);
  const everyWord = [
    ...new Set(FORMS.flatMap((row) => row.places.flatMap((place) => [...place.words]))),
  ].filter((word) => !strange.has(word));
  const everyType = everyWord.filter(isScalarType);
  for (const row of FORMS) {
    if (only !== undefined && row.mnemonic !== only) continue;
    const own = FORMS.filter((other) => other.mnemonic === row.mnemonic).flatMap((other) =>
      other.places.flatMap((place) => [...place.words]),
    );
    const all = casesOf(row);
    for (const { modifiers } of all) {
      if (!random.chance(Math.max(1, all.length >> 3))) continue;
      for (let kind = 0; kind < 4; kind++) {
        const changed = [...modifiers];
        const at = random.below(changed.length + 1);
        if (kind === 0) changed.splice(at, 0, random.pick(own));
        else if (kind === 1) changed.splice(at, 1);
        else if (kind === 2)
          changed.splice(
            at,
            1,
            isScalarType(changed[at] ?? '') ? random.pick(everyType) : random.pick(own),
          );
        else changed.splice(at, 0, random.pick(everyWord));
        // ptxas accepts a modifier that occurs twice; this compiler does not.
        if (new Set(changed).size < changed.length || changed.length === 0) continue;
        const complaint = complaintOf(row.mnemonic, changed, version, target);
        if (
          complaint === undefined ||
          (row.operands.some((token) => /\bT1?\b/.test(token)) && !changed.some(isScalarType))
        )
          continue;
        for (const { text } of casesWith(row, changed)) found.set(text, { text, complaint });
      }
    }
  }
  return [...found.values()];
}

async function compare(version: string, target: string, only: string | undefined): Promise<number> {
  const number = Number(/\d+/.exec(target)![0]);
  const arch = number < OLDEST ? `sm_${OLDEST}` : target;
  const cases = [...rowCases(version, target, only), ...neighbours(version, target, only)];
  const refused = new Map<Case, string>();
  const ask = (batch: readonly Case[]): ReturnType<typeof assemble> =>
    assemble(formKernel(batch.map(({ text }) => text).join('\n'), version, target), arch);
  const judge = async (batch: readonly Case[]): Promise<void> => {
    const refusals = batch.length ? await ask(batch) : [];
    if (!refusals.length) return;
    const lines = refusals.filter(
      ({ line }) => line > SKELETON_LINES && line <= SKELETON_LINES + batch.length,
    );
    for (const { line, message } of lines) refused.set(batch[line - SKELETON_LINES - 1]!, message);
    // ptxas stops at some errors: the remaining lines may not have been read.
    const left = batch.filter((each) => !refused.has(each));
    if (!lines.length) {
      if (batch.length === 1) refused.set(batch[0]!, refusals[0]!.message);
      else
        for (const half of [batch.slice(0, batch.length >> 1), batch.slice(batch.length >> 1)])
          await judge(half);
    } else {
      await judge(left);
    }
  };
  // Without this, every instruction would be refused, one by one.
  const [objection] = await ask([]);
  if (objection)
    throw new Error(`ptxas does not take PTX ${version} for ${target}: ${objection.message}`);
  for (let at = 0; at < cases.length; at += BATCH) await judge(cases.slice(at, at + BATCH));
  let differences = 0;
  for (const each of cases) {
    const theirs = refused.get(each);
    if ((theirs === undefined) === (each.complaint === undefined)) continue;
    differences++;
    console.log(
      `${target}@${version} ` +
        (each.complaint === undefined
          ? `accepted here, refused by ptxas: ${each.text}   ${theirs!}`
          : `refused here, accepted by ptxas: ${each.text}   ${each.complaint}`),
    );
  }
  console.log(
    `${target}@${version}: ${cases.length} forms, ` +
      `${cases.filter(({ complaint }) => complaint === undefined).length} accepted here, ` +
      `${differences} differences`,
  );
  return differences;
}

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { only: { type: 'string' } },
});
for (const pair of positionals.length ? positionals : ['sm_100a@9.0']) {
  const [target = '', version = '9.0'] = pair.split('@');
  if (await compare(version, target, values.only)) process.exitCode = 1;
}
