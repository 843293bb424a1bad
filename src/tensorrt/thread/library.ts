/** TensorRT's libraries: their loading, their versions, and their C entry points. */
import type { Machine } from '../../native/find.js';
import type { Koffi, KoffiLibrary } from '../../native/koffi.js';
import { KNOWN_LIBRARIES } from '../../native/libraries.js';
import type { LibraryRow } from '../../native/libraries.js';
import { LibraryNotFoundError } from '../../native/library-not-found.js';
import { openLibrary } from '../../native/open-library.js';
import { slotKeyOf, versionOf } from './generations.js';
import type { SlotKey } from './generations.js';
import { Refused } from './refused.js';

export type Flavor = 'tensorrt' | 'lean' | 'rtx';

export interface LibraryFiles {
  /** The library's file; nothing else is tried then. */
  readonly library?: string;
  /** The ONNX parser's file. */
  readonly parser?: string;
}

/** A library that can be used. */
export interface OpenedTensorRT {
  readonly flavor: Flavor;
  /** e.g. `10.16.0` */
  readonly version: string;
  /** `TensorRT 10.16.0` */
  readonly title: string;
  readonly path: string;
  readonly key: SlotKey;
}

const ROWS: Readonly<
  Record<
    Flavor,
    {
      readonly library: LibraryRow;
      readonly parser: LibraryRow | undefined;
      readonly title: string;
    }
  >
> = {
  tensorrt: {
    library: KNOWN_LIBRARIES.nvinfer,
    parser: KNOWN_LIBRARIES.nvonnxparser,
    title: 'TensorRT',
  },
  lean: { library: KNOWN_LIBRARIES.nvinferLean, parser: undefined, title: 'TensorRT lean runtime' },
  rtx: {
    library: KNOWN_LIBRARIES.tensorrtRtx,
    parser: KNOWN_LIBRARIES.tensorrtRtxParser,
    title: 'TensorRT for RTX',
  },
};

type Entry = (...args: unknown[]) => number | bigint;

export class TensorRTLibrary implements OpenedTensorRT {
  readonly flavor: Flavor;
  readonly version: string;
  readonly title: string;
  readonly path: string;
  readonly key: SlotKey;
  readonly minor: number;
  private readonly koffi: Koffi;
  private readonly library: KoffiLibrary;
  private readonly number: number;
  private readonly files: LibraryFiles;
  private readonly machine: Machine;
  private parser: { readonly library: KoffiLibrary; readonly version: number } | undefined =
    undefined;

  constructor(koffi: Koffi, flavor: Flavor, files: LibraryFiles, machine: Machine) {
    const row = ROWS[flavor];
    this.koffi = koffi;
    this.flavor = flavor;
    this.files = files;
    this.machine = machine;
    const { library, path } = open(koffi, row.library, files.library, machine);
    this.library = library;
    this.path = path;
    this.number = Number(this.entry(library, 'int getInferLibVersion()')());
    const version = versionOf(this.number);
    this.version = `${version.major}.${version.minor}.${version.patch}`;
    this.minor = version.minor;
    this.title = `${row.title} ${this.version}`;
    const key = slotKeyOf(flavor === 'rtx', version);
    if (key === undefined) {
      const known = flavor === 'rtx' ? '1.3 to 1.7' : '8.6, 10 and 11';
      throw new Refused(
        'unsupported',
        `${this.title} (${path}) is a version whose classes are not known here, and to call ` +
          `one by guess would crash. Known are ${known}: install one of them, or a newer ` +
          'async-cuda.',
      );
    }
    this.key = key;
  }

  createBuilder(logger: number): number {
    if (this.flavor === 'lean')
      throw new Refused(
        'unsupported',
        `${this.title} builds no engines: it runs those that were built to be ` +
          'version-compatible. Use TensorRT or TensorRT for RTX.',
      );
    return Number(
      this.entry(
        this.library,
        'uintptr_t createInferBuilder_INTERNAL(uintptr_t logger, int version)',
      )(logger, this.number),
    );
  }

  createRuntime(logger: number): number {
    return Number(
      this.entry(
        this.library,
        'uintptr_t createInferRuntime_INTERNAL(uintptr_t logger, int version)',
      )(logger, this.number),
    );
  }

  createRefitter(engine: number, logger: number): number {
    return Number(
      this.entry(
        this.library,
        'uintptr_t createInferRefitter_INTERNAL(uintptr_t engine, uintptr_t logger, int version)',
      )(engine, logger, this.number),
    );
  }

  createParser(network: number, logger: number): number {
    const { library, version } = this.openParser();
    return Number(
      this.entry(
        library,
        'uintptr_t createNvOnnxParser_INTERNAL(uintptr_t network, uintptr_t logger, int version)',
      )(network, logger, version),
    );
  }

  createParserRefitter(refitter: number, logger: number): number {
    const { library, version } = this.openParser();
    return Number(
      this.entry(
        library,
        'uintptr_t createNvOnnxParserRefitter_INTERNAL(uintptr_t refitter, uintptr_t logger, ' +
          'int version)',
      )(refitter, logger, version),
    );
  }

  private openParser(): { readonly library: KoffiLibrary; readonly version: number } {
    if (this.parser !== undefined) return this.parser;
    const row = ROWS[this.flavor].parser;
    if (row === undefined) throw new Refused('unsupported', `${this.title} has no ONNX parser.`);
    const { library } = open(this.koffi, row, this.files.parser, this.machine);
    this.parser = {
      library,
      version: Number(this.entry(library, 'int getNvOnnxParserVersion()')()),
    };
    return this.parser;
  }

  private entry(library: KoffiLibrary, declaration: string): Entry {
    try {
      return library.func(declaration);
    } catch (error) {
      throw new Refused(
        'unsupported',
        `${this.path} is no library of TensorRT's: ${(error as Error).message}`,
      );
    }
  }
}

function open(
  koffi: Koffi,
  row: LibraryRow,
  path: string | undefined,
  machine: Machine,
): { library: KoffiLibrary; path: string } {
  try {
    return openLibrary(koffi, row, { path, machine });
  } catch (error) {
    if (error instanceof LibraryNotFoundError) throw new Refused('no-library', error.message);
    throw error;
  }
}
