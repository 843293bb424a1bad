/** One loaded ONNX Runtime: its functions by name, its statuses as exceptions. */
import { NativeMemory } from '../../native/native-memory.js';
import type { Koffi } from '../../native/koffi.js';
import type { OpenedLibrary } from '../../native/open-library.js';
import type { LibraryInfo, Refusal } from './messages.js';
import { Refused } from './refused.js';
import { SLOTS } from './slots.js';
import type { ApiFunction } from './slots.js';

/** OrtErrorCode */
const STATUS_NAMES: readonly string[] = [
  'ORT_OK',
  'ORT_FAIL',
  'ORT_INVALID_ARGUMENT',
  'ORT_NO_SUCHFILE',
  'ORT_NO_MODEL',
  'ORT_ENGINE_ERROR',
  'ORT_RUNTIME_EXCEPTION',
  'ORT_INVALID_PROTOBUF',
  'ORT_MODEL_LOADED',
  'ORT_NOT_IMPLEMENTED',
  'ORT_INVALID_GRAPH',
  'ORT_EP_FAIL',
  'ORT_MODEL_LOAD_CANCELED',
  'ORT_MODEL_REQUIRES_COMPILATION',
  'ORT_NOT_FOUND',
];

/**
 * The oldest version whose API has all functions in use: onnxruntime-node of the peer dependency.
 */
const OLDEST_API = 20;
/** The newest version with a function in use. */
const NEWEST_API = 22;
/** ORT_LOGGING_LEVEL_FATAL: statuses report failures, and the standard error stays empty. */
export const LOG_FATAL = 4;

const RETURNS = {
  status: 'uintptr_t',
  void: 'void',
  text: 'const char*',
  number: 'uintptr_t',
} as const;

type Call = (...args: unknown[]) => unknown;

export class OrtLibrary {
  readonly koffi: Koffi;
  readonly path: string;
  readonly version: string;
  /** The version of the API that was requested. */
  readonly api: number;
  readonly providers: readonly string[];
  private readonly table: readonly bigint[];
  private readonly calls = new Map<ApiFunction, Call>();
  /** Memory for the results of functions. */
  private readonly out: NativeMemory;
  private environment: number | undefined = undefined;

  /** @throws Refused where it is too old, or its functions are not at their expected places */
  constructor(koffi: Koffi, { library, path }: OpenedLibrary) {
    this.koffi = koffi;
    this.path = path;
    this.out = new NativeMemory(koffi, 64);
    const base = koffi.decode(
      (library.func('void* OrtGetApiBase()') as () => unknown)(),
      'uint64_t',
      2,
    ) as BigUint64Array;
    this.version = koffi.call(base[1]!, koffi.proto('const char*', [])) as string;
    const minor = /^1\.(\d+)\./.exec(this.version)?.[1];
    if (minor === undefined || Number(minor) < OLDEST_API) {
      throw new Refused({
        reason: 'unsupported',
        message:
          `${this.name}: version 1.${OLDEST_API} or a later 1.x is needed. Install another: ` +
          'npm install onnxruntime-node',
      });
    }
    // The library would report a version that it lacks on the standard error.
    this.api = Math.min(Number(minor), NEWEST_API);
    const api = koffi.call(base[0]!, koffi.proto('void*', ['uint32_t']), this.api) as unknown;
    const used = Object.values(SLOTS)
      .map((each) => each.slot)
      .filter((each) => each < 264 || this.api >= 22);
    this.table = [...(koffi.decode(api, 'uint64_t', Math.max(...used) + 1) as BigUint64Array)];
    this.verify();
    this.providers = this.availableProviders();
  }

  get name(): string {
    return `ONNX Runtime ${this.version} (${this.path})`;
  }

  get info(): LibraryInfo {
    const { path, version, providers } = this;
    return { path, version, providers };
  }

  /** The process's environment, which every thread gets; it is never released. */
  get env(): number {
    return (this.environment ??= this.give('CreateEnv', LOG_FATAL, 'async-cuda'));
  }

  /** Calls a function that returns no status. */
  call(name: ApiFunction, ...args: unknown[]): unknown {
    return this.functionOf(name)(...args);
  }

  /**
   * Calls a function that returns a status.
   *
   * @throws Refused for every status except success
   */
  do(name: ApiFunction, ...args: unknown[]): void {
    const status = this.functionOf(name)(...args) as number;
    if (status !== 0) throw new Refused(this.taken(name, status));
  }

  /**
   * Does the same as {@link do}, for a function whose last argument is the address of its result, a
   * pointer or a size.
   */
  give(name: ApiFunction, ...args: unknown[]): number {
    this.out.setU64(0, 0);
    this.do(name, ...args, this.out.address);
    return this.out.u64(0);
  }

  /** Does the same as {@link give}, for a result of 32 bits. */
  giveInt(name: ApiFunction, ...args: unknown[]): number {
    this.give(name, ...args);
    return this.out.i32[0]!;
  }

  /** Does the same as {@link give}, for a text that the library owns. */
  giveText(name: ApiFunction, ...args: unknown[]): string {
    this.give(name, ...args);
    return this.pointedText(this.out.address);
  }

  /**
   * Does the same as {@link giveText}, for a text that was allocated with the default allocator.
   */
  giveOwnText(name: ApiFunction, ...args: unknown[]): string {
    const allocator = this.give('GetAllocatorWithDefaultOptions');
    const pointer = this.give(name, ...args, allocator);
    const text = this.pointedText(this.out.address);
    this.do('AllocatorFree', allocator, pointer);
    return text;
  }

  /** Returns the text that the pointer at an address points to. */
  pointedText(address: number): string {
    return this.koffi.decode(BigInt(address), 'const char*') as string;
  }

  private taken(call: ApiFunction, status: number): Refusal {
    const code = this.call('GetErrorCode', status) as number;
    const message = this.call('GetErrorMessage', status) as string;
    this.call('ReleaseStatus', status);
    return {
      reason: 'status',
      library: `ONNX Runtime ${this.version}`,
      call,
      status: code,
      statusName: STATUS_NAMES[code] ?? `OrtErrorCode ${code}`,
      message,
    };
  }

  private functionOf(name: ApiFunction): Call {
    let call = this.calls.get(name);
    if (call === undefined) {
      const { slot, returns, args } = SLOTS[name];
      const address = this.table[slot];
      if (address === undefined || address === 0n)
        throw new Refused({
          reason: 'unsupported',
          message: `${this.name} has no ${name}: install a later version`,
        });
      const prototype = this.koffi.proto(RETURNS[returns], [...args]);
      const { koffi } = this;
      call = (...given) => {
        const value: unknown = koffi.call(address, prototype, ...given);
        return typeof value === 'bigint' ? Number(value) : value;
      };
      this.calls.set(name, call);
    }
    return call;
  }

  /**
   * Checks that functions from every part of the table work, so that its layout is the expected
   * one.
   */
  private verify(): void {
    const text = 'as it should be';
    const status = this.call('CreateStatus', 3, text) as number;
    const found: unknown[] = [
      this.call('GetErrorCode', status),
      this.call('GetErrorMessage', status),
    ];
    this.call('ReleaseStatus', status);
    const memory = this.give('CreateMemoryInfo', 'Cpu', 1, 0, 0);
    found.push(this.giveText('MemoryInfoGetName', memory));
    this.call('ReleaseMemoryInfo', memory);
    found.push((this.call('GetBuildInfoString') as string).startsWith('ORT Build Info'));
    const expected = [3, text, 'Cpu', true];
    if (found.some((each, i) => each !== expected[i])) {
      throw new Refused({
        reason: 'unsupported',
        message:
          `${this.name}: its functions are not where the C API has them ` + `(${found.join(', ')})`,
      });
    }
  }

  private availableProviders(): string[] {
    const list = new NativeMemory(this.koffi, 16);
    this.do('GetAvailableProviders', list.address, list.address + 8);
    const count = list.i32[2]!;
    const providers = Array.from({ length: count }, (_, i) =>
      this.pointedText(list.u64(0) + i * 8),
    );
    this.do('ReleaseAvailableProviders', list.u64(0), count);
    return providers;
  }
}
