/** Threads that synchronise, and the errors where they cannot. */
import { expect, test } from 'vitest';
import { TreeBuilder } from '../tree-builder.test-support.js';
import type { Expression } from '../tree.js';
import { SimulationError } from './failure.js';
import { simulateKernel } from './simulate.js';

function failure(run: () => void): SimulationError {
  try {
    run();
  } catch (error) {
    if (error instanceof SimulationError) return error;
    throw error;
  }
  throw new Error('nothing was thrown');
}

test('a block sums through shared memory and barriers', () => {
  const t = new TreeBuilder('sum');
  const out = t.tensor('out', 'i32', 'output');
  const tile = t.array('tile', 'shared', 'i32', 64);
  const [x, half] = [t.threadX, t.local('half', 'i32')];
  const tree = t.tree(
    t.store(tile, x, t.add(x, t.blockX)),
    t.sync(),
    t.set(half, t.i32(32)),
    t.loop(t.compare('gt', half, t.i32(0)), [t.set(half, t.binary('shr', half, t.u32(1)))], () => [
      t.if(t.compare('lt', x, half), [
        t.store(tile, x, t.add(t.load(tile, x), t.load(tile, t.add(x, half)))),
      ]),
      t.sync(),
    ]),
    t.if(t.compare('eq', x, t.i32(0)), [t.store(out, t.blockX, t.load(tile, t.i32(0)))]),
  );
  const args = { out: new Int32Array(3) };
  simulateKernel(tree, { grid: 3, block: 64, args });
  expect([...args.out]).toEqual([2016, 2080, 2144]);
});

const lanes = (make: (t: TreeBuilder, lane: Expression) => Expression, block = 32): number[] => {
  const t = new TreeBuilder('lanes');
  const out = t.tensor('out', 'i32', 'output');
  const value = make(t, t.special('lane'));
  const args = { out: new Int32Array(block) };
  simulateKernel(
    t.tree(t.store(out, t.threadX, value.type === 'i32' ? value : t.convert('i32', value))),
    { grid: 1, block, args },
  );
  return [...args.out];
};
const range = (value: (lane: number) => number, count = 32): number[] =>
  Array.from({ length: count }, (_, lane) => value(lane));

test('shuffles read other lanes, or their own lane beyond the bounds of the segment', () => {
  expect(lanes((t, lane) => t.shuffle('idx', t.mul(lane, t.i32(10)), t.i32(5)))).toEqual(
    range(() => 50),
  );
  expect(lanes((t, lane) => t.shuffle('up', lane, t.i32(3)))).toEqual(
    range((lane) => (lane < 3 ? lane : lane - 3)),
  );
  expect(lanes((t, lane) => t.shuffle('down', lane, t.i32(3)))).toEqual(
    range((lane) => (lane > 28 ? lane : lane + 3)),
  );
  expect(lanes((t, lane) => t.shuffle('bfly', lane, t.i32(16)))).toEqual(
    range((lane) => lane ^ 16),
  );
  expect(lanes((t, lane) => t.shuffle('idx', lane, t.i32(9), t.u32(0xffffffff), 8))).toEqual(
    range((lane) => (lane & 24) | 1),
  );
  expect(lanes((t, lane) => t.shuffle('down', lane, t.i32(2), t.u32(0xffffffff), 4))).toEqual(
    range((lane) => ((lane & 3) < 2 ? lane + 2 : lane)),
  );
  expect(lanes((t, lane) => t.shuffle('up', lane, t.i32(1), t.u32(0xffffffff), 4))).toEqual(
    range((lane) => ((lane & 3) < 1 ? lane : lane - 1)),
  );
  expect(lanes((t, lane) => t.shuffle('bfly', lane, t.i32(4), t.u32(0xffffffff), 4))).toEqual(
    range((lane) => ((lane ^ 4) > (lane | 3) ? lane : lane ^ 4)),
  );
});

test("a warp at the block's end has fewer lanes", () => {
  expect(lanes((t, lane) => t.vote('ballot', t.compare('ge', lane, t.i32(0))), 40)).toEqual(
    range((at) => (at < 32 ? -1 : 255), 40),
  );
});

test('votes, matches and counting barriers', () => {
  const isOdd = (t: TreeBuilder, lane: Expression) =>
    t.compare('eq', t.binary('and', lane, t.i32(1)), t.i32(1));
  expect(lanes((t, lane) => t.vote('ballot', isOdd(t, lane)))).toEqual(range(() => 0xaaaaaaaa | 0));
  expect(lanes((t, lane) => t.vote('any', isOdd(t, lane)))).toEqual(range(() => 1));
  expect(lanes((t, lane) => t.vote('all', isOdd(t, lane)))).toEqual(range(() => 0));
  expect(lanes((t, lane) => t.vote('uni', isOdd(t, lane)))).toEqual(range(() => 0));
  expect(lanes((t, lane) => t.match(t.binary('rem', lane, t.i32(4))))).toEqual(
    range((lane) => (0x11111111 << (lane % 4)) | 0),
  );
  expect(lanes((t, lane) => t.reduce('count', isOdd(t, lane)), 64)).toEqual(range(() => 32, 64));
  expect(lanes((t, lane) => t.reduce('or', isOdd(t, lane)), 64)).toEqual(range(() => 1, 64));
  expect(lanes((t, lane) => t.reduce('and', isOdd(t, lane)), 64)).toEqual(range(() => 0, 64));
});

test('lanes of two masks synchronise separately, and activemask gives the lanes', () => {
  const t = new TreeBuilder('masks');
  const out = t.tensor('out', 'i32', 'output');
  const lane = t.special('lane');
  const tree = t.tree(
    t.if(
      t.compare('lt', lane, t.i32(8)),
      [t.store(out, lane, t.shuffle('idx', lane, t.i32(7), t.u32(0xff))), t.syncWarp(t.u32(0xff))],
      [t.store(out, lane, t.convert('i32', t.activemask()))],
    ),
  );
  const args = { out: new Int32Array(32) };
  simulateKernel(tree, { grid: 1, block: 32, args });
  expect([...args.out]).toEqual(range((at) => (at < 8 ? 7 : 0xffffff00 | 0)));
});

test('activemask at two places gives the lanes of each place', () => {
  const t = new TreeBuilder('places');
  const out = t.tensor('out', 'u32', 'output');
  const isEven = t.compare('eq', t.binary('and', t.special('lane'), t.i32(1)), t.i32(0));
  const ask = () => t.store(out, t.threadX, t.activemask());
  const args = { out: new Uint32Array(64) };
  simulateKernel(t.tree(t.if(isEven, [ask()], [ask()])), { grid: 1, block: 64, args });
  expect([...args.out]).toEqual(range((at) => (at % 2 === 0 ? 0x55555555 : 0xaaaaaaaa), 64));
});

test('a barrier of the grid lets blocks read what others wrote', () => {
  const t = new TreeBuilder('grid');
  const a = t.tensor('a', 'i32');
  const i = t.globalX;
  const tree = t.tree(
    t.store(a, i, i),
    t.sync('grid'),
    t.store(a, t.add(i, t.i32(8)), t.load(a, t.binary('sub', t.i32(7), i))),
  );
  const args = { a: new Int32Array(16) };
  simulateKernel(tree, { grid: 4, block: 2, args });
  expect([...args.a.subarray(8)]).toEqual([7, 6, 5, 4, 3, 2, 1, 0]);
});

test('a loop that waits for another thread lets it run', () => {
  const t = new TreeBuilder('waits');
  const flag = t.tensor('flag', 'i32');
  const seen = t.compare('eq', t.load(flag, t.i32(0), undefined, 'volatile'), t.i32(0));
  const tree = t.tree(
    t.if(
      t.compare('eq', t.threadX, t.i32(0)),
      [t.loop(seen, [], () => []), t.store(flag, t.i32(1), t.i32(5))],
      [t.store(flag, t.i32(0), t.i32(1))],
    ),
  );
  const args = { flag: new Int32Array(2) };
  simulateKernel(tree, { grid: 1, block: 2, args });
  expect([...args.flag]).toEqual([1, 5]);
});

test("dynamic shared memory has the launch's bytes, one memory for all its arrays", () => {
  const t = new TreeBuilder('dynamic');
  const out = t.tensor('out', 'u32', 'output');
  const floats = t.array('floats', 'dynamic', 'f32');
  const words = t.array('words', 'dynamic', 'u32');
  const tree = t.tree(
    t.store(floats, t.threadX, t.f32(1)),
    t.sync(),
    t.store(out, t.threadX, t.load(words, t.threadX)),
  );
  const args = { out: new Uint32Array(4) };
  simulateKernel(tree, { grid: 1, block: 4, sharedBytes: 16, args });
  expect([...args.out]).toEqual([0x3f800000, 0x3f800000, 0x3f800000, 0x3f800000]);
  expect(
    failure(() => {
      simulateKernel(tree, { grid: 1, block: 4, sharedBytes: 12, args });
    }).message,
  ).toContain("'floats' has 3 elements, and element 3 was written");
});

const OUT_OF_BOUNDS = `({ y }, gpu) => {
  const i = gpu.globalId.x;
  y[i] = 1;
}`;

function outOfBounds() {
  const t = new TreeBuilder('fill', OUT_OF_BOUNDS);
  const y = t.tensor('y', 'f32', 'output');
  return t.tree(t.at('y[i] = 1;', () => t.store(y, t.globalX, t.f32(1))));
}

test('an index out of bounds names tensor, index, length, thread, block and line', () => {
  const error = failure(() => {
    simulateKernel(outOfBounds(), { grid: 3, block: 4, args: { y: new Float32Array(10) } });
  });
  expect(error).toMatchObject({
    kind: 'bounds',
    thread: [2, 0, 0],
    block: [2, 0, 0],
    position: { line: 3, column: 3 },
  });
  expect(error.message).toBe(
    "kernel 'fill': 'y' has 10 elements, and element 10 was written. Compare the index with the " +
      'length before, as in if (i < y.length). Thread (2, 0, 0) of block (2, 0, 0), at <kernel ' +
      'fill>:3:3.\n\n  3 | y[i] = 1;\n    | ^^^^^^^^^',
  );
});

test("the place is in the user's file where it is known", () => {
  const error = failure(() => {
    simulateKernel(outOfBounds(), {
      grid: 1,
      block: 1,
      args: { y: new Float32Array(0) },
      locate: () => ({ file: '/app/src/fill.ts', line: 12, column: 3, codeLine: '  y[i] = 1;' }),
    });
  });
  expect(error.message).toContain('at /app/src/fill.ts:12:3.');
  expect(error.message).toContain('  12 | y[i] = 1;\n     | ^^^^^^^^^');
});

test('a read of unwritten shared memory is an error, or gives zeros', () => {
  const t = new TreeBuilder('unwritten');
  const out = t.tensor('out', 'f32', 'output');
  const tile = t.array('tile', 'shared', 'f32', 4);
  const tree = t.tree(
    t.store(tile, t.threadX, t.f32(1)),
    t.store(out, t.threadX, t.load(tile, t.i32(1))),
  );
  const args = { out: new Float32Array(4) };
  expect(
    failure(() => {
      simulateKernel(tree, { grid: 1, block: 2, args });
    }),
  ).toMatchObject({ kind: 'uninitialized', thread: [0, 0, 0] });
  simulateKernel(tree, { grid: 1, block: 2, args, checkUninitialized: false });
  expect([...args.out]).toEqual([0, 1, 0, 0]);
});

const EARLY = `({ n }, gpu) => {
  if (gpu.threadIdx.x >= 30) return;
  gpu.block.sync();
}`;

test('a thread that ends before a barrier: waiting threads, place and missing threads', () => {
  const t = new TreeBuilder('early', EARLY);
  const tree = t.tree(
    t.if(t.compare('ge', t.threadX, t.i32(30)), [t.return()]),
    t.at('gpu.block.sync()', () => t.sync()),
  );
  const error = failure(() => {
    simulateKernel(tree, { grid: 1, block: 32, args: {} });
  });
  expect(error.kind).toBe('deadlock');
  expect(error.message).toContain(
    'threads wait for gpu.block.sync while threads (30, 0, 0), (31, 0, 0) have ended',
  );
  expect(error.message).toContain(
    'gpu.block.sync at <kernel early>:3:3: (0, 0, 0), (1, 0, 0), (2, 0, 0), (3, 0, 0), (4, ' +
      '0, 0), (5, 0, 0), (6, 0, 0), (7, 0, 0) and 22 more',
  );
});

test('threads at different barriers: the error names both places', () => {
  const t = new TreeBuilder('apart', 'gpu.block.sync(); gpu.warp.sync();');
  const tree = t.tree(
    t.if(
      t.compare('lt', t.threadX, t.i32(1)),
      [t.at('gpu.block.sync()', () => t.sync())],
      [t.at('gpu.warp.sync()', () => t.syncWarp())],
    ),
  );
  const error = failure(() => {
    simulateKernel(tree, { grid: 1, block: 4, args: {} });
  });
  expect(error.message).toContain(
    'threads wait for gpu.block.sync while others wait for gpu.warp.sync',
  );
  expect(error.message).toContain(
    'gpu.warp.sync at <kernel apart>:1:19: (1, 0, 0), (2, 0, 0), (3, 0, 0)',
  );
});

test('a shuffle among lanes of which one has ended', () => {
  const t = new TreeBuilder('left');
  const tree = t.tree(
    t.if(t.compare('eq', t.special('lane'), t.i32(3)), [t.return()]),
    t.evaluate(t.shuffle('idx', t.threadX, t.i32(0))),
  );
  expect(
    failure(() => {
      simulateKernel(tree, { grid: 1, block: 32, args: {} });
    }).message,
  ).toContain('threads wait for gpu.warp.shuffle while thread (3, 0, 0) has ended');
});

test("a mask that does not name the thread's own lane", () => {
  const t = new TreeBuilder('mask');
  expect(
    failure(() => {
      simulateKernel(t.tree(t.syncWarp(t.u32(1))), { grid: 1, block: 2, args: {} });
    }),
  ).toMatchObject({ kind: 'mask', thread: [1, 0, 0] });
});

test('assertions and traps end the grid', () => {
  const t = new TreeBuilder('ends');
  const args = {};
  const error = failure(() => {
    simulateKernel(t.tree(t.assert(t.compare('lt', t.globalX, t.i32(5)), 'i < 5')), {
      grid: 4,
      block: 2,
      args,
    });
  });
  expect(error).toMatchObject({ kind: 'assert', thread: [1, 0, 0], block: [2, 0, 0] });
  expect(error.message).toContain("the assertion 'i < 5' failed");
  expect(
    failure(() => {
      simulateKernel(new TreeBuilder('traps').tree(t.trap()), { grid: 1, block: 1, args });
    }).kind,
  ).toBe('trap');
});

test.each([
  [{}, "needs 'y', a tensor, but got nothing"],
  [
    { y: new Float64Array(1) },
    "'y' is a tensor of f32, but got a Float64Array. Pass a Float32Array.",
  ],
  [{ y: new Float32Array(1), z: 1 }, "has no parameter 'z'. It takes y."],
  [
    { y: { data: new Float32Array(1), shape: [2] } },
    'has the shape [2], which needs 2 elements, but its array has 1',
  ],
])('arguments that do not fit: %o', (args, message) => {
  expect(() => {
    simulateKernel(outOfBounds(), { grid: 1, block: 1, args });
  }).toThrow(message);
});

test('scalars that do not fit', () => {
  const t = new TreeBuilder('scalars');
  t.scalar('n', 'u8');
  t.scalar('flag', 'bool');
  const run = (n: number, flag: unknown) => () => {
    simulateKernel(t.tree(), { grid: 1, block: 1, args: { n, flag: flag as boolean } });
  };
  expect(run(255, true)).not.toThrow();
  expect(run(256, true)).toThrow(
    "'n' is a u8, but got 256 (number). Pass an integer that 8 bits hold, from 0.",
  );
  expect(run(1.5, true)).toThrow('Pass an integer');
  expect(run(1, 1)).toThrow("'flag' is a bool, but got 1 (number). Pass true or false.");
});

test('grids and blocks that no device takes', () => {
  expect(() => {
    simulateKernel(outOfBounds(), { grid: 0, block: 1, args: { y: new Float32Array(1) } });
  }).toThrow('grid.x must be a whole number from 1, but is 0');
  expect(() => {
    simulateKernel(outOfBounds(), { grid: 1, block: [32, 64], args: { y: new Float32Array(1) } });
  }).toThrow('a block has at most 1024 threads, but block is 32 × 64 × 1');
});
