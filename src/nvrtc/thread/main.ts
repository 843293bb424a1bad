/**
 * The compiler's thread: a Worker that loads NVRTC and nvJitLink and makes one program after
 * another. It needs no GPU and no device. `scripts/build.mjs` builds it into a script of its own.
 */
import { answerRequests, crewKoffi, whileLoading } from '../../native/crew-thread.js';
import { thisMachine } from '../../native/find.js';
import { KNOWN_LIBRARIES } from '../../native/libraries.js';
import type { LibraryRow } from '../../native/libraries.js';
import { LibraryNotFoundError } from '../../native/library-not-found.js';
import { openLibrary } from '../../native/open-library.js';
import type { OpenedLibrary } from '../../native/open-library.js';
import { loadBuiltins } from './builtins.js';
import { compileProgram } from './compile.js';
import { NvJitLinkLibrary, linkProgram } from './link.js';
import type { Compiled, LibraryPlace, Linked, Refusal, Request } from './messages.js';
import { NvrtcLibrary } from './nvrtc-library.js';
import { Refused } from './refused.js';

const nvrtc = new Map<string, NvrtcLibrary>();
const nvJitLink = new Map<string, NvJitLinkLibrary>();

/**
 * Returns the library, loaded once: where the file that was found does not load, another is tried.
 */
function open<L>(
  known: Map<string, L>,
  row: LibraryRow,
  { path, env }: LibraryPlace,
  make: (opened: OpenedLibrary) => L,
): L {
  const before = path === undefined ? undefined : known.get(path);
  if (before !== undefined) return before;
  const machine = { ...thisMachine(), env };
  let opened: OpenedLibrary;
  try {
    opened = whileLoading(() => openLibrary(crewKoffi(), row, { path, machine }));
  } catch (error) {
    if (path === undefined || !(error instanceof LibraryNotFoundError)) throw error;
    opened = whileLoading(() => openLibrary(crewKoffi(), row, { machine }));
  }
  const library = known.get(opened.path) ?? make(opened);
  known.set(opened.path, library);
  return library;
}

function openNvrtc(opened: OpenedLibrary): NvrtcLibrary {
  const library = new NvrtcLibrary(opened);
  loadBuiltins(library.path, library.version);
  return library;
}

function answer(request: Request): Compiled | Linked {
  if (request.kind === 'compile')
    return compileProgram(open(nvrtc, KNOWN_LIBRARIES.nvrtc, request.library, openNvrtc), request);
  return linkProgram(
    open(
      nvJitLink,
      KNOWN_LIBRARIES.nvJitLink,
      request.library,
      (opened) => new NvJitLinkLibrary(opened),
    ),
    request,
  );
}

function refusalOf(error: unknown): Refusal {
  if (error instanceof Refused) return error.refusal;
  if (error instanceof LibraryNotFoundError)
    return { reason: 'no-library', message: error.message, tried: error.tried };
  return {
    reason: 'library',
    message: error instanceof Error ? (error.stack ?? error.message) : String(error),
  };
}

answerRequests((request: Request): Compiled | Linked | Refusal => {
  try {
    return answer(request);
  } catch (error) {
    return refusalOf(error);
  }
}, String);
