/**
 * The compiler in parts, each loaded when it is first needed: a program that finds all of its
 * kernels on disk loads none. They are loaded by `import()`, so a thread that blocks has the parts
 * that were loaded before. It loads others by `require`, which takes modules of ESM since Node
 * 20.19. That works where this file lies beside whole-compiler.js, as in the package; a bundler's
 * output has no such file.
 */
import { createRequire } from 'node:module';

export type CompilerParts = typeof import('./whole-compiler.js');
type Name = keyof CompilerParts;

const SOURCES: { readonly [K in Name]: () => Promise<Pick<CompilerParts, K>> } = {
  readKernel: () => import('../compiler/read/read-kernel.js'),
  emitKernel: () => import('../compiler/emit/emit.js'),
  lowered: () => import('../compiler/lowering.js'),
  tileIrKernel: () => import('../compiler/tile-ir/lower.js'),
  locateText: () => import('./source-location.js'),
  compileError: () => import('./compile-error.js'),
};

const loaded: { [K in Name]?: CompilerParts[K] } = {};

export async function compilerPart<K extends Name>(name: K): Promise<CompilerParts[K]> {
  const part: CompilerParts[K] = loaded[name] ?? (await SOURCES[name]())[name];
  loaded[name] = part;
  return part;
}

/**
 * Does what {@link compilerPart} does, on a thread that blocks; undefined where the part cannot be
 * loaded.
 */
export function compilerPartNow<K extends Name>(name: K): CompilerParts[K] | undefined {
  return loaded[name] ?? required()?.[name];
}

let whole: Partial<CompilerParts> | undefined;

function required(): Partial<CompilerParts> | undefined {
  try {
    whole ??= createRequire(import.meta.url)('./whole-compiler.js') as Partial<CompilerParts>;
  } catch {
    // There is no such file, or this Node does not require modules of ESM.
  }
  return whole;
}
