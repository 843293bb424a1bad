/** A model that ONNX Runtime runs, on one device. */
import { setImmediate } from 'node:timers/promises';

import { CudaDisposedError, CudaError } from '../core/index.js';
import type { CoreDevice, Stream } from '../core/index.js';
import { checkOptions } from '../ground/arguments.js';
import { hostBase } from '../core/host-work.js';
import type {
  Engine,
  EngineInputs,
  InferOptions,
  NamedTensors,
  TensorInfo,
} from '../engine/engine.js';
import { RecentOps } from '../engine/recent-ops.js';
import { checkShapes } from '../engine/run-checks.js';
import { koffiPath } from '../native/koffi.js';
import { coreOf } from '../ops/scheduling.js';
import type { AnyDevice, DeviceOp } from '../ops/index.js';
import { OnnxContext } from './context.js';
import { dtypeOf, nameOfType } from './element-types.js';
import { engineOp } from './engine-op.js';
import { Bindings, shapesOf } from './line-run.js';
import { libraryPlace } from './library-place.js';
import { KeptModel, placeModel, transferOf } from './model-bytes.js';
import { checkLoadOptions } from './options.js';
import type { CheckedOptions, ModelSource, OnnxRuntimeOptions } from './options.js';
import { OutputShapes } from './output-shapes.js';
import { RunGraphs } from './run-graphs.js';
import { ShapeSessions } from './shape-sessions.js';
import { sendRequest } from './thread-crew.js';
import { outputsByValue } from './value-shapes.js';
import type {
  LibraryInfo,
  LoadUnderWay,
  Loaded,
  ModelSource as PlacedModel,
  ProviderName,
  ValueInfo,
} from './thread/messages.js';

/**
 * The providers' names. The CPU's provider reaches the memory of a CPU device, the CUDA provider
 * that of a GPU; otherwise tensors are copied.
 */
const NAMES: Readonly<Record<ProviderName, string>> = { cpu: 'CPU', cuda: 'CUDA' };

const NONE: ReadonlySet<string> = new Set();

/** The reasons for which a provider did not load, of which a warning was given. */
const passedOver = new Set<string>();

/**
 * Loads an ONNX model with ONNX Runtime, on a thread of its own.
 *
 * @param model a path, a `file:` URL, or the bytes, which are copied; data outside of the model is
 * found only for a path
 * @returns rejects with `CudaLibraryError`, with the code `ERR_CUDA_FORMAT` for a file that is no
 * model or is cut short, `ERR_CUDA_UNSUPPORTED` for an operator or an opset that this version lacks
 * (the message names it), `ERR_CUDA_NOT_FOUND` for a file that does not exist; with
 * `ERR_CUDA_NO_LIBRARY` where ONNX Runtime is not installed
 *
 * @example
 * ```ts
 * // A model of 86 bytes: c = a + b. Usually it is a path.
 * const model = Buffer.from(
 *   'CAg6TgoQCgFhCgFiEgFjGgAiA0FkZBIEdGVzdFoQCgFhEgsKCQgBEgUKAxIBbloQCgFiEgsKCQgBEgUKAxIB' +
 *     'bmIQCgFjEgsKCQgBEgUKAxIBbkIECgAQEQ==',
 *   'base64',
 * );
 * await using engine = await loadOnnxEngine(device, model, { threads: 1 });
 * const sums = engine.infer({ a: device.ones(f32, [2]), b: device.arange(f32, 2) });
 * console.log((await sums.andThen(({ c }) => c!.read())).join(' ')); // 1 2
 * ```
 */
export async function loadOnnxEngine(
  device: AnyDevice,
  model: ModelSource,
  options: OnnxRuntimeOptions = {},
): Promise<OnnxEngine> {
  const core = coreOf(device);
  core.check();
  const checked = checkLoadOptions(core, options);
  checked.signal?.throwIfAborted();
  const kept =
    (checked.shapes > 1 || checked.graphs) && checked.providers.includes('cuda')
      ? await KeptModel.of(model)
      : undefined;
  try {
    const engine = await loadFirst(core, model, checked, kept);
    if (engine.sessions.most === 1 && engine.graphs === undefined) kept?.drop();
    await prepared(engine, checked);
    return engine;
  } catch (error) {
    kept?.drop();
    throw error;
  }
}

/** Loads sessions for the shapes that the options name. */
async function prepared(
  engine: OnnxEngine,
  { shapesAtOnce, signal }: CheckedOptions,
): Promise<void> {
  try {
    [...shapesAtOnce].forEach((shapes, i) => {
      checkShapes(`options.shapes[${i}]`, engine, shapes);
    });
    await engine.sessions.prepare(
      shapesAtOnce.map((shapes) =>
        shapesOf(engine.inputs.map(({ name }) => ({ shape: shapes[name]! }))),
      ),
    );
    signal?.throwIfAborted();
  } catch (error) {
    await engine.close();
    throw error;
  }
}

async function loadFirst(
  core: CoreDevice,
  model: ModelSource,
  checked: CheckedOptions,
  kept: KeptModel | undefined,
): Promise<OnnxEngine> {
  const { signal } = checked;
  const placed = (await kept?.place()) ?? (await placeModel(model));
  const byValue = checked.strictShapes ? NONE : await outputsByValue(placed);
  signal?.throwIfAborted();
  const loaded = await load(core, placed, checked);
  if (loaded.passedOver !== undefined && !passedOver.has(loaded.passedOver)) {
    passedOver.add(loaded.passedOver);
    process.emitWarning(
      `ONNX Runtime's CUDA provider does not load, so the CPU computes: ` +
        `${loaded.passedOver.trim()}`,
      { type: 'CUDA_FALLBACK' },
    );
  }
  const give = (): Promise<unknown> =>
    sendRequest({
      kind: 'release',
      path: loaded.library.path,
      session: loaded.session,
      runOptions: [],
    });
  try {
    signal?.throwIfAborted();
    core.check();
    const base = loaded.provider === 'cpu' ? hostBase(core, koffiPath()) : undefined;
    await base;
    return new OnnxEngine(
      core,
      loaded,
      checked,
      base,
      sessionsOf(core, loaded, kept, checked),
      kept,
      byValue,
    );
  } catch (error) {
    await give();
    throw error;
  }
}

/**
 * Returns path, version and providers of the ONNX Runtime that `loadOnnxEngine` would use. Rejects
 * as {@link loadOnnxEngine} does where none is installed. `cuda`: whether a build with the CUDA
 * provider is preferred.
 *
 * @example
 * ```ts
 * const { version, providers } = await findOnnxRuntime();
 * console.log(/^1\./.test(version), providers.includes('CPUExecutionProvider')); // true true
 * ```
 */
export function findOnnxRuntime(options: { readonly cuda?: boolean } = {}): Promise<LibraryInfo> {
  checkOptions('options', options, ['cuda']);
  return sendRequest({ kind: 'find', place: libraryPlace(options.cuda === true) });
}

/** Returns the engine's sessions. A model whose inputs have one shape has one session. */
function sessionsOf(
  device: CoreDevice,
  { session, provider, inputs }: Loaded,
  kept: KeptModel | undefined,
  options: CheckedOptions,
): ShapeSessions {
  if (
    kept === undefined ||
    provider !== 'cuda' ||
    options.shapes === 1 ||
    !inputs.some(({ shape }) => shape.includes(-1))
  )
    return new ShapeSessions(session);
  return new ShapeSessions(session, {
    most: options.shapes,
    load: async () => (await loadAgain(device, kept, options))?.session,
    end: () => {
      kept.drop();
    },
  });
}

/**
 * Loads another session, while half of the device's memory is free and the model's file is
 * unchanged.
 */
async function loadAgain(
  device: CoreDevice,
  kept: KeptModel,
  options: CheckedOptions,
  recorded = false,
): Promise<Loaded | undefined> {
  const { free, total } = await device.memoryInfo();
  const placed = free < total / 2 ? undefined : await kept.place();
  if (placed === undefined) return undefined;
  return load(
    device,
    placed,
    { ...options, providers: ['cuda'], lenient: false, signal: undefined },
    recorded,
  );
}

async function load(
  device: CoreDevice,
  model: PlacedModel,
  options: CheckedOptions,
  recorded = false,
): Promise<Loaded> {
  const {
    signal,
    providers,
    lenient,
    threads,
    spinning,
    restsBetween,
    niceness,
    interOpThreads,
    optimisation,
    cuda,
  } = options;
  let cancelled: Promise<unknown> | undefined;
  let begun: LoadUnderWay | undefined;
  let giveUp = (): void => undefined;
  const cancel = (): void => {
    if (begun !== undefined)
      cancelled ??= sendRequest({ kind: 'cancel', ...begun }).catch(() => undefined);
  };
  const loading = sendRequest(
    {
      kind: 'load',
      place: libraryPlace(providers.includes('cuda')),
      model,
      providers,
      lenient,
      ordinal: device.ordinal,
      threads,
      spinning,
      restsBetween,
      niceness,
      interOpThreads,
      optimisation,
      cuda,
      recorded,
    },
    {
      transfer: transferOf(model),
      hear: (message) => {
        begun = message as LoadUnderWay;
        if (signal?.aborted === true) cancel();
      },
    },
  );
  if (signal === undefined) return loading;
  const aborted = new Promise<never>((_, reject) => {
    giveUp = () => {
      cancel();
      reject(signal.reason as Error);
    };
  });
  aborted.catch(() => undefined);
  signal.addEventListener('abort', giveUp, { once: true });
  // The result of a load that cannot be cancelled is not needed any more.
  loading
    .then(({ library, session }) =>
      signal.aborted
        ? sendRequest({ kind: 'release', path: library.path, session, runOptions: [] })
        : undefined,
    )
    .catch(() => undefined);
  try {
    return await Promise.race([loading, aborted]);
  } finally {
    signal.removeEventListener('abort', giveUp);
  }
}

/**
 * A model that ONNX Runtime runs on one device. {@link loadOnnxEngine} makes it.
 *
 * @example
 * ```ts
 * // A model of 86 bytes: c = a + b. Usually it is a path.
 * const model = Buffer.from(
 *   'CAg6TgoQCgFhCgFiEgFjGgAiA0FkZBIEdGVzdFoQCgFhEgsKCQgBEgUKAxIBbloQCgFiEgsKCQgBEgUKAxIB' +
 *     'bmIQCgFjEgsKCQgBEgUKAxIBbkIECgAQEQ==',
 *   'base64',
 * );
 * await using engine: OnnxEngine = await loadOnnxEngine(device, model);
 * console.log(engine.kind, engine.inputs[0]?.shape); // onnxruntime [ -1 ]
 * using ones = await device.ones(f32, [2]);
 * const { c } = await engine.infer({ a: ones, b: ones });
 * console.log((await c!.read()).join(' ')); // 2 2
 * c!.close();
 * ```
 */
export class OnnxEngine implements Engine {
  readonly kind = 'onnxruntime';
  readonly description: string;
  readonly device: CoreDevice;
  readonly inputs: readonly TensorInfo[];
  readonly outputs: readonly TensorInfo[];
  readonly strictShapes: boolean;
  /** The provider that computes. */
  readonly provider: ProviderName;
  /** @internal */
  readonly library: LibraryInfo;
  /** @internal */
  readonly sessions: ShapeSessions;
  /** @internal */
  readonly outputShapes: OutputShapes;
  /** @internal */
  readonly bindings = new Bindings();
  /** Records runs as graphs; undefined where they are not recorded. @internal */
  readonly graphs: RunGraphs | undefined = undefined;
  /** The niceness of the threads that run it. @internal */
  readonly niceness: number;
  /** The offset from addresses of the device to those that the library uses. @internal */
  readonly base: Promise<number> | number;
  /** Whether the library reaches the device's memory as the process's own. @internal */
  readonly inProcess: boolean;
  /** Whether tensors are copied to the process's memory and back. @internal */
  readonly staged: boolean;
  private readonly contexts = new Set<OnnxContext>();
  private readonly recent = new RecentOps();
  /** The contexts of {@link infer}. */
  private readonly pool: OnnxContext[] = [];
  private readonly limit: number;
  /** The model, for further sessions. */
  private readonly kept: KeptModel | undefined;
  private closing: Promise<void> | undefined = undefined;

  /** @internal */
  constructor(
    device: CoreDevice,
    loaded: Loaded,
    options: CheckedOptions,
    base: Promise<number> | undefined,
    sessions: ShapeSessions,
    kept: KeptModel | undefined,
    byValue: ReadonlySet<string>,
  ) {
    const { library, provider, inputs, outputs } = loaded;
    const { contexts, niceness, graphs, strictShapes } = options;
    this.device = device;
    this.library = library;
    this.sessions = sessions;
    this.provider = provider;
    this.description = `ONNX Runtime ${library.version} (${NAMES[provider]})`;
    this.inputs = inputs.map((info) => infoOf('input', info));
    this.outputs = outputs.map((info) => infoOf('output', info));
    this.strictShapes = strictShapes;
    this.outputShapes = new OutputShapes(
      outputs.map(({ name }) => byValue.has(name)),
      strictShapes,
    );
    this.limit = contexts[provider];
    this.niceness = niceness;
    this.base = base ?? 0;
    this.inProcess = base !== undefined;
    this.staged = provider === 'cpu' && base === undefined;
    this.kept = kept;
    if (graphs && provider === 'cuda' && kept !== undefined)
      this.graphs = new RunGraphs(device, loaded, niceness, this.toString(), () =>
        loadAgain(device, kept, options, true),
      );
  }

  createContext(): Promise<OnnxContext> {
    this.checkOpen();
    return Promise.resolve(this.newContext());
  }

  infer(inputs: EngineInputs, options?: InferOptions): DeviceOp<NamedTensors> {
    this.checkOpen();
    return engineOp(this, 'engine.infer', inputs, options, this.recent, this);
  }

  close(): Promise<void> {
    this.closing ??= this.end();
    return this.closing;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  toString(): string {
    return (
      `OnnxEngine (${this.inputs.map(({ name }) => name).join(', ')}) => ` +
      `(${this.outputs.map(({ name }) => name).join(', ')})`
    );
  }

  /** @internal */
  checkOpen(): void {
    if (this.closing !== undefined)
      throw new CudaDisposedError(
        'engine: used after it was closed. Load it again with loadOnnxEngine(…).',
      );
    this.device.check();
  }

  /** @internal */
  forget(context: OnnxContext): void {
    this.contexts.delete(context);
  }

  /** Returns a free context, a new one, or the one with the fewest runs to wait for. @internal */
  contextFor(stream: Stream): OnnxContext {
    this.checkOpen();
    const { pool } = this;
    // This loop is not `find`, which would allocate a closure for each run.
    for (let i = 0; i < pool.length; i++) if (pool[i]!.isFreeFor(stream)) return pool[i]!;
    if (pool.length < this.limit) {
      const context = this.newContext();
      pool.push(context);
      return context;
    }
    return pool.reduce((least, context) => (context.load < least.load ? context : least));
  }

  private newContext(): OnnxContext {
    const context = new OnnxContext(this);
    this.contexts.add(context);
    return context;
  }

  private async end(): Promise<void> {
    // Runs that were started in this turn have been queued by its end.
    await setImmediate();
    await Promise.all([...this.contexts].map((context) => context.close()));
    await this.graphs?.stop();
    await this.bindings.close();
    await this.graphs?.close();
    const { path } = this.library;
    for (const session of await this.sessions.end())
      await sendRequest({ kind: 'release', path, session, runOptions: [] });
    this.kept?.drop();
  }
}

function infoOf(side: string, { name, type, shape, dimensions }: ValueInfo): TensorInfo {
  const dtype = dtypeOf(type);
  if (dtype === undefined)
    throw new CudaError(
      'ERR_CUDA_UNSUPPORTED',
      `${side} '${name}' of the model has elements of type ${nameOfType(type)}, which ` +
        'devices have not. Convert it in the model: a Cast, or preprocessing outside of it.',
    );
  const names = dimensions.map((each) => (each === '' ? undefined : each));
  return {
    name,
    dtype: dtype.name,
    shape,
    ...(names.some((each) => each !== undefined) ? { dimensions: names } : {}),
  };
}
