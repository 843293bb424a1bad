// mbarrier against a model of its phases, thread by thread and in lanes: many barriers each with
// its own sequence of operations, and one barrier that threads leave one after the other.

import { describe, expect, it } from 'vitest';
import { STATUS } from '../index.js';
import { Grid, kernelText } from '../run-grid.test-support.js';
import { someOf } from '../../../test/random-runs.js';

const THREADS = 64;
const LAUNCH = { grid: [1], block: [THREADS] } as const;

function random(seed: number): (limit: number) => number {
  let state = BigInt(seed) * 0x9e3779b97f4a7c15n + 1n;
  return (limit) => {
    state = BigInt.asUintN(64, state * 6364136223846793005n + 1442695040888963407n);
    return Number((state >> 33n) % BigInt(limit));
  };
}

/** A phase by the ISA: it ends when nothing is pending and all announced bytes have come. */
class Phases {
  phase = 0;
  expected: number;
  pending: number;
  bytes = 0;
  constructor(count: number) {
    this.expected = this.pending = count;
  }
  arrive(count: number): { phase: number; pending: number } {
    const before = { phase: this.phase, pending: this.pending };
    this.pending -= count;
    this.turn();
    return before;
  }
  announce(bytes: number): void {
    this.bytes += bytes;
  }
  complete(bytes: number): void {
    this.bytes -= bytes;
    this.turn();
  }
  private turn(): void {
    if (this.pending !== 0 || this.bytes !== 0) return;
    this.phase++;
    this.pending = this.expected;
  }
}

/**
 * One instruction for all threads: %n is its count, and %p is false in threads that do not execute
 * it.
 */
const OPERATIONS = {
  arrive: '@%p mbarrier.arrive.shared.b64 %k, [%m];',
  'arrive of several': '@%p mbarrier.arrive.release.cta.shared::cta.b64 %k, [%m], %n;',
  'arrive unseen': '@%p mbarrier.arrive.shared.b64 _, [%m], %n;',
  'arrive without completing': '@%p mbarrier.arrive.noComplete.shared.b64 %k, [%m], %n;',
  'arrive and announce': '@%p mbarrier.arrive.expect_tx.shared.b64 %k, [%m], %n;',
  drop: '@%p mbarrier.arrive_drop.shared.b64 %k, [%m];',
  announce: '@%p mbarrier.expect_tx.relaxed.cta.shared.b64 [%m], %n;',
  complete: '@%p mbarrier.complete_tx.shared.b64 [%m], %n;',
  pending: '@%p mbarrier.pending_count.b64 %r, %k;',
  test: '@%p mbarrier.test_wait.shared.b64 %q, [%m], %k; selp.u32 %r, 1, 0, %q;',
  try: '@%p mbarrier.try_wait.shared.b64 %q, [%m], %k, %n; selp.u32 %r, 1, 0, %q;',
  'test parity':
    '@%p mbarrier.test_wait.parity.acquire.cta.shared::cta.b64 %q, [%m], %n; selp.u32 %r, 1, ' +
    '0, %q;',
} as const;
type Operation = keyof typeof OPERATIONS;

interface Thread {
  phases: Phases;
  token: { phase: number; pending: number } | undefined;
  result: number;
  passed: number;
}

/**
 * The operation's count if the ISA allows it now, with its effect on the model. Undefined: this
 * thread does not execute it.
 */
function apply(
  operation: Operation,
  { phases, token }: Thread,
  thread: Thread,
  below: (limit: number) => number,
): number | undefined {
  const { pending, bytes } = phases;
  switch (operation) {
    case 'arrive':
    case 'drop': {
      if (
        pending < 1 ||
        (operation === 'drop' && phases.expected < 2) ||
        (pending === 1 && bytes < 0)
      )
        return undefined;
      if (operation === 'drop') phases.expected--;
      thread.token = phases.arrive(1);
      return 1;
    }
    case 'arrive of several':
    case 'arrive unseen': {
      if (pending < 1) return undefined;
      const count = 1 + below(pending);
      if (count === pending && bytes < 0) return undefined;
      const given = phases.arrive(count);
      if (operation !== 'arrive unseen') thread.token = given;
      return count;
    }
    case 'arrive without completing': {
      if (pending < 2) return undefined;
      const count = 1 + below(pending - 1);
      thread.token = phases.arrive(count);
      return count;
    }
    case 'arrive and announce':
    case 'announce': {
      const count = 1 + below(500);
      if (operation === 'announce') {
        if (bytes + count === 0) return undefined;
        phases.announce(count);
        return count;
      }
      if (pending < 1 || (pending === 1 && bytes + count < 0)) return undefined;
      phases.announce(count);
      thread.token = phases.arrive(1);
      return count;
    }
    case 'complete': {
      // All that is missing, a part of it, or more than that.
      const count =
        bytes > 0
          ? below(2)
            ? bytes
            : 1 + below(bytes)
          : pending > 0
            ? 1 + below(100)
            : undefined;
      if (count !== undefined) phases.complete(count);
      return count;
    }
    case 'pending':
      if (token) thread.result = token.pending;
      return token && 0;
    case 'test':
    case 'try':
      // A token is valid for its phase and the next one.
      if (!token || phases.phase - token.phase > 1) return undefined;
      thread.passed = phases.phase === token.phase ? 0 : 1;
      return 5;
    case 'test parity': {
      const parity = below(2);
      thread.passed = (phases.phase & 1) === parity ? 0 : 1;
      return parity;
    }
  }
}

describe.each([false, true])('in lanes: %s', (simd) => {
  someOf(1, it)([1, 2, 3, 4, 5, 6])('barriers of one thread each, program %i', (seed) => {
    const below = random(seed);
    const names = Object.keys(OPERATIONS) as Operation[];
    const program = Array.from({ length: 60 }, () => names[below(names.length)]!);
    const counts = Uint32Array.from({ length: THREADS }, () => 1 + below(8));
    const inputs = new Int32Array(THREADS * program.length);
    const expected: number[] = [];
    for (let thread = 0; thread < THREADS; thread++) {
      const state: Thread = {
        phases: new Phases(counts[thread]!),
        token: undefined,
        result: 7,
        passed: 0,
      };
      program.forEach((operation, index) => {
        const count = below(5) === 0 ? undefined : apply(operation, state, state, below);
        inputs[thread * program.length + index] = count ?? -1;
        if (OPERATIONS[operation].includes('selp')) state.result = state.passed;
        expected.push(state.result, state.phases.phase & 1);
      });
    }
    // After each operation: the last result, and whether the phase is odd.
    const steps = program.map(
      (
        operation,
        index,
      ) => `ld.global.s32 %n, [%i+${4 * index}]; setp.ge.s32 %p, %n, 0; ${OPERATIONS[operation]}
      st.global.u32 [%o+${8 * index}], %r; mbarrier.test_wait.parity.shared.b64 %x, [%m], 0;
        selp.u32 %n, 1, 0, %x; st.global.u32 [%o+${8 * index + 4}], %n;`,
    );
    const grid = new Grid(
      kernelText(
        'k',
        '.param .u64 counts, .param .u64 in, .param .u64 out',
        `.reg .b64 %c, %i, %o, %a, %k; .reg .b32 %t, %m, %n, %r; .reg .pred %p, %q, %x;
          .shared .align 8 .b8 bars[${8 * THREADS}];
      ld.param.u64 %c, [counts]; ld.param.u64 %i, [in]; ld.param.u64 %o, [out];
      mov.u32 %t, %tid.x; mov.u32 %m, bars; mad.lo.u32 %m, %t, 8, %m; mul.wide.u32 %a, %t, 4;
      add.u64 %c, %c, %a; mov.b64 %k, 0;
      mul.wide.u32 %a, %t, ${4 * program.length}; add.u64 %i, %i, %a;
        mul.wide.u32 %a, %t, ${8 * program.length}; add.u64 %o, %o, %a; mov.u32 %r, 7;
          setp.ne.u32 %q, %r, 7;
      ld.global.u32 %n, [%c]; mbarrier.init.shared.b64 [%m], %n; ${steps.join('\n')} ret;`,
      ),
      { simd },
    );
    const [first, input, output] = [
      grid.put(counts),
      grid.put(inputs),
      grid.put(new Uint32Array(expected.length)),
    ];
    expect(
      grid.run(
        'k',
        [{ i64: first.address }, { i64: input.address }, { i64: output.address }],
        LAUNCH,
      ).status,
    ).toBe(STATUS.done);
    expect(grid.width('k', LAUNCH) > 1).toBe(simd);
    expect([...output.view]).toEqual(expected);
  });

  it.each([1, 2, 3])('one barrier that threads leave one after the other, seed %i', (seed) => {
    // Thread t goes %n rounds: it writes, waits, adds up what all others have written, and waits;
    // in its last wait it drops out.
    const below = random(seed);
    const rounds = Int32Array.from({ length: THREADS }, (_, thread) =>
      thread === 5 ? 9 : 1 + below(8),
    );
    const expected = [...rounds].map((own, thread) => {
      let sum = 0;
      for (let round = 0; round < own; round++) {
        for (let step = 1; step < THREADS; step *= 2) {
          const other = thread ^ step;
          // The threads that have left wrote for the last time in their last round.
          sum = (sum * 31 + 1000 * other + Math.min(round, rounds[other]! - 1)) | 0;
        }
      }
      return sum;
    });
    const wait = (label: string): string =>
      `${label}: mbarrier.try_wait.shared::cta.b64 %q, [%m], %k; @!%q bra ${label};`;
    const reads = Array.from(
      { length: Math.log2(THREADS) },
      (_, power) =>
        `xor.b32 %x, %t, ${2 ** power}; mad.lo.u32 %x, %x, 4, %s; ld.shared.u32 %y, [%x]; ` +
        'mad.lo.s32 %u, %u, 31, %y;',
    ).join(' ');
    const grid = new Grid(
      kernelText(
        'k',
        '.param .u64 in, .param .u64 out',
        `.reg .b64 %i, %o, %a, %k; .reg .b32 %t, %m, %n, %r, %s, %u, %v, %x, %y;
          .reg .pred %p, %q; .shared .align 8 .b8 bar[8];
          .shared .align 4 .b8 cells[${4 * THREADS}];
      ld.param.u64 %i, [in]; ld.param.u64 %o, [out]; mov.u32 %t, %tid.x;
      mul.wide.u32 %a, %t, 4; add.u64 %i, %i, %a; add.u64 %o, %o, %a; mov.u32 %m, bar;
      mov.u32 %s, cells; ld.global.u32 %n, [%i];
      setp.eq.u32 %p, %t, 0; @%p mbarrier.init.shared.b64 [%m], ${THREADS}; bar.sync 0;
      mov.u32 %r, 0; mov.u32 %u, 0;
      round: mul.lo.u32 %v, %t, 1000; add.u32 %v, %v, %r; mad.lo.u32 %x, %t, 4, %s;
      st.shared.u32 [%x], %v;
      mbarrier.arrive.release.cta.shared::cta.b64 %k, [%m]; ${wait('written')} ${reads}
      add.u32 %r, %r, 1; setp.lt.u32 %p, %r, %n; @!%p bra last;
      mbarrier.arrive.shared.b64 %k, [%m]; ${wait('read')} bra round;
      last: mbarrier.arrive_drop.shared.b64 _, [%m]; st.global.u32 [%o], %u; ret;`,
      ),
      { simd },
    );
    const [input, output] = [grid.put(rounds), grid.put(new Int32Array(THREADS))];
    expect(
      grid.run('k', [{ i64: input.address }, { i64: output.address }], {
        ...LAUNCH,
        maxCalls: 100_000,
        fuel: seed === 3 ? 50 : 5000,
      }).status,
    ).toBe(STATUS.done);
    expect(grid.width('k', LAUNCH) > 1).toBe(simd);
    expect([...output.view]).toEqual(expected);
  });
});
