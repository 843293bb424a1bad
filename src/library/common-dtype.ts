/** The dtype that operands of an operation have in common. */
import { DTYPES } from '../core/index.js';
import type { DType } from '../core/index.js';
import { invalid } from '../ground/arguments.js';
import { promoted } from '../ground/promotion.js';
import { Tensor } from '../tensor/index.js';
import type { AnyTensor } from '../tensor/index.js';

/** An operand's name in errors, and the operand. */
export type Named = readonly [argument: string, given: AnyTensor | DType];

const dtypeOf = (given: AnyTensor | DType): DType =>
  given instanceof Tensor ? given.dtype : given;

/**
 * Gives the dtype that all operands promote to; undefined for none.
 *
 * @throws CudaArgumentError where an operand's dtype and those before it have no common one
 */
export function commonDType(name: string, operands: readonly Named[]): DType | undefined {
  let common: DType | undefined;
  for (const [argument, given] of operands) {
    const dtype = dtypeOf(given);
    common ??= dtype;
    const both = promoted(common.name, dtype.name);
    if (both === undefined)
      throw invalid(
        argument,
        `${given instanceof Tensor ? 'a Tensor of a dtype' : 'a dtype'} that has a common one ` +
          `with ${common.name}, for ${name}(…)`,
        given instanceof Tensor ? given : dtype.name,
        common.name === 'bool'
          ? 'Compare it: notEqual(x, 0).'
          : 'Convert one of them with convert(…).',
      );
    common = DTYPES[both];
  }
  return common;
}
