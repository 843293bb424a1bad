/**
 * What the JS thread and the threads of ONNX Runtime say to each other. Pointers are numbers: they
 * are the whole process's.
 */

import type { LineMemory } from '../../core/work-line.js';

/** Where the library is searched for. */
export interface LibraryPlace {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Where npm packages are resolved from. */
  readonly modules: readonly string[];
  /** Whether a build that has the CUDA provider is preferred to what is found first. */
  readonly cuda: boolean;
}

/** A model's file, or its bytes: memory that both threads see, or that is handed over. */
export type ModelSource =
  { readonly path: string } | { readonly bytes: SharedArrayBuffer | ArrayBuffer };

/** Who computes: `cpu`, or `cuda` with the ordinal of the GPU. */
export type ProviderName = 'cuda' | 'cpu';

/** What only the CUDA provider is told. */
export interface CudaSettings {
  /** cudnn_conv_algo_search */
  readonly search: string;
  /** prefer_nhwc; undefined for what suits the library's version. */
  readonly layout: 'nchw' | 'nhwc' | undefined;
  /** fuse_conv_bias; undefined likewise. */
  readonly fuse: boolean | undefined;
}

/** A session whose runs are recorded in graphs. */
export interface RecordedSession {
  /** Of all of the process's. */
  readonly id: number;
  readonly session: number;
  /** What its runs go to, of the driver. */
  readonly stream: number;
}

export interface LoadRequest {
  readonly kind: 'load';
  readonly place: LibraryPlace;
  readonly model: ModelSource;
  /** GraphOptimizationLevel */
  readonly optimisation: number;
  /** 0 for the library's choice. */
  readonly threads: number;
  readonly spinning: boolean;
  /** Whether those that spin stop at the end of a run. */
  readonly restsBetween: boolean;
  readonly interOpThreads: number;
  /** See `niceness.ts`. */
  readonly niceness: number;
  /**
   * The first of the list that the library has; a provider that it has and that does not load is an
   * error, unless `lenient`.
   */
  readonly providers: readonly ProviderName[];
  readonly lenient: boolean;
  /** Of the GPU. */
  readonly ordinal: number;
  readonly cuda: CudaSettings;
  /**
   * Whether its runs are to be recorded in graphs, by the CUDA provider: on a stream of its own.
   */
  readonly recorded: boolean;
}

/** A value of a model as the library describes it. */
export interface ValueInfo {
  readonly name: string;
  /** ONNXTensorElementDataType */
  readonly type: number;
  /** -1 where it is not fixed. */
  readonly shape: readonly number[];
  /** Empty where an extent has no name. */
  readonly dimensions: readonly string[];
}

export interface Loaded {
  readonly library: LibraryInfo;
  readonly session: number;
  /** Where its runs are recorded; else 0. */
  readonly stream: number;
  readonly provider: ProviderName;
  readonly inputs: readonly ValueInfo[];
  readonly outputs: readonly ValueInfo[];
  /** Why a better provider was passed over. */
  readonly passedOver: string | undefined;
}

/** A library that was found. */
export interface LibraryInfo {
  readonly path: string;
  readonly version: string;
  readonly providers: readonly string[];
}

/**
 * A tensor that lies somewhere: in the process's memory, or in that of the GPU where the session's
 * provider is one of a GPU.
 */
export interface PlacedTensor {
  /** ONNXTensorElementDataType */
  readonly type: number;
  readonly shape: readonly number[];
  readonly address: number;
  readonly bytes: number;
}

export interface RunRequest {
  readonly kind: 'run';
  /** Which library the session is of. */
  readonly path: string;
  readonly session: number;
  readonly runOptions: number;
  readonly niceness: number;
  /** Whether an earlier run with these options was ended, which they remember. */
  readonly unset: boolean;
  readonly memory: ProviderName;
  readonly ordinal: number;
  readonly inputNames: readonly string[];
  readonly inputs: readonly PlacedTensor[];
  readonly outputNames: readonly string[];
  /** Where an output goes; undefined where the library makes it, in the process's memory. */
  readonly outputs: readonly (PlacedTensor | undefined)[];
}

/** What runs on the same tensors have in common. */
export type BindRequest = Omit<
  RunRequest,
  'kind' | 'session' | 'runOptions' | 'niceness' | 'unset' | 'outputs'
> & { readonly kind: 'bind'; readonly outputs: readonly PlacedTensor[] };

/**
 * Arguments of a run as the library takes them: addresses, and the values, which are the asker's to
 * release.
 */
export interface Bound {
  readonly values: readonly number[];
  readonly inputNames: number;
  readonly inputs: number;
  readonly outputNames: number;
  readonly outputs: number;
  /** What the addresses are of: to be kept as long as they are used. */
  readonly memory: SharedArrayBuffer;
}

/** What a run is recorded with: a session, and tensors that are {@link Bound}. */
export interface RecordRequest {
  readonly kind: 'record';
  readonly path: string;
  readonly niceness: number;
  readonly ordinal: number;
  readonly session: RecordedSession;
  readonly inputNames: readonly string[];
  readonly inputs: readonly Omit<PlacedTensor, 'address'>[];
  readonly outputNames: readonly string[];
  readonly outputs: readonly Omit<PlacedTensor, 'address'>[];
  readonly bound: Bound;
}

/** Of the driver: an executable graph, the one that it was made of, and how many nodes it has. */
export interface RecordedGraph {
  readonly graph: number;
  readonly exec: number;
  readonly nodes: number;
}

/** An output that the library has made: kept until it is taken. */
export interface MadeValue {
  readonly value: number;
  readonly data: number;
  readonly shape: readonly number[];
  readonly bytes: number;
}

export type Request =
  | { readonly kind: 'find'; readonly place: LibraryPlace }
  | LoadRequest
  /** Another thread may cancel a load that is under way. */
  | { readonly kind: 'cancel'; readonly path: string; readonly options: number }
  | { readonly kind: 'runOptions'; readonly path: string }
  | RunRequest
  | BindRequest
  | RecordRequest
  /**
   * Sees to runs in the order of a stream: numbers of an entry are session, options of the run, and
   * of a {@link Bound} what Run takes, in its order.
   */
  | {
      readonly kind: 'line';
      readonly path: string;
      readonly niceness: number;
      readonly memory: LineMemory;
    }
  /** Another thread may end a run that is under way. */
  | { readonly kind: 'terminate'; readonly path: string; readonly runOptions: number }
  /** Copies values to addresses of the process, where they have one, and releases them. */
  | {
      readonly kind: 'take';
      readonly path: string;
      readonly values: readonly {
        readonly value: number;
        readonly data: number;
        readonly to: number;
        readonly bytes: number;
      }[];
    }
  | {
      readonly kind: 'release';
      readonly path: string;
      readonly session: number;
      readonly runOptions: readonly number[];
    }
  | {
      readonly kind: 'releaseRecorded';
      readonly path: string;
      readonly ordinal: number;
      readonly session: number;
      readonly stream: number;
    }
  /** Where memory that both threads see begins in the process. */
  | { readonly kind: 'address'; readonly buffer: SharedArrayBuffer };

/** What each kind of request gives. */
export interface Answers {
  readonly find: LibraryInfo;
  readonly load: Loaded;
  readonly cancel: undefined;
  readonly runOptions: number;
  readonly run: readonly (MadeValue | undefined)[];
  readonly bind: Bound;
  readonly record: RecordedGraph;
  readonly line: undefined;
  readonly terminate: undefined;
  readonly take: undefined;
  readonly release: undefined;
  readonly releaseRecorded: undefined;
  readonly address: number;
}

/** Why a request failed. */
export type Refusal =
  | { readonly reason: 'no-library'; readonly message: string }
  | { readonly reason: 'unsupported'; readonly message: string }
  /** A function of the library's gave a status. */
  | {
      readonly reason: 'status';
      readonly library: string;
      readonly call: string;
      readonly status: number;
      readonly statusName: string;
      readonly message: string;
    }
  | { readonly reason: 'internal'; readonly message: string };

/** Told while a model is loaded: it can be cancelled from here on. */
export interface LoadUnderWay {
  readonly path: string;
  readonly options: number;
}
