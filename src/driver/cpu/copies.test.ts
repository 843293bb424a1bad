import * as fc from '../../../test/fast-check.js';
import { describe, expect, test } from 'vitest';
import type { CUDA_MEMCPY3D } from '../driver.js';
import { messageOf, openFake, resultOf } from './testing/open-fake.js';

const HOST = 1;
const DEVICE = 2;

test('bytes go to the device, between places on it, and back', () => {
  const { cu, stream, host } = openFake();
  const from = host(100_003);
  const to = host(100_003);
  from.bytes.forEach((_, i) => (from.bytes[i] = i * 7));
  const a = cu.cuMemAlloc(100_003);
  const b = cu.cuMemAlloc(100_003);
  cu.cuMemcpyHtoDAsync(a, from.address, 100_003, stream);
  cu.cuMemcpyDtoDAsync(b, a, 100_003, stream);
  cu.cuMemcpyDtoHAsync(to.address, b, 100_003, stream);
  expect(to.bytes[1]).toBe(0);
  cu.cuStreamSynchronize(stream);
  expect(Buffer.from(to.bytes).equals(Buffer.from(from.bytes))).toBe(true);
});

test('a large copy is done in slices', () => {
  const { cu, stream } = openFake({ memoryBytes: 512 * 2 ** 20 });
  const a = cu.cuMemAlloc(200 * 2 ** 20);
  const b = cu.cuMemAlloc(200 * 2 ** 20);
  cu.cuMemcpyDtoDAsync(b, a, 200 * 2 ** 20, stream);
  const begin = performance.now();
  expect(cu.poll(500)).toBe(true);
  expect(performance.now() - begin).toBeLessThan(20);
  expect(cu.cuStreamQuery(stream)).toBe(600);
  cu.cuStreamSynchronize(stream);
});

test('overlapping copies on the device behave as memmove', () => {
  const { cu, stream, read, write } = openFake();
  const a = cu.cuMemAlloc(40);
  write(a, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
  cu.cuMemcpyDtoDAsync(a + 8, a, 32, stream);
  cu.cuStreamSynchronize(stream);
  expect(read(a, 10)).toEqual([1, 2, 1, 2, 3, 4, 5, 6, 7, 8]);
});

test('memory outside a live allocation is INVALID_VALUE at the call', () => {
  const { cu, stream, host } = openFake();
  const a = cu.cuMemAlloc(1000);
  const h = host(1000);
  expect(messageOf(() => cu.cuMemcpyHtoDAsync(a + 1, h.address, 1000, stream))).toContain(
    'end 1 bytes past the allocation',
  );
  expect(messageOf(() => cu.cuMemcpyHtoDAsync(70_000_000, h.address, 4, stream))).toContain(
    'in no live allocation',
  );
  expect(messageOf(() => cu.cuMemcpyHtoDAsync(a, h.address + 1, 1000, stream))).toContain(
    'not inside one registered host range',
  );
  expect(resultOf(() => cu.cuMemcpyHtoDAsync(a, a, 4, stream))).toBe('CUDA_ERROR_INVALID_VALUE');
  expect(resultOf(() => cu.cuMemsetD8Async(a, 0, 1001, stream))).toBe('CUDA_ERROR_INVALID_VALUE');
  expect(resultOf(() => cu.cuMemcpyHtoDAsync(a, h.address, -4, stream))).toBe(
    'CUDA_ERROR_INVALID_VALUE',
  );
  cu.cuMemFree(a);
  expect(resultOf(() => cu.cuMemcpyHtoDAsync(a, h.address, 4, stream))).toBe(
    'CUDA_ERROR_INVALID_VALUE',
  );
  expect(cu.cuStreamQuery(stream)).toBe(0);
});

test('a copy of no bytes has no effect', () => {
  const { cu, stream } = openFake();
  cu.cuMemcpyHtoDAsync(0, 0, 0, stream);
  cu.cuMemsetD32Async(0, 1, 0, stream);
  expect(cu.cuStreamQuery(stream)).toBe(0);
});

test('fills of 8, 16 and 32 bits, in one and two dimensions', { tags: 'random' }, () => {
  fc.assert(
    fc.property(
      fc.constantFrom(1, 2, 4),
      fc.integer(),
      fc.nat(300),
      fc.integer({ min: 1, max: 8 }),
      fc.nat(3),
      fc.nat(16),
      (bytes, value, width, height, slack, offset) => {
        const { cu, stream, host } = device;
        const pitch = Math.ceil((width * bytes) / 4) * 4 + slack * 4;
        const h = host(8192);
        cu.cuMemsetD8Async(block, 0xee, 8192, stream);
        const call =
          bytes === 1
            ? cu.cuMemsetD2D8Async
            : bytes === 2
              ? cu.cuMemsetD2D16Async
              : cu.cuMemsetD2D32Async;
        const flat =
          bytes === 1
            ? cu.cuMemsetD8Async
            : bytes === 2
              ? cu.cuMemsetD16Async
              : cu.cuMemsetD32Async;
        call(block + offset * 4, Math.max(pitch, 4), value, width, Math.min(height, 5), stream);
        flat(block + 7000 + offset * 4, value, Math.min(width, 200), stream);
        cu.cuMemcpyDtoHAsync(h.address, block, 8192, stream);
        cu.cuStreamSynchronize(stream);
        cu.cuMemHostUnregister(h.address);
        const expected = new Uint8Array(8192).fill(0xee);
        const put = (at: number, count: number): void => {
          for (let i = 0; i < count * bytes; i++) expected[at + i] = value >>> (8 * (i % bytes));
        };
        for (let row = 0; row < Math.min(height, 5); row++)
          put(offset * 4 + row * Math.max(pitch, 4), width);
        put(7000 + offset * 4, Math.min(width, 200));
        expect(Buffer.from(h.bytes).equals(Buffer.from(expected))).toBe(true);
      },
    ),
    { numRuns: 150 },
  );
});
const device = openFake();
const block = device.cu.cuMemAlloc(8192);

test('fills of 16 and 32 bits must be aligned', () => {
  const { cu, stream } = openFake();
  const a = cu.cuMemAlloc(100);
  expect(resultOf(() => cu.cuMemsetD16Async(a + 1, 0, 1, stream))).toBe('CUDA_ERROR_INVALID_VALUE');
  expect(resultOf(() => cu.cuMemsetD32Async(a + 2, 0, 1, stream))).toBe('CUDA_ERROR_INVALID_VALUE');
  expect(resultOf(() => cu.cuMemsetD2D8Async(a, 9, 0, 10, 2, stream))).toBe(
    'CUDA_ERROR_INVALID_VALUE',
  );
});

test('boxes in three dimensions equal the loop that defines them', { tags: 'random' }, () => {
  const small = fc.integer({ min: 0, max: 6 });
  const side = fc.record({
    x: small,
    y: small,
    z: small,
    slack: small,
    rows: small,
    type: fc.constantFrom(HOST, DEVICE),
  });
  const { cu, stream, host } = device;
  const bytes = 40 * 20 * 20;
  const memory = {
    device: cu.cuMemAlloc(bytes),
    twin: cu.cuMemAlloc(bytes),
    host: host(bytes),
    out: host(bytes),
  };
  fc.assert(
    fc.property(
      side,
      side,
      fc.integer({ min: 1, max: 12 }),
      fc.integer({ min: 1, max: 5 }),
      fc.integer({ min: 1, max: 4 }),
      (s, d, width, height, depth) => {
        const before = new Uint8Array(bytes).map((_, i) => i * 13);
        memory.host.bytes.set(before);
        memory.out.bytes.fill(0x55);
        cu.cuMemcpyHtoDAsync(memory.device, memory.host.address, bytes, stream);
        cu.cuMemsetD8Async(memory.twin, 0x55, bytes, stream);
        const copy: CUDA_MEMCPY3D = {
          srcXInBytes: s.x,
          srcY: s.y,
          srcZ: s.z,
          srcMemoryType: s.type,
          srcHost: memory.host.address,
          srcDevice: memory.device,
          srcPitch: s.x + width + s.slack,
          srcHeight: s.y + height + s.rows,
          dstXInBytes: d.x,
          dstY: d.y,
          dstZ: d.z,
          dstMemoryType: d.type,
          dstHost: memory.out.address,
          dstDevice: memory.twin,
          dstPitch: d.x + width + d.slack,
          dstHeight: d.y + height + d.rows,
          WidthInBytes: width,
          Height: height,
          Depth: depth,
        };
        cu.cuMemcpy3DAsync(copy, stream);
        if (d.type === DEVICE) cu.cuMemcpyDtoHAsync(memory.out.address, memory.twin, bytes, stream);
        cu.cuStreamSynchronize(stream);
        const expected = new Uint8Array(bytes).fill(0x55);
        for (let z = 0; z < depth; z++)
          for (let y = 0; y < height; y++)
            for (let x = 0; x < width; x++) {
              expected[((d.z + z) * copy.dstHeight + d.y + y) * copy.dstPitch + d.x + x] =
                before[((s.z + z) * copy.srcHeight + s.y + y) * copy.srcPitch + s.x + x]!;
            }
        expect(Buffer.from(memory.out.bytes).equals(Buffer.from(expected))).toBe(true);
      },
    ),
    { numRuns: 150 },
  );
});

test('a 2-D copy checks pitches and ranges at the call', () => {
  const { cu, stream, host } = openFake();
  const a = cu.cuMemAlloc(64);
  const h = host(64);
  const copy = {
    srcXInBytes: 0,
    srcY: 0,
    srcMemoryType: HOST,
    srcHost: h.address,
    srcDevice: 0,
    srcPitch: 16,
    dstXInBytes: 0,
    dstY: 0,
    dstMemoryType: DEVICE,
    dstHost: 0,
    dstDevice: a,
    dstPitch: 16,
    WidthInBytes: 16,
    Height: 4,
  };
  cu.cuMemcpy2DAsync(copy, stream);
  expect(resultOf(() => cu.cuMemcpy2DAsync({ ...copy, dstY: 1 }, stream))).toBe(
    'CUDA_ERROR_INVALID_VALUE',
  );
  expect(resultOf(() => cu.cuMemcpy2DAsync({ ...copy, srcPitch: 15 }, stream))).toBe(
    'CUDA_ERROR_INVALID_VALUE',
  );
  expect(resultOf(() => cu.cuMemcpy2DAsync({ ...copy, srcMemoryType: 3 }, stream))).toBe(
    'CUDA_ERROR_INVALID_HANDLE',
  );
});

test('peer copies go between the devices of one driver', () => {
  const { cu, context } = openFake({ devices: 2 });
  const a = cu.cuMemAlloc(16);
  const second = cu.cuDevicePrimaryCtxRetain(1);
  cu.cuCtxSetCurrent(second);
  const b = cu.cuMemAlloc(16);
  cu.cuMemsetD32Async(b, 0, 4, 0);
  cu.cuCtxSynchronize();
  cu.cuCtxSetCurrent(context);
  cu.cuMemsetD32Async(a, 77, 4, 0);
  cu.cuMemcpyPeerAsync(b, second, a, context, 16, 0);
  cu.cuCtxSynchronize();
  expect(resultOf(() => cu.cuMemcpyPeerAsync(b, context, a, second, 16, 0))).toBe(
    'CUDA_ERROR_INVALID_VALUE',
  );
  cu.cuCtxSetCurrent(second);
  const host = cu.cuMemHostAlloc(16, 0);
  cu.cuMemcpyDtoHAsync(host, b, 16, 0);
  cu.cuCtxSynchronize();
  const view = cu.hostView(host, 16);
  expect([...new Int32Array(view.buffer, view.byteOffset, 4)]).toEqual([77, 77, 77, 77]);
  expect(Math.abs(a - b)).toBeGreaterThan(2 ** 30);
});

describe('with a device of another driver', () => {
  /** Two drivers, as two threads have them, and the adopted context of the second in the first. */
  function two() {
    const here = openFake();
    const there = openFake();
    const shared = structuredClone(there.cu.shareContext(there.context));
    return { here, there, adopted: here.cu.adoptContext(shared) };
  }

  test('copies reach its memory', () => {
    const { here, there, adopted } = two();
    const a = there.cu.cuMemAlloc(64);
    there.write(a, [1, 2, 3, 4, 5, 6, 7, 8]);
    const b = here.cu.cuMemAlloc(64);
    here.cu.cuMemcpyPeerAsync(
      b,
      here.context,
      a + adopted.addressOffset + 4,
      adopted.context,
      16,
      here.stream,
    );
    here.cu.cuStreamSynchronize(here.stream);
    expect(here.read(b, 4)).toEqual([2, 3, 4, 5]);
    here.cu.cuMemcpyPeerAsync(
      a + adopted.addressOffset,
      adopted.context,
      b,
      here.context,
      8,
      here.stream,
    );
    here.cu.cuStreamSynchronize(here.stream);
    expect(there.read(a, 3)).toEqual([2, 3, 3]);
  });

  test('boxes reach its memory, also after it has grown', () => {
    const { here, there, adopted } = two();
    there.cu.cuMemAlloc(4 * 2 ** 20);
    const a = there.cu.cuMemAlloc(48 * 2 ** 20);
    const last = a + 48 * 2 ** 20 - 64;
    there.write(
      last,
      Array.from({ length: 16 }, (_, i) => i),
    );
    const b = here.cu.cuMemAlloc(64);
    here.write(b, new Array<number>(16).fill(-1));
    const end = { XInBytes: 0, Y: 0, Z: 0, MemoryType: DEVICE, Host: 0, Height: 2 };
    const fields = (side: 'src' | 'dst', device: number, pitch: number, context: number): object =>
      Object.fromEntries(
        Object.entries({ ...end, Device: device, Pitch: pitch, Context: context }).map(
          ([name, value]) => [side + name, value],
        ),
      );
    here.cu.cuMemcpy3DPeerAsync(
      {
        ...fields('src', last + adopted.addressOffset, 16, adopted.context),
        ...fields('dst', b, 8, here.context),
        WidthInBytes: 8,
        Height: 2,
        Depth: 2,
      } as never,
      here.stream,
    );
    here.cu.cuStreamSynchronize(here.stream);
    expect(here.read(b, 9)).toEqual([0, 1, 4, 5, 8, 9, 12, 13, -1]);
  });

  test('addresses past its memory, or after disowning, are refused', () => {
    const { here, there, adopted } = two();
    const a = there.cu.cuMemAlloc(64);
    const b = here.cu.cuMemAlloc(64);
    const peer = (address: number): string =>
      resultOf(() =>
        here.cu.cuMemcpyPeerAsync(
          b,
          here.context,
          address + adopted.addressOffset,
          adopted.context,
          64,
          here.stream,
        ),
      );
    expect(peer(a)).toBe('CUDA_SUCCESS');
    expect(peer(2 ** 31)).toBe('CUDA_ERROR_INVALID_VALUE');
    expect(
      resultOf(() =>
        here.cu.cuMemcpyPeerAsync(b, adopted.context, b, here.context, 64, here.stream),
      ),
    ).toBe('CUDA_ERROR_INVALID_VALUE');
    here.cu.disownContext(adopted);
    expect(peer(a)).toBe('CUDA_ERROR_INVALID_CONTEXT');
  });

  test('a context without memory cannot be adopted', () => {
    expect(resultOf(() => openFake().cu.adoptContext({ context: 7 }))).toBe(
      'CUDA_ERROR_INVALID_VALUE',
    );
    expect(resultOf(() => openFake().cu.shareContext(7))).toBe('CUDA_ERROR_INVALID_CONTEXT');
  });
});
