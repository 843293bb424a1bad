/**
 * Messages between the JavaScript thread and the threads of nvJPEG. Pointers are numbers, which are
 * valid in the whole process.
 */

/** The libraries' files, or the environment by which they are searched for. */
export interface NvjpegPlace {
  readonly path: string | undefined;
  readonly driver: string | undefined;
  /**
   * Environment variables for the search; without them the thread's own are used. They are sent
   * once, since each message has a copy of them.
   */
  readonly env?: Readonly<Record<string, string | undefined>>;
}

/** A decoder of one JPEG at a time: a state, and its stream. */
export interface Lane {
  readonly state: number;
  readonly stream: number;
}

interface OfDevice {
  readonly place: NvjpegPlace;
  /** The device's CUcontext. */
  readonly context: number;
}

/** Bytes of memory for files that are kept while nothing is decoded. */
export const MOST_KEPT_BYTES = 2 ** 22;

/** A file in shared memory, which other threads may write to, from byte `offset` on. */
export interface SharedFile {
  readonly memory: SharedArrayBuffer;
  readonly offset: number;
}

/** A JPEG, and where its pixels are written. */
export interface Coded {
  /**
   * The address of the file, which does not change before the response, or a shared file, which the
   * thread copies first; and its length in bytes.
   */
  readonly source: number | SharedFile;
  readonly length: number;
  /** The size in the header, for which memory was allocated: nvJPEG has to read the same. */
  readonly width: number;
  readonly height: number;
  /** Where the first pixel is written, and the pitch of rows in bytes. */
  readonly address: number;
  readonly pitch: number;
}

export interface DecodeRequest extends OfDevice, Coded {
  readonly kind: 'decode';
  readonly handle: number;
  readonly lane: Lane;
  /** nvjpegOutputFormat_t */
  readonly format: number;
}

/** A decoder of several JPEGs in one call, by the hardware decoders. */
export interface Hardware {
  readonly handle: number;
  readonly lane: Lane;
  /** nvjpegJpegStream_t, which headers are read into. */
  readonly parsed: number;
}

/** At most {@link MOST_IN_BATCH}. */
export interface BatchRequest extends OfDevice {
  readonly kind: 'batch';
  readonly hardware: Hardware;
  /**
   * The number of the hardware's lane, which is unique in the process, also among released ones.
   */
  readonly lane: number;
  /** nvjpegOutputFormat_t of all of them. */
  readonly format: number;
  readonly pictures: readonly Coded[];
}

export const MOST_IN_BATCH = 32;

export interface BatchAnswer {
  /**
   * The indices of pictures that were not decoded: the hardware decoders do not take them, or they
   * are damaged.
   */
  readonly left: readonly number[];
  /**
   * Whether a call failed, for this batch or one before it on the same lane, after which the state
   * is undefined.
   */
  readonly broken: boolean;
}

export type Request =
  | (OfDevice & { readonly kind: 'open' })
  | (OfDevice & { readonly kind: 'lane'; readonly handle: number })
  /** Gets the address of the memory. */
  | (OfDevice & { readonly kind: 'locate'; readonly memory: SharedArrayBuffer })
  | DecodeRequest
  /** Opens the hardware decoders; `handle` is the open one. */
  | (OfDevice & { readonly kind: 'hardware'; readonly handle: number })
  | BatchRequest
  /** Releases; with a handle of 0 the handle is kept. */
  | (OfDevice & {
      readonly kind: 'release';
      readonly handle: number;
      readonly lanes: readonly Lane[];
      readonly parsed?: number;
    });

export interface Opened {
  readonly path: string;
  /** The version, such as `13.3.2`. */
  readonly version: string;
  readonly handle: number;
}

/** The response to each kind of request. */
export interface Answers {
  readonly open: Opened;
  readonly lane: Lane;
  readonly locate: number;
  readonly decode: undefined;
  /** Undefined where the GPU has no hardware decoders, or this version of nvJPEG no functions. */
  readonly hardware: Hardware | undefined;
  readonly batch: BatchAnswer;
  readonly release: undefined;
}

/** The reason of a failed request. */
export type Refusal =
  | { readonly reason: 'no-library'; readonly message: string }
  | { readonly reason: 'unsupported'; readonly message: string }
  /** nvJPEG reads another size than the header has. */
  | { readonly reason: 'format'; readonly message: string }
  | {
      readonly reason: 'status';
      readonly library: string;
      readonly call: string;
      readonly status: number;
    }
  | { readonly reason: 'driver'; readonly call: string; readonly status: number }
  | { readonly reason: 'internal'; readonly message: string };
