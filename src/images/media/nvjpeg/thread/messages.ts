/**
 * What the JS thread and the threads of nvJPEG say to each other. Pointers are numbers: they are
 * the whole process's.
 */

/** The libraries' files, where they are known, and where they are looked for. */
export interface NvjpegPlace {
  readonly path: string | undefined;
  readonly driver: string | undefined;
  /**
   * The variables to look by; without them the thread's own. They come once: there are many, and
   * each message has a copy of its own.
   */
  readonly env?: Readonly<Record<string, string | undefined>>;
}

/** What decodes one JPEG at a time: a state, and the stream that it works on. */
export interface Lane {
  readonly state: number;
  readonly stream: number;
}

interface OfDevice {
  readonly place: NvjpegPlace;
  /** The device's CUcontext. */
  readonly context: number;
}

/** Bytes of memory for files that is kept while nothing is decoded, at most. */
export const MOST_KEPT_BYTES = 2 ** 22;

/** A file in memory that others may write to meanwhile, from byte `offset` on. */
export interface SharedFile {
  readonly memory: SharedArrayBuffer;
  readonly offset: number;
}

/** A JPEG, and where its pixels go. */
export interface Coded {
  /**
   * Where the file lies, which stays as it is until this is answered, or one that the thread is to
   * copy first; and its bytes.
   */
  readonly source: number | SharedFile;
  readonly length: number;
  /** Of the header: what nvJPEG reads has to be the same, for so much was allocated. */
  readonly width: number;
  readonly height: number;
  /** Where the first pixel goes; rows follow one another after so many bytes. */
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

/** What decodes several JPEGs in one call, by the GPU's own decoders. */
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
  /** Tells the hardware's lane from others of the process, also from those that were given back. */
  readonly lane: number;
  /** nvjpegOutputFormat_t of all of them. */
  readonly format: number;
  readonly pictures: readonly Coded[];
}

export const MOST_IN_BATCH = 32;

export interface BatchAnswer {
  /**
   * Which were not decoded, by their places: the GPU's decoders do not take them, or they are
   * damaged.
   */
  readonly left: readonly number[];
  /**
   * Whether a call failed, of this batch or one before it on the same lane, after which nobody says
   * what the state holds.
   */
  readonly broken: boolean;
}

export type Request =
  | (OfDevice & { readonly kind: 'open' })
  | (OfDevice & { readonly kind: 'lane'; readonly handle: number })
  /** Where the memory lies. */
  | (OfDevice & { readonly kind: 'locate'; readonly memory: SharedArrayBuffer })
  | DecodeRequest
  /** `handle` is the one that was opened. */
  | (OfDevice & { readonly kind: 'hardware'; readonly handle: number })
  | BatchRequest
  /** A handle of 0 is kept. */
  | (OfDevice & {
      readonly kind: 'release';
      readonly handle: number;
      readonly lanes: readonly Lane[];
      readonly parsed?: number;
    });

export interface Opened {
  readonly path: string;
  /** e.g. `13.3.2` */
  readonly version: string;
  readonly handle: number;
}

/** What each kind of request gives. */
export interface Answers {
  readonly open: Opened;
  readonly lane: Lane;
  readonly locate: number;
  readonly decode: undefined;
  /** Undefined where the GPU has no decoders, or this version of nvJPEG does not know of them. */
  readonly hardware: Hardware | undefined;
  readonly batch: BatchAnswer;
  readonly release: undefined;
}

/** Why a request failed. */
export type Refusal =
  | { readonly reason: 'no-library'; readonly message: string }
  | { readonly reason: 'unsupported'; readonly message: string }
  /** nvJPEG reads another size than stands in the header. */
  | { readonly reason: 'format'; readonly message: string }
  | {
      readonly reason: 'status';
      readonly library: string;
      readonly call: string;
      readonly status: number;
    }
  | { readonly reason: 'driver'; readonly call: string; readonly status: number }
  | { readonly reason: 'internal'; readonly message: string };
