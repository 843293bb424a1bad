/** Links with nvJitLink, version 12 and later. */
import { findFunction } from '../../native/open-library.js';
import type { OpenedLibrary } from '../../native/open-library.js';
import type { LinkKind, LinkRequest, Linked, Version } from './messages.js';
import { Refused } from './refused.js';
import { versionName } from './version.js';

/** nvJitLinkInputType */
const INPUT: Readonly<Record<LinkKind, number>> = {
  cubin: 1,
  ptx: 2,
  ltoir: 3,
  fatbin: 4,
  object: 5,
};

/** nvJitLinkResult */
const SUCCESS = 0;
const RESULTS: Readonly<Record<number, string>> = {
  1: 'UNRECOGNIZED_OPTION',
  2: 'MISSING_ARCH',
  3: 'INVALID_INPUT',
  4: 'PTX_COMPILE',
  5: 'NVVM_COMPILE',
  6: 'INTERNAL',
  7: 'THREADPOOL',
  8: 'UNRECOGNIZED_INPUT',
  9: 'FINALIZE',
};
const UNRECOGNIZED_OPTION = 1;
const MISSING_ARCH = 2;

/** Arguments in C, by function. */
const FUNCTIONS = {
  Create: '_Out_ uintptr_t* handle, uint32_t numOptions, const char** options',
  Destroy: '_Inout_ uintptr_t* handle',
  AddData: 'uintptr_t handle, int inputType, void* data, size_t size, const char* name',
  Complete: 'uintptr_t handle',
  GetLinkedCubinSize: 'uintptr_t handle, _Out_ size_t* size',
  GetLinkedCubin: 'uintptr_t handle, void* cubin',
  GetLinkedPtxSize: 'uintptr_t handle, _Out_ size_t* size',
  GetLinkedPtx: 'uintptr_t handle, void* ptx',
  GetErrorLogSize: 'uintptr_t handle, _Out_ size_t* size',
  GetErrorLog: 'uintptr_t handle, void* log',
  GetInfoLogSize: 'uintptr_t handle, _Out_ size_t* size',
  GetInfoLog: 'uintptr_t handle, void* log',
  Version: '_Out_ uint32_t* major, _Out_ uint32_t* minor',
} as const;

type LinkFunction = keyof typeof FUNCTIONS;

/**
 * Symbols end with the version of the header that they came with: a library has the symbols of all
 * earlier versions of its major version.
 */
const SUFFIXES = ['13_0', '12_0'] as const;
/** The suffixes of nvJitLinkVersion, which is newer. */
const VERSION_SUFFIXES = ['13_0', '12_3'] as const;

/** One loaded nvJitLink. */
export class NvJitLinkLibrary {
  readonly path: string;
  /** The version; undefined before 12.3, which has no function for it. */
  readonly version: Version | undefined = undefined;
  private readonly opened: OpenedLibrary;
  private readonly found = new Map<LinkFunction, (...args: unknown[]) => number>();

  constructor(opened: OpenedLibrary) {
    this.opened = opened;
    this.path = opened.path;
    const getVersion = this.lookUp('Version', VERSION_SUFFIXES);
    if (getVersion === undefined) return;
    const major = [0];
    const minor = [0];
    if (getVersion(major, minor) === SUCCESS) this.version = [major[0]!, minor[0]!];
  }

  get name(): string {
    return (
      `nvJitLink${this.version === undefined ? '' : ` ${versionName(this.version)}`} ` +
      `(${this.path})`
    );
  }

  call(name: LinkFunction, ...args: unknown[]): number {
    let found = this.found.get(name);
    if (found === undefined) {
      found = this.lookUp(name, SUFFIXES);
      if (found === undefined)
        throw new Refused({
          reason: 'unsupported',
          message: `${this.name} has no nvJitLink${name} of CUDA 12 or 13`,
        });
      this.found.set(name, found);
    }
    return found(...args);
  }

  private lookUp(
    name: LinkFunction,
    suffixes: readonly string[],
  ): ((...args: unknown[]) => number) | undefined {
    for (const suffix of suffixes) {
      const found = findFunction(
        this.opened.library,
        `int __nvJitLink${name}_${suffix}(${FUNCTIONS[name]})`,
      );
      if (found !== undefined) return found as (...args: unknown[]) => number;
    }
    return undefined;
  }
}

export function linkProgram(
  library: NvJitLinkLibrary,
  { parts, flags, output }: LinkRequest,
): Linked {
  const handle = [0];
  const created = library.call('Create', handle, flags.length, flags);
  if (created === UNRECOGNIZED_OPTION || created === MISSING_ARCH) {
    const log = handle[0] === 0 ? '' : logOf(library, 'Error', handle[0]!);
    throw new Refused({
      reason: 'option',
      message:
        (log === ''
          ? `nvJitLinkCreate returned ${resultName(created)} for ${flags.join(' ')}`
          : log) + ` (${library.name})`,
    });
  }
  if (created !== SUCCESS)
    throw new Refused({
      reason: 'library',
      message: `nvJitLinkCreate returned ${resultName(created)}`,
    });
  const link = handle[0]!;
  const check = (call: string, result: number): void => {
    if (result === SUCCESS) return;
    const log = logOf(library, 'Error', link);
    throw new Refused({
      reason: 'source',
      log: log === '' ? `${call} returned ${resultName(result)}` : log,
      version: library.version,
    });
  };
  try {
    for (const { kind, name, data } of parts)
      check(
        `nvJitLinkAddData of ${name}`,
        library.call('AddData', link, INPUT[kind], data, data.length, name),
      );
    check('nvJitLinkComplete', library.call('Complete', link));
    const size = [0];
    const what = output === 'cubin' ? 'Cubin' : 'Ptx';
    check(`nvJitLinkGetLinked${what}Size`, library.call(`GetLinked${what}Size`, link, size));
    const bytes = Buffer.alloc(Number(size[0]));
    check(`nvJitLinkGetLinked${what}`, library.call(`GetLinked${what}`, link, bytes));
    return {
      version: library.version,
      log: logOf(library, 'Info', link),
      cubin: output === 'cubin' ? bytes : undefined,
      ptx: output === 'ptx' ? untilZero(bytes) : undefined,
    };
  } finally {
    library.call('Destroy', handle);
  }
}

function resultName(result: number): string {
  return RESULTS[result] === undefined
    ? `${result}`
    : `NVJITLINK_ERROR_${RESULTS[result]} (${result})`;
}

function logOf(library: NvJitLinkLibrary, kind: 'Error' | 'Info', link: number): string {
  const size = [0];
  if (library.call(`Get${kind}LogSize`, link, size) !== SUCCESS) return '';
  const bytes = Buffer.alloc(Number(size[0]));
  if (bytes.length === 0 || library.call(`Get${kind}Log`, link, bytes) !== SUCCESS) return '';
  return untilZero(bytes).trim();
}

function untilZero(bytes: Buffer): string {
  const end = bytes.indexOf(0);
  return bytes.toString('utf8', 0, end === -1 ? bytes.length : end);
}
