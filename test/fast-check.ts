/**
 * fast-check as the tests use it: `assert` scales its number of runs, takes the seed that the
 * environment names, and prints the command that runs a failure again. eslint refuses an import of
 * fast-check itself elsewhere.
 */
import * as fastCheck from 'fast-check';
import type { IAsyncProperty, IProperty, Parameters, RunDetails } from 'fast-check';

import { namedSeed, runAgain, scaled } from './random-runs.js';

export * from 'fast-check';

/** fast-check's own default. */
const RUNS = 100;

function throwIfFailed<Ts>(details: RunDetails<Ts>): void {
  if (!details.failed) return;
  throw new Error(
    `${fastCheck.defaultReportMessage(details)}\nTo run it again: ${runAgain(details.seed)}`,
    { cause: details.errorInstance },
  );
}

/** `leastRuns`: what a small scale leaves at the least; 1 by default. */
type ScaledParameters<Ts> = Parameters<Ts> & { readonly leastRuns?: number };

/** `fc.assert`: asynchronous for an asynchronous property, as fast-check's own. */
export const assert = (<Ts>(
  property: IProperty<Ts> | IAsyncProperty<Ts>,
  { numRuns = RUNS, leastRuns = 1, ...parameters }: ScaledParameters<Ts> = {},
): unknown =>
  fastCheck.assert(property as IAsyncProperty<Ts>, {
    reporter: throwIfFailed,
    ...(namedSeed === undefined ? {} : { seed: namedSeed }),
    ...parameters,
    numRuns: Math.max(scaled(numRuns), leastRuns),
  })) as {
  <Ts>(property: IAsyncProperty<Ts>, parameters?: ScaledParameters<Ts>): Promise<void>;
  <Ts>(property: IProperty<Ts>, parameters?: ScaledParameters<Ts>): void;
};
