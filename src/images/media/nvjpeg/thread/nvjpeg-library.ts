/**
 * nvJPEG and the driver on one thread: their functions, with statuses as exceptions. Declarations
 * are those of nvjpeg.h and cuda.h.
 */
import { thisMachine } from '../../../../native/find.js';
import type { Koffi } from '../../../../native/koffi.js';
import { KNOWN_LIBRARIES } from '../../../../native/libraries.js';
import { NativeMemory } from '../../../../native/native-memory.js';
import { findFunction, openLibrary } from '../../../../native/open-library.js';
import type { OpenedLibrary } from '../../../../native/open-library.js';
import type { NvjpegPlace, Refusal } from './messages.js';

/** The exception of a request that fails. */
export class Refused extends Error {
  readonly refusal: Refusal;
  constructor(refusal: Refusal) {
    super(refusal.reason);
    this.refusal = refusal;
  }
}

const NVJPEG = {
  nvjpegGetProperty: 'int type, uintptr_t value',
  nvjpegCreateEx:
    'int backend, uintptr_t deviceAllocator, uintptr_t pinnedAllocator, unsigned int flags, ' +
    'uintptr_t handle',
  nvjpegDestroy: 'uintptr_t handle',
  nvjpegJpegStateCreate: 'uintptr_t handle, uintptr_t state',
  nvjpegJpegStateDestroy: 'uintptr_t state',
  nvjpegGetImageInfo:
    'uintptr_t handle, uintptr_t data, size_t length, uintptr_t components, uintptr_t ' +
    'subsampling, uintptr_t widths, uintptr_t heights',
  nvjpegDecode:
    'uintptr_t handle, uintptr_t state, uintptr_t data, size_t length, int format, uintptr_t ' +
    'image, uintptr_t stream',
} as const;

/** Functions for the hardware decoders: versions before 12.2 do not have all of them. */
const HARDWARE = {
  nvjpegGetHardwareDecoderInfo: 'uintptr_t handle, uintptr_t engines, uintptr_t cores',
  nvjpegJpegStreamCreate: 'uintptr_t handle, uintptr_t stream',
  nvjpegJpegStreamDestroy: 'uintptr_t stream',
  nvjpegJpegStreamParseHeader: 'uintptr_t handle, uintptr_t data, size_t length, uintptr_t stream',
  nvjpegJpegStreamGetFrameDimensions: 'uintptr_t stream, uintptr_t width, uintptr_t height',
  nvjpegDecodeBatchedSupported: 'uintptr_t handle, uintptr_t stream, uintptr_t supported',
  nvjpegDecodeBatchedInitialize:
    'uintptr_t handle, uintptr_t state, int count, int threads, int format',
  nvjpegDecodeBatched:
    'uintptr_t handle, uintptr_t state, uintptr_t sources, uintptr_t lengths, uintptr_t ' +
    'images, uintptr_t stream',
} as const;

const DRIVER = {
  cuCtxSetCurrent: 'uintptr_t context',
  cuStreamCreate: 'uintptr_t stream, unsigned int flags',
  cuStreamSynchronize: 'uintptr_t stream',
  cuStreamDestroy_v2: 'uintptr_t stream',
} as const;

type Call = (...args: unknown[]) => number;

export class NvjpegLibrary {
  readonly path: string;
  readonly version: string;
  /** Memory for results and structures of functions. */
  readonly out: NativeMemory;
  /** Whether it has the functions for the hardware decoders. */
  readonly hasHardware: boolean;
  private readonly nvjpeg: Record<keyof typeof NVJPEG | keyof typeof HARDWARE, Call>;
  private readonly driver: Record<keyof typeof DRIVER, Call>;

  /** @throws Refused where functions are missing; LibraryNotFoundError */
  constructor(koffi: Koffi, { path, driver, env }: NvjpegPlace) {
    const machine = { ...thisMachine(), ...(env === undefined ? {} : { env }) };
    const file = openLibrary(
      koffi,
      KNOWN_LIBRARIES.nvjpeg,
      path === undefined ? { machine } : { path },
    );
    this.path = file.path;
    const hardware = optional(() => functionsOf(file, HARDWARE));
    this.hasHardware = hardware !== undefined;
    // The others are called only where they exist.
    this.nvjpeg = { ...functionsOf(file, NVJPEG), ...hardware! };
    this.driver = functionsOf(
      openLibrary(
        koffi,
        KNOWN_LIBRARIES.cuda,
        driver === undefined ? { machine } : { path: driver },
      ),
      DRIVER,
    );
    this.out = new NativeMemory(koffi, 256);
    this.version = [0, 1, 2]
      .map((property) => {
        this.call('nvjpegGetProperty', property, this.out.address);
        return this.out.i32[0]!;
      })
      .join('.');
  }

  /** @throws Refused for any status but success */
  call(name: keyof typeof NVJPEG | keyof typeof HARDWARE, ...args: unknown[]): void {
    const status = this.nvjpeg[name](...args);
    if (status !== 0)
      throw new Refused({
        reason: 'status',
        library: this.version === undefined ? 'nvJPEG' : `nvJPEG ${this.version}`,
        call: name,
        status,
      });
  }

  /** @throws Refused for any result but success */
  callDriver(name: keyof typeof DRIVER, ...args: unknown[]): void {
    const status = this.driver[name](...args);
    if (status !== 0) throw new Refused({ reason: 'driver', call: name, status });
  }
}

function optional<T>(find: () => T): T | undefined {
  try {
    return find();
  } catch (error) {
    if (error instanceof Refused) return undefined;
    throw error;
  }
}

function functionsOf<T extends Readonly<Record<string, string>>>(
  { library, path }: OpenedLibrary,
  rows: T,
): Record<keyof T, Call> {
  return Object.fromEntries(
    Object.entries(rows).map(([name, parameters]) => {
      const found = findFunction(library, `int ${name}(${parameters})`);
      if (found === undefined)
        throw new Refused({
          reason: 'unsupported',
          message: `${path} has no function ${name}: install another version.`,
        });
      return [name, found as Call];
    }),
  ) as Record<keyof T, Call>;
}
