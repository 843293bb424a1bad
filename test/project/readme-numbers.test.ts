/** The README shows the latest results, all of them. */
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

import { expect, test } from 'vitest';

test("the README's numbers are those of bench/results/summary.json", () => {
  const script = fileURLToPath(new URL('../../scripts/readme-numbers.mjs', import.meta.url));
  const { status, stderr } = spawnSync(process.execPath, [script, '--check'], { encoding: 'utf8' });
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
});
