// Test only: makes instructions with operands from forms. Every pair of words from two places
// occurs together with the first choice of all other places, so that a form of nine places has a
// few hundred instructions.

import { isScalarType, scalarType } from '../scalar-types.js';
import type { Form, FormPlace } from '../isa/form.js';

export interface FormCase {
  text: string;
  modifiers: string[];
}

const choices = (place: FormPlace): (string | undefined)[] =>
  place.optional ? [undefined, ...place.words] : [...place.words];

function combinations(places: readonly FormPlace[]): string[][] {
  const all = places.map(choices);
  const size = all.reduce((product, list) => product * list.length, 1);
  const base = all.map((list) => list[0]);
  const found = new Map<string, string[]>();
  const add = (picked: readonly (string | undefined)[]): void => {
    const modifiers = picked.filter((word) => word !== undefined);
    found.set(modifiers.join('.'), modifiers);
  };
  if (size <= 100) {
    const walk = (index: number, picked: (string | undefined)[]): void => {
      if (index === all.length) add(picked);
      else for (const word of all[index]!) walk(index + 1, [...picked, word]);
    };
    walk(0, []);
  } else {
    all.forEach((first, i) => {
      all.forEach((second, j) => {
        if (j < i) return;
        for (const one of first)
          for (const two of second)
            add(
              base.map((word, index) =>
                index === j ? (i === j ? one : two) : index === i ? one : word,
              ),
            );
      });
    });
  }
  return [...found.values()];
}

/** Registers of the skeleton: enough of each kind and width. */
const REGISTERS =
  '.reg .pred %p<4>; .reg .b16 %h<24>; .reg .b32 %r<24>; .reg .f32 %f<24>; .reg .b64 %l<24>; ' +
  '.reg .f64 %d<24>; .reg .b128 %q<4>; .reg .b8 %e<4>; .reg .f32 %sumf<128>; .reg .b32 ' +
  '%sumr<128>;';

function registerOf(name: string, index: number): string {
  const type = scalarType(name);
  if (type.kind === 'predicate') return `%p${index}`;
  if (name === 'f32') return `%f${index}`;
  if (name === 'f64') return `%d${index}`;
  if (name === 'e2m1x2') return `%e${index}`;
  return { 8: '%h', 16: '%h', 32: '%r', 64: '%l', 128: '%q' }[type.bits]! + String(index);
}

/** The instructions of a form. */
export const casesOf = (row: Form): FormCase[] =>
  combinations(row.places).flatMap((modifiers) => casesWith(row, modifiers));

/**
 * An instruction with the form's operands and any modifiers. Optional operands are present in one
 * and absent in another.
 */
export function casesWith(row: Form, modifiers: string[]): FormCase[] {
  const types = modifiers.filter(isScalarType);
  const width = Number(modifiers.find((word) => /^v[248]$/.test(word))?.slice(1) ?? 1);
  const space = modifiers.find((word) => /^(shared|param)/.test(word));
  let next = 0;
  /** The accumulators that a lane has of a wgmma. */
  const accumulators = (): string => {
    const n = Number(/m\d+n(\d+)/.exec(modifiers.join(' '))?.[1] ?? 8);
    const [type] = types;
    const [count, register] = type === 'f16' ? [n / 4, 'r'] : [n / 2, type === 'f32' ? 'f' : 'r'];
    return Array.from({ length: count }, (_, index) => `%sum${register}${index}`).join(', ');
  };
  const simple = (token: string): string => {
    const [, base, selector = ''] = /^(.*?)(\.[bh]\d+)?$/.exec(token)!;
    const name = base === 'T' ? types.at(-1)! : base === 'T1' ? types[0]! : base!;
    if (name === 'p') return `%p${next++ % 3}`;
    if (name === '!p') return `!%p${next++ % 3}`;
    return isScalarType(name) ? registerOf(name, next++) + selector : token;
  };
  const operand = (token: string): string => {
    if (token === '[g]') return '[%l23]';
    if (token.startsWith('[g,'))
      return `[%l23, {${new Array(Number(token[3]))
        .fill(0)
        .map(() => simple('b32'))
        .join(', ')}}]`;
    // A generic address has 64 bits.
    if (token === '[A]' || token === '[s]')
      return space?.startsWith('shared')
        ? '[%r23]'
        : space === 'param::func' && row.mnemonic === 'ld'
          ? '[result]'
          : space !== undefined && row.mnemonic === 'st'
            ? '[argument]'
            : '[%l23]';
    if (token === '{T}') return `{${Array.from({ length: width }, () => simple('T')).join(', ')}}`;
    if (token === '{d}') return `{${accumulators()}}`;
    if (token.startsWith('{')) return `{${token.slice(1, -1).split(',').map(simple).join(', ')}}`;
    if (token.includes('|')) return token.split('|').map(simple).join('|');
    return simple(token);
  };
  const name = [row.mnemonic, ...modifiers].join('.');
  const lists = [row.operands.filter((token) => !token.endsWith('?'))];
  if (row.operands.some((token) => token.endsWith('?')))
    lists.push(row.operands.map((token) => token.replace('?', '')));
  return lists.map((list) => {
    next = 0;
    return { modifiers, text: `${name} ${list.map(operand).join(', ')}`.trimEnd() + ';' };
  });
}

/** The lines of a kernel before the instructions of forms. */
export const SKELETON_LINES = 8;

/** A kernel around instructions of forms. */
export function formKernel(instructions: string, version = '9.1', target?: string): string {
  // Warp operations without .sync do not exist from sm_70 on; matrices of elements of few bits
  // exist on sm_120a only.
  target ??= /\b(vote|shfl)\.(?!sync)/.test(instructions)
    ? 'sm_60'
    : /\bmma\./.test(instructions)
      ? 'sm_120a'
      : /\bwgmma\./.test(instructions)
        ? 'sm_90a'
        : 'sm_100a';
  const registers = Number(version) < 8.3 ? REGISTERS.replace('.reg .b128 %q<4>;', '') : REGISTERS;
  return (
    `.version ${version}\n.target ${target}\n.address_size 64\n.func f() { ret; } .func ` +
    `(.param .align 16 .b8 returned[32]) g() { ret; }\n.visible .entry k(.param .u64 out) ` +
    `{\n${registers}\n` +
    '.shared .align 16 .b8 shared[1024]; .param .align 16 .b8 argument[32]; .param .align 16 ' +
    '.b8 result[32]; call (result), ' +
    `g;\n${Number(version) < 6 ? '' : 'labels: .branchtargets label;'}\n` +
    `${instructions.replace(/\bfunction\b/g, 'f')}\nlabel: ret;\n}\n`
  );
}
