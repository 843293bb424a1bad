/**
 * Repeated runs of the CUDA provider are recorded as graphs (`thread/recording.ts`), and are
 * commands of their stream from then on, as launches of kernels are: no thread has to be notified.
 * They are recorded while runs continue as before, with a session that runs nothing else. The
 * memory that a graph uses belongs to that session, so its graphs run one after the other.
 *
 * A graph belongs to certain memory. Runs on the same memory have their own; those of the same
 * shapes on changing memory share one that has memory of its own, to which inputs are copied and
 * from which outputs are copied, on the device.
 */
import type { CoreDevice, DeviceBuffer, Stream } from '../core/index.js';
import { u8 } from '../core/index.js';
import { ForeignGraph, graphUse } from '../core/foreign-graph.js';
import type { GraphUse } from '../core/foreign-graph.js';
import type { HostUse } from '../core/host-work.js';
import { LastRun } from '../engine/last-run.js';
import { dtypeOf } from './element-types.js';
import { sendRequest } from './thread-crew.js';
import type { Bound, Loaded, RecordRequest, RecordedSession, Request } from './thread/messages.js';

/** The number of runs on the same memory after which they are recorded. */
export const RUNS_BEFORE = 16;
/**
 * The number of runs of the same shapes, on memory that is not repeated as often, after which they
 * share a graph: four pieces of memory in turns have graphs of their own by then.
 */
const RUNS_BEFORE_SHARED = 4 * RUNS_BEFORE;
/**
 * The most sessions of an engine, each with the model's weights; one for each shape of the inputs.
 */
const MOST_SESSIONS = 8;
/** The most graphs of an engine that are on the memory of tensors. */
const MOST_GRAPHS = 32;
/**
 * The most bytes of inputs and outputs that are copied for a run that shares its graph: they take
 * some tenths of a millisecond.
 */
const MOST_COPIED = 2 ** 28;
/** The most shapes of an engine whose runs are counted. */
const MOST_SHAPES = 256;

let nextId = 1;

/** A session for one shape of the inputs. */
class Recorder {
  readonly session: RecordedSession;
  /** The buffer that orders its graphs: each writes to it. */
  readonly turn: DeviceBuffer<'u8'>;
  /** Whether a run is being recorded: no graph may run then. */
  isRecording = false;
  /** Whether something could not be recorded, so that nothing will be. */
  isUnfit = false;
  /** The last launch of one of its graphs: the others come before it. */
  last: LastRun | undefined = undefined;

  constructor(device: CoreDevice, session: RecordedSession) {
    this.session = session;
    this.turn = device.alloc(u8, 16, { label: 'turn of recorded runs' });
  }
}

/** A run on certain memory, as a graph. */
export class RecordedRun {
  private readonly recorder: Recorder;
  private readonly graph: ForeignGraph;
  private readonly gone: () => void;

  constructor(recorder: Recorder, graph: ForeignGraph, gone: () => void) {
    this.recorder = recorder;
    this.graph = graph;
    this.gone = gone;
  }

  canLaunch(stream: Stream): boolean {
    // A capture refuses work in places where other runs are allowed.
    return !this.recorder.isRecording && stream.captureScope === undefined;
  }

  /**
   * Launches the graph. Returns the stream's mark after it; undefined where it cannot be launched
   * now.
   */
  launch(stream: Stream, uses: readonly GraphUse[]): number | undefined {
    const { recorder } = this;
    if (!this.canLaunch(stream)) return undefined;
    const mark = this.graph.launch(stream, uses, recorder.turn);
    recorder.last = LastRun.latest(recorder.last, stream, mark);
    return mark;
  }

  async close(): Promise<void> {
    await this.recorder.last?.ended();
    await this.graph.close();
    this.gone();
  }
}

/** A run of certain shapes as a graph on memory of its own. */
class SharedRun {
  private readonly run: RecordedRun;
  /** The memory of its own, inputs first. */
  private readonly buffers: readonly DeviceBuffer[];
  private readonly inputs: number;
  private readonly uses: readonly GraphUse[];

  constructor(run: RecordedRun, buffers: readonly DeviceBuffer[], inputs: number) {
    this.run = run;
    this.buffers = buffers;
    this.inputs = inputs;
    this.uses = buffers.map((buffer, index) =>
      graphUse({ buffer, access: index < inputs ? 'in' : 'out' }),
    );
  }

  canLaunch(stream: Stream): boolean {
    return this.run.canLaunch(stream);
  }

  /**
   * Does the same as {@link RecordedRun.launch} on other memory: the device's, of these dtypes and
   * lengths, inputs first.
   */
  launch(stream: Stream, uses: readonly HostUse[]): number | undefined {
    if (!this.canLaunch(stream)) return undefined;
    const { buffers, inputs } = this;
    for (let i = 0; i < inputs; i++) buffers[i]!.copyFrom(stream, uses[i]!.buffer as DeviceBuffer);
    this.run.launch(stream, this.uses);
    for (let i = inputs; i < buffers.length; i++)
      (uses[i]!.buffer as DeviceBuffer).copyFrom(stream, buffers[i]!);
    return stream.mark;
  }

  async close(): Promise<void> {
    await this.run.close();
    for (const buffer of this.buffers) buffer.close();
  }
}

/** Runs of the same shapes. */
export class RunsOfShapes {
  /** The graph that they share, once there is one. */
  shared: SharedRun | undefined = undefined;
  /** Whether there can be no such graph. */
  isRefused = false;
  /** The number of runs on memory that was not repeated often, which were passed to a thread. */
  private passed = 0;
  /** The memory of the last run in the shared graph, and how many runs in a row were on it. */
  private last: object | undefined = undefined;
  private inRow = 0;

  /** Whether there is such a graph, or there will be. */
  get isShared(): boolean {
    return this.passed >= RUNS_BEFORE_SHARED && !this.isRefused;
  }

  /**
   * Counts such a run that is passed to a thread now; returns whether a shared graph is to be made.
   */
  countPassed(): boolean {
    return ++this.passed === RUNS_BEFORE_SHARED;
  }

  /**
   * Returns the number of runs in a row on this memory, including the one in the shared graph now.
   */
  inRowOn(memory: object): number {
    if (memory !== this.last) this.inRow = 0;
    this.last = memory;
    return ++this.inRow;
  }
}

/** The properties that runs of the same shapes have in common. */
export interface Shapes extends Pick<
  RecordRequest,
  'inputNames' | 'inputs' | 'outputNames' | 'outputs'
> {
  /** A text that is different for different shapes of inputs. */
  readonly shapes: string;
}

/** The arguments of recording a run. */
export interface Recordable extends Shapes {
  readonly bound: Bound;
  /** Whether its memory is no longer bound. */
  readonly isReleased: boolean;
}

export class RunGraphs {
  private readonly device: CoreDevice;
  private readonly path: string;
  private readonly niceness: number;
  /** The name of its runs in errors. */
  private readonly title: string;
  /** Loads the model for it; undefined where there is no room. */
  private readonly load: () => Promise<Loaded | undefined>;
  /** The runs by the shapes of inputs and outputs. */
  private readonly families = new Map<string, RunsOfShapes>();
  private readonly shared: SharedRun[] = [];
  /** The sessions by the inputs' shapes; undefined where there can be none. */
  private readonly recorders = new Map<string, Promise<Recorder | undefined>>();
  /** The end of the current recording. */
  private last: Promise<unknown> = Promise.resolve();
  private recorded = 0;
  /** Whether no run of the model can be recorded, whatever its shapes. */
  private isRefused = false;
  private closed = false;

  constructor(
    device: CoreDevice,
    { library: { path } }: Loaded,
    niceness: number,
    title: string,
    load: () => Promise<Loaded | undefined>,
  ) {
    this.device = device;
    this.path = path;
    this.niceness = niceness;
    this.title = title;
    this.load = load;
  }

  /** The number of graphs. */
  get count(): number {
    return this.recorded;
  }

  /**
   * Returns the runs of these shapes. `shapes`: a text that is different for different shapes of
   * inputs and outputs.
   */
  ofShapes(shapes: string): RunsOfShapes {
    let family = this.families.get(shapes);
    if (family === undefined) {
      this.families.set(shapes, (family = new RunsOfShapes()));
      if (this.families.size > MOST_SHAPES) this.forgetOne();
    }
    return family;
  }

  /** Removes the first that shares no graph, and will share none. */
  private forgetOne(): void {
    for (const [shapes, family] of this.families) {
      if (family.isShared) continue;
      this.families.delete(shapes);
      return;
    }
  }

  /** Whether a run that has been on the same memory that often is to be recorded. */
  isWorthwhile(runs: number): boolean {
    return runs === RUNS_BEFORE && this.recorded < MOST_GRAPHS && !this.isRefused && !this.closed;
  }

  /**
   * Records a run, once none of its session's graphs runs; returns undefined where it cannot be
   * recorded.
   */
  record(run: Recordable): Promise<RecordedRun | undefined> {
    return this.inTurn(() => this.recordNow(run));
  }

  /**
   * Records the graph that the runs of these shapes share. `bind`: binds tensors at these
   * addresses.
   */
  share(
    family: RunsOfShapes,
    run: Shapes,
    bind: (addresses: readonly number[]) => Promise<Bound>,
  ): void {
    const bytes = [...run.inputs, ...run.outputs].reduce((sum, tensor) => sum + tensor.bytes, 0);
    void this.inTurn(async () => {
      family.shared = bytes > MOST_COPIED ? undefined : await this.sharedNow(run, bind);
      if (family.shared !== undefined) this.shared.push(family.shared);
    }).then(() => {
      family.isRefused = family.shared === undefined;
    });
  }

  private inTurn<T>(work: () => Promise<T>): Promise<T | undefined> {
    const done = this.last.then(work).catch(() => undefined);
    this.last = done;
    return done;
  }

  private async sharedNow(
    run: Shapes,
    bind: (addresses: readonly number[]) => Promise<Bound>,
  ): Promise<SharedRun | undefined> {
    // Where there is no room for a session there is none for its memory.
    if (this.closed || this.isRefused || (await this.recorderFor(run.shapes)) === undefined)
      return undefined;
    const buffers: DeviceBuffer[] = [];
    let shared: SharedRun | undefined;
    try {
      for (const { type, bytes } of [...run.inputs, ...run.outputs]) {
        const dtype = dtypeOf(type)!;
        buffers.push(
          this.device.alloc(dtype, bytes / dtype.bytes, { label: 'memory of recorded runs' }),
        );
      }
      await Promise.all(buffers.map((buffer) => buffer.allocated()));
      const { values } = this.device.runtime.shared;
      const bound = await bind(
        buffers.map(({ memory, byteOffset }) => values[memory.handle]! + byteOffset),
      );
      // The graph needs the addresses only.
      const recorded = await this.recordNow({ ...run, bound, isReleased: false }).finally(() =>
        sendRequest(releaseOf(this.path, bound)),
      );
      if (recorded !== undefined) shared = new SharedRun(recorded, buffers, run.inputs.length);
    } finally {
      if (shared === undefined) for (const buffer of buffers) buffer.close();
    }
    return shared;
  }

  private async recordNow(run: Recordable): Promise<RecordedRun | undefined> {
    const { shapes, inputNames, inputs, outputNames, outputs, bound } = run;
    if (this.closed || this.isRefused) return undefined;
    const recorder = await this.recorderFor(shapes);
    if (recorder === undefined || recorder.isUnfit) return undefined;
    recorder.isRecording = true;
    try {
      await recorder.last?.ended();
      if (run.isReleased || this.closed) return undefined;
      const { device, path, niceness } = this;
      const handles = await sendRequest({
        kind: 'record',
        path,
        niceness,
        ordinal: device.ordinal,
        session: recorder.session,
        inputNames,
        inputs,
        outputNames,
        outputs,
        bound,
      });
      this.recorded++;
      return new RecordedRun(recorder, new ForeignGraph(device, this.title, handles), () => {
        this.recorded--;
      });
    } catch {
      recorder.isUnfit = true;
      return undefined;
    } finally {
      recorder.isRecording = false;
    }
  }

  private recorderFor(shapes: string): Promise<Recorder | undefined> {
    let recorder = this.recorders.get(shapes);
    if (recorder === undefined) {
      recorder =
        this.recorders.size < MOST_SESSIONS ? this.newRecorder() : Promise.resolve(undefined);
      this.recorders.set(shapes, recorder);
    }
    return recorder;
  }

  private async newRecorder(): Promise<Recorder | undefined> {
    let loaded: Loaded | undefined;
    try {
      loaded = await this.load();
    } catch {
      // This is no failure: runs continue as they are.
      this.isRefused = true;
    }
    return loaded === undefined
      ? undefined
      : new Recorder(this.device, { id: nextId++, session: loaded.session, stream: loaded.stream });
  }

  /** Stops recording: resolves when the current recording is over. */
  async stop(): Promise<void> {
    this.closed = true;
    await this.last;
  }

  /** Releases its sessions, after all graphs. */
  async close(): Promise<void> {
    for (const each of this.shared) await each.close();
    for (const each of this.recorders.values()) {
      const recorder = await each;
      if (recorder === undefined) continue;
      await recorder.last?.ended();
      recorder.turn.close();
      const { session, stream } = recorder.session;
      await sendRequest({
        kind: 'releaseRecorded',
        path: this.path,
        ordinal: this.device.ordinal,
        session,
        stream,
      });
    }
  }
}

/** Returns the request that releases the library's values for tensors. */
export function releaseOf(path: string, { values }: Bound): Request & { readonly kind: 'take' } {
  return {
    kind: 'take',
    path,
    values: values.map((value) => ({ value, data: 0, bytes: 0, to: 0 })),
  };
}
