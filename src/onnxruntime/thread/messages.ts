/**
 * The messages between the JavaScript thread and the threads of ONNX Runtime. Pointers are numbers,
 * valid in the whole process.
 */

import type { LineMemory } from '../../core/work-line.js';

/** Where the library is searched for. */
export interface LibraryPlace {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Paths from which npm packages are resolved. */
  readonly modules: readonly string[];
  /** Whether a build that has the CUDA provider is preferred to the first that is found. */
  readonly cuda: boolean;
}

/** A model's file, or its bytes: shared memory, or memory that is transferred. */
export type ModelSource =
  { readonly path: string } | { readonly bytes: SharedArrayBuffer | ArrayBuffer };

/** The provider that computes: `cpu`, or `cuda` with the ordinal of the GPU. */
export type ProviderName = 'cuda' | 'cpu';

/** Settings of the CUDA provider only. */
export interface CudaSettings {
  /** cudnn_conv_algo_search */
  readonly search: string;
  /** prefer_nhwc; undefined for the default of the library's version. */
  readonly layout: 'nchw' | 'nhwc' | undefined;
  /** fuse_conv_bias; undefined for the default of the library's version. */
  readonly fuse: boolean | undefined;
}

/** A session whose runs are recorded in graphs. */
export interface RecordedSession {
  /** A number that is unique in the process. */
  readonly id: number;
  readonly session: number;
  /** The driver's stream of its runs. */
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
  /** Whether threads that spin stop at the end of a run. */
  readonly restsBetween: boolean;
  readonly interOpThreads: number;
  /** See `niceness.ts`. */
  readonly niceness: number;
  /**
   * The provider is the first of the list that the library has; one that the library has and that
   * does not load is an error, unless `lenient`.
   */
  readonly providers: readonly ProviderName[];
  readonly lenient: boolean;
  /** The ordinal of the GPU. */
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
  /** The extents; -1 where one is not fixed. */
  readonly shape: readonly number[];
  /** The names of the extents; empty where one has no name. */
  readonly dimensions: readonly string[];
}

export interface Loaded {
  readonly library: LibraryInfo;
  readonly session: number;
  /** The stream of its runs where they are recorded; otherwise 0. */
  readonly stream: number;
  readonly provider: ProviderName;
  readonly inputs: readonly ValueInfo[];
  readonly outputs: readonly ValueInfo[];
  /** Why a provider before it in the list was skipped. */
  readonly passedOver: string | undefined;
}

/** A library that was found. */
export interface LibraryInfo {
  readonly path: string;
  readonly version: string;
  readonly providers: readonly string[];
}

/**
 * A tensor at an address: in the process's memory, or in that of the GPU where the session's
 * provider is that of the GPU.
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
  /** The path of the session's library. */
  readonly path: string;
  readonly session: number;
  readonly runOptions: number;
  readonly niceness: number;
  /** Whether an earlier run with these options was ended: the options keep that. */
  readonly unset: boolean;
  readonly memory: ProviderName;
  readonly ordinal: number;
  readonly inputNames: readonly string[];
  readonly inputs: readonly PlacedTensor[];
  readonly outputNames: readonly string[];
  /**
   * The targets of the outputs; undefined where the library makes an output, in the process's
   * memory.
   */
  readonly outputs: readonly (PlacedTensor | undefined)[];
}

/** The arguments that runs on the same tensors have in common. */
export type BindRequest = Omit<
  RunRequest,
  'kind' | 'session' | 'runOptions' | 'niceness' | 'unset' | 'outputs'
> & { readonly kind: 'bind'; readonly outputs: readonly PlacedTensor[] };

/**
 * Arguments of a run in the library's form: addresses, and the values, which the caller has to
 * release.
 */
export interface Bound {
  readonly values: readonly number[];
  readonly inputNames: number;
  readonly inputs: number;
  readonly outputNames: number;
  readonly outputs: number;
  /** The memory at the addresses, to be kept as long as they are used. */
  readonly memory: SharedArrayBuffer;
}

/** The arguments of recording a run: a session, and tensors that are {@link Bound}. */
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

/**
 * Handles of the driver: an executable graph, the graph that it was made of, and the number of its
 * nodes.
 */
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
   * Executes runs in the order of a stream: the numbers of an entry are the session, the options of
   * the run, and those of a {@link Bound} in the order of Run's arguments.
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
  /** Returns the address of shared memory in the process. */
  | { readonly kind: 'address'; readonly buffer: SharedArrayBuffer };

/** The answer to each kind of request. */
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

/** The reason why a request failed. */
export type Refusal =
  | { readonly reason: 'no-library'; readonly message: string }
  | { readonly reason: 'unsupported'; readonly message: string }
  /** A function of the library returned a status. */
  | {
      readonly reason: 'status';
      readonly library: string;
      readonly call: string;
      readonly status: number;
      readonly statusName: string;
      readonly message: string;
    }
  | { readonly reason: 'internal'; readonly message: string };

/** Sent while a model is loaded: it can be cancelled from then on. */
export interface LoadUnderWay {
  readonly path: string;
  readonly options: number;
}
