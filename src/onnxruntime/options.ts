/** The options of loading a model. */
import { availableParallelism } from 'node:os';

import { CudaError } from '../core/index.js';
import type { CoreDevice } from '../core/index.js';
import {
  checkBoolean,
  checkInteger,
  checkOptions,
  checkSignal,
  invalid,
} from '../ground/arguments.js';
import type { CudaSettings, ProviderName } from './thread/messages.js';

export type OptimisationLevel = 'none' | 'basic' | 'extended' | 'all';
/** How the CUDA provider chooses the algorithm of a convolution: cudnn_conv_algo_search. */
export type ConvolutionSearch = 'heuristic' | 'exhaustive' | 'default';
/** The order in which the CUDA provider keeps channels: prefer_nhwc. */
export type Layout = 'nchw' | 'nhwc';

/** A model: its file, or its bytes. */
export type ModelSource = string | URL | Uint8Array | ArrayBuffer | SharedArrayBuffer;

/** The shape of each of a model's inputs, by name. */
export type InputShapes = Readonly<Record<string, readonly number[]>>;

/** Options of {@link loadOnnxEngine}. */
export interface OnnxRuntimeOptions {
  /**
   * The provider that computes: the first of the list that the library has. Default: on a GPU
   * `['cuda', 'cpu']`, where a CUDA provider that does not load is skipped with a warning; on a CPU
   * device `['cpu']`. An explicit list is strict: `['cuda']` fails where there is none.
   */
  readonly providers?: readonly ProviderName[];
  /**
   * Threads that one run is spread over. Default: as many as there are cores where they sleep
   * (`spinning: false`), otherwise three for every four cores, but all of one or two. With a
   * spinning thread on each core the event loop, the device's thread and these take turns of 4 ms:
   * on 16 cores a run took 12 to 20 ms instead of 4.5, and the event loop was blocked for 10 to 22
   * ms instead of 2.
   */
  readonly threads?: number;
  /**
   * Whether those threads spin while they wait for one another: session.intra_op.allow_spinning.
   * Default true, which is fastest where nothing else runs. With `false` they sleep, and leave
   * their cores to the event loop and to others: a server on 16 cores whose model is small gave 1.3
   * to 1.5 × the answers a second, and the slowest of them in half to three quarters of the time.
   * Where there are threads for all cores they stop at the end of a run,
   * session.force_spinning_stop: on two cores the thread that awaited a run had waited for a core,
   * and a run of 6 ms took 5 % longer.
   */
  readonly spinning?: boolean;
  /**
   * How far the library's threads give way to others of the process and of the machine: a niceness
   * of Linux, 0 to 19. Default 10, so that the event loop comes first where cores are busy (the
   * example server at 80 % of its capacity, 16 cores: blocked for 2.9 ms at most, on average of
   * five runs, and for 3.7 without). A thread that has computed for one engine keeps the greatest
   * niceness that it was given.
   */
  readonly niceness?: number;
  /**
   * Threads for parts of a model that do not depend on one another. Default: the library's, which
   * runs them one after the other.
   */
  readonly interOpThreads?: number;
  /** The optimisations of the graph: GraphOptimizationLevel. Default `all`. */
  readonly optimisation?: OptimisationLevel;
  /**
   * What the CUDA provider does where a convolution has a new shape. `heuristic`, the default,
   * queries cuDNN; `exhaustive` measures all algorithms, which took six times as long and found
   * none that was faster; `default` always takes the same one.
   */
  readonly convolutionSearch?: ConvolutionSearch;
  /**
   * The order in which the CUDA provider computes. Default `nhwc`, as tensor cores have it, where
   * the library is 1.20 or later; inputs and outputs keep the model's layout.
   */
  readonly layout?: Layout;
  /**
   * Whether the CUDA provider computes a convolution with its bias and activation in one kernel:
   * fuse_conv_bias. Default true for `nhwc` where the library is 1.20 or later: on an H100 a run of
   * ResNet-50 on 32 photographs took 3.7 ms, and 5.0 without. Otherwise false: with `nchw` it was
   * slower (7.7 for 6.0).
   */
  readonly fuseConvolutions?: boolean;
  /**
   * Shapes of inputs, 1 to 32, that the CUDA provider is ready for at once. Default 8. Its
   * convolutions are planned for the shapes of the session's last run, and planned anew where these
   * change, which takes far longer than a run. So shapes that are repeated get sessions of their
   * own, each with the model's weights, while at least half of the device's memory is free. A model
   * that is given as bytes is kept until the engine is closed.
   *
   * Where the shapes themselves are given, `[{ image: [1, 3, 224, 224] }, { image: [32, 3, 224,
   * 224] }]`, their sessions are loaded with the engine, and no run takes place while one is
   * loaded; the first run of each still plans. Other shapes plan each time.
   */
  readonly shapes?: number | readonly InputShapes[];
  /**
   * Runs at once of {@link Engine.infer}, 1 to 64. Default 4, with the CUDA provider 2: while one
   * runs the next is queued, and more would only share the GPU and end together. (Six batches of
   * photographs on their way to ResNet-50, H100: with two 8700 a second, with six 5400.) Runs that
   * are {@link graphs} are queued at once, and run one after the other.
   */
  readonly contexts?: number;
  /**
   * Whether repeated runs by the CUDA provider are recorded, and are one launch of a graph from
   * then on: on the same memory, or of the same shapes, with copies on the device around it.
   * Default true: on an H100 a run of a small detector takes 0.22 ms instead of 0.4, ResNet-50 on
   * one photograph 0.54 instead of 1.0. It takes the model's weights once more for each shape of
   * the inputs, up to eight, the inputs and outputs themselves, and only while half of the device's
   * memory is free. A model of which the processor computes something, or that may draw random
   * numbers, is run as with `false`.
   */
  readonly graphs?: boolean;
  /**
   * Whether the model's declarations have to hold: extents of one name are equal, and outputs have
   * the declared shapes. Default false, as in ONNX Runtime itself: exporters write one name for
   * extents that differ, or the extents of the example that they traced. The first run on inputs of
   * certain shapes then records the outputs' shapes: it is no faster than a run whose shapes only
   * the run gives. With `true` no run has to do so, wrong inputs are refused at the call, and an
   * output of another shape is an error.
   */
  readonly strictShapes?: boolean;
  /** Cancels loading, where the library (1.22 and later) can; otherwise the result is discarded. */
  readonly signal?: AbortSignal | undefined;
}

/** The library's numbers of the levels. */
const LEVELS: Readonly<Record<OptimisationLevel, number>> = {
  none: 0,
  basic: 1,
  extended: 2,
  all: 99,
};
const MOST_CONTEXTS = 64;
const MOST_NICENESS = 19;
const DEFAULT_NICENESS = 10;
const DEFAULT_CONTEXTS: Readonly<Record<ProviderName, number>> = { cpu: 4, cuda: 2 };
const MOST_LIBRARY_THREADS = 1024;
const MOST_SHAPES = 32;
const DEFAULT_SHAPES = 8;
/** The provider's names of the searches. */
const SEARCHES: Readonly<Record<ConvolutionSearch, string>> = {
  heuristic: 'HEURISTIC',
  exhaustive: 'EXHAUSTIVE',
  default: 'DEFAULT',
};
const LAYOUTS: readonly Layout[] = ['nchw', 'nhwc'];

export const OPTION_NAMES: readonly string[] = [
  'providers',
  'threads',
  'spinning',
  'niceness',
  'interOpThreads',
  'optimisation',
  'convolutionSearch',
  'layout',
  'fuseConvolutions',
  'shapes',
  'contexts',
  'graphs',
  'strictShapes',
  'signal',
];

/** The options with their defaults. */
export interface CheckedOptions {
  readonly providers: readonly ProviderName[];
  /** Whether the next provider is taken where one does not load. */
  readonly lenient: boolean;
  readonly threads: number;
  readonly spinning: boolean;
  readonly restsBetween: boolean;
  readonly niceness: number;
  readonly interOpThreads: number;
  readonly optimisation: number;
  readonly cuda: CudaSettings;
  /** The most sessions. */
  readonly shapes: number;
  /** The shapes whose sessions are loaded with the engine. */
  readonly shapesAtOnce: readonly InputShapes[];
  /** Runs at once, for each provider that may compute. */
  readonly contexts: Readonly<Record<ProviderName, number>>;
  /** Whether runs are recorded. */
  readonly graphs: boolean;
  readonly strictShapes: boolean;
  readonly signal: AbortSignal | undefined;
}

export function checkLoadOptions(device: CoreDevice, options: OnnxRuntimeOptions): CheckedOptions {
  checkOptions('options', options, OPTION_NAMES);
  const {
    providers,
    spinning = true,
    threads = defaultThreads(spinning),
    niceness = DEFAULT_NICENESS,
    interOpThreads,
    optimisation = 'all',
    convolutionSearch = 'heuristic',
    layout,
    fuseConvolutions,
    shapes = DEFAULT_SHAPES,
    contexts,
    graphs = true,
    strictShapes = false,
    signal,
  } = options;
  // The default may be 0, which callers may not pass.
  if (options.threads !== undefined)
    checkInteger('options.threads', options.threads, 1, MOST_LIBRARY_THREADS, 'threads');
  if (interOpThreads !== undefined)
    checkInteger('options.interOpThreads', interOpThreads, 1, MOST_LIBRARY_THREADS, 'threads');
  checkInteger('options.niceness', niceness, 0, MOST_NICENESS);
  const shapesAtOnce = typeof shapes === 'number' ? [] : checkShapesAtOnce(shapes);
  const most = typeof shapes === 'number' ? shapes : shapes.length;
  checkInteger('options.shapes', most, 1, MOST_SHAPES, 'shapes');
  if (contexts !== undefined)
    checkInteger('options.contexts', contexts, 1, MOST_CONTEXTS, 'runs at once');
  checkBoolean('options.spinning', spinning);
  checkOneOf('options.optimisation', Object.keys(LEVELS), optimisation);
  checkOneOf('options.convolutionSearch', Object.keys(SEARCHES), convolutionSearch);
  checkBoolean('options.fuseConvolutions', fuseConvolutions);
  checkBoolean('options.graphs', graphs);
  checkBoolean('options.strictShapes', strictShapes);
  if (layout !== undefined) checkOneOf('options.layout', LAYOUTS, layout);
  checkSignal(signal);
  return {
    providers:
      providers === undefined
        ? device.kind === 'cuda'
          ? ['cuda', 'cpu']
          : ['cpu']
        : checkProviders(device, providers),
    lenient: providers === undefined,
    threads,
    spinning,
    restsBetween: spinning && takesAllCores(threads),
    niceness,
    interOpThreads: interOpThreads ?? 0,
    optimisation: LEVELS[optimisation],
    cuda: { search: SEARCHES[convolutionSearch], layout, fuse: fuseConvolutions },
    shapes: most,
    shapesAtOnce,
    contexts: contexts === undefined ? DEFAULT_CONTEXTS : { cpu: contexts, cuda: contexts },
    graphs,
    strictShapes,
    signal,
  };
}

/** Checks the list as far as it can be checked without the model. */
function checkShapesAtOnce(given: unknown): readonly InputShapes[] {
  if (!Array.isArray(given) || given.length === 0)
    throw invalid(
      'options.shapes',
      `a number from 1 to ${MOST_SHAPES}, or a list of shapes by the inputs' names: [{ ` +
        'image: [1, 3, 224, 224] }]',
      given,
    );
  return given as readonly InputShapes[];
}

/** Returns the number of threads; 0 is the library's own number, one for each core. */
function defaultThreads(spinning: boolean): number {
  const cores = availableParallelism();
  return spinning && cores > 2 ? Math.ceil((cores * 3) / 4) : 0;
}

/**
 * Whether the threads take all cores. The JavaScript thread and the device's would then wait for a
 * core after a run, until the threads sleep.
 */
function takesAllCores(threads: number): boolean {
  return threads === 0 || threads >= availableParallelism();
}

function checkOneOf(argument: string, names: readonly string[], given: unknown): void {
  if (!names.includes(given as string))
    throw invalid(argument, `one of ${names.map((name) => `'${name}'`).join(', ')}`, given);
}

function checkProviders(
  device: CoreDevice,
  providers: readonly unknown[],
): readonly ProviderName[] {
  if (
    !Array.isArray(providers) ||
    providers.length === 0 ||
    providers.some((name) => name !== 'cuda' && name !== 'cpu')
  ) {
    throw invalid('options.providers', `a list of 'cuda' and 'cpu'`, providers);
  }
  if (device.kind === 'cpu' && providers.includes('cuda')) {
    throw new CudaError(
      'ERR_CUDA_UNSUPPORTED',
      `options.providers: the CUDA provider computes on NVIDIA GPUs, and ${device.name} is a ` +
        `CPU device. Open one, Device.open('cuda'), or leave the option out.`,
    );
  }
  return providers as ProviderName[];
}
