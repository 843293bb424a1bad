/**
 * A context of a model, which runs it once at a time: where tensors are, when a run begins, and
 * what happens to its outputs.
 */
import { CudaDisposedError, CudaError } from '../core/index.js';
import type { DeviceBuffer, Stream } from '../core/index.js';
import { queueHostWork } from '../core/host-work.js';
import type { HostTurn, HostUse } from '../core/host-work.js';
import type { EngineContext, EngineInputs, InferOptions, NamedTensors } from '../engine/engine.js';
import type { QueuedRun } from '../engine/last-run.js';
import { RecentOps } from '../engine/recent-ops.js';
import { madeTensor, namedTensors } from '../engine/run-outputs.js';
import { placesOf } from '../native/memory-places.js';
import type { DeviceOp } from '../ops/index.js';
import { Later } from '../ops/node.js';
import type { Submitted } from '../ops/node.js';
import type { Run } from '../ops/run.js';
import type { AnyTensor } from '../tensor/index.js';
import { typeNumber } from './element-types.js';
import type { OnnxEngine } from './engine.js';
import { engineOp } from './engine-op.js';
import type { PlannedRun } from './engine-op.js';
import { shapesOf } from './line-run.js';
import type { LineRun } from './line-run.js';
import { Staging, stageIn, stageOut, useOf } from './staging.js';
import { sendRequest } from './thread-crew.js';
import type { MadeValue, PlacedTensor } from './thread/messages.js';

/** A tensor as its memory: dense, from its first element on. */
interface Placed {
  readonly tensor: AnyTensor;
  readonly buffer: DeviceBuffer;
  readonly type: number;
}

/**
 * A context of an {@link OnnxEngine}: it runs the model once at a time. `engine.createContext()`
 * makes it.
 *
 * @example
 * ```ts
 * // A model of 86 bytes: c = a + b. Usually it is a path.
 * const model = Buffer.from(
 *   'CAg6TgoQCgFhCgFiEgFjGgAiA0FkZBIEdGVzdFoQCgFhEgsKCQgBEgUKAxIBbloQCgFiEgsKCQgBEgUKAxIB' +
 *     'bmIQCgFjEgsKCQgBEgUKAxIBbkIECgAQEQ==',
 *   'base64',
 * );
 * await using engine = await loadOnnxEngine(device, model);
 * await using context = await engine.createContext();
 * const sums = context.infer({ a: device.ones(f32, [3]), b: device.arange(f32, 3) });
 * console.log((await sums.andThen(({ c }) => c!.read())).join(' ')); // 1 2 3
 * ```
 */
export class OnnxContext implements EngineContext {
  readonly engine: OnnxEngine;
  private readonly staging: Staging;
  private readonly recent = new RecentOps();
  /** The library's options of the context's runs, by which another thread can end a run. */
  private runOptions: Promise<number> | undefined = undefined;
  /** The options of runs in lines, which have no signal. */
  private optionsInLine: Promise<number> | undefined = undefined;
  /** {@link optionsInLine}, once they are made. @internal */
  lineOptionsMade: number | undefined = undefined;
  /** The last run in a line, or as a graph. @internal */
  lastInLine: QueuedRun | undefined = undefined;
  /** Resolves when the request to end a run was executed; the options keep such a request. */
  private terminated: Promise<void> | undefined = undefined;
  /** The end of the last run, with or without an error. */
  private last: Promise<void> = Promise.resolve();
  private lastStream: Stream | undefined = undefined;
  private underway = 0;
  /** The end of the work that copies outputs of the library into tensors. */
  private taken: Promise<unknown> = Promise.resolve();
  private closing: Promise<void> | undefined = undefined;

  /** @internal */
  constructor(engine: OnnxEngine) {
    this.engine = engine;
    this.staging = new Staging(engine.device);
  }

  infer(inputs: EngineInputs, options?: InferOptions): DeviceOp<NamedTensors> {
    this.checkOpen();
    return engineOp(this.engine, 'context.infer', inputs, options, this.recent, this);
  }

  /**
   * Returns this context.
   *
   * @throws CudaError where it runs on another stream @internal
   */
  contextFor(stream: Stream): this {
    this.checkOpen();
    if (!this.isFreeFor(stream)) {
      throw new CudaError(
        'ERR_CUDA_BUSY',
        `context.infer: another run of this context of ${this.engine.toString()} is under ` +
          'way on another stream. Make a context for each with engine.createContext(), or use ' +
          'engine.infer(…), which does.',
      );
    }
    return this;
  }

  /** Whether a run on the stream would not overlap another run. @internal */
  isFreeFor(stream: Stream): boolean {
    const { lastInLine: last } = this;
    return (
      (this.underway === 0 || this.lastStream === stream) &&
      (last === undefined || last.stream === stream || last.isOver)
    );
  }

  /** The number of runs that have been queued and are not over. @internal */
  get load(): number {
    return this.underway;
  }

  close(): Promise<void> {
    this.closing ??= this.end();
    return this.closing;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  toString(): string {
    return (
      'EngineContext of ' +
      `${this.engine.toString()}${this.closing === undefined ? '' : ', closed'}`
    );
  }

  private checkOpen(): void {
    this.engine.checkOpen();
    if (this.closing !== undefined)
      throw new CudaDisposedError(
        'context: used after it was closed. Make another with engine.createContext().',
      );
  }

  private async end(): Promise<void> {
    while (this.underway > 0) await this.last;
    await this.taken;
    await this.lineOver();
    const runOptions: number[] = [];
    for (const options of [this.runOptions, this.optionsInLine]) {
      const made = await options?.catch(() => undefined);
      if (made !== undefined) runOptions.push(made);
    }
    if (runOptions.length > 0)
      await sendRequest({
        kind: 'release',
        path: this.engine.library.path,
        session: 0,
        runOptions,
      });
    await this.staging.close();
    this.engine.forget(this);
  }

  /**
   * Queues a run in the line of its stream, or as a graph. Returns undefined where that is not
   * possible: another run of this context is under way on another stream, or the memory that it
   * needs is not allocated yet. @internal
   */
  submitInLine(run: Run, given: LineRun): NamedTensors | undefined {
    if (!this.isFreeFor(run.stream) && !given.isGraphOn(run.stream)) return undefined;
    const area = this.engine.staged ? this.staging.ready(given.bytes) : undefined;
    if (this.engine.staged && area === undefined) return undefined;
    return given.queue(run, this, area);
  }

  /** @internal */
  async lineOptions(): Promise<number> {
    this.optionsInLine ??= sendRequest({ kind: 'runOptions', path: this.engine.library.path });
    return (this.lineOptionsMade = await this.optionsInLine);
  }

  private async lineOver(): Promise<void> {
    const { lastInLine: last } = this;
    if (last !== undefined) await last.ended();
  }

  /** Queues a run, after the last one of this context. @internal */
  submit(run: Run, plan: PlannedRun): Submitted<NamedTensors> {
    let over = (): void => undefined;
    const before = this.isFreeFor(run.stream)
      ? this.last
      : Promise.all([this.last, this.lineOver()]).then(() => undefined);
    this.last = new Promise((resolve) => {
      over = resolve;
    });
    this.underway++;
    this.lastStream = run.stream;
    const end = (): void => {
      this.underway--;
      over();
    };
    try {
      const given = this.queue(run, plan, before);
      if (given instanceof Later) {
        given.promise.then(end, end);
        return given;
      }
      given.done.then(end, end);
      return given.value;
    } catch (error) {
      end();
      throw error;
    }
  }

  private queue(
    run: Run,
    plan: PlannedRun,
    before: Promise<void>,
  ): { done: Promise<void>; value: NamedTensors } | Later<NamedTensors> {
    const inputs = plan.inputs.map(placed);
    const outputs = plan.outputs.map(({ info, given, shape }) => {
      if (given !== undefined) return placed(given);
      return shape === undefined ? undefined : placed(madeTensor(run, info.dtype, shape));
    });
    const all = outputs.every((output) => output !== undefined);
    const { staged } = this.engine;
    const sizes = [...inputs, ...outputs].map((each) => each?.buffer.byteLength ?? 0);
    const { offsets, bytes } = placesOf(sizes);
    // The run takes its place in the stream now, also where page-locked memory has to be made for
    // it first: then it makes its copies in its turn.
    const ahead = staged ? this.staging.ready(bytes) : undefined;
    const later = staged && ahead === undefined ? this.staging.later(bytes) : undefined;
    let values: readonly (MadeValue | undefined)[] = [];
    const uses =
      ahead === undefined
        ? [
            ...inputs.map((input): HostUse => ({ buffer: input.buffer, access: 'in' })),
            ...outputs.flatMap((output): HostUse[] =>
              output === undefined ? [] : [{ buffer: output.buffer, access: 'out' }],
            ),
          ]
        : [useOf(ahead, plan.inputs)];
    if (ahead !== undefined) stageIn(run.stream, ahead, plan.inputs, offsets);
    const begin = async (turn: HostTurn): Promise<void> => {
      await before;
      const ready = ahead ?? (await later);
      if (later !== undefined) {
        turn.keep(ready!.buffer);
        inputs.forEach((input, i) => {
          turn.copyIn(input.buffer, ready!.buffer, offsets[i]!);
        });
        await turn.copied();
      }
      const base = await this.engine.base;
      let next = 0;
      const place = (each: Placed | undefined, i: number): PlacedTensor | undefined => {
        if (each === undefined) return undefined;
        const address =
          ready === undefined ? base + turn.addresses[next++]! : ready.address + offsets[i]!;
        return {
          type: each.type,
          shape: [...each.tensor.shape],
          address,
          bytes: each.buffer.byteLength,
        };
      };
      const given = inputs.map((input, i) => place(input, i)!);
      values = await this.runOnThread(
        plan,
        given,
        outputs.map((output, i) => place(output, inputs.length + i)),
      );
      if (later !== undefined)
        outputs.forEach((output, i) => {
          if (output !== undefined)
            turn.copyOut(ready!.buffer, offsets[inputs.length + i]!, output.buffer);
        });
    };
    const done = queueHostWork(run.stream, this.engine.toString(), uses, begin);
    if (ahead !== undefined)
      stageOut(
        run.stream,
        ahead,
        outputs.map((output) => output?.tensor),
        offsets.slice(inputs.length),
      );
    if (later !== undefined) this.staging.usedUntil(done);
    if (all) {
      run.dependOn(done);
      return {
        done,
        value: namedTensors(
          this.engine.outputs,
          outputs.map((output) => output.tensor),
        ),
      };
    }
    return run.goOn(new Later(done, false), () => this.take(run, plan, outputs, values));
  }

  /** Makes tensors of the outputs that the library has made, now that their shapes are known. */
  private take(
    run: Run,
    plan: PlannedRun,
    outputs: readonly (Placed | undefined)[],
    values: readonly (MadeValue | undefined)[],
  ): Submitted<NamedTensors> {
    const { path } = this.engine.library;
    const found = values.flatMap((value) => (value === undefined ? [] : [value]));
    const made: AnyTensor[] = [];
    let taken = false;
    /**
     * Copies the values to the addresses that the function returns, and releases them in any case.
     */
    const takeTo = (to: (i: number) => number): Promise<undefined> => {
      taken = true;
      return sendRequest({
        kind: 'take',
        path,
        values: found.map((value, i) => ({
          value: value.value,
          data: value.data,
          bytes: value.bytes,
          to: to(i),
        })),
      });
    };
    const giveBack = (): void => {
      if (!taken) takeTo(() => 0).catch(ignore);
    };
    try {
      const shapes = shapesOf(plan.inputs);
      const tensors = plan.outputs.map(({ info, declared }, i) => {
        const value = values[i];
        if (value === undefined) return outputs[i]!.tensor;
        this.engine.outputShapes.came(shapes, i, declared, value.shape);
        const tensor = madeTensor(run, info.dtype, value.shape);
        made.push(tensor);
        return tensor;
      });
      const targets = made.map((tensor) => tensor.dense());
      const { offsets, bytes } = placesOf(found.map((value) => value.bytes));
      // The library leaves them in the process's memory, whichever provider computed them: only a
      // device of this process can read them there.
      const area = this.engine.inProcess ? undefined : this.staging.later(bytes);
      const done = queueHostWork(
        run.stream,
        this.engine.toString(),
        targets.map((buffer): HostUse => ({ buffer, access: 'out' })),
        async (turn) => {
          const ready = await area;
          if (ready !== undefined) turn.keep(ready.buffer);
          const base = await this.engine.base;
          await takeTo((i) =>
            ready === undefined ? base + turn.addresses[i]! : ready.address + offsets[i]!,
          );
          if (ready !== undefined)
            targets.forEach((target, i) => {
              turn.copyOut(ready.buffer, offsets[i]!, target);
            });
        },
      );
      if (area !== undefined) this.staging.usedUntil(done);
      done.catch(giveBack);
      this.taken = Promise.allSettled([this.taken, done]);
      run.dependOn(done);
      return namedTensors(this.engine.outputs, tensors);
    } catch (error) {
      giveBack();
      throw error;
    }
  }

  private async runOnThread(
    plan: PlannedRun,
    inputs: readonly PlacedTensor[],
    outputs: readonly (PlacedTensor | undefined)[],
  ): Promise<readonly (MadeValue | undefined)[]> {
    const { engine } = this;
    const { path } = engine.library;
    const { signal } = plan;
    signal?.throwIfAborted();
    const runOptions = await (this.runOptions ??= sendRequest({ kind: 'runOptions', path }));
    const unset = this.terminated !== undefined;
    await this.terminated;
    this.terminated = undefined;
    const terminate = (): void => {
      this.terminated = sendRequest({ kind: 'terminate', path, runOptions }).catch(() => undefined);
    };
    signal?.addEventListener('abort', terminate, { once: true });
    try {
      return await sendRequest({
        kind: 'run',
        path,
        session: engine.sessions.take(shapesOf(inputs)),
        runOptions,
        niceness: engine.niceness,
        unset,
        memory: engine.provider,
        ordinal: engine.device.ordinal,
        inputNames: engine.inputs.map(({ name }) => name),
        inputs,
        outputNames: engine.outputs.map(({ name }) => name),
        outputs,
      });
    } catch (error) {
      signal?.throwIfAborted();
      throw engine.outputShapes.refusal(error, plan.outputs);
    } finally {
      signal?.removeEventListener('abort', terminate);
    }
  }
}

function ignore(): void {
  // The values stay allocated; other failures of the thread reach their own waiters.
}

function placed(tensor: AnyTensor): Placed {
  return { tensor, buffer: tensor.dense(), type: typeNumber(tensor.dtype.name) };
}
