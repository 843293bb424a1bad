/** The messages between the JavaScript thread and the compiler's thread. */

/** Major and minor version. */
export type Version = readonly [number, number];

export type Output = 'ptx' | 'cubin' | 'ltoir';

/** The file to load: found on the JavaScript thread, or to be searched for with its environment. */
export interface LibraryPlace {
  readonly path: string | undefined;
  readonly env: Readonly<Record<string, string | undefined>>;
}

/** An option that not every version of the library supports. */
export interface Need {
  /** The option as the caller wrote it. */
  readonly what: string;
  readonly since: Version;
}

export interface CompileRequest {
  readonly kind: 'compile';
  readonly library: LibraryPlace;
  readonly source: string;
  /** The file name in messages. */
  readonly name: string;
  readonly headers: readonly (readonly [name: string, text: string])[];
  readonly flags: readonly string[];
  readonly needs: readonly Need[];
  readonly nameExpressions: readonly string[];
  readonly outputs: readonly Output[];
  /**
   * `compute_80`, `sm_90a`, …; undefined for the best that the library has for `capability`, or for
   * its own default.
   */
  readonly architecture: string | undefined;
  /** The compute capability of the device that the program is for. */
  readonly capability: Version | undefined;
  /**
   * The folder to which the library's own headers are written and from which they are read;
   * undefined where they are not needed.
   */
  readonly bundledHeaders: string | undefined;
}

export type LinkKind = 'cubin' | 'ptx' | 'ltoir' | 'fatbin' | 'object';

export interface LinkPart {
  readonly kind: LinkKind;
  readonly name: string;
  readonly data: Uint8Array;
}

export interface LinkRequest {
  readonly kind: 'link';
  readonly library: LibraryPlace;
  readonly parts: readonly LinkPart[];
  readonly flags: readonly string[];
  readonly output: 'cubin' | 'ptx';
}

export type Request = CompileRequest | LinkRequest;

export interface Compiled {
  readonly version: Version;
  /** The architecture that it was compiled for; undefined for the library's default. */
  readonly architecture: string | undefined;
  readonly log: string;
  readonly ptx: string | undefined;
  readonly cubin: Uint8Array | undefined;
  readonly ltoir: Uint8Array | undefined;
  readonly loweredNames: Readonly<Record<string, string>>;
}

export interface Linked {
  readonly version: Version | undefined;
  readonly log: string;
  readonly cubin: Uint8Array | undefined;
  readonly ptx: string | undefined;
}

/** The reason why there is no program. */
export type Refusal =
  | {
      readonly reason: 'no-library';
      readonly message: string;
      readonly tried: readonly { path: string; reason: string }[];
    }
  | { readonly reason: 'too-old' | 'unsupported'; readonly message: string }
  | { readonly reason: 'option'; readonly message: string }
  | { readonly reason: 'source'; readonly log: string; readonly version: Version | undefined }
  | { readonly reason: 'memory' | 'library'; readonly message: string };
