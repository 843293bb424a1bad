// Which forms of an instruction PTX has: types and modifiers that may stand together, and the .version and .target
// that they need. Rules say what an instruction does; this table says what is an instruction at all, so that a form
// that a GPU's assembler refuses is refused here, too. Mnemonics that are not in the table are left to their rules.

import type { PtxModule, Statement } from '../syntax/ast.js';

/** A column of modifiers of which one may stand (`a/b?`) or must (`a/b`). */
interface Group {
  words: ReadonlySet<string>;
  required: boolean;
}

interface Form {
  /** Allowed types, slot by slot. */
  types: readonly ReadonlySet<string>[];
  groups: readonly Group[];
  version: number;
  target: Target;
}

interface Target {
  number: number;
  /** Only on targets such as sm_100a, whose PTX runs on no other. */
  specific: boolean;
  /** Gone since this target, not there until it. */
  gone: boolean;
}

// mnemonics | types, slots parted by `x` | modifiers: `a/b` one of, `a/b?` at most one of | .version | .target sm_,
// where `100a` is only there and `<70` only before.
// `$name` stands for a list of ABBREVIATIONS. As the PTX ISA lists them. ptxas takes modifiers in any order, so only types have places.
const ROWS = `
add sub | u16 s16
add sub | u32 s32 u64 s64 | cc?
add sub | s32 | sat
add | u16x2 s16x2 | | 8.0 | 90
add sub | f32 | rn/rz/rm/rp? ftz? sat?
add sub | f64 | rn/rz/rm/rp?
add sub | f32x2 | rn/rz/rm/rp? ftz? | 8.6 | 100
add sub | f16 f16x2 | rn? ftz? sat? | 4.2 | 53
add sub | bf16 bf16x2 | rn? | 7.8 | 90
addc subc | u32 s32 u64 s64 | cc?
addc subc | u16 s16
mul | u16 s16 u32 s32 u64 s64 | hi/lo
mul | u16 s16 u32 s32 | wide
mul | f32 | rn/rz/rm/rp? ftz? sat?
mul | f64 | rn/rz/rm/rp?
mul | f32x2 | rn/rz/rm/rp? ftz? | 8.6 | 100
mul | f16 f16x2 | rn? ftz? sat? | 4.2 | 53
mul | bf16 bf16x2 | rn? | 7.8 | 90
mad | u16 s16 | hi/lo
mad | u32 s32 u64 s64 | hi/lo cc?
mad | s32 | hi sat
mad | u16 s16 u32 s32 | wide
mad | f32 | rn/rz/rm/rp ftz? sat?
mad | f64 | rn/rz/rm/rp
madc | u32 s32 u64 s64 | hi/lo cc?
mul24 | u32 s32 | hi/lo
mad24 | u32 s32 | hi/lo
mad24 | s32 | hi sat
fma | f32 | rn/rz/rm/rp ftz? sat?
fma | f64 | rn/rz/rm/rp
fma | f32x2 | rn/rz/rm/rp ftz? | 8.6 | 100
fma | f16 f16x2 | rn ftz? sat? | 4.2 | 53
fma | f16 f16x2 | rn ftz? relu | 7.0 | 80
fma | f16 f16x2 bf16 bf16x2 | rn relu? oob | 8.1 | 90
fma | bf16 bf16x2 | rn relu? | 7.0 | 80
sad | u16 s16 u32 s32 u64 s64
div rem | u16 s16 u32 s32 u64 s64
div | f32 | approx/full/rn/rz/rm/rp ftz?
div | f64 | rn/rz/rm/rp
rcp | f32 | approx/rn/rz/rm/rp ftz?
rcp | f64 | rn/rz/rm/rp
rcp | f64 | approx ftz
sqrt | f32 | approx/rn/rz/rm/rp ftz?
sqrt | f64 | rn/rz/rm/rp
rsqrt | f32 f64 | approx ftz?
sin cos lg2 | f32 | approx ftz?
ex2 | f32 | approx ftz?
ex2 | f16 f16x2 | approx | 7.0 | 75
ex2 | bf16 bf16x2 | approx ftz | 7.8 | 90
tanh | f32 | approx | 7.0 | 75
tanh | f16 f16x2 | approx | 7.0 | 75
tanh | bf16 bf16x2 | approx | 7.8 | 90
abs neg | s16 s32 s64
abs neg | f32 | ftz?
abs neg | f64
abs | f16 f16x2 | ftz? | 6.5 | 53
neg | f16 f16x2 | ftz? | 6.0 | 53
abs neg | bf16 bf16x2 | | 7.0 | 80
min max | u16 s16 u32 s32 u64 s64
min max | u16x2 s16x2 | | 8.0 | 90
min max | s32 s16x2 | relu | 8.0 | 90
min max | f32 | ftz?
min max | f32 | ftz? NaN | 7.0 | 80
min max | f32 | ftz? NaN? xorsign abs | 7.2 | 86
min max | f32 | ftz? NaN? abs | 8.8 | 100
min max | f64
min max | f16 f16x2 | ftz? NaN? | 7.0 | 80
min max | f16 f16x2 | ftz? NaN? xorsign abs | 7.2 | 86
min max | bf16 bf16x2 | NaN? | 7.0 | 80
min max | bf16 bf16x2 | NaN? xorsign abs | 7.2 | 86
and or xor | pred b16 b32 b64
not | pred b16 b32 b64
cnot | b16 b32 b64
lop3 | b32
lop3 | b32 | and/or | 8.2 | 70
shl | b16 b32 b64
shr | b16 b32 b64 u16 u32 u64 s16 s32 s64
shf | b32 | l/r clamp/wrap
popc clz brev | b32 b64
bfe bfind | u32 u64 s32 s64
bfind | u32 u64 s32 s64 | shiftamt
bfi | b32 b64
bmsk | b32 | clamp/wrap | 7.6 | 70
szext | u32 s32 | clamp/wrap | 7.6 | 70
fns | b32 | | 6.0
prmt | b32 | f4e/b4e/rc8/ecl/ecr/rc16?
dp4a | u32 s32 x u32 s32 | | 5.0 | 61
dp2a | u32 s32 x u32 s32 | lo/hi | 5.0 | 61
copysign | f32 f64
testp | f32 f64 | finite/infinite/number/notanumber/normal/subnormal
set | u32 s32 f32 x b16 b32 b64 | eq/ne $combine
set | u32 s32 f32 x s16 s32 s64 | $signed $combine
set | u32 s32 f32 x u16 u32 u64 | $unsigned $combine
set | u32 s32 f32 x f32 | $float $combine ftz?
set | u32 s32 f32 x f64 | $float $combine
set | f16 x f16 | $float $combine ftz? | 4.2 | 53
set | u16 s16 u32 s32 x f16 | $float $combine ftz? | 6.5 | 53
set | f16x2 x f16x2 | $float $combine ftz? | 4.2 | 53
set | f16 x b16 b32 b64 | eq/ne $combine | 4.2 | 53
set | f16 x s16 s32 s64 | $signed $combine | 4.2 | 53
set | f16 x u16 u32 u64 | $unsigned $combine | 4.2 | 53
set | f16 x f32 | $float $combine ftz? | 4.2 | 53
set | f16 x f64 | $float $combine | 4.2 | 53
set | u16 s16 u32 s32 bf16 x bf16 | $float $combine | 7.8 | 90
set | bf16x2 x bf16x2 | $float $combine | 7.8 | 90
set | bf16 x b16 b32 b64 | eq/ne $combine | 7.8 | 90
set | bf16 x s16 s32 s64 | $signed $combine | 7.8 | 90
set | bf16 x u16 u32 u64 | $unsigned $combine | 7.8 | 90
set | bf16 x f16 f32 f64 | $float $combine | 7.8 | 90
setp | b16 b32 b64 | eq/ne $combine
setp | s16 s32 s64 | $signed $combine
setp | u16 u32 u64 | $unsigned $combine
setp | f32 | $float $combine ftz?
setp | f64 | $float $combine
setp | f16 f16x2 | $float $combine ftz? | 4.2 | 53
setp | bf16 bf16x2 | $float $combine | 7.8 | 90
selp | b16 b32 b64 u16 u32 u64 s16 s32 s64 f32 f64
slct | b16 b32 b64 u16 u32 u64 s16 s32 s64 f32 f64 x s32
slct | b16 b32 b64 u16 u32 u64 s16 s32 s64 f32 f64 x f32 | ftz?
mov | pred b16 b32 b64 u16 u32 u64 s16 s32 s64 f32 f64
mov | b128 | | 8.3 | 70
cvta | u32 u64 | to? global/shared/local/const
cvta | u32 u64 | to? shared::cta | 7.8 | 30
cvta | u32 u64 | to? shared::cluster | 7.8 | 90
cvta | u32 u64 | to? param | 7.7 | 70
cvta | u32 u64 | to? param::entry | 8.3 | 70
isspacep | | global/shared/local/const
isspacep | | shared::cta | 7.8
isspacep | | shared::cluster | 7.8 | 90
isspacep | | param | 7.7 | 70
isspacep | | param::entry | 8.3 | 70
cvt | $integers x $integers
cvt | u8 x u16 u32 u64 s8 s16 s32 s64 | sat
cvt | u16 x u32 u64 s8 s16 s32 s64 | sat
cvt | u32 x u64 s8 s16 s32 s64 | sat
cvt | u64 x s8 s16 s32 s64 | sat
cvt | s8 x u8 u16 u32 u64 s16 s32 s64 | sat
cvt | s16 x u16 u32 u64 s32 s64 | sat
cvt | s32 x u32 u64 s64 | sat
cvt | s64 x u64 | sat
cvt | f32 x $integers | rn/rz/rm/rp ftz? sat?
cvt | f64 x $integers | rn/rz/rm/rp sat?
cvt | f16 x $integers | rn/rz/rm/rp sat?
cvt | bf16 x $integers | rn/rz/rm/rp | 7.8 | 90
cvt | $integers x f32 | rni/rzi/rmi/rpi ftz? sat?
cvt | $integers x f64 f16 | rni/rzi/rmi/rpi sat?
cvt | $integers x bf16 | rni/rzi/rmi/rpi | 7.8 | 90
cvt | f32 x f32 | rni/rzi/rmi/rpi? ftz? sat?
cvt | f64 x f64 | rni/rzi/rmi/rpi? sat?
cvt | f16 x f16 | rni/rzi/rmi/rpi? sat?
cvt | f64 x f32 | ftz? sat?
cvt | f64 x f16 | sat?
cvt | f32 x f16 | ftz? sat?
cvt | f32 x f64 | rn/rz/rm/rp ftz? sat?
cvt | f16 x f32 | rn/rz/rm/rp ftz? sat?
cvt | f16 x f64 | rn/rz/rm/rp sat?
cvt | f16 bf16 x f32 | rn/rz relu? | 7.0 | 80
cvt | f16 x f32 | rn/rz satfinite | 8.1
cvt | f16 bf16 x f32 | rn/rz relu? satfinite | 8.1 | 80
cvt | f16x2 bf16x2 x f32 | rn/rz relu? | 7.0 | 80
cvt | f16x2 bf16x2 x f32 | rn/rz relu? satfinite | 8.1 | 80
cvt | f32 x bf16 | | 7.1 | 80
cvt | f32 x bf16 | ftz | 7.8 | 90
cvt | bf16 x f32 | rn/rz/rm/rp | 7.0 | 80
cvt | bf16 x bf16 | rni/rzi/rmi/rpi? | 7.8 | 90
cvt | bf16 x f16 f64 | rn/rz/rm/rp | 7.8 | 90
cvt | f16 x bf16 | rn/rz/rm/rp | 7.8 | 90
cvt | f64 x bf16 | | 7.8 | 90
cvt | tf32 x f32 | rna | 7.0 | 80
cvt | tf32 x f32 | rna satfinite | 8.1 | 89
cvt | tf32 x f32 | rn/rz relu? | 7.8 | 90
cvt | tf32 x f32 | rn/rz satfinite relu? | 8.6 | 100
cvt | e4m3x2 e5m2x2 x f32 f16x2 | rn satfinite relu? | 8.1 | 89
cvt | e4m3x2 e5m2x2 x f32 f16x2 | rn satfinite relu? | 7.8 | 90
cvt | f16x2 x e4m3x2 e5m2x2 | rn relu? | 8.1 | 89
cvt | f16x2 x e4m3x2 e5m2x2 | rn relu? | 7.8 | 90
cvt | f16x2 bf16x2 x f32 | rs relu? satfinite? | 8.7 | 100a
cvt | e4m3x4 e5m2x4 e2m3x4 e3m2x4 e2m1x4 x f32 | rs relu? satfinite | 8.7 | 100a
cvt | e2m1x2 e2m3x2 e3m2x2 x f32 | rn satfinite relu? | 8.6 | 100a
cvt | f16x2 x e2m1x2 e2m3x2 e3m2x2 | rn relu? | 8.6 | 100a
cvt | ue8m0x2 x f32 bf16x2 | rz/rp satfinite? | 8.6 | 100a
cvt | bf16x2 x ue8m0x2 | rn | 8.6 | 100a
shfl | b32 | sync up/down/bfly/idx | 6.0
shfl | b32 | up/down/bfly/idx | | <70
vote | pred | sync all/any/uni | 6.0
vote | b32 | sync ballot | 6.0
vote | pred | all/any/uni | | <70
vote | b32 | ballot | | <70
match | b32 b64 | any/all sync | 6.0 | 70
redux | u32 s32 | sync add/min/max | 7.0 | 80
redux | b32 | sync and/or/xor | 7.0 | 80
redux | f32 | sync min/max abs? NaN? | 8.6 | 100a
activemask | b32 | | 6.2
elect | | sync | 8.0 | 90
membar | | cta/gl/sys
nanosleep | u32 | | 6.3 | 70
ret exit trap brkpt
`;

const ABBREVIATIONS: Readonly<Record<string, string>> = {
  integers: 'u8 u16 u32 u64 s8 s16 s32 s64',
  signed: 'eq/ne/lt/le/gt/ge',
  unsigned: 'eq/ne/lt/le/gt/ge/lo/ls/hi/hs',
  float: 'eq/ne/lt/le/gt/ge/equ/neu/ltu/leu/gtu/geu/num/nan',
  combine: 'and/or/xor?',
};

/** Modifiers that stand for types in no place: the shape of a matrix or a number of elements is not one. */
const TYPE = /^(pred|[busf]\d+(x\d)?|bf16(x2)?|tf32|ue8m0x2|e\dm\d(x\d)?)$/;

const parseGroup = (text: string): Group => ({
  words: new Set(text.replace('?', '').split('/')), required: !text.endsWith('?'),
});

function parseRows(): Map<string, Form[]> {
  const forms = new Map<string, Form[]>();
  for (const line of ROWS.trim().split('\n')) {
    const row = line.replaceAll(/\$(\w+)/g, (_, name: string) => ABBREVIATIONS[name]!);
    const [names = '', types = '', groups = '', version = '', target = ''] = row.split('|').map(column => column.trim());
    const form: Form = {
      types: types ? types.split(' x ').map(slot => new Set(slot.split(' '))) : [],
      groups: groups ? groups.split(' ').map(parseGroup) : [],
      version: Number(version || '0'),
      target: { number: Number(/\d+/.exec(target)?.[0] ?? '0'), specific: target.endsWith('a'), gone: target.startsWith('<') },
    };
    for (const name of names.split(' ')) {
      const list = forms.get(name);
      if (list) list.push(form);
      else forms.set(name, [form]);
    }
  }
  return forms;
}

let table: ReadonlyMap<string, readonly Form[]> | undefined;

/** All forms by mnemonic, for documentation and tests. */
export const allForms = (): ReadonlyMap<string, readonly Form[]> => table ??= parseRows();

function fits(form: Form, types: readonly string[], others: readonly string[]): boolean {
  if (types.length !== form.types.length || types.some((type, index) => !form.types[index]!.has(type))) return false;
  let left = others.length;
  for (const { words, required } of form.groups) {
    const count = others.reduce((sum, word) => sum + (words.has(word) ? 1 : 0), 0);
    if (count > 1 || (required && count === 0)) return false;
    left -= count;
  }
  return left === 0;
}

/** `8.10` is later than `8.9`. */
const versionNumber = (version: number | string): number => {
  const [major = '0', minor = '0'] = String(version).split('.');
  return Number(major) * 100 + Number(minor);
};

function has(target: string, { number, specific, gone }: Target): boolean {
  const own = Number(/\d+/.exec(target)?.[0] ?? '0');
  return gone ? own < number : own >= number && (!specific || /[af]$/.test(target));
}

const verdicts = new Map<string, { forms: readonly Form[] } | 'unknown'>();

let vocabulary: ReadonlySet<string> | undefined;

/** Every word of the table. Others may be of a later PTX: the rules say that they are not covered. */
function knows(modifier: string): boolean {
  vocabulary ??= new Set([...allForms().values()].flat()
    .flatMap(form => [...form.types, ...form.groups.map(group => group.words)]).flatMap(words => [...words]));
  return vocabulary.has(modifier);
}

/** What is wrong with an instruction's types and modifiers; undefined where nothing is, or where the table is silent. */
export function formComplaint(mnemonic: string, modifiers: readonly string[], version: string, target: string): string | undefined {
  const name = modifiers.length ? `${mnemonic}.${modifiers.join('.')}` : mnemonic;
  let verdict = verdicts.get(name);
  if (!verdict) {
    const forms = allForms().get(mnemonic);
    const types = modifiers.filter(modifier => TYPE.test(modifier));
    const others = modifiers.filter(modifier => !TYPE.test(modifier));
    verdict = forms && modifiers.every(knows) ? { forms: forms.filter(form => fits(form, types, others)) } : 'unknown';
    // A hostile text must not fill the memory with forms of its own.
    if (verdicts.size < 5000) verdicts.set(name, verdict);
  }
  if (verdict === 'unknown') return undefined;
  const { forms } = verdict;
  // Whether it is a form at all, the rules' own table says.
  if (!forms.length) return undefined;
  const own = versionNumber(version);
  const timely = forms.filter(form => versionNumber(form.version) <= own);
  if (!timely.length) return `'${name}' needs .version ${Math.min(...forms.map(form => form.version)).toFixed(1)} or later`;
  if (timely.some(form => has(target, form.target))) return undefined;
  const [{ target: wanted }] = timely as [Form];
  if (wanted.gone) return `'${name}' is gone since .target sm_${wanted.number}: it needs .sync`;
  return `'${name}' needs .target sm_${wanted.number}${wanted.specific ? 'a' : ''}${wanted.specific ? '' : ' or later'}`;
}

/** Checks every instruction of a module, those of functions that nothing calls included. */
export function checkForms(module: PtxModule): void {
  const { source, version, target } = module;
  const checked = new Set<readonly string[]>();
  const visit = (statements: readonly Statement[]): void => {
    for (const statement of statements) {
      if (statement.kind === 'block') visit(statement.statements);
      else if (statement.kind === 'instruction' && !checked.has(statement.modifiers)) {
        checked.add(statement.modifiers);
        const complaint = formComplaint(statement.mnemonic, statement.modifiers, version, target);
        if (complaint) throw source.error('semantic', complaint, statement.start, source.text.slice(statement.start, statement.end));
      }
    }
  };
  for (const fn of module.functions) if (fn.body) visit(fn.body);
}
