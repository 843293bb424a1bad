/** Loads NVRTC's second library, which has the GPU's part of what it compiles. */
import { existsSync } from 'node:fs';
import { dirname, isAbsolute, join } from 'node:path';

import { crewKoffi, whileLoading } from '../../native/crew-thread.js';
import { loadForGood } from '../../native/open-library.js';
import type { Version } from './messages.js';

/**
 * Loads the library beside NVRTC. NVRTC opens it by its bare name at the first compilation, and the
 * loader searches NVRTC's folder only where its run path contains it: that of the wheels of 13.0,
 * which PyTorch installs, does not. A library that is already loaded has the name, wherever its
 * file is.
 */
export function loadBuiltins(nvrtc: string, [major, minor]: Version): void {
  const name =
    process.platform === 'win32'
      ? `nvrtc-builtins64_${major}${minor}.dll`
      : `libnvrtc-builtins.so.${major}.${minor}`;
  const path = join(dirname(nvrtc), name);
  // If the loader has found NVRTC by its name, its folder is not known.
  if (!isAbsolute(nvrtc) || !existsSync(path)) return;
  try {
    whileLoading(() => loadForGood(crewKoffi(), path));
  } catch {
    // NVRTC reports what it lacks when it compiles.
  }
}
