/** NVRTC itself, through `async-cuda/nvrtc`: no device is opened. */
import { spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { CudaArgumentError, CudaError, CudaOutOfMemoryError } from 'async-cuda/core';
import { NvrtcCompileError, compile } from 'async-cuda/nvrtc';
import type { CompileOptions } from 'async-cuda/nvrtc';
import { afterAll, afterEach, describe, expect, test, vi } from 'vitest';

import { describeWith, ownCache } from './nvrtc.js';

const SCALE = `extern "C" __global__ void scale(float* y, float k, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] *= k;
}
`;
const TEMPLATE =
  'template <typename T> __global__ void add(T* y, T k) { y[threadIdx.x] += k; }\n__device__ ' +
  'int counter;\n';

async function failure<E extends Error = CudaError>(promise: Promise<unknown>): Promise<E> {
  try {
    await promise;
  } catch (error) {
    return error as E;
  }
  throw new Error('it compiled');
}

describeWith('NVRTC', 'compile', () => {
  const cache = ownCache();
  const fresh = (source: string, options: CompileOptions = {}): ReturnType<typeof compile> =>
    compile(source, { ...options, cache: false });
  const scratch = mkdtempSync(join(tmpdir(), 'async-cuda-includes-'));
  afterAll(() => rmSync(scratch, { recursive: true }));

  describe('gives', () => {
    test('PTX', async () => {
      const program = await fresh(SCALE, { architecture: 'compute_80' });
      expect(program.ptx).toMatch(/^\.target sm_80/m);
      expect(program.ptx).toMatch(/\.visible \.entry scale\(/);
      expect(program.architecture).toBe('compute_80');
      expect(program.nvrtcVersion[0]).toBeGreaterThanOrEqual(11);
      expect(program.log.trim()).toBe('');
    });

    test('PTX for the oldest architecture where none is named', async () => {
      const program = await fresh(SCALE);
      expect(program.architecture).toBeUndefined();
      expect(program.ptx).toMatch(/^\.target sm_\d\d/m);
    });

    test('a cubin, with its PTX', async () => {
      const program = await fresh(SCALE, { architecture: 'sm_90', outputs: ['cubin', 'ptx'] });
      expect([...program.cubin.subarray(0, 4)]).toEqual([0x7f, 0x45, 0x4c, 0x46]);
      expect(program.ptx).toMatch(/^\.target sm_90/m);
    });

    test('LTO-IR, which takes a compilation of its own', async () => {
      const program = await fresh(SCALE, { architecture: 'sm_90', outputs: ['ptx', 'ltoir'] });
      expect(program.ltoir.length).toBeGreaterThan(100);
      expect(program.ptx).toContain('.entry scale');
      expect(() => program.cubin).toThrow("outputs: ['cubin']");
    });

    test('mangled names of template instances and variables', async () => {
      const program = await fresh(TEMPLATE, {
        nameExpressions: ['add<float>', 'add<double>', '&counter'],
      });
      expect(program.nameExpressions).toEqual(['add<float>', 'add<double>', '&counter']);
      for (const expression of ['add<float>', 'add<double>'])
        expect(program.ptx).toContain(`.entry ${program.loweredName(expression)}(`);
      expect(program.loweredName('add<float>')).toBe('_Z3addIfEvPT_S0_');
      expect(program.loweredName('&counter')).toBe('counter');
      expect(
        (await failure(Promise.resolve().then(() => program.loweredName('add<int>')))).code,
      ).toBe('ERR_CUDA_NOT_FOUND');
    });

    test('warnings', async () => {
      const source = 'extern "C" __global__ void f(float* y) {\n  int unused = 3;\n}\n';
      const { diagnostics, log } = await fresh(source, { name: 'kernels.cu' });
      expect(diagnostics).toEqual([
        expect.objectContaining({
          severity: 'warning',
          number: 177,
          file: 'kernels.cu',
          line: 2,
          column: 7,
        }),
      ]);
      expect(log).toContain('declared but never referenced');
      expect((await fresh(source, { warnings: false })).log.trim()).toBe('');
    });
  });

  describe('options', () => {
    test('macros', async () => {
      const source =
        '#ifdef GONE\n#error it is there\n#endif\nextern "C" __global__ void f(float* y) { ' +
        'y[SQUARE(TILE)] = ON; }\n';
      const program = await fresh(source, {
        defines: { TILE: 4, 'SQUARE(x)': '((x) * (x))', ON: true, GONE: false },
      });
      expect(program.ptx).toMatch(/\+64\]/);
    });

    test('fast maths', async () => {
      const source =
        'extern "C" __global__ void f(float* y) { y[0] = y[1] / y[2]; y[3] = y[4] * y[5] + ' +
        'y[6]; }\n';
      expect((await fresh(source)).ptx).toContain('div.rn.f32');
      const fast = (await fresh(source, { fastMath: true })).ptx;
      expect(fast).toContain('div.approx.ftz.f32');
      expect(fast).toContain('fma.rn.ftz.f32');
      expect((await fresh(source, { fuseMultiplyAdd: false })).ptx).not.toContain('fma.rn');
    });

    test('the language standard', async () => {
      const source =
        'static_assert(__cplusplus == EXPECTED, "");\nextern "C" __global__ void f() {}\n';
      for (const [standard, value] of [
        ['c++14', '201402L'],
        ['c++20', '202002L'],
      ] as const)
        await fresh(source, { standard, defines: { EXPECTED: value } });
    });

    test('registers, lines and debuggers', async () => {
      expect((await fresh(SCALE, { lineInfo: true, name: 'here.cu' })).ptx).toMatch(
        /\.file\s+1 ".*here\.cu"/,
      );
      // It has no effect on PTX.
      const busy =
        'extern "C" __global__ void f(double* y) { double v[24]; for (int i = 0; i < 24; i++) ' +
        'v[i] = y[i]; __syncthreads(); for (int i = 0; i < 24; i++) y[23 - i] = v[i]; }';
      const code = async (maxRegisters?: number): Promise<Uint8Array> =>
        (
          await fresh(busy, {
            architecture: 'sm_90',
            outputs: ['cubin'],
            ...(maxRegisters === undefined ? {} : { maxRegisters }),
          })
        ).cubin;
      expect(Buffer.compare(await code(24), await code())).not.toBe(0);
      expect((await fresh(SCALE, { debug: true })).ptx).toContain('.target sm_');
    });

    test("NVRTC's own spelling", async () => {
      expect(
        (
          await fresh('extern "C" __global__ void f(float* y) { y[N] = 1; }', {
            options: ['-D', 'N=16'],
          })
        ).ptx,
      ).toMatch(/\+64\]/);
    });

    test('headers are compiled in advance', async ({ skip }) => {
      const inline = (i: number): string =>
        `__device__ inline float f${i}(float x) { return x + ${i}; }`;
      const headers = {
        'long.h':
          '#pragma ' + `once\n${Array.from({ length: 200 }, (_, i) => inline(i)).join('\n')}\n`,
      };
      const source = (body: string): string =>
        `#include "long.h"\nextern "C" __global__ void f(float* y) { ${body} }\n`;
      const folder = join(scratch, 'pch');
      mkdirSync(folder);
      const first = await fresh(source('y[0] = f1(y[0]);'), {
        headers,
        precompiledHeaders: { folder },
        name: 'a.cu',
      });
      if (!first.log.includes('precompiled header')) skip('this NVRTC does not say so');
      expect(first.log).toContain('creating precompiled header');
      const second = await fresh(source('y[0] = f2(y[0]);'), {
        headers,
        precompiledHeaders: { folder },
        name: 'a.cu',
      });
      expect(second.log).toContain('using precompiled header');
    });
  });

  describe('headers', () => {
    test('in memory', async () => {
      const program = await fresh(
        '#include "constants.h"\n#include <more/types.cuh>\nextern "C" __global__ void ' +
          'f(element* y) { y[N] = 1; }',
        {
          headers: {
            'constants.h': '#define N 16\n',
            'more/types.cuh': 'typedef float element;\n',
          },
        },
      );
      expect(program.ptx).toMatch(/\+64\]/);
    });

    test('are found in folders, in order, and beside the including header', async () => {
      for (const [file, text] of [
        ['one/n.h', '#include "parts/m.h"\n'],
        ['one/parts/m.h', '#define N 16\n'],
        ['two/n.h', '#define N 32\n'],
      ] as const) {
        mkdirSync(join(scratch, file, '..'), { recursive: true });
        writeFileSync(join(scratch, file), text);
      }
      const source = '#include "n.h"\nextern "C" __global__ void f(float* y) { y[N] = 1; }';
      const at = async (...folders: string[]): Promise<string> =>
        (await fresh(source, { includeFolders: folders.map((folder) => join(scratch, folder)) }))
          .ptx;
      expect(await at('one', 'two')).toMatch(/\+64\]/);
      expect(await at('two', 'one')).toMatch(/\+128\]/);
    });

    test("CUDA's own are found", async () => {
      const source =
        '#include <cuda_fp16.h>\nextern "C" __global__ void f(__half* y) { y[0] = ' +
        '__hadd(y[1], y[2]); }';
      expect((await fresh(source)).ptx).toMatch(/add\.f16|add\{?.*f16/);
      expect((await failure(fresh(source, { cudaHeaders: false }))).message).toContain(
        'There is no cuda_fp16.h',
      );
    }, 120_000);
  });

  describe('refuses', () => {
    test('source with errors: the lines, with line, column and caret', async () => {
      const source =
        'extern "C" __global__ void f(float* y) {\n  y[0] = foo + 1;\n  y[1] = 2;;\n  bar();\n}\n';
      const error = await failure<NvrtcCompileError>(fresh(source, { name: 'wrong.cu' }));
      expect(error).toBeInstanceOf(NvrtcCompileError);
      expect(error.code).toBe('ERR_CUDA_COMPILE');
      expect(error.message).toContain(
        'wrong.cu:2:10: error: identifier "foo" is undefined\n  2 | y[0] = foo + 1;\n    |   ' +
          '     ^^^',
      );
      expect(error.message).toContain('wrong.cu:4:3: error: identifier "bar" is undefined');
      expect(error.place).toEqual({ file: 'wrong.cu', line: 2, column: 10 });
      expect(error.log).toContain('2 errors detected');
      expect(error.diagnostics.map(({ severity, line }) => [severity, line])).toEqual([
        ['error', 2],
        ['error', 4],
      ]);
    });

    test('a missing header: where it was looked for', async () => {
      const error = await failure(
        fresh('#include "not-there.h"\n', {
          includeFolders: [scratch],
          headers: { 'other.h': '' },
        }),
      );
      expect(error.code).toBe('ERR_CUDA_COMPILE');
      expect(error.message).toContain('source.cu:1:');
      expect(error.message).toContain('There is no not-there.h in headers (other.h)');
      expect(error.message).toContain(scratch);
    });

    test("a missing header of CUDA's: where it comes from", async () => {
      const source = '#include <cuda/not_there>\n';
      mkdirSync(join(scratch, 'toolkit/include'), { recursive: true });
      writeFileSync(join(scratch, 'toolkit/include/cuda_fp16.h'), '');
      const home = process.env['CUDA_HOME'];
      vi.stubEnv('CUDA_HOME', join(scratch, 'toolkit'));
      try {
        expect((await failure(fresh(source))).message).toContain(
          "It is CUDA's own: `pip install nvidia-cuda-cccl`, or the CUDA toolkit.",
        );
      } finally {
        vi.stubEnv('CUDA_HOME', home);
      }
    });

    test.each([
      [
        'a template that was not instantiated',
        ['add'],
        "Name an instance of the template: 'add<float>'.",
      ],
      ['a type that there is not', ['add<float>', 'add<floot>'], 'identifier "floot" is undefined'],
      ["a variable's name in place of its address", ['counter'], "'&counter'"],
    ])('%s', async (_, nameExpressions, says) => {
      const error = await failure<CudaArgumentError>(fresh(TEMPLATE, { nameExpressions }));
      expect(error).toBeInstanceOf(CudaArgumentError);
      expect(error.argument).toBe(`options.nameExpressions[${nameExpressions.length - 1}]`);
      expect(error.message).toContain(says);
      expect(error.cause).toBeInstanceOf(NvrtcCompileError);
    });

    test.each([
      [{ options: ['--no-such-option'] }, 'options.options', 'no-such-option'],
      [{ architecture: 'sm_20' }, 'options.architecture', 'gpu-architecture'],
    ] as const)('an option that NVRTC does not take: %j', async (options, argument, says) => {
      const error = await failure<CudaArgumentError>(fresh(SCALE, options));
      expect(error).toBeInstanceOf(CudaArgumentError);
      expect(error.argument).toBe(argument);
      expect(error.message).toContain(says);
    });
  });

  describe('is kept on disk', () => {
    const twice = async (source: string, options: CompileOptions = {}): Promise<boolean> => {
      await compile(source, options);
      // The call does not wait until the file is written.
      await vi
        .waitFor(async () => expect((await compile(source, options)).cached).toBe(true), {
          timeout: 5000,
        })
        .catch(() => undefined);
      return (await compile(source, options)).cached;
    };

    test('with all results of the compilation', async () => {
      const options = {
        architecture: 'sm_90',
        outputs: ['ptx', 'cubin', 'ltoir'],
        nameExpressions: ['add<float>'],
      } as const;
      const made = await compile(TEMPLATE, options);
      expect(made.cached).toBe(false);
      await vi.waitFor(async () => expect((await compile(TEMPLATE, options)).cached).toBe(true), {
        timeout: 5000,
      });
      const kept = await compile(TEMPLATE, options);
      expect([
        kept.ptx,
        kept.loweredName('add<float>'),
        kept.architecture,
        kept.nvrtcVersion,
      ]).toEqual([made.ptx, made.loweredName('add<float>'), made.architecture, made.nvrtcVersion]);
      expect(Buffer.compare(kept.cubin, made.cubin)).toBe(0);
      expect(Buffer.compare(kept.ltoir, made.ltoir)).toBe(0);
      expect((await compile(TEMPLATE, { ...options, cache: false })).cached).toBe(false);
    });

    test('by source, options and headers', async () => {
      const source = '#include "n.h"\nextern "C" __global__ void kept(float* y) { y[N] = 1; }';
      const options = (n: number, extra: CompileOptions = {}): CompileOptions => ({
        headers: { 'n.h': `#define N ${n}\n` },
        ...extra,
      });
      expect(await twice(source, options(1))).toBe(true);
      expect((await compile(source, options(2))).cached).toBe(false);
      expect((await compile(source, options(1, { lineInfo: true }))).cached).toBe(false);
      expect((await compile(`${source}\n`, options(1))).cached).toBe(false);
    });

    test('depends on the contents of the files in its folders', async () => {
      const folder = join(scratch, 'changing');
      mkdirSync(folder);
      writeFileSync(join(folder, 'outer.h'), '#include "inner.h"\n');
      writeFileSync(join(folder, 'inner.h'), '#define N 1\n');
      const source =
        '#include <outer.h>\nextern "C" __global__ void changing(float* y) { y[N] = 1; }';
      expect(await twice(source, { includeFolders: [folder] })).toBe(true);
      writeFileSync(join(folder, 'inner.h'), '#define N 2\n');
      const changed = await compile(source, { includeFolders: [folder] });
      expect(changed.cached).toBe(false);
      expect(changed.ptx).toMatch(/\+8\]/);
    });

    test.each([
      [
        'the time of its compilation',
        '__device__ const char* when = __TIME__;\nextern "C" __global__ void f() {}',
        {},
      ],
      [
        'a macro computes what it includes',
        '#define FILE "n.h"\n#include FILE\nextern "C" __global__ void f() {}',
        { headers: { 'n.h': '' } },
      ],
      [
        'an option reads files',
        'extern "C" __global__ void f() {}',
        { options: ['--include-path=/nowhere'] },
      ],
    ])('but not where %s', async (_, source, options) => {
      expect((await compile(source, options)).cached).toBe(false);
      await new Promise((resolve) => setTimeout(resolve, 200));
      expect((await compile(source, options)).cached).toBe(false);
    });

    test('in the folder of the cache', () => {
      expect(cache.folder).toBe(process.env['ASYNC_CUDA_CACHE_DIR']);
    });
  });

  describe('the thread', () => {
    /** NVRTC takes a large part of a second for it. */
    const slow = (salt: number): string =>
      Array.from(
        { length: 60 },
        (_, i) =>
          `extern "C" __global__ void f${salt}_${i}(float* y) ` +
          `{ y[${i}] = powf(y[${i}], 1.5f) + sinf(y[0]); }\n`,
      ).join('');

    test('leaves the event loop free', async () => {
      let turns = 0;
      let compiling = true;
      const count = (): void => {
        turns++;
        if (compiling) setImmediate(count);
      };
      count();
      const started = performance.now();
      await fresh(slow(1)).finally(() => {
        compiling = false;
      });
      expect(performance.now() - started).toBeGreaterThan(20);
      expect(turns).toBeGreaterThan(100);
    }, 60_000);

    test('does not delay an aborted call', async () => {
      const controller = new AbortController();
      const ahead = fresh(slow(2));
      const running = failure(fresh(slow(3), { signal: controller.signal }));
      const reason = new Error('enough');
      controller.abort(reason);
      expect(await running).toBe(reason);
      expect((await ahead).ptx).toContain('f2_59');
      expect(await failure(fresh(SCALE, { signal: controller.signal }))).toBe(reason);
    }, 60_000);

    test('does not delay others by aborted sources', async () => {
      const controller = new AbortController();
      const order: string[] = [];
      const abandoned = failure(fresh(slow(4), { signal: controller.signal }));
      await new Promise((resolve) => setTimeout(resolve, 50));
      const next = fresh(SCALE).then(() => order.push('next'));
      controller.abort();
      await abandoned.then(() => order.push('abandoned'));
      await next;
      expect(order).toEqual(['abandoned', 'next']);
    }, 60_000);

    test('compiles concurrent sources separately', async () => {
      const programs = await Promise.all(
        [1, 2, 3, 4].map((n) => fresh(`extern "C" __global__ void f${n}() {}`)),
      );
      programs.forEach((program, i) => expect(program.ptx).toContain(`.entry f${i + 1}(`));
    });

    test('does not keep the process alive', { tags: 'thorough' }, async () => {
      const source = new URL('../../src/nvrtc/index.ts', import.meta.url).href;
      const program = `import { compile } from ${JSON.stringify(source)};
        await compile('extern "C" __global__ void f() {}', { cache: false });
        console.log('compiled');
        process.on('exit', () => console.log('ended'));`;
      const child = spawn(
        process.execPath,
        ['--import', 'tsx', '--input-type=module', '-e', program],
        { stdio: ['ignore', 'pipe', 'inherit'] },
      );
      let said = '';
      child.stdout.on('data', (chunk: Buffer) => (said += chunk.toString()));
      const started = performance.now();
      let compiledAt = Infinity;
      child.stdout.on('data', () => (compiledAt = Math.min(compiledAt, performance.now())));
      const code = await new Promise((resolve) => child.on('exit', resolve));
      expect([code, said]).toEqual([0, 'compiled\nended\n']);
      // By itself the idle thread ends after ten seconds.
      expect(performance.now() - compiledAt).toBeLessThan(8000);
      expect(compiledAt).toBeGreaterThan(started);
    });
  });
});

describe('without NVRTC', () => {
  afterEach(() => vi.unstubAllEnvs());

  test('the error lists every path, and how to install it', async () => {
    vi.stubEnv('ASYNC_CUDA_NVRTC', '/nowhere/libnvrtc.so.13');
    const error = await failure(compile(SCALE, { cache: false }));
    expect(error).toBeInstanceOf(CudaError);
    expect(error).not.toBeInstanceOf(CudaOutOfMemoryError);
    expect(error.code).toBe('ERR_CUDA_NO_LIBRARY');
    expect(error.message).toContain('/nowhere/libnvrtc.so.13: no such file');
    expect(error.message).toContain('pip install nvidia-cuda-nvrtc');
    expect((error.cause as { tried: unknown }).tried).toEqual([
      { path: '/nowhere/libnvrtc.so.13', reason: 'no such file' },
    ]);
  });

  test('a file that is not a library is listed, with the reason', async () => {
    vi.stubEnv('ASYNC_CUDA_NVRTC', new URL(import.meta.url).pathname);
    expect((await failure(compile(SCALE, { cache: false }))).message).toMatch(
      /compile\.test\.ts: .*ELF/,
    );
  });
});
