/**
 * A run all of whose shapes are known before it: a thread is told numbers in shared memory, and no message goes to it or comes back.
 * What the library takes for tensors at these addresses is made once and kept: memory that was freed is given out again, so runs on
 * new tensors of the same shapes most often find theirs. Where the library does not reach the device's memory that is page-locked
 * memory, which tensors are copied to in front of the run and from behind it.
 */
import { DTYPES } from '../core/index.js';
import type { Stream } from '../core/index.js';
import type { HostUse } from '../core/host-work.js';
import type { Held } from '../core/queued-operation.js';
import { LINE_ARGS, LinePosts, WorkLine } from '../core/work-line.js';
import type { LineWork } from '../core/work-line.js';
import type { NamedTensors } from '../engine/engine.js';
import type { PlannedOutput } from '../engine/run-checks.js';
import { namedTensors, recycledTensor } from '../engine/run-outputs.js';
import type { Run } from '../ops/run.js';
import { numel } from '../tensor/index.js';
import type { AnyTensor } from '../tensor/index.js';
import type { OnnxContext } from './context.js';
import { typeNumber } from './element-types.js';
import type { OnnxEngine } from './engine.js';
import { layOut, stageIn, stageOut, useOf } from './staging.js';
import type { StagingArea } from './staging.js';
import { ask } from './thread-crew.js';
import type { Bound, PlacedTensor } from './thread/messages.js';

/** Places of an entry's numbers: Run's arguments, in their order. */
const [SESSION, RUN_OPTIONS, INPUT_NAMES, INPUTS, INPUT_COUNT, OUTPUT_NAMES, OUTPUT_COUNT, OUTPUTS] = [0, 1, 2, 3, 4, 5, 6, 7];
/** Of an engine: whoever has tensors at more addresses than these in turns has them bound anew. */
const MOST_BOUND = 64;
/** Lines whose last run with a binding is remembered, before it is looked which of those are over: a program may have a stream for each run. */
const MOST_LINES = 16;

const lines = new WeakMap<Stream, Map<string, WorkLine>>();
const posts = new WeakMap<Stream['runtime'], Map<string, LinePosts>>();

/** What is there for the key, or is made now. */
function kept<K extends object, V>(all: WeakMap<K, Map<string, V>>, owner: K, key: string, make: () => V): V {
  const its = all.get(owner) ?? new Map<string, V>();
  all.set(owner, its);
  const value = its.get(key) ?? make();
  its.set(key, value);
  return value;
}

/** The line of a stream's runs by the library at the path, on threads of that niceness. */
function lineOf(stream: Stream, { library: { path }, niceness }: OnnxEngine): WorkLine {
  const key = `${niceness} ${path}`;
  return kept(lines, stream, key, () => (
    new WorkLine(stream, kept(posts, stream.runtime, key, () => new LinePosts(stream.runtime, (memory) => ask({ kind: 'line', path, niceness, memory }))))));
}

/** What the library takes for tensors at certain addresses. It knows no tensor: whoever forgets them has them collected. */
class Binding {
  readonly bound: Bound;
  isReleased = false;
  /** The last run with it in each line, where that may not be over. */
  private readonly last = new Map<WorkLine, number>();
  private readonly path: string;

  constructor(bound: Bound, path: string) {
    this.bound = bound;
    this.path = path;
  }

  /** A run with it is told. */
  usedBy(line: WorkLine, number: number): void {
    const { last } = this;
    last.set(line, number);
    if (last.size <= MOST_LINES) return;
    for (const [each, its] of last) if (each.isOver(its)) last.delete(each);
  }

  /** Gives it back behind its last runs. What is told from here on is bound anew. */
  async release(): Promise<void> {
    this.isReleased = true;
    await Promise.all([...this.last].map(([line, number]) => line.ended(number)));
    await ask({ kind: 'take', path: this.path, values: this.bound.values.map((value) => ({ value, data: 0, bytes: 0, to: 0 })) });
  }
}

/** What is bound for an engine's runs, by shapes and addresses: what was used least lately gives way. */
export class Bindings {
  private readonly kept = new Map<string, Binding>();
  private readonly making = new Map<string, Promise<Binding>>();

  get count(): number {
    return this.kept.size;
  }

  find(key: string): Binding | undefined {
    const found = this.kept.get(key);
    if (found === undefined) return undefined;
    this.kept.delete(key);
    this.kept.set(key, found);
    return found;
  }

  /** What is there, or is being made, or is made now. */
  async bind(key: string, make: () => Promise<Binding>): Promise<Binding> {
    const found = this.find(key);
    if (found !== undefined) return found;
    let making = this.making.get(key);
    if (making === undefined) {
      making = this.made(key, make);
      this.making.set(key, making);
    }
    return making;
  }

  private async made(key: string, make: () => Promise<Binding>): Promise<Binding> {
    try {
      const binding = await make();
      this.kept.set(key, binding);
      if (this.kept.size > MOST_BOUND) {
        const [oldest] = this.kept;
        this.kept.delete(oldest![0]);
        void oldest![1].release();
      }
      return binding;
    } finally {
      this.making.delete(key);
    }
  }

  async close(): Promise<void> {
    await Promise.all([...this.kept.values()].map((binding) => binding.release()));
    this.kept.clear();
  }
}

/** A run, as its line numbers it. */
export interface QueuedRun {
  readonly line: WorkLine;
  readonly number: number;
}

/** An output of a known shape; `given`: what it is written to, else it is made for each run. */
interface KnownOutput extends PlannedOutput {
  readonly shape: readonly number[];
}

export class LineRun {
  readonly engine: OnnxEngine;
  /** Page-locked memory that it takes, where tensors go through that. */
  readonly bytes: number;
  private readonly inputs: readonly AnyTensor[];
  private readonly outputs: readonly KnownOutput[];
  /** What it gives, where that is the same each time: all outputs were given. */
  private readonly value: NamedTensors | undefined;
  /** What the library is told of the tensors, inputs first. Read now: they may be closed when it is their turn. */
  private readonly placed: readonly Omit<PlacedTensor, 'address'>[];
  /** Where they begin in page-locked memory. */
  private readonly offsets: readonly number[];
  /** What is the same each time that it is queued in a context, where all outputs were given. */
  private works: ContextRun[] = [];
  private readonly name: string;
  private readonly shapes: string;
  private readonly inputShapes: string;
  private line: WorkLine | undefined;

  /** Of inputs without gaps; undefined where an output's shape is known only behind the run. */
  static of(engine: OnnxEngine, inputs: readonly AnyTensor[], outputs: readonly PlannedOutput[]): LineRun | undefined {
    const known = outputs.map((output) => ({ ...output, shape: output.given?.shape ?? output.shape }));
    return known.every((output): output is KnownOutput => output.shape !== undefined) ? new LineRun(engine, inputs, known) : undefined;
  }

  private constructor(engine: OnnxEngine, inputs: readonly AnyTensor[], outputs: readonly KnownOutput[]) {
    this.engine = engine;
    this.name = engine.toString();
    this.inputs = inputs;
    this.outputs = outputs;
    this.value = outputs.every(({ given }) => given !== undefined) ? namedTensors(engine.outputs, outputs.map(({ given }) => given!)) : undefined;
    this.placed = [
      ...inputs.map((tensor) => ({ type: typeNumber(tensor.dtype.name), shape: [...tensor.shape], bytes: tensor.dense().byteLength })),
      ...outputs.map(({ info, shape }) => ({ type: typeNumber(info.dtype), shape: [...shape], bytes: DTYPES[info.dtype].bytes * numel(shape) })),
    ];
    const { offsets, bytes } = layOut(this.placed.map((tensor) => tensor.bytes));
    this.offsets = offsets;
    this.bytes = bytes;
    this.inputShapes = shapesOf(inputs);
    this.shapes = `${this.inputShapes}>${shapesOf(outputs)}`;
  }

  /** Whether all tensors that it was given are there. */
  get isThere(): boolean {
    const { inputs, outputs } = this;
    for (let i = 0; i < inputs.length; i++) if (inputs[i]!.isClosed) return false;
    for (let i = 0; i < outputs.length; i++) if (outputs[i]!.given?.isClosed === true) return false;
    return true;
  }

  /** `area`: page-locked memory of the context's where tensors go through that, at least {@link bytes}. */
  queue(run: Run, context: OnnxContext, area: StagingArea | undefined): { readonly value: NamedTensors; readonly queued: QueuedRun } {
    const { value } = this;
    if (value !== undefined) return { value, queued: this.queueOn(run.stream, this.workIn(context, area), area) };
    const made: AnyTensor[] = [];
    try {
      const outputs = this.outputs.map(({ given, info, shape }) => {
        if (given !== undefined) return given;
        const tensor = recycledTensor(run, info.dtype, shape);
        made.push(tensor);
        return tensor;
      });
      const queued = this.queueOn(run.stream, new ContextRun(this, context, area, outputs), area);
      return { value: namedTensors(this.engine.outputs, outputs), queued };
    } catch (error) {
      for (const tensor of made) tensor.close();
      throw error;
    }
  }

  private queueOn(stream: Stream, work: ContextRun, area: StagingArea | undefined): QueuedRun {
    const line = this.line?.stream === stream ? this.line : (this.line = lineOf(stream, this.engine));
    if (area !== undefined) stageIn(stream, area, this.inputs, this.offsets);
    const number = line.queue(work);
    if (area !== undefined) stageOut(stream, area, work.outputs, this.offsets.slice(this.inputs.length));
    return { line, number };
  }

  private workIn(context: OnnxContext, area: StagingArea | undefined): ContextRun {
    const known = this.works.find((each) => each.context === context);
    if (known !== undefined && known.area === area) return known;
    const work = new ContextRun(this, context, area, this.outputs.map(({ given }) => given!));
    // Page-locked memory that was too small for another run has gone.
    this.works = [...this.works.filter((each) => each !== known), work];
    return work;
  }

  // For a run of it in a context

  /** How errors call it. */
  toString(): string {
    return this.name;
  }

  /** Numbers of Run's arguments that depend on nothing else. */
  fill(args: Float64Array, { inputNames, inputs, outputNames, outputs }: Bound, runOptions: number): void {
    args[RUN_OPTIONS] = runOptions;
    args[INPUT_NAMES] = inputNames;
    args[INPUTS] = inputs;
    args[INPUT_COUNT] = this.inputs.length;
    args[OUTPUT_NAMES] = outputNames;
    args[OUTPUT_COUNT] = this.outputs.length;
    args[OUTPUTS] = outputs;
  }

  /** The session for its shapes. */
  takeSession(args: Float64Array): void {
    args[SESSION] = this.engine.sessions.take(this.inputShapes);
  }

  uses(outputs: readonly AnyTensor[], area: StagingArea | undefined): HostUse[] {
    if (area !== undefined) return [useOf(area, this.inputs)];
    const { inputs } = this;
    return [...inputs.map((tensor): HostUse => ({ buffer: tensor.dense(), access: 'in' })), ...outputs.map((tensor): HostUse => ({ buffer: tensor.dense(), access: 'out' }))];
  }

  /** What tells its binding from others. `addresses`: the device's, where the library reaches that memory. */
  keyOf(addresses: readonly number[], area: StagingArea | undefined): string {
    return `${this.shapes}|${area?.address ?? addresses.join()}`;
  }

  async bind(addresses: readonly number[], area: StagingArea | undefined): Promise<Binding> {
    const { engine, offsets, placed, inputs } = this;
    const { path } = engine.library;
    return engine.bindings.bind(this.keyOf(addresses, area), async () => {
      const base = await engine.base;
      const tensors = placed.map((tensor, i): PlacedTensor => ({ ...tensor, address: area === undefined ? base + addresses[i]! : area.address + offsets[i]! }));
      return new Binding(await ask({
        kind: 'bind', path, memory: engine.provider, ordinal: engine.device.ordinal,
        inputNames: engine.inputs.map(({ name }) => name), inputs: tensors.slice(0, inputs.length),
        outputNames: engine.outputs.map(({ name }) => name), outputs: tensors.slice(inputs.length),
      }), path);
    });
  }
}

/** The run in one context, on these outputs. */
class ContextRun implements LineWork {
  readonly context: OnnxContext;
  readonly area: StagingArea | undefined;
  readonly outputs: readonly AnyTensor[];
  readonly uses: readonly HostUse[];
  readonly held: Held;
  private readonly run: LineRun;
  private readonly args = new Float64Array(LINE_ARGS);
  private binding: Binding | undefined;

  constructor(run: LineRun, context: OnnxContext, area: StagingArea | undefined, outputs: readonly AnyTensor[]) {
    this.run = run;
    this.context = context;
    this.area = area;
    this.outputs = outputs;
    this.uses = run.uses(outputs, area);
    this.held = { kind: 'call', operation: 0, name: run.toString(), memory: this.uses.map(({ buffer }) => buffer.memory.handle) };
  }

  get name(): string {
    return this.held.name!;
  }

  ready(line: WorkLine, number: number): Float64Array | undefined {
    const { args, run } = this;
    if (this.binding?.isReleased !== false && !this.findBinding(line)) return undefined;
    this.binding!.usedBy(line, number);
    run.takeSession(args);
    return args;
  }

  async prepare(addresses: readonly number[]): Promise<void> {
    const [binding, runOptions] = await Promise.all([this.run.bind(addresses, this.area), this.context.lineOptions()]);
    this.take(binding, runOptions);
  }

  private findBinding({ stream }: WorkLine): boolean {
    const { run, context, area, uses } = this;
    const runOptions = context.lineOptionsThere;
    if (runOptions === undefined) return false;
    const { values } = stream.runtime.shared;
    const addresses = area === undefined ? uses.map(({ buffer }) => values[buffer.memory.handle]! + buffer.byteOffset) : [];
    const binding = context.engine.bindings.find(run.keyOf(addresses, area));
    if (binding !== undefined) this.take(binding, runOptions);
    return binding !== undefined;
  }

  private take(binding: Binding, runOptions: number): void {
    this.run.fill(this.args, binding.bound, runOptions);
    this.binding = binding;
  }
}

/** What tells shapes from others. */
export function shapesOf(tensors: readonly { readonly shape: readonly number[] }[]): string {
  return tensors.map(({ shape }) => shape.join('x')).join();
}
