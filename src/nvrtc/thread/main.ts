/**
 * The compiler's thread: a Worker that loads NVRTC and nvJitLink and makes one program after another. It needs no GPU and
 * no device. Built into a script of its own (`scripts/build.mjs`).
 */
import { parentPort, workerData } from 'node:worker_threads';

import { thisMachine } from '../../native/find.js';
import { loadKoffi } from '../../native/koffi.js';
import type { Koffi } from '../../native/koffi.js';
import { KNOWN_LIBRARIES } from '../../native/libraries.js';
import type { LibraryRow } from '../../native/libraries.js';
import { LibraryNotFoundError } from '../../native/library-not-found.js';
import { openLibrary } from '../../native/open-library.js';
import type { OpenedLibrary } from '../../native/open-library.js';
import { compileProgram } from './compile.js';
import { NvJitLinkLibrary, linkProgram } from './link.js';
import type { CompilerThreadStart, LibraryPlace, Refusal, Reply, Request } from './messages.js';
import { NvrtcLibrary } from './nvrtc-library.js';
import { Refused } from './refused.js';

const { koffiPath } = workerData as CompilerThreadStart;
const port = parentPort!;

let koffi: Koffi | undefined;
const nvrtc = new Map<string, NvrtcLibrary>();
const nvJitLink = new Map<string, NvJitLinkLibrary>();

/** The library, loaded once: one that was found and does not load gives way to another. */
function open<L>(known: Map<string, L>, row: LibraryRow, { path, env }: LibraryPlace, make: (opened: OpenedLibrary) => L): L {
  const before = path === undefined ? undefined : known.get(path);
  if (before !== undefined) return before;
  koffi ??= loadKoffi(koffiPath);
  let opened: OpenedLibrary;
  try {
    opened = openLibrary(koffi, row, { path });
  } catch (error) {
    if (path === undefined || !(error instanceof LibraryNotFoundError)) throw error;
    opened = openLibrary(koffi, row, { machine: { ...thisMachine(), env } });
  }
  const library = known.get(opened.path) ?? make(opened);
  known.set(opened.path, library);
  return library;
}

function answer(request: Request): Omit<Extract<Reply, { compiled: unknown }>, 'id'> | Omit<Extract<Reply, { linked: unknown }>, 'id'> {
  if (request.kind === 'compile') return { compiled: compileProgram(open(nvrtc, KNOWN_LIBRARIES.nvrtc, request.library, (opened) => new NvrtcLibrary(opened)), request) };
  return { linked: linkProgram(open(nvJitLink, KNOWN_LIBRARIES.nvJitLink, request.library, (opened) => new NvJitLinkLibrary(opened)), request) };
}

function refusalOf(error: unknown): Refusal {
  if (error instanceof Refused) return error.refusal;
  if (error instanceof LibraryNotFoundError) return { reason: 'no-library', message: error.message, tried: error.tried };
  return { reason: 'library', message: error instanceof Error ? error.stack ?? error.message : String(error) };
}

port.on('message', ({ id, request }: { id: number; request: Request }) => {
  let reply: Reply;
  try {
    reply = { id, ...answer(request) };
  } catch (error) {
    reply = { id, refusal: refusalOf(error) };
  }
  port.postMessage(reply);
});
