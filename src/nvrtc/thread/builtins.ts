/** NVRTC's own second library, which has the GPU's half of what it compiles. */
import { existsSync } from 'node:fs';
import { dirname, isAbsolute, join } from 'node:path';

import { crewKoffi, whileLoading } from '../../native/crew-thread.js';
import { loadForGood } from '../../native/open-library.js';
import type { Version } from './messages.js';

/**
 * Loads the one that lies beside NVRTC. NVRTC asks the loader for it by its bare name when it
 * compiles first, and the loader looks beside NVRTC only where that says so: the wheels of 13.0,
 * which PyTorch brings, do not. One that is loaded has the name wherever it lies.
 */
export function loadBuiltins(nvrtc: string, [major, minor]: Version): void {
  const name =
    process.platform === 'win32'
      ? `nvrtc-builtins64_${major}${minor}.dll`
      : `libnvrtc-builtins.so.${major}.${minor}`;
  const path = join(dirname(nvrtc), name);
  // Of one that the loader has found by its name we do not know where it lies.
  if (!isAbsolute(nvrtc) || !existsSync(path)) return;
  try {
    whileLoading(() => loadForGood(crewKoffi(), path));
  } catch {
    // NVRTC says what it lacks, to who compiles.
  }
}
