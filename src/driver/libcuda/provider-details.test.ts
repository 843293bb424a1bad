/**
 * Calls that one recorded line does not show: structures in memory, host memory, names, the JIT's
 * options and logs, lists, and the calls that differ between drivers.
 */
import { beforeEach, describe, expect, test } from 'vitest';

import type { JitOptions } from '../driver.js';
import { DriverError, MissingSymbolError } from '../error.js';
import { loadKoffi } from '../../native/koffi.js';
import { NativeMemory } from '../../native/native-memory.js';
import { openLibcuda } from './open.js';
import { StandIn, buildStandIn, whyNoStandIn } from './stand-in/stand-in.js';

const H1 = 0x7f1000000010,
  H2 = 0x7f2000000020,
  H3 = 0x7f3000000030;
const u64 = (...values: number[]): BigUint64Array => BigUint64Array.from(values.map(BigInt));
const hexOf = (text: string): string => Buffer.from(text).toString('hex');

describe('the provider, in detail', () => {
  if (whyNoStandIn !== undefined) {
    test.skip(whyNoStandIn, () => {});
    return;
  }
  const standIn = new StandIn(buildStandIn(13000));
  const driver = openLibcuda({ path: standIn.path });
  const old = new StandIn(buildStandIn(11020));
  const oldDriver = openLibcuda({ path: old.path });
  beforeEach(() => {
    standIn.reset();
    old.reset();
  });
  /** Returns the hexadecimal bytes in brackets at the end of a line. */
  const peeked = (line: string | undefined): string =>
    /\[([0-9a-f]*)\]$/.exec(line ?? '')?.[1] ?? '';

  test('2-D and 3-D copies pass their structures', () => {
    const copy = {
      srcXInBytes: 1,
      srcY: 2,
      srcMemoryType: 1,
      srcHost: 3,
      srcDevice: 4,
      srcPitch: 5,
      dstXInBytes: 6,
      dstY: 7,
      dstMemoryType: 2,
      dstHost: 8,
      dstDevice: 9,
      dstPitch: 10,
      WidthInBytes: 11,
      Height: 12,
    };
    standIn.peeks('cuMemcpy2DAsync_v2', 0, 128);
    driver.cuMemcpy2DAsync(copy, H1);
    const [flat] = standIn.takeLog();
    expect(flat).toMatch(/^cuMemcpy2DAsync_v2 [0-9a-f]+ 7f1000000010 /);
    const field = (at: number): number =>
      Number(Buffer.from(peeked(flat), 'hex').readBigUInt64LE(at));
    expect(Array.from({ length: 16 }, (_, i) => field(8 * i))).toEqual([
      1, 2, 1, 3, 4, 0, 5, 6, 7, 2, 8, 9, 0, 10, 11, 12,
    ]);

    standIn.peeks('cuMemcpy3DAsync_v2', 0, 200);
    driver.cuMemcpy3DAsync(
      { ...copy, srcZ: 13, srcHeight: 14, dstZ: 15, dstHeight: 16, Depth: 17 },
      H1,
    );
    const bytes = Buffer.from(peeked(standIn.takeLog()[0]), 'hex');
    expect(Array.from({ length: 25 }, (_, i) => Number(bytes.readBigUInt64LE(8 * i)))).toEqual([
      1, 2, 13, 0, 1, 3, 4, 0, 0, 5, 14, 6, 7, 15, 0, 2, 8, 9, 0, 0, 10, 16, 11, 12, 17,
    ]);
    standIn.peeks('cuMemcpy3DPeerAsync', 0, 200);
    driver.cuMemcpy3DPeerAsync(
      {
        ...copy,
        srcZ: 13,
        srcHeight: 14,
        dstZ: 15,
        dstHeight: 16,
        Depth: 17,
        srcContext: H2,
        dstContext: H3,
      },
      H1,
    );
    const between = Buffer.from(peeked(standIn.takeLog()[0]), 'hex');
    expect([8, 19].map((i) => Number(between.readBigUInt64LE(8 * i)))).toEqual([H2, H3]);
    expect([0, 9, 24].map((i) => Number(between.readBigUInt64LE(8 * i)))).toEqual([1, 5, 17]);
    standIn.returns('cuMemcpy2DAsync_v2', 1);
    expect(() => driver.cuMemcpy2DAsync(copy, H1)).toThrow('12 rows of 11 bytes, pitch 5 to 10');
  });

  test('a context is the same for other threads', () => {
    const adopted = driver.adoptContext(driver.shareContext(H2));
    expect(adopted).toEqual({ context: H2, addressOffset: 0 });
    driver.disownContext(adopted);
    expect(standIn.takeLog()).toEqual([]);
    expect(() => driver.adoptContext({ memory: {} })).toThrow('not one of libcuda');
  });

  test('pools: properties, access and attributes', () => {
    standIn.peeks('cuMemPoolCreate', 1, 32);
    driver.cuMemPoolCreate({ location: 2, maxSize: 4096 });
    expect(peeked(standIn.takeLog()[0])).toBe(
      '01000000' + '00000000' + '01000000' + '02000000' + '0000000000000000' + '0010000000000000',
    );
    standIn.peeks('cuMemPoolSetAccess', 1, 12);
    driver.cuMemPoolSetAccess(H1, 1, 'readwrite');
    driver.cuMemPoolSetAccess(H1, 1, 'none');
    expect(standIn.takeLog().map(peeked)).toEqual([
      '010000000100000003000000',
      '010000000100000000000000',
    ]);
    standIn.peeks('cuMemPoolSetAttribute', 2, 8);
    driver.cuMemPoolSetAttribute(H1, 4, Infinity);
    expect(peeked(standIn.takeLog()[0])).toBe('ffffffffffffffff');
  });

  test('host registration hands out the address of the bytes themselves', () => {
    const buffer = new SharedArrayBuffer(1 << 16);
    const address = driver.hostAddress(buffer);
    const p = driver.cuMemHostRegister(buffer, 4096, 8192, 3);
    expect(p).toBe(address + 4096);
    expect(standIn.takeLog()).toEqual([`cuMemHostRegister_v2 ${p.toString(16)} 2000 3`]);
    new Uint8Array(buffer)[4096 + 100] = 42;
    expect(new Uint8Array(loadKoffi().view(BigInt(p), 8192))[100]).toBe(42);

    const view = driver.hostView(p + 100, 8);
    expect(view.buffer).toBe(buffer);
    expect([view.byteOffset, view.byteLength, view[0]]).toEqual([4196, 8, 42]);

    driver.cuMemHostUnregister(p);
    expect(standIn.takeLog()).toEqual([`cuMemHostUnregister ${p.toString(16)}`]);
    expect(driver.hostView(p + 100, 8).buffer).not.toBe(buffer);
    expect(driver.hostView(p + 100, 8)[0]).toBe(42);
  });

  test('a range outside the buffer is not registered', () => {
    expect(() => driver.cuMemHostRegister(new SharedArrayBuffer(100), 50, 51, 0)).toThrow(
      '51 bytes at 50 of a buffer of 100, flags 0',
    );
    expect(standIn.takeLog()).toEqual([]);
  });

  test('hostView sees memory of the driver', () => {
    const native = new Uint8Array(new SharedArrayBuffer(64)).fill(7);
    standIn.writes('cuMemHostAlloc', 0, u64(driver.hostAddress(native.buffer)));
    const p = driver.cuMemHostAlloc(64, 3);
    const view = driver.hostView(p, 64);
    expect([...view]).toEqual(Array(64).fill(7));
    view[3] = 9;
    expect(native[3]).toBe(9);
  });

  test('names reach the driver as C strings', () => {
    const calls: [string, number, () => unknown][] = [
      ['cuModuleGetFunction', 2, () => driver.cuModuleGetFunction(H1, 'größe')],
      ['cuModuleGetGlobal_v2', 3, () => driver.cuModuleGetGlobal(H1, 'größe')],
      ['cuLibraryGetKernel', 2, () => driver.cuLibraryGetKernel(H1, 'größe')],
      ['cuLibraryGetGlobal', 3, () => driver.cuLibraryGetGlobal(H1, 'größe')],
      ['cuGraphDebugDotPrint', 1, () => driver.cuGraphDebugDotPrint(H1, 'größe', 1)],
    ];
    for (const [symbol, arg, call] of calls) {
      standIn.peeks(symbol, arg, 8);
      call();
      expect(peeked(standIn.takeLog()[0])).toBe(hexOf('größe\0'));
      standIn.returns(symbol, 500);
      expect(call).toThrow('größe');
    }
    expect(driver.cuKernelGetName(H1)).toBe('saxpy');
  });

  test('handles and globals come back from modules and libraries', () => {
    for (const symbol of [
      'cuModuleGetFunction',
      'cuLibraryGetKernel',
      'cuLibraryGetModule',
      'cuKernelGetFunction',
    ])
      standIn.writes(symbol, 0, u64(H2));
    expect(driver.cuModuleGetFunction(H1, 'k')).toBe(H2);
    expect(driver.cuLibraryGetKernel(H1, 'k')).toBe(H2);
    expect(driver.cuLibraryGetModule(H1)).toBe(H2);
    expect(driver.cuKernelGetFunction(H1)).toBe(H2);
    for (const symbol of ['cuModuleGetGlobal_v2', 'cuLibraryGetGlobal']) {
      standIn.writes(symbol, 0, u64(H2));
      standIn.writes(symbol, 1, u64(1024));
    }
    expect(driver.cuModuleGetGlobal(H1, 'g')).toEqual({ dptr: H2, bytes: 1024 });
    expect(driver.cuLibraryGetGlobal(H1, 'g')).toEqual({ dptr: H2, bytes: 1024 });
  });

  const jitLine = /\{ 4=65536 6=65536 0=32 7=3 13=1 \}/;
  const options: JitOptions = {
    CU_JIT_MAX_REGISTERS: 32,
    CU_JIT_OPTIMIZATION_LEVEL: 3,
    CU_JIT_GENERATE_LINE_INFO: true,
  };

  test.each([
    [
      'cuModuleLoadDataEx',
      (image: string | Uint8Array) => driver.cuModuleLoadDataEx(image, options),
    ],
    ['cuLibraryLoadData', (image: string | Uint8Array) => driver.cuLibraryLoadData(image, options)],
  ] as const)('%s: image, options, handle; on failure both logs', (symbol, load) => {
    standIn.peeks(symbol, 1, 8);
    standIn.writes(symbol, 0, u64(H1));
    expect(load('.target')).toBe(H1);
    const [line] = standIn.takeLog();
    expect(line).toContain(`[${hexOf('.target\0')}]`);
    expect(line).toMatch(jitLine);

    standIn.returns(symbol, 218);
    standIn.jitLogs('compiled 0 functions', 'ptxas error: line 3; größe');
    const error = (() => {
      try {
        return (load('.target'), undefined);
      } catch (caught) {
        return caught as DriverError;
      }
    })();
    expect(error).toBeInstanceOf(DriverError);
    expect(error).toMatchObject({
      call: symbol,
      result: 218,
      infoLog: 'compiled 0 functions',
      errorLog: 'ptxas error: line 3; größe',
    });
    expect(error!.message).toContain('ptxas error: line 3');
  });

  test('images: text gets its zero, binaries stay as they are', () => {
    standIn.peeks('cuModuleLoadDataEx', 1, 8);
    const load = (image: Uint8Array): string => {
      driver.cuModuleLoadDataEx(image, {});
      return peeked(standIn.takeLog()[0]!.replace(/ \{.*/, ''));
    };
    expect(load(Buffer.from('.target'))).toBe(hexOf('.target\0'));
    const cubin = Buffer.concat([
      Buffer.alloc(3),
      Buffer.from([0x7f, 0x45, 0x4c, 0x46, 1, 2, 3, 4]),
    ]);
    expect(load(cubin.subarray(3))).toBe('7f454c4601020304');
    expect(load(Buffer.from([0x50, 0xed, 0x55, 0xba, 1, 2, 3, 4]))).toBe('50ed55ba01020304');
  });

  test('a misspelled JIT option is named', () => {
    expect(() => driver.cuModuleLoadDataEx('', { CU_JIT_MAX_REGISTER: 3 } as JitOptions)).toThrow(
      'CU_JIT_MAX_REGISTER is no option of the JIT',
    );
  });

  test('cuLink creates, adds, completes, copies the cubin and destroys', () => {
    standIn.writes('cuLinkCreate_v2', 3, u64(H1));
    standIn.jitLogs('linked', '');
    standIn.peeks('cuLinkAddData_v2', 2, 4);
    const linked = driver.cuLink(
      [
        { type: 1, data: 'ptx', name: 'a.ptx' },
        { type: 0, data: Uint8Array.of(9, 8, 7, 6), name: 'b' },
      ],
      options,
    );
    expect(linked).toEqual({
      cubin: Uint8Array.of(0x7f, 0x45, 0x4c, 0x46, 1, 2, 3),
      infoLog: 'linked',
      errorLog: '',
    });
    const log = standIn.takeLog();
    expect(log[0]).toMatch(jitLine);
    expect(log[1]).toMatch(
      /^cuLinkAddData_v2 7f1000000010 1 [0-9a-f]+ 4 [0-9a-f]+ 0 0 0 \[70747800\]$/,
    );
    expect(log[2]).toMatch(
      /^cuLinkAddData_v2 7f1000000010 0 [0-9a-f]+ 4 [0-9a-f]+ 0 0 0 \[09080706\]$/,
    );
    expect(log.slice(3).map((line) => line.split(' ').slice(0, 2).join(' '))).toEqual([
      'cuLinkComplete 7f1000000010',
      'cuLinkDestroy 7f1000000010',
    ]);
  });

  test('a failing link is destroyed, and its logs are kept', () => {
    standIn.writes('cuLinkCreate_v2', 3, u64(H1));
    standIn.jitLogs('', 'undefined reference to f');
    standIn.returns('cuLinkAddData_v2', 218);
    expect(() => driver.cuLink([{ type: 1, data: 'ptx', name: 'a.ptx' }], {})).toThrow(
      expect.objectContaining({
        call: 'cuLinkAddData',
        detail: 'input "a.ptx", 4 bytes',
        errorLog: 'undefined reference to f',
      }),
    );
    expect(standIn.takeLog().at(-1)).toBe('cuLinkDestroy 7f1000000010');
  });

  test('lists: kernels of a library, nodes of a graph', () => {
    standIn.writes('cuLibraryGetKernelCount', 0, Int32Array.of(3));
    standIn.writes('cuLibraryEnumerateKernels', 0, u64(H1, H2, 5));
    expect(driver.cuLibraryGetKernelCount(H1)).toBe(3);
    expect(driver.cuLibraryEnumerateKernels(H1)).toEqual([H1, H2, 5]);

    expect(driver.cuGraphGetNodes(H1)).toEqual([]);
    standIn.takeLog();
    standIn.writes('cuGraphGetNodes', 1, u64(H1, H2));
    standIn.writes('cuGraphGetNodes', 2, u64(2));
    expect(driver.cuGraphGetNodes(H1)).toEqual([H1, H2]);
    const [count, list] = standIn.takeLog();
    expect(count).toMatch(/^cuGraphGetNodes 7f1000000010 0 [0-9a-f]+$/);
    expect(list).toMatch(/^cuGraphGetNodes 7f1000000010 [0-9a-f]{6,} [0-9a-f]+$/);
  });

  test('a conditional node: the arguments, and the bodies that the driver returns', () => {
    const handle = 0xfedcba9876543210n;
    const owned = new NativeMemory(loadKoffi(), 16);
    owned.setU64(0, H1);
    owned.setU64(8, H2);
    // The driver's own list of bodies is at 32 of the structure, which the stand-in writes as a
    // whole.
    const written = new BigUint64Array(6);
    written[4] = BigInt(owned.address);
    standIn.writes('cuGraphAddNode_v2', 0, u64(5));
    standIn.writes('cuGraphAddNode_v2', 5, written);
    expect(driver.cuGraphAddNode(H1, [H2, 5], { handle, type: 2, size: 2, ctx: H1 })).toEqual({
      node: 5,
      bodies: [H1, H2],
    });
    expect(standIn.takeLog()[0]).toMatch(
      /^cuGraphAddNode_v2 [0-9a-f]{6,} 7f1000000010 [0-9a-f]{6,} 0 2 [0-9a-f]{6,}$/,
    );
    standIn.returns('cuGraphAddNode_v2', 1);
    expect(() => driver.cuGraphAddNode(H1, [], { handle, type: 0, size: 2, ctx: H1 })).toThrow(
      'a conditional node of type 0 with 2 bodies',
    );
  });

  test('conditional nodes on a driver for CUDA 11.2: the error names the version', () => {
    expect(() => oldDriver.cuGraphConditionalHandleCreate(H1, H2, 0, 1)).toThrow('12.3');
    expect(() => oldDriver.cuStreamBeginCaptureToGraph(H1, H2, [], 2)).toThrow('12.3');
  });

  test('parameters: offset and size, undefined past the last', () => {
    standIn.parameters({ offset: 0, size: 8 }, { offset: 8, size: 4 });
    expect([0, 1, 2].map((i) => driver.cuFuncGetParamInfo(H1, i))).toEqual([
      { offset: 0, size: 8 },
      { offset: 8, size: 4 },
      undefined,
    ]);
  });

  test('cuGraphExecUpdate: a graph that does not fit is a result, anything else an error', () => {
    expect(driver.cuGraphExecUpdate(H1, H2)).toEqual({ result: 0, errorNode: 0 });
    standIn.returns('cuGraphExecUpdate_v2', 910, 2);
    expect(driver.cuGraphExecUpdate(H1, H2)).toEqual({ result: 1, errorNode: 0 });
    standIn.writes('cuGraphExecUpdate_v2', 2, u64(3, H1, H2));
    expect(driver.cuGraphExecUpdate(H1, H2)).toEqual({ result: 3, errorNode: H1 });
    standIn.returns('cuGraphExecUpdate_v2', 400);
    expect(() => driver.cuGraphExecUpdate(H1, H2)).toThrow(
      'cuGraphExecUpdate returned CUDA_ERROR_INVALID_HANDLE',
    );
  });

  test('on a driver for CUDA 11.2 the older signatures are called', () => {
    oldDriver.cuMemPrefetchAsync(H1, 64, -1, H2);
    oldDriver.cuMemAdvise(H1, 64, 3, 1);
    old.writes('cuGraphExecUpdate', 2, u64(H2));
    old.writes('cuGraphExecUpdate', 3, Int32Array.of(4));
    expect(oldDriver.cuGraphExecUpdate(H1, H2)).toEqual({ result: 4, errorNode: H2 });
    old.writes('cuStreamGetCaptureInfo', 1, Int32Array.of(1));
    old.writes('cuStreamGetCaptureInfo', 2, u64(9));
    expect(oldDriver.cuStreamGetCaptureInfo(H1)).toEqual({ status: 1, id: 9 });
    oldDriver.cuStreamWriteValue32(H1, H2, 1, 0);
    oldDriver.cuFuncLoad(H1); // nothing to call, and no error
    expect(old.takeLog().map((line) => line.replace(/ [0-9a-f]{6,8}(?= |$)/g, ' *'))).toEqual([
      'cuMemPrefetchAsync 7f1000000010 40 * 7f2000000020',
      'cuMemAdvise 7f1000000010 40 3 1',
      expect.stringMatching(/^cuGraphExecUpdate 7f1000000010 7f2000000020 /),
      expect.stringMatching(/^cuStreamGetCaptureInfo 7f1000000010 /),
      'cuStreamWriteValue32 7f1000000010 7f2000000020 1 0',
    ]);
  });

  test('a function that a driver lacks is an error that names the driver that has it', () => {
    expect(() => oldDriver.cuLibraryLoadData('', {})).toThrow(MissingSymbolError);
    expect(() => oldDriver.cuLibraryLoadData('', {})).toThrow(
      'cuLibraryLoadData needs an NVIDIA driver for CUDA 12.0 or later; this one supports ' +
        'CUDA 11.2. Update the driver.',
    );
  });
});
