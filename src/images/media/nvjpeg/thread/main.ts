/**
 * A thread of nvJPEG: a Worker that decodes one JPEG at a time, since nvjpegDecode reads the coded
 * bytes on the calling thread, or a batch by the hardware decoders. Handles, states and streams
 * belong to the process, so that each such thread can use all of them. `scripts/build.mjs` builds
 * it as a separate script.
 */
import { answerRequests, crewKoffi, whileLoading } from '../../../../native/crew-thread.js';
import { LibraryNotFoundError } from '../../../../native/library-not-found.js';
import { capacityFor, placesOf } from '../../../../native/memory-places.js';
import { NativeMemory } from '../../../../native/native-memory.js';
import { MOST_IN_BATCH, MOST_KEPT_BYTES } from './messages.js';
import type {
  Answers,
  BatchAnswer,
  BatchRequest,
  Coded,
  DecodeRequest,
  Hardware,
  Lane,
  NvjpegPlace,
  Refusal,
  Request,
} from './messages.js';
import { NvjpegLibrary, Refused } from './nvjpeg-library.js';

/** nvjpegBackend_t */
const [BACKEND_DEFAULT, BACKEND_HARDWARE] = [0, 3];
/**
 * NVJPEG_FLAGS_UPSAMPLING_WITH_INTERPOLATION: chroma of half the size is interpolated, as in
 * libjpeg. A version without the flag gives an error.
 */
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

function createHandle(library: NvjpegLibrary, backend: number): number {
  const { out } = library;
  out.setU64(0, 0);
  try {
    library.call('nvjpegCreateEx', backend, 0, 0, INTERPOLATED, out.address);
  } catch (error) {
    if (statusOf(error) !== INVALID_PARAMETER) throw error;
    library.call('nvjpegCreateEx', backend, 0, 0, 0, out.address);
  }
  return out.u64(0);
}

/** The status of an error that nvJPEG gave. */
function statusOf(error: unknown): number | undefined {
  return error instanceof Refused && error.refusal.reason === 'status'
    ? error.refusal.status
    : undefined;
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

function createHardware(library: NvjpegLibrary, opened: number): Hardware | undefined {
  const { out } = library;
  if (!library.hasHardware) return undefined;
  out.setU64(0, 0);
  library.call('nvjpegGetHardwareDecoderInfo', opened, out.address, out.address + 4);
  if (out.u32[0] === 0) return undefined;
  const handle = createHandle(library, BACKEND_HARDWARE);
  const lanes: Lane[] = [];
  try {
    lanes.push(createLane(library, handle));
    library.call('nvjpegJpegStreamCreate', handle, out.address);
    return { handle, lane: lanes[0]!, parsed: out.u64(0) };
  } catch (error) {
    release(library, { handle, lanes });
    throw error;
  }
}

/** Results of nvjpegGetImageInfo and nvjpegImage_t, in {@link NvjpegLibrary.out}. */
const [COMPONENTS, SUBSAMPLING, WIDTHS, HEIGHTS, IMAGE, PITCHES] = [0, 4, 16, 32, 64, 96];

/**
 * Copies of files that other threads may write to: nvJPEG reads them more than once, and they must
 * not change.
 */
let copies: NativeMemory | undefined;

/** Gives the addresses of the pictures' files, which are valid until the next call. */
function sourcesOf(pictures: readonly Coded[]): number[] {
  const { offsets, bytes } = placesOf(
    pictures.map(({ source, length }) => (typeof source === 'number' ? 0 : length)),
  );
  if (
    copies !== undefined &&
    (copies.bytes.length < bytes ||
      copies.bytes.length > Math.max(MOST_KEPT_BYTES, capacityFor(bytes)))
  )
    copies = undefined;
  if (bytes > 0) copies ??= new NativeMemory(crewKoffi(), capacityFor(bytes));
  return pictures.map(({ source, length }, i) => {
    if (typeof source === 'number') return source;
    copies!.bytes.set(new Uint8Array(source.memory, source.offset, length), offsets[i]);
    return copies!.address + offsets[i]!;
  });
}

function decode(library: NvjpegLibrary, request: DecodeRequest): void {
  const { handle, lane, length, format, width, height, address, pitch } = request;
  const { out } = library;
  const source = sourcesOf([request])[0]!;
  library.call(
    'nvjpegGetImageInfo',
    handle,
    source,
    length,
    out.address + COMPONENTS,
    out.address + SUBSAMPLING,
    out.address + WIDTHS,
    out.address + HEIGHTS,
  );
  const [readWidth, readHeight] = [out.i32[WIDTHS / 4], out.i32[HEIGHTS / 4]];
  if (readWidth !== width || readHeight !== height) {
    throw new Refused({
      reason: 'format',
      message:
        `nvJPEG ${library.version} reads ${readWidth} × ${readHeight} pixels, and its header ` +
        `says ${width} × ${height}`,
    });
  }
  out.bytes.fill(0, IMAGE, IMAGE + 64);
  out.setU64(IMAGE, address);
  out.setU64(PITCHES, pitch);
  try {
    library.call(
      'nvjpegDecode',
      handle,
      lane.state,
      source,
      length,
      format,
      out.address + IMAGE,
      lane.stream,
    );
  } finally {
    // The stream is waited for also after a failure: the call may have begun to write.
    library.callDriver('cuStreamSynchronize', lane.stream);
  }
}

/** Arrays for nvjpegDecodeBatched: addresses, lengths, and nvjpegImage_t. */
const [SOURCES, LENGTHS, IMAGES, IMAGE_BYTES] = [0, 8 * MOST_IN_BATCH, 16 * MOST_IN_BATCH, 64];
let batch: NativeMemory | undefined;
/**
 * The lane whose state is undefined after a failure. It may have further requests, from before the
 * failure was reported.
 */
let brokenLane: number | undefined;

function decodeBatch(
  library: NvjpegLibrary,
  { hardware: { handle, lane, parsed }, lane: number, format, pictures }: BatchRequest,
): BatchAnswer {
  const all = pictures.map((_, i) => i);
  if (number === brokenLane) return { left: all, broken: true };
  const sources = sourcesOf(pictures);
  const taken = pictures.flatMap((picture, i) =>
    isTaken(library, handle, parsed, sources[i]!, picture) ? [i] : [],
  );
  if (taken.length > 0) {
    batch ??= new NativeMemory(crewKoffi(), (16 + IMAGE_BYTES) * MOST_IN_BATCH);
    batch.bytes.fill(0);
    for (const [k, i] of taken.entries()) {
      const { length, address, pitch } = pictures[i]!;
      batch.setU64(SOURCES + 8 * k, sources[i]!);
      batch.setU64(LENGTHS + 8 * k, length);
      batch.setU64(IMAGES + IMAGE_BYTES * k, address);
      batch.setU64(IMAGES + IMAGE_BYTES * k + (PITCHES - IMAGE), pitch);
    }
    try {
      // The next batch may have another number of pictures; the call takes no time.
      library.call('nvjpegDecodeBatchedInitialize', handle, lane.state, taken.length, 1, format);
      library.call(
        'nvjpegDecodeBatched',
        handle,
        lane.state,
        batch.address + SOURCES,
        batch.address + LENGTHS,
        batch.address + IMAGES,
        lane.stream,
      );
    } catch (error) {
      if (statusOf(error) === undefined) throw error;
      brokenLane = number;
      return { left: all, broken: true };
    } finally {
      library.callDriver('cuStreamSynchronize', lane.stream);
    }
  }
  const decoded = new Set(taken);
  return { left: all.filter((i) => !decoded.has(i)), broken: false };
}

/** Whether the hardware decoders take it, and its size is that of the allocated memory. */
function isTaken(
  library: NvjpegLibrary,
  handle: number,
  parsed: number,
  source: number,
  { length, width, height }: Coded,
): boolean {
  const { out } = library;
  try {
    library.call('nvjpegJpegStreamParseHeader', handle, source, length, parsed);
    library.call('nvjpegDecodeBatchedSupported', handle, parsed, out.address);
    library.call('nvjpegJpegStreamGetFrameDimensions', parsed, out.address + 4, out.address + 8);
  } catch (error) {
    if (statusOf(error) === undefined) throw error;
    return false;
  }
  // 0 means supported.
  return out.u32[0] === 0 && out.u32[1] === width && out.u32[2] === height;
}

/** Releases what it can: after a fault of the device every call fails. */
function release(
  library: NvjpegLibrary,
  {
    handle,
    lanes,
    parsed = 0,
  }: { readonly handle: number; readonly lanes: readonly Lane[]; readonly parsed?: number },
): void {
  const attempt = (call: () => void): void => {
    try {
      call();
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
    }
  };
  for (const { state, stream } of lanes) {
    attempt(() => {
      library.call('nvjpegJpegStateDestroy', state);
    });
    attempt(() => {
      library.callDriver('cuStreamDestroy_v2', stream);
    });
  }
  if (parsed !== 0)
    attempt(() => {
      library.call('nvjpegJpegStreamDestroy', parsed);
    });
  if (handle !== 0)
    attempt(() => {
      library.call('nvjpegDestroy', handle);
    });
}

type Answering = {
  readonly [K in Request['kind']]: (
    library: NvjpegLibrary,
    request: Extract<Request, { kind: K }>,
  ) => Answers[K];
};

const ANSWERING: Answering = {
  // The first handle makes nvJPEG load code onto the device.
  open: (library) => ({
    path: library.path,
    version: library.version,
    handle: whileLoading(() => createHandle(library, BACKEND_DEFAULT)),
  }),
  lane: (library, { handle }) => createLane(library, handle),
  locate: (_, { memory }) => Number(crewKoffi().address(new Uint8Array(memory))),
  decode: (library, request) => {
    decode(library, request);
    return undefined;
  },
  hardware: (library, { handle }) => whileLoading(() => createHardware(library, handle)),
  batch: (library, request) => decodeBatch(library, request),
  release: (library, request) => {
    release(library, request);
    return undefined;
  },
};

function refusalOf(error: unknown): Refusal {
  if (error instanceof Refused) return error.refusal;
  if (error instanceof LibraryNotFoundError)
    return { reason: 'no-library', message: error.message };
  return {
    reason: 'internal',
    message: error instanceof Error ? (error.stack ?? error.message) : String(error),
  };
}

answerRequests((request: Request) => {
  const answer = ANSWERING[request.kind] as (
    library: NvjpegLibrary,
    request: Request,
  ) => Answers[keyof Answers];
  return answer(onDevice(request), request);
}, refusalOf);
