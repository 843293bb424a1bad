/**
 * A run all of whose shapes are known before it: it is passed to a thread as numbers in shared
 * memory, without a message in either direction. The library's values for tensors at these
 * addresses are made once and kept: freed memory is allocated again, so runs on new tensors of the
 * same shapes usually find theirs. Where the library does not reach the device's memory, the values
 * are of page-locked memory, to which tensors are copied before the run and from which they are
 * copied after it.
 */
import { DTYPES } from '../core/index.js';
import type { Stream } from '../core/index.js';
import { graphUse } from '../core/foreign-graph.js';
import type { GraphUse } from '../core/foreign-graph.js';
import type { HostUse } from '../core/host-work.js';
import type { Held } from '../core/queued-operation.js';
import { LINE_ARGS, LinePosts, WorkLine } from '../core/work-line.js';
import type { LineWork } from '../core/work-line.js';
import type { NamedTensors } from '../engine/engine.js';
import { LastRun } from '../engine/last-run.js';
import type { QueuedRun } from '../engine/last-run.js';
import type { PlannedOutput } from '../engine/run-checks.js';
import { namedTensors, recycledTensor } from '../engine/run-outputs.js';
import { placesOf } from '../native/memory-places.js';
import type { Run } from '../ops/run.js';
import { contiguous, numel } from '../tensor/layouts.js';
import type { AnyTensor, Layout } from '../tensor/index.js';
import type { OnnxContext } from './context.js';
import { typeNumber } from './element-types.js';
import type { OnnxEngine } from './engine.js';
import { RUNS_BEFORE, releaseOf } from './run-graphs.js';
import type { RecordedRun, RunsOfShapes, Shapes } from './run-graphs.js';
import { stageIn, stageOut, useOf } from './staging.js';
import type { StagingArea } from './staging.js';
import { sendRequest } from './thread-crew.js';
import type { Bound, PlacedTensor } from './thread/messages.js';

/** The places of an entry's numbers: Run's arguments, in their order. */
const [
  SESSION,
  RUN_OPTIONS,
  INPUT_NAMES,
  INPUTS,
  INPUT_COUNT,
  OUTPUT_NAMES,
  OUTPUT_COUNT,
  OUTPUTS,
] = [0, 1, 2, 3, 4, 5, 6, 7];
/** The most bindings of an engine: tensors at more addresses in turns are bound anew. */
const MOST_BOUND = 64;
/**
 * The number of lines whose last run with a binding is remembered before those that are over are
 * removed: a program may have a stream for each run.
 */
const MOST_LINES = 16;

const lines = new WeakMap<Stream, Map<string, WorkLine>>();
const posts = new WeakMap<Stream['runtime'], Map<string, LinePosts>>();

/** Returns the value for the key, and makes it where there is none. */
function kept<K extends object, V>(
  all: WeakMap<K, Map<string, V>>,
  owner: K,
  key: string,
  make: () => V,
): V {
  const its = all.get(owner) ?? new Map<string, V>();
  all.set(owner, its);
  const value = its.get(key) ?? make();
  its.set(key, value);
  return value;
}

/** Returns the line of a stream's runs by the library at the path, on threads of that niceness. */
function lineOf(stream: Stream, { library: { path }, niceness }: OnnxEngine): WorkLine {
  const key = `${niceness} ${path}`;
  return kept(
    lines,
    stream,
    key,
    () =>
      new WorkLine(
        stream,
        kept(
          posts,
          stream.runtime,
          key,
          () =>
            new LinePosts(stream.runtime, (memory) =>
              sendRequest({ kind: 'line', path, niceness, memory }),
            ),
        ),
      ),
  );
}

/** The number of bindings that a run finds by their addresses alone. */
const MOST_AT_HAND = 4;

/**
 * The library's values for tensors at certain addresses. A binding does not refer to the tensors,
 * so they can be collected.
 */
class Binding {
  readonly bound: Bound;
  isReleased = false;
  /** Whether it was used since it was last considered for removal. */
  isFresh = true;
  /** The graph of a run with it, where one was recorded. */
  graph: RecordedRun | undefined = undefined;
  /** The number of runs with it that were passed to a thread. */
  runs = 0;
  /** A recording that may still use it. */
  private recording: Promise<void> | undefined = undefined;
  /** The last run with it in each line, where that may not be over. */
  private readonly last = new Map<WorkLine, number>();
  private readonly path: string;

  constructor(bound: Bound, path: string) {
    this.bound = bound;
    this.path = path;
  }

  /** Counts a run with it that is passed to a thread. */
  usedBy(line: WorkLine, number: number): void {
    const { last } = this;
    this.isFresh = true;
    this.runs++;
    last.set(line, number);
    if (last.size <= MOST_LINES) return;
    for (const [each, its] of last) if (each.isOver(its)) last.delete(each);
  }

  /** Notes that a run with it is being recorded. */
  recordedAs(recorded: Promise<RecordedRun | undefined>): void {
    this.recording = recorded.then((graph) => {
      this.graph = graph;
    });
  }

  /** Releases it after its last runs. Later runs are bound anew. */
  async release(): Promise<void> {
    this.isReleased = true;
    await this.recording;
    await Promise.all([...this.last].map(([line, number]) => line.ended(number)));
    await this.graph?.close();
    await sendRequest(releaseOf(this.path, this.bound));
  }
}

/**
 * The bindings of an engine's runs, by shapes and addresses. The oldest ones that were not used
 * lately are removed.
 */
export class Bindings {
  private readonly kept = new Map<string, Binding>();
  private readonly making = new Map<string, Promise<Binding>>();

  get count(): number {
    return this.kept.size;
  }

  find(key: string): Binding | undefined {
    return this.kept.get(key);
  }

  /** Returns the binding that exists or is being made, or makes it. */
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
      if (this.kept.size > MOST_BOUND) this.dropOne();
      return binding;
    } finally {
      this.making.delete(key);
    }
  }

  /** Removes the first that was not used since the last time; those before it go to the end. */
  private dropOne(): void {
    const { kept } = this;
    // Those that go to the end are visited again, and are then not fresh.
    for (const [key, binding] of kept) {
      kept.delete(key);
      if (!binding.isFresh) {
        void binding.release();
        return;
      }
      binding.isFresh = false;
      kept.set(key, binding);
    }
  }

  async close(): Promise<void> {
    await Promise.all([...this.kept.values()].map((binding) => binding.release()));
    this.kept.clear();
  }
}

/** A run by its number in its line. */
class InLine implements QueuedRun {
  private readonly line: WorkLine;
  private readonly number: number;

  constructor(line: WorkLine, number: number) {
    this.line = line;
    this.number = number;
  }

  get stream(): Stream {
    return this.line.stream;
  }

  get isOver(): boolean {
    return this.line.isOver(this.number);
  }

  ended(): Promise<void> {
    return this.line.ended(this.number);
  }
}

/**
 * An output of a known shape. `given`: the tensor that it is written to; undefined where one is
 * made for each run.
 */
interface KnownOutput extends Pick<PlannedOutput, 'info' | 'given'> {
  readonly layout: Layout;
}

export class LineRun {
  readonly engine: OnnxEngine;
  /** Bytes of page-locked memory that it needs, where tensors go through that. */
  readonly bytes: number;
  private readonly inputs: readonly AnyTensor[];
  private readonly outputs: readonly KnownOutput[];
  /** Its value, where that is the same each time: all outputs were given. */
  private readonly value: NamedTensors | undefined;
  /**
   * The description of the tensors for the library, inputs first. It is read now: they may be
   * closed when it is their turn.
   */
  private readonly placed: readonly Omit<PlacedTensor, 'address'>[];
  /** The tensors' offsets in page-locked memory. */
  private readonly offsets: readonly number[];
  /** The runs in each context, where all outputs were given and they are the same each time. */
  private works: ContextRun[] = [];
  private readonly name: string;
  private readonly shapes: string;
  private readonly inputShapes: string;
  private readonly inputUses: readonly HostUse[];
  /** The runs of these shapes, where runs are recorded. @internal */
  readonly family: RunsOfShapes | undefined;
  private readonly args = new Float64Array(LINE_ARGS);
  private line: WorkLine | undefined = undefined;
  /**
   * The bindings that it has found last, with their addresses: a loop that makes its outputs anew
   * has few of them in turns.
   */
  private readonly atHand: { readonly addresses: readonly number[]; readonly binding: Binding }[] =
    [];
  private nextAtHand = 0;

  /**
   * Makes one of inputs without gaps; returns undefined where an output's shape is known only after
   * the run.
   */
  static of(
    engine: OnnxEngine,
    inputs: readonly AnyTensor[],
    outputs: readonly PlannedOutput[],
  ): LineRun | undefined {
    const known = outputs.flatMap(({ info, given, shape: planned }): KnownOutput[] => {
      const shape = given?.shape ?? planned;
      return shape === undefined ? [] : [{ info, given, layout: contiguous(shape) }];
    });
    return known.length === outputs.length ? new LineRun(engine, inputs, known) : undefined;
  }

  private constructor(
    engine: OnnxEngine,
    inputs: readonly AnyTensor[],
    outputs: readonly KnownOutput[],
  ) {
    this.engine = engine;
    this.name = engine.toString();
    this.inputs = inputs;
    this.outputs = outputs;
    this.value = outputs.every(({ given }) => given !== undefined)
      ? namedTensors(
          engine.outputs,
          outputs.map(({ given }) => given!),
        )
      : undefined;
    this.inputUses = inputs.map((tensor) => ({ buffer: tensor.dense(), access: 'in' }));
    this.placed = [
      ...inputs.map((tensor, i) => ({
        type: typeNumber(tensor.dtype.name),
        shape: [...tensor.shape],
        bytes: this.inputUses[i]!.buffer.byteLength,
      })),
      ...outputs.map(({ info, layout: { shape } }) => ({
        type: typeNumber(info.dtype),
        shape: [...shape],
        bytes: DTYPES[info.dtype].bytes * numel(shape),
      })),
    ];
    const { offsets, bytes } = placesOf(this.placed.map((tensor) => tensor.bytes));
    this.offsets = offsets;
    this.bytes = bytes;
    this.inputShapes = shapesOf(inputs);
    this.shapes = `${this.inputShapes}>${shapesOf(outputs.map(({ layout }) => layout))}`;
    this.family = engine.graphs?.ofShapes(this.shapes);
  }

  /** Whether all tensors that it was given are open. */
  get isOpen(): boolean {
    const { inputs, outputs } = this;
    for (let i = 0; i < inputs.length; i++) if (inputs[i]!.isClosed) return false;
    for (let i = 0; i < outputs.length; i++) if (outputs[i]!.given?.isClosed === true) return false;
    return true;
  }

  /**
   * Queues the run. `area`: page-locked memory of the context where tensors go through that, at
   * least {@link bytes}.
   */
  queue(run: Run, context: OnnxContext, area: StagingArea | undefined): NamedTensors {
    const { value } = this;
    if (value !== undefined) {
      this.queueOn(run.stream, this.workIn(context, area), area);
      return value;
    }
    return this.queueMaking(run, context, area);
  }

  private queueMaking(run: Run, context: OnnxContext, area: StagingArea | undefined): NamedTensors {
    const outputs = this.outputs.map(
      ({ given, info, layout }) => given ?? recycledTensor(run, info.dtype, layout),
    );
    this.queueOn(run.stream, new ContextRun(this, context, area, outputs), area);
    return namedTensors(this.engine.outputs, outputs);
  }

  /** Whether a run can be queued beside others of its context, as a graph. */
  isGraphOn(stream: Stream): boolean {
    return this.family?.shared?.canLaunch(stream) === true;
  }

  private queueOn(stream: Stream, work: ContextRun, area: StagingArea | undefined): void {
    if (this.engine.graphs !== undefined && work.launch(stream)) return;
    const line =
      this.line?.stream === stream ? this.line : (this.line = lineOf(stream, this.engine));
    if (area !== undefined) stageIn(stream, area, this.inputs, this.offsets);
    const number = line.queue(work);
    if (area !== undefined)
      stageOut(stream, area, work.outputs, this.offsets.slice(this.inputs.length));
    work.context.lastInLine = new InLine(line, number);
  }

  private workIn(context: OnnxContext, area: StagingArea | undefined): ContextRun {
    const { works } = this;
    for (let i = 0; i < works.length; i++)
      if (works[i]!.context === context && works[i]!.area === area) return works[i]!;
    return this.newWorkIn(context, area);
  }

  private newWorkIn(context: OnnxContext, area: StagingArea | undefined): ContextRun {
    const work = new ContextRun(
      this,
      context,
      area,
      this.outputs.map(({ given }) => given!),
    );
    // Page-locked memory that was too small for another run has been replaced.
    this.works = [...this.works.filter((each) => each.context !== context), work];
    return work;
  }

  // Members for a run of it in a context

  /** Its name in errors. */
  toString(): string {
    return this.name;
  }

  refusal(error: unknown): unknown {
    return this.engine.outputShapes.refusal(
      error,
      this.outputs.map(({ info, given, layout: { shape } }) => ({ info, given, shape })),
    );
  }

  /** Returns Run's arguments, valid until the next call. The session is that for its shapes. */
  argsOf({ inputNames, inputs, outputNames, outputs }: Bound, runOptions: number): Float64Array {
    const { args } = this;
    args[SESSION] = this.engine.sessions.take(this.inputShapes);
    args[RUN_OPTIONS] = runOptions;
    args[INPUT_NAMES] = inputNames;
    args[INPUTS] = inputs;
    args[INPUT_COUNT] = this.inputs.length;
    args[OUTPUT_NAMES] = outputNames;
    args[OUTPUT_COUNT] = this.outputs.length;
    args[OUTPUTS] = outputs;
    return args;
  }

  uses(outputs: readonly AnyTensor[], area: StagingArea | undefined): HostUse[] {
    if (area !== undefined) return [useOf(area, this.inputs)];
    const uses = this.inputUses.slice();
    for (let i = 0; i < outputs.length; i++) {
      const tensor = outputs[i]!;
      // No other code uses the memory of a tensor that is made here.
      uses.push({
        buffer: this.outputs[i]!.given === undefined ? tensor.buffer : tensor.dense(),
        access: 'out',
      });
    }
    return uses;
  }

  /**
   * Returns the binding for the memory, if it exists. `values`: the addresses of the device's
   * allocations, by their handles.
   */
  findBinding(
    values: Float64Array,
    uses: readonly HostUse[],
    area: StagingArea | undefined,
  ): Binding | undefined {
    if (area !== undefined) return this.engine.bindings.find(this.keyOf([], area));
    const { atHand } = this;
    for (let i = 0; i < atHand.length; i++) {
      const { addresses, binding } = atHand[i]!;
      let at = 0;
      while (at < uses.length && addressOf(values, uses[at]!) === addresses[at]) at++;
      if (at === uses.length && !binding.isReleased) return binding;
    }
    const addresses = uses.map((use) => addressOf(values, use));
    const binding = this.engine.bindings.find(this.keyOf(addresses, area));
    if (binding !== undefined) {
      atHand[this.nextAtHand] = { addresses, binding };
      this.nextAtHand = (this.nextAtHand + 1) % MOST_AT_HAND;
    }
    return binding;
  }

  /**
   * Returns the key of its binding. `addresses`: the device's, where the library reaches that
   * memory.
   */
  private keyOf(addresses: readonly number[], area: StagingArea | undefined): string {
    return `${this.shapes}|${area?.address ?? addresses.join()}`;
  }

  /** Notes that it was passed to a thread with this binding once more. */
  passed(binding: Binding): void {
    const {
      engine: { graphs },
      family,
    } = this;
    if (graphs === undefined || family === undefined) return;
    // Memory that is repeated often has a graph of its own, or will have one.
    if (binding.runs < RUNS_BEFORE && family.countPassed())
      graphs.share(family, this.recordable, (addresses) => this.boundAt(addresses));
    if (!family.isShared && graphs.isWorthwhile(binding.runs)) this.record(binding);
  }

  /**
   * Notes that it is on this binding's memory once more, in the graph that runs of its shapes
   * share: a run that stays there does not need the copies.
   */
  shared(binding: Binding): void {
    const {
      engine: { graphs },
      family,
    } = this;
    if (graphs?.isWorthwhile(family!.inRowOn(binding)) === true) this.record(binding);
  }

  private record(binding: Binding): void {
    binding.recordedAs(
      this.engine.graphs!.record({
        ...this.recordable,
        bound: binding.bound,
        get isReleased() {
          return binding.isReleased;
        },
      }),
    );
  }

  private get recordable(): Shapes {
    const {
      engine: { inputs, outputs },
      inputShapes,
      placed,
    } = this;
    return {
      shapes: inputShapes,
      inputNames: inputs.map(({ name }) => name),
      inputs: placed.slice(0, inputs.length),
      outputNames: outputs.map(({ name }) => name),
      outputs: placed.slice(inputs.length),
    };
  }

  async bind(addresses: readonly number[], area: StagingArea | undefined): Promise<Binding> {
    const { engine, offsets, placed } = this;
    return engine.bindings.bind(this.keyOf(addresses, area), async () => {
      const base = await engine.base;
      return new Binding(
        await this.boundAt(
          placed.map((_, i) =>
            area === undefined ? base + addresses[i]! : area.address + offsets[i]!,
          ),
        ),
        engine.library.path,
      );
    });
  }

  /** Binds tensors at these addresses of the process, or of the GPU. */
  private boundAt(addresses: readonly number[]): Promise<Bound> {
    const { engine, placed, inputs } = this;
    const tensors = placed.map((tensor, i): PlacedTensor => ({
      ...tensor,
      address: addresses[i]!,
    }));
    return sendRequest({
      kind: 'bind',
      path: engine.library.path,
      memory: engine.provider,
      ordinal: engine.device.ordinal,
      inputNames: engine.inputs.map(({ name }) => name),
      inputs: tensors.slice(0, inputs.length),
      outputNames: engine.outputs.map(({ name }) => name),
      outputs: tensors.slice(inputs.length),
    });
  }
}

/** The run in one context, on these outputs; also the description of its hold. */
class ContextRun implements LineWork, Held {
  readonly kind = 'call';
  readonly operation = 0;
  readonly context: OnnxContext;
  readonly area: StagingArea | undefined;
  readonly outputs: readonly AnyTensor[];
  readonly uses: readonly HostUse[];
  private readonly run: LineRun;
  private binding: Binding | undefined = undefined;
  private graphUses: GraphUse[] | undefined = undefined;
  /** The number of launches of the graph of its shapes, on memory without a binding. */
  private launches = 0;

  constructor(
    run: LineRun,
    context: OnnxContext,
    area: StagingArea | undefined,
    outputs: readonly AnyTensor[],
  ) {
    this.run = run;
    this.context = context;
    this.area = area;
    this.outputs = outputs;
    this.uses = run.uses(outputs, area);
  }

  get name(): string {
    return this.run.toString();
  }

  get held(): Held {
    return this;
  }

  /** The handles of its memory. */
  get memory(): number[] {
    return this.uses.map(({ buffer }) => buffer.memory.handle);
  }

  /** Launches it as a graph, where there is one that can be launched now. */
  launch(stream: Stream): boolean {
    const { context } = this;
    const mark = this.launchAlone(stream) ?? this.launchShared(stream);
    if (mark === undefined) return false;
    // The device orders a launch beside a run of the context, and the context has to wait for that
    // run all the same.
    if (context.isFreeFor(stream))
      context.lastInLine = LastRun.latest(context.lastInLine, stream, mark);
    return true;
  }

  private launchAlone(stream: Stream): number | undefined {
    const binding = this.bindingThere(stream);
    if (binding === undefined) return undefined;
    binding.isFresh = true;
    return binding.graph?.launch(stream, (this.graphUses ??= this.uses.map(graphUse)));
  }

  private launchShared(stream: Stream): number | undefined {
    const { run, uses } = this;
    const mark = run.family?.shared?.launch(stream, uses);
    if (mark === undefined) return undefined;
    if (this.binding?.isReleased === false) run.shared(this.binding);
    // A binding needs the addresses of its memory.
    else if (++this.launches === RUNS_BEFORE) this.bindSoon(stream);
    return mark;
  }

  private bindSoon({ runtime }: Stream): void {
    const addresses = this.uses.map((use) => addressOf(runtime.shared.values, use));
    if (addresses.every((address, i) => address > this.uses[i]!.buffer.byteOffset))
      this.prepare(addresses).catch(ignore);
  }

  ready(line: WorkLine, number: number): Float64Array | undefined {
    const { run, context } = this;
    const runOptions = context.lineOptionsMade;
    if (runOptions === undefined) return undefined;
    const binding = this.bindingThere(line.stream);
    if (binding === undefined) return undefined;
    binding.usedBy(line, number);
    run.passed(binding);
    return run.argsOf(binding.bound, runOptions);
  }

  private bindingThere({ runtime }: Stream): Binding | undefined {
    if (this.binding?.isReleased !== false)
      this.binding = this.run.findBinding(runtime.shared.values, this.uses, this.area);
    return this.binding;
  }

  refusal(error: unknown): unknown {
    return this.run.refusal(error);
  }

  async prepare(addresses: readonly number[]): Promise<void> {
    [this.binding] = await Promise.all([
      this.run.bind(addresses, this.area),
      this.context.lineOptions(),
    ]);
  }
}

function addressOf(values: Float64Array, { buffer }: HostUse): number {
  return values[buffer.memory.handle]! + buffer.byteOffset;
}

/** Returns a text that is different for different shapes. */
export function shapesOf(tensors: readonly { readonly shape: readonly number[] }[]): string {
  return tensors.map(({ shape }) => shape.join('x')).join();
}

function ignore(): void {
  // The memory is bound when the run is passed to a thread, if it is.
}
