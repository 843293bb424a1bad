/**
 * Stream memory operations: a stream writes a word, or waits for one, in memory that the host sees.
 * They are plain atomic accesses, so that another thread of the process can do the counterpart with
 * Atomics.
 */
import { CUgraphExecUpdateResult, CUgraphNodeType, CUstreamWaitValue_flags } from '../../flags.js';
import type { ByteSpace } from '../memory/byte-space.js';
import { Operation, STEP } from './operation.js';

export class WriteValueOperation extends Operation {
  readonly nodeType = CUgraphNodeType.CU_GRAPH_NODE_TYPE_BATCH_MEM_OP;
  private space: ByteSpace | undefined = undefined;
  private index = 0;
  private value = 0;

  private static readonly spare: WriteValueOperation[] = [];

  static take(space: ByteSpace, index: number, value: number): WriteValueOperation {
    const operation = WriteValueOperation.spare.pop() ?? new WriteValueOperation();
    operation.space = space;
    operation.index = index;
    operation.value = value;
    return operation;
  }

  step(): number {
    this.space!.watch?.signalled(this.index * 4, 4);
    Atomics.store(this.space!.words, this.index, this.value);
    return STEP.done;
  }

  override get meets(): 'host' | undefined {
    return this.space!.kind === 'host' ? 'host' : undefined;
  }

  copy(): Operation {
    return WriteValueOperation.take(this.space!, this.index, this.value);
  }

  describe(): string {
    return `write ${this.value}`;
  }

  override replaces(old: Operation): number {
    return old instanceof WriteValueOperation
      ? CUgraphExecUpdateResult.CU_GRAPH_EXEC_UPDATE_SUCCESS
      : CUgraphExecUpdateResult.CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED;
  }

  override release(): void {
    this.space = undefined;
    WriteValueOperation.spare.push(this);
  }
}

export class WaitValueOperation extends Operation {
  readonly nodeType = CUgraphNodeType.CU_GRAPH_NODE_TYPE_BATCH_MEM_OP;
  private readonly space: ByteSpace;
  private readonly index: number;
  private readonly value: number;
  private readonly condition: number;

  constructor(space: ByteSpace, index: number, value: number, condition: number) {
    super();
    this.space = space;
    this.index = index;
    this.value = value;
    this.condition = condition;
  }

  step(): number {
    const have = Atomics.load(this.space.words, this.index);
    return this.holds(have) ? STEP.done : STEP.blocked;
  }

  private holds(have: number): boolean {
    switch (this.condition) {
      // The comparison is cyclic, as the driver defines it: (int32)(*addr - value) >= 0.
      case CUstreamWaitValue_flags.CU_STREAM_WAIT_VALUE_GEQ:
        return ((have - this.value) | 0) >= 0;
      case CUstreamWaitValue_flags.CU_STREAM_WAIT_VALUE_EQ:
        return have === (this.value | 0);
      case CUstreamWaitValue_flags.CU_STREAM_WAIT_VALUE_AND:
        return (have & this.value) !== 0;
      default:
        return ~(have | this.value) !== 0;
    }
  }

  override get meets(): 'any' {
    return 'any';
  }

  copy(): Operation {
    return new WaitValueOperation(this.space, this.index, this.value, this.condition);
  }

  describe(): string {
    return `wait for value ${this.value}`;
  }

  override replaces(old: Operation): number {
    return old instanceof WaitValueOperation
      ? CUgraphExecUpdateResult.CU_GRAPH_EXEC_UPDATE_SUCCESS
      : CUgraphExecUpdateResult.CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED;
  }
}

/** Returns the same memory as 64-bit words. Device memory may have grown since the last call. */
function wideWords(space: ByteSpace): BigInt64Array {
  const { buffer, byteLength } = space.words;
  return new BigInt64Array(buffer, 0, byteLength >>> 3);
}

export class WriteWideValueOperation extends Operation {
  readonly nodeType = CUgraphNodeType.CU_GRAPH_NODE_TYPE_BATCH_MEM_OP;
  private readonly space: ByteSpace;
  private readonly index: number;
  private readonly value: bigint;

  constructor(space: ByteSpace, index: number, value: bigint) {
    super();
    this.space = space;
    this.index = index;
    this.value = BigInt.asIntN(64, value);
  }

  step(): number {
    this.space.watch?.signalled(this.index * 8, 8);
    Atomics.store(wideWords(this.space), this.index, this.value);
    return STEP.done;
  }

  override get meets(): 'host' | undefined {
    return this.space.kind === 'host' ? 'host' : undefined;
  }

  copy(): Operation {
    return new WriteWideValueOperation(this.space, this.index, this.value);
  }

  describe(): string {
    return `write ${this.value}`;
  }

  override replaces(old: Operation): number {
    return old instanceof WriteWideValueOperation
      ? CUgraphExecUpdateResult.CU_GRAPH_EXEC_UPDATE_SUCCESS
      : CUgraphExecUpdateResult.CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED;
  }
}

export class WaitWideValueOperation extends Operation {
  readonly nodeType = CUgraphNodeType.CU_GRAPH_NODE_TYPE_BATCH_MEM_OP;
  private readonly space: ByteSpace;
  private readonly index: number;
  private readonly value: bigint;
  private readonly condition: number;

  constructor(space: ByteSpace, index: number, value: bigint, condition: number) {
    super();
    this.space = space;
    this.index = index;
    this.value = BigInt.asIntN(64, value);
    this.condition = condition;
  }

  step(): number {
    return this.holds(Atomics.load(wideWords(this.space), this.index)) ? STEP.done : STEP.blocked;
  }

  private holds(have: bigint): boolean {
    switch (this.condition) {
      // The comparison is cyclic, as the driver defines it: (int64)(*addr - value) >= 0.
      case CUstreamWaitValue_flags.CU_STREAM_WAIT_VALUE_GEQ:
        return BigInt.asIntN(64, have - this.value) >= 0n;
      case CUstreamWaitValue_flags.CU_STREAM_WAIT_VALUE_EQ:
        return have === this.value;
      case CUstreamWaitValue_flags.CU_STREAM_WAIT_VALUE_AND:
        return (have & this.value) !== 0n;
      default:
        return ~(have | this.value) !== 0n;
    }
  }

  override get meets(): 'any' {
    return 'any';
  }

  copy(): Operation {
    return new WaitWideValueOperation(this.space, this.index, this.value, this.condition);
  }

  describe(): string {
    return `wait for value ${this.value}`;
  }

  override replaces(old: Operation): number {
    return old instanceof WaitWideValueOperation
      ? CUgraphExecUpdateResult.CU_GRAPH_EXEC_UPDATE_SUCCESS
      : CUgraphExecUpdateResult.CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED;
  }
}
