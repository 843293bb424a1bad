// Every form that is covered, in the order of the PTX ISA's chapters. What is in no form of its mnemonic is refused;
// docs/ptx-coverage.md is made from these rows, and a test sends each of them through the compiler.

import { isScalarType } from '../scalar-types.js';
import { fits, form, forms } from './form.js';
import type { Form } from './form.js';

const INTEGERS = 'u16|u32|u64|s16|s32|s64';
const WORDS = 'u32|s32|u64|s64';
const ROUNDINGS = '[rn|rz|rm|rp]';
const ROUNDED = 'rn|rz|rm|rp';
const COMPARISONS = 'eq|ne|lt|le|gt|ge';
const UNSIGNED_COMPARISONS = `${COMPARISONS}|lo|ls|hi|hs`;
const FLOAT_COMPARISONS = `${COMPARISONS}|equ|neu|ltu|leu|gtu|geu|num|nan`;
const COMBINED = 'and|or|xor';
const PLAIN = 'b16|b32|b64|u16|u32|u64|s16|s32|s64|f32|f64';

const INTEGER: readonly Form[] = [
  ...['add', 'sub'].flatMap(name => [
    form(name, name === 'add' ? `${INTEGERS}|u16x2|s16x2` : INTEGERS, 'T T T'),
    form(name, 'sat s32', 'T T T'),
    form(name, `cc ${WORDS}`, 'T T T'),
    form(`${name}c`, `[cc] ${WORDS}`, 'T T T'),
  ]),
  form('mul', `hi|lo ${INTEGERS}`, 'T T T'),
  form('mul', 'wide u16|s16', 'b32 T T'), form('mul', 'wide u32|s32', 'b64 T T'),
  form('mad', `hi|lo ${INTEGERS}`, 'T T T T'),
  form('mad', 'wide u16|s16', 'b32 T T b32'), form('mad', 'wide u32|s32', 'b64 T T b64'),
  form('mad', 'hi sat s32', 'T T T T'),
  form('mad', `hi|lo cc ${WORDS}`, 'T T T T'), form('madc', `hi|lo [cc] ${WORDS}`, 'T T T T'),
  form('mul24', 'hi|lo u32|s32', 'T T T'), form('mad24', 'hi|lo u32|s32', 'T T T T'), form('mad24', 'hi sat s32', 'T T T T'),
  form('sad', INTEGERS, 'T T T T'), form('div', INTEGERS, 'T T T'), form('rem', INTEGERS, 'T T T'),
  form('abs', 's16|s32|s64', 'T T'), form('neg', 's16|s32|s64', 'T T'),
  ...['min', 'max'].flatMap(name => [form(name, `${INTEGERS}|u16x2|s16x2`, 'T T T'), form(name, 'relu s32|s16x2', 'T T T')]),
  form('popc', 'b32|b64', 'b32 T'), form('clz', 'b32|b64', 'b32 T'), form('bfind', `[shiftamt] ${WORDS}`, 'b32 T'),
  form('fns', 'b32', 'b32 b32 b32 s32'), form('brev', 'b32|b64', 'T T'),
  form('bfe', WORDS, 'T T b32 b32'), form('bfi', 'b32|b64', 'T T T b32 b32'),
  form('szext', 'clamp|wrap u32|s32', 'T T b32'), form('bmsk', 'clamp|wrap b32', 'b32 b32 b32'),
  form('dp4a', 'u32|s32 u32|s32', 'b32 b32 b32 b32'), form('dp2a', 'lo|hi u32|s32 u32|s32', 'b32 b32 b32 b32'),
];

const FLOAT: readonly Form[] = [
  form('testp', 'finite|infinite|number|notanumber|normal|subnormal f32|f64', 'p T'),
  form('copysign', 'f32|f64', 'T T T'),
  ...['add', 'sub', 'mul'].flatMap(name => [
    form(name, `${ROUNDINGS} [ftz] [sat] f32`, 'T T T'), form(name, `${ROUNDINGS} f64`, 'T T T'),
    form(name, `${ROUNDINGS} [ftz] f32x2`, 'T T T'),
  ]),
  ...['fma', 'mad'].flatMap(name => [form(name, `${ROUNDED} [ftz] [sat] f32`, 'T T T T'), form(name, `${ROUNDED} f64`, 'T T T T')]),
  form('fma', `${ROUNDED} [ftz] f32x2`, 'T T T T'),
  form('div', `approx|full|${ROUNDED} [ftz] f32`, 'T T T'), form('div', `${ROUNDED} f64`, 'T T T'),
  ...['abs', 'neg'].flatMap(name => [form(name, '[ftz] f32', 'T T'), form(name, 'f64', 'T T')]),
  ...['min', 'max'].flatMap(name => [
    form(name, '[ftz] [NaN] f32', 'T T T'), form(name, '[ftz] [NaN] xorsign abs f32', 'T T T'),
    form(name, '[ftz] [NaN] [abs] f32', 'T T T T'), form(name, 'f64', 'T T T'),
  ]),
  ...['rcp', 'sqrt'].flatMap(name => [form(name, `approx|${ROUNDED} [ftz] f32`, 'T T'), form(name, `${ROUNDED} f64`, 'T T')]),
  form('rcp', 'approx ftz f64', 'T T'), form('rsqrt', 'approx [ftz] f32|f64', 'T T'),
  ...['sin', 'cos', 'lg2', 'ex2'].map(name => form(name, 'approx [ftz] f32', 'T T')), form('tanh', 'approx f32', 'T T'),
];

const HALF: readonly Form[] = [
  ...['add', 'sub', 'mul'].flatMap(name => [
    form(name, '[rn] [ftz] [sat] f16|f16x2', 'T T T'), form(name, '[rn] bf16|bf16x2', 'T T T'),
  ]),
  form('fma', 'rn [ftz] [sat] f16|f16x2', 'T T T T'), form('fma', 'rn [ftz] relu f16|f16x2', 'T T T T'),
  form('fma', 'rn [relu] bf16|bf16x2', 'T T T T'), form('fma', 'rn oob [relu] f16|f16x2|bf16|bf16x2', 'T T T T'),
  ...['abs', 'neg'].flatMap(name => [form(name, '[ftz] f16|f16x2', 'T T'), form(name, 'bf16|bf16x2', 'T T')]),
  ...['min', 'max'].flatMap(name => [
    form(name, '[ftz] [NaN] f16|f16x2', 'T T T'), form(name, '[ftz] [NaN] xorsign abs f16|f16x2', 'T T T'),
    form(name, '[NaN] bf16|bf16x2', 'T T T'), form(name, '[NaN] xorsign abs bf16|bf16x2', 'T T T'),
  ]),
  form('tanh', 'approx f16|f16x2|bf16|bf16x2', 'T T'), form('ex2', 'approx f16|f16x2', 'T T'), form('ex2', 'approx ftz bf16|bf16x2', 'T T'),
  // One operand is a half, the sum is single.
  ...['add', 'sub'].map(name => form(name, `${ROUNDINGS} [sat] f32 f16|bf16`, 'f32 T f32')),
  form('fma', `${ROUNDED} [sat] f32 f16|bf16`, 'f32 T T f32'),
];

/** The comparisons of set and setp, with what each type takes. */
const comparing = (build: (places: string) => Form[]): Form[] => [
  ...build('eq|ne b16|b32|b64'), ...build(`${COMPARISONS} s16|s32|s64`), ...build(`${UNSIGNED_COMPARISONS} u16|u32|u64`),
  ...build(`${FLOAT_COMPARISONS} [ftz] f32`), ...build(`${FLOAT_COMPARISONS} f64`),
];

const COMPARE: readonly Form[] = [
  ...comparing(places => {
    const [comparison, ...rest] = places.split(' ');
    const types = rest.pop()!;
    const before = [comparison, ...rest].join(' ');
    return [form('set', `${before} u32|s32|f32|f16|bf16 ${types}`, 'T1 T T'), form('set', `${before} ${COMBINED} u32|s32|f32|f16|bf16 ${types}`, 'T1 T T p')];
  }),
  ...comparing(places => [
    form('setp', places, 'p T T'), form('setp', places, 'p|p T T'),
    form('setp', `${COMBINED} ${places}`, 'p T T !p'), form('setp', `${COMBINED} ${places}`, 'p|p T T p'),
  ]),
  ...[['f16|bf16|u16|s16|u32|s32', '[ftz] f16'], ['bf16|u16|s16|u32|s32', 'bf16'], ['f16x2|u32|s32', '[ftz] f16x2'], ['bf16x2|u32|s32', 'bf16x2']]
    .flatMap(([to, from]) => {
      const [flush, type] = from!.includes(' ') ? from!.split(' ') : ['', from!];
      return [form('set', `${FLOAT_COMPARISONS} ${flush} ${to} ${type}`, 'T1 T T'), form('set', `${FLOAT_COMPARISONS} ${COMBINED} ${flush} ${to} ${type}`, 'T1 T T p')];
    }),
  ...['[ftz] f16', 'bf16'].flatMap(type => [
    form('setp', `${FLOAT_COMPARISONS} ${type}`, 'p T T'), form('setp', `${FLOAT_COMPARISONS} ${COMBINED} ${type}`, 'p T T p'),
  ]),
  ...['[ftz] f16x2', 'bf16x2'].flatMap(type => [
    form('setp', `${FLOAT_COMPARISONS} ${type}`, 'p|p T T'), form('setp', `${FLOAT_COMPARISONS} ${COMBINED} ${type}`, 'p|p T T p'),
  ]),
  form('selp', PLAIN, 'T T T p'), form('slct', `${PLAIN} s32`, 'T1 T1 T1 T'), form('slct', `[ftz] ${PLAIN} f32`, 'T1 T1 T1 T'),
];

const LOGIC: readonly Form[] = [
  ...['and', 'or', 'xor'].map(name => form(name, 'pred|b16|b32|b64', 'T T T')),
  form('not', 'pred|b16|b32|b64', 'T T'), form('cnot', 'b16|b32|b64', 'T T'),
  form('lop3', 'b32', 'b32 b32 b32 b32 0x96'), form('lop3', 'and|or b32', 'b32|p b32 b32 b32 0x96 p'),
  form('shf', 'l|r clamp|wrap b32', 'b32 b32 b32 b32'),
  form('shl', 'b16|b32|b64', 'T T b32'), form('shr', `b16|b32|b64|${INTEGERS}`, 'T T b32'),
  form('prmt', 'b32 [f4e|b4e|rc8|ecl|ecr|rc16]', 'b32 b32 b32 b32'),
];

const SPACES = '[const|global|local|param|param::entry|param::func|shared|shared::cta|shared::cluster]';
const STORE_SPACES = '[global|local|param|param::func|shared|shared::cta|shared::cluster]';
const MEMORY = 'b8|b16|b32|b64|u8|u16|u32|u64|s8|s16|s32|s64|f32|f64';
const QUARTERS = 'v4 b8|b16|b32|u8|u16|u32|s8|s16|s32|f32';
const L1 = '[L1::evict_normal|L1::evict_unchanged|L1::evict_first|L1::evict_last|L1::no_allocate]';
const L2 = '[L2::evict_normal|L2::evict_first|L2::evict_last]';
const SIZES = '[L2::64B|L2::128B|L2::256B]';
const SCOPES = 'cta|cluster|gpu|sys';
const SHARED = '[shared|shared::cta|shared::cluster]';
const WATCHED = '[global|shared|shared::cta|shared::cluster]';

/** Scalar, vector and 128-bit forms of an access. */
const access = (name: string, places: string, operands: string): Form[] => [
  ...forms(name, `${places} ${MEMORY}|b128`, operands),
  ...[`v2 ${MEMORY}`, QUARTERS].flatMap(vector => forms(name, `${places} ${vector}`, operands.replace('T', '{T}'))),
];
/** 256 bits at once, in global memory only. */
const large = (name: string, order: string, hints: string, operands: string): Form[] => ['v8 b32|u32|s32|f32', 'v4 b64|u64|s64|f64'].flatMap(vector => [
  ...forms(name, `${order} [global] ${L1} ${L2} ${hints} ${vector}`, operands),
  ...forms(name, `${order} [global] ${L1} L2::cache_hint ${hints} ${vector}`, `${operands} b64`),
]);

const ACCESSES: readonly Form[] = [
  ...access('ld', `[weak] ${SPACES} [ca|cg|cs|lu|cv]`, 'T [A]'), ...access('ld', '[weak] [global] ca|cg|cs|lu|cv L2::cache_hint', 'T [g] b64'),
  ...access('ld', `[weak] [global] ${L1} ${SIZES}`, 'T [g]'),
  ...access('ld', `[weak] [global] ${L1} L2::cache_hint ${SIZES}`, 'T [g] b64'),
  ...access('ld', 'volatile [local|shared|shared::cta|shared::cluster]', 'T [A]'), ...access('ld', `volatile [global] ${SIZES}`, 'T [g]'),
  ...access('ld', `relaxed|acquire ${SCOPES} ${SHARED}`, 'T [A]'),
  ...access('ld', `relaxed|acquire ${SCOPES} [global] ${L1} ${SIZES}`, 'T [g]'),
  ...access('ld', `relaxed|acquire ${SCOPES} [global] ${L1} L2::cache_hint ${SIZES}`, 'T [g] b64'),
  form('ld', `mmio relaxed sys [global] ${MEMORY}`, 'T [g]'),
  ...access('ld', `global nc [ca|cg|cs|${L1.slice(1, -1)}] ${SIZES}`, 'T [g]'),
  ...access('ld', `global nc [ca|cg|cs|${L1.slice(1, -1)}] L2::cache_hint ${SIZES}`, 'T [g] b64'),
  ...['[weak]', `relaxed|acquire ${SCOPES}`].flatMap(order => large('ld', order, SIZES, '{T} [g]')),
  ...['v8 b32|u32|s32|f32', 'v4 b64|u64|s64|f64'].map(vector => form('ld', `global nc ${L1} ${L2} ${SIZES} ${vector}`, '{T} [g]')),
  form('ld', `volatile [global] ${SIZES} v8 b32|u32|s32|f32`, '{T} [g]'), form('ld', `volatile [global] ${SIZES} v4 b64|u64|s64|f64`, '{T} [g]'),
  form('ldu', `[global] ${MEMORY}`, 'T [g]'), form('ldu', `[global] v2 ${MEMORY}`, '{T} [g]'), form('ldu', `[global] ${QUARTERS}`, '{T} [g]'),
  ...access('st', `[weak] ${STORE_SPACES} [wb|cg|cs|wt]`, '[A] T'), ...access('st', '[weak] [global] wb|cg|cs|wt L2::cache_hint', '[g] T b64'),
  ...access('st', `[weak] [global] ${L1}`, '[g] T'),
  ...access('st', `[weak] [global] ${L1} L2::cache_hint`, '[g] T b64'),
  ...access('st', 'volatile [global|local|shared|shared::cta|shared::cluster]', '[A] T'),
  ...access('st', `relaxed|release ${SCOPES} ${SHARED}`, '[A] T'),
  ...access('st', `relaxed|release ${SCOPES} [global] ${L1}`, '[g] T'),
  ...access('st', `relaxed|release ${SCOPES} [global] ${L1} L2::cache_hint`, '[g] T b64'),
  form('st', `mmio relaxed sys [global] ${MEMORY}`, '[g] T'),
  ...['[weak]', `relaxed|release ${SCOPES}`].flatMap(order => large('st', order, '', '[g] {T}')),
  form('st', 'volatile [global] v8 b32|u32|s32|f32', '[g] {T}'), form('st', 'volatile [global] v4 b64|u64|s64|f64', '[g] {T}'),
  form('st', 'async [weak] [shared::cluster] mbarrier::complete_tx::bytes b32|b64|u32|u64|s32|s64|f32|f64', '[s] T [s]'),
  form('st', 'async [weak] [shared::cluster] mbarrier::complete_tx::bytes v2|v4 b32|u32|s32|f32', '[s] {T} [s]'),
  form('st', 'async [weak] [shared::cluster] mbarrier::complete_tx::bytes v2 b64|u64|s64|f64', '[s] {T} [s]'),
  form('st', `async release gpu|sys [global] ${MEMORY.replace('b8|', '').replace('u8|', '').replace('s8|', '')}`, '[g] T'),
  form('st', `async mmio release sys [global] ${MEMORY.replace('b8|', '').replace('u8|', '').replace('s8|', '')}`, '[g] T'),
  form('st', 'bulk [weak] [shared::cta]', '[s] b64 0'),
];

const MOVES: readonly Form[] = [
  form('mov', 'pred|b16|b32|b64|u16|u32|u64|s16|s32|s64|f32|f64|b128', 'T T'),
  form('prefetch', '[global|local] L1|L2', '[g]'), form('prefetch', '[global] L2::evict_last|L2::evict_normal', '[g]'),
  form('prefetch', '[const|param] tensormap', '[g]'), form('prefetchu', 'L1', '[g]'),
  form('applypriority', '[global] L2::evict_normal', '[g] 128'), form('discard', '[global] L2', '[g] 128'),
  form('createpolicy', 'fractional L2::evict_last|L2::evict_normal|L2::evict_first|L2::evict_unchanged [L2::evict_first|L2::evict_unchanged] b64', 'b64 f32?'),
  form('createpolicy', 'range [global] L2::evict_last|L2::evict_normal|L2::evict_first|L2::evict_unchanged [L2::evict_first|L2::evict_unchanged] b64', 'b64 [g] b32 b32'),
  form('createpolicy', 'cvt L2 b64', 'b64 b64'),
  form('isspacep', 'const|global|local|shared|shared::cta|shared::cluster|param|param::entry', 'p b64'),
  form('cvta', '[to] const|global|local|shared|shared::cta|shared::cluster|param|param::entry u32|u64', 'T T'),
  form('mapa', '[shared::cluster] u32|u64', 'T T b32'), form('getctarank', '[shared::cluster] u32|u64', 'b32 T'),
];

const SMALL = 'e4m3x2|e5m2x2';
const TINY = 'e3m2x2|e2m3x2';
const NARROW = 'u8|u16|u32|u64|s8|s16|s32|s64';
/** Saturation only between integers of which one can hold what the other cannot. */
const saturating = NARROW.split('|').flatMap(to => {
  const least = (type: string): number => type.startsWith('s') ? -(2 ** (Number(type.slice(1)) - 1)) : 0;
  const most = (type: string): number => 2 ** (Number(type.slice(1)) - (type.startsWith('s') ? 1 : 0));
  const sources = NARROW.split('|').filter(from => least(from) < least(to) || most(from) > most(to));
  return sources.length ? [form('cvt', `sat ${to} ${sources.join('|')}`, 'T1 T')] : [];
});

const CONVERSIONS: readonly Form[] = [
  form('cvt', `${NARROW} ${NARROW}`, 'T1 T'), ...saturating,
  form('cvt', `rni|rzi|rmi|rpi [ftz] [sat] ${NARROW} f32`, 'T1 T'), form('cvt', `rni|rzi|rmi|rpi [sat] ${NARROW} f64`, 'T1 T'),
  form('cvt', `rni|rzi|rmi|rpi [sat] ${NARROW} f16`, 'T1 T'), form('cvt', `rni|rzi|rmi|rpi ${NARROW} bf16`, 'T1 T'),
  form('cvt', `${ROUNDED} [sat] f16|f32|f64 ${NARROW}`, 'T1 T'), form('cvt', `${ROUNDED} bf16 ${NARROW}`, 'T1 T'),
  form('cvt', '[rni|rzi|rmi|rpi] [ftz] [sat] f32 f32', 'T1 T'), form('cvt', '[rni|rzi|rmi|rpi] [sat] f64 f64', 'T1 T'),
  form('cvt', '[rni|rzi|rmi|rpi] [sat] f16 f16', 'T1 T'), form('cvt', '[rni|rzi|rmi|rpi] bf16 bf16', 'T1 T'),
  form('cvt', '[ftz] [sat] f32 f16', 'T1 T'), form('cvt', '[sat] f64 f16', 'T1 T'), form('cvt', '[ftz] [sat] f64 f32', 'T1 T'),
  form('cvt', '[ftz] f32 bf16', 'T1 T'), form('cvt', 'f64 bf16', 'T1 T'),
  form('cvt', `${ROUNDED} [ftz] [sat] f16 f32`, 'T1 T'), form('cvt', `${ROUNDED} [ftz] [sat] f32 f64`, 'T1 T'),
  form('cvt', `${ROUNDED} [sat] f16 f64`, 'T1 T'), form('cvt', `${ROUNDED} bf16 f64|f16`, 'T1 T'), form('cvt', `${ROUNDED} f16 bf16`, 'T1 T'),
  form('cvt', 'rn|rz [relu] [satfinite] f16|bf16 f32', 'T1 T'), form('cvt', 'rm|rp bf16 f32', 'T1 T'),
  form('cvt', 'rn|rz [relu] [satfinite] f16x2|bf16x2 f32', 'T1 T T'), form('cvt', 'rs [relu] [satfinite] f16x2|bf16x2 f32', 'T1 T T b32'),
  form('cvt', 'rna|rn|rz [satfinite] tf32 f32', 'b32 T'), form('cvt', 'rn|rz [satfinite] relu tf32 f32', 'b32 T'),
  form('cvt', `rn satfinite [relu] ${SMALL}|${TINY}|e2m1x2 f32`, 'T1 T T'), form('cvt', `rn satfinite [relu] ${SMALL} f16x2`, 'T1 T'),
  form('cvt', `rn [relu] f16x2 ${SMALL}|${TINY}|e2m1x2`, 'T1 T'),
  form('cvt', 'rs satfinite [relu] e4m3x4|e5m2x4|e3m2x4|e2m3x4|e2m1x4 f32', 'T1 {f32,f32,f32,f32} b32'),
  form('cvt', 'rz|rp [satfinite] ue8m0x2 f32', 'T1 T T'), form('cvt', 'rz|rp [satfinite] ue8m0x2 bf16x2', 'T1 T'), form('cvt', 'rn bf16x2 ue8m0x2', 'T1 T'),
  form('cvt', 'pack sat u16|s16 s32', 'b32 T T'), form('cvt', 'pack sat u8|s8|u4|s4|u2|s2 s32 b32', 'b32 s32 s32 b32'),
];

const COPIES: readonly Form[] = [
  form('cp', `async ca shared|shared::cta global ${SIZES}`, '[s] [g] 16 b32?'),
  form('cp', `async cg shared|shared::cta global ${SIZES}`, '[s] [g] 16 b32?'),
  form('cp', `async ca|cg shared|shared::cta global L2::cache_hint ${SIZES}`, '[s] [g] 16 b64'),
  form('cp', `async ca|cg shared|shared::cta global ${SIZES}`, '[s] [g] 16 p'),
  form('cp', 'async commit_group'), form('cp', 'async wait_group', '0'), form('cp', 'async wait_all'),
  form('cp', 'async mbarrier arrive [noinc] [shared|shared::cta] b64', '[s]'),
  form('cp', 'async bulk shared::cta|shared::cluster global mbarrier::complete_tx::bytes', '[s] [g] b32 [s]'),
  form('cp', 'async bulk shared::cta|shared::cluster global mbarrier::complete_tx::bytes L2::cache_hint', '[s] [g] b32 [s] b64'),
  form('cp', 'async bulk shared::cluster global mbarrier::complete_tx::bytes multicast::cluster', '[s] [g] b32 [s] b16'),
  form('cp', 'async bulk shared::cluster shared::cta mbarrier::complete_tx::bytes', '[s] [s] b32 [s]'),
  form('cp', 'async bulk global shared::cta bulk_group', '[g] [s] b32'), form('cp', 'async bulk global shared::cta bulk_group L2::cache_hint', '[g] [s] b32 b64'),
  form('cp', 'async bulk global shared::cta bulk_group cp_mask', '[g] [s] b32 b16'),
  form('cp', 'async bulk global shared::cta bulk_group L2::cache_hint cp_mask', '[g] [s] b32 b64 b16'),
  form('cp', 'async bulk prefetch L2 global', '[g] b32'), form('cp', 'async bulk prefetch L2 global L2::cache_hint', '[g] b32 b64'),
  form('cp', 'async bulk commit_group'), form('cp', 'async bulk wait_group [read]', '0'),
  ...['add u32|s32|u64', 'min|max u32|s32', 'inc|dec u32', 'and|or|xor b32'].map(operation =>
    form('cp', `reduce async bulk shared::cluster shared::cta mbarrier::complete_tx::bytes ${operation}`, '[s] [s] b32 [s]')),
  ...['and|or|xor b32|b64', 'add u32|s32|u64|f32|f64', 'inc|dec u32', 'min|max u32|s32|u64|s64|f16|bf16', 'add noftz f16|bf16'].flatMap(operation => [
    form('cp', `reduce async bulk global shared::cta bulk_group ${operation}`, '[g] [s] b32'),
    form('cp', `reduce async bulk global shared::cta bulk_group L2::cache_hint ${operation}`, '[g] [s] b32 b64'),
  ]),
];

const ORDER = '[relaxed|acquire|release|acq_rel]';
const REDUCTIONS = ['and|or|xor b32|b64', 'add u32|s32|u64|f32|f64', 'add noftz f16|f16x2|bf16|bf16x2', 'inc|dec u32', 'min|max u32|s32|u64|s64'];
const VECTORS = ['add v2|v4 f32', 'add|min|max noftz v2|v4|v8 f16|bf16', 'add|min|max noftz v2|v4 f16x2|bf16x2'];

const ATOMICS: readonly Form[] = [
  ...REDUCTIONS.flatMap(operation => [
    form('atom', `${ORDER} [${SCOPES}] ${WATCHED} ${operation}`, 'T [A] T'),
    form('atom', `${ORDER} [${SCOPES}] [global] L2::cache_hint ${operation}`, 'T [g] T b64'),
    form('red', `[relaxed|release] [${SCOPES}] ${WATCHED} ${operation}`, '[A] T'),
    form('red', `[relaxed|release] [${SCOPES}] [global] L2::cache_hint ${operation}`, '[g] T b64'),
  ]),
  form('atom', `${ORDER} [${SCOPES}] ${WATCHED} exch b32|b64|b128`, 'T [A] T'),
  form('atom', `${ORDER} [${SCOPES}] ${WATCHED} cas b16|b32|b64|b128`, 'T [A] T T'),
  ...VECTORS.flatMap(operation => [
    form('atom', `${ORDER} [${SCOPES}] [global] ${operation}`, '{T} [g] {T}'),
    form('red', `[relaxed|release] [${SCOPES}] [global] ${operation}`, '[g] {T}'),
  ]),
  ...['inc|dec u32', 'min|max u32|s32', 'add u32|s32|u64', 'and|or|xor b32'].map(operation =>
    form('red', `async relaxed cluster [shared::cluster] mbarrier::complete_tx::bytes ${operation}`, '[s] T [s]')),
  form('red', 'async release gpu|sys [global] add u32|s32|u64', '[g] T'), form('red', 'async mmio release sys [global] add u32|s32|u64', '[g] T'),
];

const CONTROL: readonly Form[] = [
  form('bra', '[uni]', 'label'), form('brx', 'idx [uni]', 'b32 labels'), form('call', '[uni]', 'function'), form('ret', '[uni]'), form('exit', ''),
  form('nanosleep', 'u32', 'u32'), form('trap', ''), form('brkpt', ''), form('pmevent', '', '3'), form('pmevent', 'mask', '3'),
  form('setmaxnreg', 'inc|dec sync aligned u32', '64'),
  form('stacksave', 'u32|u64', 'T'), form('stackrestore', 'u32|u64', 'T'), form('alloca', 'u32|u64', 'T T 16?'),
];

const SYNCHRONISATION: readonly Form[] = [
  form('bar', '[cta] sync', 'b32 b32?'), form('bar', '[cta] arrive', 'b32 64'), form('barrier', '[cta] sync [aligned]', 'b32 b32?'), form('barrier', '[cta] arrive [aligned]', 'b32 64'),
  form('bar', '[cta] red popc u32', 'u32 b32 p'), form('bar', '[cta] red and|or pred', 'p b32 p'),
  form('barrier', '[cta] red popc [aligned] u32', 'u32 b32 p'), form('barrier', '[cta] red and|or [aligned] pred', 'p b32 p'),
  form('bar', 'warp sync', 'b32'),
  form('barrier', 'cluster arrive [release|relaxed] [aligned]'), form('barrier', 'cluster wait [acquire] [aligned]'),
  form('membar', 'cta|gl|sys'), form('membar', 'proxy alias|async'),
  form('fence', `[sc|acq_rel|acquire|release] ${SCOPES}`),
  form('fence', 'acquire sync_restrict::shared::cluster cluster'), form('fence', 'release sync_restrict::shared::cta cluster'),
  form('fence', 'mbarrier_init release cluster'), form('fence', 'proxy alias'), form('fence', 'proxy async [global|shared::cta|shared::cluster]'),
  form('fence', 'proxy async::generic acquire sync_restrict::shared::cluster cluster'),
  form('fence', 'proxy async::generic release sync_restrict::shared::cta cluster'),
  form('fence', `proxy tensormap::generic release ${SCOPES}`), form('fence', `proxy tensormap::generic acquire ${SCOPES}`, '[g] 128'),
  form('vote', 'sync all|any|uni pred', 'p p b32'), form('vote', 'sync ballot b32', 'b32 p b32'),
  form('vote', 'all|any|uni pred', 'p p'), form('vote', 'ballot b32', 'b32 p'),
  form('match', 'any sync b32|b64', 'b32 T b32'), form('match', 'all sync b32|b64', 'b32|p T b32'),
  form('activemask', 'b32', 'b32'), form('redux', 'sync add|min|max u32|s32', 'T T b32'), form('redux', 'sync and|or|xor b32', 'T T b32'),
  form('redux', 'sync min|max [abs] [NaN] f32', 'T T b32'), form('elect', 'sync', 'b32|p b32'),
  form('shfl', 'sync up|down|bfly|idx b32', 'b32|p b32 b32 b32 b32'), form('shfl', 'up|down|bfly|idx b32', 'b32|p b32 b32 b32'),
  form('griddepcontrol', 'launch_dependents|wait'),
];

const MBARRIERS: readonly Form[] = [
  form('mbarrier', 'init [shared|shared::cta] b64', '[s] b32'), form('mbarrier', 'inval [shared|shared::cta] b64', '[s]'),
  ...forms('mbarrier', `expect_tx|complete_tx {relaxed cta|cluster} ${SHARED} b64`, '[s] b32'),
  ...['arrive', 'arrive_drop'].flatMap(name => [
    ...forms('mbarrier', `${name} {release|relaxed cta|cluster} [shared|shared::cta] b64`, 'b64 [s] b32?'),
    ...forms('mbarrier', `${name} {release|relaxed cta|cluster} shared::cluster b64`, '_ [s] b32?'),
    ...forms('mbarrier', `${name} expect_tx {release|relaxed cta|cluster} [shared|shared::cta] b64`, 'b64 [s] b32'),
    ...forms('mbarrier', `${name} expect_tx {release|relaxed cta|cluster} shared::cluster b64`, '_ [s] b32'),
    ...forms('mbarrier', `${name} noComplete {release cta} [shared|shared::cta] b64`, 'b64 [s] b32'),
  ]),
  ...forms('mbarrier', 'test_wait {acquire|relaxed cta|cluster} [shared|shared::cta] b64', 'p [s] b64'),
  ...forms('mbarrier', 'test_wait parity {acquire|relaxed cta|cluster} [shared|shared::cta] b64', 'p [s] b32'),
  ...forms('mbarrier', 'try_wait {acquire|relaxed cta|cluster} [shared|shared::cta] b64', 'p [s] b64 b32?'),
  ...forms('mbarrier', 'try_wait parity {acquire|relaxed cta|cluster} [shared|shared::cta] b64', 'p [s] b32 b32?'),
  form('mbarrier', 'pending_count b64', 'b32 b64'),
];

const PAIR = 'u32|s32 u32|s32';
const VIDEO: readonly Form[] = [
  ...['vadd', 'vsub', 'vabsdiff', 'vmin', 'vmax'].flatMap(name => [
    form(name, `u32|s32 ${PAIR} [sat]`, 'b32 b32.b1 b32.h1'), form(name, `u32|s32 ${PAIR} [sat] add|min|max`, 'b32 b32.h0 b32.b3 b32'),
    form(name, `u32|s32 ${PAIR} [sat]`, 'b32.h1 b32 b32.b2 b32'),
  ]),
  ...['vshl', 'vshr'].flatMap(name => [
    form(name, 'u32|s32 u32|s32 u32 [sat] clamp|wrap', 'b32 b32.b1 b32.b0'), form(name, 'u32|s32 u32|s32 u32 [sat] clamp|wrap add|min|max', 'b32 b32 b32.b3 b32'),
    form(name, 'u32|s32 u32|s32 u32 [sat] clamp|wrap', 'b32.b2 b32 b32 b32'),
  ]),
  form('vmad', `u32|s32 ${PAIR} [sat] [shr7|shr15]`, 'b32 b32.h0 b32.h1 b32'), form('vmad', `u32|s32 ${PAIR} po [sat] [shr7|shr15]`, 'b32 b32 b32.b1 b32'),
  form('vset', `${PAIR} ${COMPARISONS}`, 'b32 b32.b0 b32'), form('vset', `${PAIR} ${COMPARISONS} add|min|max`, 'b32 b32.b0 b32 b32'),
  form('vset', `${PAIR} ${COMPARISONS}`, 'b32.b3 b32 b32.h1 b32'),
  ...[['2', '.h1', '.h02', '.h31'], ['4', '.b210', '.b7250', '.b0123']].flatMap(([lanes, mask, a, b]) => [
    ...['vadd', 'vsub', 'vavrg', 'vabsdiff', 'vmin', 'vmax'].flatMap(name => [
      form(`${name}${lanes}`, `u32|s32 ${PAIR} [sat]`, `b32${mask} b32${a} b32${b} b32`), form(`${name}${lanes}`, `u32|s32 ${PAIR} add`, `b32${mask} b32${a} b32${b} b32`),
    ]),
    form(`vset${lanes}`, `${PAIR} ${COMPARISONS} [add]`, `b32${mask} b32${a} b32${b} b32`),
  ]),
];

export const FORMS: readonly Form[] = [
  ...INTEGER, ...FLOAT, ...HALF, ...COMPARE, ...LOGIC, ...MOVES, ...ACCESSES, ...CONVERSIONS, ...COPIES, ...ATOMICS, ...CONTROL,
  ...SYNCHRONISATION, ...MBARRIERS, ...VIDEO,
];

/** Forms by mnemonic. */
export const FORMS_OF: ReadonlyMap<string, readonly Form[]> = (() => {
  const byName = new Map<string, Form[]>();
  for (const row of FORMS) {
    const list = byName.get(row.mnemonic);
    if (list) list.push(row);
    else byName.set(row.mnemonic, [row]);
  }
  return byName;
})();

/** Combinations that have been found in a row. Only what is right is kept: there are few of those. */
const known = new Set<string>();

/** What is wrong with a combination of types and modifiers; a mnemonic without rows takes what its rule takes. */
export function formComplaint(mnemonic: string, modifiers: readonly string[]): { code: 'semantic' | 'unsupported'; message: string } | undefined {
  const rows = FORMS_OF.get(mnemonic);
  if (!rows) return undefined;
  const name = [mnemonic, ...modifiers].join('.');
  if (known.has(name)) return undefined;
  if (rows.some(row => fits(row, modifiers))) {
    known.add(name);
    return undefined;
  }
  const stranger = modifiers.find(modifier => !rows.some(({ places }) => places.some(place => place.words.includes(modifier))));
  if (stranger === undefined) return { code: 'unsupported', message: `instruction '${name}': this combination of types and modifiers is not covered` };
  if (isScalarType(stranger)) return { code: 'semantic', message: `'${mnemonic}' does not take .${stranger}` };
  return { code: 'unsupported', message: `instruction '${name}': modifier '.${stranger}' is not covered yet` };
}
