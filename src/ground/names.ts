/**
 * Checks of the names of kernels, parameters, fields and constants, and suggestions for names that
 * do not exist.
 */
import { distance, invalid } from './arguments.js';
import { CudaArgumentError } from './errors.js';

const NAME = /^[A-Za-z_$][A-Za-z0-9_$]*$/;

/** Throws unless `name` is an identifier in both JavaScript and PTX. */
export function checkName(argument: string, name: unknown, of: string): asserts name is string {
  if (typeof name === 'string' && NAME.test(name)) return;
  throw invalid(argument, `the name of ${of}: letters, digits, _ and $, no digit first`, name);
}

/** The error for a name that does not exist. It suggests the nearest name that does. */
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
  const others = known.length === 0 ? 'There are none.' : `There is ${known.join(', ')}.`;
  return new CudaArgumentError(
    argument,
    `${argument}: ${what} '${name}'. ${near === undefined ? others : `Did you mean '${near}'?`}`,
  );
}
