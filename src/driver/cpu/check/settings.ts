// What a device that is checked looks for.

import type { CheckOptions } from '../../../ground/check-report.js';

/** Thrown through a kernel to end it, where a function that it calls cannot return that. */
export class CheckStop extends Error {}

export type CheckSettings = Required<CheckOptions>;

export function checkSettings(
  check: boolean | CheckOptions | undefined,
): CheckSettings | undefined {
  if (check === undefined || check === false) return undefined;
  return {
    memory: true,
    uninitialised: true,
    races: true,
    sameValue: false,
    sync: true,
    leaks: true,
    keepGoing: false,
    ...(check === true ? {} : check),
  };
}
