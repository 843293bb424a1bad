/** One kernel to be compiled: a definition with its constants, for tensors of a certain size. */
import type { KernelSource, Signature } from '../kernel/signature.js';
import { keyOfUses } from './uses.js';
import type { UsedByName } from './uses.js';
import type { CompileTarget } from './compiler.js';
import { compilerDigest } from './compiler-digest.js';
import type { DefinitionSite } from './compile-error.js';

/** What `kernel(…)` was given, read. */
export interface Definition {
  readonly name: string;
  readonly text: string;
  readonly signature: Signature;
  /** Where it was written. */
  readonly site: DefinitionSite;
}

export type IndexType = KernelSource['indexType'];

/** A definition with its constants. */
export class Variant {
  readonly definition: Definition;
  readonly uses: UsedByName;
  private readonly sourceKeys = new Map<IndexType, string>();

  constructor(definition: Definition, uses: UsedByName) {
    this.definition = definition;
    this.uses = uses;
  }

  source(indexType: IndexType): KernelSource {
    const { name, signature, text } = this.definition;
    return { name, signature, text, uses: this.uses, indexType };
  }

  /** Different for sources that are compiled to something different. */
  sourceKey(indexType: IndexType): string {
    let key = this.sourceKeys.get(indexType);
    if (key === undefined) {
      const { name, signature, text } = this.definition;
      key = JSON.stringify([compilerDigest, name, Object.entries(signature), text, keyOfUses(this.uses), indexType]);
      this.sourceKeys.set(indexType, key);
    }
    return key;
  }

  key(indexType: IndexType, target: CompileTarget): string {
    return `${target.capability.join('.')} ${this.sourceKey(indexType)}`;
  }
}
