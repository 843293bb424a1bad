/**
 * One kernel to be compiled: a definition with its constants, and the forms that its code has for
 * different launches.
 */
import type { Lowering } from '../compiler/lowering.js';
import type { KernelSource, Signature } from '../compiler/signature.js';
import { keyOfUses } from './uses.js';
import type { UsedByName } from './uses.js';
import { compilerDigest } from './compiler-digest.js';
import type { CoreDevice } from '../core/index.js';
import type { Loading } from './loaded-kernel.js';
import type { StackFrame } from '../core/call-stack.js';

/** The arguments of `kernel(…)`, read. */
export interface Definition {
  readonly name: string;
  readonly text: string;
  /** Set where the body does not describe a thread. */
  readonly lowering?: Lowering;
  readonly signature: Signature;
  /** The calls that led to its definition. */
  readonly site: readonly StackFrame[];
}

export type IndexType = KernelSource['indexType'];

/** The properties of a launch, beside the source, that code is specialised for. */
export interface CodeForm {
  readonly index: IndexType;
  /** Whether every tensor begins at a multiple of {@link ALIGNMENT} bytes. */
  readonly aligned: boolean;
  /** Whether each index is checked. */
  readonly checks: boolean;
  /** Threads of a block; undefined in code for any block. */
  readonly block: readonly [number, number, number] | undefined;
  /** Whether the PTX names the line of the user's file that each instruction comes from. */
  readonly lines: boolean;
}

/** The widest access of one thread, in bytes. */
export const ALIGNMENT = 16;

/**
 * The number of blocks beside its own for which a kernel has specialised code. Further blocks share
 * one code.
 */
const MOST_BLOCKS = 8;

/** Threads that a block has on every device. The launch reports more. */
const MOST_THREADS = 1024;

/** A definition with its constants. */
export class Variant {
  readonly definition: Definition;
  readonly uses: UsedByName;
  /**
   * Codes that are loaded, by {@link keyOfForm}: they are found without the source's key, which is
   * long.
   */
  readonly loaded = new WeakMap<CoreDevice, Map<string, Loading>>();
  private ownKey: string | undefined = undefined;
  private ownAsserts: boolean | undefined = undefined;
  private readonly blocks = new Set<string>();

  constructor(definition: Definition, uses: UsedByName) {
    this.definition = definition;
    this.uses = uses;
  }

  source(indexType: IndexType): KernelSource {
    const { name, signature, text } = this.definition;
    return { name, signature, text, uses: this.uses, indexType };
  }

  /**
   * Whether launches with this block, which is not the kernel's own, have code that is specialised
   * for it: the first few blocks do.
   */
  hasCodeFor(block: readonly [number, number, number]): boolean {
    const key = block.join();
    if (this.blocks.size < MOST_BLOCKS && block[0] * block[1] * block[2] <= MOST_THREADS)
      this.blocks.add(key);
    return this.blocks.has(key);
  }

  /**
   * Whether the kernel, or a function that it uses, may have an assertion: its message names the
   * line.
   */
  get asserts(): boolean {
    this.ownAsserts ??= mayAssert(this.definition.text, this.uses);
    return this.ownAsserts;
  }

  /** A key that differs for sources that compile to different code. */
  get sourceKey(): string {
    if (this.ownKey === undefined) {
      const { name, signature, text, lowering } = this.definition;
      this.ownKey = JSON.stringify([
        compilerDigest,
        name,
        Object.entries(signature),
        text,
        keyOfUses(this.uses),
        lowering,
      ]);
    }
    return this.ownKey;
  }
}

function mayAssert(text: string, uses: UsedByName): boolean {
  if (/\bassert\b/.test(text)) return true;
  return Object.values(uses).some(
    (used) => typeof used === 'object' && 'text' in used && mayAssert(used.text, used.uses),
  );
}

/** A key that differs for forms whose code differs. */
export function keyOfForm({ index, aligned, checks, block, lines }: CodeForm): string {
  return (
    `${index}${aligned ? ' aligned' : ''}${checks ? ' checked' : ''}` +
    `${block === undefined ? '' : ` ${block.join('x')}`}${lines ? ' lines' : ''}`
  );
}
