/**
 * A thread of nvJPEG: a Worker that decodes one JPEG at a time, since nvjpegDecode reads the coded bytes on the thread that calls it.
 * Handles, states and streams are the process's, so any such thread can use any. Built into a script of its own (`scripts/build.mjs`).
 */
import { answerRequests, crewKoffi, whileLoading } from '../../../../native/crew-thread.js';
import { LibraryNotFoundError } from '../../../../native/library-not-found.js';
import type { Answers, DecodeRequest, Lane, NvjpegPlace, Refusal, Request } from './messages.js';
import { NvjpegLibrary, Refused } from './nvjpeg-library.js';

/** NVJPEG_BACKEND_DEFAULT */
const BACKEND_DEFAULT = 0;
/** NVJPEG_FLAGS_UPSAMPLING_WITH_INTERPOLATION: colours that are stored at half the size are interpolated, as libjpeg does. A version that does not know it refuses it. */
const INTERPOLATED = 1 << 5;
const INVALID_PARAMETER = 2;
/** CU_STREAM_NON_BLOCKING */
const NON_BLOCKING = 1;

const libraries = new Map<string, NvjpegLibrary>();

function libraryAt(place: NvjpegPlace): NvjpegLibrary {
  const key = `${place.path}\0${place.driver}`;
  const known = place.path === undefined ? undefined : libraries.get(key);
  if (known !== undefined) return known;
  const library = whileLoading(() => new NvjpegLibrary(crewKoffi(), place));
  libraries.set(`${library.path}\0${place.driver}`, library);
  return library;
}

function onDevice({ place, context }: Request): NvjpegLibrary {
  const library = libraryAt(place);
  library.callDriver('cuCtxSetCurrent', context);
  return library;
}

function createHandle(library: NvjpegLibrary): number {
  const { out } = library;
  out.setU64(0, 0);
  try {
    library.call('nvjpegCreateEx', BACKEND_DEFAULT, 0, 0, INTERPOLATED, out.address);
  } catch (error) {
    if (!(error instanceof Refused && error.refusal.reason === 'status' && error.refusal.status === INVALID_PARAMETER)) throw error;
    library.call('nvjpegCreateEx', BACKEND_DEFAULT, 0, 0, 0, out.address);
  }
  return out.u64(0);
}

function createLane(library: NvjpegLibrary, handle: number): Lane {
  const { out } = library;
  library.callDriver('cuStreamCreate', out.address, NON_BLOCKING);
  const stream = out.u64(0);
  try {
    library.call('nvjpegJpegStateCreate', handle, out.address);
  } catch (error) {
    library.callDriver('cuStreamDestroy_v2', stream);
    throw error;
  }
  return { state: out.u64(0), stream };
}

/** nvjpegGetImageInfo's answers and nvjpegImage_t, in {@link NvjpegLibrary.out}. */
const [COMPONENTS, SUBSAMPLING, WIDTHS, HEIGHTS, IMAGE, PITCHES] = [0, 4, 16, 32, 64, 96];

function decode(library: NvjpegLibrary, { handle, lane, source, length, format, width, height, address, pitch }: DecodeRequest): void {
  const { out } = library;
  library.call('nvjpegGetImageInfo', handle, source, length, out.address + COMPONENTS, out.address + SUBSAMPLING, out.address + WIDTHS, out.address + HEIGHTS);
  const [readWidth, readHeight] = [out.i32[WIDTHS / 4], out.i32[HEIGHTS / 4]];
  if (readWidth !== width || readHeight !== height) {
    throw new Refused({ reason: 'format', message: `nvJPEG ${library.version} reads ${readWidth} × ${readHeight} pixels, and its header says ${width} × ${height}` });
  }
  out.bytes.fill(0, IMAGE, IMAGE + 64);
  out.setU64(IMAGE, address);
  out.setU64(PITCHES, pitch);
  try {
    library.call('nvjpegDecode', handle, lane.state, source, length, format, out.address + IMAGE, lane.stream);
  } finally {
    // Also where it failed: it may have begun to write.
    library.callDriver('cuStreamSynchronize', lane.stream);
  }
}

/** As far as it goes: after a fault of the device every call fails. */
function release(library: NvjpegLibrary, handle: number, lanes: readonly Lane[]): void {
  const attempt = (call: () => void): void => {
    try {
      call();
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
    }
  };
  for (const { state, stream } of lanes) {
    attempt(() => { library.call('nvjpegJpegStateDestroy', state); });
    attempt(() => { library.callDriver('cuStreamDestroy_v2', stream); });
  }
  if (handle !== 0) attempt(() => { library.call('nvjpegDestroy', handle); });
}

type Answering = { readonly [K in Request['kind']]: (library: NvjpegLibrary, request: Extract<Request, { kind: K }>) => Answers[K] };

const ANSWERING: Answering = {
  // nvJPEG loads code onto the device with its first handle.
  open: (library) => ({ path: library.path, version: library.version, handle: whileLoading(() => createHandle(library)) }),
  lane: (library, { handle }) => createLane(library, handle),
  locate: (_, { memory }) => Number(crewKoffi().address(new Uint8Array(memory))),
  decode: (library, request) => {
    decode(library, request);
    return undefined;
  },
  release: (library, { handle, lanes }) => {
    release(library, handle, lanes);
    return undefined;
  },
};

function refusalOf(error: unknown): Refusal {
  if (error instanceof Refused) return error.refusal;
  if (error instanceof LibraryNotFoundError) return { reason: 'no-library', message: error.message };
  return { reason: 'internal', message: error instanceof Error ? error.stack ?? error.message : String(error) };
}

answerRequests((request: Request) => {
  const answer = ANSWERING[request.kind] as (library: NvjpegLibrary, request: Request) => Answers[keyof Answers];
  return answer(onDevice(request), request);
}, refusalOf);
