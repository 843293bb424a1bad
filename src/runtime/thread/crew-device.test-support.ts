// A CPU device for tests, whose blocks run on the given number of threads: every grid of more than
// one block uses all of them from the start.

import type { PolledDriver } from '../../driver/driver.js';
import type { CrewOptions } from '../../driver/cpu/crew/crew-options.js';
import type { CpuOptions } from '../../driver/cpu/open.js';
import { openCpu } from '../../driver/cpu/open.js';
import { packParams } from '../../driver/cpu/testing/open-fake.js';
import { startMember } from './start-crew.js';
import { kernelText } from '../../ptx/run-grid.test-support.js';
import { afterEach } from 'vitest';

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

/** Opens devices that are closed after each test of the file. */
export function crewDevices(): (
  workers: number,
  crew?: Partial<CrewOptions>,
  options?: CpuOptions,
) => CrewDevice {
  const opened: CrewDevice[] = [];
  afterEach(() => opened.splice(0).forEach((device) => device.close()));
  return (workers, crew = {}, options = {}) => {
    const device = new CrewDevice(workers, crew, options);
    opened.push(device);
    return device;
  };
}

const REGISTERS =
  '.reg .pred %p<8>; .reg .b32 %r<40>; .reg .b64 %rd<40>; .reg .f32 %f<8>; ' +
  '.reg .f64 %fd<8>; .reg .b16 %h<8>;';

/** A kernel. `params` are named as nvcc names them; u64 for addresses, u32 for the others. */
export function kernel(name: string, params: string, body: string): string {
  const declared = [...params]
    .map((kind, index) => `.param .${kind === 'p' ? 'u64' : 'u32'} p${index}`)
    .join(', ');
  const loads = [...params]
    .map((kind, index) =>
      kind === 'p'
        ? `ld.param.u64 %rd${index}, [p${index}];`
        : `ld.param.u32 %r${index}, [p${index}];`,
    )
    .join('\n');
  return kernelText(
    name,
    declared,
    `
    ${REGISTERS}
    ${loads}
    mov.u32 %r20, %ctaid.x; mov.u32 %r21, %tid.x; mov.u32 %r22, %ntid.x; mov.u32 %r23, %nctaid.x;
    mad.lo.u32 %r24, %r20, %r22, %r21;
    ${body}
    ret;`,
  );
}
