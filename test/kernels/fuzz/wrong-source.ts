/**
 * Texts of kernels with some of their tokens left out, put in, taken twice, or replaced by others.
 */
import { tokenizer } from 'acorn';

import type { Random } from '../../compiler/fuzz/random-kernel.test-support.js';

/** Tokens that programmers write by mistake, and names that a kernel does not have. */
const STRANGERS = [
  '0',
  '1',
  '-1',
  '0.5',
  '5n',
  '1e400',
  '"text"',
  '`text`',
  '/x/',
  'null',
  'undefined',
  'NaN',
  'this',
  'true',
  'gpu',
  'Math',
  'console',
  'i',
  'm',
  'y_f32',
  'x_f32',
  'nothing',
  'arguments',
  'gpu.block.sync()',
  'gpu.warp.sum(1)',
  'gpu.shared.f32(4)',
  'gpu.local.f32(4)',
  'gpu.local.f32(1e9)',
  'gpu.f32',
  'y_f32.length',
  '[1, 2]',
  '{ x: 1 }',
  '() => 1',
  'new Date()',
  'await',
  'async',
  'yield',
  'function f() {}',
  'class A {}',
  'return',
  'return 1;',
  'break',
  'continue',
  'throw 1;',
  'try {} catch {}',
  'let',
  'const',
  'var',
  'if',
  'else',
  'for',
  'while (true) {}',
  'do',
  'switch',
  'case',
  'default',
  'in',
  'of',
  'typeof',
  'void',
  'delete',
  'instanceof',
  '...',
  '?.',
  '??',
  '??=',
  '=>',
  '=',
  '+=',
  '**',
  '>>>',
  '===',
  '!',
  '~',
  '++',
  '--',
  '.',
  ',',
  ';',
  ':',
  '?',
  '(',
  ')',
  '[',
  ']',
  '{',
  '}',
  'fuzz: ',
  'console.log("%d", i)',
  'gpu.f0(1)',
  'gpu.WEIGHTS',
  'gpu.unroll();',
  'debugger;',
  'x_f32[1e10]',
  'gpu.atomicAdd(m, 0, 1)',
  'm[0]',
  'gpu.i32(1) / 0',
  'const [a] = x_f32;',
  'with (gpu) {}',
];

const KINDS = [/^[\w$.]*[a-zA-Z_][\w$.]*$/, /^\d/, /^[([{]$/, /^[)\]}]$/, /^[=+\-*/%&|^<>!?~]+$/];
const kindOf = (token: string): number => KINDS.findIndex((kind) => kind.test(token));

/** Makes up to four changes. The text may still be right. */
export function wrongSource(text: string, random: Random): string {
  const tokens = [...tokenizer(text, { ecmaVersion: 'latest' })].map(({ start, end }) =>
    text.slice(start, end),
  );
  for (let k = 1 + random.below(4); k > 0 && tokens.length > 1; k--) {
    const at = random.below(tokens.length);
    const any = random.chance(50) ? STRANGERS : tokens;
    // Replaces a name by another name: a text that is not JavaScript is refused early.
    const alike = any.filter((token) => kindOf(token) === kindOf(tokens[at]!));
    const other = random.pick(alike.length > 0 && random.chance(80) ? alike : any);
    if (random.chance(60)) {
      tokens.splice(at, 1, other);
      continue;
    }
    const ways: (() => void)[] = [
      () => tokens.splice(at, 1),
      () => tokens.splice(at, 0, other),
      () => tokens.splice(at, 0, tokens[at]!),
      () => tokens.splice(at, 1 + random.below(12)),
      () => {
        const to = random.below(tokens.length);
        [tokens[at], tokens[to]] = [tokens[to]!, tokens[at]!];
      },
    ];
    random.pick(ways)();
  }
  return tokens.join(' ').replace(/([;{}]) /g, '$1\n');
}
