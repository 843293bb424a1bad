// WebAssembly instructions by name. Prefixed instructions are encoded as prefix << 16 | code.

const BASE = `
00 unreachable|01 nop|02 block|03 loop|04 if|05 else|0b end|0c br|0d br_if|0e br_table|0f return|10 call|11 call_indirect
1a drop|1b select|20 local.get|21 local.set|22 local.tee|23 global.get|24 global.set
28 i32.load|29 i64.load|2a f32.load|2b f64.load|2c i32.load8_s|2d i32.load8_u|2e i32.load16_s|2f i32.load16_u
30 i64.load8_s|31 i64.load8_u|32 i64.load16_s|33 i64.load16_u|34 i64.load32_s|35 i64.load32_u
36 i32.store|37 i64.store|38 f32.store|39 f64.store|3a i32.store8|3b i32.store16|3c i64.store8|3d i64.store16|3e i64.store32
41 i32.const|42 i64.const|43 f32.const|44 f64.const
45 i32.eqz|46 i32.eq|47 i32.ne|48 i32.lt_s|49 i32.lt_u|4a i32.gt_s|4b i32.gt_u|4c i32.le_s|4d i32.le_u|4e i32.ge_s|4f i32.ge_u
50 i64.eqz|51 i64.eq|52 i64.ne|53 i64.lt_s|54 i64.lt_u|55 i64.gt_s|56 i64.gt_u|57 i64.le_s|58 i64.le_u|59 i64.ge_s|5a i64.ge_u
5b f32.eq|5c f32.ne|5d f32.lt|5e f32.gt|5f f32.le|60 f32.ge|61 f64.eq|62 f64.ne|63 f64.lt|64 f64.gt|65 f64.le|66 f64.ge
67 i32.clz|68 i32.ctz|69 i32.popcnt|6a i32.add|6b i32.sub|6c i32.mul|6d i32.div_s|6e i32.div_u|6f i32.rem_s|70 i32.rem_u
71 i32.and|72 i32.or|73 i32.xor|74 i32.shl|75 i32.shr_s|76 i32.shr_u|77 i32.rotl|78 i32.rotr
79 i64.clz|7a i64.ctz|7b i64.popcnt|7c i64.add|7d i64.sub|7e i64.mul|7f i64.div_s|80 i64.div_u|81 i64.rem_s|82 i64.rem_u
83 i64.and|84 i64.or|85 i64.xor|86 i64.shl|87 i64.shr_s|88 i64.shr_u|89 i64.rotl|8a i64.rotr
8b f32.abs|8c f32.neg|8d f32.ceil|8e f32.floor|8f f32.trunc|90 f32.nearest|91 f32.sqrt|92 f32.add|93 f32.sub|94 f32.mul|95 f32.div|96 f32.min|97 f32.max|98 f32.copysign
99 f64.abs|9a f64.neg|9b f64.ceil|9c f64.floor|9d f64.trunc|9e f64.nearest|9f f64.sqrt|a0 f64.add|a1 f64.sub|a2 f64.mul|a3 f64.div|a4 f64.min|a5 f64.max|a6 f64.copysign
a7 i32.wrap_i64|ac i64.extend_i32_s|ad i64.extend_i32_u
b2 f32.convert_i32_s|b3 f32.convert_i32_u|b4 f32.convert_i64_s|b5 f32.convert_i64_u|b6 f32.demote_f64
b7 f64.convert_i32_s|b8 f64.convert_i32_u|b9 f64.convert_i64_s|ba f64.convert_i64_u|bb f64.promote_f32
bc i32.reinterpret_f32|bd i64.reinterpret_f64|be f32.reinterpret_i32|bf f64.reinterpret_i64
c0 i32.extend8_s|c1 i32.extend16_s|c2 i64.extend8_s|c3 i64.extend16_s|c4 i64.extend32_s`;

const SATURATING = [
  'i32.trunc_sat_f32_s',
  'i32.trunc_sat_f32_u',
  'i32.trunc_sat_f64_s',
  'i32.trunc_sat_f64_u',
  'i64.trunc_sat_f32_s',
  'i64.trunc_sat_f32_u',
  'i64.trunc_sat_f64_s',
  'i64.trunc_sat_f64_u',
];

const ATOMIC_BASE = `03 atomic.fence|10 i32.atomic.load|11 i64.atomic.load|12 i32.atomic.load8_u|13 i32.atomic.load16_u
17 i32.atomic.store|18 i64.atomic.store|19 i32.atomic.store8|1a i32.atomic.store16`;
const ATOMIC_RMW = ['add', 'sub', 'and', 'or', 'xor', 'xchg', 'cmpxchg'];

const SIMD = `00 v128.load|07 v128.load8_splat|08 v128.load16_splat|09 v128.load32_splat|0a v128.load64_splat|0b v128.store|0c v128.const|0d i8x16.shuffle|0e i8x16.swizzle
11 i32x4.splat|12 i64x2.splat|13 f32x4.splat|14 f64x2.splat
1b i32x4.extract_lane|1c i32x4.replace_lane|1d i64x2.extract_lane|1e i64x2.replace_lane
1f f32x4.extract_lane|20 f32x4.replace_lane|21 f64x2.extract_lane|22 f64x2.replace_lane
37 i32x4.eq|38 i32x4.ne|39 i32x4.lt_s|3a i32x4.lt_u|3b i32x4.gt_s|3c i32x4.gt_u|3d i32x4.le_s|3e i32x4.le_u|3f i32x4.ge_s|40 i32x4.ge_u
41 f32x4.eq|42 f32x4.ne|43 f32x4.lt|44 f32x4.gt|45 f32x4.le|46 f32x4.ge|47 f64x2.eq|48 f64x2.ne|49 f64x2.lt|4a f64x2.gt|4b f64x2.le|4c f64x2.ge
4d v128.not|4e v128.and|4f v128.andnot|50 v128.or|51 v128.xor|52 v128.bitselect|53 v128.any_true|54 v128.load8_lane|55 v128.load16_lane|56 v128.load32_lane|57 v128.load64_lane|5a v128.store32_lane|5b v128.store64_lane|5c v128.load32_zero|5d v128.load64_zero
5e f32x4.demote_f64x2_zero|5f f64x2.promote_low_f32x4|67 f32x4.ceil|68 f32x4.floor|69 f32x4.trunc|6a f32x4.nearest
74 f64x2.ceil|75 f64x2.floor|7a f64x2.trunc|94 f64x2.nearest
31 i16x8.gt_s|62 i8x16.popcnt|6d i8x16.shr_u|7d i16x8.extadd_pairwise_i8x16_u|7f i32x4.extadd_pairwise_i16x8_u|8b i16x8.shl|8c i16x8.shr_s|8d i16x8.shr_u|96 i16x8.min_s|98 i16x8.max_s|ba i32x4.dot_i16x8_s
64 i8x16.bitmask|65 i8x16.narrow_i16x8_s|84 i16x8.bitmask|85 i16x8.narrow_i32x4_s
87 i16x8.extend_low_i8x16_s|89 i16x8.extend_low_i8x16_u|a7 i32x4.extend_low_i16x8_s|a9 i32x4.extend_low_i16x8_u
a0 i32x4.abs|a1 i32x4.neg|a3 i32x4.all_true|a4 i32x4.bitmask|ab i32x4.shl|ac i32x4.shr_s|ad i32x4.shr_u
ae i32x4.add|b1 i32x4.sub|b5 i32x4.mul|b6 i32x4.min_s|b7 i32x4.min_u|b8 i32x4.max_s|b9 i32x4.max_u
c0 i64x2.abs|c1 i64x2.neg|c3 i64x2.all_true|c4 i64x2.bitmask|c7 i64x2.extend_low_i32x4_s|c8 i64x2.extend_high_i32x4_s|c9 i64x2.extend_low_i32x4_u|ca i64x2.extend_high_i32x4_u
cb i64x2.shl|cc i64x2.shr_s|cd i64x2.shr_u|ce i64x2.add|d1 i64x2.sub|d5 i64x2.mul|d6 i64x2.eq|d7 i64x2.ne|d8 i64x2.lt_s|d9 i64x2.gt_s|da i64x2.le_s|db i64x2.ge_s
dc i64x2.extmul_low_i32x4_s|dd i64x2.extmul_high_i32x4_s|de i64x2.extmul_low_i32x4_u|df i64x2.extmul_high_i32x4_u
e0 f32x4.abs|e1 f32x4.neg|e3 f32x4.sqrt|e4 f32x4.add|e5 f32x4.sub|e6 f32x4.mul|e7 f32x4.div|e8 f32x4.min|e9 f32x4.max|ea f32x4.pmin|eb f32x4.pmax
ec f64x2.abs|ed f64x2.neg|ef f64x2.sqrt|f0 f64x2.add|f1 f64x2.sub|f2 f64x2.mul|f3 f64x2.div|f4 f64x2.min|f5 f64x2.max|f6 f64x2.pmin|f7 f64x2.pmax
f8 i32x4.trunc_sat_f32x4_s|f9 i32x4.trunc_sat_f32x4_u|fa f32x4.convert_i32x4_s|fb f32x4.convert_i32x4_u
fc i32x4.trunc_sat_f64x2_s_zero|fd i32x4.trunc_sat_f64x2_u_zero|fe f64x2.convert_low_i32x4_s|ff f64x2.convert_low_i32x4_u
105 f32x4.relaxed_madd|107 f64x2.relaxed_madd`;

const rows = (text: string, prefix: number): [string, number][] =>
  text
    .trim()
    .split(/[|\n]/)
    .map((entry) => {
      const [code, name] = entry.trim().split(' ') as [string, string];
      return [name, (prefix << 16) | parseInt(code, 16)];
    });

const table = new Map<string, number>([
  ...rows(BASE, 0),
  ...rows(ATOMIC_BASE, 0xfe),
  ...rows(SIMD, 0xfd),
  ...SATURATING.map((name, index): [string, number] => [name, 0xfc0000 | index]),
  ['memory.copy', 0xfc000a],
  ['memory.fill', 0xfc000b],
]);
// Read-modify-write rows come in groups of seven widths: i32, i64, then the narrow ones.
ATOMIC_RMW.forEach((operation, index) => {
  const first = 0x1e + index * 7;
  ['i32.atomic.rmw.', 'i64.atomic.rmw.', 'i32.atomic.rmw8.', 'i32.atomic.rmw16.'].forEach(
    (stem, width) => {
      table.set(`${stem}${operation}${width > 1 ? '_u' : ''}`, 0xfe0000 | (first + width));
    },
  );
});

/** Thrown where a rule meets a type for which WebAssembly has no such operation, as in xor.f32. */
export class NoSuchInstruction extends RangeError {}

export function opcode(name: string): number {
  const code = table.get(name);
  if (code === undefined) throw new NoSuchInstruction(`no WebAssembly instruction '${name}'`);
  return code;
}

export const isOpcode = (name: string): boolean => table.has(name);

/** log2 of the bytes that a memory instruction touches. */
export function accessWidth(name: string): number {
  if (name === 'v128.load' || name === 'v128.store') return 4;
  if (/8(_[su]|_lane)?$|rmw8/.test(name)) return 0;
  if (/16(_[su]|_lane)?$|rmw16/.test(name)) return 1;
  if (/(load|store)32/.test(name)) return 2;
  if (/(load|store)64_(splat|zero|lane)$/.test(name)) return 3;
  return name.startsWith('i64') || name.startsWith('f64') ? 3 : 2;
}
