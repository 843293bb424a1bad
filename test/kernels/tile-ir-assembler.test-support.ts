/**
 * The assembler of Tile IR that the suite tests with: the machine's, or the one that
 * `scripts/install-tileiras.mjs` has put into node_modules. Where there is none, tests that need it
 * are skipped with a message; with ASYNC_CUDA_TEST_TILEIRAS=required, as in `.ci/run`, that fails.
 */
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

import { TILEIRAS, findProgram } from '../../src/native/find-program.js';

const installed = fileURLToPath(
  new URL('../../node_modules/.cache/tileiras/nvidia/cu13/bin', import.meta.url),
);
if (existsSync(installed)) process.env[TILEIRAS.environment] ??= installed;

export const haveAssembler = 'path' in findProgram(TILEIRAS);

if (!haveAssembler) {
  const message =
    'there is no tileiras on this machine. Run node scripts/install-tileiras.mjs (no GPU needed)';
  if (process.env['ASYNC_CUDA_TEST_TILEIRAS'] === 'required')
    throw new Error(`ASYNC_CUDA_TEST_TILEIRAS=required, and ${message}`);
  console.error(`\n!!! LEFT OUT: ${message}.\n`);
}
