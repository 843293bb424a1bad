/** A library that was opened stays in the process, whichever thread closes it. */
import { execFileSync } from 'node:child_process';
import { copyFileSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';

import { loadKoffi } from '../../src/native/koffi.js';
import { KNOWN_LIBRARIES } from '../../src/native/libraries.js';
import { openLibrary } from '../../src/native/open-library.js';
import { whyNoStandIn } from './stand-in-library.js';

test.skipIf(process.platform !== 'linux' || whyNoStandIn !== undefined)(
  'a library that another thread opened stays when koffi closes a Worker’s',
  () => {
    const folder = mkdtempSync(join(tmpdir(), 'async-cuda-kept-'));
    try {
      const koffi = loadKoffi();
      const mapped = (path: string): boolean =>
        readFileSync('/proc/self/maps', 'utf8').includes(path);
      const [closed, opened] = [join(folder, 'closed.so'), join(folder, 'opened.so')];
      execFileSync('gcc', ['-shared', '-fPIC', '-x', 'c', '-', '-o', closed], {
        input: 'int one(void) { return 1; }',
      });
      copyFileSync(closed, opened);
      // Without our open handle the library is unloaded; otherwise this test would prove nothing.
      const library = koffi.load(closed);
      expect(mapped(closed)).toBe(true);
      library.unload();
      expect(mapped(closed)).toBe(false);
      openLibrary(koffi, KNOWN_LIBRARIES.nvjpeg, { path: opened }).library.unload();
      expect(mapped(opened)).toBe(true);
    } finally {
      rmSync(folder, { recursive: true });
    }
  },
);
