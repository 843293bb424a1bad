/**
 * A run all of whose tensors were given: queued again, it does the same to the same memory. What the library takes for it is made once,
 * and a thread is told numbers that are ready.
 */
import type { Stream } from '../core/index.js';
import type { HostUse } from '../core/host-work.js';
import type { Held } from '../core/queued-operation.js';
import { LINE_ARGS, WorkLine } from '../core/work-line.js';
import type { LineWork } from '../core/work-line.js';
import type { NamedTensors } from '../engine/engine.js';
import type { AnyTensor } from '../tensor/index.js';
import type { OnnxContext } from './context.js';
import { typeNumber } from './element-types.js';
import type { OnnxEngine } from './engine.js';
import { ask } from './thread-crew.js';
import type { Bound, PlacedTensor } from './thread/messages.js';

/** Places of an entry's numbers: Run's arguments, in their order. */
const [SESSION, RUN_OPTIONS, INPUT_NAMES, INPUTS, INPUT_COUNT, OUTPUT_NAMES, OUTPUT_COUNT, OUTPUTS] = [0, 1, 2, 3, 4, 5, 6, 7];
/** Of an engine: whoever has more operations than these in turns has them made anew. */
const MOST_BOUND = 64;

const lines = new WeakMap<Stream, Map<string, WorkLine>>();

/** The line of a stream's runs by the library at the path. */
function lineOf(stream: Stream, path: string): WorkLine {
  let ofStream = lines.get(stream);
  if (ofStream === undefined) {
    ofStream = new Map();
    lines.set(stream, ofStream);
  }
  let line = ofStream.get(path);
  if (line === undefined) {
    line = new WorkLine(stream, (memory) => ask({ kind: 'line', path, memory }));
    ofStream.set(path, line);
  }
  return line;
}

/** What the library takes for one kept run. It knows no tensor: whoever forgets them has them collected. */
class Binding {
  readonly bound: Bound;
  isReleased = false;
  /** Its last run. */
  last: QueuedRun | undefined;
  private readonly path: string;

  constructor(bound: Bound, path: string) {
    this.bound = bound;
    this.path = path;
  }

  /** Gives it back behind its last run. What is queued from here on is bound anew. */
  async release(): Promise<void> {
    this.isReleased = true;
    const { last, path } = this;
    if (last !== undefined) await last.line.ended(last.number);
    await ask({ kind: 'take', path, values: this.bound.values.map((value) => ({ value, data: 0, bytes: 0, to: 0 })) });
  }
}

/** A run, as its line numbers it. */
export interface QueuedRun {
  readonly line: WorkLine;
  readonly number: number;
}

/** What is bound for an engine's runs: the oldest gives way. */
export class Bindings {
  private readonly kept = new Set<Binding>();

  add(binding: Binding): void {
    this.kept.add(binding);
    if (this.kept.size <= MOST_BOUND) return;
    const [oldest] = this.kept;
    this.kept.delete(oldest!);
    void oldest!.release();
  }

  async close(): Promise<void> {
    await Promise.all([...this.kept].map((binding) => binding.release()));
    this.kept.clear();
  }
}

export class KeptRun {
  readonly value: NamedTensors;
  readonly engine: OnnxEngine;
  readonly uses: readonly HostUse[];
  readonly held: Held;
  private readonly inputs: readonly AnyTensor[];
  private readonly outputs: readonly AnyTensor[];
  private readonly works: ContextRun[] = [];
  private readonly shapes: string;
  private binding: Promise<Binding> | undefined;
  private bindingNow: Binding | undefined;
  private line: WorkLine | undefined;

  /** Of tensors without gaps. */
  constructor(engine: OnnxEngine, inputs: readonly AnyTensor[], outputs: readonly AnyTensor[], value: NamedTensors) {
    this.engine = engine;
    this.inputs = inputs;
    this.outputs = outputs;
    this.value = value;
    this.uses = [...inputs.map((tensor): HostUse => ({ buffer: tensor.dense(), access: 'in' })), ...outputs.map((tensor): HostUse => ({ buffer: tensor.dense(), access: 'out' }))];
    this.held = { kind: 'call', operation: 0, name: engine.toString(), memory: this.uses.map(({ buffer }) => buffer.memory.handle) };
    this.shapes = shapesOf(inputs);
  }

  /** Whether all of its tensors are there. */
  get isThere(): boolean {
    const { inputs, outputs } = this;
    for (let i = 0; i < inputs.length; i++) if (inputs[i]!.isClosed) return false;
    for (let i = 0; i < outputs.length; i++) if (outputs[i]!.isClosed) return false;
    return true;
  }

  queue(stream: Stream, context: OnnxContext): QueuedRun {
    const line = this.line?.stream === stream ? this.line : (this.line = lineOf(stream, this.engine.library.path));
    const { works, bindingNow } = this;
    let work = works[0];
    if (work?.context !== context) {
      work = works.find((each) => each.context === context) ?? new ContextRun(this, context);
      if (!works.includes(work)) works.push(work);
    }
    const last = { line, number: line.queue(work) };
    if (bindingNow !== undefined) bindingNow.last = last;
    return last;
  }

  /** The session for its shapes. */
  takeSession(): number {
    return this.engine.sessions.take(this.shapes);
  }

  async bind(addresses: readonly number[]): Promise<Binding> {
    if (this.bindingNow?.isReleased === true) {
      this.binding = undefined;
      this.bindingNow = undefined;
    }
    try {
      this.bindingNow = await (this.binding ??= this.made(addresses));
      return this.bindingNow;
    } catch (error) {
      this.binding = undefined;
      throw error;
    }
  }

  private async made(addresses: readonly number[]): Promise<Binding> {
    const { engine, inputs, outputs } = this;
    const { path } = engine.library;
    const base = await engine.base;
    const place = (tensor: AnyTensor, i: number): PlacedTensor => ({ type: typeNumber(tensor.dtype.name), shape: [...tensor.shape], address: base + addresses[i]!, bytes: tensor.dense().byteLength });
    const binding = new Binding(await ask({
      kind: 'bind', path, memory: engine.provider, ordinal: engine.device.ordinal,
      inputNames: engine.inputs.map(({ name }) => name), inputs: inputs.map(place),
      outputNames: engine.outputs.map(({ name }) => name), outputs: outputs.map((tensor, i) => place(tensor, inputs.length + i)),
    }), path);
    engine.bindings.add(binding);
    return binding;
  }
}

/** The run in one context. */
class ContextRun implements LineWork {
  readonly context: OnnxContext;
  private readonly run: KeptRun;
  private readonly args = new Float64Array(LINE_ARGS);
  private binding: Binding | undefined;

  constructor(run: KeptRun, context: OnnxContext) {
    this.run = run;
    this.context = context;
  }

  get name(): string {
    return this.run.held.name!;
  }

  get uses(): readonly HostUse[] {
    return this.run.uses;
  }

  get held(): Held {
    return this.run.held;
  }

  ready(): Float64Array | undefined {
    if (this.binding?.isReleased !== false) return undefined;
    this.args[SESSION] = this.run.takeSession();
    return this.args;
  }

  async prepare(addresses: readonly number[]): Promise<void> {
    const { args, run, context } = this;
    const [binding, runOptions] = await Promise.all([run.bind(addresses), context.keptOptions()]);
    const { bound } = binding;
    args[RUN_OPTIONS] = runOptions;
    args[INPUT_NAMES] = bound.inputNames;
    args[INPUTS] = bound.inputs;
    args[INPUT_COUNT] = run.engine.inputs.length;
    args[OUTPUT_NAMES] = bound.outputNames;
    args[OUTPUT_COUNT] = run.engine.outputs.length;
    args[OUTPUTS] = bound.outputs;
    this.binding = binding;
  }
}

/** What tells shapes of inputs from others. */
export function shapesOf(inputs: readonly { readonly shape: readonly number[] }[]): string {
  return inputs.map(({ shape }) => shape.join('x')).join();
}
