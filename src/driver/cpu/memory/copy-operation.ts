/**
 * A copy of a box of bytes: depth slices of height rows of width bytes. A copy in one dimension is
 * one row. It is done in steps of about a MiB (50 to 100 µs), so that a long copy delays neither
 * other streams nor the thread.
 */
import { CUgraphExecUpdateResult, CUgraphNodeType } from '../../flags.js';
import { Operation, STEP } from '../streams/operation.js';
import type { ByteSpace } from './byte-space.js';
import { copyBytes } from './byte-space.js';

const STEP_BYTES = 2 ** 20;
/** The overhead of a row, in bytes. */
const ROW_COST = 256;

/** One end of the box. */
export interface CopyEnd {
  space: ByteSpace;
  /** Index of the first byte in the space. */
  at: number;
  /** Bytes from row to row, and from slice to slice. */
  pitch: number;
  slicePitch: number;
}

export class CopyOperation extends Operation {
  readonly nodeType = CUgraphNodeType.CU_GRAPH_NODE_TYPE_MEMCPY;
  private to: ByteSpace | undefined = undefined;
  private from: ByteSpace | undefined = undefined;
  private toAt = 0;
  private fromAt = 0;
  private toPitch = 0;
  private fromPitch = 0;
  private toSlice = 0;
  private fromSlice = 0;
  private width = 0;
  private height = 1;
  private depth = 1;

  private x = 0;
  private y = 0;
  private z = 0;

  private static readonly spare: CopyOperation[] = [];

  static linear(
    to: ByteSpace,
    toAt: number,
    from: ByteSpace,
    fromAt: number,
    bytes: number,
  ): CopyOperation {
    const op = CopyOperation.spare.pop() ?? new CopyOperation();
    op.to = to;
    op.from = from;
    op.toAt = toAt;
    op.fromAt = fromAt;
    op.width = bytes;
    op.height = op.depth = 1;
    op.restart();
    return op;
  }

  static box(
    to: CopyEnd,
    from: CopyEnd,
    width: number,
    height: number,
    depth: number,
  ): CopyOperation {
    const op = CopyOperation.linear(to.space, to.at, from.space, from.at, width);
    op.toPitch = to.pitch;
    op.fromPitch = from.pitch;
    op.toSlice = to.slicePitch;
    op.fromSlice = from.slicePitch;
    op.height = height;
    op.depth = depth;
    return op;
  }

  step(): number {
    const { width, to, from } = this;
    let left = STEP_BYTES;
    while (left > 0) {
      const bytes = Math.min(width - this.x, left);
      copyBytes(
        to!,
        this.toAt + this.z * this.toSlice + this.y * this.toPitch + this.x,
        from!,
        this.fromAt + this.z * this.fromSlice + this.y * this.fromPitch + this.x,
        bytes,
      );
      this.x += bytes;
      left -= bytes + ROW_COST;
      if (this.x < width) continue;
      this.x = 0;
      if (++this.y < this.height) continue;
      this.y = 0;
      if (++this.z === this.depth) return STEP.done;
    }
    return STEP.more;
  }

  override get meets(): 'host' | undefined {
    return this.to!.kind === 'host' ? 'host' : undefined;
  }

  override restart(): void {
    this.x = this.y = this.z = 0;
  }

  copy(): Operation {
    return CopyOperation.box(
      { space: this.to!, at: this.toAt, pitch: this.toPitch, slicePitch: this.toSlice },
      { space: this.from!, at: this.fromAt, pitch: this.fromPitch, slicePitch: this.fromSlice },
      this.width,
      this.height,
      this.depth,
    );
  }

  describe(): string {
    return (
      `copy ${this.width}x${this.height}x${this.depth} bytes ${this.from!.kind} to ` +
      `${this.to!.kind}`
    );
  }

  override replaces(old: Operation): number {
    // The driver cannot change the memory type of an operand, nor the number of dimensions.
    return old instanceof CopyOperation &&
      old.to!.kind === this.to!.kind &&
      old.from!.kind === this.from!.kind &&
      old.height > 1 === this.height > 1 &&
      old.depth > 1 === this.depth > 1
      ? CUgraphExecUpdateResult.CU_GRAPH_EXEC_UPDATE_SUCCESS
      : CUgraphExecUpdateResult.CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED;
  }

  override release(): void {
    this.to = this.from = undefined;
    CopyOperation.spare.push(this);
  }
}
