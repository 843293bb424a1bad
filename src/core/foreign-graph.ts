/**
 * Executable graphs that another library has recorded, launched in stream order as this library's
 * own. Each launch names the memory that the graph uses.
 */
import {
  ACCESS_SHIFT,
  ACCESS_WHOLE,
  ACCESS_WRITE,
  SHORT_GRAPH_NODES,
} from '../runtime/commands.js';
import type { Runtime } from '../runtime/runtime.js';
import type { DeviceBuffer } from './buffer.js';
import type { CoreDevice } from './device.js';
import { beginGraphLaunch } from './graph-launch.js';
import type { HostUse } from './host-work.js';
import { ACCESSES } from './native-library.js';
import type { Stream } from './stream.js';

/** The driver's CUgraph and CUgraphExec, and the number of nodes. */
export interface GraphHandles {
  readonly graph: number;
  readonly exec: number;
  readonly nodes: number;
}

/** Written memory counts as written whole. */
const WRITTEN = ACCESS_WRITE | ACCESS_WHOLE;

/** Memory that a graph uses, with the words that are the same for each launch. */
export interface GraphUse {
  readonly buffer: HostUse['buffer'];
  readonly access: number;
  /** The access, as the command encodes it. */
  readonly word: number;
}

export function graphUse({ buffer, access }: HostUse): GraphUse {
  return {
    buffer,
    access: ACCESSES[access],
    word: (access === 'out' ? WRITTEN : ACCESSES[access]) << ACCESS_SHIFT,
  };
}

export class ForeignGraph {
  private readonly runtime: Runtime;
  private readonly handles: GraphHandles;
  private readonly exec: number;
  /** Whether launching it takes so little time that the JavaScript thread may do it. */
  private readonly isShort: boolean;
  /** The graph's name in errors. */
  private readonly title: string;

  constructor(device: CoreDevice, title: string, handles: GraphHandles) {
    this.runtime = device.runtime;
    this.handles = handles;
    this.exec = this.runtime.handles.adopt(handles.exec);
    this.isShort = handles.nodes <= SHORT_GRAPH_NODES;
    this.title = title;
  }

  /**
   * Queues a launch after what `stream` has queued, and after work of other streams that uses the
   * same memory. cuGraphLaunch
   *
   * @param uses the memory that it reads and writes, which must be where it was when the graph was
   *   recorded
   * @param turn memory that it writes besides: graphs that share it run one after the other, on any
   *   streams
   * @returns the stream's mark after the launch
   */
  launch(stream: Stream, uses: readonly GraphUse[], turn: DeviceBuffer): number {
    stream.check();
    for (let i = 0; i < uses.length; i++) stream.order(uses[i]!.buffer.memory, uses[i]!.access);
    stream.order(turn.memory, ACCESS_WRITE);
    const root = stream.nextRoot();
    this.runtime.name(root, this.title);
    let at = beginGraphLaunch(stream, root, this.exec, this.isShort, uses.length + 1);
    const { memory } = this.runtime.ring;
    for (let i = 0; i < uses.length; i++)
      memory[at++] = uses[i]!.buffer.memory.handle | uses[i]!.word;
    memory[at] = turn.memory.handle | (WRITTEN << ACCESS_SHIFT);
    const mark = stream.commitGraph();
    for (let i = 0; i < uses.length; i++)
      stream.used(uses[i]!.buffer.memory, uses[i]!.access, mark);
    stream.used(turn.memory, ACCESS_WRITE, mark);
    return mark;
  }

  /** Frees the graph. Its launches must have ended. cuGraphExecDestroy, cuGraphDestroy */
  async close(): Promise<void> {
    const {
      runtime,
      handles: { graph, exec },
    } = this;
    if (runtime.lost !== undefined) return;
    runtime.handles.drop(this.exec);
    await runtime.call('destroyGraph', graph, exec);
  }
}
