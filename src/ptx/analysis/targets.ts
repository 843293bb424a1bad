// The targets of PTX, and the version in which each was introduced.

import type { PtxModule } from '../syntax/ast.js';

/**
 * By the number of a target: the .version since which it may be named without suffix, for one
 * architecture (`a`) and for a family (`f`).
 */
const TARGETS: Readonly<Record<number, { plain: string; a?: string; f?: string }>> = {
  10: { plain: '1.0' },
  11: { plain: '1.0' },
  12: { plain: '1.2' },
  13: { plain: '1.2' },
  20: { plain: '2.0' },
  21: { plain: '2.0' },
  30: { plain: '3.0' },
  32: { plain: '4.0' },
  35: { plain: '3.1' },
  37: { plain: '4.1' },
  50: { plain: '4.0' },
  52: { plain: '4.1' },
  53: { plain: '4.2' },
  60: { plain: '5.0' },
  61: { plain: '5.0' },
  62: { plain: '5.0' },
  70: { plain: '6.0' },
  72: { plain: '6.1' },
  75: { plain: '6.3' },
  80: { plain: '7.0' },
  86: { plain: '7.1' },
  87: { plain: '7.4' },
  88: { plain: '9.0' },
  89: { plain: '7.8' },
  90: { plain: '7.8', a: '8.0' },
  100: { plain: '8.6', a: '8.6', f: '8.8' },
  101: { plain: '8.6', a: '8.6', f: '8.8' },
  103: { plain: '8.8', a: '8.8', f: '8.8' },
  110: { plain: '9.0', a: '9.0', f: '9.0' },
  120: { plain: '8.7', a: '8.7', f: '8.8' },
  121: { plain: '8.8', a: '8.8', f: '8.8' },
};

/** The number of a version: 401 for 4.1. */
export const versionNumber = (version: string): number => {
  const [major = '0', minor = '0'] = version.split('.');
  return Number(major) * 100 + Number(minor);
};

/** The number of a target: 90 for sm_90a. */
export const targetNumber = (target: string): number => Number(/\d+/.exec(target)?.[0] ?? 0);

/** Rejects a target that does not exist, or not yet in the module's version. */
export function checkTarget({ source, version, target, targetOptions }: PtxModule): void {
  const [, digits, kind = 'plain'] = /^(?:sm|compute)_(\d+)([af]?)$/.exec(target) ?? [];
  const since =
    digits === undefined
      ? undefined
      : TARGETS[Number(digits)]?.[(kind || 'plain') as 'plain' | 'a' | 'f'];
  const at = Math.max(source.text.indexOf('.target'), 0);
  if (since === undefined) throw source.error('semantic', `there is no .target '${target}'`, at);
  if (versionNumber(version) < versionNumber(since))
    throw source.error('semantic', `.target ${target} needs .version ${since} or later`, at);
  // Later targets have f64, as in ptxas.
  if (targetOptions.has('map_f64_to_f32') && targetNumber(target) > 12)
    throw source.error(
      'semantic',
      `map_f64_to_f32 is for .target sm_10 to sm_12, not ${target}`,
      at,
    );
}
