// Gives run-time functions and globals their indices. A module contains the functions that its code
// calls, and everything that those call.

import { ModuleBuilder } from '../wasm/module.js';
import type { Signature } from '../wasm/signature.js';
import { parseWat } from '../wasm/wat.js';
import type { WatFunction, WatLibrary } from '../wasm/wat.js';
import type { WatLinks } from '../wasm/wat-writer.js';
import type { LocalType, WasmType } from '../scalar-types.js';

/** Host functions that a kernel may call, and their WebAssembly imports. */
export const HOST_FUNCTIONS: Readonly<
  Record<string, { importName: string; signature: Signature }>
> = {
  vprintf: { importName: 'host_vprintf', signature: { params: ['i32', 'i32'], results: ['i32'] } },
  malloc: { importName: 'host_malloc', signature: { params: ['i64'], results: ['i64'] } },
  free: { importName: 'host_free', signature: { params: ['i64'], results: [] } },
  cudaGraphSetConditional: {
    importName: 'host_set_conditional',
    signature: { params: ['i64', 'i32'], results: [] },
  },
  __assertfail: {
    importName: 'host_assert',
    signature: { params: ['i32', 'i32', 'i32', 'i32', 'i32', 'i32'], results: [] },
  },
};

const GLOBALS: Readonly<Record<string, WasmType>> = {
  fuel: 'i32',
  carry: 'i32',
  cursor: 'i32',
  unwind: 'i32',
  callFuel: 'i32',
  stackEnd: 'i32',
  dynamicStart: 'i32',
  paramBytes: 'i32',
  quiet: 'i32',
};

export class Linker {
  readonly module = new ModuleBuilder();
  private readonly indices = new Map<string, number>();
  private readonly globals = new Map<string, number>();
  private readonly pending: WatFunction[] = [];
  private readonly library: WatLibrary;
  private readonly links: WatLinks = {
    functionIndex: (name) => this.functionIndex(name),
    globalIndex: (name) => this.globalIndex(name),
    signature: (index) => this.module.signature(index),
    globalType: (index) => this.module.globalType(index),
  };

  constructor(
    library: WatLibrary,
    hostFunctions: readonly string[],
    checkFunctions: Readonly<Record<string, Signature>>,
  ) {
    this.library = library;
    this.module.importMemory('env', 'memory');
    this.globals.set('dataBase', this.module.importGlobal('env', 'dataBase', 'i32'));
    for (const name of hostFunctions) {
      const { importName, signature } = HOST_FUNCTIONS[name]!;
      this.indices.set(importName, this.module.importFunction('env', importName, signature));
    }
    for (const [name, signature] of Object.entries(checkFunctions))
      this.indices.set(name, this.module.importFunction('env', name, signature));
    for (const [name, type] of Object.entries(GLOBALS))
      this.globals.set(name, this.module.global(type));
  }

  globalIndex(name: string): number {
    const index = this.globals.get(name);
    if (index === undefined) throw new Error(`no global ${name}`);
    return index;
  }

  functionIndex(name: string): number {
    const known = this.indices.get(name);
    if (known !== undefined) return known;
    const fn = this.library.get(name);
    if (!fn) throw new Error(`no run-time function ${name}`);
    const index = this.module.reserve(name, fn.signature);
    this.indices.set(name, index);
    this.pending.push(fn);
    return index;
  }

  /** Reserves the index of a function of the program. */
  reserve(name: string, signature: Signature, exportName?: string): number {
    const index = this.module.reserve(name, signature, exportName);
    this.indices.set(name, index);
    return index;
  }

  /** The function with a key; it is made at its first use. */
  once(
    key: string,
    signature: Signature,
    make: () => { locals: readonly LocalType[]; code: Uint8Array },
  ): number {
    const known = this.indices.get(key);
    if (known !== undefined) return known;
    // It is made before its index is reserved: making it may fail.
    const { locals, code } = make();
    const index = this.reserve(key, signature);
    this.define(index, locals, code);
    return index;
  }

  define(index: number, locals: readonly LocalType[], code: Uint8Array): void {
    this.module.define(index, locals, code);
  }

  /** Adds functions in text form; `links` gives the names that only these functions use. */
  addText(text: string, links: Readonly<Record<string, number>>, exportName?: string): void {
    for (const fn of parseWat(text)) {
      const index = this.module.reserve(fn.name, fn.signature, exportName);
      this.module.define(
        index,
        fn.locals,
        fn.assemble({
          ...this.links,
          functionIndex: (name) => links[name] ?? this.functionIndex(name),
        }),
      );
    }
  }

  finish(): Uint8Array {
    for (let fn = this.pending.pop(); fn; fn = this.pending.pop()) {
      this.module.define(this.indices.get(fn.name)!, fn.locals, fn.assemble(this.links));
    }
    return this.module.finish();
  }
}
