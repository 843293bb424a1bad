/**
 * The options of a compilation. Each is a row with the check of the option and the option of NVRTC
 * that it becomes.
 */
import { resolve } from 'node:path';

import {
  checkBoolean,
  checkInteger,
  checkOptions,
  checkSignal,
  checkText,
  invalid,
} from '../ground/arguments.js';
import type { Need, Output, Version } from './thread/messages.js';

export type { Output } from './thread/messages.js';

/** C++ standards that NVRTC supports: c++20 from NVRTC 12.0 on, c++23 from a later 13. */
export type LanguageStandard = 'c++11' | 'c++14' | 'c++17' | 'c++20' | 'c++23';

/** A real architecture, for machine code, or a virtual one, for PTX. */
export type Architecture = `sm_${number}${'' | 'a' | 'f'}` | `compute_${number}${'' | 'a' | 'f'}`;

/** Options of {@link compile}. Each has NVRTC's default unless its description names another. */
export interface CompileOptions {
  /**
   * The architecture to compile for: `'compute_80'` for PTX alone, `'sm_90'` for PTX and a cubin.
   * Default: NVRTC's oldest; with `device.compile` the device's own. --gpu-architecture
   */
  architecture?: Architecture;
  /** The outputs to make. Default `['ptx']`; `'ltoir'` needs NVRTC 12.0. */
  outputs?: readonly Output[];
  /** The source's name in the log and in debuggers. Default `'source.cu'`. */
  name?: string;
  /**
   * Instances of templates, and names whose mangled form is needed: `'scale<float>'`, `'&counter'`.
   * nvrtcAddNameExpression
   */
  nameExpressions?: readonly string[];
  /** Headers by the name in their `#include`; they come before all files. */
  headers?: Readonly<Record<string, string>>;
  /** Folders with headers, searched in this order, before those of CUDA. --include-path */
  includeFolders?: readonly string[];
  /**
   * Whether CUDA's own headers are searched, in the toolkit, in Python wheels or in NVRTC itself.
   * Default true.
   */
  cudaHeaders?: boolean;
  /** Macros: `{ TILE: 16, DEBUG: true }`; false leaves one undefined. --define-macro */
  defines?: Readonly<Record<string, string | number | boolean>>;
  /** --std; default `'c++17'` */
  standard?: LanguageStandard;
  /** Flush to zero, approximate division and square root, fused multiply-add. --use_fast_math */
  fastMath?: boolean;
  /** Whether subnormal f32 become zero. --ftz */
  flushToZero?: boolean;
  /** Whether f32 division rounds to nearest. --prec-div */
  preciseDivision?: boolean;
  /** Whether f32 square roots round to nearest. --prec-sqrt */
  preciseSquareRoot?: boolean;
  /** Whether a * b + c may be one instruction, rounded once. --fmad */
  fuseMultiplyAdd?: boolean;
  /** Whether the code is for debuggers, and not optimised. --device-debug */
  debug?: boolean;
  /** Whether the code has line numbers for profilers. --generate-line-info */
  lineInfo?: boolean;
  /** The most registers of one thread. --maxrregcount */
  maxRegisters?: number;
  /** Whether pointer parameters of kernels do not alias. --restrict */
  restrict?: boolean;
  /**
   * Whether functions without an execution space are `__device__`.
   * --device-as-default-execution-space
   */
  deviceByDefault?: boolean;
  /** Whether `__int128` is available. --device-int128 */
  int128?: boolean;
  /** Whether the code may be linked with other code. --relocatable-device-code */
  relocatable?: boolean;
  /** Whether the log has warnings. Default true. --disable-warnings */
  warnings?: boolean;
  /**
   * Whether headers at the start of the source are stored, compiled, for programs that begin with
   * the same text: in a folder of this process, or in the given folder. Needs NVRTC 12.8. --pch
   */
  precompiledHeaders?: boolean | { readonly folder: string };
  /**
   * Options in NVRTC's spelling, after all others. A program whose options here read files is not
   * cached.
   */
  options?: readonly string[];
  /** Whether the program is cached on disk, and read from there. Default true. */
  cache?: boolean;
  /** Aborting it stops the wait; a compilation that has begun runs to its end. */
  signal?: AbortSignal;
}

/** Options, checked, and in NVRTC's spelling. */
export interface CheckedOptions {
  readonly architecture: string | undefined;
  readonly outputs: readonly Output[];
  readonly name: string;
  readonly nameExpressions: readonly string[];
  readonly headers: readonly (readonly [name: string, text: string])[];
  readonly includeFolders: readonly string[];
  readonly cudaHeaders: boolean;
  readonly flags: readonly string[];
  readonly needs: readonly Need[];
  readonly precompiledHeaders: boolean | string;
  /** Options that the caller wrote in NVRTC's spelling. */
  readonly raw: readonly string[];
  readonly cache: boolean;
  readonly signal: AbortSignal | undefined;
}

interface FlagRow {
  /** Throws for a value that the option does not accept. */
  check(argument: string, value: unknown): void;
  /** NVRTC's options for a checked value. */
  flags(value: never): readonly string[];
  /** The first version of NVRTC that accepts this value; undefined for all versions. */
  since?(value: never): Version | undefined;
}

const always = (flag: string): FlagRow => ({
  check: checkBoolean,
  flags: (value: boolean) => (value ? [flag] : []),
});
const either = (flag: string): FlagRow => ({
  check: checkBoolean,
  flags: (value: boolean) => [`${flag}=${value}`],
});

const STANDARDS: readonly string[] = [
  'c++11',
  'c++14',
  'c++17',
  'c++20',
  'c++23',
] satisfies LanguageStandard[];

/** Options that each become one of NVRTC's own. */
const FLAGS = {
  standard: {
    check: (argument, value) => {
      if (!STANDARDS.includes(value as string))
        throw invalid(argument, `one of ${STANDARDS.join(', ')}`, value);
    },
    flags: (value: string) => [`--std=${value}`],
    since: (value: string) => (value === 'c++20' ? [12, 0] : undefined),
  },
  fastMath: always('--use_fast_math'),
  flushToZero: either('--ftz'),
  preciseDivision: either('--prec-div'),
  preciseSquareRoot: either('--prec-sqrt'),
  fuseMultiplyAdd: either('--fmad'),
  debug: always('--device-debug'),
  lineInfo: always('--generate-line-info'),
  maxRegisters: {
    check: (argument, value) => checkInteger(argument, value, 1, 255, 'registers'),
    flags: (value: number) => [`--maxrregcount=${value}`],
  },
  restrict: always('--restrict'),
  deviceByDefault: always('--device-as-default-execution-space'),
  int128: always('--device-int128'),
  relocatable: either('--relocatable-device-code'),
  warnings: {
    check: checkBoolean,
    flags: (value: boolean) => (value ? [] : ['--disable-warnings']),
  },
  defines: {
    check: checkDefines,
    flags: (value: Readonly<Record<string, string | number | boolean>>) =>
      Object.entries(value).flatMap(defineFlag),
  },
} as const satisfies Partial<Record<keyof CompileOptions, FlagRow>>;

const OTHERS = [
  'architecture',
  'outputs',
  'name',
  'nameExpressions',
  'headers',
  'includeFolders',
  'cudaHeaders',
  'precompiledHeaders',
  'options',
  'cache',
  'signal',
] as const satisfies readonly (keyof CompileOptions)[];

const KNOWN: readonly string[] = [...OTHERS, ...Object.keys(FLAGS)];
const OUTPUTS: readonly string[] = ['ptx', 'cubin', 'ltoir'] satisfies Output[];
const PRECOMPILED_HEADERS: Version = [12, 8];
const LTOIR: Version = [12, 0];

/**
 * Checks the options.
 *
 * @throws CudaArgumentError for an unknown option, or a value that an option does not accept
 */
export function checkCompileOptions(options: CompileOptions): CheckedOptions {
  checkOptions('options', options, KNOWN);
  const {
    architecture,
    outputs = ['ptx'],
    name = 'source.cu',
    nameExpressions = [],
    headers = {},
    includeFolders = [],
    cudaHeaders = true,
    options: raw = [],
    cache = true,
    signal,
  } = options;
  if (
    architecture !== undefined &&
    (typeof architecture !== 'string' || !/^(sm|compute)_\d{2,3}[af]?$/.test(architecture))
  ) {
    throw invalid(
      'options.architecture',
      "an architecture such as 'sm_90' or 'compute_80'",
      architecture,
    );
  }
  checkOutputs(outputs);
  if (outputs.includes('cubin') && architecture?.startsWith('compute_') === true) {
    throw invalid(
      'options.architecture',
      'a real architecture for a cubin',
      architecture,
      `Write architecture: '${architecture.replace('compute', 'sm')}'.`,
    );
  }
  checkText('options.name', name);
  if (name === '') throw invalid('options.name', 'the name of a file', name);
  checkStrings('options.nameExpressions', nameExpressions);
  checkStrings('options.includeFolders', includeFolders);
  checkStrings('options.options', raw);
  checkHeaders(headers);
  checkBoolean('options.cudaHeaders', cudaHeaders);
  checkBoolean('options.cache', cache);
  checkSignal(signal);

  const flags: string[] = [];
  const needs: Need[] = outputs.includes('ltoir')
    ? [{ what: "options.outputs: 'ltoir'", since: LTOIR }]
    : [];
  for (const [key, row] of Object.entries<FlagRow>(FLAGS)) {
    const value = options[key as keyof typeof FLAGS] as never;
    if (value === undefined) continue;
    row.check(`options.${key}`, value);
    flags.push(...row.flags(value));
    const since = row.since?.(value);
    if (since !== undefined) needs.push({ what: `options.${key}: '${String(value)}'`, since });
  }
  const precompiledHeaders = checkPrecompiled(options.precompiledHeaders);
  if (precompiledHeaders !== false)
    needs.push({ what: 'options.precompiledHeaders', since: PRECOMPILED_HEADERS });
  return {
    architecture,
    outputs,
    name,
    nameExpressions,
    headers: Object.entries(headers).map(([header, text]) => [header, withoutMark(text)] as const),
    includeFolders: includeFolders.map((folder) => resolve(folder)),
    cudaHeaders,
    flags,
    needs,
    precompiledHeaders,
    raw,
    cache,
    signal,
  };
}

/**
 * Returns the text without a byte order mark, which readFile(path, 'utf8') leaves at its beginning.
 */
export function withoutMark(text: string): string {
  return text.startsWith('\ufeff') ? text.slice(1) : text;
}

function checkOutputs(outputs: readonly Output[]): void {
  if (!Array.isArray(outputs) || outputs.length === 0)
    throw invalid('options.outputs', `a list of ${OUTPUTS.join(', ')}`, outputs);
  (outputs as readonly unknown[]).forEach((output, i) => {
    if (!OUTPUTS.includes(output as string))
      throw invalid(`options.outputs[${i}]`, `one of ${OUTPUTS.join(', ')}`, output);
  });
}

function checkStrings(argument: string, values: readonly string[]): void {
  if (!Array.isArray(values)) throw invalid(argument, 'a list of strings', values);
  values.forEach((value, i) => {
    checkText(`${argument}[${i}]`, value);
    if (value === '') throw invalid(`${argument}[${i}]`, 'a string that is not empty', value);
  });
}

function checkHeaders(headers: Readonly<Record<string, string>>): void {
  if (typeof headers !== 'object' || (headers as unknown) === null || Array.isArray(headers))
    throw invalid('options.headers', 'an object of texts by name', headers);
  for (const [name, text] of Object.entries(headers)) {
    checkText('options.headers', name);
    checkText(`options.headers['${name}']`, text);
  }
}

function checkDefines(argument: string, defines: unknown): void {
  if (typeof defines !== 'object' || defines === null || Array.isArray(defines))
    throw invalid(argument, 'an object of macros by name', defines, 'Write defines: { TILE: 16 }.');
  for (const [name, value] of Object.entries(defines)) {
    if (!/^[A-Za-z_]\w*(\([\w, .]*\))?$/.test(name))
      throw invalid(argument, 'names of macros', name);
    if (typeof value !== 'string' && typeof value !== 'number' && typeof value !== 'boolean')
      throw invalid(`${argument}.${name}`, 'a string, a number or a boolean', value);
    // A definition ends with its line.
    if (typeof value === 'string' && /[\n\r\0]/.test(value))
      throw invalid(`${argument}.${name}`, 'one line', value);
  }
}

function defineFlag([name, value]: [string, string | number | boolean]): string[] {
  if (value === false) return [];
  return [`--define-macro=${name}=${value === true ? 1 : value}`];
}

function checkPrecompiled(value: CompileOptions['precompiledHeaders']): boolean | string {
  if (value === undefined || typeof value === 'boolean') return value ?? false;
  checkOptions('options.precompiledHeaders', value, ['folder']);
  checkText('options.precompiledHeaders.folder', value.folder);
  return resolve(value.folder);
}
