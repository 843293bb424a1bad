/**
 * Runs of the CUDA provider that come again on the same memory are recorded as graphs (`thread/recording.ts`), and are commands of their
 * stream from then on, as launches of kernels are: no thread has to be told. They are recorded behind the scenes, while runs go on as
 * before, with a session that nothing else runs: what a graph works on is that session's memory, so its graphs run one after the other.
 */
import type { Device, DeviceBuffer, Stream } from '../core/index.js';
import { u8 } from '../core/index.js';
import { ForeignGraph } from '../core/foreign-graph.js';
import type { GraphUse } from '../core/foreign-graph.js';
import { LastRun } from '../engine/last-run.js';
import { ask } from './thread-crew.js';
import type { Loaded, RecordRequest, RecordedSession } from './thread/messages.js';

/** Runs on the same memory before it is worth recording them. */
const RUNS_BEFORE = 16;
/** Of an engine, each with the model's weights; one for each shape of the inputs. */
const MOST_SESSIONS = 4;
/** Of an engine. */
const MOST_GRAPHS = 32;

let nextId = 1;

/** A session for one shape of the inputs. */
class Recorder {
  readonly session: RecordedSession;
  /** What orders its graphs: each writes to it. */
  readonly turn: DeviceBuffer<'u8'>;
  /** A run is being recorded: no graph may run. */
  isRecording = false;
  /** Something could not be recorded, so nothing will be. */
  isUnfit = false;
  /** The last launch of one of its graphs: the others are in front of it. */
  last: LastRun | undefined = undefined;

  constructor(device: Device, session: RecordedSession) {
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

  /** How far the stream is behind it; undefined where it cannot be launched now. */
  launch(stream: Stream, uses: readonly GraphUse[]): number | undefined {
    const { recorder } = this;
    // What is captured is refused where other runs are.
    if (recorder.isRecording || stream.captureScope !== undefined) return undefined;
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

/** What a run is recorded with. */
export interface Recordable extends Pick<RecordRequest, 'inputNames' | 'inputs' | 'outputNames' | 'outputs' | 'bound'> {
  /** What tells the inputs' shapes from others. */
  readonly shapes: string;
  /** Whether its memory is no longer bound. */
  readonly isReleased: boolean;
}

export class RunGraphs {
  private readonly device: Device;
  private readonly path: string;
  private readonly niceness: number;
  /** As errors call its runs. */
  private readonly title: string;
  /** Loads the model for it; undefined where there is no room. */
  private readonly load: () => Promise<Loaded | undefined>;
  /** By the inputs' shapes; undefined where there can be none. */
  private readonly recorders = new Map<string, Promise<Recorder | undefined>>();
  /** The end of what is being recorded. */
  private last: Promise<unknown> = Promise.resolve();
  private recorded = 0;
  /** No runs of the model can be recorded, whatever their shapes. */
  private isRefused = false;
  private closed = false;

  constructor(device: Device, { library: { path } }: Loaded, niceness: number, title: string, load: () => Promise<Loaded | undefined>) {
    this.device = device;
    this.path = path;
    this.niceness = niceness;
    this.title = title;
    this.load = load;
  }

  /** Graphs that there are. */
  get count(): number {
    return this.recorded;
  }

  /** Whether a run that has been on the same memory so often is to be recorded. */
  isWorthwhile(runs: number): boolean {
    return runs === RUNS_BEFORE && this.recorded < MOST_GRAPHS && !this.isRefused && !this.closed;
  }

  /** Records a run, once none of its session's graphs runs; undefined where it cannot be recorded. */
  record(run: Recordable): Promise<RecordedRun | undefined> {
    const recorded = this.last.then(() => this.recordNow(run)).catch(() => undefined);
    this.last = recorded;
    return recorded;
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
      const handles = await ask({ kind: 'record', path, niceness, ordinal: device.ordinal, session: recorder.session, inputNames, inputs, outputNames, outputs, bound });
      this.recorded++;
      return new RecordedRun(recorder, new ForeignGraph(device, this.title, handles), () => { this.recorded--; });
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
      recorder = this.recorders.size < MOST_SESSIONS ? this.newRecorder() : Promise.resolve(undefined);
      this.recorders.set(shapes, recorder);
    }
    return recorder;
  }

  private async newRecorder(): Promise<Recorder | undefined> {
    let loaded: Loaded | undefined;
    try {
      loaded = await this.load();
    } catch {
      // No failure: runs go on as they are.
      this.isRefused = true;
    }
    return loaded === undefined ? undefined : new Recorder(this.device, { id: nextId++, session: loaded.session, stream: loaded.stream });
  }

  /** Records no more: resolves when nothing is being recorded. */
  async stop(): Promise<void> {
    this.closed = true;
    await this.last;
  }

  /** Gives its sessions back, behind all graphs. */
  async close(): Promise<void> {
    for (const each of this.recorders.values()) {
      const recorder = await each;
      if (recorder === undefined) continue;
      await recorder.last?.ended();
      recorder.turn.close();
      const { session, stream } = recorder.session;
      await ask({ kind: 'releaseRecorded', path: this.path, ordinal: this.device.ordinal, session, stream });
    }
  }
}
