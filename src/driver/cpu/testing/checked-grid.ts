/**
 * The grid runner of the PTX compiler's own tests, on a checked device: those tests must cause no
 * report.
 */
import type { Argument, Launch, Outcome } from '../../../ptx/run-grid.test-support.js';
import type { PtxCompileOptions, WasmModule } from '../../../ptx/index.js';
import { STATUS, compilePtx } from '../../../ptx/index.js';
import type { CheckReport } from '../../../ground/check-report.js';
import type { PolledDriver } from '../../driver.js';
import { openCpu } from '../open.js';

type Elements =
  | Float32Array
  | Float64Array
  | Int32Array
  | Uint32Array
  | Uint8Array
  | Uint16Array
  | BigInt64Array
  | BigUint64Array;

/** The reports of all grids. */
export const reports: CheckReport[] = [];

export class Grid {
  readonly module: WasmModule;
  readonly printed: { format: string; args: number }[] = [];
  readonly asserts: string[] = [];
  private readonly cu: PolledDriver;
  private readonly loaded: number;
  private readonly buffer: ArrayBufferLike;

  constructor(text: string, options: PtxCompileOptions & { pages?: number } = {}) {
    // The driver returns the addresses of visible variables only.
    const source = text.replace(/^\.const /gm, '.visible .const ');
    this.module = compilePtx(source, { ...options, check: true });
    this.cu = openCpu({
      memoryBytes: (options.pages ?? 1024) * 65536,
      multiprocessors: 512,
      check: { keepGoing: true },
      report: (report) => reports.push(report),
    });
    this.cu.cuInit(0);
    this.cu.cuCtxSetCurrent(this.cu.cuDevicePrimaryCtxRetain(0));
    this.loaded = this.cu.cuModuleLoadDataEx(source, {});
    this.buffer = this.cu.hostView(this.cu.cuMemAllocManaged(64, 1), 64).buffer;
  }

  get memory(): { buffer: ArrayBufferLike } {
    return { buffer: this.buffer };
  }

  get dataBase(): number {
    const { name, offset } = this.module.variables.find(({ visible }) => visible)!;
    return this.cu.cuModuleGetGlobal(this.loaded, name).dptr - offset;
  }

  bytes(): Uint8Array {
    return new Uint8Array(this.buffer);
  }

  view(): DataView {
    return new DataView(this.buffer);
  }

  allocate(size: number): number {
    return this.cu.cuMemAllocManaged(Math.max(size, 1), 1);
  }

  put<T extends Elements>(values: T): { address: number; view: T } {
    const address = this.allocate(values.byteLength);
    const { buffer, byteOffset } = this.cu.hostView(address, Math.max(values.byteLength, 1));
    const View = values.constructor as new (
      buffer: ArrayBufferLike,
      offset: number,
      length: number,
    ) => T;
    const view = new View(buffer, byteOffset, values.length);
    view.set(values as never);
    return { address, view };
  }

  kernel(name: string): WasmModule['kernels'][number] {
    return this.module.kernels.find((candidate) => candidate.name === name)!;
  }

  run(name: string, args: readonly Argument[], launch: Launch): Outcome {
    const { cu } = this;
    const kernel = this.kernel(name);
    const packed = new Int32Array(Math.ceil(kernel.paramBytes / 4) + 2);
    const view = new DataView(packed.buffer);
    kernel.params.forEach(({ offset }, index) => {
      const arg = args[index]!;
      if ('f32' in arg) view.setFloat32(offset, arg.f32, true);
      else if ('f64' in arg) view.setFloat64(offset, arg.f64, true);
      else if ('i32' in arg) view.setInt32(offset, arg.i32, true);
      else if ('i64' in arg) view.setBigInt64(offset, BigInt.asIntN(64, BigInt(arg.i64)), true);
      else new Uint8Array(packed.buffer).set(arg.bytes, offset);
    });
    const [gx, gy = 1, gz = 1] = launch.grid;
    const [bx, by = 1, bz = 1] = launch.block;
    const func = cu.cuModuleGetFunction(this.loaded, name);
    const shared = launch.dynamicShared ?? 0;
    if (shared > 48 * 1024 - kernel.sharedBytes) cu.cuFuncSetAttribute(func, 8, shared);
    if (launch.interleave) {
      cu.cuLaunchKernelEx(
        {
          gridDimX: gx,
          gridDimY: gy,
          gridDimZ: gz,
          blockDimX: bx,
          blockDimY: by,
          blockDimZ: bz,
          sharedMemBytes: shared,
          hStream: 0,
          attrs: { cooperative: true },
        },
        func,
        packed,
        0,
        kernel.paramBytes,
      );
    } else {
      cu.cuLaunchKernel(func, gx, gy, gz, bx, by, bz, shared, 0, packed, 0, kernel.paramBytes);
    }
    cu.cuCtxSynchronize();
    return { status: STATUS.done, calls: 1 };
  }
}
