/** The arguments of a launch: their checks, and their encoding in the ring. */
import { types } from 'node:util';
import { insteadOfBigint, invalid, show } from '../ground/arguments.js';
import { DTYPES, type DTypeName } from '../ground/dtype.js';
import type { CudaArgumentError } from '../ground/errors.js';
import { narrow, type NarrowName } from '../ground/narrow-floats.js';
import type { DeviceBuffer2D } from './buffer-2d.js';
import type { DeviceBuffer } from './buffer.js';
import { checkExact } from './exact-scalar.js';
import type { GraphCondition } from './graph-condition.js';
import type { ManagedBuffer } from './managed.js';
import type { ParamLayout } from './signature.js';
import type { Surface, Texture } from './texture.js';
import { TWO32 } from './launch-shape.js';
import type { TensorMap } from './tensor-map.js';

/** Memory that a kernel can take the address of, or a texture or surface. */
export type KernelMemory = DeviceBuffer | DeviceBuffer2D | ManagedBuffer | Texture | Surface;

/**
 * An argument of a kernel: memory, a number, the bytes of a structure; `null` is the null pointer.
 * A condition is passed for a `cudaGraphConditionalHandle`, with an undeclared signature or as
 * `input(u64)`.
 */
export type KernelArgument =
  | KernelMemory
  | GraphCondition
  | TensorMap
  | number
  | bigint
  | boolean
  | ArrayBuffer
  | ArrayBufferView
  | null;

const scratch = new ArrayBuffer(8);

const scratchF32 = new Float32Array(scratch);

const scratchF64 = new Float64Array(scratch);

const scratchI32 = new Int32Array(scratch);

const scratchU16 = new Uint16Array(scratch);

const scratchU8 = new Uint8Array(scratch);

const scratchU64 = new BigUint64Array(scratch);

/** Writes one argument at its place. The decoder adds the address of memory to its offset. */
export function putArgument(
  memory: Int32Array,
  params: number,
  param: ParamLayout,
  arg: KernelArgument,
  kernel: string,
): void {
  const at = params + (param.offset >> 2);
  if (param.exact !== undefined && (typeof arg === 'number' || typeof arg === 'bigint'))
    checkExact(param, param.exact, arg, kernel);
  if (param.kind === 'map') {
    (arg as TensorMap).put(memory, at);
    return;
  }
  if (param.kind === 'pointer') {
    if (arg === null) {
      memory[at] = 0;
      memory[at + 1] = 0;
      return;
    }
    if (typeof arg === 'bigint') {
      if (arg < -(1n << 63n) || arg >= 1n << 64n) throw wrongScalar(param, 'u64', arg, kernel);
      scratchU64[0] = BigInt.asUintN(64, arg);
      memory[at] = scratchI32[0]!;
      memory[at + 1] = scratchI32[1]!;
      return;
    }
    // nvcc declares a pointer and a `long long` alike, so negative numbers are allowed, as bigints
    // are.
    const offset =
      typeof arg === 'boolean'
        ? Number(arg)
        : typeof arg === 'number'
          ? checkedInteger(param, arg, kernel, Number.MIN_SAFE_INTEGER, Number.MAX_SAFE_INTEGER)
          : (arg as KernelMemory).byteOffset;
    memory[at] = offset | 0;
    memory[at + 1] = Math.floor(offset / TWO32);
    return;
  }
  if (param.kind === 'struct') {
    putBytes(memory, params, param, arg, kernel);
    return;
  }
  if (param.scalar === undefined) {
    throw invalid(
      `args[${param.index}]`,
      `a declared signature: of parameter ${param.index} of kernel '${kernel}' only the size ` +
        `(${param.size} bytes) is known`,
      arg,
      `Write module.kernel('${kernel}', [f32, i32, …]).`,
    );
  }
  putScalar(memory, params, at, param, param.scalar, arg, kernel);
}

function putScalar(
  memory: Int32Array,
  params: number,
  at: number,
  param: ParamLayout,
  scalar: DTypeName,
  arg: KernelArgument,
  kernel: string,
): void {
  if (typeof arg === 'number') {
    switch (scalar) {
      case 'f32':
        scratchF32[0] = arg;
        memory[at] = scratchI32[0]!;
        return;
      case 'i32':
        // nvcc declares signed and unsigned parameters alike, so both ranges are allowed.
        memory[at] =
          arg === (arg | 0) ? arg : checkedInteger(param, arg, kernel, -2147483648, 4294967295) | 0;
        return;
      case 'u32':
        memory[at] =
          arg === (arg | 0) ? arg : checkedInteger(param, arg, kernel, -2147483648, 4294967295) | 0;
        return;
      case 'f64':
        scratchF64[0] = arg;
        memory[at] = scratchI32[0]!;
        memory[at + 1] = scratchI32[1]!;
        return;
      case 'i64':
      case 'u64':
        checkedInteger(param, arg, kernel, Number.MIN_SAFE_INTEGER, Number.MAX_SAFE_INTEGER);
        scratchU64[0] = BigInt.asUintN(64, BigInt(arg));
        memory[at] = scratchI32[0]!;
        memory[at + 1] = scratchI32[1]!;
        return;
      default:
        putNarrow(memory, params, param, scalar, arg, kernel);
        return;
    }
  }
  if (typeof arg === 'bigint' && (scalar === 'i64' || scalar === 'u64')) {
    if (arg < -(1n << 63n) || arg >= 1n << 64n) throw wrongScalar(param, scalar, arg, kernel);
    scratchU64[0] = BigInt.asUintN(64, arg);
    memory[at] = scratchI32[0]!;
    memory[at + 1] = scratchI32[1]!;
    return;
  }
  if (typeof arg === 'boolean') {
    putScalar(memory, params, at, param, scalar, arg ? 1 : 0, kernel);
    return;
  }
  throw wrongScalar(param, scalar, arg, kernel);
}

function wrongScalar(
  param: ParamLayout,
  scalar: DTypeName,
  arg: KernelArgument,
  kernel: string,
): CudaArgumentError {
  const wanted = scalar === 'i64' || scalar === 'u64' ? 'a bigint or a whole number' : 'a number';
  return invalid(
    `args[${param.index}]`,
    `${wanted} for parameter ${param.index} (${scalar}) of kernel '${kernel}'`,
    arg,
    insteadOfBigint(arg),
  );
}

function checkedInteger(
  param: ParamLayout,
  arg: number,
  kernel: string,
  low: number,
  high: number,
): number {
  if (!Number.isInteger(arg) || arg < low || arg > high) {
    throw invalid(
      `args[${param.index}]`,
      `a whole number from ${low} to ${high} for parameter ${param.index} ` +
        `(${param.scalar ?? 'pointer'}) of kernel '${kernel}'`,
      arg,
      insteadOfBigint(arg, low, high),
    );
  }
  return arg;
}

/** Writes a type of one or two bytes, at any place of its word. */
function putNarrow(
  memory: Int32Array,
  params: number,
  param: ParamLayout,
  scalar: DTypeName,
  arg: number,
  kernel: string,
): void {
  const dtype = DTYPES[scalar];
  if (dtype.kind === 'float')
    narrow(
      scalar as NarrowName,
      [arg],
      dtype.bytes === 1 ? scratchU8.subarray(0, 1) : scratchU16.subarray(0, 1),
    );
  else {
    const bits = dtype.bytes * 8;
    checkedInteger(param, arg, kernel, -(2 ** (bits - 1)), 2 ** bits - 1);
    if (bits === 8) scratchU8[0] = arg;
    else scratchU16[0] = arg;
  }
  const value = dtype.bytes === 1 ? scratchU8[0]! : scratchU16[0]!;
  const word = params + (param.offset >> 2);
  memory[word] = memory[word]! | (value << ((param.offset & 3) * 8));
}

function putBytes(
  memory: Int32Array,
  params: number,
  param: ParamLayout,
  arg: KernelArgument,
  kernel: string,
): void {
  // Checked last, this includes arrays of other realms.
  const isBytes = ArrayBuffer.isView(arg) || arg instanceof ArrayBuffer || types.isArrayBuffer(arg);
  if (!isBytes || arg.byteLength !== param.size) {
    throw invalid(
      `args[${param.index}]`,
      `${param.size} bytes for parameter ${param.index} of kernel '${kernel}', a structure`,
      isBytes ? `${arg.byteLength} bytes` : show(arg),
      'Pass an ArrayBuffer, a DataView or a typed array of exactly that size.',
    );
  }
  const source = ArrayBuffer.isView(arg)
    ? new Uint8Array(arg.buffer, arg.byteOffset, arg.byteLength)
    : new Uint8Array(arg);
  new Uint8Array(memory.buffer, memory.byteOffset + params * 4 + param.offset, param.size).set(
    source,
  );
}
