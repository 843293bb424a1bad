import * as fc from '../../../test/fast-check.js';
import { describe, expect, it } from 'vitest';
import { Code } from './code.js';
import { carriedLocals } from './live-locals.js';
import { ModuleBuilder } from './module.js';
import { scaled } from '../../../test/random-runs.js';

/** The locals with which programs compute; the counters of their loops come after them. */
const VALUES = 5;
const OUTER = VALUES;
const INNER = VALUES + 1;
const LOCALS = VALUES + 2;

type Statement =
  | { kind: 'set'; to: number; from: number; other: number; tee: boolean }
  | { kind: 'if'; value: number; then: Statement[]; otherwise: Statement[] | undefined }
  | { kind: 'leave'; value: number; body: Statement[]; rest: Statement[] }
  | { kind: 'switch'; value: number; body: Statement[]; rest: Statement[] }
  | { kind: 'return'; value: number }
  | { kind: 'vectors'; to: number; from: number };

const local = fc.nat(VALUES - 1);
const { statements } = fc.letrec<{ statements: Statement[]; statement: Statement }>((tie) => {
  const body = tie('statements') as fc.Arbitrary<Statement[]>;
  return {
    statements: fc.array(tie('statement') as fc.Arbitrary<Statement>, {
      maxLength: 5,
      depthIdentifier: 'statement',
    }),
    statement: fc.oneof(
      { depthSize: 'small', depthIdentifier: 'statement', maxDepth: 4 },
      fc.record({
        kind: fc.constant('set' as const),
        to: local,
        from: local,
        other: local,
        tee: fc.boolean(),
      }),
      fc.record({ kind: fc.constant('vectors' as const), to: local, from: local }),
      fc.record({ kind: fc.constant('return' as const), value: local }),
      fc.record({
        kind: fc.constant('if' as const),
        value: local,
        then: body,
        otherwise: fc.option(body, { nil: undefined }),
      }),
      fc.record({ kind: fc.constant('leave' as const), value: local, body, rest: body }),
      fc.record({ kind: fc.constant('switch' as const), value: local, body, rest: body }),
    ),
  };
});

function write(code: Code, program: readonly Statement[]): void {
  for (const statement of program) {
    switch (statement.kind) {
      case 'set':
        code
          .get(statement.from)
          .i32(31)
          .op('i32.mul')
          .get(statement.other)
          .op('i32.add')
          .i32(-123457)
          .op('i32.xor');
        if (statement.tee) code.tee(statement.to).op('drop');
        else code.set(statement.to);
        break;
      case 'vectors':
        // Operands of all kinds: lanes, constants, shuffles.
        code
          .get(statement.from)
          .op('i32x4.splat')
          .v128([1, 0x21212121, 3, 4])
          .op('i32x4.add')
          .v128([0, 0x0b0b0b0b, 0, 0])
          .shuffle([1, 4, 5, 2])
          .lane('i32x4.extract_lane', 1)
          .f32(2.5)
          .op('i32.trunc_sat_f32_s')
          .op('i32.add')
          .i64(0x210b0b21n)
          .op('i32.wrap_i64')
          .op('i32.add')
          .set(statement.to);
        break;
      case 'return':
        code.get(statement.value).i32(15).op('i32.and').op('i32.eqz').op('if').byte(0x40);
        code.get(statement.value).op('return').op('end');
        break;
      case 'if':
        code.get(statement.value).i32(1).op('i32.and').op('if').byte(0x40);
        write(code, statement.then);
        if (statement.otherwise) write(code.op('else'), statement.otherwise);
        code.op('end');
        break;
      case 'leave':
        code.op('block').byte(0x40);
        write(code, statement.body);
        code.get(statement.value).i32(2).op('i32.and').op('br_if').u32(0);
        write(code, statement.rest);
        code.op('end');
        break;
      case 'switch':
        code.op('block').byte(0x40).op('block').byte(0x40);
        write(code, statement.body);
        code
          .get(statement.value)
          .i32(3)
          .op('i32.and')
          .op('br_table')
          .u32(2)
          .u32(0)
          .u32(1)
          .u32(0)
          .op('end');
        write(code, statement.rest);
        code.op('end');
    }
  }
}

/** The function's bytes, and where the bodies of its two loops begin. */
function assemble(
  before: readonly Statement[],
  first: readonly Statement[],
  inner: readonly Statement[],
  after: readonly Statement[],
): { code: Uint8Array; loops: number[] } {
  const code = new Code();
  const loops: number[] = [];
  const loop = (counter: number, times: number, body: () => void): void => {
    code.i32(times).set(counter).op('loop').byte(0x40);
    loops.push(code.length);
    body();
    code.get(counter).i32(1).op('i32.sub').tee(counter).op('br_if').u32(0).op('end');
  };
  write(code, before);
  loop(OUTER, 5, () => {
    write(code, first);
    loop(INNER, 3, () => {
      write(code, inner);
    });
  });
  write(code, after);
  code.get(0).get(1).op('i32.xor');
  return { code: code.finish(), loops };
}

function run(code: Uint8Array, args: readonly number[]): number {
  const module = new ModuleBuilder();
  const index = module.reserve(
    'f',
    { params: Array.from({ length: VALUES }, () => 'i32' as const), results: ['i32'] },
    'f',
  );
  module.define(index, ['i32', 'i32'], new Code().append(code).op('end').finish());
  const { exports } = new WebAssembly.Instance(new WebAssembly.Module(module.finish()));
  return (exports['f'] as (...values: number[]) => number)(...args);
}

describe('locals that a loop carries', () => {
  it('are those that one round leaves for the next', () => {
    const code = new Code();
    code.op('loop').byte(0x40);
    const start = code.length;
    // 0 is counted, 1 is set before it is read, 2 is only read, 3 is set if 4 is not zero, and is
    // always read.
    code.get(0).get(2).op('i32.add').set(0).i32(7).set(1).get(1).get(0).op('i32.add').set(4);
    code.get(4).op('if').byte(0x40).i32(1).set(3).op('end').get(3).op('br_if').u32(0).op('end');
    expect(carriedLocals(code.finish(), LOCALS, [start])).toEqual([[0, 3]]);
  });

  it('are none if each path sets it, and not those read only after the loop', () => {
    const code = new Code();
    code.op('loop').byte(0x40);
    const start = code.length;
    code
      .get(2)
      .op('if')
      .byte(0x40)
      .i32(1)
      .set(3)
      .op('else')
      .i32(2)
      .set(3)
      .op('end')
      .get(3)
      .op('drop');
    code
      .get(2)
      .op('if')
      .byte(0x40)
      .i32(1)
      .set(1)
      .op('end')
      .get(2)
      .op('br_if')
      .u32(0)
      .op('end')
      .get(1)
      .op('drop');
    expect(carriedLocals(code.finish(), LOCALS, [start])).toEqual([[1]]);
  });

  it('are not computed if that would take long', () => {
    const code = new Code();
    for (let block = 0; block < 4096; block++) code.op('block').byte(0x40).op('end');
    expect(carriedLocals(code.finish(), 1 << 20, [])).toBeUndefined();
  });

  it(
    'are all that matter: whatever else a loop sets may hold anything where it begins',
    { tags: 'random' },
    () => {
      let forgotten = 0;
      fc.assert(
        fc.property(
          statements,
          statements,
          statements,
          statements,
          fc.array(fc.integer(), { minLength: VALUES, maxLength: VALUES }),
          (before, first, inner, after, args) => {
            const { code, loops } = assemble(before, first, inner, after);
            const carried = carriedLocals(code, LOCALS, loops)!;
            const bodies = [[...first, ...inner], inner];
            const all = new Code();
            let from = 0;
            loops.forEach((start, loop) => {
              all.append(code.subarray(from, start));
              from = start;
              const body = new Set(setBy(bodies[loop]!));
              for (const value of body) {
                if (carried[loop]!.includes(value)) continue;
                all.i32(0x5eed1234).set(value);
                forgotten++;
              }
              // A loop carries only what it sets.
              expect(carried[loop]!.filter((value) => value < VALUES && !body.has(value))).toEqual(
                [],
              );
            });
            all.append(code.subarray(from));
            expect(run(all.finish(), args)).toBe(run(code, args));
          },
        ),
        { numRuns: 500 },
      );
      expect(forgotten).toBeGreaterThan(scaled(100));
    },
  );
});

function setBy(program: readonly Statement[]): number[] {
  return program.flatMap((statement) => {
    switch (statement.kind) {
      case 'set':
      case 'vectors':
        return [statement.to];
      case 'if':
        return [...setBy(statement.then), ...setBy(statement.otherwise ?? [])];
      case 'leave':
      case 'switch':
        return [...setBy(statement.body), ...setBy(statement.rest)];
      case 'return':
        return [];
    }
  });
}
