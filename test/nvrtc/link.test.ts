/** nvJitLink, through `async-cuda/nvrtc`. */
import { CudaArgumentError, CudaCompileError, CoreDevice, f32, inout } from 'async-cuda/core';
import { compile, link } from 'async-cuda/nvrtc';
import { afterEach, describe, expect, test, vi } from 'vitest';

import { failure } from '../core/test-device.js';
import { describeWith, haveLibrary, ownCache } from './nvrtc.js';

const CALLER =
  'extern __device__ float twice(float x);\nextern "C" __global__ void f(float* y) { y[0] = ' +
  'twice(y[0]); }\n';
const CALLEE = '__device__ float twice(float x) { return 2 * x; }\n';
const elf = [0x7f, 0x45, 0x4c, 0x46];

describeWith('nvJitLink', 'link', () => {
  ownCache();

  describe.skipIf(!haveLibrary('NVRTC'))('of NVRTC’s results', () => {
    test('LTO-IR of two programs becomes one cubin', async () => {
      const parts = await Promise.all(
        [CALLER, CALLEE].map((source) =>
          compile(source, { architecture: 'sm_90', outputs: ['ltoir'] }),
        ),
      );
      const { cubin, architecture, cached } = await link(parts);
      expect([...cubin!.subarray(0, 4)]).toEqual(elf);
      expect([architecture, cached]).toEqual(['sm_90', false]);
      const ptx = (await link(parts, { output: 'ptx' })).ptx!;
      expect(ptx).toContain('.entry f(');
      // The two are optimised together: there is no call.
      expect(ptx).not.toMatch(/\bcall\b/);
    });

    test('LTO-IR of programs that share a variable and a function becomes PTX', async () => {
      const sources = [
        'extern __device__ int counter; extern __device__ float twice(float x);\nextern "C" ' +
          '__global__ void f(float* y) { y[0] = twice(y[0]); atomicAdd(&counter, 1); y[1] = ' +
          'counter; }',
        `__device__ int counter = 5;\n${CALLEE}`,
      ];
      const { ptx } = await link(
        await Promise.all(
          sources.map((source) => compile(source, { architecture: 'sm_90', outputs: ['ltoir'] })),
        ),
        { output: 'ptx' },
      );
      await using device = await CoreDevice.open('cpu');
      const module = await device.loadModule(ptx!);
      using numbers = device.alloc(f32, 2);
      numbers.fill(device.stream, 3);
      module.kernel('f', [inout(f32)]).launch(device.stream, { grid: 1, block: 1 }, numbers);
      expect([...(await numbers.read(device.stream))]).toEqual([6, 6]);
    });

    test('PTX of two programs becomes one cubin', async () => {
      const parts = await Promise.all(
        [CALLER, CALLEE].map((source) =>
          compile(source, { architecture: 'compute_90', relocatable: true }),
        ),
      );
      const { cubin } = await link(
        parts.map(({ ptx }) => ({ ptx })),
        { architecture: 'sm_90' },
      );
      expect([...cubin!.subarray(0, 4)]).toEqual(elf);
    });

    test('a result that was linked before is read from disk', async () => {
      const program = await compile(
        CALLEE.replace('__device__ float', 'extern "C" __device__ float'),
        { architecture: 'sm_90', outputs: ['ltoir'] },
      );
      const { cubin } = await link([program]);
      await vi.waitFor(async () => expect((await link([program])).cached).toBe(true));
      expect(Buffer.compare((await link([program])).cubin!, cubin!)).toBe(0);
      expect((await link([program], { optimizationLevel: 0 })).cached).toBe(false);
    });

    test('a function that no part has is named by the linker', async () => {
      const program = await compile(CALLER, { architecture: 'sm_90', outputs: ['ltoir'] });
      const error = await failure(() => link([program]));
      expect(error).toBeInstanceOf(CudaCompileError);
      expect(error.message).toContain('twice');
      expect(error.log).toContain('twice');
    });
  });

  test('text that is not PTX', async () => {
    const error = await failure(() =>
      link([{ ptx: 'nonsense', name: 'mine.ptx' }], { architecture: 'sm_90' }),
    );
    expect([error.code, error.message]).toEqual([
      'ERR_CUDA_COMPILE',
      expect.stringContaining('mine.ptx'),
    ]);
  });

  test('an option that nvJitLink does not take', async () => {
    const error = await failure(() =>
      link([{ ptx: '.version 8.0' }], { architecture: 'sm_90', options: ['-no-such-option'] }),
    );
    expect(error).toBeInstanceOf(CudaArgumentError);
    expect(error.message).toContain('no-such-option');
  });
});

describe('link is refused at the call', () => {
  const part = { ptx: '.version 8.0' };
  test.each([
    ['nothing to link', [], {}, 'inputs'],
    [
      'what is no part',
      [{ ptx: 'a', cubin: new Uint8Array(4) }],
      { architecture: 'sm_90' },
      'inputs[0]',
    ],
    [
      'an empty cubin',
      [{ cubin: new Uint8Array(0) }],
      { architecture: 'sm_90' },
      'inputs[0].cubin',
    ],
    ['no architecture', [part], {}, 'options.architecture'],
    ['a virtual architecture', [part], { architecture: 'compute_90' }, 'options.architecture'],
    ['PTX of PTX', [part], { architecture: 'sm_90', output: 'ptx' }, 'options.output'],
    [
      'an option that there is not',
      [part],
      { architecture: 'sm_90', fastMath: true },
      'options.fastMath',
    ],
    [
      'a level that there is not',
      [part],
      { architecture: 'sm_90', optimizationLevel: 2 },
      'options.optimizationLevel',
    ],
  ])('%s', async (_, inputs, options, argument) => {
    const error = await failure(() => link(inputs as never, options as never));
    expect(error).toBeInstanceOf(CudaArgumentError);
    expect(error.argument).toBe(argument);
  });
});

describe('without nvJitLink', () => {
  afterEach(() => vi.unstubAllEnvs());
  test('the error explains how to install it', async () => {
    vi.stubEnv('ASYNC_CUDA_NVJITLINK', '/nowhere/libnvJitLink.so.13');
    const error = await failure(() =>
      link([{ ptx: '.version 8.0' }], { architecture: 'sm_90', cache: false }),
    );
    expect([error.code, error.message]).toEqual([
      'ERR_CUDA_NO_LIBRARY',
      expect.stringContaining('pip install nvidia-nvjitlink'),
    ]);
  });
});
