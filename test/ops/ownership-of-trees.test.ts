/**
 * Random trees of operations, compared with a model: their results, and that nothing else stays
 * open.
 */
import { Device } from 'async-cuda';
import type { Tensor } from 'async-cuda';
import { policyOf, setDefaultDevice } from 'async-cuda/ops';
import * as fc from '../fast-check.js';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';

import { allModes, testDevice, turns } from '../core/test-device.js';
import { COUNT, TreeBuilder, expected, tensorsOf, trees } from './operation-trees.test-support.js';
import type { Tree } from './operation-trees.test-support.js';
import { someOf } from '../random-runs.js';

const RUNS = 120;

someOf(1, describe)(allModes)('Ownership of random trees (%s)', (mode) => {
  let device: Device;
  beforeAll(async () => {
    device = await Device.open(testDevice, { thread: mode });
    setDefaultDevice(device);
    // Unclaimed failures of aborted runs are the device's.
    device.on('error', () => undefined);
  });
  afterAll(() => device.close());

  const live = async (): Promise<number> => (await device.stats()).live.buffers;

  /** The open tensors are those of the run's result, and are closed with it. */
  async function settles(builder: TreeBuilder, before: number, given: unknown): Promise<void> {
    for (const shared of builder.shared) shared.close();
    const owned = (): number =>
      new Set(
        [...tensorsOf(given), ...builder.kept]
          .filter((tensor) => !tensor.isClosed)
          .map((tensor) => tensor.buffer.memory),
      ).size;
    // A run that was aborted goes on, and may keep more; steps that fail in one branch end once the
    // others do.
    for (let calm = 0, i = 0; calm < 3 && i < 300; i++) {
      const open = await live();
      await turns(2);
      calm = open === before + owned() && !builder.isBusy ? calm + 1 : 0;
    }
    expect(await live(), 'open beside what was handed out').toBe(before + owned());
    for (const tensor of [...new Set(tensorsOf(given)), ...builder.kept]) tensor.close();
    expect(await live(), 'open after everything was closed').toBe(before);
  }

  /** Compares the elements of results that are not shared, and so not closed. */
  async function compare(tree: Tree, tensors: readonly Tensor[]): Promise<void> {
    const elements = [];
    for (const tensor of tensors) elements.push(await tensor.read());
    const numbers = elements.map((each) => [...(each as Float32Array)]);
    const set = hasSet(tree);
    if (set)
      expect(new Set(numbers.map(String))).toEqual(
        new Set(expected(tree).map((each) => String(Array(COUNT).fill(each)))),
      );
    else expect(numbers).toEqual(expected(tree).map((each) => Array<number>(COUNT).fill(each)));
  }

  const fails = (tree: Tree): boolean => {
    try {
      expected(tree);
      return false;
    } catch {
      return true;
    }
  };

  test.each(['await', 'twice', 'sync', 'runOn'] as const)('%s', { tags: 'random' }, async (how) => {
    await fc.assert(
      fc.asyncProperty(trees, async (tree) => {
        const before = await live();
        const builder = new TreeBuilder(device);
        const op = builder.operation(tree);
        const values: unknown[] = [];
        try {
          if (how === 'sync') values.push(op.sync());
          else if (how === 'runOn') {
            const running = op.runOn(policyOf(device).nextStream());
            values.push(await running);
          } else {
            values.push(await op);
            if (how === 'twice') values.push(await op);
          }
          expect(fails(tree), 'the model fails').toBe(false);
          for (const each of values) await compare(tree, tensorsOf(each));
        } catch (error) {
          if (!fails(tree)) throw error;
        }
        await settles(builder, before, values);
      }),
      { numRuns: RUNS },
    );
  });

  test('aborted at any moment', { tags: 'random' }, async () => {
    await fc.assert(
      fc.asyncProperty(trees, fc.nat(4), async (tree, after) => {
        const before = await live();
        const builder = new TreeBuilder(device);
        const controller = new AbortController();
        const op = builder.operation(tree);
        const whole = op.ensure(() => {
          builder.isBusy = false;
        });
        builder.isBusy = true;
        const run = whole.run({ signal: controller.signal }).then(
          (given: unknown) => given,
          () => undefined,
        );
        await turns(after);
        controller.abort();
        const given = await run;
        await device.finished();
        await settles(builder, before, given);
      }),
      { numRuns: RUNS },
    );
  });

  test('captured, launched and closed', { tags: 'random' }, async () => {
    await fc.assert(
      fc.asyncProperty(
        trees.filter((tree) => !repeats(tree)),
        fc.constantFrom('graph' as const, 'nodes' as const),
        async (tree, allocate) => {
          const before = await live();
          const builder = new TreeBuilder(device);
          let graph;
          try {
            graph = await builder.operation(tree).capture(undefined, { allocate });
          } catch {
            // Operations that read, fail or keep cannot be recorded.
          }
          if (graph !== undefined) {
            await graph.replay();
            await graph.close();
          }
          await device.finished();
          await settles(builder, before, []);
        },
      ),
      { numRuns: RUNS },
    );
  });
});

const hasSet = (tree: Tree): boolean =>
  anyPart(tree, (part) => part.kind === 'map' && part.how === 'Map and Set');
/** In a graph the condition is recorded once, so that such a loop never ends. */
const repeats = (tree: Tree): boolean => anyPart(tree, (part) => part.kind === 'repeat');

function anyPart(tree: Tree, is: (part: Tree) => boolean): boolean {
  const parts: unknown[] = Object.values(tree).flat();
  return (
    is(tree) ||
    parts.some(
      (part) =>
        typeof part === 'object' && part !== null && 'kind' in part && anyPart(part as Tree, is),
    )
  );
}
