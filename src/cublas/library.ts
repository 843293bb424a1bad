/**
 * cuBLASLt on a device: the library is found, loaded and opened on the thread that may wait, and
 * plans of products are kept by their form.
 */
import { CudaError, NativeLibrary } from '../core/index.js';
import type { CoreDevice } from '../core/index.js';
import { KNOWN_LIBRARIES } from '../native/libraries.js';
import { STATUSES } from './enums.js';
import { CUBLASLT_FUNCTIONS } from './functions.js';
import { makePlan } from './plan.js';
import type { Plan } from './plan.js';
import { addressIn } from './plan-objects.js';
import type { ProductForm } from './product-form.js';

/** Options of {@link openCublasLt}. */
export interface OpenCublasLtOptions {
  /** The library's file. Default: it is searched for. */
  readonly path?: string;
  /**
   * Whether it is opened on a CPU device too, whose memory the library cannot access: for a test
   * double.
   */
  readonly anyDevice?: boolean;
}

/** The most plans that a device keeps. A plan takes about two kilobytes of the host's memory. */
const MOST_PLANS = 512;
/** The oldest version whose attributes are those of the tables. */
const OLDEST = 11;

interface KnownPlan {
  plan: Plan | undefined;
  readonly done: Promise<Plan>;
}

/** cuBLASLt for one device. */
export class CublasLt {
  readonly device: CoreDevice;
  /** The version, such as `13.0.2`. */
  readonly version: string;
  /** The path of its file. */
  readonly path: string;
  /** The library's functions. */
  readonly library: NativeLibrary;
  /** The address of the library's handle. */
  readonly handle: number;
  /** The plans by their forms' keys; the one used last is at the end. */
  private readonly plans = new Map<string, KnownPlan>();
  /** The ends of plans that were dropped. */
  private readonly ending = new Set<Promise<void>>();
  /** Plans whose end waits for that of the device. */
  private readonly left: Plan[] = [];
  private closed: Promise<void> | undefined = undefined;

  constructor(library: NativeLibrary, version: string, handle: number) {
    this.device = library.device;
    this.library = library;
    this.version = version;
    this.handle = handle;
    this.path = library.paths[0]!;
    this.device.objects.own(this);
  }

  /** The number of plans that are kept. */
  get planCount(): number {
    return this.plans.size;
  }

  /** The plan of a form: made, or being made. */
  planFor(form: ProductForm): KnownPlan {
    const { key } = form;
    const { plans } = this;
    const known = plans.get(key);
    if (known !== undefined) {
      plans.delete(key);
      plans.set(key, known);
      return known;
    }
    const done = makePlan(this, form);
    const entry: KnownPlan = { plan: undefined, done };
    done.then(
      (plan) => {
        if (plans.get(key) === entry) entry.plan = plan;
      },
      () => {
        if (plans.get(key) === entry) plans.delete(key);
      },
    );
    plans.set(key, entry);
    if (plans.size > MOST_PLANS) this.drop(plans.keys().next().value!);
    return entry;
  }

  /** Drops all plans: the next product makes its plan again. */
  dropPlans(): void {
    for (const key of [...this.plans.keys()]) this.drop(key);
  }

  /** Destroys the plans and the handle, after all work that uses them. The device calls it. */
  close(): Promise<void> {
    return (this.closed ??= this.end());
  }

  private drop(key: string): void {
    const { plans, ending } = this;
    const { done } = plans.get(key)!;
    plans.delete(key);
    const end = done
      .then(async (plan) => {
        plan.isDropped = true;
        if (!(await plan.ended())) this.left.push(plan);
        else await plan.destroy();
      })
      .catch(ignore)
      .finally(() => ending.delete(end));
    ending.add(end);
  }

  private async end(): Promise<void> {
    this.dropPlans();
    await Promise.all(this.ending);
    await Promise.all(this.left.map((plan) => plan.destroy().catch(ignore)));
    await this.library.ask('cublasLtDestroy', [this.handle]).catch(ignore);
    this.device.objects.disown(this);
  }
}

function ignore(): void {
  // The device was lost or has been closed; or the plan was never made, and its user has the error.
}

interface Opening {
  opened: CublasLt | undefined;
  readonly done: Promise<CublasLt>;
}

const devices = new WeakMap<CoreDevice, Opening>();

/** Gives cuBLASLt on a device, if it was opened. */
export function openedCublasLt(device: CoreDevice): CublasLt | undefined {
  return devices.get(device)?.opened;
}

/**
 * Opens cuBLASLt on a device, once, with the options of the first call. After a failure the next
 * call tries again. The library is loaded, and cublasLtCreate called, on the second worker: this
 * takes up to a second, and blocks no thread that queues work. (On a device with `thread: 'inline'`
 * all calls are made on the calling thread.)
 *
 * @throws CudaError with code ERR_CUDA_NO_LIBRARY where it is not found, and the message lists
 *   every path that was tried; ERR_CUDA_UNSUPPORTED on a CPU device and for a version before 11
 */
export function openCublasLt(
  device: CoreDevice,
  options: OpenCublasLtOptions = {},
): Promise<CublasLt> {
  const known = devices.get(device);
  if (known !== undefined) return known.done;
  const done = open(device, options);
  const opening: Opening = { opened: undefined, done };
  devices.set(device, opening);
  done.then(
    (opened) => {
      opening.opened = opened;
    },
    () => {
      devices.delete(device);
    },
  );
  return done;
}

async function open(
  device: CoreDevice,
  { path, anyDevice = false }: OpenCublasLtOptions,
): Promise<CublasLt> {
  const openAs = (name: string): Promise<NativeLibrary> =>
    NativeLibrary.open(device, {
      name,
      statuses: STATUSES,
      files: [
        {
          library: KNOWN_LIBRARIES.cublasLt,
          functions: CUBLASLT_FUNCTIONS,
          ...(path === undefined ? {} : { path }),
        },
      ],
      anyDevice,
    });
  const unnamed = await openAs('cuBLASLt');
  const version = versionOf(Number((await unnamed.ask('cublasLtGetVersion', [])).value));
  if (parseInt(version, 10) < OLDEST)
    throw new CudaError(
      'ERR_CUDA_UNSUPPORTED',
      `cuBLASLt ${version} (${unnamed.paths[0]!}) is too old: install cuBLAS ${OLDEST} or later.`,
    );
  const library = await openAs(`cuBLASLt ${version}`);
  const handle = addressIn(await library.ask('cublasLtCreate', [new Uint8Array(8)]));
  return new CublasLt(library, version, handle);
}

/** Gives the version of a number such as 120805. */
function versionOf(number: number): string {
  return `${Math.floor(number / 10000)}.${Math.floor(number / 100) % 100}.${number % 100}`;
}
