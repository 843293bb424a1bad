/**
 * The cache of compiled kernels, in memory and on disk, by text, signature, constants, target and
 * the compiler's own sources. A kernel that is on disk is taken as it is; any other is compiled and
 * kept. A kernel that cannot be written to disk is compiled in each process, and no error comes of
 * it.
 */
import { kernelEntry, openDiskCache } from '../core/kept.js';
import { compile, compileNow } from './compiler.js';
import type { CompileTarget, CompiledKernel, Lines } from './compiler.js';
import { compilerPart, compilerPartNow } from './compiler-parts.js';
import type { CompilerParts } from './compiler-parts.js';
import { LeastRecent } from './least-recent.js';
import { assemble, assembleNow } from './tile-assembler.js';
import type { Assembly } from './tile-assembler.js';
import { keyOfForm } from './variant.js';
import type { CodeForm, Definition, Variant } from './variant.js';

/**
 * The PTX of a kernel takes some kilobytes. The limits are for programs that make kernels without
 * end. What devices have loaded is not counted here.
 */
const ROOM = { entries: 1024, bytes: 64 << 20 };
/**
 * Bytes of an entry, beside the text itself: two for each character of the PTX, and those of the
 * key.
 */
const bytesOf = (key: string, { ptx, bytecode = '', cubin }: CompiledKernel): number =>
  2 * (key.length + ptx.length) + bytecode.length + (cubin?.length ?? 0);

interface Kept {
  readonly done: Promise<CompiledKernel>;
  /** Set once the kernel is compiled. */
  compiled: CompiledKernel | undefined;
}

const inMemory = new LeastRecent<Kept>(ROOM);

type LinesWithKey = Lines & { readonly key: string };

/** Rejects with CudaCompileError where the source is wrong. */
export async function compiledKernel(
  variant: Variant,
  form: CodeForm,
  target: CompileTarget,
): Promise<CompiledKernel> {
  // Programs whose kernels are right do not load the code that finds places in files.
  const lines = form.lines ? linesOf(variant, await compilerPart('locateText')) : undefined;
  const key = keyOf(variant, form, target, lines);
  let kept = inMemory.get(key);
  if (kept === undefined) {
    const made: Kept = {
      done: fromDiskOrCompiler(key, variant, form, target, lines),
      compiled: undefined,
    };
    kept = made;
    inMemory.set(key, made);
    // The error names the place at which this kernel was written; another kernel with the same text
    // has its own.
    made.done.then(
      (compiled) => {
        made.compiled = compiled;
        inMemory.settle(key, made, bytesOf(key, compiled));
      },
      () => {
        inMemory.delete(key);
      },
    );
  }
  return kept.done;
}

/**
 * Does what {@link compiledKernel} does, on a thread that blocks. Undefined where the kernel is not
 * in the cache, and the compiler cannot be loaded.
 *
 * @throws CudaCompileError where the source is wrong
 */
export function compiledKernelNow(
  variant: Variant,
  form: CodeForm,
  target: CompileTarget,
): CompiledKernel | undefined {
  const locateText = form.lines ? compilerPartNow('locateText') : undefined;
  if (form.lines && locateText === undefined) return undefined;
  const lines = locateText === undefined ? undefined : linesOf(variant, locateText);
  const key = keyOf(variant, form, target, lines);
  // A kernel that is being compiled for another caller cannot arrive before this thread goes on.
  const known = inMemory.get(key)?.compiled;
  if (known !== undefined) return known;
  const cache = openDiskCache();
  const entry = kernelEntry('kernel', [key]);
  const kept = cache?.get(entry);
  let compiled = kept === undefined ? undefined : parsed(kept);
  if (compiled === undefined) {
    try {
      compiled = compileNow(
        variant.source(form.index),
        form,
        target,
        lines,
        variant.definition.lowering,
      );
    } catch (error) {
      const compileError = compilerPartNow('compileError');
      // The asynchronous path compiles it again and reports the error with its place.
      if (compileError === undefined) return undefined;
      throw compileError(error, variant.definition);
    }
    if (compiled === undefined) return undefined;
    // No code waits for the write.
    void cache?.write(entry, contentsOf(compiled));
  }
  if (compiled.bytecode !== undefined) {
    try {
      compiled = { ...compiled, cubin: assembleNow(assemblyOf(compiled, variant, form, target)) };
    } catch (error) {
      throw compilerPartNow('compileError')?.(error, variant.definition) ?? error;
    }
  }
  inMemory.set(key, { done: Promise.resolve(compiled), compiled }, bytesOf(key, compiled));
  return compiled;
}

function keyOf(
  variant: Variant,
  form: CodeForm,
  target: CompileTarget,
  lines: LinesWithKey | undefined,
): string {
  return (
    `${lines === undefined ? '' : `${lines.key} `}${target.capability.join('.')}` +
    `${target.emulated === true ? ' emulated' : ''} ` +
    `${keyOfForm(form)} ${variant.sourceKey}`
  );
}

/** The lines of the user's file, on which the code then depends. @internal */
export function linesOf(
  { definition: { text, site } }: { readonly definition: Pick<Definition, 'text' | 'site'> },
  locateText: CompilerParts['locateText'],
): LinesWithKey {
  const own = locateText(text, site);
  const { file, line, column } = own.at(0);
  // Code names a place for each statement of each call, and a text is searched in all scripts.
  const locators = new Map([[text, own]]);
  const locatorOf = (source: string): typeof own => {
    let locator = locators.get(source);
    if (locator === undefined) locators.set(source, (locator = locateText(source, site)));
    return locator;
  };
  return {
    file,
    key: `${file}:${line}:${column}`,
    lineOf: (source, offset) => {
      const place = locatorOf(source).at(offset);
      // PTX names one file.
      return place.file === file ? { line: place.line, column: place.column } : undefined;
    },
  };
}

async function fromDiskOrCompiler(
  key: string,
  variant: Variant,
  form: CodeForm,
  target: CompileTarget,
  lines: Lines | undefined,
): Promise<CompiledKernel> {
  const cache = openDiskCache();
  const entry = kernelEntry('kernel', [key]);
  const kept = await cache?.read(entry);
  const known = kept === undefined ? undefined : parsed(kept);
  try {
    if (known !== undefined) return await withCubin(known, variant, form, target);
    const compiled = await compile(
      variant.source(form.index),
      form,
      target,
      lines,
      variant.definition.lowering,
    );
    // No code waits for the write.
    void cache?.write(entry, contentsOf(compiled));
    return await withCubin(compiled, variant, form, target);
  } catch (error) {
    throw (await compilerPart('compileError'))(error, variant.definition);
  }
}

/** What the assembler takes. */
export const assemblyOf = (
  { bytecode = '' }: CompiledKernel,
  { definition: { name, text } }: Variant,
  { lines }: CodeForm,
  { capability }: CompileTarget,
): Assembly => ({ bytecode: Buffer.from(bytecode, 'base64'), capability, lines, name, text });

async function withCubin(
  compiled: CompiledKernel,
  variant: Variant,
  form: CodeForm,
  target: CompileTarget,
): Promise<CompiledKernel> {
  return compiled.bytecode === undefined
    ? compiled
    : { ...compiled, cubin: await assemble(assemblyOf(compiled, variant, form, target)) };
}

function contentsOf(compiled: CompiledKernel): Uint8Array {
  return Buffer.from(JSON.stringify(compiled));
}

/** Undefined where the bytes are not such an entry. */
function parsed(bytes: Uint8Array): CompiledKernel | undefined {
  try {
    const kept = JSON.parse(Buffer.from(bytes).toString('utf8')) as Partial<CompiledKernel> | null;
    if (
      typeof kept?.ptx === 'string' &&
      typeof kept.entry === 'string' &&
      Array.isArray(kept.abi) &&
      typeof kept.cooperative === 'boolean' &&
      typeof kept.dynamicShared === 'boolean'
    )
      return kept as CompiledKernel;
  } catch {
    // The entry counts as missing.
  }
  return undefined;
}
