/**
 * Compilation of a kernel's source to PTX. The compiler is loaded when the first kernel is
 * compiled: a program that finds all of its kernels on disk does not load it.
 */
import type { Lowering, ThreadLowering } from '../compiler/lowering.js';
import type { KernelSource } from '../compiler/signature.js';
import type { AbiParam, Span } from '../compiler/tree.js';
import { compilerPart, compilerPartNow } from './compiler-parts.js';
import type { CompilerParts } from './compiler-parts.js';
import { ALIGNMENT } from './variant.js';
import type { CodeForm } from './variant.js';

/** The target that PTX is made for. */
export interface CompileTarget {
  /** Compute capability: major and minor. */
  readonly capability: readonly [major: number, minor: number];
  /**
   * Whether the target is the CPU device, on which other instructions are cheap. Default: false.
   */
  readonly emulated?: boolean;
}

/** The properties of a kernel that a launch needs. It is plain data, because it is kept on disk. */
export interface CompiledKernel {
  /** Empty where the kernel is Tile IR. */
  readonly ptx: string;
  /** The bytecode of Tile IR, in base 64. */
  readonly bytecode?: string;
  /** What the assembler has made of it; it is kept apart on disk. */
  readonly cubin?: Uint8Array;
  /** Its name in the PTX. */
  readonly entry: string;
  /** The PTX's parameters. */
  readonly abi: readonly AbiParam[];
  /** Whether all blocks have to run at once. */
  readonly cooperative: boolean;
  /** Whether it has shared memory whose bytes the launch gives. */
  readonly dynamicShared: boolean;
}

/** Lines of the user's file. */
export interface Lines {
  readonly file: string;
  /** Line and column, from 1, of a character of the kernel's text or of a device function's. */
  lineOf(
    text: string,
    offset: number,
  ): { readonly line: number; readonly column: number } | undefined;
}

/** The compiler's functions. */
type Compiler = Pick<CompilerParts, 'readKernel' | 'emitKernel'> & {
  readonly lowered: CompilerParts['lowered'] | undefined;
};

/** @throws KernelSourceError */
export async function compile(
  source: KernelSource,
  form: CodeForm,
  target: CompileTarget,
  lines?: Lines,
  lowering?: Lowering,
): Promise<CompiledKernel> {
  if (lowering?.to === 'tile-ir')
    return tileIrWith(await compilerPart('tileIrKernel'), source, form, lowering, lines);
  const [readKernel, emitKernel, lowered] = await Promise.all([
    compilerPart('readKernel'),
    compilerPart('emitKernel'),
    lowering === undefined ? undefined : compilerPart('lowered'),
  ]);
  return compileWith({ readKernel, emitKernel, lowered }, source, form, target, lines, lowering);
}

/**
 * Does what {@link compile} does, on a thread that blocks; undefined where the compiler cannot be
 * loaded.
 *
 * @throws KernelSourceError
 */
export function compileNow(
  source: KernelSource,
  form: CodeForm,
  target: CompileTarget,
  lines?: Lines,
  lowering?: Lowering,
): CompiledKernel | undefined {
  if (lowering?.to === 'tile-ir') {
    const tileIrKernel = compilerPartNow('tileIrKernel');
    return tileIrKernel && tileIrWith(tileIrKernel, source, form, lowering, lines);
  }
  const readKernel = compilerPartNow('readKernel');
  const emitKernel = compilerPartNow('emitKernel');
  const lowered = lowering === undefined ? undefined : compilerPartNow('lowered');
  if (
    readKernel === undefined ||
    emitKernel === undefined ||
    (lowering !== undefined && lowered === undefined)
  )
    return undefined;
  return compileWith({ readKernel, emitKernel, lowered }, source, form, target, lines, lowering);
}

function compileWith(
  { readKernel, emitKernel, lowered }: Compiler,
  source: KernelSource,
  form: CodeForm,
  { capability, emulated }: CompileTarget,
  lines?: Lines,
  lowering?: ThreadLowering,
): CompiledKernel {
  const tree = readKernel(lowering === undefined ? source : lowered!(source, lowering));
  const tensors = tree.params.flatMap(({ kind }, index) =>
    kind === 'tensor' ? [[index, ALIGNMENT]] : [],
  );
  const { ptx, entry, abi } = emitKernel(tree, {
    capability: capability.join('.'),
    checks: form.checks,
    emulated: emulated === true,
    ...(form.block === undefined ? {} : { block: form.block }),
    ...(lines === undefined
      ? {}
      : {
          lines: {
            file: lines.file,
            lineOf: ({ text, start }: Span) => lines.lineOf(tree.texts[text]!, start),
          },
        }),
    ...(form.aligned ? { alignment: Object.fromEntries(tensors) as Record<number, number> } : {}),
  });
  return {
    ptx,
    entry,
    abi,
    cooperative: tree.cooperative,
    dynamicShared: tree.arrays.some(({ space }) => space === 'dynamic'),
  };
}

/** The same bytecode is assembled for every GPU. */
function tileIrWith(
  tileIrKernel: CompilerParts['tileIrKernel'],
  source: KernelSource,
  { aligned }: CodeForm,
  { form }: Extract<Lowering, { to: 'tile-ir' }>,
  lines?: Lines,
): CompiledKernel {
  const { bytecode, entry, abi } = tileIrKernel(
    source,
    form,
    aligned,
    lines && {
      file: lines.file,
      placeOf: (text, offset) => lines.lineOf(text, offset),
    },
  );
  return {
    ptx: '',
    bytecode: Buffer.from(bytecode).toString('base64'),
    entry,
    abi,
    cooperative: false,
    dynamicShared: false,
  };
}
