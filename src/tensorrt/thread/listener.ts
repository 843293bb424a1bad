/**
 * The objects that TensorRT calls: its logger, progress monitors, profilers and allocators of
 * outputs, as C++ objects made of memory and of callbacks. koffi passes a call that comes from
 * another thread to the thread that registered the callback and lets the caller wait. So this
 * thread makes no call of TensorRT itself: it is always free to answer.
 */
import type { Koffi } from '../../native/koffi.js';
import { NativeMemory } from '../../native/native-memory.js';
import { LibraryLog } from '../../native/library-log.js';
import type { Callbacks, Notification } from './messages.js';
import { SEVERITIES } from './messages.js';
import { MOST_EXTENTS } from './output-words.js';

/** More slots than any interface of TensorRT's has. */
const SLOTS = 16;
/** Errors and internal errors are part of the message of the call that fails. */
const ERROR = 1;
const INFO = 3;
type Callback = (...args: never[]) => unknown;

/** The state of a progress monitor. */
interface Monitored {
  readonly id: number;
  /** Not zero where the build is to end. */
  readonly ended: Int32Array;
  readonly phases: Map<string, { path: string; steps: number }>;
}

export class Listener {
  private readonly koffi: Koffi;
  private readonly notify: (notification: Notification) => void;
  private readonly said = new Map<number, LibraryLog>();
  /**
   * The tables of virtual functions: one for each class, since a process may have only some
   * thousand callbacks. The functions find their object by its address.
   */
  private readonly tables = new Map<string, number>();
  /** Objects that TensorRT may call, by address. */
  private readonly objects = new Map<number, NativeMemory>();
  private readonly monitors = new Map<number, Monitored>();
  private readonly profilers = new Map<number, number>();
  private readonly outputs = new Map<number, Float64Array>();
  /** Memory and callbacks whose addresses C++ holds for as long as the process lasts. */
  private readonly kept: unknown[] = [];
  private readonly plain: readonly number[];

  constructor(koffi: Koffi, notify: (notification: Notification) => void) {
    this.koffi = koffi;
    this.notify = notify;
    // Every other function of an interface returns 0: its language (0 is C++), the destructor and
    // the rest.
    const nothing = this.register('uint64_t', ['uintptr_t'], () => 0);
    this.plain = new Array<number>(SLOTS).fill(nothing);
  }

  /** Collects errors in the text, too, whenever it is open, until {@link stopCollecting}. */
  collect(id: number, said: SharedArrayBuffer): void {
    this.said.set(id, new LibraryLog(said));
  }

  stopCollecting(id: number): void {
    this.said.delete(id);
  }

  /** Does nothing: its answer comes after all earlier notifications. */
  answer(): void {
    return;
  }

  logger({ log }: Callbacks): number {
    return this.object(
      this.table('ILogger', log === 0 ? undefined : 1, `${log}`, () => ({
        [log]: this.register(
          'void',
          ['uintptr_t', 'int32_t', 'const char *'],
          (_self: unknown, severity: number, message: string) => {
            if (severity <= ERROR) for (const said of this.said.values()) said.add(message);
            if (severity <= INFO)
              this.notify({ kind: 'log', severity: SEVERITIES[severity] ?? 'info', message });
          },
        ),
      })),
    );
  }

  /**
   * Makes an IProgressMonitor, valid until {@link release}. `cancel`: not zero where the build is
   * to end.
   */
  monitor(id: number, cancel: SharedArrayBuffer): number {
    const address = this.object(
      this.table('IProgressMonitor', 1, '', () => ({
        4: this.register(
          'void',
          ['uintptr_t', 'const char *', 'const char *', 'int32_t'],
          (self: number | bigint, phase: string, parent: string | null, steps: number) => {
            const monitored = this.monitors.get(Number(self));
            if (monitored === undefined) return;
            const above = parent === null ? undefined : monitored.phases.get(parent);
            const path = above === undefined ? phase : `${above.path}/${phase}`;
            monitored.phases.set(phase, { path, steps });
            this.notify({ kind: 'progress', monitor: monitored.id, phase: path, step: 0, steps });
          },
        ),
        5: this.register(
          'bool',
          ['uintptr_t', 'const char *', 'int32_t'],
          (self: number | bigint, phase: string, step: number) => {
            const monitored = this.monitors.get(Number(self));
            if (monitored === undefined) return true;
            const known = monitored.phases.get(phase);
            this.notify({
              kind: 'progress',
              monitor: monitored.id,
              phase: known?.path ?? phase,
              step: step + 1,
              steps: known?.steps ?? 0,
            });
            return Atomics.load(monitored.ended, 0) === 0;
          },
        ),
        6: this.register(
          'void',
          ['uintptr_t', 'const char *'],
          (self: number | bigint, phase: string) => {
            this.monitors.get(Number(self))?.phases.delete(phase);
          },
        ),
      })),
    );
    this.monitors.set(address, { id, ended: new Int32Array(cancel), phases: new Map() });
    return address;
  }

  /** Makes an IProfiler, valid until {@link release}. */
  profiler(id: number, { profiler }: Callbacks): number {
    const address = this.object(
      this.table('IProfiler', profiler === 0 ? undefined : 1, `${profiler}`, () => ({
        [profiler]: this.register(
          'void',
          ['uintptr_t', 'const char *', 'float'],
          (self: number | bigint, layer: string, milliseconds: number) => {
            const known = this.profilers.get(Number(self));
            if (known !== undefined)
              this.notify({ kind: 'layer', profiler: known, layer, milliseconds });
          },
        ),
      })),
    );
    this.profilers.set(address, id);
    return address;
  }

  /**
   * Makes an IOutputAllocator, valid until {@link release}. Its memory is that at the output's
   * address, if it is large enough, and the shape is written to `words`, of `OUTPUT_WORDS`.
   */
  output(
    words: SharedArrayBuffer,
    { output: { version, reallocate, notifyShape } }: Callbacks,
    extentBytes: 4 | 8,
  ): number {
    const address = this.object(
      this.table(
        'IOutputAllocator',
        version === undefined ? 1 : undefined,
        `${notifyShape}`,
        () => {
          const give = this.register(
            'uintptr_t',
            ['uintptr_t', 'const char *', 'uintptr_t', 'uint64_t', 'uint64_t', 'uintptr_t'],
            (
              self: number | bigint,
              _name: string,
              memory: number | bigint,
              bytes: number | bigint,
            ) => {
              const [room = 0] = this.outputs.get(Number(self)) ?? [];
              return Number(bytes) <= room ? memory : 0;
            },
          );
          const dims = this.koffi.struct({
            rank: 'int32_t',
            extents: this.koffi.array(extentBytes === 8 ? 'int64_t' : 'int32_t', MOST_EXTENTS),
          });
          this.kept.push(dims);
          return {
            ...Object.fromEntries(reallocate.map((slot) => [slot, give])),
            [notifyShape]: this.register(
              'void',
              ['uintptr_t', 'const char *', 'const void *'],
              (self: number | bigint, _name: string, given: unknown) => {
                const shared = this.outputs.get(Number(self));
                if (shared === undefined) return;
                const { rank, extents } = this.koffi.decode(given, dims) as {
                  rank: number;
                  extents: ArrayLike<number | bigint>;
                };
                for (let axis = 0; axis < rank; axis++) shared[2 + axis] = Number(extents[axis]);
                shared[1] = rank;
              },
            ),
            ...(version === undefined
              ? {}
              : { [version]: this.register('int32_t', ['uintptr_t'], () => 1) }),
          };
        },
      ),
    );
    this.outputs.set(address, new Float64Array(words));
    return address;
  }

  /** Frees an object that TensorRT does not call any more. */
  release(address: number): void {
    this.outputs.delete(address);
    this.monitors.delete(address);
    this.profilers.delete(address);
    this.objects.delete(address);
  }

  /** Makes an object of a class: it contains only the address of its table. */
  private object(table: number): number {
    const memory = new NativeMemory(this.koffi, 64);
    memory.setU64(0, table);
    this.objects.set(memory.address, memory);
    return memory.address;
  }

  /**
   * Makes the functions of a class, and those of IVersionedInterface where that is its base. `form`
   * distinguishes tables of one interface whose functions are at other places.
   */
  private table(
    name: string,
    versioned: number | undefined,
    form: string,
    functions: () => Readonly<Record<number, number>>,
  ): number {
    const key = `${name} ${form}`;
    const known = this.tables.get(key);
    if (known !== undefined) return known;
    const memory = new NativeMemory(this.koffi, SLOTS * 8);
    this.plain.forEach((address, slot) => {
      memory.setU64(slot * 8, address);
    });
    if (versioned !== undefined) memory.setU64(versioned * 8, this.interfaceInfo(name, versioned));
    for (const [slot, address] of Object.entries(functions()))
      memory.setU64(Number(slot) * 8, address);
    this.kept.push(memory);
    this.tables.set(key, memory.address);
    return memory.address;
  }

  /**
   * Makes the function for InterfaceInfo of version 1.0: the kind's name and two numbers, returned
   * by value.
   */
  private interfaceInfo(name: string, major: number): number {
    const text = new NativeMemory(this.koffi, 64);
    text.bytes.set(Buffer.from(name));
    this.kept.push(text);
    const info = this.koffi.struct({ kind: 'uintptr_t', major: 'int32_t', minor: 'int32_t' });
    return this.register(info, ['uintptr_t'], () => ({ kind: text.address, major, minor: 0 }));
  }

  private register(
    returned: string | ReturnType<Koffi['struct']>,
    types: readonly string[],
    callback: Callback,
  ): number {
    const prototype = this.koffi.proto(returned as string, [...types]);
    const pointer: unknown = this.koffi.pointer(prototype as never);
    const registered = this.koffi.register(callback, pointer as never);
    // koffi keeps neither the types nor the function.
    this.kept.push(registered, prototype, pointer, returned, callback);
    return Number(this.koffi.address(registered));
  }
}
