import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { CUlimit } from '../attributes.js';
import { openCpu } from './open.js';
import { messageOf, packParams, resultOf } from './testing/open-fake.js';

/** A device with the real compiler and kernels that nvcc made. */
function open(sample: string) {
  const printed: string[] = [];
  const cu = openCpu({
    memoryBytes: 256 * 2 ** 20,
    multiprocessors: 4,
    print: (text) => printed.push(text),
  });
  cu.cuInit(0);
  cu.cuCtxSetCurrent(cu.cuDevicePrimaryCtxRetain(0));
  const stream = cu.cuStreamCreateWithPriority(1, 0);
  const module = cu.cuModuleLoadDataEx(
    readFileSync(new URL(`../../../test/ptx/samples/sm_80/${sample}.ptx`, import.meta.url)),
    {},
  );
  const managed = <T>(
    View: new (buffer: ArrayBufferLike, offset: number, length: number) => T,
    length: number,
    bytes: number,
  ): { at: number; view: T } => {
    const at = cu.cuMemAllocManaged(length * bytes, 1);
    const { buffer, byteOffset } = cu.hostView(at, length * bytes);
    return { at, view: new View(buffer, byteOffset, length) };
  };
  return {
    cu,
    module,
    stream,
    printed,
    kernel: (name: string) => cu.cuModuleGetFunction(module, name),
    managed,
  };
}

const floatBits = (value: number): number => new Int32Array(Float32Array.of(value).buffer)[0]!;

test('saxpy from nvcc computes saxpy', () => {
  const { cu, stream, kernel, managed } = open('k01_saxpy');
  const n = 10_000;
  const x = managed(Float32Array, n, 4);
  const y = managed(Float32Array, n, 4);
  x.view.forEach((_, i) => (x.view[i] = i));
  y.view.fill(1);
  const saxpy = kernel('saxpy');
  const sizes = [0, 1, 2, 3].map((index) => cu.cuFuncGetParamInfo(saxpy, index)?.size);
  const values =
    sizes[0] === 4 && sizes[1] === 4
      ? ([n, floatBits(2), [x.at], [y.at]] as const)
      : ([floatBits(2), [x.at], [y.at], n] as const);
  const params = packParams(values);
  cu.cuLaunchKernel(
    saxpy,
    Math.ceil(n / 256),
    1,
    1,
    256,
    1,
    1,
    0,
    stream,
    params,
    0,
    params.byteLength,
  );
  cu.cuStreamSynchronize(stream);
  expect(y.view[0]).toBe(1);
  expect(y.view[n - 1]).toBe(2 * (n - 1) + 1);
});

test('printf and assert of a compiled kernel', () => {
  const { cu, stream, kernel, managed, printed } = open('k14_printf');
  const f = managed(Float32Array, 2, 4);
  f.view.set([0.5, -1]);
  const params = packParams([2, [f.at]]);
  cu.cuLaunchKernel(kernel('hello'), 1, 1, 1, 1, 1, 1, 0, stream, params, 0, params.byteLength);
  cu.cuStreamSynchronize(stream);
  expect(printed).toEqual(['t 0 of 2: 0.500000 str\n']);
  cu.cuLaunchKernel(kernel('hello'), 1, 1, 1, 2, 1, 1, 0, stream, params, 0, params.byteLength);
  expect(messageOf(() => cu.cuStreamSynchronize(stream))).toMatch(
    new RegExp(
      'CUDA_ERROR_ASSERT \\(710\\): hello: .*Assertion `.*` failed\\., ' +
        '.*block \\(0,0,0\\), thread \\(1,0,0\\)',
    ),
  );
});

test('each thread that fails an assertion is named with its block, the others continue', () => {
  const { cu, stream, kernel, managed, printed } = open('k14_printf');
  const f = managed(Float32Array, 4, 4);
  f.view.set([-1, 1, -2, -3]);
  const params = packParams([4, [f.at]]);
  cu.cuLaunchKernel(kernel('hello'), 3, 1, 1, 2, 2, 1, 0, stream, params, 0, params.byteLength);
  expect(messageOf(() => cu.cuStreamSynchronize(stream))).toMatch(
    /Assertion `.*` failed\., PTX line \d+, block \(0,0,0\), thread \(0,0,0\)$/,
  );
  const failures = printed
    .join('')
    .split('\n')
    .filter((line) => line.includes('Assertion'));
  // threadIdx.x is 0 or 1: both rows of each block read f[0] and f[1].
  expect(failures).toEqual(
    [0, 1, 2].flatMap((block) =>
      [0, 1].map(
        (y) =>
          expect.stringMatching(
            new RegExp(
              String.raw`^src/k14_printf\.cu:\d+: void hello\(int, const float \*\): ` +
                String.raw`block: \[${block},0,0\], thread: \[0,${y},0\] ` +
                String.raw`Assertion \`f\[threadIdx\.x\]>=0\.f\` failed\.$`,
            ),
          ) as string,
      ),
    ),
  );
});

test('failed assertions are printed up to the size of the printf buffer', () => {
  const { cu, stream, kernel, managed, printed } = open('k14_printf');
  const f = managed(Float32Array, 1, 4);
  f.view.set([-1]);
  cu.cuCtxSetLimit(CUlimit.CU_LIMIT_PRINTF_FIFO_SIZE, 10_000);
  const params = packParams([1, [f.at]]);
  cu.cuLaunchKernel(kernel('hello'), 5000, 1, 1, 1, 1, 1, 0, stream, params, 0, params.byteLength);
  expect(messageOf(() => cu.cuStreamSynchronize(stream))).toContain('CUDA_ERROR_ASSERT');
  const failures = printed.filter((text) => text.includes('Assertion'));
  expect(failures.join('').length).toBeGreaterThan(10_000);
  expect(failures.slice(0, -1).join('').length).toBeLessThan(10_000);
});

test('malloc of a compiled kernel', () => {
  const { cu, stream, kernel, managed } = open('k14_printf');
  const p = managed(BigInt64Array, 32, 8);
  const params = packParams([[p.at]]);
  cu.cuLaunchKernel(kernel('dmalloc'), 1, 1, 1, 32, 1, 1, 0, stream, params, 0, params.byteLength);
  cu.cuStreamSynchronize(stream);
  expect(new Set(p.view).size).toBe(32);
  expect(p.view.every((address) => address > 65536n)).toBe(true);
});

test('trap is LAUNCH_FAILED with its place', () => {
  const { cu, stream, kernel, managed } = open('k14_printf');
  const p = managed(Int32Array, 8, 4);
  p.view[0] = 42;
  const params = packParams([[p.at]]);
  cu.cuLaunchKernel(kernel('trapk'), 1, 1, 1, 1, 1, 1, 0, stream, params, 0, params.byteLength);
  expect(messageOf(() => cu.cuStreamSynchronize(stream))).toMatch(
    new RegExp(
      'LAUNCH_FAILED \\(719\\): trapk: the kernel executed trap, ' +
        'PTX line \\d+, block \\(0,0,0\\), thread \\(0,0,0\\)',
    ),
  );
});

test('a write out of bounds is ILLEGAL_ADDRESS with its place', () => {
  const { cu, stream, kernel } = open('k14_printf');
  const params = packParams([[16]]);
  cu.cuLaunchKernel(kernel('trapk'), 1, 1, 1, 1, 1, 1, 0, stream, params, 0, params.byteLength);
  expect(messageOf(() => cu.cuStreamSynchronize(stream))).toMatch(
    /ILLEGAL_ADDRESS \(700\): trapk: read or write out of bounds at 0x10, PTX line \d+/,
  );
  expect(resultOf(() => cu.cuMemGetInfo())).toBe('CUDA_ERROR_ILLEGAL_ADDRESS');
});

test('an address before null is exact to the last digit', () => {
  const { cu, stream, kernel } = open('k14_printf');
  const params = packParams([[-16]]);
  cu.cuLaunchKernel(kernel('trapk'), 1, 1, 1, 1, 1, 1, 0, stream, params, 0, params.byteLength);
  expect(messageOf(() => cu.cuStreamSynchronize(stream))).toContain(
    'read or write out of bounds at 0xfffffffffffffff0, PTX line',
  );
});

test('a cooperative grid synchronises, directly and in a graph', () => {
  const { cu, stream, kernel, managed } = open('k15_coop');
  const a = managed(Float32Array, 5000, 4);
  a.view.fill(0);
  const params = packParams([[a.at], 5000]);
  const launch = (): void =>
    cu.cuLaunchKernelEx(
      {
        gridDimX: 8,
        gridDimY: 1,
        gridDimZ: 1,
        blockDimX: 128,
        blockDimY: 1,
        blockDimZ: 1,
        sharedMemBytes: 0,
        hStream: stream,
        attrs: { cooperative: true },
      },
      kernel('cg_grid'),
      params,
      0,
      params.byteLength,
    );
  launch();
  cu.cuStreamSynchronize(stream);
  expect(new Set(a.view)).toEqual(new Set([1.875]));
  cu.cuStreamBeginCapture(stream, 2);
  launch();
  const exec = cu.cuGraphInstantiate(cu.cuStreamEndCapture(stream), 0);
  a.view.fill(0);
  for (let i = 0; i < 2; i++) {
    a.view.fill(0);
    cu.cuGraphLaunch(exec, stream);
    cu.cuStreamSynchronize(stream);
    expect(new Set(a.view)).toEqual(new Set([1.875]));
  }
});

test(
  'a variable without .visible, as nvcc writes those of a program of one file, is found by its ' +
    'name',
  () => {
    const { cu, module } = open('k11_resize');
    expect(cu.cuModuleGetGlobal(module, 'cf')).toMatchObject({ bytes: 256 });
    expect(messageOf(() => cu.cuModuleGetGlobal(module, 'cg'))).toMatch(
      /NOT_FOUND \(500\): there is no variable 'cg'; there is cf/,
    );
  },
);

test('PTX with an error is INVALID_PTX, with its place', () => {
  const { cu } = open('k01_saxpy');
  expect(
    messageOf(() =>
      cu.cuModuleLoadDataEx(
        '.version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k() { frobnicate; ret; }',
        {},
      ),
    ),
  ).toMatch(/INVALID_PTX \(218\)[^]*:4:/);
});

test.each(['all', 'none'] as const)(
  'blocks that one call runs are all done and counted, long ones among short ones: lanes %s',
  (lanes) => {
    const cu = openCpu({ memoryBytes: 64 * 2 ** 20, lanes });
    cu.cuInit(0);
    cu.cuCtxSetCurrent(cu.cuDevicePrimaryCtxRetain(0));
    const stream = cu.cuStreamCreateWithPriority(1, 0);
    // Every seventh block takes more turns than one call allows.
    const module = cu.cuModuleLoadDataEx(
      new TextEncoder().encode(`.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 out)
{
  .reg .b64 %out; .reg .b32 %t, %b, %i, %n, %sum; .reg .pred %p;
  .shared .align 4 .b8 cell[256];
  ld.param.u64 %out, [out]; mov.u32 %t, %tid.x; mov.u32 %b, %ctaid.x; mov.u32 %sum, cell;
  mad.lo.u32 %n, %t, 4, %sum; st.shared.u32 [%n], %b; bar.sync 0;
  ld.shared.u32 %sum, [%n]; rem.u32 %n, %b, 7; setp.eq.u32 %p, %n, 3; selp.u32 %n, 150000, 2, %p;
  mov.u32 %i, 0;
again:
  add.u32 %sum, %sum, %t; add.u32 %i, %i, 1; setp.lt.u32 %p, %i, %n; @%p bra again;
  mad.lo.u32 %i, %b, 64, %t; mad.wide.u32 %out, %i, 4, %out; ld.global.u32 %i, [%out];
  add.u32 %sum, %sum, %i; st.global.u32 [%out], %sum; ret;
}
`),
      {},
    );
    const blocks = 400;
    const out = cu.cuMemAllocManaged(blocks * 256, 1);
    const { buffer, byteOffset } = cu.hostView(out, blocks * 256);
    const params = packParams([[out]]);
    for (let launch = 0; launch < 2; launch++) {
      cu.cuLaunchKernel(
        cu.cuModuleGetFunction(module, 'k'),
        blocks,
        1,
        1,
        64,
        1,
        1,
        0,
        stream,
        params,
        0,
        params.byteLength,
      );
      cu.cuStreamSynchronize(stream);
    }
    // Each thread adds to its own word, which shows a block that ran twice or not at all.
    expect([...new Uint32Array(buffer, byteOffset, blocks * 64)]).toEqual(
      Array.from({ length: blocks * 64 }, (_, index) => {
        const [block, thread] = [index >> 6, index & 63];
        return 2 * (block + (block % 7 === 3 ? 150_000 : 2) * thread);
      }),
    );
  },
);
