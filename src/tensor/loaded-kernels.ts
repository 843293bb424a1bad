/**
 * The kernels of tensors, loaded when they are first needed on a device. An operation that needs
 * one which is not there yet goes on when it is; a thread that blocks loads it by itself, and a
 * capture begins anew.
 */
import { CudaError, DTYPES, f32, f64, i32, i64, input, output, u32, u64 } from '../core/index.js';
import type {
  DTypeName,
  KernelDTypeName,
  CoreDevice,
  Kernel,
  Module,
  ParamDeclaration,
} from '../core/index.js';
import { Later, NotLoaded } from '../ops/node.js';
import type { Submitted } from '../ops/node.js';
import type { Run } from '../ops/run.js';
import { copyText, randomText, sequenceText } from './kernel-texts.js';

type Kernels = Readonly<Record<string, Kernel>>;

interface Recipe {
  readonly key: string;
  readonly text: () => string;
  readonly kernels: () => Readonly<Record<string, readonly ParamDeclaration[]>>;
}

/** Strided copies of so many axes, with conversion. */
export function copies(from: DTypeName, to: DTypeName, rank: number): Recipe {
  return {
    key: `copy ${from} ${to} ${rank}`,
    text: () => copyText(from, to, rank),
    kernels: () => ({
      copy: [
        input(DTYPES[from]),
        output(DTYPES[to]),
        u32,
        ...Array.from({ length: rank }, () => [u32, i64, i64]).flat(),
      ],
    }),
  };
}

export function sequences(dtype: KernelDTypeName): Recipe {
  const out = output(DTYPES[dtype]);
  return {
    key: `sequences ${dtype}`,
    text: () => sequenceText(dtype),
    kernels: () => ({
      integers: [out, u32, i64, i64],
      floats: [out, u32, f64, f64, f64],
      eye: [out, u32, u32, i32],
    }),
  };
}

export function randoms(dtype: KernelDTypeName): Recipe {
  const out = output(DTYPES[dtype]);
  const real = dtype === 'f64' ? f64 : f32;
  return {
    key: `random ${dtype}`,
    text: () => randomText(dtype),
    kernels: () => ({ uniform: [out, u32, u64, real, real], normal: [out, u32, u64, real, real] }),
  };
}

interface Loaded {
  kernels: Kernels | undefined;
  readonly done: Promise<Kernels>;
}

const devices = new WeakMap<CoreDevice, Map<string, Loaded>>();

function loadedOn(device: CoreDevice): Map<string, Loaded> {
  const loaded = devices.get(device) ?? new Map<string, Loaded>();
  devices.set(device, loaded);
  return loaded;
}

function load(device: CoreDevice, recipe: Recipe): Loaded {
  const loaded = loadedOn(device);
  const known = loaded.get(recipe.key);
  if (known !== undefined) return known;
  const done = (async () => {
    const signatures = recipe.kernels();
    return kernelsOf(await device.loadKnown(recipe.text(), Object.keys(signatures)), signatures);
  })();
  const entry: Loaded = { kernels: undefined, done };
  done.then(
    (kernels) => {
      entry.kernels = kernels;
    },
    () => {
      loaded.delete(recipe.key);
    },
  );
  loaded.set(recipe.key, entry);
  return entry;
}

/** {@link load} on a thread that blocks. */
function loadNow(device: CoreDevice, recipe: Recipe): Kernels {
  const loaded = loadedOn(device);
  const known = loaded.get(recipe.key)?.kernels;
  if (known !== undefined) return known;
  const signatures = recipe.kernels();
  // What is on its way for somebody else cannot arrive before this thread goes on.
  const kernels = kernelsOf(
    device.loadKnownNow(recipe.text(), Object.keys(signatures)),
    signatures,
  );
  loaded.set(recipe.key, { kernels, done: Promise.resolve(kernels) });
  return kernels;
}

function kernelsOf(module: Module, signatures: ReturnType<Recipe['kernels']>): Kernels {
  return Object.fromEntries(
    Object.entries(signatures).map(([name, signature]) => [name, module.kernel(name, signature)]),
  );
}

/** Loads kernels before they are needed. */
export async function preload(device: CoreDevice, recipes: readonly Recipe[]): Promise<void> {
  await Promise.all(recipes.map((recipe) => load(device, recipe).done));
}

/** Queues with the kernels, at once if they are loaded. */
export function withKernels<T>(
  run: Run,
  recipe: Recipe,
  queue: (kernels: Kernels) => Submitted<T>,
): Submitted<T> {
  if (run.mode === 'block') return queue(loadNow(run.device, recipe));
  const { kernels, done } = load(run.device, recipe);
  return whenLoaded(
    run,
    kernels,
    done,
    { what: `the kernels of '${recipe.key}'`, fix: 'await such an operation once before' },
    queue,
  );
}

/**
 * Queues with what has been loaded, or once it is. A recording begins anew then; a thread that
 * blocks cannot wait for it.
 *
 * @param named what it is called where that cannot be, and what to do
 */
export function whenLoaded<K, T>(
  run: Run,
  loaded: K | undefined,
  done: Promise<K>,
  named: { what: string; fix: string },
  queue: (loaded: K) => Submitted<T>,
): Submitted<T> {
  if (loaded !== undefined) return queue(loaded);
  if (run.mode === 'record') throw new NotLoaded(done);
  if (run.mode === 'block') {
    done.catch(() => undefined);
    throw new CudaError(
      'ERR_CUDA_NOT_FOUND',
      `${named.what}: not loaded yet, and a thread that blocks cannot load: ${named.fix}.`,
    );
  }
  run.loads++;
  return run.goOn(new Later(done, false), queue);
}
