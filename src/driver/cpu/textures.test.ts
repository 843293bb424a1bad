import { expect, test } from 'vitest';
import type { CUDA_MEMCPY3D, CUDA_TEXTURE_DESC, Driver } from '../driver.js';
import { openCpu } from './open.js';
import { messageOf, packParams, resultOf } from './testing/open-fake.js';

const [HOST, DEVICE, ARRAY] = [1, 2, 3];
const FLOAT = 32;
const POINT: CUDA_TEXTURE_DESC = { addressMode: [1, 1, 1], filterMode: 0, flags: 0 };

const PTX = `.version 8.0
.target sm_80
.address_size 64
.visible .entry fetch2d(.param .u64 tex, .param .u64 out, .param .u32 width) {
  .reg .b64 %t, %p; .reg .b32 %x, %y, %w, %i; .reg .f32 %u, %v, %r<4>;
  ld.param.u64 %t, [tex]; ld.param.u64 %p, [out]; ld.param.u32 %w, [width]; mov.u32 %x, %tid.x;
  mov.u32 %y, %tid.y;
  cvt.rn.f32.u32 %u, %x; cvt.rn.f32.u32 %v, %y; add.f32 %u, %u, 0f3F000000;
  add.f32 %v, %v, 0f3F000000;
  tex.2d.v4.f32.f32 {%r0, %r1, %r2, %r3}, [%t, {%u, %v}];
  mad.lo.u32 %i, %y, %w, %x; mad.wide.u32 %p, %i, 4, %p; st.global.f32 [%p], %r0; ret;
}
.visible .entry fetch1d(.param .u64 tex, .param .u64 out) {
  .reg .b64 %t, %p; .reg .b32 %x; .reg .f32 %r<4>;
  ld.param.u64 %t, [tex]; ld.param.u64 %p, [out]; mov.u32 %x, %tid.x;
  tex.1d.v4.f32.s32 {%r0, %r1, %r2, %r3}, [%t, {%x}]; mad.wide.u32 %p, %x, 4, %p;
  st.global.f32 [%p], %r1; ret;
}
.visible .entry layers(.param .u64 tex, .param .u64 surf, .param .u64 out) {
  .reg .b64 %t, %s, %p; .reg .b32 %l, %i; .reg .f32 %u, %r<4>;
  ld.param.u64 %t, [tex]; ld.param.u64 %s, [surf]; ld.param.u64 %p, [out]; mov.u32 %l, %tid.x;
  mov.f32 %u, 0f3FC00000;
  tex.a2d.v4.f32.f32 {%r0, %r1, %r2, %r3}, [%t, {%l, %u, %u, %u}]; add.f32 %r0, %r0, 0f3F800000;
  sust.b.a2d.b32.trap [%s, {%l, 4, 0, 0}], %r0; mad.wide.u32 %p, %l, 4, %p;
  st.global.f32 [%p], %r0; ret;
}
`;

function open() {
  const cu: Driver = openCpu({ memoryBytes: 64 * 2 ** 20, multiprocessors: 2 });
  cu.cuInit(0);
  cu.cuCtxSetCurrent(cu.cuDevicePrimaryCtxRetain(0));
  const stream = cu.cuStreamCreateWithPriority(1, 0);
  const module = cu.cuModuleLoadDataEx(PTX, {});
  const floats = (length: number): { at: number; view: Float32Array } => {
    const at = cu.cuMemAllocManaged(length * 4, 1);
    const { buffer, byteOffset } = cu.hostView(at, length * 4);
    return { at, view: new Float32Array(buffer, byteOffset, length) };
  };
  const run = (
    name: string,
    block: readonly [number, number],
    ...params: (number | readonly [number])[]
  ): void => {
    const packed = packParams(params);
    cu.cuLaunchKernel(
      cu.cuModuleGetFunction(module, name),
      1,
      1,
      1,
      block[0],
      block[1],
      1,
      0,
      stream,
      packed,
      0,
      packed.byteLength,
    );
    cu.cuStreamSynchronize(stream);
  };
  return { cu, stream, floats, run };
}

const box = (parts: Partial<CUDA_MEMCPY3D>): CUDA_MEMCPY3D => ({
  srcXInBytes: 0,
  srcY: 0,
  srcZ: 0,
  srcMemoryType: DEVICE!,
  srcHost: 0,
  srcDevice: 0,
  srcPitch: 0,
  srcHeight: 0,
  dstXInBytes: 0,
  dstY: 0,
  dstZ: 0,
  dstMemoryType: DEVICE!,
  dstHost: 0,
  dstDevice: 0,
  dstPitch: 0,
  dstHeight: 0,
  WidthInBytes: 0,
  Height: 1,
  Depth: 1,
  ...parts,
});

test('a texture of pitched memory', () => {
  const { cu, floats, run } = open();
  const image = floats(128 * 3);
  image.view.forEach((_, i) => (image.view[i] = i));
  const out = floats(15);
  const texture = cu.cuTexObjectCreate(
    {
      resType: 3,
      pitch2D: {
        devPtr: image.at,
        format: FLOAT,
        numChannels: 1,
        width: 5,
        height: 3,
        pitchInBytes: 512,
      },
    },
    POINT,
  );
  run('fetch2d', [5, 3], [texture], [out.at], 5);
  expect([...out.view]).toEqual([0, 1, 2, 3, 4, 128, 129, 130, 131, 132, 256, 257, 258, 259, 260]);
  cu.cuTexObjectDestroy(texture);
  expect(resultOf(() => cu.cuTexObjectDestroy(texture))).toBe('CUDA_ERROR_INVALID_VALUE');
  expect(messageOf(() => run('fetch2d', [5, 3], [texture], [out.at], 5))).toContain(
    'CUDA_ERROR_ILLEGAL_ADDRESS',
  );
});

test('a texture of linear memory, two channels', () => {
  const { cu, floats, run } = open();
  const data = floats(8);
  data.view.set([1, 2, 3, 4, 5, 6, 7, 8]);
  const out = floats(6);
  const texture = cu.cuTexObjectCreate(
    { resType: 2, linear: { devPtr: data.at, format: FLOAT, numChannels: 2, sizeInBytes: 32 } },
    POINT,
  );
  run('fetch1d', [6, 1], [texture], [out.at]);
  expect([...out.view]).toEqual([2, 4, 6, 8, 0, 0]);
});

test('boxes go into layers of an array and out of them; kernels read and write there', () => {
  const { cu, stream, floats, run } = open();
  const array = cu.cuArray3DCreate({
    Width: 3,
    Height: 2,
    Depth: 4,
    Format: FLOAT,
    NumChannels: 1,
    Flags: 1 | 2,
  });
  const data = floats(24);
  data.view.forEach((_, i) => (data.view[i] = i));
  cu.cuMemcpy3DAsync(
    box({
      srcDevice: data.at,
      srcPitch: 12,
      srcHeight: 2,
      dstMemoryType: ARRAY!,
      dstArray: array,
      WidthInBytes: 12,
      Height: 2,
      Depth: 4,
    }),
    stream,
  );
  const texture = cu.cuTexObjectCreate({ resType: 0, array: { hArray: array } }, POINT);
  const surface = cu.cuSurfObjectCreate({ resType: 0, array: { hArray: array } });
  const out = floats(4);
  run('layers', [4, 1], [texture], [surface], [out.at]);
  expect([...out.view]).toEqual([5, 11, 17, 23]);
  // Reads one texel of each layer from the second on, at (1, 0).
  const back = floats(3);
  cu.cuMemcpy3DAsync(
    box({
      srcMemoryType: ARRAY!,
      srcArray: array,
      srcXInBytes: 4,
      srcZ: 1,
      dstMemoryType: DEVICE!,
      dstDevice: back.at,
      dstPitch: 4,
      dstHeight: 1,
      WidthInBytes: 4,
      Height: 1,
      Depth: 3,
    }),
    stream,
  );
  cu.cuStreamSynchronize(stream);
  expect([...back.view]).toEqual([11, 17, 23]);
  cu.cuSurfObjectDestroy(surface);
  cu.cuTexObjectDestroy(texture);
  const { free } = cu.cuMemGetInfo();
  cu.cuArrayDestroy(array);
  expect(cu.cuMemGetInfo().free).toBeGreaterThan(free);
  expect(resultOf(() => cu.cuArrayDestroy(array))).toBe('CUDA_ERROR_INVALID_HANDLE');
});

test('cuMemcpy2D with arrays at both ends, and host memory', () => {
  const { cu, stream, floats, run } = open();
  const [a, b] = [0, 1].map(() =>
    cu.cuArrayCreate({ Width: 4, Height: 4, Format: FLOAT, NumChannels: 1 }),
  ) as [number, number];
  const host = new SharedArrayBuffer(64);
  new Float32Array(host).forEach((_, i, all) => (all[i] = i));
  const address = cu.cuMemHostRegister(host, 0, 64, 0);
  const none = {
    srcXInBytes: 0,
    srcY: 0,
    srcHost: 0,
    srcDevice: 0,
    srcPitch: 0,
    dstXInBytes: 0,
    dstY: 0,
    dstHost: 0,
    dstDevice: 0,
    dstPitch: 0,
  };
  cu.cuMemcpy2DAsync(
    {
      ...none,
      srcMemoryType: HOST!,
      srcHost: address,
      srcPitch: 16,
      dstMemoryType: ARRAY!,
      dstArray: a,
      WidthInBytes: 16,
      Height: 4,
    },
    stream,
  );
  cu.cuMemcpy2DAsync(
    {
      ...none,
      srcMemoryType: ARRAY!,
      srcArray: a,
      srcXInBytes: 4,
      srcY: 1,
      dstMemoryType: ARRAY!,
      dstArray: b,
      WidthInBytes: 8,
      Height: 2,
    },
    stream,
  );
  const out = floats(4);
  run(
    'fetch2d',
    [2, 2],
    [cu.cuTexObjectCreate({ resType: 0, array: { hArray: b } }, POINT)],
    [out.at],
    2,
  );
  expect([...out.view]).toEqual([5, 6, 9, 10]);
  expect(
    messageOf(() =>
      cu.cuMemcpy2DAsync(
        {
          ...none,
          srcMemoryType: ARRAY!,
          srcArray: a,
          srcY: 3,
          dstMemoryType: ARRAY!,
          dstArray: b,
          WidthInBytes: 8,
          Height: 2,
        },
        stream,
      ),
    ),
  ).toContain("past the array's 4");
  expect(
    messageOf(() =>
      cu.cuMemcpy2DAsync(
        {
          ...none,
          srcMemoryType: ARRAY!,
          srcArray: a,
          srcXInBytes: 12,
          dstMemoryType: ARRAY!,
          dstArray: b,
          WidthInBytes: 8,
          Height: 1,
        },
        stream,
      ),
    ),
  ).toContain('rows of 16 bytes');
});

test('what cannot be a texture or a surface is an error with the reason', () => {
  const { cu } = open();
  const memory = cu.cuMemAlloc(4096);
  const linear = (parts: object, desc: Partial<CUDA_TEXTURE_DESC> = {}): string =>
    messageOf(() =>
      cu.cuTexObjectCreate(
        {
          resType: 2,
          linear: { devPtr: memory, format: FLOAT, numChannels: 1, sizeInBytes: 4096, ...parts },
        },
        { ...POINT, ...desc },
      ),
    );
  expect(linear({ devPtr: memory + 64 })).toContain('not a multiple of 256');
  expect(linear({ numChannels: 3 })).toContain('3 channels');
  expect(linear({ format: 5 })).toContain('format 5');
  expect(linear({ sizeInBytes: 5000 })).toContain('past the allocation');
  expect(linear({ format: 3 }, { filterMode: 1 })).toContain('read as floats');
  const plain = cu.cuArrayCreate({ Width: 4, Height: 0, Format: FLOAT, NumChannels: 1 });
  expect(
    messageOf(() => cu.cuSurfObjectCreate({ resType: 0, array: { hArray: plain } })),
  ).toContain('CUDA_ARRAY3D_SURFACE_LDST');
  expect(
    messageOf(() =>
      cu.cuArray3DCreate({
        Width: 4,
        Height: 4,
        Depth: 5,
        Format: FLOAT,
        NumChannels: 1,
        Flags: 4,
      }),
    ),
  ).toContain('six square faces');
  expect(resultOf(() => cu.cuMemFree(memory))).toBe('CUDA_SUCCESS');
});
