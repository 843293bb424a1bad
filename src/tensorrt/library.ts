/**
 * TensorRT, TensorRT for RTX and the lean runtime: found, and opened once for each of TensorRT's
 * threads.
 */
import { invalid } from '../ground/arguments.js';
import type { TensorRTFlavor } from './engine-options.js';
import { generationOf } from './thread/generations.js';
import type { LibraryFiles, OpenedTensorRT } from './thread/library.js';
import { caller, listener } from './threads.js';
import type { Caller } from './threads.js';

/** Names the library and its files explicitly. */
export interface OpenTensorRTOptions {
  /** The library. Default `tensorrt`. */
  readonly flavor?: TensorRTFlavor | undefined;
  /** Its files; files that are not named are searched for. */
  readonly files?: LibraryFiles | undefined;
}

/** A library that one thread has opened. */
export interface OpenTensorRT extends OpenedTensorRT {
  readonly thread: Caller;
  readonly session: number;
}

const FLAVORS: readonly TensorRTFlavor[] = ['tensorrt', 'lean', 'rtx'];
const opened = new Map<string, Promise<OpenTensorRT>>();

/** Opens the library on a thread, once. A failure is not remembered. */
export function openTensorRT(
  lane: 'build' | 'run',
  { flavor = 'tensorrt', files = {} }: OpenTensorRTOptions = {},
): Promise<OpenTensorRT> {
  if (!FLAVORS.includes(flavor)) throw invalid('flavor', `one of ${FLAVORS.join(', ')}`, flavor);
  const key = JSON.stringify([lane, flavor, files]);
  let known = opened.get(key);
  if (known === undefined) {
    known = open(lane, flavor, files);
    opened.set(key, known);
    known.catch(() => opened.delete(key));
  }
  return known;
}

const loggers = new Map<number, Promise<number>>();

async function open(
  lane: 'build' | 'run',
  flavor: TensorRTFlavor,
  files: LibraryFiles,
): Promise<OpenTensorRT> {
  const thread = await caller(lane);
  const library = await thread.call('open', flavor, files, { ...process.env });
  const { callbacks } = generationOf(library.key);
  let logger = loggers.get(callbacks.log);
  if (logger === undefined) {
    logger = listener().call('logger', callbacks);
    loggers.set(callbacks.log, logger);
  }
  await thread.call('setLogger', library.session, await logger);
  return { ...library, thread };
}
