/** Unusual PTX texts: changed, cut and random ones. A number gives one text, always the same. */
import { Random } from './random.js';

const TOKEN = /[A-Za-z_$%][\w$]*|\.[\w$]+(?:::[\w$]+)*|\d[\w.]*|"[^"\n]*"|\s+|[^\s\w]/g;

const NUMBERS = [
  '0',
  '1',
  '2',
  '3',
  '7',
  '31',
  '32',
  '33',
  '63',
  '64',
  '65',
  '127',
  '128',
  '255',
  '256',
  '4095',
  '4096',
  '65535',
  '65536',
  '16777216',
  '16777217',
  '2147483647',
  '2147483648',
  '4294967295',
  '4294967296',
  '9223372036854775807',
  '9223372036854775808',
  '18446744073709551615',
  '18446744073709551616',
  '1099511627776',
  '99999999999999999999999999999999',
  '-1',
  '-2147483648',
  '-2147483649',
  '-9223372036854775808',
  '-9223372036854775809',
  '0x0',
  '0xFFFFFFFF',
  '0x80000000',
  '0xFFFFFFFFFFFFFFFF',
  '0x1FFFFFFFFFFFFFFFF',
  '0b1',
  '0b2',
  '017',
  '08',
  '0x',
  '0f3F800000',
  '0f7FC00000',
  '0f7F800000',
  '0fFF800000',
  '0f00000001',
  '0f3F8',
  '0d3FF0000000000000',
  '0d7FF8000000000000',
  '0d7FF0000000000000',
  '0dFFF',
  '1.5',
  '1e400',
  '1e-400',
  '.5',
  '1.',
  '1e',
  '0U',
  '1U',
  '12abc',
  '(1/0)',
  '(1<<64)',
  '(1<<9999999)',
  '1?2:3',
  '(((((1)))))',
  '-(-(-(1)))',
  'WARP_SZ',
  '(.s64)-1',
  '!0',
  '~0',
];

const TYPES = [
  '.pred',
  '.b1',
  '.b4',
  '.b8',
  '.u8',
  '.s8',
  '.b16',
  '.u16',
  '.s16',
  '.b32',
  '.u32',
  '.s32',
  '.b64',
  '.u64',
  '.s64',
  '.b128',
  '.u128',
  '.f16',
  '.bf16',
  '.f16x2',
  '.bf16x2',
  '.f32',
  '.f32x2',
  '.f64',
  '.tf32',
  '.u16x2',
  '.s16x2',
  '.e4m3x2',
  '.e5m2x2',
  '.e4m3',
  '.texref',
  '.samplerref',
  '.surfref',
];

const MODIFIERS = [
  '.rn',
  '.rz',
  '.rm',
  '.rp',
  '.rni',
  '.rzi',
  '.rmi',
  '.rpi',
  '.rna',
  '.ftz',
  '.sat',
  '.relu',
  '.satfinite',
  '.approx',
  '.full',
  '.lo',
  '.hi',
  '.wide',
  '.cc',
  '.eq',
  '.ne',
  '.lt',
  '.le',
  '.gt',
  '.ge',
  '.equ',
  '.neu',
  '.ltu',
  '.hs',
  '.ls',
  '.num',
  '.nan',
  '.and',
  '.or',
  '.xor',
  '.popc',
  '.global',
  '.shared',
  '.local',
  '.param',
  '.const',
  '.shared::cta',
  '.shared::cluster',
  '.param::entry',
  '.v2',
  '.v4',
  '.v8',
  '.volatile',
  '.relaxed',
  '.acquire',
  '.release',
  '.acq_rel',
  '.cta',
  '.gpu',
  '.sys',
  '.cluster',
  '.nc',
  '.ca',
  '.cg',
  '.cs',
  '.lu',
  '.cv',
  '.wb',
  '.wt',
  '.L2::128B',
  '.L2::cache_hint',
  '.sync',
  '.aligned',
  '.arrive',
  '.red',
  '.up',
  '.down',
  '.bfly',
  '.idx',
  '.all',
  '.any',
  '.uni',
  '.ballot',
  '.add',
  '.min',
  '.max',
  '.exch',
  '.cas',
  '.inc',
  '.dec',
  '.warp',
  '.to',
  '.x',
  '.y',
  '.z',
  '.w',
  '.xyz',
  '.clamp',
  '.wrap',
  '.l',
  '.r',
  '.shiftamt',
  '.f4e',
  '.b4e',
  '.rc8',
  '.ecl',
  '.ecr',
  '.rc16',
  '.noftz',
  '.NaN',
  '.xorsign',
  '.abs',
  '.finite',
  '.infinite',
  '.mbarrier',
  '.async',
  '.bulk',
  '.commit_group',
  '.wait_group',
  '.init',
  '.inval',
  '.test_wait',
  '.try_wait',
  '.parity',
  '.m16n8k16',
  '.row',
  '.col',
  '.1d',
  '.2d',
  '.3d',
  '.a1d',
  '.cube',
  '.sc',
  '.proxy',
  '.uni',
  '.noreturn',
  '.ptr',
  '.align',
  '.maxntid',
  '.reqntid',
  '.pragma',
  '.loc',
  '.file',
  '.section',
  '.reg',
  '.entry',
  '.func',
  '.visible',
  '.extern',
  '.weak',
  '.common',
  '.version',
  '.target',
  '.address_size',
  '.alias',
  '.branchtargets',
  '.callprototype',
  '.attribute',
];

const MNEMONICS = [
  'abs',
  'activemask',
  'add',
  'addc',
  'and',
  'atom',
  'bar',
  'barrier',
  'bfe',
  'bfi',
  'bfind',
  'bmsk',
  'bra',
  'brev',
  'brkpt',
  'brx',
  'call',
  'clz',
  'cnot',
  'copy',
  'copysign',
  'cos',
  'cp',
  'cvt',
  'cvta',
  'div',
  'dp2a',
  'dp4a',
  'elect',
  'ex2',
  'exit',
  'fence',
  'fma',
  'isspacep',
  'ld',
  'ldmatrix',
  'ldu',
  'lg2',
  'lop3',
  'mad',
  'mad24',
  'madc',
  'match',
  'max',
  'mbarrier',
  'membar',
  'min',
  'mma',
  'mov',
  'mul',
  'mul24',
  'nanosleep',
  'neg',
  'not',
  'or',
  'popc',
  'prefetch',
  'prmt',
  'rcp',
  'red',
  'redux',
  'rem',
  'ret',
  'rsqrt',
  'sad',
  'selp',
  'set',
  'setp',
  'shf',
  'shfl',
  'shl',
  'shr',
  'sin',
  'slct',
  'sqrt',
  'st',
  'stmatrix',
  'sub',
  'subc',
  'suld',
  'sust',
  'szext',
  'tanh',
  'testp',
  'tex',
  'trap',
  'txq',
  'vabsdiff4',
  'vadd',
  'vote',
  'wgmma',
  'wmma',
  'xor',
  '__proto__',
  'constructor',
  'toString',
  'hasOwnProperty',
];

const PUNCTUATION = [
  ';',
  ',',
  ':',
  '{',
  '}',
  '[',
  ']',
  '(',
  ')',
  '<',
  '>',
  '@',
  '!',
  '|',
  '=',
  '+',
  '-',
  '*',
  '/',
  '%',
  '?',
  '&',
  '^',
  '~',
  '<<',
  '&&',
  '//',
  '/*',
  '*/',
  '"',
  '\0',
  '_',
  '.',
  '..',
  '::',
  '\\',
  '\u00e9',
  '\ud83d',
];

const NAMES = [
  '%tid.x',
  '%ntid.x',
  '%laneid',
  '%clock64',
  '%envreg1',
  '%pm0',
  '%r1',
  '%rd1',
  '%f1',
  '%p1',
  '%rs1',
  '%fd1',
  '%r99999',
  '%nowhere',
  '_',
  '%',
  '$L__BB0_1',
  '$L__BB0_2',
  '__proto__',
  'constructor',
  'x',
  'vprintf',
  'malloc',
  'generic',
  'sm_90',
  'texmode_unified',
  'debug',
  'WARP_SZ',
  '%SP',
  'a'.repeat(3000),
];

const DECLARATIONS = [
  '.global .b8 x[4294967295];',
  '.global .b8 x[4294967296];',
  '.global .align 1099511627776 .b8 x[4];',
  '.global .align 3 .b8 x[4];',
  '.global .align 0 .b8 x;',
  '.global .b8 x[-1];',
  '.global .b8 x[65536][65536][65536];',
  '.global .u32 x[2] = {1, 2, 3};',
  '.global .u32 x[2][2] = {{1, 2, 3}, 4};',
  '.global .u32 x = {{{{{{1}}}}}};',
  '.global .u64 x = x;',
  '.global .u64 x[] = {x, y, generic(x)+4294967295};',
  '.global .u64 y = x+1-2;',
  '.const .b8 s[] = "text";',
  '.global .f16 h = 1.0;',
  '.global .u32 x[0];',
  '.global .u32 x[];',
  '.global .v4 .f32 x[3] = {1, 2};',
  '.global .b128 x;',
  '.global .pred x;',
  '.shared .b8 sh[4294967295];',
  '.shared .align 4096 .b8 sh[99999999];',
  '.extern .shared .b8 sh[];',
  '.reg .b32 %r<1000000>;',
  '.reg .b32 %r<16777216>;',
  '.reg .b32 %r<4294967296>;',
  '.reg .b32 %r<-1>;',
  '.reg .b32 %r<0>;',
  '.reg .b32 %r<1e3>;',
  '.reg .v4 .f32 %q<4>;',
  '.reg .b128 %b;',
  '.reg .pred %p<2>;',
  '.reg .f16 %r1;',
  '.local .align 16 .b8 depot[1048577];',
  '.local .b8 depot[4294967295];',
  '.param .b32 x;',
  '.param .align 8 .b8 x[4294967295];',
  '.alias f, f;',
  '.alias f, g;',
  '.file 1 "a"',
  '.loc 1 2 3',
  '.loc 1 2 3, function_name $s, inlined_at 1 2 3',
  '.pragma "nounroll";',
  '.pragma "x',
  '.section .debug_str { .b8 1 }',
  '.section .debug_str { {',
  '.version 99.9',
  '.target sm_10',
  '.target',
  '.address_size 32',
  '.func f { ret; }',
  '.func f() { call f; ret; }',
  '.func (.reg .b32 r) f (.reg .b32 a) { mov.b32 r, a; ret; }',
  '.entry e { ret; }',
  '.entry e',
  '.visible .entry e() .maxntid 4294967295, 4294967295, 4294967295 { bar.sync 0; ret; }',
  '.visible .entry e() .reqntid 0 { ret; }',
  '.weak .func f;',
  '.extern .func (.param .b32 r) vprintf (.param .b64 a, .param .b64 b);',
  'p: .callprototype _ (.param .b32 _);',
  't: .branchtargets a, b;',
  'L: bra L;',
  'L: L: ret;',
  '{ { { } } }',
  '$L__BB0_1:',
  'brx.idx %r1, t;',
];

/** Texts that are only long or deeply nested. */
function excess(random: Random): string {
  const times = random.pick([50, 199, 201, 1000, 20000]);
  return random.pick([
    () => '('.repeat(times),
    () => '{'.repeat(times),
    () => '['.repeat(times),
    () => '-'.repeat(times),
    () => '~!'.repeat(times),
    () => '1+'.repeat(times),
    () => `${'('.repeat(times)}1${')'.repeat(times)}`,
    () => '1?'.repeat(times),
    () => `.global .u32 x = ${'{'.repeat(times)}1${'}'.repeat(times)};`,
    () => `.global .b8 x${'[2]'.repeat(times)};`,
    () => 'a'.repeat(times * 10),
    () => `.${'b'.repeat(times)}`,
    () => '1'.repeat(times),
    () => `0x${'F'.repeat(times)}`,
    () => `"${'\\"'.repeat(times)}`,
    () => '/*'.repeat(times),
    () => '\n'.repeat(times),
    () => '@'.repeat(times),
    () => `mov.b32 %r1, {${'%r1,'.repeat(times)}%r1};`,
    () => `call f, (${'1,'.repeat(times)}1);`,
    () => `add${'.u32'.repeat(times)} %r1, %r1, %r1;`,
    () => `ld.global.u32 %r1, [%rd1${'+1'.repeat(times)}];`,
    () => '.reg .b32 %z;'.repeat(times),
    () => `.file 1 "x"${',1'.repeat(times)}`,
    () => 'bar.sync 0;'.repeat(Math.min(times, 1000)),
    () => '{'.repeat(190) + '}'.repeat(190),
    () =>
      Array.from(
        { length: Math.min(times, 1000) },
        (_, index) => `Q${index}: @%p1 bra Q${(index * 7) % Math.min(times, 1000)};`,
      ).join('\n'),
    () =>
      Array.from(
        { length: Math.min(times, 1000) },
        (_, index) => `.func f${index}() { call f${index + 1}; call f${index + 2}; ret; }`,
      ).join('\n'),
  ])();
}

function dictionaryWord(random: Random): string {
  return random.pick(
    random.pick([NUMBERS, TYPES, MODIFIERS, MNEMONICS, PUNCTUATION, NAMES, DECLARATIONS]),
  );
}

/** A word of the same kind as the given one. */
function alike(token: string, random: Random): string {
  if (/^\d/.test(token)) return random.pick(NUMBERS);
  if (/^\.(pred|[bus]\d+|b?f\d+(x2)?)$/.test(token)) return random.pick(TYPES);
  if (token.startsWith('.')) return random.pick(random.chance(3) ? TYPES : MODIFIERS);
  if (/^[a-z]+\d*$/.test(token)) return random.pick(MNEMONICS);
  if (/^[%$\w]/.test(token)) return random.pick(NAMES);
  return random.pick(PUNCTUATION);
}

function mutateTokens(tokens: string[], random: Random, other: readonly string[]): void {
  if (!tokens.length) return;
  const at = random.below(tokens.length);
  switch (random.below(15)) {
    case 0:
      tokens.splice(at, 1 + (random.chance(4) ? random.below(30) : 0));
      return;
    case 1:
      tokens.splice(at, 0, ...tokens.slice(at, at + 1 + random.below(8)));
      return;
    case 2: {
      const to = random.below(tokens.length);
      [tokens[at], tokens[to]] = [tokens[to]!, tokens[at]!];
      return;
    }
    case 3:
      tokens[at] = random.pick(other);
      return;
    case 4:
    case 5:
    case 6:
    case 7: {
      // A word, not the space between two.
      let place = at;
      while (place + 1 < tokens.length && /^\s/.test(tokens[place]!)) place++;
      tokens[place] = alike(tokens[place]!, random);
      return;
    }
    case 8:
      tokens.splice(at, 0, dictionaryWord(random));
      return;
    case 9:
      tokens.splice(at, 0, '\n', random.pick(DECLARATIONS), '\n');
      return;
    case 10: {
      // A stretch of another module.
      const from = random.below(other.length);
      tokens.splice(at, 0, ...other.slice(from, from + random.below(40)));
      return;
    }
    case 11: {
      // Two operands or modifiers of near instructions change places.
      const to = Math.min(tokens.length - 1, at + random.below(12));
      [tokens[at], tokens[to]] = [tokens[to]!, tokens[at]!];
      return;
    }
    case 12: {
      const number = tokens.findIndex((token, index) => index >= at && /^\d/.test(token));
      if (number >= 0) tokens[number] = random.pick(NUMBERS);
      return;
    }
    case 13: {
      const type = tokens.findIndex((token, index) => index >= at && TYPES.includes(token));
      if (type >= 0) tokens[type] = random.pick(TYPES);
      return;
    }
    case 14: {
      const modifier = tokens.findIndex((token, index) => index >= at && token.startsWith('.'));
      if (modifier >= 0) tokens.splice(modifier, random.below(2), random.pick(MODIFIERS));
      return;
    }
  }
}

function soup(random: Random): string {
  const words: string[] = random.chance(2)
    ? [
        '.version 8.7 .target sm_90 .address_size 64 .visible .entry k() { .reg .b32 %r<9>; ' +
          '.reg .b64 %rd<9>; .reg .f32 %f<9>; .reg .pred %p<9>;',
      ]
    : [];
  for (let count = random.below(60); count > 0; count--) words.push(dictionaryWord(random));
  return words.join(random.chance(3) ? '' : ' ');
}

function noise(text: string, random: Random): string {
  const at = random.below(text.length + 1);
  const char = String.fromCharCode(random.chance(4) ? random.below(65536) : random.below(128));
  return text.slice(0, at) + char + text.slice(at + random.below(2));
}

const cut = (text: string): string[] => text.match(TOKEN) ?? [];

/** The input of a number. */
export class Inputs {
  private readonly seeds: readonly string[];
  private readonly tokens: (string[] | undefined)[];

  constructor(seeds: readonly string[]) {
    this.seeds = seeds;
    this.tokens = seeds.map(() => undefined);
  }

  private tokensOf(index: number): string[] {
    return (this.tokens[index] ??= cut(this.seeds[index]!));
  }

  at(number: number): string {
    const random = new Random(number);
    const kind = random.below(20);
    if (kind === 0) return soup(random);
    const index = random.below(this.seeds.length);
    if (kind === 1) return this.seeds[index]!.slice(0, random.below(this.seeds[index]!.length));
    const tokens = [...this.tokensOf(index)];
    // Half of them differ from a valid module in one place only, so that they reach late phases of
    // the compiler.
    for (
      let count = kind < 10 ? 1 + random.below(random.chance(4) ? 20 : 3) : 1;
      count > 0;
      count--
    )
      mutateTokens(tokens, random, this.tokensOf(random.below(this.seeds.length)));
    if (kind === 2) tokens.splice(random.below(tokens.length + 1), 0, excess(random));
    let text = tokens.join('');
    if (kind === 3)
      for (let count = 1 + random.below(5); count > 0; count--) text = noise(text, random);
    return text;
  }
}
