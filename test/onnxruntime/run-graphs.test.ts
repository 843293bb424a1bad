/**
 * Runs of the CUDA provider that are recorded as graphs: on a GPU, with a build that has it. See
 * cuda-provider.test.ts.
 */
import { setTimeout as delay } from 'node:timers/promises';

import { DTYPES, f32, i64 } from 'async-cuda/core';
import { loadOnnxEngine } from 'async-cuda/onnxruntime';
import type { OnnxEngine } from 'async-cuda/onnxruntime';
import { tensor } from 'async-cuda/tensor';
import type { AnyTensor } from 'async-cuda/tensor';
import { describe, expect, test } from 'vitest';

import { onDevice } from '../core/test-device.js';
import { whyNoCudaProvider } from './cuda-provider-there.js';
import { addModel, longModel, onnxModel } from './onnx-model.js';

/** More runs than precede the first recording. */
const MANY = 40;
const MOST_MS = 20_000;

async function values(given: AnyTensor | undefined): Promise<number[]> {
  return [...((await given!.read()) as Iterable<number | bigint>)].map(Number);
}

/** Runs until that many runs are graphs. */
async function recorded(
  engine: OnnxEngine,
  run: () => Promise<unknown>,
  graphs = 1,
): Promise<void> {
  const until = performance.now() + MOST_MS;
  while (engine.graphs!.count < graphs) {
    if (performance.now() > until)
      throw new Error(`${engine.graphs!.count} of ${graphs} runs were recorded`);
    await run();
  }
}

/** Runs as often as it takes for runs to be recorded, and waits for as long. */
async function ranOften(run: () => Promise<unknown>): Promise<void> {
  for (let i = 0; i < MANY; i++) await run();
  await delay(2000);
  for (let i = 0; i < MANY; i++) await run();
}

const reason = await whyNoCudaProvider();
if (reason !== undefined)
  describe.skip(`SKIPPED: recorded runs of ONNX Runtime: ${reason}`, () => undefined);
else
  onDevice('recorded runs', (on) => {
    test('on given tensors: each uses their contents at that time', async () => {
      await using engine = await loadOnnxEngine(on.device, addModel('f32', [3]), {
        providers: ['cuda'],
      });
      using a = await tensor(on.device, f32, [1, 2, 3]);
      using b = await tensor(on.device, f32, [0, 0, 0]);
      using c = await tensor(on.device, f32, [0, 0, 0]);
      await recorded(engine, () => engine.infer({ a, b }, { outputs: { c } }).run());
      const before = (await on.device.stats()).graphLaunches;
      for (let i = 0; i < 20; i++) {
        await b.write(Float32Array.of(i, 10 * i, -i));
        await engine.infer({ a, b }, { outputs: { c } });
        expect(await values(c)).toEqual([1 + i, 2 + 10 * i, 3 - i]);
      }
      expect((await on.device.stats()).graphLaunches - before).toBe(20);
    });

    test('that allocate their outputs are in order with work before and after', async () => {
      await using engine = await loadOnnxEngine(on.device, longModel(512, 16), {
        providers: ['cuda'],
      });
      using x = await tensor(on.device, f32, new Float32Array(512 * 512), [512, 512]);
      const check = async (i: number): Promise<void> => {
        const filled = x.fill(1 / 512).run();
        const run = engine.infer({ x }).run();
        const gone = x.fill(i).run();
        const { y } = await run;
        await Promise.all([filled, gone]);
        const got = (await y!.read()) as Float32Array;
        for (let k = 0; k < got.length; k += 4099)
          expect(Math.abs(got[k]! - 1 / 512)).toBeLessThan(1e-4);
        y!.close();
      };
      let i = 0;
      await recorded(engine, () => check(i++));
      const before = (await on.device.stats()).graphLaunches;
      for (let more = 0; more < 20; more++) await check(i++);
      expect((await on.device.stats()).graphLaunches).toBeGreaterThan(before);
    });

    test('at once on streams of their own do not disturb each other', async () => {
      const n = 256;
      await using engine = await loadOnnxEngine(on.device, longModel(n, 8), {
        providers: ['cuda'],
        contexts: 4,
      });
      const sets = await Promise.all(
        [1, 2, 3, 4].map(async (k) => ({
          k,
          x: await tensor(on.device, f32, new Float32Array(n * n).fill(k / n), [n, n]),
          y: await tensor(on.device, f32, new Float32Array(n * n), [n, n]),
        })),
      );
      const all = (): Promise<unknown> =>
        Promise.all(sets.map(({ x, y }) => engine.infer({ x }, { outputs: { y } }).run()));
      await recorded(engine, all, sets.length);
      const before = (await on.device.stats()).graphLaunches;
      for (let i = 0; i < 50; i++) await all();
      expect((await on.device.stats()).graphLaunches - before).toBe(200);
      for (const { k, x, y } of sets) {
        // Each product multiplies by k.
        const got = (await y.read()) as Float32Array;
        for (const value of [got[0]!, got[n * n - 1]!])
          expect(Math.abs(value / (k ** 9 / n) - 1)).toBeLessThan(1e-2);
        x.close();
        y.close();
      }
    });

    test('a context of its own, one after another, and after the threads end', async () => {
      await using engine = await loadOnnxEngine(on.device, longModel(64, 4), {
        providers: ['cuda'],
      });
      await using context = await engine.createContext();
      using x = await tensor(on.device, f32, new Float32Array(64 * 64).fill(1 / 64), [64, 64]);
      using y = await tensor(on.device, f32, new Float32Array(64 * 64), [64, 64]);
      await recorded(engine, () => context.infer({ x }, { outputs: { y } }).run());
      await Promise.all(
        Array.from({ length: 100 }, () =>
          context.infer({ x }, { outputs: { y } }).runOn(on.device.stream),
        ),
      );
      await delay(11_000);
      for (const times of [1, 2]) {
        await x.fill(times / 64);
        await context.infer({ x }, { outputs: { y } });
        expect(Math.abs((await values(y))[5]! - times ** 5 / 64)).toBeLessThan(1e-3);
      }
    }, 60_000);

    test('inputs that the CPU reads are read in each run', async () => {
      const slice = onnxModel({
        inputs: [
          ['x', 'f32', [8]],
          ['from', 'i64', [1]],
          ['to', 'i64', [1]],
        ],
        outputs: [['y', 'f32', [2]]],
        nodes: [{ op: 'Slice', inputs: ['x', 'from', 'to'], outputs: ['y'] }],
      });
      await using engine = await loadOnnxEngine(on.device, slice, { providers: ['cuda'] });
      using x = await tensor(on.device, f32, [0, 1, 2, 3, 4, 5, 6, 7]);
      using from = await tensor(on.device, i64, BigInt64Array.of(0n), [1]);
      using to = await tensor(on.device, i64, BigInt64Array.of(2n), [1]);
      using y = await tensor(on.device, f32, [0, 0]);
      let at = 0n;
      await ranOften(async () => {
        at = (at + 1n) % 7n;
        await Promise.all([from.write(BigInt64Array.of(at)), to.write(BigInt64Array.of(at + 2n))]);
        await engine.infer({ x, from, to }, { outputs: { y } });
        expect(await values(y)).toEqual([Number(at), Number(at) + 1]);
      });
    });

    test('a number that is passed to a kernel is current in each run', async () => {
      const clip = onnxModel({
        inputs: [
          ['x', 'f32', [3]],
          ['most', 'f32', []],
        ],
        outputs: [['y', 'f32', [3]]],
        nodes: [{ op: 'Clip', inputs: ['x', '', 'most'], outputs: ['y'] }],
      });
      await using engine = await loadOnnxEngine(on.device, clip, { providers: ['cuda'] });
      using x = await tensor(on.device, f32, [1, 50, 100]);
      using most = await tensor(on.device, f32, [1], []);
      using y = await tensor(on.device, f32, [0, 0, 0]);
      let limit = 0;
      await ranOften(async () => {
        await most.write(Float32Array.of(++limit));
        await engine.infer({ x, most }, { outputs: { y } });
        expect(await values(y)).toEqual([
          Math.min(1, limit),
          Math.min(50, limit),
          Math.min(100, limit),
        ]);
      });
    });

    test('a model that draws random numbers draws others each time', async () => {
      const draws = onnxModel({
        inputs: [['x', 'f32', [64]]],
        outputs: [['y', 'f32', [64]]],
        nodes: [{ op: 'RandomNormalLike', inputs: ['x'], outputs: ['y'] }],
      });
      await using engine = await loadOnnxEngine(on.device, draws, { providers: ['cuda'] });
      using x = await tensor(on.device, f32, new Float32Array(64));
      using y = await tensor(on.device, f32, new Float32Array(64));
      const seen = new Set<number>();
      let runs = 0;
      await ranOften(async () => {
        runs++;
        await engine.infer({ x }, { outputs: { y } });
        seen.add((await values(y))[0]!);
      });
      expect(engine.graphs!.count).toBe(0);
      expect(seen.size).toBe(runs);
    });

    test('a part that the processor computes is computed in each run', async () => {
      // The CUDA provider has no bitwise shifts.
      const model = onnxModel({
        inputs: [
          ['x', 'u32', [4]],
          ['by', 'u32', [4]],
        ],
        outputs: [['y', 'u32', [4]]],
        nodes: [
          {
            op: 'BitShift',
            inputs: ['x', 'by'],
            outputs: ['y'],
            attributes: { direction: 'LEFT' },
          },
        ],
      });
      await using engine = await loadOnnxEngine(on.device, model, { providers: ['cuda'] });
      using x = await tensor(on.device, DTYPES.u32, [1, 2, 3, 4]);
      using by = await tensor(on.device, DTYPES.u32, [0, 0, 0, 0]);
      using y = await tensor(on.device, DTYPES.u32, [0, 0, 0, 0]);
      let shift = 0;
      await ranOften(async () => {
        shift = (shift + 1) % 8;
        await by.fill(shift);
        await engine.infer({ x, by }, { outputs: { y } });
        expect(await values(y)).toEqual([1, 2, 3, 4].map((value) => value << shift));
      });
    });

    test('an engine that is closed while its runs are recorded leaves no memory', async () => {
      const before = (await on.device.memoryInfo()).free;
      for (let i = 0; i < 6; i++) {
        const engine = await loadOnnxEngine(on.device, longModel(256, 4), {
          providers: ['cuda'],
        });
        for (let k = 0; k < 3; k++) {
          using x = await tensor(
            on.device,
            f32,
            new Float32Array(256 * 256).fill(1 / 256),
            [256, 256],
          );
          for (let n = 0; n < MANY / 2; n++) {
            const { y } = await engine.infer({ x });
            if (n === 0) expect(Math.abs((await values(y))[7]! - 1 / 256)).toBeLessThan(1e-4);
            y!.close();
          }
        }
        if (i % 2 === 1) await delay(300);
        await engine.close();
      }
      await delay(1500);
      expect(before - (await on.device.memoryInfo()).free).toBeLessThan(256 << 20);
    }, 60_000);

    test('runs on more tensors than graphs are kept for are correct, too', async () => {
      await using engine = await loadOnnxEngine(on.device, addModel('f32', ['n']), {
        providers: ['cuda'],
        shapes: 8,
      });
      const all = await Promise.all(
        Array.from({ length: 90 }, async (_, i) => ({
          a: await tensor(on.device, f32, [i, 2 * i, 3 * i, 4 * i].slice(0, 1 + (i % 4))),
          c: await tensor(on.device, f32, [0, 0, 0, 0].slice(0, 1 + (i % 4))),
          n: 1 + (i % 4),
          i,
        })),
      );
      for (let round = 0; round < 24; round++) {
        for (const { a, c } of all) await engine.infer({ a, b: a }, { outputs: { c } });
        if (round === 20) await delay(1000);
      }
      for (const { a, c, n, i } of all) {
        expect(await values(c)).toEqual([2 * i, 4 * i, 6 * i, 8 * i].slice(0, n));
        a.close();
        c.close();
      }
    }, 60_000);

    /**
     * Makes runs, each on memory that is not used again, until four such runs are graphs. Returns
     * the tensors that they used, which stay open until then.
     */
    async function sharing(
      run: () => Promise<readonly AnyTensor[]>,
    ): Promise<readonly AnyTensor[]> {
      const until = performance.now() + MOST_MS;
      const open: AnyTensor[] = [];
      const launches = async (): Promise<number> => (await on.device.stats()).graphLaunches;
      for (let inRow = 0; inRow < 4;) {
        if (performance.now() > until)
          throw new Error(`no graph is shared after runs on ${open.length} tensors`);
        const before = await launches();
        open.push(...(await run()));
        inRow = (await launches()) === before ? 0 : inRow + 1;
      }
      return open;
    }

    test('on other memory each time: runs of the same shapes share a graph', async () => {
      await using engine = await loadOnnxEngine(on.device, addModel('f32', ['n']), {
        providers: ['cuda'],
      });
      let i = 0;
      const run = async (n: number): Promise<readonly AnyTensor[]> => {
        i++;
        const a = await tensor(
          on.device,
          f32,
          Float32Array.from({ length: n }, (_, k) => i + k),
        );
        const b = await tensor(on.device, f32, new Float32Array(n).fill(10 * i));
        const { c } = await engine.infer({ a, b });
        expect(await values(c)).toEqual(Array.from({ length: n }, (_, k) => 11 * i + k));
        return [a, b, c!];
      };
      const open = [...(await sharing(() => run(3))), ...(await sharing(() => run(5)))];
      const { graphLaunches: before } = await on.device.stats();
      for (let k = 0; k < 40; k++) open.push(...(await run(k % 2 === 0 ? 3 : 5)));
      expect((await on.device.stats()).graphLaunches - before).toBe(40);
      for (const each of open) each.close();
    }, 60_000);

    test('and at once, more than there are contexts, of several batches under way', async () => {
      const n = 64;
      await using engine = await loadOnnxEngine(on.device, longModel(n, 4), {
        providers: ['cuda'],
        contexts: 1,
      });
      const one = async (k: number): Promise<readonly AnyTensor[]> => {
        const x = await tensor(on.device, f32, new Float32Array(n * n).fill(k / n), [n, n]);
        const { y } = await engine.infer({ x });
        expect(Math.abs((await values(y))[n]! / (k ** 5 / n) - 1)).toBeLessThan(1e-2);
        return [x, y!];
      };
      let k = 0;
      const open = await sharing(async () =>
        (await Promise.all([1, 2, 3].map(() => one(1 + (k++ % 7))))).flat(),
      );
      for (const each of open) each.close();
      const { graphLaunches: before } = await on.device.stats();
      const found = (
        await Promise.all(Array.from({ length: 60 }, (_, i) => one(1 + (i % 7))))
      ).flat();
      expect((await on.device.stats()).graphLaunches - before).toBe(60);
      for (const each of found) each.close();
    }, 60_000);

    test('a run whose input is undefined fails, and the next one does not', async () => {
      await using engine = await loadOnnxEngine(on.device, addModel('f32', [3]), {
        providers: ['cuda'],
      });
      const run = async (): Promise<readonly AnyTensor[]> => {
        const a = await tensor(on.device, f32, [1, 2, 3]);
        const { c } = await engine.infer({ a, b: a });
        expect(await values(c)).toEqual([2, 4, 6]);
        return [a, c!];
      };
      for (const each of await sharing(run)) each.close();
      // Page-locked memory cannot be detached; an array can, before it is copied.
      using a = await tensor(on.device, f32, new Float32Array(1 << 20));
      const source = new Float32Array(1 << 20);
      const writing = a.write(source).run();
      structuredClone(source.buffer, { transfer: [source.buffer] });
      await expect(writing).rejects.toMatchObject({ code: 'ERR_CUDA_SOURCE_DETACHED' });
      using part = a.slice([0, 3]);
      await expect(engine.infer({ a: part, b: part }).run()).rejects.toMatchObject({
        code: 'ERR_CUDA_UNDEFINED_CONTENTS',
      });
      for (const each of await run()) each.close();
    }, 60_000);

    test('memory that is used again and again gets a graph of its own', async () => {
      await using engine = await loadOnnxEngine(on.device, addModel('f32', [3]), {
        providers: ['cuda'],
      });
      for (const each of await sharing(async () => {
        const a = await tensor(on.device, f32, [1, 2, 3]);
        const { c } = await engine.infer({ a, b: a });
        return [a, c!];
      }))
        each.close();
      const { count } = engine.graphs!;
      using a = await tensor(on.device, f32, [1, 2, 3]);
      using c = await tensor(on.device, f32, [0, 0, 0]);
      await recorded(engine, () => engine.infer({ a, b: a }, { outputs: { c } }).run(), count + 1);
      const before = await on.device.stats();
      for (let i = 0; i < 20; i++) await engine.infer({ a, b: a }, { outputs: { c } });
      const after = await on.device.stats();
      expect(after.graphLaunches - before.graphLaunches).toBe(20);
      expect(after.copies.deviceToDevice.count - before.copies.deviceToDevice.count).toBe(0);
      expect(await values(c)).toEqual([2, 4, 6]);
    }, 60_000);

    test('an engine frees the memory of shared graphs', async () => {
      const model = longModel(256, 4);
      const buffers = async (): Promise<number> => (await on.device.stats()).live.buffers;
      const before = await buffers();
      const engine = await loadOnnxEngine(on.device, model, { providers: ['cuda'] });
      const open = await sharing(async () => {
        const x = await tensor(on.device, f32, new Float32Array(256 * 256), [256, 256]);
        const { y } = await engine.infer({ x });
        return [x, y!];
      });
      for (const each of open) each.close();
      await engine.close();
      expect(await buffers()).toBe(before);
    }, 60_000);

    test('with graphs: false nothing is recorded', async () => {
      await using engine = await loadOnnxEngine(on.device, addModel('f32', [3]), {
        providers: ['cuda'],
        graphs: false,
      });
      expect(engine.graphs).toBe(undefined);
      using a = await tensor(on.device, f32, [1, 2, 3]);
      using c = await tensor(on.device, f32, [0, 0, 0]);
      const before = (await on.device.stats()).graphLaunches;
      for (let i = 0; i < MANY; i++) await engine.infer({ a, b: a }, { outputs: { c } });
      expect((await on.device.stats()).graphLaunches).toBe(before);
      expect(await values(c)).toEqual([2, 4, 6]);
    });
  });
