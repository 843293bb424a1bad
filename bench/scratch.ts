/** A folder for what a run compiles and generates; it goes when the process does. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

let folder: string | undefined;

/** A new folder in the run's own. */
export function scratchFolder(): string {
  if (folder === undefined) {
    const made = mkdtempSync(join(tmpdir(), 'async-cuda-bench-'));
    process.once('exit', () => rmSync(made, { recursive: true, force: true }));
    folder = made;
  }
  return mkdtempSync(join(folder, 'part-'));
}
