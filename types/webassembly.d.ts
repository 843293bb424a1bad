/**
 * WebAssembly's JavaScript interface, which TypeScript declares only together with the DOM. Just
 * what this project uses, as Node has it; never shipped, so no public type may mention it.
 */
declare namespace WebAssembly {
  interface Module {
    /** Tells a module from any other object: structurally it has no members. */
    readonly [Symbol.toStringTag]: 'WebAssembly.Module';
  }
  const Module: {
    prototype: Module;
    new (bytes: ArrayBufferView | ArrayBuffer): Module;
    customSections(module: Module, sectionName: string): ArrayBuffer[];
    exports(module: Module): ModuleExportDescriptor[];
    imports(module: Module): ModuleImportDescriptor[];
  };

  interface Instance {
    readonly exports: Exports;
  }
  const Instance: { prototype: Instance; new (module: Module, imports?: Imports): Instance };

  interface MemoryDescriptor {
    /** Pages of 64 KiB; a bigint where `address` is i64. */
    initial: number | bigint;
    maximum?: number | bigint;
    shared?: boolean;
    address?: 'i32' | 'i64';
  }
  interface Memory {
    /** A SharedArrayBuffer where the memory is shared. */
    readonly buffer: ArrayBuffer | SharedArrayBuffer;
    /** Pages it had before. */
    grow(delta: number): number;
  }
  const Memory: { prototype: Memory; new (descriptor: MemoryDescriptor): Memory };

  interface TableDescriptor {
    element: 'anyfunc' | 'externref';
    initial: number;
    maximum?: number;
  }
  interface Table {
    readonly length: number;
    get(index: number): unknown;
    set(index: number, value?: unknown): void;
    grow(delta: number, value?: unknown): number;
  }
  const Table: { prototype: Table; new (descriptor: TableDescriptor, value?: unknown): Table };

  interface GlobalDescriptor {
    value: 'i32' | 'i64' | 'f32' | 'f64' | 'externref' | 'anyfunc';
    mutable?: boolean;
  }
  interface Global<T = unknown> {
    value: T;
    valueOf(): T;
  }
  const Global: {
    prototype: Global;
    new <T = unknown>(descriptor: GlobalDescriptor, value?: T): Global<T>;
  };

  interface CompileError extends Error {}
  const CompileError: { prototype: CompileError; new (message?: string): CompileError };
  interface LinkError extends Error {}
  const LinkError: { prototype: LinkError; new (message?: string): LinkError };
  interface RuntimeError extends Error {}
  const RuntimeError: { prototype: RuntimeError; new (message?: string): RuntimeError };

  type ExternalKind = 'function' | 'global' | 'memory' | 'table' | 'tag';
  interface ModuleExportDescriptor {
    name: string;
    kind: ExternalKind;
  }
  interface ModuleImportDescriptor {
    module: string;
    name: string;
    kind: ExternalKind;
  }

  // eslint-disable-next-line @typescript-eslint/no-unsafe-function-type -- of any signature
  type ExportValue = Function | Global | Memory | Table;
  type Exports = Record<string, ExportValue>;
  type Imports = Record<string, Record<string, ExportValue | number | bigint>>;

  function compile(bytes: ArrayBufferView | ArrayBuffer): Promise<Module>;
  function instantiate(module: Module, imports?: Imports): Promise<Instance>;
  function validate(bytes: ArrayBufferView | ArrayBuffer): boolean;
}
