/**
 * Names that kernels, parameters, fields and constants can have, and suggestions for those that
 * there are not.
 */
import { distance, invalid } from './arguments.js';
import { CudaArgumentError } from './errors.js';

const NAME = /^[A-Za-z_$][A-Za-z0-9_$]*$/;

/** A name that JavaScript and PTX both have. */
export function checkName(argument: string, name: unknown, of: string): asserts name is string {
  if (typeof name === 'string' && NAME.test(name)) return;
  throw invalid(argument, `the name of ${of}: letters, digits, _ and $, no digit first`, name);
}

/** There is no such name: says so, with the nearest that there is. */
export function unknownName(
  argument: string,
  what: string,
  name: string,
  known: readonly string[],
): CudaArgumentError {
  const near = known.find(
    (each) =>
      each.toLowerCase() === name.toLowerCase() ||
      distance(each, name) <= Math.min(2, name.length - 1),
  );
  return new CudaArgumentError(
    argument,
    `${argument}: ${what} '${name}'. ` +
      `${near === undefined ? `There ${known.length === 0 ? 'are none' : `is ${known.join(', ')}`}.` : `Did you mean '${near}'?`}`,
  );
}
