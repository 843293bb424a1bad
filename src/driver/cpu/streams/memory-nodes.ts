/**
 * The allocation and free nodes of a graph. The memory belongs to the graph for its whole life, so
 * when they run they only keep their place in the order.
 */
import { CUgraphExecUpdateResult, CUgraphNodeType } from '../../flags.js';
import { hex } from '../failure.js';
import { Operation, STEP } from './operation.js';

abstract class MemoryNodeOperation extends Operation {
  protected readonly address: number;

  constructor(address: number) {
    super();
    this.address = address;
  }

  step(): number {
    return STEP.done;
  }

  /** The driver updates no graph that allocates. */
  override replaces(): number {
    return CUgraphExecUpdateResult.CU_GRAPH_EXEC_UPDATE_ERROR_NOT_SUPPORTED;
  }
}

export class AllocNodeOperation extends MemoryNodeOperation {
  readonly nodeType = CUgraphNodeType.CU_GRAPH_NODE_TYPE_MEM_ALLOC;

  copy(): Operation {
    return new AllocNodeOperation(this.address);
  }

  describe(): string {
    return `allocate ${hex(this.address)}`;
  }
}

export class FreeNodeOperation extends MemoryNodeOperation {
  readonly nodeType = CUgraphNodeType.CU_GRAPH_NODE_TYPE_MEM_FREE;

  copy(): Operation {
    return new FreeNodeOperation(this.address);
  }

  describe(): string {
    return `free ${hex(this.address)}`;
  }
}

/** A node without work: it joins branches. */
export class EmptyOperation extends Operation {
  readonly nodeType = CUgraphNodeType.CU_GRAPH_NODE_TYPE_EMPTY;

  step(): number {
    return STEP.done;
  }

  copy(): Operation {
    return new EmptyOperation();
  }

  describe(): string {
    return 'empty';
  }
}
