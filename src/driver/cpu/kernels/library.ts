/** A library: code without a context. Each context gets a module of it at its first request. */
import type { KernelFunction } from './kernel-function.js';
import { CpuModule } from './module.js';
import type { LoadedCode } from './module.js';
import type { KernelContext, KernelMachine } from './kernel-context.js';

export class CpuLibrary {
  readonly handle: number;
  readonly machine: KernelMachine;
  readonly code: LoadedCode;
  readonly kernels = new Map<string, CpuKernel>();
  private readonly modules = new Map<KernelContext, CpuModule>();

  constructor(machine: KernelMachine, code: LoadedCode) {
    this.machine = machine;
    this.code = code;
    this.handle = machine.newHandle();
    for (const { name } of code.compiled.kernels) {
      const kernel = new CpuKernel(machine.newHandle(), this, name);
      this.kernels.set(name, kernel);
      machine.kernels.set(kernel.handle, kernel);
    }
  }

  moduleIn(call: string, context: KernelContext): CpuModule {
    let module = this.modules.get(context);
    if (module === undefined) {
      module = new CpuModule(call, this.machine.newHandle(), context, this.code);
      this.machine.modules.set(module.handle, module);
      this.modules.set(context, module);
      // Modules of contexts that do not exist any more would keep their memory.
      for (const other of this.modules.keys()) if (other.destroyed) this.modules.delete(other);
    }
    return module;
  }

  unload(): void {
    for (const [context, module] of this.modules) if (!context.destroyed) module.unload();
    for (const kernel of this.kernels.values()) this.machine.kernels.delete(kernel.handle);
    this.machine.libraries.delete(this.handle);
  }
}

export class CpuKernel {
  readonly handle: number;
  readonly library: CpuLibrary;
  readonly name: string;

  constructor(handle: number, library: CpuLibrary, name: string) {
    this.handle = handle;
    this.library = library;
    this.name = name;
  }

  functionIn(call: string, context: KernelContext): KernelFunction {
    return this.library.moduleIn(call, context).function(this.name)!;
  }
}
