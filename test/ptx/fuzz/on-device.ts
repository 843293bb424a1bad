/**
 * Runs what the compiler accepts on a CPU device, and reports when that ends otherwise than a
 * launch may end.
 */
import { DriverError, isPolled, openCpu } from 'async-cuda/driver';
import type { WasmKernel, WasmModule } from 'async-cuda/ptx';
import { Random } from './random.js';

const MEMORY_BYTES = 32 * 2 ** 20;
const CANARY = 0xa5;
const POLLS = 60;
/** 2^30 calls of a recursion without end take five seconds on a machine with nothing else to do. */
const LONGEST_POLL_MS = 30_000;

/**
 * Each module has a new device, since a fault ends a context. Returns undefined where there is no
 * problem.
 */
export function runOnDevice(text: string, module: WasmModule, seed: number): string | undefined {
  const random = new Random(seed);
  for (const kernel of module.kernels.slice(0, 3)) {
    const complaint = runKernel(text, kernel, random);
    if (complaint !== undefined) return `${kernel.name}: ${complaint}`;
  }
  return undefined;
}

function runKernel(text: string, kernel: WasmKernel, random: Random): string | undefined {
  const cu = openCpu({
    devices: 2,
    memoryBytes: MEMORY_BYTES,
    multiprocessors: 2,
    print: () => undefined,
  });
  if (!isPolled(cu)) throw new Error('the CPU device is polled');
  try {
    cu.cuInit(0);
    // A kernel must not change the other device's memory.
    cu.cuCtxSetCurrent(cu.cuDevicePrimaryCtxRetain(1));
    const other = cu.cuMemAllocManaged(65536, 1);
    const seen = cu.hostView(other, 65536);
    const canary = new Uint8Array(seen.buffer, seen.byteOffset, 65536).fill(CANARY);
    cu.cuCtxSetCurrent(cu.cuDevicePrimaryCtxRetain(0));
    const stream = cu.cuStreamCreateWithPriority(1, 0);
    const loaded = cu.cuModuleLoadDataEx(text, {});
    const func = cu.cuModuleGetFunction(loaded, kernel.name);
    const memory = cu.cuMemAllocManaged(1 << 20, 1);
    const params = new Int32Array(Math.ceil(kernel.paramBytes / 4));
    const view = new DataView(params.buffer);
    for (const { offset, size } of kernel.params) {
      if (size === 8)
        view.setBigUint64(
          offset,
          random.chance(12)
            ? BigInt(random.pick([0, 65535, other, 2 ** 32 - 4, 2 ** 40]))
            : BigInt(memory + 256 * random.below(64)),
          true,
        );
      else if (size === 4)
        view.setUint32(offset, random.chance(8) ? random.bits() : random.below(300), true);
      else for (let at = offset; at < offset + size; at++) view.setUint8(at, random.below(256));
    }
    const [x, y, z] = kernel.requiredBlock ?? [random.pick([1, 32, 33, 64]), 1, 1];
    const threads = Math.min(kernel.maxThreads, x * y * z);
    if (threads < x * y * z) return undefined;
    cu.cuLaunchKernel(
      func,
      2,
      1,
      1,
      x,
      y,
      z,
      random.chance(3) ? 4096 : 0,
      stream,
      params,
      0,
      kernel.paramBytes,
    );
    // Bounded: a turn ends when its fuel is gone, whatever the kernel does.
    for (let poll = 0; poll < POLLS; poll++) {
      const start = performance.now();
      const busy = cu.poll(500);
      const ms = performance.now() - start;
      if (ms > LONGEST_POLL_MS) return `one turn took ${ms.toFixed(0)} ms`;
      if (!busy) break;
    }
    if (canary.some((byte) => byte !== CANARY)) return "another device's memory changed";
    return undefined;
  } catch (error) {
    if (error instanceof DriverError) return undefined;
    return error instanceof Error ? (error.stack ?? error.message) : String(error);
  }
}
