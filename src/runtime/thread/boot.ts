/**
 * The start of each worker. It compiles the threads' script, which takes V8 some 20 ms; with V8's
 * code of the script, kept by an earlier process, it takes a tenth of that. It is built into a
 * script of its own.
 */
import { cachedDataVersionTag } from 'node:v8';
import { Script } from 'node:vm';
import { parentPort, workerData } from 'node:worker_threads';

import { setEngineFlags } from '../../driver/cpu/engine-flags.js';
import { codeEntry, openDiskCache } from '../disk-cache.js';
import { warnElsewhere } from '../own-files.js';
import type { WorkerStart } from '../messages.js';

/** A worker that is started from text has it. */
declare const require: NodeJS.Require;

/** The data that is passed to a worker, besides its own. */
export interface BootData {
  /** SHA-256 of the script. */
  digest: string;
}

/**
 * Keeps V8's code of the script, with that of all functions that have run, if it is not kept yet.
 */
export type KeepCode = () => void;

type ThreadScript = (require: NodeJS.Require, keepCode: KeepCode) => void;

const data = workerData as BootData & WorkerStart;
// V8 rejects code that was made under other flags.
if (data.config.provider === 'cpu') setEngineFlags();
warnElsewhere();
const cache = openDiskCache();
/** V8's tag stands for what its code depends on: its version, its flags, and the processor. */
const entryNow = (): string =>
  codeEntry(data.digest, [process.version, process.platform, process.arch, cachedDataVersionTag()]);
const entry = entryNow();
const kept = cache?.get(entry);

// The script is posted: an expression, a function of `require` and KeepCode.
parentPort!.once('message', (source: string) => {
  const script = new Script(source, {
    filename: 'async-cuda/thread.js',
    ...(kept === undefined ? {} : { cachedData: kept }),
  });
  let isKept = kept !== undefined && script.cachedDataRejected === false;
  (script.runInThisContext() as ThreadScript)(require, () => {
    if (isKept || entryNow() !== entry) return;
    isKept = true;
    cache?.set(entry, script.createCachedData());
  });
});
