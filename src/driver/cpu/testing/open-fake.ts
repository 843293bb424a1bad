/** A device with the fake compiler, ready for work, and the shorthands of its tests. */
import type { PolledDriver } from '../../driver.js';
import { DriverError } from '../../error.js';
import { resultName } from '../../../ground/result.js';
import { createCpuDriver } from '../cpu-driver.js';
import type { CpuOptions } from '../cpu-driver.js';
import { ALL_KERNELS, fakeCompile } from './fake-compiler.js';

export interface FakeDevice {
  cu: PolledDriver;
  context: number;
  /** A non-blocking stream of its own. */
  stream: number;
  /** The text that kernels printed. */
  printed: string[];
  kernel(name: string): number;
  /** Launches one block of one thread by default; 8-byte parameters are given as [address]. */
  launch(
    func: number,
    stream: number,
    params?: readonly (number | readonly [number])[],
    grid?: number,
    block?: number,
  ): void;
  /** Registers host memory. Returns it with its views. */
  host(bytes: number): { address: number; bytes: Uint8Array; words: Int32Array };
  /** Copies device memory to the host, through a stream of its own. */
  read(address: number, words: number): number[];
  write(address: number, words: readonly number[]): void;
}

export function openFake(options: CpuOptions = {}): FakeDevice {
  const printed: string[] = [];
  const cu = createCpuDriver({
    memoryBytes: 64 * 2 ** 20,
    compile: fakeCompile,
    multiprocessors: 2,
    print: (text) => printed.push(text),
    ...options,
  });
  cu.cuInit(0);
  const context = cu.cuDevicePrimaryCtxRetain(0);
  cu.cuCtxSetCurrent(context);
  const stream = cu.cuStreamCreateWithPriority(1, 0);
  let module = 0;
  const device: FakeDevice = {
    cu,
    context,
    stream,
    printed,
    kernel(name) {
      // All kernels are loaded at once. A test that captures requests one before, since nothing can
      // be loaded during a capture.
      if (module === 0) module = cu.cuModuleLoadDataEx(ALL_KERNELS, {});
      return cu.cuModuleGetFunction(module, name);
    },
    launch(func, on, params = [], grid = 1, block = 1) {
      const packed = packParams(params);
      cu.cuLaunchKernel(func, grid, 1, 1, block, 1, 1, 0, on, packed, 0, packed.byteLength);
    },
    host(bytes) {
      const buffer = new SharedArrayBuffer(bytes);
      const address = cu.cuMemHostRegister(buffer, 0, bytes, 0);
      return {
        address,
        bytes: new Uint8Array(buffer),
        words: new Int32Array(buffer, 0, bytes >> 2),
      };
    },
    read(address, words) {
      const own = cu.cuStreamCreateWithPriority(1, 0);
      const host = device.host(words * 4);
      cu.cuMemcpyDtoHAsync(host.address, address, words * 4, own);
      cu.cuStreamSynchronize(own);
      cu.cuMemHostUnregister(host.address);
      cu.cuStreamDestroy(own);
      return [...host.words];
    },
    write(address, words) {
      const own = cu.cuStreamCreateWithPriority(1, 0);
      const host = device.host(words.length * 4);
      host.words.set(words);
      cu.cuMemcpyHtoDAsync(address, host.address, words.length * 4, own);
      cu.cuStreamSynchronize(own);
      cu.cuMemHostUnregister(host.address);
      cu.cuStreamDestroy(own);
    },
  };
  return device;
}

export function packParams(params: readonly (number | readonly [number])[]): Int32Array {
  const words: number[] = [];
  for (const value of params) {
    if (typeof value === 'number') {
      words.push(value);
    } else {
      if (words.length % 2 === 1) words.push(0);
      words.push(value[0] | 0, Math.floor(value[0] / 2 ** 32));
    }
  }
  return Int32Array.from(words);
}

/** Returns the driver's name of the result that a call ends with. */
export function resultOf(call: () => unknown): string {
  try {
    call();
  } catch (error) {
    if (error instanceof DriverError) return resultName(error.result);
    throw error;
  }
  return 'CUDA_SUCCESS';
}

/** Returns the message of the DriverError that a call throws. */
export function messageOf(call: () => unknown): string {
  try {
    call();
  } catch (error) {
    if (error instanceof DriverError) return error.message;
    throw error;
  }
  return '';
}
