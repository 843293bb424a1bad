/** The nodes of the tree for members of gpu, Math and console. */
import { describe, expect, it } from 'vitest';
import { bodyOf, errorOf, wholeOf } from './reading.test-support.js';

describe('barriers', () => {
  it.each([
    'if (gpu.threadIdx.x < 5) gpu.block.sync()',
    'const first = gpu.threadIdx.x === 0; if (first) { gpu.block.sync() }',
    'if (gpu.lane & 1) y[0] = gpu.block.sum(1)',
    'if (gpu.lane === 0 && y[0] > 1 ? false : gpu.warpIdx === 1) {} else if (gpu.warpIdx === ' +
      '1) gpu.block.any(true)',
    'for (let k = 0; k < 8; k++) { if (gpu.threadIdx.x === 3) break; gpu.block.sync(); }',
    'for (let k = 0; k < 8; k++) { gpu.block.sync(); if (k < 5) { if (gpu.threadIdx.x === 3) ' +
      'break; } }',
    'for (let k = 0; k < 8; k++) { if (gpu.lane > 3) continue; y[0] = gpu.block.sum(1); }',
    'a: for (;;) { for (;;) { if (gpu.lane > 3) break a; if (y[0] > 1) break; } ' +
      'gpu.block.sync(); }',
    'if (gpu.threadIdx.x === 3) gpu.grid.sync()',
  ])('are rejected where not all threads reach them: %s', (code) => {
    expect(errorOf(`({ y }, gpu) => { ${code}; }`).what).toBe(
      'Not all threads of the block reach this barrier: a condition on the way to it ' +
        'depends on the thread',
    );
  });
  it.each([
    'if (y.length > 5) gpu.block.sync()',
    'if (gpu.globalId.x < y.length) gpu.block.sync()',
    'if (gpu.threadIdx.x < 1024) gpu.block.sync()',
    'if (gpu.blockIdx.x === 0) gpu.block.sync()',
    'if (gpu.lane === 0) gpu.warp.sync(1)',
    'if (gpu.threadIdx.x > 20) return; gpu.block.sync()',
    'for (let k = 0; k < 8; k++) { gpu.block.sync(); if (gpu.lane > 3) continue; y[0] = 1; }',
    'for (;;) { if (gpu.lane > 3) break; y[0] = 1; } gpu.block.sync()',
    'for (let k = 0; k < 8; k++) { if (y[0] > 3) break; gpu.block.sync(); }',
  ])('are accepted where all threads may reach them: %s', (code) => {
    expect(wholeOf(`({ y }, gpu) => { ${code}; }`)).toContain('barrier');
  });
  it.each([
    'y[0] = gpu.warp.sum(1)',
    'y[0] = gpu.warp.shuffle(2, 0)',
    'if (gpu.warp.any(x[0] > 0)) y[0] = 1',
    'gpu.warp.sync()',
  ])('of a whole warp are rejected where not all lanes reach them: %s', (code) => {
    for (const test of ['gpu.lane < 5', 'gpu.threadIdx.x !== 7']) {
      const error = errorOf(`({ y, x }, gpu) => { if (${test}) { ${code}; } }`);
      expect(error.what).toBe(
        'Not all lanes of the warp reach this operation: the condition around it depends on the ' +
          'lane',
      );
      expect(error.fix).toContain('pass their mask');
    }
    for (const test of ['gpu.warpIdx === 0', 'gpu.threadIdx.x < 32', 'x[gpu.threadIdx.x] > 0'])
      wholeOf(`({ y, x }, gpu) => { if (${test}) { ${code}; } }`);
  });
  it('with a mask are accepted', () =>
    expect(
      wholeOf(
        '({ y, x }, gpu) => { if (gpu.lane < 5) y[0] = gpu.warp.shuffle(x[gpu.lane], 0, 31); }',
      ),
    ).toContain('31'));
  it('of the grid are rejected where not all blocks reach them', () =>
    expect(errorOf('({ y }, gpu) => { if (gpu.blockIdx.x === 0) gpu.grid.sync(); }').what).toBe(
      'Not all blocks of the grid reach this barrier: a condition on the way to it depends ' +
        'on the block',
    ));
  it('of the grid make the kernel cooperative', () =>
    expect(wholeOf('({ y }, gpu) => { gpu.grid.sync(); }')).toBe('()\ncooperative\nbarrier grid'));
});

describe('gpu', () => {
  it.each([
    ['y[0] = gpu.f16(s_f64)', 'y[0] = narrow.f16(f32(s_f64))'],
    ['y_i32[0] = gpu.i8(s_f32)', 'y_i32[0] = narrow.i8(i32(s_f32))'],
    ['y_i32[0] = gpu.i32(2.7) + gpu.i32(1e300)', 'y_i32[0] = add.i32(2, 2147483647)'],
    ['y_u32[0] = gpu.bits(s_f32)', 'y_u32[0] = bits.u32(s_f32)'],
    ['y[0] = gpu.fromBits(0xff800000)', 'y[0] = bits.f32(4286578688:u32)'],
    ['y_f64[0] = gpu.fromBits(s_u64)', 'y_f64[0] = bits.f64(s_u64)'],
    ['y[0] = gpu.clamp(s_f32, 0, 1)', 'y[0] = min.f32(max.f32(s_f32, 0:f32), 1:f32)'],
    ['y[0] = gpu.fma(s_f32, 2, s_i32)', 'y[0] = fma.f32(s_f32, 2:f32, f32(s_i32))'],
    [
      'y_i32[0] = gpu.popcount(s_u64) + gpu.clz(s_u32)',
      'y_i32[0] = add.i32(popc(s_u64), clz(s_u32))',
    ],
    ['y_u32[0] = gpu.mulhi(s_u32, 3)', 'y_u32[0] = mulhi.u32(s_u32, 3:u32)'],
    [
      'y[0] = gpu.fast.exp(s_f32)',
      `y[0] = approx.ex2(mul.f32(s_f32, ${Math.fround(Math.LOG2E)}:f32))`,
    ],
    ['y[0] = gpu.rsqrt(s_f32)', 'y[0] = div.f32(1:f32, sqrt(s_f32))'],
    ['y[0] = gpu.atomicAdd(y, 1, 2)', 'before: f32 = atomic.add.f32(y[1], 2:f32)\ny[0] = before'],
    ['gpu.atomicCompareExchange(y_i32, 0, 1, 2)', 'before: i32 = atomic.cas.i32(y_i32[0], 1, 2)'],
    [
      'gpu.volatileStore(y, 0, gpu.volatileLoad(y_i32, 1))',
      'seen: i32 = volatile y_i32[1]\nvolatile y[0] = f32(seen)',
    ],
    [
      'gpu.streamingStore(y, 0, gpu.streamingLoad(x, 1))',
      'seen: f32 = streaming x[1]\nstreaming y[0] = seen',
    ],
    [
      'y_u32[0] = gpu.warp.ballot(s_i32, 0xff)',
      'vote: u32 = vote.ballot(ne.i32(s_i32, 0), 255:u32)\ny_u32[0] = vote',
    ],
    ['y_i32[0] = gpu.block.count(s_bool)', 'voted: i32 = barrier.count(s_bool)\ny_i32[0] = voted'],
    ['gpu.fence.block(); gpu.trap()', 'fence block\ntrap'],
    [
      'const s = gpu.warp; y[0] = s.shuffleXor(s_f32, 1)',
      'shuffled: f32 = shuffle.bfly.f32(s_f32, 1, 4294967295:u32)\ny[0] = shuffled',
    ],
    ['y_i32[0] = gpu.warpSize', 'y_i32[0] = 32'],
    ['y_i64[0] = gpu.clock()', 'clock: i64 = clock\ny_i64[0] = clock'],
  ])('%s', (code, tree) => expect(bodyOf(`${code};`)).toBe(tree));

  it.each([
    ['y[0] = gpu.threadidx.x', 'gpu has no threadidx', 'Write gpu.threadIdx.'],
    ['y[0] = gpu.threadIdx.X', 'gpu.threadIdx has no X', 'Write gpu.threadIdx.x.'],
    [
      'y[0] = Date.now()',
      '`Date.now` is not defined in a kernel',
      'gpu.globalTimer() gives nanoseconds, gpu.clock() cycles.',
    ],
    [
      'gpu.unroll(); y[0] = 1',
      'No loop follows this: gpu.unroll()',
      'Write it before the loop, in the same block.',
    ],
    [
      'for (let i = 0; i < 4; i++) { gpu.unroll(4); y[i] = 1 }',
      'No loop follows this: gpu.unroll(4)',
      'Write it before the loop, in the same block.',
    ],
    [
      'if (y[0] > 0) { gpu.unroll(); } for (let i = 0; i < 4; i++) y[i] = 1',
      'No loop follows',
      'Write it before the loop, in the same block.',
    ],
    [
      'gpu.atomicOr(y_f16, 0, 1)',
      'gpu.atomicOr cannot change f16',
      'For floats use gpu.atomicCompareExchange in a loop.',
    ],
    [
      'gpu.atomicOr(y, 0, 1)',
      'gpu.atomicOr cannot change f32',
      'For floats use gpu.atomicCompareExchange in a loop.',
    ],
    [
      'gpu.atomicAdd(y_u8, 0, 1)',
      'gpu.atomicAdd cannot change u8: it is for i16, u16, i32, u32, i64, u64, f16, bf16, f32, f64',
      'Use elements of 16 bits or more for what is changed together.',
    ],
  ])('%s names the alternative', (code, what, fix) => {
    const error = errorOf(`({ y, y_f16, y_u8 }, gpu) => { ${code}; }`);
    expect(error.what).toContain(what);
    expect(error.fix).toBe(fix);
  });

  it('sums a warp by a butterfly, of 32 lanes or fewer', () => {
    expect(
      bodyOf('y[0] = gpu.warp.sum(s_f32);')
        .split('\n')
        .filter((line) => line.includes('shuffle.bfly'))
        .map((line) => /v, (\d+),/.exec(line)![1]),
    ).toEqual(['16', '8', '4', '2', '1', '16', '8', '4', '2', '1']);
  });

  it.each([
    ['gpu.warp.nothing()', 'gpu.warp has no nothing'],
    [
      'gpu.atomicAdd(y[0], 1, 2)',
      'gpu.atomicAdd takes a tensor or an array, its index and a value, and got a number (f32)',
    ],
    [
      'gpu.atomicAnd(y, 0, 2)',
      'gpu.atomicAnd cannot change f32: it is for i16, u16, i32, u32, i64, u64',
    ],
    ['gpu.atomicMax(x, 0, 1)', 'x is an input, and this writes to it: gpu.atomicMax(x, 0, 1)'],
    ['gpu.fast.sin(s_f64)', 'gpu.fast.sin works in f32, and argument 1 is f64'],
    ['gpu.bits(s_i32)', 'gpu.bits takes a float, and got i32'],
    ['gpu.block.sum()', 'gpu.block.sum takes 1 argument, and got 0'],
    ['y[0] = gpu.threadIdx', 'gpu.threadIdx is a group of names, where a number is needed'],
    ['y[0] = gpu.f32', 'gpu.f32 is a function, where a number is needed'],
    ['gpu.atomicAdd(x, 0, 1)', 'x is an input, and this writes to it: gpu.atomicAdd(x, 0, 1)'],
  ])('refuses %s', (code, what) =>
    expect(errorOf(`({ y, x, s_i32, s_f64 }, gpu) => { ${code}; }`).what).toBe(what),
  );

  it('rejects an integer that becomes a float later', () =>
    expect(
      bodyOf('let o = 0; for (let k = 0; k < 2; k++) { y_u32[k] = gpu.bits(o); o = x[k]; }'),
    ).toContain('y_u32[k] = bits.u32(o)'));
});

describe('Math', () => {
  it.each([
    ['Math.max(s_f32, 1, s_i32)', 'max.f32(max.f32(s_f32, 1:f32), f32(s_i32))'],
    ['Math.floor(s_f32)', 'floor(s_f32)'],
    ['Math.trunc(s_i32 / 2)', 'f32(div.i32(s_i32, 2))'],
    ['Math.sqrt(s_i32)', 'sqrt(f32(s_i32))'],
    ['Math.sqrt(4)', '2:f32'],
    ['Math.fround(s_f64)', 'f32(s_f64)'],
    ['Math.imul(s_i32, 0x9e3779b9)', 'f32(mul.i32(s_i32, -1640531527))'],
    ['Math.clz32(s_u32)', 'f32(clz(i32(s_u32)))'],
    ['Math.abs(s_u32)', 'f32(s_u32)'],
    ['Math.PI', `${Math.fround(Math.PI)}:f32`],
    [
      'Math.round(s_f32)',
      'copysign.f32((ge.f32(sub.f32(s_f32, r), 0.5:f32) ? add.f32(r, 1:f32) : r), s_f32)',
    ],
  ])('%s', (code, tree) =>
    expect(bodyOf(`y[0] = ${code};`).split('\n').at(-1)).toBe(`y[0] = ${tree}`),
  );

  it('has no random numbers', () =>
    expect(errorOf('({ y }) => { y[0] = Math.random(); }').fix).toBe(
      'Use a generator that counts, such as Philox: its numbers are the same on every device.',
    ));
});

describe('console', () => {
  it('prints as printf does', () => {
    expect(bodyOf("console.log('a%', s_i32, s_u32, s_i64, s_f32, s_bool, `t`);")).toBe(
      'print "a%% %d %u %lld %g %d t\\n", s_i32, s_u32, s_i64, f64(s_f32), i32(s_bool)',
    );
  });
  it('asserts', () => {
    expect(bodyOf("console.assert(s_i32 < 5, 'too large'); console.assert(true);")).toBe(
      'assert lt.i32(s_i32, 5), "too large"',
    );
    expect(errorOf("({ y }, gpu) => { console.assert(y[0] < 5, 'too large', y[0]); }").what).toBe(
      'console.assert takes 1 to 2 arguments, and got 3',
    );
    expect(errorOf('({ y }) => { console.warn(1); }').what).toBe(
      'console.warn is not supported in a kernel',
    );
  });
});
