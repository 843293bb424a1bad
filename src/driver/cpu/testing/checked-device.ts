/** A checked device, and short kernels in PTX for it. */
import type { CheckOptions, CheckReport } from '../../../ground/check-report.js';
import { DriverError } from '../../error.js';
import type { PolledDriver } from '../../driver.js';
import { openCpu } from '../open.js';
import { packParams } from './open-fake.js';

type Params = readonly (number | readonly [number])[];

export interface Shape {
  grid?: number;
  block?: number;
  shared?: number;
  stream?: number;
}

export class CheckedDevice {
  readonly cu: PolledDriver;
  readonly stream: number;
  /** All reports so far. */
  readonly reports: CheckReport[] = [];
  readonly device: number;
  private module = 0;

  constructor(check: boolean | CheckOptions = true) {
    this.cu = openCpu({
      memoryBytes: 256 * 2 ** 20,
      multiprocessors: 2,
      check,
      report: (report) => this.reports.push(report),
    });
    this.cu.cuInit(0);
    this.device = this.cu.cuDeviceGet(0);
    this.cu.cuCtxSetCurrent(this.cu.cuDevicePrimaryCtxRetain(this.device));
    this.stream = this.cu.cuStreamCreateWithPriority(1, 0);
  }

  /** The module that is loaded. */
  get loaded(): number {
    return this.module;
  }

  load(ptx: string): this {
    this.module = this.cu.cuModuleLoadDataEx(ptx, {});
    return this;
  }

  launch(
    name: string,
    params: Params,
    { grid = 1, block = 1, shared = 0, stream = this.stream }: Shape = {},
  ): void {
    const packed = packParams(params);
    this.cu.cuLaunchKernel(
      this.cu.cuModuleGetFunction(this.module, name),
      grid,
      1,
      1,
      block,
      1,
      1,
      shared,
      stream,
      packed,
      0,
      packed.byteLength,
    );
  }

  /** Waits, and returns the reports of the error that this ends with. */
  fails(): readonly CheckReport[] {
    try {
      this.cu.cuCtxSynchronize();
    } catch (error) {
      if (error instanceof DriverError && error.reports !== undefined) return error.reports;
      throw error;
    }
    return [];
  }

  /** Allocates memory with these words. */
  words(...values: number[]): number {
    const { cu } = this;
    const address = cu.cuMemAlloc(values.length * 4);
    const buffer = new SharedArrayBuffer(values.length * 4);
    const host = cu.cuMemHostRegister(buffer, 0, values.length * 4, 0);
    new Int32Array(buffer).set(values);
    cu.cuMemcpyHtoDAsync(address, host, values.length * 4, this.stream);
    cu.cuStreamSynchronize(this.stream);
    cu.cuMemHostUnregister(host);
    return address;
  }
}

/**
 * A module around the body of kernel `k`, whose parameters are the addresses p0, p1, … in %rd0,
 * %rd1, …
 */
export function kernelOf(pointers: number, body: string, before = ''): string {
  const params = Array.from({ length: pointers }, (_, i) => `.param .u64 p${i}`).join(', ');
  const loads = Array.from({ length: pointers }, (_, i) => `ld.param.u64 %rd${i}, [p${i}];`).join(
    ' ',
  );
  return `.version 8.8
.target sm_100
.address_size 64
${before}
.visible .entry k(${params}) {
.reg .u64 %rd<40>; .reg .u32 %r<40>; .reg .pred %p<10>; .reg .u8 %b<4>; .reg .u16 %h<4>;
${loads}
mov.u32 %r0, %tid.x;
${body}
ret;
}
`;
}
