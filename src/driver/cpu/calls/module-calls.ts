/**
 * Modules, libraries and the linker. The one kind of code that this device takes is PTX.
 */
import type { WasmModule } from '../../../ptx/index.js';
import { CUjitInputType } from '../../flags.js';
import type { ModuleCalls } from '../../driver.js';
import { CUresult } from '../../../ground/result.js';
import { fail, invalidValue } from '../failure.js';
import { forbidUnlessRelaxed } from '../streams/capture.js';
import { CpuLibrary } from '../kernels/library.js';
import { CpuModule, failPtx, loadCode, ptxText } from '../kernels/module.js';
import type { Machine } from '../machine.js';

export function moduleCalls(machine: Machine): ModuleCalls {
  function notFound(call: string, kind: string, name: string, known: readonly string[]): never {
    fail(
      call,
      CUresult.CUDA_ERROR_NOT_FOUND,
      `there is no ${kind} '${name}'; there ` +
        `${known.length === 0 ? 'are none' : `is ${known.join(', ')}`}`,
    );
  }

  /**
   * Kernels that the compiler does not cover are left out of a module whose others it does: the
   * error is thrown when one is looked up.
   */
  function noKernel(call: string, name: string, { kernels, failures }: WasmModule): never {
    const failure = failures.find(({ kernel }) => kernel === name);
    if (failure !== undefined) failPtx(call, failure.error);
    notFound(
      call,
      'kernel',
      name,
      kernels.map((kernel) => kernel.name),
    );
  }

  function notFoundVariable(
    call: string,
    name: string,
    { compiled }: Pick<CpuModule, 'compiled'>,
  ): never {
    notFound(
      call,
      'variable',
      name,
      compiled.variables.map((variable) => variable.name),
    );
  }

  return {
    cuModuleLoadDataEx(image) {
      const call = 'cuModuleLoadDataEx';
      const context = machine.context(call);
      forbidUnlessRelaxed(call, machine);
      const code = loadCode(call, image, machine.services);
      const module = new CpuModule(call, machine.newHandle(), context, code);
      machine.modules.set(module.handle, module);
      return module.handle;
    },
    cuModuleUnload(mod) {
      const module = machine.find('cuModuleUnload', 'module', machine.modules, mod);
      forbidUnlessRelaxed('cuModuleUnload', machine);
      module.unload();
    },
    cuModuleGetFunction(mod, name) {
      const module = machine.find('cuModuleGetFunction', 'module', machine.modules, mod);
      const found = module.function(name);
      return (found ?? noKernel('cuModuleGetFunction', name, module.compiled)).handle;
    },
    cuModuleGetGlobal(mod, name) {
      const module = machine.find('cuModuleGetGlobal', 'module', machine.modules, mod);
      return module.variable(name) ?? notFoundVariable('cuModuleGetGlobal', name, module);
    },

    cuLibraryLoadData(code) {
      machine.checkInitialised('cuLibraryLoadData');
      const library = new CpuLibrary(
        machine,
        loadCode('cuLibraryLoadData', code, machine.services),
      );
      machine.libraries.set(library.handle, library);
      return library.handle;
    },
    cuLibraryUnload(library) {
      machine.find('cuLibraryUnload', 'library', machine.libraries, library).unload();
    },
    cuLibraryGetKernel(library, name) {
      const { kernels, code } = machine.find(
        'cuLibraryGetKernel',
        'library',
        machine.libraries,
        library,
      );
      return (kernels.get(name) ?? noKernel('cuLibraryGetKernel', name, code.compiled)).handle;
    },
    cuLibraryGetKernelCount: (library) =>
      machine.find('cuLibraryGetKernelCount', 'library', machine.libraries, library).kernels.size,
    cuLibraryEnumerateKernels(library) {
      const { kernels } = machine.find(
        'cuLibraryEnumerateKernels',
        'library',
        machine.libraries,
        library,
      );
      return Array.from(kernels.values(), (kernel) => kernel.handle);
    },
    cuKernelGetName: (kernel) =>
      machine.find('cuKernelGetName', 'kernel', machine.kernels, kernel).name,
    cuLibraryGetGlobal(library, name) {
      const call = 'cuLibraryGetGlobal';
      const module = machine
        .find(call, 'library', machine.libraries, library)
        .moduleIn(call, machine.context(call));
      return module.variable(name) ?? notFoundVariable(call, name, module);
    },
    cuLibraryGetModule(library) {
      const call = 'cuLibraryGetModule';
      return machine
        .find(call, 'library', machine.libraries, library)
        .moduleIn(call, machine.context(call)).handle;
    },
    cuKernelGetFunction(kernel) {
      const call = 'cuKernelGetFunction';
      return machine
        .find(call, 'kernel', machine.kernels, kernel)
        .functionIn(call, machine.context(call)).handle;
    },
    /** The "cubin" of one PTX input is its text, checked: the load calls take it back. */
    cuLink(inputs) {
      const call = 'cuLink';
      machine.context(call);
      const [input] = inputs;
      if (input === undefined) invalidValue(call, 'there is nothing to link');
      if (inputs.length > 1)
        fail(
          call,
          CUresult.CUDA_ERROR_NOT_SUPPORTED,
          'the CPU device links no more than one PTX text',
        );
      if (input.type !== CUjitInputType.CU_JIT_INPUT_PTX) {
        fail(
          call,
          CUresult.CUDA_ERROR_NO_BINARY_FOR_GPU,
          `${input.name} is not PTX; the CPU device takes PTX`,
        );
      }
      loadCode(call, input.data, machine.services);
      return {
        cubin: new TextEncoder().encode(ptxText(call, input.data)),
        infoLog: '',
        errorLog: '',
      };
    },
  };
}
