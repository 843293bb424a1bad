/**
 * Before all tests: the texts that Workers run, bundled from the sources as they are now, and the
 * compiler's digest.
 */
import { buildGenerated, removeWorkerScripts } from './build.mjs';

export async function setup() {
  try {
    await buildGenerated();
  } catch {
    // esbuild has printed why. Tests that start no Worker can still run; none may run an older
    // text.
    await removeWorkerScripts();
    console.error('The runtime thread does not build: every test that starts it will fail.');
  }
}
