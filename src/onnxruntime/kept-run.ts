/**
 * A run all of whose tensors were given: queued again, it does the same to the same memory. What the library takes for it is made once,
 * and a thread is told numbers that are ready. Where the library does not reach the device's memory that is page-locked memory, which
 * tensors are copied to in front of the run and from behind it.
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
import { layOut, stageIn, stageOut, useOf } from './staging.js';
import type { StagingArea } from './staging.js';
import { ask } from './thread-crew.js';
import type { Bound, PlacedTensor } from './thread/messages.js';

/** Places of an entry's numbers: Run's arguments, in their order. */
const [SESSION, RUN_OPTIONS, INPUT_NAMES, INPUTS, INPUT_COUNT, OUTPUT_NAMES, OUTPUT_COUNT, OUTPUTS] = [0, 1, 2, 3, 4, 5, 6, 7];
/** Of an engine: whoever has more operations than these in turns has them made anew. */
const MOST_BOUND = 64;

const lines = new WeakMap<Stream, Map<string, WorkLine>>();

/** The line of a stream's runs by the library at the path. */
function lineOf(stream: Stream, { library: { path }, niceness }: OnnxEngine): WorkLine {
  let ofStream = lines.get(stream);
  if (ofStream === undefined) {
    ofStream = new Map();
    lines.set(stream, ofStream);
  }
  let line = ofStream.get(path);
  if (line === undefined) {
    line = new WorkLine(stream, (memory) => ask({ kind: 'line', path, niceness, memory }));
    ofStream.set(path, line);
  }
  return line;
}

/** What the library takes for one kept run. It knows no tensor: whoever forgets them has them collected. */
class Binding {
  readonly bound: Bound;
  isReleased = false;
  /** The last run with it in each line. */
  private readonly last: ReadonlyMap<WorkLine, number>;
  private readonly path: string;

  constructor(bound: Bound, path: string, last: ReadonlyMap<WorkLine, number>) {
    this.bound = bound;
    this.path = path;
    this.last = last;
  }

  /** Gives it back behind its last runs. What is queued from here on is bound anew. */
  async release(): Promise<void> {
    this.isReleased = true;
    await Promise.all([...this.last].map(([line, number]) => line.ended(number)));
    await ask({ kind: 'take', path: this.path, values: this.bound.values.map((value) => ({ value, data: 0, bytes: 0, to: 0 })) });
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

  get count(): number {
    return this.kept.size;
  }

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
  /** Page-locked memory that it takes, where tensors go through that. */
  readonly bytes: number;
  private readonly inputs: readonly AnyTensor[];
  private readonly outputs: readonly AnyTensor[];
  /** Where tensors begin in page-locked memory. */
  private readonly offsets: readonly number[];
  private works: ContextRun[] = [];
  private readonly shapes: string;
  /** Of tensors where they lie: the same for all contexts. */
  private readonly inPlace: Bindable | undefined;
  private line: WorkLine | undefined;

  /** Of tensors without gaps. */
  constructor(engine: OnnxEngine, inputs: readonly AnyTensor[], outputs: readonly AnyTensor[], value: NamedTensors) {
    this.engine = engine;
    this.inputs = inputs;
    this.outputs = outputs;
    this.value = value;
    const { offsets, bytes } = layOut([...inputs, ...outputs].map((tensor) => tensor.dense().byteLength));
    this.offsets = offsets;
    this.bytes = bytes;
    this.inPlace = engine.staged ? undefined : new Bindable(async (last, addresses) => {
      const base = await engine.base;
      return this.made(last, (i) => base + addresses[i]!);
    });
    this.shapes = shapesOf(inputs);
  }

  /** Whether all of its tensors are there. */
  get isThere(): boolean {
    const { inputs, outputs } = this;
    for (let i = 0; i < inputs.length; i++) if (inputs[i]!.isClosed) return false;
    for (let i = 0; i < outputs.length; i++) if (outputs[i]!.isClosed) return false;
    return true;
  }

  /** `area`: page-locked memory of the context's where tensors go through that, at least {@link bytes}. */
  queue(stream: Stream, context: OnnxContext, area: StagingArea | undefined): QueuedRun {
    const line = this.line?.stream === stream ? this.line : (this.line = lineOf(stream, this.engine));
    let work = this.works[0];
    if (work?.context !== context || work.area !== area) work = this.workIn(context, area);
    if (area !== undefined) stageIn(stream, area, this.inputs, this.offsets);
    const number = line.queue(work);
    if (area !== undefined) stageOut(stream, area, this.outputs, this.offsets.slice(this.inputs.length));
    work.bindable.last.set(line, number);
    return { line, number };
  }

  /** The session for its shapes. */
  takeSession(): number {
    return this.engine.sessions.take(this.shapes);
  }

  private workIn(context: OnnxContext, area: StagingArea | undefined): ContextRun {
    const known = this.works.find((each) => each.context === context);
    if (known !== undefined && known.area === area) return known;
    const { inPlace, inputs, outputs, offsets } = this;
    let work: ContextRun;
    if (area === undefined) {
      const uses = [...inputs.map((tensor): HostUse => ({ buffer: tensor.dense(), access: 'in' })), ...outputs.map((tensor): HostUse => ({ buffer: tensor.dense(), access: 'out' }))];
      work = new ContextRun(this, context, area, uses, inPlace!);
    } else work = new ContextRun(this, context, area, [useOf(area, inputs)], new Bindable((last) => this.made(last, (i) => area.address + offsets[i]!)));
    // Page-locked memory that was too small for another run has gone.
    this.works = [...this.works.filter((each) => each !== known), work];
    return work;
  }

  private async made(last: ReadonlyMap<WorkLine, number>, addressOf: (tensor: number) => number): Promise<Binding> {
    const { engine, inputs, outputs } = this;
    const { path } = engine.library;
    const place = (tensor: AnyTensor, i: number): PlacedTensor => ({ type: typeNumber(tensor.dtype.name), shape: [...tensor.shape], address: addressOf(i), bytes: tensor.dense().byteLength });
    const binding = new Binding(await ask({
      kind: 'bind', path, memory: engine.provider, ordinal: engine.device.ordinal,
      inputNames: engine.inputs.map(({ name }) => name), inputs: inputs.map(place),
      outputNames: engine.outputs.map(({ name }) => name), outputs: outputs.map((tensor, i) => place(tensor, inputs.length + i)),
    }), path, last);
    engine.bindings.add(binding);
    return binding;
  }
}

type MakeBinding = (last: ReadonlyMap<WorkLine, number>, addresses: readonly number[]) => Promise<Binding>;

/** A binding that is made when it is needed, and anew where it was released. */
class Bindable {
  /** The last run in each line, also of those that were queued before it was made. */
  readonly last = new Map<WorkLine, number>();
  private now: Binding | undefined;
  private readonly make: MakeBinding;
  private making: Promise<Binding> | undefined;

  constructor(make: MakeBinding) {
    this.make = make;
  }

  async bind(addresses: readonly number[]): Promise<Binding> {
    if (this.now?.isReleased === true) {
      this.making = undefined;
      this.now = undefined;
    }
    try {
      this.now = await (this.making ??= this.make(this.last, addresses));
      return this.now;
    } catch (error) {
      this.making = undefined;
      throw error;
    }
  }
}

/** The run in one context. */
class ContextRun implements LineWork {
  readonly context: OnnxContext;
  readonly area: StagingArea | undefined;
  readonly uses: readonly HostUse[];
  readonly held: Held;
  readonly bindable: Bindable;
  private readonly run: KeptRun;
  private readonly args = new Float64Array(LINE_ARGS);
  private binding: Binding | undefined;

  constructor(run: KeptRun, context: OnnxContext, area: StagingArea | undefined, uses: readonly HostUse[], bindable: Bindable) {
    this.run = run;
    this.context = context;
    this.area = area;
    this.uses = uses;
    this.held = { kind: 'call', operation: 0, name: run.engine.toString(), memory: uses.map(({ buffer }) => buffer.memory.handle) };
    this.bindable = bindable;
  }

  get name(): string {
    return this.held.name!;
  }

  ready(): Float64Array | undefined {
    if (this.binding?.isReleased !== false) return undefined;
    this.args[SESSION] = this.run.takeSession();
    return this.args;
  }

  async prepare(addresses: readonly number[]): Promise<void> {
    const { args, run, context } = this;
    const [binding, runOptions] = await Promise.all([this.bindable.bind(addresses), context.keptOptions()]);
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
