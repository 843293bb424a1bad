/** What is compiled, and what is taken from the cache, when PTX is loaded on a GPU: a driver that counts. */
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';

import type { Driver } from '../driver/driver.js';
import { DriverError } from '../driver/error.js';
import { CUresult } from '../driver/result.js';
import { loadModule } from './load-module.js';

const PTX = '.version 7.0\n.target sm_70\n.address_size 64\n.visible .entry nothing()\n{\n  ret;\n}\n';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'async-cuda-load-'));
  process.env['ASYNC_CUDA_CACHE_DIR'] = folder;
});
afterEach(() => {
  delete process.env['ASYNC_CUDA_CACHE_DIR'];
  delete process.env['ASYNC_CUDA_CACHE_DISABLE'];
  rmSync(folder, { recursive: true, force: true });
});

function counting(load: (image: Uint8Array) => void = () => undefined): { driver: Driver; links: () => number } {
  let links = 0;
  const driver = {
    provider: 'libcuda',
    cuDriverGetVersion: () => 13000,
    cuLink: () => ({ cubin: Uint8Array.of(0x7f, 0x45, 0x4c, 0x46, ++links), infoLog: '', errorLog: '' }),
    cuLibraryLoadData: (image: Uint8Array) => {
      load(image);
      return 1;
    },
    cuLibraryGetKernel: () => 2,
    cuKernelGetFunction: () => 3,
    cuFuncLoad: () => undefined,
    cuFuncGetAttribute: () => 0,
    cuFuncSetAttribute: () => undefined,
    cuFuncGetParamInfo: () => undefined,
  } as Partial<Record<keyof Driver, unknown>> as Driver;
  return { driver, links: () => links };
}

const load = (driver: Driver, ptx: string | Uint8Array = PTX, architecture = 'sm_90') => loadModule(driver, ptx, {}, 0, architecture);

test('the same PTX is compiled once', () => {
  const images: number[] = [];
  const { driver, links } = counting((image) => images.push(image[4]!));
  load(driver);
  expect(load(driver).kernels.map(({ name }) => name)).toEqual(['nothing']);
  expect([links(), images]).toEqual([1, [1, 1]]);
});

test('for another GPU it is compiled again', () => {
  const { driver, links } = counting();
  load(driver);
  load(driver, PTX, 'sm_100');
  expect(links()).toBe(2);
});

test('nothing is kept where the cache is switched off', () => {
  process.env['ASYNC_CUDA_CACHE_DISABLE'] = '1';
  const { driver, links } = counting();
  load(driver);
  load(driver);
  expect([links(), readdirSync(folder)]).toEqual([2, []]);
});

test('machine code is not kept: it is there already', () => {
  const { driver } = counting();
  expect(() => load({ ...driver, cuLibraryEnumerateKernels: () => [] }, Uint8Array.of(0x7f, 0x45, 0x4c, 0x46))).not.toThrow();
  expect(readdirSync(folder)).toEqual([]);
});

test('what the driver refuses is compiled anew and takes the old one’s place', () => {
  load(counting().driver);
  let refusals = 1;
  const { driver, links } = counting(() => {
    if (refusals-- > 0) throw new DriverError('cuLibraryLoadData', CUresult.CUDA_ERROR_NO_BINARY_FOR_GPU);
  });
  load(driver);
  load(driver);
  expect(links()).toBe(1);
});

test('out of memory is no reason to compile again', () => {
  load(counting().driver);
  const { driver, links } = counting(() => {
    throw new DriverError('cuLibraryLoadData', CUresult.CUDA_ERROR_OUT_OF_MEMORY);
  });
  expect(() => load(driver)).toThrow('CUDA_ERROR_OUT_OF_MEMORY');
  expect([links(), readdirSync(folder).length]).toEqual([0, 1]);
});

test('a module that mentions vprintf prints, whatever it is made of', () => {
  const { driver } = counting();
  expect(load(driver).prints).toBe(false);
  expect(load(driver, PTX.replace('.visible', '.extern .func (.param .b32 r) vprintf (.param .b64 a, .param .b64 b);\n.visible')).prints).toBe(true);
  const cubin = Buffer.concat([Uint8Array.of(0x7f, 0x45, 0x4c, 0x46), Buffer.from('\0.symtab\0vprintf\0')]);
  expect(load({ ...driver, cuLibraryEnumerateKernels: () => [] }, new Uint8Array(cubin)).prints).toBe(true);
});
