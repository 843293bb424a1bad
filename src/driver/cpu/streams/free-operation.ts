/**
 * The end of an allocation's life in stream order. The address is invalid for calls from the moment
 * of the call that frees it; the memory itself goes back when the stream gets here, unless an
 * allocation on the same stream took it over in the meantime, which is safe because that
 * allocation's users come later in the same order.
 */
import { CUgraphNodeType } from '../../flags.js';
import { roundToGranule } from '../memory/pool.js';
import type { MemoryPool } from '../memory/pool.js';
import type { Allocation } from '../memory/device-memory.js';
import { Operation, STEP } from './operation.js';
import type { Stream } from './stream.js';

export class FreeOperation extends Operation {
  readonly nodeType = CUgraphNodeType.CU_GRAPH_NODE_TYPE_MEM_FREE;
  private allocation: Allocation | undefined;
  /** Bytes that count no more, since another allocation took their place. */
  private replaced = 0;
  private readonly stream: Stream;

  constructor(allocation: Allocation, stream: Stream) {
    super();
    this.allocation = allocation;
    this.stream = stream;
    stream.pendingFrees.add(this);
  }

  /**
   * The allocation, if its memory is of this pool and as large as `bytes` asks for; the free then
   * does nothing.
   */
  takeOver(pool: MemoryPool, bytes: number): Allocation | undefined {
    const allocation = this.allocation;
    if (allocation?.pool !== pool || allocation.range.bytes !== roundToGranule(bytes))
      return undefined;
    this.allocation = undefined;
    this.stream.pendingFrees.delete(this);
    return allocation;
  }

  /**
   * Where memory is watched, what is freed is not given out again so soon: the pool counts as if it
   * were, so that a new allocation takes the place of this one, and the memory goes into quarantine
   * in its turn. Whether it did.
   */
  isReplaced(pool: MemoryPool, bytes: number): boolean {
    const { allocation } = this;
    const rounded = roundToGranule(bytes);
    if (allocation?.pool !== pool || allocation.range.bytes - allocation.memory.gap !== rounded)
      return false;
    this.replaced = rounded;
    allocation.memory.promised -= rounded;
    this.stream.pendingFrees.delete(this);
    return true;
  }

  step(): number {
    this.stream.pendingFrees.delete(this);
    const { allocation, replaced } = this;
    if (allocation === undefined) return STEP.done;
    if (replaced > 0) {
      allocation.memory.promised += replaced;
      allocation.memory.abandon(allocation);
    } else {
      allocation.memory.reclaim(allocation);
    }
    return STEP.done;
  }

  copy(): Operation {
    throw new Error('a free outside a graph is not part of one');
  }

  describe(): string {
    return 'free';
  }
}

/** Runs an action once every stream that had work when it was made has got past that work. */
export class AfterWork {
  private open: number;
  private readonly action: () => void;

  constructor(streams: number, action: () => void) {
    this.open = streams;
    this.action = action;
  }

  passed(): void {
    if (--this.open === 0) this.action();
  }
}

export class AfterWorkOperation extends Operation {
  readonly nodeType = CUgraphNodeType.CU_GRAPH_NODE_TYPE_EMPTY;
  private readonly work: AfterWork;

  constructor(work: AfterWork) {
    super();
    this.work = work;
  }

  step(): number {
    this.work.passed();
    return STEP.done;
  }

  copy(): Operation {
    throw new Error('deferred work is not part of a graph');
  }

  describe(): string {
    return 'deferred work';
  }
}
