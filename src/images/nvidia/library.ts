/**
 * NPP on a device: the library is found and loaded, and its functions are called with the stream
 * context that each of them takes.
 */
import { CudaError, NativeLibrary } from '../../core/index.js';
import type { CoreDevice, LibraryArgument, MemoryUse, Pending, Stream } from '../../core/index.js';
import { KNOWN_LIBRARIES } from '../../native/libraries.js';
import { NPP_FUNCTIONS } from './functions.js';
import type { NppFile } from './functions.js';
import { statusesOf } from './statuses.js';

/** Options of {@link openNpp}. */
export interface OpenNppOptions {
  /** NPP's files. Files that are not named are searched for. */
  readonly files?: Partial<Readonly<Record<NppFile, string>>>;
  /**
   * Whether it is opened on a CPU device too, whose memory NPP cannot access: for a test double.
   */
  readonly anyDevice?: boolean;
}

/** NPP for one device. */
export class Npp {
  /** The version, such as `12.4.1`. */
  readonly version: string;
  private readonly library: NativeLibrary;

  constructor(library: NativeLibrary, version: string) {
    this.library = library;
    this.version = version;
  }

  /**
   * Queues a call. `args` is without the stream context. It throws and rejects as
   * {@link NativeLibrary.call} does.
   */
  call(
    stream: Stream,
    name: string,
    args: readonly LibraryArgument[],
    uses: readonly MemoryUse[] = [],
  ): Pending {
    return this.library.call(stream, name, [...args, contextOf(stream)], uses);
  }

  /** Gets a number of bytes from a function; `args` are the arguments before it and the context. */
  async bytes(stream: Stream, name: string, args: readonly LibraryArgument[]): Promise<number> {
    const { hosts } = await this.library.ask(name, [...args, new Uint8Array(8), contextOf(stream)]);
    const answer = hosts.at(-1)!;
    return Number(new DataView(answer.buffer, answer.byteOffset, 8).getBigUint64(0, true));
  }
}

/** The fields of NppStreamContext without the stream, in order. */
function contextOf({ device, flags }: Stream): number[] {
  const {
    multiprocessorCount,
    maxThreadsPerMultiprocessor,
    maxThreadsPerBlock,
    sharedMemoryPerBlock,
    computeCapability: [major, minor],
  } = device.properties;
  return [
    device.ordinal,
    multiprocessorCount,
    maxThreadsPerMultiprocessor,
    maxThreadsPerBlock,
    sharedMemoryPerBlock,
    major,
    minor,
    flags,
    0,
  ];
}

interface Opening {
  npp: Npp | undefined;
  readonly done: Promise<Npp>;
}

/** NPP by runtime: a device that was opened twice has one runtime. */
const devices = new WeakMap<CoreDevice['runtime'], Opening>();

/** Gives NPP on a device, if it was opened. */
export function openedNpp(device: CoreDevice): Npp | undefined {
  return devices.get(device.runtime)?.npp;
}

/**
 * Opens NPP on a device, once, with the options of the first call. After a failure the next call
 * tries again.
 *
 * @throws CudaError with code ERR_CUDA_NO_LIBRARY where it is not found, ERR_CUDA_UNSUPPORTED on a
 *   CPU device
 */
export function openNpp(device: CoreDevice, options: OpenNppOptions = {}): Promise<Npp> {
  const known = devices.get(device.runtime);
  if (known !== undefined) return known.done;
  const done = open(device, options);
  const opening: Opening = { npp: undefined, done };
  devices.set(device.runtime, opening);
  done.then(
    (npp) => {
      opening.npp = npp;
    },
    () => {
      devices.delete(device.runtime);
    },
  );
  return done;
}

async function open(
  device: CoreDevice,
  { files = {}, anyDevice = false }: OpenNppOptions,
): Promise<Npp> {
  const fileOf = (
    file: NppFile,
  ): {
    library: (typeof KNOWN_LIBRARIES)[NppFile];
    functions: (typeof NPP_FUNCTIONS)[NppFile];
    path?: string;
  } => ({
    library: KNOWN_LIBRARIES[file],
    functions: NPP_FUNCTIONS[file],
    ...(files[file] === undefined ? {} : { path: files[file] }),
  });
  // This file is loaded first: the others need it, and the loader finds it when it is loaded.
  const core = await NativeLibrary.open(device, {
    name: 'NPP',
    statuses: {},
    files: [fileOf('nppc')],
    anyDevice,
  });
  const { value } = await core.ask('nppGetLibVersion', []);
  const view = new DataView((value as Uint8Array).buffer);
  const [major, minor, build] = [
    view.getInt32(0, true),
    view.getInt32(4, true),
    view.getInt32(8, true),
  ];
  if (major < 11)
    throw new CudaError(
      'ERR_CUDA_UNSUPPORTED',
      `NPP ${major}.${minor} (${core.paths[0]!}) is too old: install NPP 11 or later.`,
    );
  const rest = (Object.keys(NPP_FUNCTIONS) as NppFile[]).filter((file) => file !== 'nppc');
  const library = await NativeLibrary.open(device, {
    name: `NPP ${major}.${minor}`,
    statuses: statusesOf(major, minor),
    files: rest.map(fileOf),
    anyDevice,
  });
  return new Npp(library, `${major}.${minor}.${build}`);
}
