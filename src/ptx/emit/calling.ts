// The calling convention of real functions: (ctx, thread, stack, pointers of aggregate results…,
// parameters…) → scalar results. Scalars are passed as bits in i32 or i64, so that a prototype's
// .b32 and a definition's .f32 agree.

import { variableLayout } from '../analysis/data-layout.js';
import { scalarType } from '../scalar-types.js';
import type { WasmType } from '../scalar-types.js';
import type { Prototype, Variable } from '../syntax/ast.js';
import type { Signature } from '../wasm/signature.js';

export const isAggregate = (variable: Variable): boolean => variableLayout(variable).aggregate;

const carrier = (variable: Variable): WasmType =>
  !isAggregate(variable) && scalarType(variable.type).bits === 64 ? 'i64' : 'i32';

export function callSignature(shape: Prototype): Signature {
  return {
    params: [
      'i32',
      'i32',
      'i32',
      ...shape.returns.filter(isAggregate).map((): WasmType => 'i32'),
      ...shape.params.map(carrier),
    ],
    results: shape.returns.filter((variable) => !isAggregate(variable)).map(carrier),
  };
}

export const sameSignature = (a: Signature, b: Signature): boolean =>
  a.params.join() === b.params.join() && a.results.join() === b.results.join();
