/**
 * The functions of cuBLASLt that are called here, as a table. They are the same in cuBLASLt 11 to
 * 13. Descriptors are made and destroyed by the library: their sizes differ between its versions.
 */
import type { FunctionRow, StepArgument } from '../core/index.js';
import { PROPERTY_BYTES } from './enums.js';

/** The bytes of cublasLtMatmulAlgo_t, which is plain data. */
export const ALGORITHM_BYTES = 64;
/**
 * The bytes of cublasLtMatmulHeuristicResult_t, and the places of its fields: the algorithm is at
 * the beginning.
 */
export const HEURISTIC_RESULT = { bytes: 96, workspaceSize: 64, state: 72 } as const;

/** A place for a handle that the function writes. */
const HANDLE = { host: 8 } as const;
const VALUE = { host: PROPERTY_BYTES } as const;

export const CUBLASLT_FUNCTIONS = {
  cublasLtGetVersion: { args: [], returns: 'u64' },
  cublasLtCreate: { args: [HANDLE] },
  cublasLtDestroy: { args: ['object'] },
  // The compute type, and the type of alpha and beta.
  cublasLtMatmulDescCreate: { args: [HANDLE, 'i32', 'i32'] },
  cublasLtMatmulDescDestroy: { args: ['object'] },
  // The attribute, its value, and the bytes of the value.
  cublasLtMatmulDescSetAttribute: { args: ['object', 'i32', VALUE, 'u64'], launches: 0 },
  // The type, rows, columns, and the leading dimension.
  cublasLtMatrixLayoutCreate: { args: [HANDLE, 'i32', 'u64', 'u64', 'i64'] },
  cublasLtMatrixLayoutDestroy: { args: ['object'] },
  cublasLtMatrixLayoutSetAttribute: { args: ['object', 'i32', VALUE, 'u64'] },
  cublasLtMatmulPreferenceCreate: { args: [HANDLE] },
  cublasLtMatmulPreferenceDestroy: { args: ['object'] },
  cublasLtMatmulPreferenceSetAttribute: { args: ['object', 'i32', VALUE, 'u64'] },
  // The handle, the descriptor, the layouts of A, B, C and D, the preference; how many results are
  // wanted, the results, and how many there are.
  cublasLtMatmulAlgoGetHeuristic: {
    args: [
      'object',
      'object',
      'object',
      'object',
      'object',
      'object',
      'object',
      'i32',
      { host: HEURISTIC_RESULT.bytes },
      { host: 4 },
    ],
  },
  // It is called with constants in place of handles: see matmulArguments.
  cublasLtMatmul: {
    args: [
      'object',
      'object',
      { host: 4 },
      'in',
      'object',
      'in',
      'object',
      { host: 4 },
      'in',
      'object',
      'out',
      'object',
      { host: ALGORITHM_BYTES },
      'out',
      'u64',
      'stream',
    ],
    launches: 4,
  },
} as const satisfies Record<string, FunctionRow>;

export type CublasLtFunction = keyof typeof CUBLASLT_FUNCTIONS;

/** The places of arguments of cublasLtMatmul that differ from call to call. */
export const ALPHA_ARGUMENT = 2;
export const BETA_ARGUMENT = 7;
export const ALGORITHM_ARGUMENT = 12;

/**
 * The arguments of cublasLtMatmul for one shape. Memory is, in this order: A, B, C, D, and the
 * workspace where it has bytes. Without `readsC` the address of D is passed as C, which the library
 * does not read then; with `null` there is none.
 */
export function matmulArguments(
  {
    handle,
    descriptor,
    left,
    right,
    c,
    d,
  }: Readonly<Record<'handle' | 'descriptor' | 'left' | 'right' | 'c' | 'd', number>>,
  readsC: boolean | null,
  workspaceBytes: number,
): StepArgument[] {
  return [
    { constant: handle },
    { constant: descriptor },
    { host: 4 },
    'in',
    { constant: left },
    'in',
    { constant: right },
    { host: 4 },
    readsC === null ? { constant: 0 } : readsC ? 'in' : 'out',
    { constant: c },
    'out',
    { constant: d },
    { host: ALGORITHM_BYTES },
    workspaceBytes === 0 ? { constant: 0 } : 'out',
    { constant: workspaceBytes },
    'stream',
  ];
}
