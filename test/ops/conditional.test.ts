/**
 * Operations whose control flow the device's results decide: they have the same results when they
 * are awaited, run on a blocked thread or recorded.
 */
import { f32, i32, inout, u32 } from 'async-cuda/core';
import type { CoreDevice, DType, DTypeName, Kernel } from 'async-cuda/core';
import { OpGraph, setDefaultDevice, value, zip } from 'async-cuda/ops';
import type { DeviceOp } from 'async-cuda/ops';
import { callKernel, prepare, tensor, zeros } from 'async-cuda/tensor';
import type { Tensor } from 'async-cuda/tensor';
import * as fc from '../fast-check.js';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';

import { failure, onDevice, openTestDevice, testDevice } from '../core/test-device.js';

const PTX = `.version 7.0
.target sm_70
.address_size 64
.visible .entry add(.param .u64 word, .param .u32 amount) {
  .reg .b32 %r<3>; .reg .b64 %a<2>;
  ld.param.u64 %a0, [word]; cvta.to.global.u64 %a0, %a0; ld.param.u32 %r1, [amount];
  ld.global.u32 %r0, [%a0]; add.u32 %r0, %r0, %r1; st.global.u32 [%a0], %r0; ret;
}
.visible .entry below(.param .u64 a, .param .u32 limit, .param .u64 out) {
  .reg .b32 %r<4>; .reg .b64 %a<2>; .reg .pred %p<2>;
  ld.param.u64 %a0, [a]; cvta.to.global.u64 %a0, %a0; ld.param.u64 %a1, [out];
  cvta.to.global.u64 %a1, %a1;
  ld.param.u32 %r1, [limit]; ld.global.u32 %r0, [%a0]; setp.lt.s32 %p0, %r0, %r1;
  selp.u32 %r2, 1, 0, %p0; st.global.u32 [%a1], %r2; ret;
}`;

type State = Tensor<'i32', [number]>;

const ONE = { grid: 1, block: 1 } as const;

/** Whether the driver can record them, found out as a program would. */
const probe = await openTestDevice();
const [major, minor] = probe.properties.driverVersion.split('.').map(Number);
const recorded = probe.kind === 'cpu' || major! * 100 + minor! >= 1204;
await probe.close();
if (!recorded)
  console.warn(
    `${testDevice}: the driver, of CUDA ${major}.${minor}, has no conditional nodes: what is ` +
      'recorded is not tested',
  );

/** How an operation is run. */
const WAYS = [
  ['awaited', async <T>(op: DeviceOp<T>): Promise<T> => op],
  ['on a thread that blocks', async <T>(op: DeviceOp<T>): Promise<T> => op.sync()],
  ...(recorded
    ? [
        [
          'recorded',
          async <T>(op: DeviceOp<T>): Promise<T> => {
            await using graph = await op.capture();
            return await graph.replay();
          },
        ] as const,
      ]
    : []),
] as const;

onDevice('operations that the device decides', (host) => {
  const device = (): CoreDevice => host.device;
  let addKernel: Kernel;
  let belowKernel: Kernel;
  let state: State;
  const at = (index: number): Tensor<'i32', [number]> =>
    state.slice([index, index + 1]) as unknown as Tensor<'i32', [number]>;
  const add = (index: number, amount: number): DeviceOp<unknown> =>
    callKernel(addKernel, ONE, at(index), amount);
  const set = async (...values: number[]): Promise<void> => {
    await state.write(Int32Array.from({ length: 6 }, (_, i) => values[i] ?? 0));
  };
  const read = async (count = 4): Promise<number[]> => [...(await state.read())].slice(0, count);

  beforeAll(async () => {
    setDefaultDevice(device());
    const module = await host.load(PTX);
    addKernel = module.kernel('add', [inout(i32), i32]);
    belowKernel = module.kernel('below');
    await prepare(device(), i32);
    state = await zeros(device(), i32, [6 as number]);
  });
  afterAll(() => {
    state.close();
  });

  describe.each(WAYS)('%s', (way, run) => {
    test.each([
      [0, [0, 0, 5]],
      [1, [1, 3, 0]],
      [-7, [-7, 3, 0]],
    ])('when(%i) runs one of the two', async (first, expected) => {
      await set(first);
      const op = value(state).when(
        (x) => x.slice(0),
        () => add(1, 3),
        () => add(2, 5),
      );
      expect(await run(op)).toBe(state);
      expect(await read(3)).toEqual(expected);
    });

    test('when without an otherwise runs, and so does the work after it', async () => {
      for (const first of [0, 1]) {
        await set(first);
        await run(
          value(state)
            .when(
              (x) => x.slice(0),
              () => zip(add(1, 1), add(2, 2)),
            )
            .andThen(() => add(3, 1)),
        );
        expect(await read()).toEqual([first, first, 2 * first, 1]);
      }
    });

    test('repeatWhile runs its body until what it computes is zero', async () => {
      for (const turns of [0, 1, 20]) {
        await set(turns);
        await run(
          value(state).repeatWhile(
            (x) => x.slice(0),
            () => add(1, 2).andThen(() => add(0, -1)),
          ),
        );
        expect(await read(2)).toEqual([0, 2 * turns]);
      }
    });

    test('a condition that is an operation is computed before each iteration', async () => {
      await set(3);
      const below = (limit: number): DeviceOp<Tensor<'i32', [number]>> =>
        callKernel(belowKernel, ONE, at(0), limit, at(5)).map(([, , flag]) => flag);
      await run(
        value(state).repeatWhile(
          () => below(10),
          () => add(0, 2),
        ),
      );
      expect(await read(1)).toEqual([11]);
    });

    test('a condition can have new memory at each iteration', async () => {
      await set(3);
      const below = (limit: number) =>
        zeros(device(), u32, [1])
          .andThen((flag) => callKernel(belowKernel, ONE, at(0), limit, flag))
          .map(([, , flag]) => flag);
      const flags: Disposable[] = [];
      await run(
        value(state).repeatWhile(
          () =>
            below(10).tap((flag) => {
              flags.push(flag);
            }),
          () => add(0, 2),
        ),
      );
      expect(await read(1)).toEqual([11]);
      if (way !== 'recorded') for (const flag of flags) flag[Symbol.dispose]();
    });

    test.each([
      [0, 1],
      [2, 100],
      [3, 0],
      [-1, 0],
    ])('choose(%i)', async (index, expected) => {
      await set(index);
      await run(
        value(state).choose(
          (x) => x.slice(0),
          [1, 10, 100].map((amount) => () => add(1, amount)),
        ),
      );
      expect((await read())[1]).toBe(expected);
    });

    test('they can be nested', async () => {
      await set(4);
      // Counts down, and adds odd numbers to one word and even ones to another.
      await run(
        value(state).repeatWhile(
          (x) => x.slice(0),
          () =>
            add(3, 1)
              .andThen(() =>
                value(state).when(
                  (x) => x.slice(3),
                  () => add(1, 1).andThen(() => add(3, -2)),
                  () => add(2, 1),
                ),
              )
              .andThen(() => add(0, -1)),
        ),
      );
      expect(await read(3)).toEqual([0, 2, 2]);
    });

    test('a body can allocate memory', async () => {
      await set(1);
      await run(
        value(state).when(
          (x) => x.slice(0),
          (x) => x.dup().andThen((copy) => copy.fill(9).andThen((filled) => x.copyFrom(filled))),
        ),
      );
      expect(await read(6)).toEqual(Array(6).fill(9));
    });

    test('a shared operation that ran in a body only runs again after it', async () => {
      for (const first of [0, 1]) {
        await set(first);
        const once = add(1, 1).shared();
        await run(
          value(state)
            .when(
              (x) => x.slice(0),
              () => once,
            )
            .andThen(() => once)
            .andThen(() => once),
        );
        expect((await read())[1]).toBe(way === 'recorded' && first === 1 ? 2 : 1);
      }
    });

    test('random programs of them have the expected results', { tags: 'random' }, async () => {
      type Program =
        | { kind: 'add'; at: number; by: number }
        | { kind: 'when'; on: number; then: Program[]; otherwise: Program[] | undefined }
        | { kind: 'times'; on: number; body: Program[] }
        | { kind: 'choose'; on: number; choices: Program[][] };
      const { programs } = fc.letrec<{ programs: Program[]; step: Program }>((tie) => ({
        programs: fc.array(tie('step'), { maxLength: 3, depthIdentifier: 'd' }),
        step: fc.oneof(
          { depthIdentifier: 'd', maxDepth: 2 },
          fc.record({
            kind: fc.constant('add' as const),
            at: fc.nat(3),
            by: fc.integer({ min: -2, max: 3 }),
          }),
          fc.record({
            kind: fc.constant('when' as const),
            on: fc.nat(3),
            then: tie('programs'),
            otherwise: fc.option(tie('programs'), { nil: undefined }),
          }),
          fc.record({
            kind: fc.constant('times' as const),
            on: fc.nat(3),
            body: tie('programs'),
          }),
          fc.record({
            kind: fc.constant('choose' as const),
            on: fc.nat(3),
            choices: fc.array(tie('programs'), { minLength: 1, maxLength: 3 }),
          }),
        ),
      }));
      /**
       * The words as the program leaves them. A loop runs while the fifth word, which it sets to
       * 2 and counts down, is not zero.
       */
      const interpret = (steps: Program[], words: number[]): void => {
        for (const step of steps) {
          if (step.kind === 'add') words[step.at]! += step.by;
          else if (step.kind === 'when')
            interpret(words[step.on] !== 0 ? step.then : (step.otherwise ?? []), words);
          else if (step.kind === 'choose') interpret(step.choices[words[step.on]!] ?? [], words);
          else {
            for (words[4] = 2; words[4]! > 0;) {
              words[4]! -= 1;
              const left = words[4]!;
              interpret(step.body, words);
              words[4] = Math.min(left, words[4]!);
            }
          }
        }
      };
      const hasLoop = (steps: Program[]): boolean =>
        steps.some(
          (step) =>
            step.kind === 'times' ||
            (step.kind === 'when' && (hasLoop(step.then) || hasLoop(step.otherwise ?? []))) ||
            (step.kind === 'choose' && step.choices.some(hasLoop)),
        );
      const build = (steps: Program[]): DeviceOp<unknown> =>
        steps.reduce<DeviceOp<unknown>>(
          (op, step) =>
            op.andThen(() => {
              if (step.kind === 'add') return add(step.at, step.by);
              if (step.kind === 'when')
                return value(state).when(
                  (x) => x.slice(step.on),
                  () => build(step.then),
                  step.otherwise && ((): DeviceOp<unknown> => build(step.otherwise!)),
                );
              if (step.kind === 'choose')
                return value(state).choose(
                  (x) => x.slice(step.on),
                  step.choices.map((choice) => () => build(choice)),
                );
              return at(4)
                .fill(2)
                .andThen(() =>
                  value(state).repeatWhile(
                    (x) => x.slice(4),
                    () => add(4, -1).andThen(() => build(step.body)),
                  ),
                );
            }),
          value<unknown>(undefined),
        );
      // A loop within a loop would reset its counter for ever: such programs are left out.
      const nests = (steps: Program[]): boolean =>
        steps.some((step) =>
          step.kind === 'times'
            ? hasLoop(step.body)
            : step.kind === 'when'
              ? nests(step.then) || nests(step.otherwise ?? [])
              : step.kind === 'choose' && step.choices.some(nests),
        );
      await fc.assert(
        fc.asyncProperty(
          programs.filter((steps) => !nests(steps)),
          fc.array(fc.integer({ min: -1, max: 3 }), { minLength: 4, maxLength: 4 }),
          async (steps, start) => {
            const expected = [...start, 0];
            interpret(steps, expected);
            await set(...start);
            await run(build(steps));
            expect(await read(4)).toEqual(expected.slice(0, 4));
          },
        ),
        { numRuns: 25 },
      );
    });

    test('values that are not conditions are refused', async () => {
      using floats = await zeros(device(), f32, [1]);
      const refused = async (given: unknown): Promise<string> =>
        (
          await failure(() =>
            run(
              value(state).when(
                () => given as never,
                () => add(0, 1),
              ),
            ),
          )
        ).message;
      expect(await refused(floats)).toContain('whole numbers or bool');
      expect(await refused(state)).toContain('a tensor of one element');
      expect(await refused(1)).toContain('returns a tensor of one element');
      expect(
        (
          await failure(() =>
            run(value(state).when((x) => x.slice(0), (() => 3) as never, (() => 3) as never)),
          )
        ).message,
      ).toContain('returns a DeviceOp');
    });
  });

  test.runIf(recorded)('each launch decides anew, and the graph lists its nodes', async () => {
    const op = value(state)
      .repeatWhile(
        (x) => x.slice(0),
        () => add(1, 1).andThen(() => add(0, -1)),
      )
      .choose((x) => x.slice(2), [() => add(3, 1), () => add(3, 10)]);
    await using graph = await op.capture();
    expect((await graph.nodeTypes()).filter((type) => type === 'conditional')).toHaveLength(2);
    expect(await graph.nodeCount()).toBe(4);
    expect((await graph.dot()).length).toBeGreaterThan(50);
    for (const [turns, index] of [
      [3, 0],
      [0, 1],
      [2, 7],
    ] as const) {
      await set(turns, 0, index, 0);
      await graph.replay();
      expect(await read()).toEqual([0, turns, index, index === 0 ? 1 : index === 1 ? 10 : 0]);
    }
  });

  test.runIf(recorded)('branches within a body and around it', async () => {
    const { parallel } = await import('async-cuda/ops');
    await using graph = await OpGraph.scope(device().createStream(), ({ record }) =>
      record(
        parallel(
          value(state).when(
            (x) => x.slice(0),
            () => parallel(add(1, 1), add(2, 2)),
          ),
          add(3, 3),
        ).andThen(() => add(4, 4)),
      ),
    );
    await set(1);
    await graph.replay();
    expect(await read(5)).toEqual([1, 1, 2, 3, 4]);
  });

  test.runIf(recorded)('reparam takes the parameters of the bodies', async () => {
    const op = (amount: number): DeviceOp<State> =>
      value(state).when(
        (x) => x.slice(0),
        () => add(1, amount),
      );
    await using graph = await op(1).capture();
    await graph.reparam(op(50));
    await set(1);
    await graph.replay();
    expect((await read())[1]).toBe(50);
  });

  test("a computed condition is closed, and the program's buffer stays open", async () => {
    const before = (await device().stats()).live.buffers;
    using mine = await tensor(device(), i32, [1]);
    const made = (n: number): DeviceOp<Tensor<'i32', [number]>> =>
      tensor(device(), i32, [n] as number[]);
    for (const run of [WAYS[0][1], WAYS[1][1]]) {
      await set();
      await run(
        value(state).when(
          () => made(1),
          () => add(0, 1),
        ),
      );
      await run(value(state).choose(() => made(0), [() => add(1, 1)]));
      let turns = 3;
      await run(
        value(state).repeatWhile(
          () => made(turns--),
          () => add(2, 1),
        ),
      );
      await run(
        value(state).when(
          () => value(mine),
          () => add(3, 1),
        ),
      );
      expect(await read()).toEqual([1, 1, 3, 1]);
      expect(
        await failure(() =>
          run(
            value(state).when(
              () => tensor(device(), i32, [1, 2]),
              () => add(0, 1),
            ),
          ),
        ),
      ).toMatchObject({ argument: 'when(condition)' });
      expect((await device().stats()).live.buffers).toBe(before + 1);
    }
    expect((await mine.read())[0]).toBe(1);
  });

  test('a failure in a body is the operation’s', async () => {
    await set(1);
    const op = value(state).when(
      (x) => x.slice(0),
      () => {
        throw new Error('of mine');
      },
    );
    expect((await failure(() => op)).message).toBe('of mine');
    expect((await failure(() => op.sync())).message).toBe('of mine');
    if (recorded) expect((await failure(() => op.capture())).message).toBe('of mine');
  });

  test('a condition can have any integer dtype', async () => {
    for (const name of ['bool', 'u8', 'i8', 'u16', 'i16', 'u32', 'i32', 'u64', 'i64'] as const) {
      const { DTYPES } = await import('async-cuda/core');
      const dtype = DTYPES[name] as DType<DTypeName>;
      const wide = name.endsWith('64');
      using flags = await tensor(device(), dtype, (wide ? [0n, 1n] : [0, 1]) as number[]);
      for (const [, run] of WAYS) {
        await set();
        for (const index of [0, 1])
          await run(
            value(state).when(
              () => flags.slice(index) as never,
              () => add(index, 1),
            ),
          );
        expect(await read(2), name).toEqual([0, 1]);
      }
    }
  });
});

test('without conditional nodes of the driver a capture fails, and a run works', async () => {
  process.env['ASYNC_CUDA_WITHOUT'] = 'conditionals';
  const device = await openTestDevice().finally(() => {
    delete process.env['ASYNC_CUDA_WITHOUT'];
  });
  const op = tensor(device, i32, [1, 0])
    .when(
      (x) => x.slice([0, 1]),
      (x) => x.slice([1, 2]).fill(7),
    )
    .andThen((x) => x.read());
  expect([...(await op)]).toEqual([1, 7]);
  const captured = tensor(device, i32, [1, 0]).when(
    (x) => x.slice([0, 1]),
    (x) => x.slice([1, 2]).fill(7),
  );
  const error = await failure(() => captured.capture());
  expect([error.code, error.message]).toEqual([
    'ERR_CUDA_UNSUPPORTED',
    expect.stringContaining('when(…) in a graph needs a driver of CUDA 12.4'),
  ]);
  await device.close();
});
