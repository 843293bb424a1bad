/**
 * Headers of C, INFINITY and NAN, which sources for nvcc can use without a toolkit; and texts that
 * begin with a byte order mark.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Device, f32 } from 'async-cuda';
import { NvrtcCompileError, compile } from 'async-cuda/nvrtc';
import type { CompileOptions, Program } from 'async-cuda/nvrtc';
import { afterAll, expect, test, vi } from 'vitest';

import { failure, openTestDevice } from '../core/test-device.js';
import { describeWith, ownCache } from './nvrtc.js';
import { someOf } from '../random-runs.js';

const STANDARDS = ['c++11', 'c++14', 'c++17'] as const;

describeWith('NVRTC', 'standard headers', () => {
  ownCache();
  const folder = mkdtempSync(join(tmpdir(), 'async-cuda-standard-'));
  afterAll(() => {
    rmSync(folder, { recursive: true });
  });
  const fresh = (source: string, options: CompileOptions = {}): Promise<Program> =>
    compile(source, { ...options, cache: false });
  const kernel = (body: string, before = ''): string =>
    `${before}\nextern "C" __global__ void f(float* y, double* d, int n) { ${body} }`;

  test.each(STANDARDS)(
    'INFINITY, NAN and the constants of <math.h> need no header, %s',
    async (standard) => {
      const { ptx, log } = await fresh(
        kernel(
          'float best = -INFINITY; y[0] = best; y[1] = c; y[2] = NAN; d[0] = HUGE_VAL * M_PI;',
          '__constant__ float k = INFINITY;\nconstexpr float c = INFINITY;',
        ),
        { standard },
      );
      expect(log.trim()).toBe('');
      expect(ptx).toMatch(/\.const .*k = 0f7F800000/);
    },
  );

  test('their values are those of C', async () => {
    const program = await fresh(
      kernel(
        'y[0] = INFINITY; y[1] = -INFINITY; y[2] = NAN; y[3] = M_PI; y[4] = INT_MAX == ' +
          '2147483647; y[5] = FLT_MAX; y[6] = sizeof(int64_t) + sizeof(uint8_t); y[7] = ' +
          'UINT32_MAX;',
        '#include <stdint.h>\n#include <limits.h>\n#include <float.h>',
      ),
    );
    const device = Device.of(await openTestDevice());
    using y = await device.zeros(f32, [8]);
    const module = await device.loadModule(program.ptx);
    await module.kernel('f').call({ grid: 1, block: 1 }, y as never, y as never, 0 as never);
    expect([...(await y.read())]).toEqual([
      Infinity,
      -Infinity,
      NaN,
      Math.fround(Math.PI),
      1,
      3.4028234663852886e38,
      9,
      2 ** 32,
    ]);
    await device.close();
  });

  someOf(
    2,
    test,
  )([
    'stdint.h',
    'stddef.h',
    'limits.h',
    'float.h',
    'math.h',
    'assert.h',
    'stdio.h',
    'stdlib.h',
    'string.h',
  ])('<%s> and its C++ name are there', async (header) => {
    for (const standard of STANDARDS) {
      for (const name of [`<${header}>`, `"${header}"`, `<c${header.slice(0, -2)}>`])
        expect(
          (await fresh(kernel('y[0] = n;', `#include ${name}`), { standard })).log.trim(),
        ).toBe('');
    }
  });

  test('integers have the widths and limits of <stdint.h>', async () => {
    const checks = [8, 16, 32, 64].flatMap((w) => [
      `sizeof(int${w}_t) == ${w / 8}`,
      `sizeof(uint_fast${w}_t) == ${w / 8}`,
      `(uint${w}_t) -1 == UINT${w}_MAX`,
      `INT${w}_MAX == (int${w}_t) (UINT${w}_MAX / 2)`,
      `INT${w}_MIN == -INT${w}_MAX - 1`,
      `INT_LEAST${w}_MAX == INT${w}_MAX`,
      `UINT_FAST${w}_MAX == UINT${w}_MAX`,
      `INT${w}_C(7) == 7`,
    ]);
    checks.push(
      'sizeof(void*) == sizeof(uintptr_t)',
      'SIZE_MAX == (size_t) -1',
      'INT_MIN == -2147483647 - 1',
      'LONG_MAX == (1ull << (8 * sizeof(long) - 1)) - 1',
      'CHAR_MIN == -128',
      'ULLONG_MAX == ~0ull',
      'FLT_EPSILON == 1.0f / 8388608',
      'DBL_MAX > 1e308',
    );
    const source = kernel(
      'y[0] = n;',
      `#include <cstdint>\n#include <climits>\n#include ` +
        `<cfloat>\n${checks.map((check) => `static_assert(${check}, "");`).join('\n')}`,
    );
    expect((await fresh(source)).log.trim()).toBe('');
  });

  someOf(
    2,
    test,
  )([
    ['stdint.h', 'cuda/std/cstdint'],
    ['cuda/std/cstdint', 'stdint.h'],
    ['stdint.h', 'cuda/std/limits'],
    ['float.h', 'cuda/std/cfloat'],
    ['cuda/std/cmath', 'math.h'],
    ['limits.h', 'cuda/std/climits'],
  ])('<%s> and <%s> go together', async (first, second) => {
    expect(
      (await fresh(kernel('y[0] = n;', `#include <${first}>\n#include <${second}>`))).log.trim(),
    ).toBe('');
  });

  test('a given header, and a source’s own INFINITY, take precedence over ours', async () => {
    writeFileSync(join(folder, 'limits.h'), '#define INT_MAX 5\n');
    const source = kernel('static_assert(INT_MAX == 5, ""); y[0] = n;', '#include <limits.h>');
    await fresh(source, { includeFolders: [folder] });
    await fresh(source, { headers: { 'limits.h': '#define INT_MAX 5' } });
    for (const own of ['#define INFINITY 3.0f', '#ifndef INFINITY\n#define INFINITY 3.0f\n#endif'])
      await fresh(kernel('static_assert(INFINITY == 3.0f, ""); y[0] = n;', own));
  });

  test('a header in a folder may use them', async () => {
    writeFileSync(
      join(folder, 'least.h'),
      '#include <cstdint>\ninline __device__ float least() { std::uint32_t k = 1; return ' +
        '-INFINITY * k; }\n',
    );
    await fresh(kernel('y[0] = least();', '#include "least.h"'), { includeFolders: [folder] });
  });

  test('other errors are unchanged, and a missing header is named for its type', async () => {
    const error = await failure(() => fresh(kernel('y[0] = INFINITY + foo;')));
    expect(error).toBeInstanceOf(NvrtcCompileError);
    expect(error.message).toContain('identifier "foo" is undefined');
    expect(error.message).not.toContain('INFINITY" is undefined');
    expect(
      (await failure(() => fresh(kernel('uint32_t k = FLT_MAX; y[0] = k;')))).message,
    ).toContain('Write #include <stdint.h> and #include <float.h>, which comes with async-cuda.');
  });

  test('a program that needed them is kept', async () => {
    const source = kernel('y[0] = INFINITY + UINT8_MAX;', '#include <cstdint>');
    expect((await compile(source)).cached).toBe(false);
    // The entry is written after the first compilation.
    await vi.waitFor(async () => {
      expect((await compile(source)).cached).toBe(true);
    }, 5000);
  });

  test('a byte order mark before a source or a header is not part of its text', async () => {
    await fresh(`\ufeff${kernel('y[0] = N;', '#include "n.h"')}`, {
      headers: { 'n.h': '\ufeff#define N 16' },
    });
    // Files are read by NVRTC itself.
    writeFileSync(join(folder, 'marked.h'), '\ufeff#define N 16\n');
    expect(
      (
        await failure(() =>
          fresh(kernel('y[0] = N;', '#include "marked.h"'), { includeFolders: [folder] }),
        )
      ).message,
    ).toMatch(/marked\.h begins with a byte order mark/);
    const error = await failure(() => fresh(`\ufeff${kernel('foo();').trimStart()}`));
    expect(error).toMatchObject({ place: { line: 1, column: 60 } });
  });
});
