/**
 * Arguments and results of the driver's compiler and linker: options and log buffers as two
 * parallel arrays in native memory, and images as bytes.
 */
import type { JitLogs, JitOptions } from '../structures.js';
import { CUjit_option } from '../flags.js';
import type { Koffi } from '../../native/koffi.js';
import { NativeMemory } from '../../native/native-memory.js';

/** Bytes of each log; the driver truncates longer ones. */
const LOG_SIZE = 64 * 1024;
const MAX_OPTIONS = 16;
/**
 * The layout: CUjit_option (32 bits) of each option, then its value as a `void*`, then the two
 * logs.
 */
const KEYS = 0;
const VALUES = KEYS + 4 * MAX_OPTIONS;
const INFO_LOG = VALUES + 8 * MAX_OPTIONS;
const ERROR_LOG = INFO_LOG + LOG_SIZE;

/** The options of {@link JitOptions}: a row of `CUjit_option` each. */
const OFFERED: Record<keyof JitOptions, number> = {
  CU_JIT_MAX_REGISTERS: CUjit_option.CU_JIT_MAX_REGISTERS,
  CU_JIT_THREADS_PER_BLOCK: CUjit_option.CU_JIT_THREADS_PER_BLOCK,
  CU_JIT_OPTIMIZATION_LEVEL: CUjit_option.CU_JIT_OPTIMIZATION_LEVEL,
  CU_JIT_TARGET: CUjit_option.CU_JIT_TARGET,
  CU_JIT_GENERATE_DEBUG_INFO: CUjit_option.CU_JIT_GENERATE_DEBUG_INFO,
  CU_JIT_GENERATE_LINE_INFO: CUjit_option.CU_JIT_GENERATE_LINE_INFO,
  CU_JIT_LOG_VERBOSE: CUjit_option.CU_JIT_LOG_VERBOSE,
  CU_JIT_CACHE_MODE: CUjit_option.CU_JIT_CACHE_MODE,
};

/**
 * The options of one compilation or link, laid out for the driver. It has to stay referenced until
 * the driver is done.
 */
export class JitRequest {
  readonly count: number;
  /** The address of the CUjit_option array. */
  readonly options: number;
  /** The address of the array of their values. */
  readonly optionValues: number;
  readonly #memory: NativeMemory;

  constructor(koffi: Koffi, options: JitOptions) {
    const memory = new NativeMemory(koffi, ERROR_LOG + LOG_SIZE);
    let count = 0;
    const add = (key: number, value: number): void => {
      memory.u32[(KEYS >> 2) + count] = key;
      memory.setU64(VALUES + 8 * count, value);
      count++;
    };
    add(CUjit_option.CU_JIT_INFO_LOG_BUFFER, memory.address + INFO_LOG);
    add(CUjit_option.CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES, LOG_SIZE);
    add(CUjit_option.CU_JIT_ERROR_LOG_BUFFER, memory.address + ERROR_LOG);
    add(CUjit_option.CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, LOG_SIZE);
    for (const [name, value] of Object.entries(options)) {
      const key = (OFFERED as Record<string, number | undefined>)[name];
      if (key === undefined)
        throw new TypeError(
          `${name} is no option of the JIT. Known: ${Object.keys(OFFERED).join(', ')}.`,
        );
      if (value !== undefined) add(key, Number(value));
    }
    this.#memory = memory;
    this.count = count;
    this.options = memory.address + KEYS;
    this.optionValues = memory.address + VALUES;
  }

  /** Returns what was written into the two logs so far. */
  logs(): JitLogs {
    return {
      infoLog: this.#memory.text(INFO_LOG, LOG_SIZE),
      errorLog: this.#memory.text(ERROR_LOG, LOG_SIZE),
    };
  }
}

/** The first four bytes of the binary images that the driver takes, little endian. */
const BINARY_MAGIC: ReadonlySet<number> = new Set([
  0x464c457f, // ELF: a cubin
  0xba55ed50, // a fatbin
  0x466243b1, // the wrapper that nvcc puts around a fatbin
]);

/**
 * Returns the bytes of an image. PTX text gets the terminating zero at which the driver stops
 * reading; cubins and fatbins are unchanged.
 */
export function imageBytes(image: string | Uint8Array): Uint8Array {
  if (typeof image === 'string') return Buffer.from(`${image}\0`, 'utf8');
  if (image.length >= 4) {
    const magic = new DataView(image.buffer, image.byteOffset).getUint32(0, true);
    if (BINARY_MAGIC.has(magic)) return image;
  }
  return image.at(-1) === 0 ? image : Buffer.concat([image, Buffer.of(0)]);
}
