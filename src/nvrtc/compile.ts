/**
 * Compiles CUDA C++ with NVIDIA's NVRTC: on a thread of its own, on any machine that has the
 * library, with a GPU or without.
 */
import { checkText, invalid } from '../ground/arguments.js';
import { headerFolders } from '../native/headers.js';
import { KNOWN_LIBRARIES } from '../native/libraries.js';
import { checkCompileOptions, withoutMark } from './compile-options.js';
import type { CheckedOptions, CompileOptions } from './compile-options.js';
import { compileError, diagnosticsOf } from './compile-error.js';
import { compileOnThread } from './compiler-thread.js';
import { withEscapedNewlines } from './escaped-newlines.js';
import type { Diagnostic } from './diagnostics.js';
import { dependenciesOf } from './includes.js';
import { keepProgram, keptProgram } from './kept-programs.js';
import { identityOf, placeOf } from './library-place.js';
import { Program } from './program.js';
import { refusalError } from './refusal.js';
import { bundledHeadersFolder, precompiledHeadersFolder } from './scratch-folders.js';
import { CONSTANTS_HEADER, headerFor, standardHeaders } from './standard-headers.js';
import type { CompileRequest, Compiled, Version } from './thread/messages.js';

const BYTES = ['cubin', 'ltoir'] as const;

/**
 * Options that make NVRTC read or write files: the options alone do not determine the program then.
 */
const USES_FILES = new RegExp(
  '^-{1,2}(I|include|pre-include|include-path|isystem|pch|create-pch|use-pch|pch-dir|time|' +
    'fdevice-time-trace|use-bundled-headers)',
);

/**
 * Compiles CUDA C++, off the JavaScript thread. No GPU is needed. The program is read from disk
 * where the same source was compiled before with the same options, headers and NVRTC.
 * nvrtcCompileProgram
 *
 * @param source text of a `.cu` file without host code
 * @throws CudaArgumentError for an unknown option, an option that this NVRTC does not accept, and a
 * name expression that names nothing
 *
 * Rejects with {@link NvrtcCompileError} where the source does not compile, with CudaError with
 * code ERR_CUDA_NO_LIBRARY where there is no NVRTC and ERR_CUDA_UNSUPPORTED where NVRTC is too old
 * for an option, and with the signal's reason where it aborts.
 *
 * @example
 * ```ts no-run
 * const program = await compile('extern "C" __global__ void f(float* y) { y[0] = 1; }', {
 *   architecture: 'sm_90',
 *   outputs: ['ptx', 'cubin'],
 * });
 * console.log(program.has('cubin'), program.ptx.includes('.target sm_90')); // true true
 * ```
 */
export async function compile(source: string, options: CompileOptions = {}): Promise<Program> {
  const checked = checkedSource(source, options);
  return compileChecked(withEscapedNewlines(withoutMark(source)), checked);
}

function checkedSource(source: string, options: CompileOptions): CheckedOptions {
  checkText('source', source);
  if (source.length < 4096 && /^\S+\.(cu|cuh|h|hpp|cpp)$/.test(source)) {
    throw invalid(
      'source',
      'CUDA C++',
      source,
      "That is the name of a file: pass what is in it, e.g. await readFile(name, 'utf8').",
    );
  }
  return checkCompileOptions(options);
}

/**
 * Compiles for a device of this compute capability, where the options name no architecture; makes a
 * cubin where NVRTC supports that architecture. @internal
 */
export function compileFor(
  capability: Version,
  source: string,
  options: CompileOptions,
): Promise<Program> {
  const checked = checkedSource(source, options);
  return compileChecked(withEscapedNewlines(withoutMark(source)), checked, capability);
}

async function compileChecked(
  source: string,
  options: CheckedOptions,
  capability?: Version,
): Promise<Program> {
  const { name, signal } = options;
  signal?.throwIfAborted();
  if (
    options.outputs.includes('cubin') &&
    options.architecture === undefined &&
    capability === undefined
  ) {
    throw invalid(
      'options.architecture',
      "the architecture that the cubin is for, such as 'sm_90'",
      undefined,
    );
  }
  const library = placeOf(KNOWN_LIBRARIES.nvrtc);
  const cudaFolders =
    options.cudaHeaders && library.path !== undefined ? headerFolders(library.path) : [];
  const dependencies = await dependenciesOf(source, {
    name,
    headers: options.headers,
    folders: options.includeFolders,
    cudaFolders,
  });
  // A header in a folder, or among the options, takes precedence.
  const standard = standardHeaders(dependencies.unresolved);
  const headers = [...options.headers, ...standard];
  const lacking = dependencies.unresolved.filter((header) =>
    standard.every(([known]) => known !== header),
  );
  const flags = [
    ...options.flags,
    ...precompiledFlags(options.precompiledHeaders),
    ...[...options.includeFolders, ...cudaFolders].map((folder) => `--include-path=${folder}`),
    ...options.raw,
  ];
  const identity = await identityOf(library);
  const mayKeep =
    options.cache &&
    identity !== undefined &&
    dependencies.unknown === undefined &&
    !options.raw.some((option) => USES_FILES.test(option));
  const key = [
    'nvrtc',
    identity,
    source,
    name,
    options.headers,
    options.flags,
    options.raw,
    options.precompiledHeaders,
    options.nameExpressions,
    options.outputs,
    options.architecture,
    capability,
    options.cudaHeaders,
    dependencies.key,
    standard,
  ];
  const known = mayKeep ? await keptProgram<Compiled>(key, BYTES) : undefined;
  signal?.throwIfAborted();
  if (known !== undefined)
    return new Program(name, known, diagnosticsOf(known.log, source, options), true);

  const request: CompileRequest = {
    kind: 'compile',
    library,
    source,
    name,
    headers,
    flags,
    needs: options.needs,
    nameExpressions: options.nameExpressions,
    outputs: options.outputs,
    architecture: options.architecture,
    capability,
    bundledHeaders:
      options.cudaHeaders && cudaFolders.length === 0 && lacking.length > 0
        ? bundledHeadersFolder()
        : undefined,
  };
  let compiled = await compileOnThread(request, signal);
  // nvcc reads <math.h> before the source; here that is done for sources that need it.
  if (
    'reason' in compiled &&
    compiled.reason === 'source' &&
    !headers.some(([header]) => header === CONSTANTS_HEADER) &&
    lacksConstants(diagnosticsOf(compiled.log, source, options))
  ) {
    compiled = await compileOnThread(
      {
        ...request,
        headers: [...headers, ...standardHeaders([CONSTANTS_HEADER])],
        flags: [`--pre-include=${CONSTANTS_HEADER}`, ...flags],
      },
      signal,
    );
  }
  if ('reason' in compiled)
    throw compiled.reason === 'source'
      ? compileError(compiled.log, source, options, cudaFolders)
      : refusalError(name, compiled);
  if (mayKeep) keepProgram<Compiled>(key, compiled, BYTES);
  return new Program(name, compiled, diagnosticsOf(compiled.log, source, options), false);
}

function lacksConstants(diagnostics: readonly Diagnostic[]): boolean {
  return diagnostics.some(
    ({ severity, message }) => severity === 'error' && headerFor(message) === CONSTANTS_HEADER,
  );
}

function precompiledFlags(precompiled: boolean | string): string[] {
  if (precompiled === false) return [];
  return ['--pch', `--pch-dir=${precompiled === true ? precompiledHeadersFolder() : precompiled}`];
}
