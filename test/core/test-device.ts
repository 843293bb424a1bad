/**
 * The device that the suite runs on: ASYNC_CUDA_TEST_DEVICE names it (`cpu`, the default, or
 * `cuda`). On the CPU device the basic behaviours are tested in inline mode too, where no runtime
 * thread hides the order of things.
 */
import { CoreDevice } from 'async-cuda/core';
import type {
  CudaError,
  DeviceBuffer,
  DeviceName,
  Module,
  OpenOptions,
  Stream,
} from 'async-cuda/core';
import { afterAll, afterEach, beforeAll, describe, expect } from 'vitest';
import { someOf } from '../random-runs.js';

export const testDevice = (process.env['ASYNC_CUDA_TEST_DEVICE'] ?? 'cpu') as 'cpu' | 'cuda';
export const onCpu = testDevice === 'cpu';

export type Mode = NonNullable<OpenOptions['thread']>;
export const allModes: readonly Mode[] = onCpu ? ['worker', 'inline'] : ['worker'];

export function openTestDevice(
  options: OpenOptions = {},
  name: DeviceName = testDevice,
): Promise<CoreDevice> {
  // ASYNC_CUDA_TEST_CHECK runs everything on a checked device, where no test may cause a report.
  // Some tests run kernels on memory that was never written, since they ignore the result.
  const check =
    process.env['ASYNC_CUDA_TEST_CHECK'] !== undefined && name.startsWith('cpu')
      ? { check: { uninitialised: false } }
      : {};
  return CoreDevice.open(name, { ...check, ...options });
}

/** One open device for all tests of a `describe`, and its modules. */
export class TestDevice {
  readonly mode: Mode;
  /**
   * Failures that were not awaited. A test that expects some removes them; the remaining ones fail
   * it.
   */
  readonly errors: CudaError[] = [];
  private readonly options: OpenOptions;
  private opened: CoreDevice | undefined;
  private readonly modules = new Map<string, Promise<Module>>();

  constructor(mode: Mode, options: OpenOptions = {}) {
    this.mode = mode;
    this.options = options;
  }

  get device(): CoreDevice {
    if (this.opened === undefined) throw new Error('the device is open only while tests run');
    return this.opened;
  }

  /** The device's own stream. */
  get stream(): Stream {
    return this.device.stream;
  }

  /** The module, loaded once for all tests. */
  load(ptx: string): Promise<Module> {
    let module = this.modules.get(ptx);
    if (module === undefined) {
      module = this.device.loadModule(ptx);
      this.modules.set(ptx, module);
    }
    return module;
  }

  async open(): Promise<void> {
    this.opened = await openTestDevice({ thread: this.mode, ...this.options });
    this.opened.on('error', (error) => this.errors.push(error));
  }

  async close(): Promise<void> {
    await this.opened?.close();
  }
}

/**
 * Declares `body`'s tests once for each mode, on a device of their own. `npm test` runs the first
 * `quick` of the modes: the layers above core do the same in each.
 */
export function onDevice(
  title: string,
  body: (host: TestDevice) => void,
  modes: readonly Mode[] = allModes,
  quick = 1,
): void {
  const rows = modes.map((mode) => ({ mode }));
  someOf(quick, describe)(rows)(`${title} (${testDevice}, $mode)`, ({ mode }) => {
    const host = new TestDevice(mode);
    beforeAll(() => host.open());
    afterAll(() => host.close());
    afterEach(() => {
      const unheard = host.errors.splice(0).map((error) => error.message);
      expect(unheard.join('\n'), 'failures that were not awaited').toBe('');
    });
    body(host);
  });
}

/** `onDevice`, in all modes with `npm test` too: for what depends on the thread of the driver. */
export function onDeviceInEachMode(title: string, body: (host: TestDevice) => void): void {
  onDevice(title, body, allModes, allModes.length);
}

/** Opens and shuts the gate of the kernel `hold`, past all tracking. */
export class Gate {
  private readonly gate: DeviceBuffer<'u8'>;
  private readonly stream: Stream;

  private constructor(gate: DeviceBuffer<'u8'>, stream: Stream) {
    this.gate = gate;
    this.stream = stream;
  }

  static async of(module: Module): Promise<Gate> {
    // A stream of its own: the others may be held.
    const gate = new Gate(
      await module.global('gate'),
      module.device.createStream({ label: 'gate' }),
    );
    await gate.shut();
    return gate;
  }

  async shut(): Promise<void> {
    await this.gate.fill(this.stream, 0);
  }

  async open(): Promise<void> {
    await this.gate.fill(this.stream, 1);
  }
}

/** Resolves after `turns` turns of the event loop. */
export async function turns(count: number): Promise<void> {
  for (let i = 0; i < count; i++) await new Promise((resolve) => setImmediate(resolve));
}

/** Whether the promise has not settled, `milliseconds` from now. */
export async function stillPending(
  promise: PromiseLike<unknown>,
  milliseconds = 20,
): Promise<boolean> {
  const pending = Symbol();
  const timeout = new Promise((resolve) => setTimeout(resolve, milliseconds, pending));
  const settled = Promise.resolve(promise).then(
    () => undefined,
    () => undefined,
  );
  return (await Promise.race([settled, timeout])) === pending;
}

/** What the call threw, or what its promise rejected with. */
export async function failure(
  call: () => unknown,
): Promise<CudaError & { argument?: string; log?: string }> {
  try {
    await call();
  } catch (error) {
    return error as CudaError;
  }
  throw new Error('expected a failure, and there was none');
}

/**
 * Bytes of the device's pool that something uses; not what is kept for a second after it was
 * closed.
 */
export async function usedMemory(device: CoreDevice): Promise<number> {
  device.makeRoomOfRecycled();
  await device.finished();
  return (await (await device.pool()).statistics()).used;
}

export function range(length: number): number[] {
  return Array.from({ length }, (_, i) => i);
}
