// Loops over memory with the grid's stride and any number of turns: units are suspended in them
// every few turns, whole or while some of their threads have left, and values that are needed after
// a loop are there.

import * as fc from '../../../test/fast-check.js';
import { expect, test } from 'vitest';

import { kernelText } from '../../ptx/run-grid.test-support.js';
import { CrewDevice } from './crew-device.test-support.js';

/** The word that ends a thread's loop. */
const LAST = 777;

interface Shape {
  blocks: number;
  threads: number;
  /** Number of words: a multiple of the threads, and some more or less. */
  turns: number;
  more: number;
  seed: number;
  /**
   * Factors of registers that are set before the loop and used after it; of the thread's number, or
   * of the block's.
   */
  before: { factor: number; of: 'thread' | 'block' }[];
  barrier: boolean;
  /** A barrier before the loop, so that it is not where the kernel begins. */
  shared: boolean;
  loops: 1 | 2;
  /** Additional work of a turn. */
  breaks: boolean;
  selects: boolean;
  counts: boolean;
  stores: boolean;
}

const shapes: fc.Arbitrary<Shape> = fc.record({
  blocks: fc.constantFrom(2, 3, 7, 32, 64),
  threads: fc.constantFrom(64, 70, 96, 128, 256),
  turns: fc.integer({ min: 0, max: 26 }),
  more: fc.constantFrom(-1, 0, 1, 31, 33, 97, 353),
  seed: fc.nat(),
  before: fc.array(
    fc.record({ factor: fc.integer({ min: 1, max: 9 }), of: fc.constantFrom('thread', 'block') }),
    { minLength: 1, maxLength: 5 },
  ),
  barrier: fc.boolean(),
  shared: fc.boolean(),
  loops: fc.constantFrom(1, 2),
  breaks: fc.boolean(),
  selects: fc.boolean(),
  counts: fc.boolean(),
  stores: fc.boolean(),
});

function textOf({
  before,
  barrier,
  shared,
  loops,
  breaks,
  selects,
  counts,
  stores,
}: Shape): string {
  const loop = (name: string): string => `
    mov.u32 %r11, %r5; setp.ge.u32 %p0, %r11, %r0;
    @%p0 bra ${name}_end;
  ${name}:
    mul.wide.u32 %rd4, %r11, 4; add.s64 %rd5, %rd0, %rd4; ld.global.u32 %r12, [%rd5];
    and.b32 %r13, %r12, 1; setp.eq.u32 %p1, %r13, 0;
    ${selects ? 'selp.u32 %r14, %r12, 5, %p1;' : 'mov.u32 %r14, %r12;'} add.u32 %r10, %r10, %r14;
    ${counts ? '@%p1 add.u32 %r15, %r15, 1;' : ''}
    ${stores ? 'st.global.u32 [%rd5], %r12;' : ''}
    ${breaks ? `setp.eq.u32 %p2, %r12, ${LAST}; @%p2 bra ${name}_end;` : ''}
    add.u32 %r11, %r11, %r6; setp.lt.u32 %p0, %r11, %r0;
    @%p0 bra ${name};
  ${name}_end:`;
  const set = before.map(
    ({ factor, of }, i) => `mul.lo.u32 %r${20 + i}, ${of === 'thread' ? '%r5' : '%r1'}, ${factor};`,
  );
  const exchange =
    'shl.b32 %r30, %r3, 2; mov.u32 %r31, own; add.u32 %r31, %r31, %r30; ' +
    'st.shared.u32 [%r31], %r5; bar.sync 0; ld.shared.u32 %r10, [%r31];';
  return kernelText(
    'sums',
    '.param .u64 p0, .param .u64 p1, .param .u32 p2',
    `
    .reg .pred %p<8>; .reg .b32 %r<40>; .reg .b64 %rd<8>; .shared .align 4 .b32 own[256];
    ld.param.u64 %rd0, [p0]; ld.param.u64 %rd1, [p1]; ld.param.u32 %r0, [p2];
    mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.x; mov.u32 %r4, %nctaid.x;
    mad.lo.u32 %r5, %r1, %r2, %r3; mul.lo.u32 %r6, %r2, %r4;
    mul.wide.u32 %rd2, %r5, 4; add.s64 %rd3, %rd1, %rd2;
    ${set.join(' ')}
    setp.gt.u32 %p5, %r3, 16; mov.u32 %r10, 0; mov.u32 %r15, 0;
    ${shared ? exchange : ''}
    ${loop('first')}
    ${loops === 2 ? loop('second') : ''}
    ${barrier ? 'bar.sync 0;' : ''}
    ${before.map((_, i) => `add.u32 %r10, %r10, %r${20 + i};`).join(' ')}
    @%p5 add.u32 %r10, %r10, 100000;
    add.u32 %r10, %r10, %r15; st.global.u32 [%rd3], %r10;
    ret;`,
  );
}

/** The kernel's results, thread by thread. */
function wantedOf(
  { blocks, threads, before, shared, loops, breaks, selects, counts }: Shape,
  words: Uint32Array,
): number[] {
  const all = blocks * threads;
  return Array.from({ length: all }, (_, thread) => {
    const block = Math.floor(thread / threads);
    let sum = shared ? thread : 0;
    for (let loop = 0; loop < loops; loop++) {
      for (let i = thread; i < words.length; i += all) {
        const word = words[i]!;
        sum += selects && word % 2 === 1 ? 5 : word;
        if (counts && word % 2 === 0) sum++;
        if (breaks && word === LAST) break;
      }
    }
    for (const { factor, of } of before) sum += factor * (of === 'thread' ? thread : block);
    return thread % threads > 16 ? sum + 100_000 : sum;
  });
}

test.each([1, 3])('any number of turns, with %i workers', { tags: 'random' }, (workers) => {
  fc.assert(
    fc.property(shapes, (shape) => {
      const { blocks, threads, turns, more, seed } = shape;
      const device = new CrewDevice(workers, {}, { lanes: 'all', memoryBytes: 2 ** 24 });
      try {
        const count = Math.max(0, blocks * threads * turns + more);
        const words = device.array(Uint32Array, Math.max(1, count));
        let state = seed | 1;
        for (let i = 0; i < count; i++) {
          state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
          words.view[i] = state % 67 === 0 ? LAST : state >>> 22;
        }
        const wanted = wantedOf(shape, words.view.slice(0, count));
        const sums = device.array(Uint32Array, blocks * threads);
        device.launch(
          device.kernel(textOf(shape), 'sums'),
          [blocks],
          [threads],
          [[words.at], [sums.at], count],
        );
        device.finish();
        expect([...sums.view]).toEqual(wanted);
      } finally {
        device.close();
      }
    }),
    { numRuns: 60 },
  );
});
