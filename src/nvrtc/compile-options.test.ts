import { resolve } from 'node:path';
import { expect, test } from 'vitest';

import { CudaArgumentError } from '../core/index.js';
import { checkCompileOptions } from './compile-options.js';
import type { CompileOptions } from './compile-options.js';

test.each<[CompileOptions, string[]]>([
  [{}, []],
  [{ standard: 'c++20' }, ['--std=c++20']],
  [{ fastMath: true }, ['--use_fast_math']],
  [{ fastMath: false }, []],
  [
    { flushToZero: true, preciseDivision: false, preciseSquareRoot: true, fuseMultiplyAdd: false },
    ['--ftz=true', '--prec-div=false', '--prec-sqrt=true', '--fmad=false'],
  ],
  [
    { debug: true, lineInfo: true, maxRegisters: 32 },
    ['--device-debug', '--generate-line-info', '--maxrregcount=32'],
  ],
  [
    { restrict: true, deviceByDefault: true, int128: true, relocatable: true, warnings: false },
    [
      '--restrict',
      '--device-as-default-execution-space',
      '--device-int128',
      '--relocatable-device-code=true',
      '--disable-warnings',
    ],
  ],
  [
    { defines: { TILE: 16, ON: true, OFF: false, NAME: 'a b', 'F(x)': '(x)' } },
    [
      '--define-macro=TILE=16',
      '--define-macro=ON=1',
      '--define-macro=NAME=a b',
      '--define-macro=F(x)=(x)',
    ],
  ],
])('%j is spelled as NVRTC does', (options, flags) => {
  expect([...checkCompileOptions(options).flags].sort()).toEqual([...flags].sort());
});

test('defaults', () => {
  expect(checkCompileOptions({})).toMatchObject({
    outputs: ['ptx'],
    name: 'source.cu',
    architecture: undefined,
    cudaHeaders: true,
    cache: true,
    precompiledHeaders: false,
    needs: [],
  });
});

test('folders do not depend on where the process is later', () => {
  expect(checkCompileOptions({ includeFolders: ['include', '/usr/x'] }).includeFolders).toEqual([
    resolve('include'),
    '/usr/x',
  ]);
  expect(checkCompileOptions({ precompiledHeaders: { folder: 'pch' } }).precompiledHeaders).toBe(
    resolve('pch'),
  );
});

test('what only newer versions take is known', () => {
  expect(
    checkCompileOptions({
      outputs: ['ltoir'],
      standard: 'c++20',
      precompiledHeaders: true,
    }).needs.map(({ since }) => since),
  ).toEqual([
    [12, 0],
    [12, 0],
    [12, 8],
  ]);
});

test.each([
  [{ fastmath: true }, 'options.fastmath', "Did you mean 'fastMath'?"],
  [{ frobnicate: 1 }, 'options.frobnicate', 'Options are architecture'],
  [{ architecture: '90' }, 'options.architecture', "'sm_90'"],
  [
    { architecture: 'compute_90', outputs: ['cubin'] },
    'options.architecture',
    "Write architecture: 'sm_90'",
  ],
  [{ outputs: [] }, 'options.outputs', 'ptx, cubin, ltoir'],
  [{ outputs: ['sass'] }, 'options.outputs[0]', 'ptx, cubin, ltoir'],
  [{ standard: 'c++03' }, 'options.standard', 'c++17'],
  [{ fastMath: 1 }, 'options.fastMath', 'true or false'],
  [{ maxRegisters: 0 }, 'options.maxRegisters', 'from 1 to 255'],
  [{ name: '' }, 'options.name', 'a file'],
  [{ nameExpressions: 'f' }, 'options.nameExpressions', 'a list of strings'],
  [{ nameExpressions: ['f', ''] }, 'options.nameExpressions[1]', 'not empty'],
  [{ headers: ['a.h'] }, 'options.headers', 'texts by name'],
  [{ headers: { 'a.h': 1 } }, "options.headers['a.h']", 'a string'],
  [{ headers: { 'a.h': 'a\0b' } }, "options.headers['a.h']", 'zero character'],
  [{ includeFolders: [1] }, 'options.includeFolders[0]', 'a string'],
  [{ defines: ['TILE'] }, 'options.defines', 'Write defines: { TILE: 16 }'],
  [{ defines: { '1X': 1 } }, 'options.defines', 'names of macros'],
  [{ defines: { X: 'a\nb' } }, 'options.defines.X', 'one line'],
  [{ defines: { X: null } }, 'options.defines.X', 'a string, a number or a boolean'],
  [{ precompiledHeaders: { file: 'x' } }, 'options.precompiledHeaders.file', 'folder'],
  [{ options: '-G' }, 'options.options', 'a list of strings'],
  [{ cache: 'no' }, 'options.cache', 'true or false'],
  [{ signal: {} }, 'signal', 'AbortSignal'],
])('%j is refused', (options, argument, says) => {
  let error: unknown;
  try {
    checkCompileOptions(options as never);
  } catch (thrown) {
    error = thrown;
  }
  expect(error).toBeInstanceOf(CudaArgumentError);
  expect((error as CudaArgumentError).argument).toBe(argument);
  expect((error as CudaArgumentError).message).toContain(says);
});
