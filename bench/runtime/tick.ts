/**
 * The empty kernel with three arguments that the launch benchmarks queue. Given a negative number
 * it counts its launches instead, by which a round proves that the timed work is really done.
 */
import { readFile } from 'node:fs/promises';

import {
  type CoreDevice,
  type DeviceBuffer,
  type Kernel,
  type Module,
  type Stream,
  core,
} from '../library.js';

export const COUNTING = -1;
export const QUIET = 5;

const { f32, i32, inout } = core;
const LAUNCH = { grid: 1, block: 32 };

export async function loadKernels(device: CoreDevice): Promise<Module> {
  return device.loadModule(
    await readFile(new URL('../kernels/launch.ptx', import.meta.url), 'utf8'),
  );
}

export class Tick {
  readonly stream: Stream;
  private readonly module: Module;
  private readonly kernel: Kernel;
  private readonly counter: DeviceBuffer<'f32'>;

  private constructor(module: Module, stream: Stream) {
    this.module = module;
    this.stream = stream;
    this.kernel = module.kernel('tick', [inout(f32), f32, i32]);
    this.counter = module.device.alloc(f32, 32, { stream });
    this.counter.fill(stream, 0);
  }

  static async open(device: CoreDevice, stream: Stream = device.stream): Promise<Tick> {
    return new Tick(await loadKernels(device), stream);
  }

  launch(n: number) {
    return this.kernel.launch(this.stream, LAUNCH, this.counter, 1, n);
  }

  launches(count: number, n: number): void {
    for (let i = 0; i < count; i++) this.kernel.launch(this.stream, LAUNCH, this.counter, 1, n);
  }

  reset(): void {
    this.counter.fill(this.stream, 0);
  }

  /** @throws Error where not exactly `count` launches have counted since the last reset */
  async expect(count: number): Promise<void> {
    const [counted] = await this.counter.read(this.stream);
    if (counted !== count) throw new Error(`the counter is ${counted}, not ${count}`);
  }

  /**
   * Launches kernels that count, with the loop that is timed afterwards, and checks the count. It
   * is the warm-up as well.
   */
  async warm(count: number): Promise<void> {
    this.reset();
    this.launches(count, COUNTING);
    await this.expect(count);
  }

  async close(): Promise<void> {
    this.counter.close();
    await this.module.close();
  }
}
