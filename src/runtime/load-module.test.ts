/** The calls of the driver when a module is loaded on a GPU, on a driver that records its calls. */
import { expect, test } from 'vitest';

import type { Driver } from '../driver/driver.js';
import { DriverError } from '../driver/error.js';
import { CUresult } from '../ground/result.js';
import { loadModule } from './load-module.js';

const HEAD = '.version 7.0\n.target sm_70\n.address_size 64\n';
const entry = (name: string): string => `.visible .entry ${name}()\n{\n  ret;\n}\n`;
const PTX = HEAD + entry('nothing');
const CUBIN = Uint8Array.of(0x7f, 0x45, 0x4c, 0x46);

function noting(changes: Partial<Record<keyof Driver, unknown>> = {}): {
  driver: Driver;
  loads: unknown[][];
  unloads: number[];
} {
  const loads: unknown[][] = [];
  const unloads: number[] = [];
  const driver = {
    provider: 'libcuda',
    cuLibraryLoadData: (...args: unknown[]) => {
      loads.push(args);
      return 1;
    },
    cuLibraryUnload: (library: number) => unloads.push(library),
    cuLibraryEnumerateKernels: () => [],
    cuLibraryGetKernel: (_: number, name: string) => {
      if (name.startsWith('async_cuda_'))
        throw new DriverError('cuLibraryGetKernel', CUresult.CUDA_ERROR_NOT_FOUND);
      return 2;
    },
    cuKernelGetFunction: () => 3,
    cuFuncLoad: () => undefined,
    cuFuncGetAttribute: () => 0,
    cuFuncSetAttribute: () => undefined,
    cuFuncGetParamInfo: () => undefined,
    ...changes,
  } as Partial<Record<keyof Driver, unknown>> as Driver;
  return { driver, loads, unloads };
}

test('PTX is given to the driver whole, not to its linker, whose machine code is slower', () => {
  const { driver, loads } = noting();
  const options = { CU_JIT_MAX_REGISTERS: 32 };
  expect(loadModule(driver, PTX, options, 0).kernels.map(({ name }) => name)).toEqual(['nothing']);
  expect(loads).toEqual([[PTX, options]]);
});

test('PTX that does not compile is an error, and its library is unloaded', () => {
  const { driver, unloads } = noting({
    cuLibraryGetKernel: () => {
      throw new DriverError('cuLibraryGetKernel', CUresult.CUDA_ERROR_INVALID_PTX, {
        errorLog: 'line 4; error',
      });
    },
  });
  // The driver's error is thrown even for a text that the library's own parser refuses.
  for (const ptx of [PTX, '.version', ''])
    expect(() => loadModule(driver, ptx, {}, 0)).toThrow('CUDA_ERROR_INVALID_PTX');
  expect(unloads).toEqual([1, 1, 1]);
});

test('of several kernels those that did not compile are named, with the reason', () => {
  const { driver, unloads } = noting({
    cuLibraryGetKernel: (_: number, name: string) => {
      if (name !== 'good')
        throw new DriverError('cuLibraryGetKernel', CUresult.CUDA_ERROR_NOT_FOUND);
      return 2;
    },
  });
  const { kernels, failed } = loadModule(driver, HEAD + entry('good') + entry('bad'), {}, 0);
  expect([kernels.map(({ name }) => name), failed.map(({ name }) => name)]).toEqual([
    ['good'],
    ['bad'],
  ]);
  expect(failed[0]!.failure.message).toContain('CUDA_ERROR_NOT_FOUND');
  expect(unloads).toEqual([]);
});

test('a module that mentions vprintf prints, whatever it is made of', () => {
  const { driver } = noting();
  expect(loadModule(driver, PTX, {}, 0).prints).toBe(false);
  expect(
    loadModule(
      driver,
      PTX.replace(
        '.visible',
        '.extern .func (.param .b32 r) vprintf (.param .b64 a, .param .b64 b);\n.visible',
      ),
      {},
      0,
    ).prints,
  ).toBe(true);
  const cubin = Buffer.concat([CUBIN, Buffer.from('\0.symtab\0vprintf\0')]);
  expect(loadModule(driver, new Uint8Array(cubin), {}, 0).prints).toBe(true);
});

test(
  'where the kernels are known the text is not read for their parameters: the driver returns ' +
    'their places',
  () => {
    const asked: string[] = [];
    const { driver } = noting({
      cuLibraryGetKernel: (_: number, name: string) => {
        asked.push(name);
        if (name.startsWith('async_cuda_'))
          throw new DriverError('cuLibraryGetKernel', CUresult.CUDA_ERROR_NOT_FOUND);
        return 2;
      },
      cuFuncGetParamInfo: (_: number, index: number) =>
        index === 0 ? { offset: 0, size: 8 } : undefined,
    });
    // No parser accepts this text; only the driver compiles it.
    const { kernels } = loadModule(driver, '.version nonsense', {}, 0, { kernels: ['mine'] });
    expect(asked).toEqual(['async_cuda_is_it_compiled', 'mine']);
    expect(kernels.map(({ name, signature, params }) => ({ name, signature, params }))).toEqual([
      { name: 'mine', signature: undefined, params: [{ offset: 0, size: 8 }] },
    ]);
  },
);
