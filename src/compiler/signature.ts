/** What a kernel takes, as reading its body needs it. */
import type { ElementType, StorageType } from './tree.js';
import type { StructLayout } from '../ground/struct-layout.js';

/** One parameter by its name. */
export type SignatureEntry =
  | {
      readonly kind: 'tensor';
      readonly element: ElementType;
      readonly access: 'input' | 'output' | 'inout';
      readonly rank: number;
    }
  | { readonly kind: 'scalar'; readonly storage: StorageType }
  | { readonly kind: 'struct'; readonly struct: StructLayout };

/** Parameters in the order in which they are declared. */
export type Signature = Readonly<Record<string, SignatureEntry>>;

/**
 * What a kernel's `uses` gives it: constants that are compiled in, lists of them, and device
 * functions.
 */
export type Used =
  number | bigint | boolean | readonly (number | bigint | boolean)[] | DeviceFunctionText;

/** A device function: its text, and what it uses in turn. */
export interface DeviceFunctionText {
  readonly text: string;
  readonly uses: Readonly<Record<string, Used>>;
  /** What its gpu is, and that of the functions that it calls, where that is not all of it. */
  readonly gpu?: NarrowGpu;
}

/** A part of gpu, for bodies that do not know of threads. */
export interface NarrowGpu {
  /** Names of gpu that there are. */
  readonly has: readonly string[];
  /** Names that the call gives: its last arguments, in this order. */
  readonly given: readonly string[];
  /** What has no other names, for messages: `an element kernel`. */
  readonly of: string;
  /** What to write instead of any other. */
  readonly fix: string;
}

/**
 * Where a text was made from another, which is the user's: which part of that one each of its parts
 * is shown as.
 */
export interface TextOrigin {
  readonly text: string;
  spanOf(start: number, end: number): { readonly start: number; readonly end: number };
}

/** All that a kernel is made of. */
export interface KernelSource {
  readonly name: string;
  readonly signature: Signature;
  /** Function.prototype.toString of the body. */
  readonly text: string;
  /** Where `text` is not the user's. */
  readonly origin?: TextOrigin;
  readonly uses: Readonly<Record<string, Used>>;
  readonly indexType: 'i32' | 'i64';
}
