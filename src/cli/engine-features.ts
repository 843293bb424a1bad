/** The features of this JavaScript engine that the CPU device uses where they exist. */
import { relaxedFmaIsFused } from '../ptx/runtime/relaxed-probe.js';

export interface EngineFeatures {
  /** 128-bit SIMD in WebAssembly. */
  wasmSimd: boolean;
  /** Shared memories and atomics in WebAssembly. */
  wasmThreads: boolean;
  wasmRelaxedSimd: boolean;
  /** Whether relaxed_madd rounds once, as `fma.rn` must. A machine may round twice. */
  wasmRelaxedMaddFused: boolean;
  /** Memories with 64-bit addresses. */
  wasmMemory64: boolean;
  float16Array: boolean;
  atomicsWaitAsync: boolean;
}

const HEADER = [0x00, 0x61, 0x73, 0x6d, 0x01, 0x00, 0x00, 0x00];

function section(id: number, ...contents: number[]): number[] {
  return [id, contents.length, ...contents];
}

/**
 * A module of one function without parameters or results; `body` is its code before the final
 * `end`.
 */
function moduleOf(
  body: readonly number[],
  memory: readonly number[] = [],
): Uint8Array<ArrayBuffer> {
  return new Uint8Array([
    ...HEADER,
    ...section(1, 1, 0x60, 0, 0),
    ...section(3, 1, 0),
    ...memory,
    ...section(10, 1, body.length + 2, 0, ...body, 0x0b),
  ]);
}

const V128_ZERO = [0x41, 0, 0xfd, 0x0f]; // i32.const 0, i8x16.splat
const DROP = 0x1a;

const simd = moduleOf([...V128_ZERO, DROP]);
const RELAXED_MADD = [0xfd, 0x85, 0x02]; // f32x4.relaxed_madd
const relaxedSimd = moduleOf([...V128_ZERO, ...V128_ZERO, ...V128_ZERO, ...RELAXED_MADD, DROP]);
const threads = moduleOf(
  [0x41, 0, 0xfe, 0x10, 2, 0, DROP], // i32.const 0, i32.atomic.load
  section(5, 1, 3, 1, 1), // a shared memory of one page
);
const memory64 = moduleOf([], section(5, 1, 4, 1));

export function engineFeatures(): EngineFeatures {
  return {
    wasmSimd: WebAssembly.validate(simd),
    wasmThreads: WebAssembly.validate(threads),
    wasmRelaxedSimd: WebAssembly.validate(relaxedSimd),
    wasmRelaxedMaddFused: relaxedFmaIsFused(),
    wasmMemory64: WebAssembly.validate(memory64),
    float16Array: 'Float16Array' in globalThis,
    atomicsWaitAsync: 'waitAsync' in Atomics,
  };
}
