/**
 * The objects of TensorRT that a thread holds. They go by numbers outside of this thread; what was
 * made of an object is destroyed before it.
 */
import { thisMachine } from '../../native/find.js';
import { loadKoffi } from '../../native/koffi.js';
import type { Koffi } from '../../native/koffi.js';
import { KNOWN_LIBRARIES } from '../../native/libraries.js';
import { openLibrary } from '../../native/open-library.js';
import { LibraryLog } from '../../native/library-log.js';
import { TensorRTLibrary } from './library.js';
import type { Flavor, LibraryFiles, OpenedTensorRT } from './library.js';
import type { ClassName } from './methods.js';
import { Classes } from './native-class.js';
import type { NativeObject } from './native-class.js';
import { Refused } from './refused.js';

/**
 * "The builder retains ownership of the created optimization profile": it destroys them itself
 * (NvInfer.h, createOptimizationProfile).
 */
const OWNED: ClassName = 'OptimizationProfile';
/** What goes only with what it was made of: a network's weights may be its parser's. */
const WITH_PARENT: ReadonlySet<ClassName> = new Set([OWNED, 'Parser']);

export interface Held {
  readonly object: NativeObject;
  readonly library: Session;
  /** Memory that it points to. */
  readonly kept: unknown[];
  /** What it was made of, and may not outlive. */
  readonly parent: number | undefined;
  /** What was made of it, in order. */
  readonly children: Set<number>;
}

/** A library that is open, and how its classes are called. */
export interface Session {
  readonly library: TensorRTLibrary;
  readonly classes: Classes;
  readonly logger: number;
}

export class HeldObjects {
  protected readonly koffi: Koffi;
  protected readonly said: LibraryLog;
  protected readonly sessions: Session[] = [];
  protected readonly held = new Map<number, Held>();
  protected next = 1;
  protected setContext: ((context: number) => number) | undefined = undefined;

  constructor(koffiPath: string | undefined, said: SharedArrayBuffer) {
    this.koffi = loadKoffi(koffiPath);
    this.said = new LibraryLog(said);
  }

  // The library

  open(
    flavor: Flavor,
    files: LibraryFiles,
    env: NodeJS.ProcessEnv,
  ): OpenedTensorRT & { session: number } {
    const machine = { ...thisMachine(), env };
    const library = new TensorRTLibrary(this.koffi, flavor, files, machine);
    const { version, title, path, key } = library;
    this.sessions.push({
      library,
      classes: new Classes(this.koffi, title, key, library.minor),
      logger: 0,
    });
    return { flavor, version, title, path, key, session: this.sessions.length - 1 };
  }

  setLogger(session: number, logger: number): void {
    this.sessions[session] = { ...this.sessions[session]!, logger };
  }

  /** Makes a device's context that of this thread: TensorRT uses the current one. */
  useDevice(context: number): void {
    if (this.setContext === undefined) {
      const { library } = openLibrary(this.koffi, KNOWN_LIBRARIES.cuda);
      this.setContext = library.func('int cuCtxSetCurrent(uintptr_t context)');
    }
    const status = this.setContext(context);
    if (status !== 0) throw new Refused('internal', `cuCtxSetCurrent returned ${status}`);
  }

  /** A program needs it no more. */
  release(number: number): void {
    const kind = this.held.get(number)?.object.kind;
    if (kind !== undefined && !WITH_PARENT.has(kind)) this.destroy(number);
  }

  /** Destroys an object, and before it whatever was made of it. */
  protected destroy(number: number): void {
    const held = this.held.get(number);
    if (held === undefined) return;
    for (const child of [...held.children].reverse()) this.destroy(child);
    this.held.delete(number);
    if (held.parent !== undefined) this.held.get(held.parent)?.children.delete(number);
    if (held.object.kind !== OWNED) held.library.classes.destroy(held.object);
  }

  /** For tests of the tables: the class that an object is of. */
  typeName(number: number): string | undefined {
    const { object, library } = this.of(number);
    return library.classes.typeName(object);
  }

  // Calls

  protected of(number: number, kind?: ClassName): Held {
    const held = this.held.get(number);
    if (held === undefined)
      throw new Refused('closed', 'used after it was closed, or what it was made of was');
    if (kind !== undefined && held.object.kind !== kind)
      throw new Refused('argument', `expected a ${kind}, got a ${held.object.kind}`, {
        argument: kind,
      });
    return held;
  }

  /** An object that a builder made, and which is passed to it or to another of its own. */
  protected made(number: number, builder: number | undefined, kind: ClassName): NativeObject {
    const { object, parent } = this.of(number, kind);
    if (parent !== builder)
      throw new Refused('argument', `expected a ${kind} of the same builder: another's`, {
        argument: kind,
      });
    return object;
  }

  protected call(number: number, kind: ClassName, method: string, ...args: unknown[]): unknown {
    const { object, library } = this.of(number, kind);
    return library.classes.call(object, kind, method as never, ...(args as never[]));
  }

  /** An error contains the messages of TensorRT during the call. */
  protected heard<T>(call: () => T): T {
    this.said.open();
    try {
      return call();
    } finally {
      this.said.close();
    }
  }

  protected hold(
    library: Session,
    parent: number | undefined,
    kind: ClassName,
    pointer: unknown,
    call: string,
    details: { argument?: string } = {},
  ): number {
    const object = library.classes.object(kind, pointer);
    if (object === undefined) throw this.failed(call, library, this.said.text, details);
    const number = this.next++;
    this.held.set(number, { object, library, kept: [], parent, children: new Set() });
    if (parent !== undefined) this.of(parent).children.add(number);
    return number;
  }

  protected succeed(call: string, ok: unknown, details: { argument?: string } = {}): void {
    if (ok === true) return;
    throw new Refused(
      details.argument === undefined ? kindOf(this.said.text) : 'argument',
      `${details.argument === undefined ? '' : `${details.argument}: `}${call} ` +
        `failed${this.said.text === '' ? '' : `: ${this.said.text}`}`,
      { call, said: this.said.text, ...details },
    );
  }

  protected failed(
    call: string,
    { library }: Session,
    said: string,
    details: { argument?: string } = {},
  ): Refused {
    return new Refused(
      kindOf(said),
      `${call} of ${library.title} failed: ${said === '' ? 'it gives no reason' : said}`,
      { call, said, ...details },
    );
  }

  /**
   * A getter that can do no harm gave what it must give: otherwise the tables are another
   * version's.
   */
  protected selfCheck(what: string, value: unknown, low: number, high: number): void {
    if (typeof value === 'number' && value >= low && value <= high) return;
    throw new Refused(
      'unsupported',
      `${what} gave ${String(value)}, and should give ` +
        `${low === high ? low : `a number from ${low} to ${high}`}: this build of TensorRT is ` +
        'not one whose tables are known.',
    );
  }

  protected takeBytes({ classes, library }: Session, pointer: unknown, call: string): Uint8Array {
    const memory = classes.object('HostMemory', pointer);
    if (memory === undefined)
      throw new Refused('library', `${call} of ${library.title} failed: ${this.said.text}`, {
        call,
        said: this.said.text,
      });
    const bytes = classes.bytes(
      Number(classes.call(memory, 'HostMemory', 'data')),
      Number(classes.call(memory, 'HostMemory', 'size')),
    );
    classes.destroy(memory);
    return bytes;
  }
}

/**
 * TensorRT's own words for too little memory, and for a GPU that TensorRT for RTX has no code for.
 */
function kindOf(said: string): 'memory' | 'unsupported' | 'library' {
  if (
    /out of memory|OutOfMemory|insufficient memory|cudaErrorMemoryAllocation|bad_alloc/i.test(said)
  )
    return 'memory';
  return /cannot run on this GPU, which has compute capability/i.test(said) ||
    /does not support this compute capability/i.test(said)
    ? 'unsupported'
    : 'library';
}
