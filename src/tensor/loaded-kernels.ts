/**
 * The kernels of tensors, loaded when they are first used on a device. An operation whose kernel is
 * not loaded yet continues when it is; a blocking run loads the kernel synchronously, and a capture
 * begins again after the load.
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

interface KernelSet {
  readonly key: string;
  readonly text: () => string;
  readonly kernels: () => Readonly<Record<string, readonly ParamDeclaration[]>>;
}

/** The kernel for strided copies of so many axes, with conversion. */
export function copies(from: DTypeName, to: DTypeName, rank: number): KernelSet {
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

export function sequences(dtype: KernelDTypeName): KernelSet {
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

export function randoms(dtype: KernelDTypeName): KernelSet {
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

function load(device: CoreDevice, kernelSet: KernelSet): Loaded {
  const loaded = loadedOn(device);
  const known = loaded.get(kernelSet.key);
  if (known !== undefined) return known;
  const done = (async () => {
    const signatures = kernelSet.kernels();
    return kernelsOf(await device.loadKnown(kernelSet.text(), Object.keys(signatures)), signatures);
  })();
  const entry: Loaded = { kernels: undefined, done };
  done.then(
    (kernels) => {
      entry.kernels = kernels;
    },
    () => {
      loaded.delete(kernelSet.key);
    },
  );
  loaded.set(kernelSet.key, entry);
  return entry;
}

/** {@link load} for a blocking run. */
function loadNow(device: CoreDevice, kernelSet: KernelSet): Kernels {
  const loaded = loadedOn(device);
  const known = loaded.get(kernelSet.key)?.kernels;
  if (known !== undefined) return known;
  const signatures = kernelSet.kernels();
  // A load in progress cannot end while this thread blocks, so that the kernels are loaded again.
  const kernels = kernelsOf(
    device.loadKnownNow(kernelSet.text(), Object.keys(signatures)),
    signatures,
  );
  loaded.set(kernelSet.key, { kernels, done: Promise.resolve(kernels) });
  return kernels;
}

function kernelsOf(module: Module, signatures: ReturnType<KernelSet['kernels']>): Kernels {
  return Object.fromEntries(
    Object.entries(signatures).map(([name, signature]) => [name, module.kernel(name, signature)]),
  );
}

/** Loads kernels before their first use. */
export async function preload(device: CoreDevice, kernelSets: readonly KernelSet[]): Promise<void> {
  await Promise.all(kernelSets.map((kernelSet) => load(device, kernelSet).done));
}

/** Calls `queue` with the kernels: at once if they are loaded, else when they are. */
export function withKernels<T>(
  run: Run,
  kernelSet: KernelSet,
  queue: (kernels: Kernels) => Submitted<T>,
): Submitted<T> {
  if (run.mode === 'block') return queue(loadNow(run.device, kernelSet));
  const { kernels, done } = load(run.device, kernelSet);
  return whenLoaded(
    run,
    kernels,
    done,
    { what: `the kernels of '${kernelSet.key}'`, fix: 'await such an operation once before' },
    queue,
  );
}

/**
 * Calls `queue` with what is loaded, or when it is. A recording begins again after the load; a
 * blocking run cannot wait for it.
 *
 * @param named what is loaded and what to write instead, for the error of a blocking run
 * @throws CudaError with code ERR_CUDA_NOT_FOUND in a blocking run
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
      `${named.what}: not loaded yet, and a thread that blocks cannot load it: ${named.fix}.`,
    );
  }
  run.loads++;
  return run.goOn(new Later(done, false), queue);
}
