/**
 * Tensor maps that the driver makes, and kernels that copy by them, on both devices: boxes at
 * random against the model of `src/ptx/rules`, and a ring of tiles between a producer and its
 * consumers. The calls are the driver's own: no layer above has them.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openCpu, openLibcuda } from 'async-cuda/driver';
import type { Driver } from 'async-cuda/driver';
import {
  REGION,
  TENSOR_PARAMS,
  TENSOR_SHARED,
  tensorCases,
  tensorKernel,
} from '../../src/ptx/rules/tensor-cases.test-support.js';
import type { TensorCase } from '../../src/ptx/rules/tensor-cases.test-support.js';
import { boxElements, load, store } from '../../src/ptx/rules/tensor-model.test-support.js';
import { tensorTypeBytes } from '../../src/ptx/tensor-map.js';
import type { TensorType } from '../../src/ptx/tensor-map.js';
import * as fc from '../fast-check.js';
import { onCpu } from './test-device.js';

/** The driver's numbers of the types. */
const TYPES: readonly TensorType[] = [
  'u8',
  'u16',
  'u32',
  's32',
  'u64',
  's64',
  'f16',
  'f32',
  'f64',
  'bf16',
  'f32.ftz',
  'tf32',
  'tf32.ftz',
];
/** A buffer on the device for each of: the tensor with its guards, and shared memory in and out. */
const GUARD = 4096;
const MOST = 2 ** 22;
const HOST = 2 * MOST;

/** The alignment of a parameter of so many bytes. */
const ALIGNED: Readonly<Record<number, number>> = { 2: 2, 4: 4, 8: 8, 128: 128 };

let cu: Driver;
let stream: number;
/** Host memory for copies, and device memory. */
let host: { address: number; bytes: Uint8Array };
let device: number;
const functions = new Map<string, number>();

/** CUDA 13's drivers want their largest shared memory to be asked for; this is less. */
function functionOf(text: string): number {
  let func = functions.get(text);
  if (func === undefined) {
    func = cu.cuModuleGetFunction(cu.cuModuleLoadDataEx(text, {}), 'k');
    functions.set(text, func);
  }
  return func;
}

const moduleText = (params: string, body: string, before = ''): string =>
  `.version 8.6\n.target sm_90a\n.address_size 64\n${before}\n.visible .entry k(${params})\n` +
  `{\n${body}\n}\n`;

/** `params` are at the places that PTX gives them; a driver has others where they are aligned. */
function launch(
  func: number,
  params: Uint8Array,
  { grid = 1, block = 1, shared = 0, cluster = 1 } = {},
): void {
  const words = new Int32Array(256);
  let from = 0;
  let end = 0;
  for (let i = 0; ; i++) {
    const info = cu.cuFuncGetParamInfo(func, i);
    if (info === undefined) break;
    from = Math.ceil(from / ALIGNED[info.size]!) * ALIGNED[info.size]!;
    new Uint8Array(words.buffer, info.offset).set(params.subarray(from, from + info.size));
    from += info.size;
    end = info.offset + info.size;
  }
  cu.cuLaunchKernelEx(
    {
      gridDimX: grid,
      gridDimY: 1,
      gridDimZ: 1,
      blockDimX: block,
      blockDimY: 1,
      blockDimZ: 1,
      sharedMemBytes: shared,
      hStream: stream,
      attrs: cluster > 1 ? { clusterDim: [cluster, 1, 1] } : {},
    },
    func,
    words,
    0,
    end,
  );
}

function upload(at: number, bytes: Uint8Array): void {
  host.bytes.set(bytes);
  cu.cuMemcpyHtoDAsync(at, host.address, bytes.length, stream);
  cu.cuStreamSynchronize(stream);
}

function download(at: number, length: number): Uint8Array {
  cu.cuMemcpyDtoHAsync(host.address, at, length, stream);
  cu.cuStreamSynchronize(stream);
  return host.bytes.slice(0, length);
}

beforeAll(() => {
  cu = onCpu ? openCpu({ memoryBytes: 256 * 2 ** 20, multiprocessors: 2 }) : openLibcuda();
  cu.cuInit(0);
  cu.cuCtxSetCurrent(cu.cuDevicePrimaryCtxRetain(0));
  stream = cu.cuStreamCreateWithPriority(1, 0);
  const address = cu.cuMemHostAlloc(HOST, 0);
  const { buffer, byteOffset } = cu.hostView(address, HOST);
  host = { address, bytes: new Uint8Array(buffer, byteOffset, HOST) };
  device = cu.cuMemAlloc(HOST);
});
afterAll(() => {
  cu.cuMemFree(device);
  cu.cuMemFreeHost(host.address);
  cu.cuDevicePrimaryCtxRelease(0);
});

/** The driver's tensor map of a case. */
function encode({ map, mode }: TensorCase, address: number): Uint8Array {
  const common = [
    TYPES.indexOf(map.type),
    map.dims.length,
    address,
    map.dims,
    map.strides,
  ] as const;
  const rest = [map.interleave, map.swizzle, map.promotion, map.fill] as const;
  return mode === 'im2col'
    ? cu.cuTensorMapEncodeIm2col(
        ...common,
        map.lower,
        map.upper,
        map.channels,
        map.pixels,
        map.steps,
        ...rest,
      )
    : cu.cuTensorMapEncodeTiled(...common, map.box, map.steps, ...rest);
}

const noise = (length: number, seed: number): Uint8Array => {
  let x = seed * 2654435761 + 1;
  return Uint8Array.from({ length }, () => {
    x = (Math.imul(x, 1664525) + 1013904223) >>> 0;
    return x >>> 24;
  });
};

const differences = (given: Uint8Array, wanted: Uint8Array): string[] => {
  const found: string[] = [];
  for (let at = 0; at < wanted.length && found.length < 4; at++)
    if (given[at] !== wanted[at]) found.push(`${at}: ${given[at]}, not ${wanted[at]}`);
  return found;
};

function check(each: TensorCase, operation: 'load' | 'store'): void {
  const { map } = each;
  const elements = boxElements(map, each.mode, each.coordinates, each.offsets);
  const tensor = noise(each.bytes, 1);
  const shared = noise(REGION, 2);
  const around = new Uint8Array(each.bytes + 2 * GUARD).fill(0x5a);
  around.set(tensor, GUARD);
  const [input, out] = [device + MOST, device + MOST + 2 * REGION];
  upload(device, around);
  upload(input, shared);
  const params = new DataView(new ArrayBuffer(180));
  new Uint8Array(params.buffer).set(encode(each, device + GUARD));
  params.setBigUint64(128, BigInt(input), true);
  params.setBigUint64(136, BigInt(out), true);
  each.coordinates.forEach((at, axis) => {
    params.setInt32(144 + 4 * axis, at, true);
  });
  each.offsets.forEach((at, axis) => {
    params.setUint16(164 + 2 * axis, at, true);
  });
  params.setUint32(172, each.at, true);
  params.setUint32(176, elements.length * tensorTypeBytes(map.type), true);
  launch(
    functionOf(
      moduleText(TENSOR_PARAMS, tensorKernel(each, operation, { wait: true }), TENSOR_SHARED),
    ),
    new Uint8Array(params.buffer),
    { shared: REGION },
  );
  const given = download(out, REGION + 1);
  if (operation === 'load') load(map, elements, tensor, shared, each.at);
  else store(map, elements, tensor, shared, each.at);
  around.set(tensor, GUARD);
  expect(given[REGION]).toBe(1);
  expect(differences(given, shared)).toEqual([]);
  expect(differences(download(device, around.length), around)).toEqual([]);
}

describe('kernels copy boxes of tensors that the driver describes', () => {
  const modes = [
    ['tiles', {}],
    ['slices of 16 bytes', { interleave: 1 }],
    ['slices of 32 bytes', { interleave: 2 }],
    ['im2col', { mode: 'im2col' }],
    ['im2col of slices', { mode: 'im2col', interleave: 1 }],
  ] as const;
  it.each(modes)('loads: %s', { tags: 'random' }, (_, wanted) => {
    fc.assert(
      fc.property(tensorCases({ ...wanted, hopper: true }), (each) => {
        check(each, 'load');
      }),
      { numRuns: 100 },
    );
  });
  it.each(modes)('stores: %s', { tags: 'random' }, (_, wanted) => {
    fc.assert(
      fc.property(tensorCases({ ...wanted, hopper: true, stores: true }), (each) => {
        check({ ...each, offsets: each.offsets.map(() => 0) }, 'store');
      }),
      { numRuns: 100 },
    );
  });
});

describe('a ring of tiles', () => {
  const ROWS = 16;
  const COLUMNS = 32;
  /**
   * Thread 0 loads the tiles of the block's column of a matrix of singles in turn, `stages` ahead;
   * warp 1 adds 1 to each element where swizzling has put it, and stores the tile through the other
   * map.
   */
  const kernel = (stages: number): string =>
    moduleText(
      '.param .align 128 .b8 source[128], .param .align 128 .b8 target[128], .param .u32 tiles',
      `.reg .b64 %from, %to, %st; .reg .b32 %r<16>, %t, %n, %i, %stage, %phase, %full, %empty;
      .reg .b32 %tile;
      .reg .b32 %x, %y; .reg .f32 %f; .reg .pred %p, %q;
      .shared .align 1024 .b8 tiles_[${stages * 2048}]; .shared .align 8 .b8 full[${8 * stages}];
      .shared .align 8 .b8 empty[${8 * stages}];
      mov.b64 %from, source; cvta.param.u64 %from, %from; mov.b64 %to, target;
      cvta.param.u64 %to, %to; ld.param.u32 %n, [tiles]; mov.u32 %t, %tid.x;
      mov.u32 %x, %ctaid.x; mul.lo.u32 %x, %x, ${COLUMNS};
      setp.ne.u32 %p, %t, 0; @%p bra ready;
      ${Array.from(
        { length: stages },
        (_, stage) =>
          `mbarrier.init.shared.b64 [full+${8 * stage}], 1; ` +
          `mbarrier.init.shared.b64 [empty+${8 * stage}], 32;`,
      ).join('\n')}
      fence.proxy.async;
      ready: bar.sync 0;
      mov.u32 %i, 0; mov.u32 %stage, 0; mov.u32 %phase, 0;
      setp.ge.u32 %p, %t, 32; @%p bra consume;
      @!%p setp.ne.u32 %q, %t, 0; @%q bra done;
      produce: setp.ge.u32 %p, %i, %n; @%p bra done;
      shl.b32 %r0, %stage, 3; mov.u32 %full, full; add.u32 %full, %full, %r0;
      mov.u32 %empty, empty; add.u32 %empty, %empty, %r0;
      shl.b32 %r1, %stage, 11; mov.u32 %tile, tiles_; add.u32 %tile, %tile, %r1;
      xor.b32 %r2, %phase, 1;
      free: mbarrier.try_wait.parity.shared.b64 %p, [%empty], %r2; @!%p bra free;
      mov.u32 %r3, 2048; mbarrier.arrive.expect_tx.shared.b64 %st, [%full], %r3;
      mul.lo.u32 %y, %i, ${ROWS};
      cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%tile],
      [%from, {%x, %y}], [%full];
      add.u32 %i, %i, 1; add.u32 %stage, %stage, 1; setp.eq.u32 %p, %stage, ${stages};
      @%p mov.u32 %stage, 0; @%p xor.b32 %phase, %phase, 1; bra produce;
      consume: setp.ge.u32 %p, %i, %n; @%p bra done;
      shl.b32 %r0, %stage, 3; mov.u32 %full, full; add.u32 %full, %full, %r0;
      mov.u32 %empty, empty; add.u32 %empty, %empty, %r0;
      shl.b32 %r1, %stage, 11; mov.u32 %tile, tiles_; add.u32 %tile, %tile, %r1;
      filled: mbarrier.try_wait.parity.shared.b64 %p, [%full], %phase; @!%p bra filled;
      sub.u32 %r4, %t, 32; mov.u32 %r5, 0;
      // Element (row %r5, column %r4): 128 bytes in a row, 16 bytes swizzled by the row.
      each: shl.b32 %r6, %r5, 7; shl.b32 %r7, %r4, 2; add.u32 %r6, %r6, %r7;
      and.b32 %r8, %r5, 7; shl.b32 %r8, %r8, 4; xor.b32 %r6, %r6, %r8; add.u32 %r6, %r6, %tile;
      ld.shared.f32 %f, [%r6]; add.f32 %f, %f, 0f3F800000; st.shared.f32 [%r6], %f;
      add.u32 %r5, %r5, 1; setp.lt.u32 %p, %r5, ${ROWS}; @%p bra each;
      fence.proxy.async; bar.warp.sync -1;
      mul.lo.u32 %y, %i, ${ROWS}; setp.ne.u32 %q, %r4, 0; @%q bra stored;
      cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%to, {%x, %y}], [%tile];
      cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;
      stored: bar.warp.sync -1; mbarrier.arrive.shared.b64 %st, [%empty];
      add.u32 %i, %i, 1; add.u32 %stage, %stage, 1; setp.eq.u32 %p, %stage, ${stages};
      @%p mov.u32 %stage, 0; @%p xor.b32 %phase, %phase, 1; bra consume;
      done: ret;`,
    );
  it.each([2, 3])('of %i stages, whose consumers read what has come and write it out', (stages) => {
    const [width, height] = [200, 150];
    const matrix = Float32Array.from({ length: width * height }, (_, index) => index);
    upload(device, new Uint8Array(matrix.buffer));
    upload(device + MOST, new Uint8Array(matrix.byteLength));
    const FLOAT32 = TYPES.indexOf('f32');
    const params = new Uint8Array(260);
    for (const [offset, address] of [
      [0, device],
      [128, device + MOST],
    ] as const)
      params.set(
        cu.cuTensorMapEncodeTiled(
          ...([FLOAT32, 2, address, [width, height], [4 * width], [COLUMNS, ROWS]] as const),
          ...([[1, 1], 0, 3, 0, 0] as const),
        ),
        offset,
      );
    new DataView(params.buffer).setUint32(256, Math.ceil(height / ROWS), true);
    launch(functionOf(kernel(stages)), params, { grid: Math.ceil(width / COLUMNS), block: 64 });
    const given = new Float32Array(download(device + MOST, matrix.byteLength).slice().buffer);
    expect([...given]).toEqual([...matrix].map((value) => value + 1));
  });
});
