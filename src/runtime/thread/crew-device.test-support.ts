// A CPU device for tests, whose blocks run on the given number of threads: every grid of more than
// one block uses all of them from the start.

import type { PolledDriver } from '../../driver/driver.js';
import type { CrewOptions } from '../../driver/cpu/crew/crew-options.js';
import type { CpuOptions } from '../../driver/cpu/open.js';
import { openCpu } from '../../driver/cpu/open.js';
import { packParams } from '../../driver/cpu/testing/open-fake.js';
import { startMember } from './start-crew.js';

export type Param = number | readonly [number];
export type Size = readonly [number, number?, number?];

interface ViewMaker<T> {
  new (buffer: ArrayBufferLike, offset: number, length: number): T;
  readonly BYTES_PER_ELEMENT: number;
}

export class CrewDevice {
  readonly cu: PolledDriver;
  readonly printed: string[] = [];
  readonly stream: number;
  private readonly modules = new Map<string, number>();

  constructor(workers: number, crew: Partial<CrewOptions> = {}, options: CpuOptions = {}) {
    this.cu = openCpu({
      memoryBytes: 512 * 2 ** 20,
      multiprocessors: 4,
      print: (text) => this.printed.push(text),
      crew: { workers, start: startMember, eager: true, ...crew },
      ...options,
    });
    this.cu.cuInit(0);
    this.cu.cuCtxSetCurrent(this.cu.cuDevicePrimaryCtxRetain(0));
    this.stream = this.newStream();
  }

  newStream(): number {
    return this.cu.cuStreamCreateWithPriority(1, 0);
  }

  /** Returns memory that the device and the test can access. */
  array<T>(View: ViewMaker<T>, length: number): { at: number; view: T } {
    const at = this.cu.cuMemAllocManaged(length * View.BYTES_PER_ELEMENT, 1);
    const { buffer, byteOffset } = this.cu.hostView(at, length * View.BYTES_PER_ELEMENT);
    return { at, view: new View(buffer, byteOffset, length) };
  }

  kernel(text: string, name: string): number {
    let module = this.modules.get(text);
    if (module === undefined) {
      module = this.cu.cuModuleLoadDataEx(text, {});
      this.modules.set(text, module);
    }
    return this.cu.cuModuleGetFunction(module, name);
  }

  launch(
    kernel: number,
    grid: Size,
    block: Size,
    params: readonly Param[],
    { stream = this.stream, shared = 0, cooperative = false } = {},
  ): void {
    const packed = packParams(params);
    const [gridDimX, gridDimY = 1, gridDimZ = 1] = grid;
    const [blockDimX, blockDimY = 1, blockDimZ = 1] = block;
    this.cu.cuLaunchKernelEx(
      {
        gridDimX,
        gridDimY,
        gridDimZ,
        blockDimX,
        blockDimY,
        blockDimZ,
        sharedMemBytes: shared,
        hStream: stream,
        attrs: cooperative ? { cooperative } : {},
      },
      kernel,
      packed,
      0,
      packed.byteLength,
    );
  }

  finish(stream = this.stream): void {
    this.cu.cuStreamSynchronize(stream);
  }

  close(): void {
    this.cu.cuDevicePrimaryCtxReset(0);
  }
}

export const floatBits = (value: number): number =>
  new Int32Array(Float32Array.of(value).buffer)[0]!;
