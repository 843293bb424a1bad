/**
 * Names of CUDA C++'s types of elements: what the type checker looks up, and the same as a table.
 */

/** Types made of keywords, however they are spelled: no declaration can change what they mean. */
export interface KeywordTypes {
  float: 'f32';
  double: 'f64';
  bool: 'bool';
  // Signed or not, as the compiler was built; signed on every platform of CUDA.
  char: 'char';
  'signed char': 'i8';
  'unsigned char': 'u8';
  short: 'i16';
  'short int': 'i16';
  'signed short': 'i16';
  'signed short int': 'i16';
  'unsigned short': 'u16';
  'unsigned short int': 'u16';
  int: 'i32';
  signed: 'i32';
  'signed int': 'i32';
  unsigned: 'u32';
  'unsigned int': 'u32';
  'long long': 'i64';
  'long long int': 'i64';
  'signed long long': 'i64';
  'signed long long int': 'i64';
  'unsigned long long': 'u64';
  'unsigned long long int': 'u64';
}

/**
 * Types that headers or the compiler declare. A text that declares one of these names itself means
 * its own.
 */
export interface LibraryTypes {
  half: 'f16';
  __half: 'f16';
  __nv_bfloat16: 'bf16';
  nv_bfloat16: 'bf16';
  __nv_fp8_e4m3: 'f8e4m3';
  __nv_fp8_e5m2: 'f8e5m2';
  int8_t: 'i8';
  uint8_t: 'u8';
  int16_t: 'i16';
  uint16_t: 'u16';
  int32_t: 'i32';
  uint32_t: 'u32';
  int64_t: 'i64';
  uint64_t: 'u64';
  size_t: 'u64';
  ptrdiff_t: 'i64';
  intptr_t: 'i64';
  uintptr_t: 'u64';
}

/** Vectors: the elements' dtype, and how many there are. */
export interface VectorTypes {
  char2: ['i8', 2];
  char3: ['i8', 3];
  char4: ['i8', 4];
  uchar2: ['u8', 2];
  uchar3: ['u8', 3];
  uchar4: ['u8', 4];
  short2: ['i16', 2];
  short3: ['i16', 3];
  short4: ['i16', 4];
  ushort2: ['u16', 2];
  ushort3: ['u16', 3];
  ushort4: ['u16', 4];
  int2: ['i32', 2];
  int3: ['i32', 3];
  int4: ['i32', 4];
  uint2: ['u32', 2];
  uint3: ['u32', 3];
  uint4: ['u32', 4];
  longlong2: ['i64', 2];
  longlong3: ['i64', 3];
  longlong4: ['i64', 4];
  ulonglong2: ['u64', 2];
  ulonglong3: ['u64', 3];
  ulonglong4: ['u64', 4];
  float2: ['f32', 2];
  float3: ['f32', 3];
  float4: ['f32', 4];
  double2: ['f64', 2];
  double3: ['f64', 3];
  double4: ['f64', 4];
  half2: ['f16', 2];
  __half2: ['f16', 2];
  __nv_bfloat162: ['bf16', 2];
  nv_bfloat162: ['bf16', 2];
}

/** As {@link KeywordTypes}. */
export const KEYWORD_TYPES: { readonly [K in keyof KeywordTypes]: KeywordTypes[K] } = {
  float: 'f32',
  double: 'f64',
  bool: 'bool',
  char: 'char',
  'signed char': 'i8',
  'unsigned char': 'u8',
  short: 'i16',
  'short int': 'i16',
  'signed short': 'i16',
  'signed short int': 'i16',
  'unsigned short': 'u16',
  'unsigned short int': 'u16',
  int: 'i32',
  signed: 'i32',
  'signed int': 'i32',
  unsigned: 'u32',
  'unsigned int': 'u32',
  'long long': 'i64',
  'long long int': 'i64',
  'signed long long': 'i64',
  'signed long long int': 'i64',
  'unsigned long long': 'u64',
  'unsigned long long int': 'u64',
};

/** As {@link LibraryTypes}. */
export const LIBRARY_TYPES: { readonly [K in keyof LibraryTypes]: LibraryTypes[K] } = {
  half: 'f16',
  __half: 'f16',
  __nv_bfloat16: 'bf16',
  nv_bfloat16: 'bf16',
  __nv_fp8_e4m3: 'f8e4m3',
  __nv_fp8_e5m2: 'f8e5m2',
  int8_t: 'i8',
  uint8_t: 'u8',
  int16_t: 'i16',
  uint16_t: 'u16',
  int32_t: 'i32',
  uint32_t: 'u32',
  int64_t: 'i64',
  uint64_t: 'u64',
  size_t: 'u64',
  ptrdiff_t: 'i64',
  intptr_t: 'i64',
  uintptr_t: 'u64',
};

/** As {@link VectorTypes}. */
export const VECTOR_TYPES: { readonly [K in keyof VectorTypes]: VectorTypes[K] } = {
  char2: ['i8', 2],
  char3: ['i8', 3],
  char4: ['i8', 4],
  uchar2: ['u8', 2],
  uchar3: ['u8', 3],
  uchar4: ['u8', 4],
  short2: ['i16', 2],
  short3: ['i16', 3],
  short4: ['i16', 4],
  ushort2: ['u16', 2],
  ushort3: ['u16', 3],
  ushort4: ['u16', 4],
  int2: ['i32', 2],
  int3: ['i32', 3],
  int4: ['i32', 4],
  uint2: ['u32', 2],
  uint3: ['u32', 3],
  uint4: ['u32', 4],
  longlong2: ['i64', 2],
  longlong3: ['i64', 3],
  longlong4: ['i64', 4],
  ulonglong2: ['u64', 2],
  ulonglong3: ['u64', 3],
  ulonglong4: ['u64', 4],
  float2: ['f32', 2],
  float3: ['f32', 3],
  float4: ['f32', 4],
  double2: ['f64', 2],
  double3: ['f64', 3],
  double4: ['f64', 4],
  half2: ['f16', 2],
  __half2: ['f16', 2],
  __nv_bfloat162: ['bf16', 2],
  nv_bfloat162: ['bf16', 2],
};
