/**
 * Compiled kernels, found again in memory and on disk: by text, signature, constants, target and the compiler's own
 * sources. A kernel that is on disk is taken as it is; one that is not is compiled and kept. What the disk refuses is
 * compiled each time, and nothing else comes of it.
 */
import { kernelEntry, openDiskCache } from '../core/kept.js';
import { compile } from './compiler.js';
import type { CompileTarget, CompiledKernel, Lines } from './compiler.js';
import { LeastRecent } from './least-recent.js';
import { keyOfForm } from './variant.js';
import type { CodeForm, Variant } from './variant.js';

/** PTX of a kernel is some kilobytes; a program that makes kernels without end goes through this. What devices have loaded is not kept here. */
const ROOM = { entries: 1024, bytes: 64 << 20 };
/** Of what is made, beside the text itself: two bytes for each of its characters, and those of the key. */
const bytesOf = (key: string, { ptx }: CompiledKernel): number => 2 * (key.length + ptx.length);

const inMemory = new LeastRecent<Promise<CompiledKernel>>(ROOM);

/** Rejects with CudaCompileError where the source is wrong. */
export async function compiledKernel(variant: Variant, form: CodeForm, target: CompileTarget): Promise<CompiledKernel> {
  const lines = form.lines ? await linesOf(variant) : undefined;
  const key = `${lines === undefined ? '' : `${lines.key} `}${target.capability.join('.')} ${keyOfForm(form)} ${variant.sourceKey}`;
  let compiled = inMemory.get(key);
  if (compiled === undefined) {
    const made = fromDiskOrCompiler(key, variant, form, target, lines);
    compiled = made;
    inMemory.set(key, made);
    // The error names the place that this kernel was written at: another with the same text has its own.
    made.then((there) => { inMemory.settle(key, made, bytesOf(key, there)); }, () => { inMemory.delete(key); });
  }
  return compiled;
}

/** Lines of the user's file, which the code then depends on. */
async function linesOf({ definition: { text, site } }: Variant): Promise<Lines & { readonly key: string }> {
  // What finds places in files is not needed by programs whose kernels are right.
  const { locateText } = await import('./source-location.js');
  const own = locateText(text, site);
  const { file, line, column } = own.at(0);
  return {
    file, key: `${file}:${line}:${column}`,
    lineOf: (source, offset) => {
      const place = (source === text ? own : locateText(source, site)).at(offset);
      // PTX names one file.
      return place.file === file ? { line: place.line, column: place.column } : undefined;
    },
  };
}

async function fromDiskOrCompiler(key: string, variant: Variant, form: CodeForm, target: CompileTarget, lines: Lines | undefined): Promise<CompiledKernel> {
  const cache = openDiskCache();
  const entry = kernelEntry('kernel', [key]);
  const kept = await cache?.read(entry);
  const known = kept === undefined ? undefined : parsed(kept);
  if (known !== undefined) return known;
  try {
    const compiled = await compile(variant.source(form.index), form, target, lines, variant.definition.lowering);
    // Nobody waits for it.
    void cache?.write(entry, Buffer.from(JSON.stringify(compiled)));
    return compiled;
  } catch (error) {
    const { compileError } = await import('./compile-error.js');
    throw compileError(error, variant.definition);
  }
}

/** Undefined for what was not written by this. */
function parsed(bytes: Uint8Array): CompiledKernel | undefined {
  try {
    const kept = JSON.parse(Buffer.from(bytes).toString('utf8')) as Partial<CompiledKernel> | null;
    if (typeof kept?.ptx === 'string' && typeof kept.entry === 'string' && Array.isArray(kept.abi) && typeof kept.cooperative === 'boolean' && typeof kept.dynamicShared === 'boolean') return kept as CompiledKernel;
  } catch {
    // As if it were not there.
  }
  return undefined;
}
