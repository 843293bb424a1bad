/** The passes, in their order. */
import type { SsaFunction } from '../ssa/function.js';
import { liftCommon } from './lift-common.js';
import { tidyControlFlow } from './control-flow.js';
import { dropDead } from './dead.js';
import { divideByConstants } from './divisions.js';
import { hoistInvariants } from './invariants.js';
import { loadAfterQuotients } from './late-loads.js';
import { shareReciprocals } from './quotients.js';
import { selectBranches } from './selections.js';
import { shareValues } from './values.js';
import { joinAccesses } from './vectors.js';
import type { Alignment } from './vectors.js';

export function optimise(f: SsaFunction, alignment: Alignment, reciprocals: boolean): void {
  tidyControlFlow(f);
  shareValues(f);
  dropDead(f);
  tidyControlFlow(f);
  selectBranches(f);
  tidyControlFlow(f);
  divideByConstants(f);
  liftCommon(f);
  hoistInvariants(f);
  shareValues(f);
  tidyControlFlow(f, false);
  dropDead(f);
  joinAccesses(f, alignment);
  if (reciprocals) {
    shareReciprocals(f);
    loadAfterQuotients(f);
  }
}

/** The passes that run in any case. */
export function tidy(f: SsaFunction): void {
  tidyControlFlow(f);
  dropDead(f);
}
