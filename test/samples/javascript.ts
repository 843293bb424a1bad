/** What a case gave, against what JavaScript computes. */
import { expect } from 'vitest';

import { difference, formatOf, numbersOf } from './equality.js';
import { inNormalForm } from './recording.js';
import type { HostArray, SampleCase, Target } from './sample-case.js';

export type Reference = ArrayLike<number> | ArrayLike<bigint>;

/** `known` keeps references that are the same for all targets: exact arithmetic takes its time. */
export function checkAgainstJavaScript(
  sample: SampleCase,
  target: Target,
  results: ReadonlyMap<string, HostArray>,
  known: Map<string, Reference>,
): void {
  for (const [name, output] of Object.entries(sample.outputs)) {
    const values = results.get(name)!;
    output.check?.(values as never);
    const wanted = known.get(name) ?? output.reference?.(target);
    if (wanted !== undefined && sample.differsByTarget === undefined) known.set(name, wanted);
    if (wanted === undefined) continue;
    const brought = inNormalForm(values, output);
    const format = formatOf(brought, output.format);
    const said = difference(
      numbersOf(brought, format),
      wanted,
      output.referenceEqual ?? output.equal,
      format,
    );
    if (said !== undefined) expect.fail(`${name}: ${said}`);
  }
}
