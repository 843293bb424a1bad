import { describe, expect, it } from 'vitest';
import type { ArrayMethods, AsyncCopies, Block, Fast, Fences, Gpu, Grid, Warp } from '../gpu.js';
import { gpuNamesIn } from './gpu-names.js';

/**
 * The type checker's names: a name that is added to gpu.ts stops this file from compiling until it
 * is here.
 */
const names = {
  '': {
    threadIdx: 0,
    blockIdx: 0,
    blockDim: 0,
    gridDim: 0,
    globalId: 0,
    globalSize: 0,
    lane: 0,
    warpIdx: 0,
    warpSize: 0,
    shared: 0,
    dynamicShared: 0,
    local: 0,
    warp: 0,
    block: 0,
    grid: 0,
    fence: 0,
    async: 0,
    fast: 0,
    i8: 0,
    u8: 0,
    i16: 0,
    u16: 0,
    i32: 0,
    u32: 0,
    i64: 0,
    u64: 0,
    f16: 0,
    bf16: 0,
    f32: 0,
    f64: 0,
    bits: 0,
    fromBits: 0,
    fma: 0,
    rsqrt: 0,
    rint: 0,
    erf: 0,
    mulhi: 0,
    popcount: 0,
    clz: 0,
    reverseBits: 0,
    copysign: 0,
    clamp: 0,
    atomicAdd: 0,
    atomicMin: 0,
    atomicMax: 0,
    atomicAnd: 0,
    atomicOr: 0,
    atomicXor: 0,
    atomicExchange: 0,
    atomicCompareExchange: 0,
    volatileLoad: 0,
    volatileStore: 0,
    streamingLoad: 0,
    streamingStore: 0,
    unroll: 0,
    clock: 0,
    globalTimer: 0,
    trap: 0,
  } satisfies Record<keyof Gpu, 0>,
  warp: {
    shuffle: 0,
    shuffleDown: 0,
    shuffleUp: 0,
    shuffleXor: 0,
    sum: 0,
    max: 0,
    min: 0,
    any: 0,
    all: 0,
    ballot: 0,
    match: 0,
    activeMask: 0,
    sync: 0,
    mma: 0,
    mmaTf32: 0,
    loadMatrices: 0,
    loadMatricesTransposed: 0,
  } satisfies Record<keyof Warp, 0>,
  block: { sync: 0, count: 0, any: 0, all: 0, sum: 0, max: 0, min: 0 } satisfies Record<
    keyof Block,
    0
  >,
  grid: { sync: 0 } satisfies Record<keyof Grid, 0>,
  fence: { block: 0, device: 0, system: 0 } satisfies Record<keyof Fences, 0>,
  async: { copy: 0, commit: 0, wait: 0 } satisfies Record<keyof AsyncCopies, 0>,
  fast: {
    div: 0,
    rcp: 0,
    sqrt: 0,
    rsqrt: 0,
    exp2: 0,
    exp: 0,
    log2: 0,
    log: 0,
    sin: 0,
    cos: 0,
    tanh: 0,
  } satisfies Record<keyof Fast, 0>,
  shared: {
    i8: 0,
    u8: 0,
    i16: 0,
    u16: 0,
    i32: 0,
    u32: 0,
    i64: 0,
    u64: 0,
    f16: 0,
    bf16: 0,
    f32: 0,
    f64: 0,
    bool: 0,
  } satisfies Record<keyof ArrayMethods, 0>,
};

describe('the names of gpu', () => {
  it.each(Object.entries(names))('gpu.%s has what gpu.ts declares', (path, declared) => {
    expect(
      gpuNamesIn(path)
        .filter((name) => !(path === '' && name === 'bool'))
        .sort(),
    ).toEqual(Object.keys(declared).sort());
  });

  it.each(['local', 'dynamicShared'])('gpu.%s has a method for each dtype', (path) =>
    expect(gpuNamesIn(path).sort()).toEqual(Object.keys(names.shared).sort()),
  );
});
