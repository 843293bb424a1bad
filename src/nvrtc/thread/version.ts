/** Versions of libraries: major and minor. */
import type { Version } from './messages.js';

export function versionName([major, minor]: Version): string {
  return `${major}.${minor}`;
}

/** Whether `version` has a feature that came with `since`. */
export function atLeast(version: Version, since: Version): boolean {
  return version[0] > since[0] || (version[0] === since[0] && version[1] >= since[1]);
}
