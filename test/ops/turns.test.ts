/**
 * Runs that are not awaited, with kernels that are loaded on their first use: the results are those
 * with kernels that are loaded before.
 */
import { f32 } from 'async-cuda/core';
import { elementKernel, input, inout, kernel, output } from 'async-cuda';
import type { DeviceOp } from 'async-cuda';
import { cumsum } from 'async-cuda/library';
import { tensor, zeros } from 'async-cuda/tensor';
import type { Tensor } from 'async-cuda/tensor';
import * as fc from '../fast-check.js';
import { describe, expect, test } from 'vitest';

import { failure, onDevice } from '../core/test-device.js';

let made = 0;

/** out = 2 x + by, by a kernel that is not loaded yet. */
function fresh(by: number): (out: Tensor<'f32'>, x: Tensor<'f32'>) => DeviceOp<unknown> {
  const scale = kernel(
    `fresh_${process.pid}_${made++}`,
    { out: output(f32), x: input(f32) },
    ({ out, x }, gpu) => {
      const i = gpu.globalId.x;
      if (i < out.length) out[i] = 2 * x[i]! + gpu.BY;
    },
    { uses: { BY: by + made / 1024 - made / 1024 } },
  );
  return (out, x) => scale({ out, x });
}

onDevice('runs that wait for their kernels', (host) => {
  test('a later run does not overtake them', async () => {
    using x = await tensor(host.device, f32, [1, 2, 3]);
    using y = await zeros(host.device, f32, [3]);
    const first = fresh(0.5)(y, x).run();
    const filled = x.fill(100).run();
    const read = y.read().run();
    expect([...(await read)]).toEqual([2.5, 4.5, 6.5]);
    await Promise.all([first, filled]);
    expect([...(await x.read())]).toEqual([100, 100, 100]);
  });

  test('several of them run in the order of the calls', async () => {
    using x = await tensor(host.device, f32, [1]);
    using y = await zeros(host.device, f32, [1]);
    const [double, more] = [fresh(0), fresh(1)];
    const runs = [double(y, x), more(x, y), double(y, x), x.fill(7), more(x, y), y.copyFrom(x)].map(
      (op) => op.run(),
    );
    expect([...(await y.read())]).toEqual([21]);
    await Promise.all(runs);
  });

  test('the later steps of an operation run in order as well', async () => {
    using x = await tensor(host.device, f32, [1, 2, 3, 4]);
    using y = await zeros(host.device, f32, [4]);
    using z = await zeros(host.device, f32, [4]);
    const steps = [fresh(1), fresh(2), fresh(3)] as const;
    const chain = steps[0](y, x)
      .andThen(() => steps[1](z, y))
      .andThen(() => steps[2](y, z))
      .andThen(() => z.copyFrom(y))
      .run();
    const filled = y.fill(0).run();
    expect([...(await z.read())]).toEqual([1, 2, 3, 4].map((value) => 8 * value + 11));
    expect([...(await y.read())]).toEqual([0, 0, 0, 0]);
    await Promise.all([chain, filled]);
  });

  test('operations of the library run in order as well', async () => {
    using x = await tensor(host.device, f32, [1, 2, 3, 4]);
    const summed = cumsum(x, { exclusive: true }).run();
    const filled = x.fill(0).run();
    using sums = await summed;
    await filled;
    expect([...(await sums.read())]).toEqual([0, 1, 3, 6]);
  });

  test('a graph that writes the same memory runs in order', async () => {
    using x = await tensor(host.device, f32, [1, 2]);
    using y = await zeros(host.device, f32, [2]);
    await using graph = await y.fill(7).capture();
    const first = fresh(1)(y, x).run();
    const launched = graph.replay().run();
    const filled = x.copyFrom(y).run();
    await Promise.all([first, launched, filled]);
    expect([...(await y.read())]).toEqual([7, 7]);
    expect([...(await x.read())]).toEqual([7, 7]);
  });

  test('a graph with new parameters that reads the same memory runs in order', async () => {
    using x = await tensor(host.device, f32, [1, 2]);
    using y = await zeros(host.device, f32, [2]);
    using z = await zeros(host.device, f32, [2]);
    await using graph = await z.copyFrom(x).capture();
    await graph.reparam(z.copyFrom(y));
    const first = fresh(1)(y, x).run();
    const launched = graph.replay().run();
    await Promise.all([first, launched]);
    expect([...(await z.read())]).toEqual([3, 5]);
  });

  test('one that fails does not block the next ones', async () => {
    using x = await tensor(host.device, f32, [1, 2]);
    const wrong = kernel(`wrong_${process.pid}`, { x: inout(f32) }, ({ x: values }, gpu) => {
      values[gpu.globalId.x] = (gpu as unknown as { missing(): number }).missing();
    });
    const failed = failure(() => wrong({ x }).run());
    const filled = x.fill(3).run();
    expect((await failed).message).toContain('missing');
    await filled;
    expect([...(await x.read())]).toEqual([3, 3]);
  });

  test('runs that share no memory do not wait', async () => {
    using x = await tensor(host.device, f32, [1]);
    using y = await zeros(host.device, f32, [1]);
    using other = await zeros(host.device, f32, [1]);
    const order: string[] = [];
    const slow = fresh(3)(y, x)
      .run()
      .then(() => {
        order.push('loaded');
      });
    await other
      .fill(5)
      .run()
      .then(() => {
        order.push('filled');
      });
    await slow;
    expect(order).toEqual(['filled', 'loaded']);
  });
});

describe('programs', () => {
  onDevice('of runs without waits in between', (host) => {
    test('have the results that JavaScript computes', { tags: 'random' }, async () => {
      const add = elementKernel(
        `add_${process.pid}`,
        { out: inout(f32), x: input(f32) },
        ({ out, x }) => out + x,
      );
      const step = fc.record({
        kind: fc.constantFrom('fresh', 'add', 'fill', 'copy'),
        from: fc.nat(2),
        to: fc.nat(2),
        by: fc.integer({ min: -3, max: 3 }),
      });
      await fc.assert(
        fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 12 }), async (steps) => {
          const model = [1, 2, 3];
          const tensors = await Promise.all(
            model.map((value) => tensor(host.device, f32, [value])),
          );
          const runs = steps
            .filter(({ kind, from, to }) => kind === 'fill' || from !== to)
            .map(({ kind, from, to, by }) => {
              const [x, out] = [tensors[from]!, tensors[to]!];
              if (kind === 'fill') {
                model[to] = by;
                return out.fill(by).run();
              }
              if (kind === 'copy') {
                model[to] = model[from]!;
                return out.copyFrom(x).run();
              }
              if (kind === 'add') {
                model[to] = Math.fround(model[to]! + model[from]!);
                return add({ out, x }).run();
              }
              model[to] = Math.fround(2 * model[from]! + by);
              return fresh(by)(out, x).run();
            });
          const found = await Promise.all(tensors.map(async (each) => (await each.read())[0]));
          await Promise.all(runs as Promise<unknown>[]);
          for (const each of tensors) each.close();
          expect(found).toEqual(model);
        }),
        { numRuns: 25 },
      );
    });
  });
});
