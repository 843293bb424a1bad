/**
 * The end of an allocation in stream order. The address is invalid for calls from the call on that
 * frees it; the memory itself is freed when the stream reaches this operation, unless an allocation
 * on the same stream took it over in the meantime. That is safe because the new allocation's users
 * come later in the same order.
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
  /** Bytes that do not count any more, since another allocation replaced them. */
  private replaced = 0;
  private readonly stream: Stream;

  constructor(allocation: Allocation, stream: Stream) {
    super();
    this.allocation = allocation;
    this.stream = stream;
    stream.pendingFrees.add(this);
  }

  /**
   * Returns the allocation, if its memory is of this pool and of the size of `bytes`; the free then
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
   * Lets a new allocation replace this one in the pool's count, where memory is checked and freed
   * memory is not reused soon. The memory then goes into quarantine. Returns whether it was
   * replaced.
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

/** Runs an action once every stream that had work at its creation has passed that work. */
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
