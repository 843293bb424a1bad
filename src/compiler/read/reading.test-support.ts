/** Short ways to read a kernel in a test. */
import type { KernelSource, Signature, SignatureEntry } from '../signature.js';
import { KernelSourceError } from '../source-error.js';
import type { KernelTree, StorageType } from '../tree.js';
import type { StructLayout } from '../../ground/struct-layout.js';
import { readKernel } from './read-kernel.js';
import { checkTree } from './well-typed.test-support.js';
import { printBody, printTree } from './tree-text.test-support.js';

export const point: StructLayout = {
  fields: [
    { name: 'x', storage: 'f32', offset: 0 },
    { name: 'n', storage: 'i32', offset: 4 },
  ],
  bytes: 8,
  align: 4,
};

/** `y` in and out, `x` an input, scalars and more, of every type that tests need. */
const params: Readonly<Record<string, SignatureEntry>> = {
  ...Object.fromEntries(
    (['f32', 'f64', 'f16', 'i32', 'u32', 'i64', 'u64', 'u8', 'i8', 'bool'] as const).flatMap(
      (storage: StorageType) => [
        [
          `y_${storage}`,
          { kind: 'tensor', element: { storage }, access: 'inout', rank: 1 } as const,
        ],
        [`s_${storage}`, { kind: 'scalar', storage } as const],
      ],
    ),
  ),
  y: { kind: 'tensor', element: { storage: 'f32' }, access: 'inout', rank: 1 },
  x: { kind: 'tensor', element: { storage: 'f32' }, access: 'input', rank: 1 },
  m: { kind: 'tensor', element: { storage: 'f32' }, access: 'inout', rank: 2 },
  p: { kind: 'tensor', element: { struct: point }, access: 'inout', rank: 1 },
  by: { kind: 'struct', struct: point },
} satisfies Signature;

function checked(tree: KernelTree): KernelTree {
  checkTree(tree);
  return tree;
}

export function sourceOf(
  text: string,
  uses: KernelSource['uses'] = {},
  indexType: 'i32' | 'i64' = 'i32',
): KernelSource {
  return { name: 'k', signature: params, text, uses, indexType };
}

/** The statements of a kernel whose body is `body`. */
export function bodyOf(
  body: string,
  uses: KernelSource['uses'] = {},
  indexType: 'i32' | 'i64' = 'i32',
): string {
  return printBody(
    checked(
      readKernel(
        sourceOf(
          '(a, gpu) => { const i = gpu.threadIdx.x; const { ' +
            `${Object.keys(params).join(', ')} } = a; ${body} }`,
          uses,
          indexType,
        ),
      ),
    ),
  ).replace('i: i32 = threadIdx.x\n', '');
}

export function wholeOf(text: string, uses: KernelSource['uses'] = {}): string {
  return printTree(checked(readKernel(sourceOf(text, uses))));
}

/** The error of reading: what, fix, and the code that it points to. */
export function errorOf(
  text: string,
  uses: KernelSource['uses'] = {},
): { what: string; fix: string; code: string } {
  try {
    readKernel(sourceOf(text, uses));
  } catch (error) {
    if (!(error instanceof KernelSourceError)) throw error;
    return {
      what: error.what,
      fix: error.fix,
      code: error.span === undefined ? '' : error.text.slice(error.span.start, error.span.end),
    };
  }
  throw new Error('This was read without an error');
}
