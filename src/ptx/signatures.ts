// What a caller must know to launch a kernel: its name and the places of its parameters.

import { entryParameters } from './analysis/lower.js';
import type { PtxFunction } from './syntax/ast.js';
import { parsePtx } from './syntax/parser.js';

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
  /** bytes, whole parameter */
  size: number;
  align: number;
  offset: number;
  /** true for `.align N .b8 name[n]` aggregates */
  aggregate: boolean;
  /** true where `.ptr` says so */
  pointer: boolean;
}

export interface KernelSignature {
  name: string;
  params: PtxKernelParam[];
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

/** Names and parameter layouts of the kernels of a module, without compiling it. */
export function kernelSignatures(source: string): KernelSignature[] {
  return parsePtx(source)
    .functions.filter((fn) => fn.entry && fn.body)
    .map(signatureOf);
}
