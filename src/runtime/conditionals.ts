/**
 * Conditional nodes while their graph is captured. A body is captured on a stream that the driver
 * creates for it, which replaces the captured stream until the body ends. So the commands of a body
 * are commands of the same stream, and stay in order with those around it, whatever that stream
 * waits for.
 */
import type { CUgraph, CUstream, Driver } from '../driver/driver.js';
import { DriverError } from '../driver/error.js';
import {
  CUstreamUpdateCaptureDependencies_flags,
  CUstream_flags,
  CU_GRAPH_COND_ASSIGN_DEFAULT,
} from '../driver/flags.js';
import { CUresult } from '../ground/result.js';
import { CONDITION, HANDLE } from './layout.js';
import type { SharedState } from './layout.js';

/**
 * `none`: the driver has no conditional nodes. `single`: an if has no else, and there is no switch.
 */
export type ConditionalNodes = 'none' | 'single' | 'all';

const RELAXED = 2;

/**
 * Returns what the driver supports. `without`: features that count as missing, from
 * ASYNC_CUDA_WITHOUT.
 */
export function conditionalNodes(driver: Driver, without: readonly string[]): ConditionalNodes {
  if (without.includes('conditionals')) return 'none';
  if (without.includes('switches')) return 'single';
  if (driver.provider === 'cpu') return 'all';
  const version = driver.cuDriverGetVersion();
  // Handles, nodes and capture into a graph were added one after the other, the last of them in
  // 12.4.
  return version < 12040 ? 'none' : version < 12080 ? 'single' : 'all';
}

interface Body {
  readonly condition: number;
  readonly index: number;
  /** The stream that the body's stream replaces. */
  readonly around: CUstream;
}

export class Conditionals {
  private readonly driver: Driver;
  private readonly shared: SharedState;
  /**
   * The table of values, as bits: a handle need not be exact as a number. It is shared, so that the
   * JavaScript thread may launch a kernel that sets a condition.
   */
  private readonly words: BigUint64Array;
  /** The bodies of each condition's node. */
  private readonly graphs = new Map<number, readonly CUgraph[]>();
  /** Bodies that have begun and not ended, by the slot of their stream, the innermost last. */
  private readonly open = new Map<number, Body[]>();

  constructor(driver: Driver, shared: SharedState) {
    this.driver = driver;
    this.shared = shared;
    const { buffer, byteOffset, length } = shared.values;
    this.words = new BigUint64Array(buffer, byteOffset, length);
  }

  /** Creates a condition of the graph that the stream in `slot` is captured into. */
  create(slot: number, condition: number, first: number): void {
    const { driver } = this;
    const { status, failure } = this.shared;
    status[condition] = HANDLE.failed;
    const { graph } = this.recording(slot);
    this.words[condition] = driver.cuGraphConditionalHandleCreate(
      graph,
      driver.cuCtxGetCurrent(),
      first,
      CU_GRAPH_COND_ASSIGN_DEFAULT,
    );
    failure[condition] = CONDITION;
    status[condition] = HANDLE.live;
  }

  /** Returns the bits that are passed to kernels. */
  bits(condition: number): bigint {
    return this.words[condition]!;
  }

  /** Adds the node after the nodes that the stream has captured. */
  add(slot: number, condition: number, type: number, size: number): void {
    const { driver } = this;
    const { graph, dependencies } = this.recording(slot);
    const params = { handle: this.bits(condition), type, size, ctx: driver.cuCtxGetCurrent() };
    const { node, bodies } = driver.cuGraphAddNode(graph, dependencies, params);
    driver.cuStreamUpdateCaptureDependencies(
      this.shared.streams[slot]!,
      [node],
      CUstreamUpdateCaptureDependencies_flags.CU_STREAM_SET_CAPTURE_DEPENDENCIES,
    );
    this.graphs.set(condition, bodies);
  }

  /** The following commands of the stream are captured into a body. */
  begin(slot: number, condition: number, index: number): void {
    const { driver } = this;
    const { streams } = this.shared;
    const around = streams[slot]!;
    const graph = this.graphs.get(condition)![index]!;
    // Captured kernels have the priority of their stream.
    const own = driver.cuStreamCreateWithPriority(
      CUstream_flags.CU_STREAM_NON_BLOCKING,
      driver.cuStreamGetPriority(around),
    );
    try {
      driver.cuStreamBeginCaptureToGraph(own, graph, [], RELAXED);
    } catch (error) {
      driver.cuStreamDestroy(own);
      throw error;
    }
    streams[slot] = own;
    const bodies = this.open.get(slot);
    if (bodies === undefined) this.open.set(slot, [{ condition, index, around }]);
    else bodies.push({ condition, index, around });
  }

  /** Ends a body. It is also called where an earlier failure has kept the body from beginning. */
  end(slot: number, condition: number, index: number): void {
    const bodies = this.open.get(slot);
    const last = bodies?.at(-1);
    if (bodies === undefined || last?.condition !== condition || last.index !== index) return;
    bodies.pop();
    if (bodies.length === 0) this.open.delete(slot);
    const {
      driver,
      shared: { streams },
    } = this;
    const own = streams[slot]!;
    streams[slot] = last.around;
    try {
      driver.cuStreamEndCapture(own);
    } finally {
      driver.cuStreamDestroy(own);
    }
  }

  /** No command names the condition any more. */
  forget(condition: number): void {
    const { status, failure } = this.shared;
    this.words[condition] = 0n;
    this.graphs.delete(condition);
    failure[condition] = 0;
    Atomics.store(status, condition, HANDLE.released);
  }

  private recording(slot: number): { graph: CUgraph; dependencies: readonly number[] } {
    const { graph, dependencies } = this.driver.cuStreamGetCaptureInfo(this.shared.streams[slot]!);
    if (graph === undefined || dependencies === undefined) {
      throw new DriverError(
        'cuStreamGetCaptureInfo',
        CUresult.CUDA_ERROR_STREAM_CAPTURE_INVALIDATED,
        { detail: 'the capture was invalidated' },
      );
    }
    return { graph, dependencies };
  }
}
