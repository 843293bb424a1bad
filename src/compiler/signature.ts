/** The signature of a kernel, as reading its body needs it. */
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
 * A value of a kernel's `uses`: a constant that is compiled in, a list of constants, or a device
 * function.
 */
export type Used =
  number | bigint | boolean | readonly (number | bigint | boolean)[] | DeviceFunctionText;

/** A device function: its text, and what it uses in turn. */
export interface DeviceFunctionText {
  readonly text: string;
  readonly uses: Readonly<Record<string, Used>>;
  /** Its gpu, and that of the functions that it calls, where that is only a part. */
  readonly gpu?: NarrowGpu;
}

/** A part of gpu, for bodies without threads. */
export interface NarrowGpu {
  /** The names of gpu that exist. */
  readonly has: readonly string[];
  /** The names that the call passes as its last arguments, in this order. */
  readonly given: readonly string[];
  /** The kind of kernel, for messages: `an element kernel`. */
  readonly of: string;
  /** What to write instead of any other name. */
  readonly fix: string;
}

/**
 * The origin of a text that was made from the user's: the part of the user's text that each of its
 * parts is shown as.
 */
export interface TextOrigin {
  readonly text: string;
  spanOf(start: number, end: number): { readonly start: number; readonly end: number };
}

/** A kernel before reading. */
export interface KernelSource {
  readonly name: string;
  readonly signature: Signature;
  /** Function.prototype.toString of the body. */
  readonly text: string;
  /** Set where `text` is not the user's. */
  readonly origin?: TextOrigin;
  readonly uses: Readonly<Record<string, Used>>;
  readonly indexType: 'i32' | 'i64';
}
