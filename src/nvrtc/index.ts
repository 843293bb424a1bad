/**
 * CUDA C++, compiled and linked at run time by NVIDIA's own libraries, off the JavaScript thread,
 * on any machine that has them: with a GPU or without.
 *
 * @packageDocumentation
 */
export { compile } from './compile.js';
/** @internal */
export { compileFor } from './compile.js';
export type { Architecture, CompileOptions, LanguageStandard, Output } from './compile-options.js';
export { NvrtcCompileError } from './compile-error.js';
export type { Diagnostic, Severity } from './diagnostics.js';
export { Program } from './program.js';
export { link } from './link.js';
export type { LinkedProgram } from './link.js';
export type { LinkInput, LinkOptions } from './link-options.js';
export type {
  AnyMemory,
  ArgumentOf,
  FieldValues,
  KernelsOf,
  Readable,
  ScalarArgument,
  StructArgument,
  Untyped,
  UntypedParameters,
  Writable,
} from './source-types.js';
