// An estimate of the time that an engine's optimising compiler takes for a module's largest
// function, from the function's bytes. V8 keeps sets of all values for each block of a function, so
// that the time grows with the product of blocks and values. What is live at the head of a loop is
// added to the set of each block of that loop: a block costs once more for each loop around it.

import { Reader } from './reader.js';

/**
 * Fitted to Node 20; Node 26 takes half. In milliseconds of a processor: 270 for a scalar kernel of
 * 10,000 instructions, 3300 for 300 nested loops of code that can be suspended in each, 7800 where
 * the loops overlap, 3400 for 2000 loops in a row, and 990 for 1000 additions in a loop with 1000
 * branches to its head. The estimate is up to five times too high for straight code and for loads
 * and stores.
 */
const MS_PER_OPERATION = 2.5e-3;
const MS_PER_VECTOR_OPERATION = 5e-3;
const MS_PER_BLOCK_AND_VALUE = 0.6e-6;
/** For each loop around a block. */
const MS_PER_NESTED_BLOCK_AND_VALUE = 2.7e-8;
/** What a branch out of a loop adds: V8 makes nodes for the values that leave the loop. */
const VALUES_PER_LOOP_LEFT = 0.15;
const MS_PER_LOOP_AND_VALUE = 4e-5;
/**
 * V8 reduces values in a row, without a branch between them, again for each branch to the loop's
 * head.
 */
const MS_PER_BACK_EDGE_AND_VALUE_IN_A_ROW = 4.5e-4;
/** The estimate is zero for modules of fewer bytes. */
const SMALL_MODULE = 16 * 1024;
const CODE_SECTION = 10;

/** The estimate for a module's most expensive function, in milliseconds. */
export interface OptimisingTime {
  readonly ms: number;
  /**
   * The part of `ms` that its loops cause. It is small unless there are hundreds of loops or of
   * branches back.
   */
  readonly loopsMs: number;
}

const NOTHING: OptimisingTime = { ms: 0, loopsMs: 0 };

/**
 * Estimates for how many milliseconds an engine's optimising compiler works on the largest function
 * of a WebAssembly module. The estimate is 0 for a module of less than 16 KiB.
 *
 * @example
 * ```ts
 * const { wasm } = compilePtx(`.version 8.0
 *   .target sm_80
 *   .address_size 64
 *   .visible .entry idle() { ret; }`);
 * console.log(optimisingTime(wasm)); // { ms: 0, loopsMs: 0 }
 * ```
 */
export function optimisingTime(wasm: Uint8Array): OptimisingTime {
  if (wasm.length < SMALL_MODULE) return NOTHING;
  const reader = new Reader(wasm, 8);
  while (reader.at < wasm.length) {
    const section = reader.byte();
    const end = reader.number() + reader.at;
    if (section === CODE_SECTION) {
      let most = NOTHING;
      for (let left = reader.number(); left > 0; left--) {
        const time = functionTime(reader);
        if (time.ms > most.ms) most = time;
      }
      return most;
    }
    reader.at = end;
  }
  return NOTHING;
}

function functionTime(reader: Reader): OptimisingTime {
  const end = reader.number() + reader.at;
  for (let runs = reader.number(); runs > 0; runs--) {
    reader.number();
    reader.byte();
  }
  const sizes = new FunctionSizes();
  while (reader.at < end) sizes.take(reader);
  reader.at = end;
  return sizes.time;
}

/** A target of branches: the function, a block, or a loop, which a branch continues. */
interface Label {
  readonly isLoop: boolean;
  /** The loops around it, itself included. */
  readonly depth: number;
  /** Branches to it, if it is a loop. */
  backEdges: number;
  /** The most values in a row. */
  row: number;
}

class FunctionSizes {
  private operationsMs = 0;
  private blocks = 0;
  private nestedBlocks = 0;
  private values = 0;
  private loops = 0;
  private loopsLeft = 0;
  private backEdgesMs = 0;
  private row = 0;
  private readonly labels: Label[] = [{ isLoop: false, depth: 0, backEdges: 0, row: 0 }];

  /** Reads an operation. */
  take(reader: Reader): void {
    const opcode = reader.opcode();
    this.operationsMs += opcode >>> 16 === 0xfd ? MS_PER_VECTOR_OPERATION : MS_PER_OPERATION;
    if (opcode >= 0x28) {
      this.values++;
      this.row++;
    } else if (opcode >= 0x02 && opcode <= 0x0f) {
      this.control(opcode, reader);
      return;
    }
    reader.skipImmediates(opcode);
  }

  get time(): OptimisingTime {
    const { values } = this;
    const nestedValues = values + this.loopsLeft * VALUES_PER_LOOP_LEFT;
    const loopsMs =
      this.backEdgesMs +
      this.loops * values * MS_PER_LOOP_AND_VALUE +
      this.nestedBlocks * nestedValues * MS_PER_NESTED_BLOCK_AND_VALUE;
    return {
      ms: this.operationsMs + this.blocks * values * MS_PER_BLOCK_AND_VALUE + loopsMs,
      loopsMs,
    };
  }

  private control(opcode: number, reader: Reader): void {
    const { labels } = this;
    const label = labels.at(-1)!;
    label.row = Math.max(label.row, this.row);
    this.row = 0;
    switch (opcode) {
      case 0x02:
      case 0x03:
      case 0x04: {
        const isLoop = opcode === 0x03;
        if (isLoop) this.loops++;
        labels.push({ isLoop, depth: label.depth + (isLoop ? 1 : 0), backEdges: 0, row: 0 });
        this.block();
        break;
      }
      case 0x0b:
        this.backEdgesMs += label.backEdges * label.row * MS_PER_BACK_EDGE_AND_VALUE_IN_A_ROW;
        labels.pop();
        if (labels.length > 0) labels.at(-1)!.row = Math.max(labels.at(-1)!.row, label.row);
        return;
      case 0x0c:
      case 0x0d:
        this.block();
        this.branch(reader.number());
        return;
      case 0x0e:
        for (let left = reader.number() + 1; left > 0; left--) {
          this.block();
          this.branch(reader.number());
        }
        return;
      case 0x0f:
        this.loopsLeft += label.depth;
        break;
      default:
        this.block();
    }
    reader.skipImmediates(opcode);
  }

  private block(): void {
    this.blocks++;
    this.nestedBlocks += this.labels.at(-1)!.depth;
  }

  private branch(outwards: number): void {
    const to = this.labels.at(-1 - outwards)!;
    if (to.isLoop) to.backEdges++;
    this.loopsLeft += this.labels.at(-1)!.depth - to.depth;
  }
}
