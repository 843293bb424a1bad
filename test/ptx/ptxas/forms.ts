/**
 * Every form of the table of instruction forms, and neighbours of them that the table refuses, before ptxas:
 * `PTXAS=… npx tsx test/ptx/ptxas/forms.ts [sm_100a] [9.0]`. Prints where the two differ. Exit status 1 if they do.
 */
import { allForms, formComplaint } from '../../../src/ptx/analysis/instruction-forms.js';
import { Random } from '../fuzz/random.js';
import { assemble } from './assemble.js';

const VERSION = process.argv[3] ?? '9.0';
const TARGET = process.argv[2] ?? 'sm_100a';
const BATCH = 100;

/** Operands by mnemonic: D, A name the first and the last type's registers, others are written out. */
const OPERANDS: Record<string, string> = {
  abs: 'D,A', neg: 'D,A', not: 'D,A', cnot: 'D,A', popc: '%r1,A', clz: '%r1,A', brev: 'D,A', bfind: '%r1,A', rcp: 'D,A', sqrt: 'D,A', rsqrt: 'D,A', sin: 'D,A', cos: 'D,A', lg2: 'D,A',
  ex2: 'D,A', tanh: 'D,A', mov: 'D,A', cvta: 'D,A', testp: '%p1,A', setp: '%p1,A,A', set: 'D,A,A', selp: 'D,A,A,%p1', fma: 'D,A,A,A', mad: 'D,A,A,D', madc: 'D,A,A,A', mad24: 'D,A,A,A', sad: 'D,A,A,A',
  slct: 'D,D,D,A', shl: 'D,A,%r1', shr: 'D,A,%r1', shf: '%r1,%r2,%r3,%r4', bfe: 'D,A,%r1,%r2', bfi: 'D,A,A,%r1,%r2', bmsk: 'D,A,A', szext: 'D,A,%r1', fns: 'D,%r1,%r2,%r3', prmt: 'D,A,A,%r1',
  dp4a: '%r1,%r2,%r3,%r4', dp2a: '%r1,%r2,%r3,%r4', lop3: 'D,A,A,A,3', isspacep: '%p1,%l1', shfl: 'D,A,1,31,-1', vote: 'D,%p1,-1', match: '%r1,A,-1', redux: 'D,A,-1', activemask: 'D', elect: '%r1|%p1,-1',
  membar: '', nanosleep: '5', ret: '', exit: '', trap: '', brkpt: '', cvt: 'D,A',
};

const REGISTERS: Record<string, string> = { pred: '%p1', b128: '%q1' };
const register = (type: string): string => {
  if (REGISTERS[type]) return REGISTERS[type];
  if (type === 'f32') return '%f1';
  if (type === 'f64') return '%d1';
  const bits = Number(/\d+/.exec(type)?.[0]);
  if (/^ue8m0x2|^e[25]m\dx2|^e\dm\dx2/.test(type)) return type === 'e2m1x2' ? '%c1' : '%h1';
  if (/x4$/.test(type)) return type === 'e2m1x4' ? '%h1' : '%r1';
  if (type === 'f32x2') return '%l1';
  const size = /x2$/.test(type) ? 32 : type === 'tf32' ? 32 : bits;
  return size === 8 ? '%c1' : size === 16 ? '%h1' : size === 64 ? '%l1' : '%r1';
};
const WIDER: Record<string, string> = { u16: 'u32', s16: 's32', u32: 'u64', s32: 's64' };

function statement(mnemonic: string, modifiers: readonly string[], types: readonly string[]): string {
  const name = [mnemonic, ...modifiers, ...types].join('.');
  const source = types.at(-1) ?? 'b32';
  const wide = modifiers.includes('wide') ? WIDER[source] : undefined;
  let destination = wide ?? types[0] ?? 'b32';
  if (mnemonic === 'vote') destination = modifiers.includes('ballot') ? 'b32' : 'pred';
  let operands = OPERANDS[mnemonic] ?? 'D,A,A';
  if (mnemonic === 'lop3' && /\.(and|or)\b/.test(name)) operands = 'D|%p1,A,A,A,3,%p2';
  if (/^cvt.*\.(f16x2|bf16x2|e.m.x2|ue8m0x2)\.f32$/.test(name)) operands = modifiers.includes('rs') ? 'D,%f1,%f2,%r1' : 'D,%f1,%f2';
  if (/^cvt\.rs.*x4\.f32$/.test(name)) operands = 'D,{%f1,%f2,%f3,%f4},%r1';
  if (/^(min|max)\b.*\.abs\b/.test(name) && !modifiers.includes('xorsign')) operands = 'D,A,A,A';
  if (/^setp.*x2$/.test(name)) operands = '%p1|%p2,A,A';
  if (/^(set|setp)\b.*\.(and|or|xor)\b/.test(name)) operands += ',%p3';
  if ((mnemonic === 'shfl' || mnemonic === 'vote') && !modifiers.includes('sync')) operands = operands.replace(/,-1$/, '');
  return `${name} ${operands.replaceAll('D', register(destination)).replaceAll('A', register(source))};`;
}

const module = (lines: readonly string[]): string => `.version ${VERSION}
.target ${TARGET}
.address_size 64
.visible .entry k() { .reg .b8 %c<9>; .reg .b16 %h<9>; .reg .b32 %r<9>; .reg .f32 %f<9>; .reg .b64 %l<9>; .reg .f64 %d<9>; .reg .pred %p<9>; ${Number(VERSION) >= 8.3 ? '.reg .b128 %q<9>;' : ''}
${lines.join('\n')}
ret; }
`;
const FIRST_LINE = 5;

interface Case { text: string; complaint: string | undefined }

function cases(): Case[] {
  const found = new Map<string, Case>();
  const add = (mnemonic: string, modifiers: string[], types: string[]): void => {
    // ptxas lets a modifier stand twice; here it may not.
    if (new Set(modifiers).size < modifiers.length) return;
    const text = statement(mnemonic, modifiers, types);
    found.set(text, { text, complaint: formComplaint(mnemonic, [...modifiers, ...types], VERSION, TARGET) });
  };
  const random = new Random(1);
  const everyType = [...new Set([...allForms().values()].flat().flatMap(form => form.types.flatMap(slot => [...slot])))];
  for (const [mnemonic, forms] of allForms()) {
    const words = [...new Set(forms.flatMap(form => form.groups.flatMap(group => [...group.words])))];
    for (const form of forms) {
      let typings: string[][] = [[]];
      for (const slot of form.types) typings = typings.flatMap(typing => [...slot].map(type => [...typing, type]));
      let choices: string[][] = [[]];
      for (const { words: group, required } of form.groups) {
        choices = choices.flatMap(choice => [...required ? [] : [choice], ...[...group].map(word => [...choice, word])]);
      }
      for (const types of typings) {
        for (const modifiers of choices) {
          if (typings.length * choices.length < 400 || random.chance(20)) add(mnemonic, modifiers, types);
          // One more, one fewer, another.
          if (words.length && random.chance(4)) add(mnemonic, [...modifiers, random.pick(words)], types);
          if (modifiers.length && random.chance(4)) add(mnemonic, modifiers.slice(1), types);
          if (random.chance(6)) add(mnemonic, modifiers, types.map((type, index) => index === random.below(types.length) ? random.pick(everyType) : type));
          if (random.chance(12)) add(mnemonic, [...modifiers, random.pick(['ftz', 'sat', 'rn', 'rz', 'approx', 'sync', 'cc', 'NaN', 'relu', 'hi', 'wide'])], types);
        }
      }
    }
  }
  return [...found.values()];
}

const refused = new Map<Case, string>();
/** Lines that stop ptxas altogether are found by halving. */
async function judge(batch: readonly Case[]): Promise<void> {
  if (!batch.length) return;
  const refusals = await assemble(module(batch.map(({ text }) => text)), TARGET);
  const lines = refusals.filter(({ line }) => line >= FIRST_LINE && line < FIRST_LINE + batch.length);
  for (const { line, message } of lines) refused.set(batch[line - FIRST_LINE]!, message);
  const stopped = refusals.some(({ message }) => /syntax|[Pp]arsing|fatal|abort/.test(message));
  if (lines.length && !stopped) return;
  if (!refusals.length) return;
  if (batch.length === 1) {
    refused.set(batch[0]!, refusals[0]!.message);
    return;
  }
  for (const { line } of lines) if (line) refused.delete(batch[line - FIRST_LINE]!);
  await judge(batch.slice(0, batch.length >> 1));
  await judge(batch.slice(batch.length >> 1));
}

const all = cases();
for (let at = 0; at < all.length; at += BATCH) await judge(all.slice(at, at + BATCH));
let differences = 0;
for (const each of all) {
  let theirs = refused.get(each);
  // An error may have kept ptxas from reading on: what it has not refused in company is asked again alone.
  if (theirs === undefined && each.complaint !== undefined) theirs = (await assemble(module([each.text]), TARGET))[0]?.message;
  if ((theirs === undefined) === (each.complaint === undefined)) continue;
  differences++;
  console.log(each.complaint === undefined ? `accepted here, refused by ptxas: ${each.text}   ${theirs!}` : `refused here, accepted by ptxas: ${each.text}   ${each.complaint}`);
}
console.log(`${all.length} forms, ${all.filter(({ complaint }) => complaint === undefined).length} accepted here, ${differences} differences`);
process.exitCode = differences ? 1 : 0;
