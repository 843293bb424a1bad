/** The passes, in their order. */
import type { SsaFunction } from '../ssa/function.js';
import { tidyControlFlow } from './control-flow.js';
import { dropDead } from './dead.js';
import { hoistInvariants } from './invariants.js';
import { selectBranches } from './selections.js';
import { shareValues } from './values.js';

export function optimise(f: SsaFunction): void {
  tidyControlFlow(f);
  shareValues(f);
  dropDead(f);
  tidyControlFlow(f);
  selectBranches(f);
  tidyControlFlow(f);
  hoistInvariants(f);
  shareValues(f);
  tidyControlFlow(f, false);
  dropDead(f);
}

/** What has to be done in any case. */
export function tidy(f: SsaFunction): void {
  tidyControlFlow(f);
  dropDead(f);
}
