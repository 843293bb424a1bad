/** What a kernel takes, as reading its body needs it. */
import type { ElementType, StorageType, StructType } from './tree.js';

/** One parameter by its name. */
export type SignatureEntry =
  | { readonly kind: 'tensor'; readonly element: ElementType; readonly access: 'input' | 'output' | 'inout'; readonly rank: number }
  | { readonly kind: 'scalar'; readonly storage: StorageType }
  | { readonly kind: 'struct'; readonly struct: StructType };

/** Parameters in the order in which they are declared. */
export type Signature = Readonly<Record<string, SignatureEntry>>;

/** What a kernel's `uses` gives it: constants that are compiled in, lists of them, and device functions. */
export type Used = number | bigint | boolean | readonly (number | bigint | boolean)[] | DeviceFunctionText;

/** A device function: its text, and what it uses in turn. */
export interface DeviceFunctionText {
  readonly text: string;
  readonly uses: Readonly<Record<string, Used>>;
}

/** All that a kernel is made of. */
export interface KernelSource {
  readonly name: string;
  readonly signature: Signature;
  /** Function.prototype.toString of the body. */
  readonly text: string;
  readonly uses: Readonly<Record<string, Used>>;
  readonly indexType: 'i32' | 'i64';
}
