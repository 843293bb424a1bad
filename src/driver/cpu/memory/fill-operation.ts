/** A fill of rows with elements of one, two or four bytes, in steps of a few MiB. */
import { CUgraphExecUpdateResult, CUgraphNodeType } from '../../flags.js';
import { Operation, STEP } from '../streams/operation.js';
import type { ByteSpace } from './byte-space.js';
import { fillElements } from './byte-space.js';

/** Fills run at twice the speed of copies, so their steps are twice as large. */
const STEP_BYTES = 2 * 2 ** 20;
const ROW_COST = 256;

export class FillOperation extends Operation {
  readonly nodeType = CUgraphNodeType.CU_GRAPH_NODE_TYPE_MEMSET;
  private space: ByteSpace | undefined = undefined;
  private at = 0;
  private pitch = 0;
  private elementBytes = 1;
  private value = 0;
  /** The bytes of a row. */
  private width = 0;
  private height = 1;
  private x = 0;
  private y = 0;

  private static readonly spare: FillOperation[] = [];

  static take(
    space: ByteSpace,
    at: number,
    pitch: number,
    elementBytes: number,
    value: number,
    width: number,
    height: number,
  ): FillOperation {
    const op = FillOperation.spare.pop() ?? new FillOperation();
    op.space = space;
    op.at = at;
    op.pitch = pitch;
    op.elementBytes = elementBytes;
    op.value = value;
    op.width = width;
    op.height = height;
    op.restart();
    return op;
  }

  step(): number {
    let left = STEP_BYTES;
    while (left > 0) {
      const bytes = Math.min(this.width - this.x, Math.ceil(left / 4) * 4);
      fillElements(
        this.space!,
        this.at + this.y * this.pitch + this.x,
        this.elementBytes,
        this.value,
        bytes,
      );
      this.x += bytes;
      left -= bytes + ROW_COST;
      if (this.x < this.width) continue;
      this.x = 0;
      if (++this.y === this.height) return STEP.done;
    }
    return STEP.more;
  }

  override restart(): void {
    this.x = this.y = 0;
  }

  copy(): Operation {
    return FillOperation.take(
      this.space!,
      this.at,
      this.pitch,
      this.elementBytes,
      this.value,
      this.width,
      this.height,
    );
  }

  describe(): string {
    return `fill ${this.width}x${this.height} bytes with ${this.value}`;
  }

  override replaces(old: Operation): number {
    return old instanceof FillOperation && old.height > 1 === this.height > 1
      ? CUgraphExecUpdateResult.CU_GRAPH_EXEC_UPDATE_SUCCESS
      : CUgraphExecUpdateResult.CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED;
  }

  override release(): void {
    this.space = undefined;
    FillOperation.spare.push(this);
  }
}
