// Signatures of kernels: names, and the layout of their parameters, which a launch needs.

import { entryParameters } from './analysis/lower.js';
import type { PtxFunction } from './syntax/ast.js';
import { parsePtx } from './syntax/parser.js';

/** One parameter of a kernel. */
export interface PtxKernelParam {
  name: string;
  type:
    | 'u8'
    | 'u16'
    | 'u32'
    | 'u64'
    | 's8'
    | 's16'
    | 's32'
    | 's64'
    | 'f16'
    | 'f16x2'
    | 'bf16'
    | 'f32'
    | 'f64'
    | 'b8'
    | 'b16'
    | 'b32'
    | 'b64';
  /** Bytes of the whole parameter. */
  size: number;
  align: number;
  offset: number;
  /** True for an array, as in `.align N .b8 name[n]`. */
  aggregate: boolean;
  /** True if the declaration has `.ptr`. */
  pointer: boolean;
}

/** The name and the parameters of a kernel. */
export interface KernelSignature {
  name: string;
  params: PtxKernelParam[];
  /** Bytes of all parameters. */
  paramBytes: number;
}

export function signatureOf(fn: PtxFunction): KernelSignature {
  const params = entryParameters(fn).map(
    ({ variable, offset, size, align, aggregate }): PtxKernelParam => ({
      name: variable.name,
      type: variable.type as PtxKernelParam['type'],
      size,
      align,
      offset,
      aggregate,
      pointer: variable.pointer,
    }),
  );
  const last = params.at(-1);
  return { name: fn.name, params, paramBytes: last ? last.offset + last.size : 0 };
}

/**
 * Reads the names and the parameter layouts of the kernels of a module without compiling it.
 * Offsets, sizes and alignments are in bytes.
 *
 * @throws {@link PtxError} with code 'syntax' if the text does not parse.
 *
 * @example
 * ```ts
 * const [kernel] = kernelSignatures(`.version 8.0
 *   .target sm_80
 *   .address_size 64
 *   .visible .entry scale(.param .u32 n, .param .u64 data) { ret; }`);
 * console.log(kernel!.params.map(({ offset }) => offset)); // [ 0, 8 ]
 * ```
 */
export function kernelSignatures(source: string): KernelSignature[] {
  return parsePtx(source)
    .functions.filter((fn) => fn.entry && fn.body)
    .map(signatureOf);
}
