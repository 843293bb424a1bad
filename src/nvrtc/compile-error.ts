/**
 * The errors for CUDA C++ that does not compile: the source's lines with carets, and what to write
 * instead.
 */
import { CLASS_NAME } from '../ground/named-error.js';
import { CudaArgumentError, CudaCompileError } from '../core/index.js';
import { codeFrame } from '../compiler/code-frame.js';
import type { CheckedOptions } from './compile-options.js';
import { readDiagnostics } from './diagnostics.js';
import type { Diagnostic } from './diagnostics.js';
import { headerFor } from './standard-headers.js';

/** The number of errors whose lines are shown; the log has all. */
const MOST_SHOWN = 5;
/** NVRTC's name for the file that it makes of the name expressions. */
const NAME_MAP = '__nv_name_map';

/** Headers of CUDA that are in another package than the rest. */
const PACKAGES: readonly (readonly [RegExp, string])[] = [
  [/^(cuda|cub|thrust|nv)\//, 'nvidia-cuda-cccl'],
  [/^crt\//, 'nvidia-cuda-crt'],
  [/^curand/, 'nvidia-curand'],
];
const CUDAS_OWN =
  /^(cuda|cooperative_groups|cub\/|thrust\/|nv\/|crt\/|curand|mma\.h|math_constants\.h)/;

/**
 * The error for CUDA C++ that does not compile. `message` shows the first errors with their lines,
 * `log` is NVRTC's whole log, `diagnostics` is the same, message by message, and `place` is the
 * first error's file, line and column.
 *
 * @example
 * ```ts no-run
 * try {
 *   await compile('extern "C" __global__ void f(float* y) {\n  y[0] = foo;\n}');
 * } catch (error) {
 *   if (!(error instanceof NvrtcCompileError)) throw error;
 *   console.log(error.diagnostics[0]?.message); // identifier "foo" is undefined
 *   console.log(error.place?.line, error.place?.column); // 2 10
 * }
 * ```
 */
export class NvrtcCompileError extends CudaCompileError {
  /** @internal */
  static override readonly [CLASS_NAME]: string = 'NvrtcCompileError';

  override name = 'NvrtcCompileError';
  readonly diagnostics: readonly Diagnostic[];

  /** @internal */
  constructor(message: string, log: string, diagnostics: readonly Diagnostic[]) {
    const first = diagnostics.find(
      ({ severity, file, line, column }) =>
        severity === 'error' && file !== undefined && line !== undefined && column !== undefined,
    );
    super(
      message,
      log,
      '',
      first === undefined
        ? {}
        : { place: { file: first.file!, line: first.line!, column: first.column! } },
    );
    this.diagnostics = diagnostics;
  }
}

/** The messages of a log about `source`. */
export function diagnosticsOf(
  log: string,
  source: string,
  { name, headers }: Pick<CheckedOptions, 'name' | 'headers'>,
): Diagnostic[] {
  const texts = new Map([...headers, [name, source] as const]);
  return readDiagnostics(log, (file) => texts.get(file));
}

/** The error for a log. It is an argument's error where only name expressions are wrong. */
export function compileError(
  log: string,
  source: string,
  options: CheckedOptions,
  cudaFolders: readonly string[],
): CudaCompileError | CudaArgumentError {
  const diagnostics = diagnosticsOf(log, source, options);
  const errors = diagnostics.filter(({ severity }) => severity === 'error');
  const shown = errors.slice(0, MOST_SHOWN).map(showDiagnostic);
  if (errors.length > MOST_SHOWN)
    shown.push(`… and ${errors.length - MOST_SHOWN} more: see the error's log`);
  const missing = errors.flatMap(
    ({ message }) => /(?:cannot|could not) open source file "([^"]+)"/.exec(message)?.[1] ?? [],
  );
  const marked = errors.find(
    ({ line, code }) => line === 1 && code?.startsWith('\ufeff') === true,
  )?.file;
  if (marked !== undefined)
    shown.push(
      `${marked} begins with a byte order mark, which NVRTC takes for text. Save it as UTF-8 ` +
        'without one, or pass its text, headers: { … }.',
    );
  else if (missing.length > 0) shown.push(adviceForHeader(missing[0]!, options, cudaFolders));
  else {
    const lacking = new Set(errors.flatMap(({ message }) => headerFor(message) ?? []));
    if (lacking.size > 0)
      shown.push(
        `Write ${[...lacking].map((header) => `#include <${header}>`).join(' and ')}, which ` +
          'comes with async-cuda.',
      );
  }
  const text = shown.length === 0 ? log.trim() : shown.join('\n');
  const error = new NvrtcCompileError(
    `${options.name} does not compile:\n${text}`,
    log,
    diagnostics,
  );
  if (errors.length === 0 || errors.some(({ file }) => file !== NAME_MAP)) return error;
  return nameExpressionError(errors, options.nameExpressions, error);
}

/** Writes `source.cu:5:66: error: identifier "foo" is undefined`, with the line below. */
export function showDiagnostic({
  severity,
  message,
  file,
  line,
  column,
  code,
}: Diagnostic): string {
  const place =
    file === undefined
      ? ''
      : line === undefined
        ? `${file}: `
        : column === undefined
          ? `${file}:${line}: `
          : `${file}:${line}:${column}: `;
  const head = `${place}${severity}: ${message}`;
  if (code === undefined || line === undefined || code.trim() === '') return head;
  if (column === undefined) return `${head}\n  ${line} | ${code.trim()}`;
  return `${head}\n${codeFrame(code, line, column, lengthAt(code, column))}`;
}

/** The length of the word that a caret points at. */
function lengthAt(code: string, column: number): number {
  return /^(\w+|"[^"]*"?)/.exec(code.slice(column - 1))?.[0].length ?? 1;
}

function adviceForHeader(
  header: string,
  { includeFolders, headers }: CheckedOptions,
  cudaFolders: readonly string[],
): string {
  const folders = [...includeFolders, ...cudaFolders];
  const looked = [
    headers.length === 0 ? '' : `headers (${headers.map(([name]) => name).join(', ')})`,
    ...folders,
  ].filter((place) => place !== '');
  const wheels =
    cudaFolders.length > 0
      ? PACKAGES.find(([pattern]) => pattern.test(header))?.[1]
      : CUDAS_OWN.test(header)
        ? 'nvidia-cuda-runtime nvidia-cuda-crt nvidia-cuda-cccl'
        : undefined;
  const cuda =
    wheels === undefined
      ? ''
      : ` It is CUDA's own: \`pip install ${wheels}\`, or the CUDA toolkit.`;
  const host = /\.|\//.test(header)
    ? ''
    : ' NVRTC has no headers of the C++ library: take cuda/std/…, or guard it with #ifndef ' +
      '__CUDACC_RTC__.';
  return (
    `There is no ${header} in ` +
    `${looked.length === 0 ? 'any folder: none was given' : looked.join(', ')}. ` +
    `Pass its text, headers: { '${header}': … }, or its folder, includeFolders: ` +
    `['…'].${cuda}${host}`
  );
}

function nameExpressionError(
  errors: readonly Diagnostic[],
  expressions: readonly string[],
  cause: NvrtcCompileError,
): CudaArgumentError {
  const plain = (text: string): string => text.replace(/\s/g, '');
  const first = errors[0]!;
  // Each expression is a line of that file; the last message of a line quotes it.
  const quoted = errors
    .filter(({ line }) => line === first.line)
    .flatMap(({ message }) => /name expression was: "(.*)"$/.exec(message)?.[1] ?? [])[0];
  const index =
    quoted === undefined
      ? -1
      : expressions.findIndex((expression) => plain(expression) === plain(quoted));
  const argument = index === -1 ? 'options.nameExpressions' : `options.nameExpressions[${index}]`;
  const fix = /which instance of function template/.test(first.message)
    ? `Name an instance of the template: '${expressions[index] ?? 'scale'}<float>'.`
    : /constant value/.test(first.message)
      ? `For a variable write its address: '&${expressions[index] ?? 'counter'}'.`
      : '';
  return new CudaArgumentError(
    argument,
    `${argument}: expected the name of a kernel or the address of a variable, got ` +
      `${index === -1 ? expressions.join(', ') : `'${expressions[index]}'`}: ` +
      `${first.message}.${fix === '' ? '' : ` ${fix}`}`,
    { cause },
  );
}
