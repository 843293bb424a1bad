/**
 * NVRTC's functions, versions 11 to 13. Each is looked up when it is first needed, so that a
 * library without the newest can do everything else.
 */
import { findFunction } from '../../native/open-library.js';
import type { OpenedLibrary } from '../../native/open-library.js';
import { Refused } from './refused.js';
import { versionName } from './version.js';
import type { Version } from './messages.js';

/** nvrtcResult */
export const NVRTC = {
  SUCCESS: 0,
  OUT_OF_MEMORY: 1,
  INVALID_INPUT: 3,
  INVALID_OPTION: 5,
  COMPILATION: 6,
  NAME_EXPRESSION_NOT_VALID: 10,
} as const;

/** A function of the library: its declaration for koffi, and the version that has it. */
interface FunctionRow {
  readonly declaration: string;
  readonly since: Version;
}

const FUNCTIONS = {
  nvrtcVersion: {
    declaration: 'int nvrtcVersion(_Out_ int* major, _Out_ int* minor)',
    since: [11, 0],
  },
  nvrtcGetErrorString: {
    declaration: 'const char* nvrtcGetErrorString(int result)',
    since: [11, 0],
  },
  nvrtcGetNumSupportedArchs: {
    declaration: 'int nvrtcGetNumSupportedArchs(_Out_ int* count)',
    since: [11, 2],
  },
  nvrtcGetSupportedArchs: {
    declaration: 'int nvrtcGetSupportedArchs(void* archs)',
    since: [11, 2],
  },
  nvrtcCreateProgram: {
    declaration:
      'int nvrtcCreateProgram(_Out_ uintptr_t* prog, const char* src, const char* name, int ' +
      'numHeaders, const char** headers, const char** includeNames)',
    since: [11, 0],
  },
  nvrtcDestroyProgram: {
    declaration: 'int nvrtcDestroyProgram(_Inout_ uintptr_t* prog)',
    since: [11, 0],
  },
  nvrtcAddNameExpression: {
    declaration: 'int nvrtcAddNameExpression(uintptr_t prog, const char* expression)',
    since: [11, 0],
  },
  nvrtcGetLoweredName: {
    declaration:
      'int nvrtcGetLoweredName(uintptr_t prog, const char* expression, _Out_ const char** name)',
    since: [11, 0],
  },
  nvrtcCompileProgram: {
    declaration: 'int nvrtcCompileProgram(uintptr_t prog, int numOptions, const char** options)',
    since: [11, 0],
  },
  nvrtcGetProgramLogSize: {
    declaration: 'int nvrtcGetProgramLogSize(uintptr_t prog, _Out_ size_t* size)',
    since: [11, 0],
  },
  nvrtcGetProgramLog: {
    declaration: 'int nvrtcGetProgramLog(uintptr_t prog, void* log)',
    since: [11, 0],
  },
  nvrtcGetPTXSize: {
    declaration: 'int nvrtcGetPTXSize(uintptr_t prog, _Out_ size_t* size)',
    since: [11, 0],
  },
  nvrtcGetPTX: { declaration: 'int nvrtcGetPTX(uintptr_t prog, void* ptx)', since: [11, 0] },
  nvrtcGetCUBINSize: {
    declaration: 'int nvrtcGetCUBINSize(uintptr_t prog, _Out_ size_t* size)',
    since: [11, 1],
  },
  nvrtcGetCUBIN: { declaration: 'int nvrtcGetCUBIN(uintptr_t prog, void* cubin)', since: [11, 1] },
  nvrtcGetLTOIRSize: {
    declaration: 'int nvrtcGetLTOIRSize(uintptr_t prog, _Out_ size_t* size)',
    since: [12, 0],
  },
  nvrtcGetLTOIR: { declaration: 'int nvrtcGetLTOIR(uintptr_t prog, void* ltoir)', since: [12, 0] },
  nvrtcInstallBundledHeaders: {
    declaration:
      'int nvrtcInstallBundledHeaders(const char* installPath, uint32_t flags, _Out_ const ' +
      'char** errorLog)',
    since: [13, 3],
  },
} as const satisfies Record<string, FunctionRow>;

export type NvrtcFunction = keyof typeof FUNCTIONS;

/** One loaded NVRTC. */
export class NvrtcLibrary {
  readonly path: string;
  readonly version: Version;
  private readonly opened: OpenedLibrary;
  private readonly found = new Map<NvrtcFunction, ((...args: unknown[]) => unknown) | undefined>();

  constructor(opened: OpenedLibrary) {
    this.opened = opened;
    this.path = opened.path;
    const major = [0];
    const minor = [0];
    this.check('nvrtcVersion', this.call('nvrtcVersion', major, minor));
    this.version = [major[0]!, minor[0]!];
  }

  get name(): string {
    return `NVRTC ${versionName(this.version)} (${this.path})`;
  }

  has(name: NvrtcFunction): boolean {
    return this.lookUp(name) !== undefined;
  }

  /** Returns the nvrtcResult of the call. */
  call(name: NvrtcFunction, ...args: unknown[]): number {
    return this.functionOf(name)(...args) as number;
  }

  /** Throws for every result except NVRTC_SUCCESS. */
  check(name: NvrtcFunction, result: number): void {
    if (result === NVRTC.SUCCESS) return;
    const message = `${name} returned ${this.resultName(result)}`;
    throw new Refused(
      result === NVRTC.OUT_OF_MEMORY
        ? { reason: 'memory', message }
        : { reason: 'library', message },
    );
  }

  resultName(result: number): string {
    return `${this.functionOf('nvrtcGetErrorString')(result) as string} (${result})`;
  }

  /** Returns the result of a pair of calls, one for the size and one for the bytes. */
  bytes(sizeOf: NvrtcFunction, get: NvrtcFunction, program: number): Buffer {
    const size = [0];
    this.check(sizeOf, this.call(sizeOf, program, size));
    const bytes = Buffer.alloc(Number(size[0]));
    if (bytes.length > 0) this.check(get, this.call(get, program, bytes));
    return bytes;
  }

  /** Returns the {@link bytes} of text, without the zero that ends it. */
  text(sizeOf: NvrtcFunction, get: NvrtcFunction, program: number): string {
    const bytes = this.bytes(sizeOf, get, program);
    const end = bytes.indexOf(0);
    return bytes.toString('utf8', 0, end === -1 ? bytes.length : end);
  }

  /** Returns the numbers of `sm_NN`, ascending. */
  supportedArchitectures(): number[] {
    const count = [0];
    this.check('nvrtcGetNumSupportedArchs', this.call('nvrtcGetNumSupportedArchs', count));
    const archs = new Int32Array(count[0]!);
    this.check('nvrtcGetSupportedArchs', this.call('nvrtcGetSupportedArchs', archs));
    return [...archs].sort((a, b) => a - b);
  }

  private functionOf(name: NvrtcFunction): (...args: unknown[]) => unknown {
    const found = this.lookUp(name);
    if (found !== undefined) return found;
    throw new Refused({
      reason: 'too-old',
      message:
        `${name} needs NVRTC ${versionName(FUNCTIONS[name].since)} or later; ${this.name} does ` +
        'not have it',
    });
  }

  private lookUp(name: NvrtcFunction): ((...args: unknown[]) => unknown) | undefined {
    if (!this.found.has(name))
      this.found.set(
        name,
        findFunction(this.opened.library, FUNCTIONS[name].declaration) as
          ((...args: unknown[]) => unknown) | undefined,
      );
    return this.found.get(name);
  }
}
