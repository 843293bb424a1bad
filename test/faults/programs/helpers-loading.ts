/**
 * Ends while helpers of the copy crew start. Arguments: milliseconds until then; `worker` where a
 * worker_thread is to end.
 */
import { setTimeout } from 'node:timers';
import { Worker, isMainThread } from 'node:worker_threads';

import { koffiPath } from '../../../src/native/koffi.js';
import { CopyCrew } from '../../../src/runtime/copy-crew.js';

const [ms, where] = process.argv.slice(2);
if (where === 'worker' && isMainThread)
  new Worker(new URL(import.meta.url), { argv: process.argv.slice(2) }).on('exit', (code) =>
    process.exit(code),
  );
else {
  CopyCrew.open(koffiPath(), 5)?.start(1 << 24);
  setTimeout(() => process.exit(7), Number(ms));
}
