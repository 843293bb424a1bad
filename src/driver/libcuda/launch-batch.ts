/**
 * A {@link LaunchBatch} by cuLaunchKernelEx: each launch has its CUlaunchConfig and its block of
 * parameters in native memory, and the call's four addresses are computed beforehand.
 */
import { BATCH_CAPACITY, BATCH_STRIDE } from '../launch-batch.js';
import type { LaunchBatch } from '../launch-batch.js';
import type { CUresult } from '../../ground/result.js';
import type { Binding } from './binding.js';
import { NativeMemory } from '../../native/native-memory.js';
import { ParamLayouts } from './param-layouts.js';
import { LAUNCH_CONFIG } from './structures.js';

/** The layout: one config for each launch, a cache line apart, before the parameters. */
const CONFIG_WORDS = 16;
const PARAMS = BATCH_CAPACITY * CONFIG_WORDS * 4;
const STREAM_WORD = LAUNCH_CONFIG.hStream >> 2;
const TWO_32 = 4294967296;

/**
 * Returns undefined where the driver does not have cuLaunchKernelEx (CUDA 11.8) or does not return
 * the places of parameters (12.4).
 */
export function launchBatch(binding: Binding): LaunchBatch | undefined {
  const {
    koffi,
    pointerCalls,
    calls: { cuLaunchKernel, cuLaunchKernelEx },
  } = binding;
  if (!cuLaunchKernelEx.available) return undefined;
  const memory = new NativeMemory(koffi, PARAMS + BATCH_CAPACITY * BATCH_STRIDE * 4);
  const launches = Array.from({ length: BATCH_CAPACITY }, (_, i) => i);
  const layouts = new ParamLayouts(
    binding,
    launches.map((i) => memory.address + PARAMS + i * BATCH_STRIDE * 4),
  );
  if (!layouts.available) return undefined;

  const configs = memory.i32.subarray(0, PARAMS >> 2);
  const configAddresses = launches.map((i) => memory.address + i * CONFIG_WORDS * 4);
  const configPointers = configAddresses.map(BigInt);
  const funcs = launches.map(() => 0);
  const funcPointers = launches.map(() => 0n);
  const params = launches.map(() => 0);
  const paramPointers = launches.map(() => 0n);
  const pointerCall = pointerCalls.cuLaunchKernelEx;

  const check = (r: CUresult, i: number): void => {
    if (r === 0) return;
    const at = i * CONFIG_WORDS;
    throw cuLaunchKernel.failure(
      r,
      `grid ${configs.subarray(at, at + 3).join('×')}, block ` +
        `${configs.subarray(at + 3, at + 6).join('×')}, ${configs[at + 6]!} bytes of dynamic ` +
        'shared memory',
    );
  };

  return {
    capacity: BATCH_CAPACITY,
    stride: BATCH_STRIDE,
    words: memory.i32.subarray(PARAMS >> 2),
    prepare(
      i,
      func,
      gridDimX,
      gridDimY,
      gridDimZ,
      blockDimX,
      blockDimY,
      blockDimZ,
      sharedMemBytes,
      stream,
      paramBytes,
    ) {
      let layout;
      try {
        layout = layouts.find(func);
      } catch {
        return false;
      }
      if (paramBytes < layout.bytes) return false;
      const at = i * CONFIG_WORDS;
      configs[at] = gridDimX;
      configs[at + 1] = gridDimY;
      configs[at + 2] = gridDimZ;
      configs[at + 3] = blockDimX;
      configs[at + 4] = blockDimY;
      configs[at + 5] = blockDimZ;
      configs[at + 6] = sharedMemBytes;
      configs[at + STREAM_WORD] = stream;
      configs[at + STREAM_WORD + 1] = stream / TWO_32;
      if (pointerCall === undefined) {
        funcs[i] = func;
        params[i] = layout.addresses[i]!;
      } else {
        funcPointers[i] = layout.func;
        paramPointers[i] = layout.pointers[i]!;
      }
      return true;
    },
    run:
      pointerCall === undefined
        ? (i) => check(cuLaunchKernelEx.run(configAddresses[i]!, funcs[i]!, params[i]!, 0), i)
        : (i) => check(pointerCall(configPointers[i]!, funcPointers[i]!, paramPointers[i]!, 0n), i),
  };
}
