/**
 * Failures during simulation. They are thrown without the thread, and reported to the user with it.
 */
import { CLASS_NAME, NamedError } from '../../ground/named-error.js';
import type { Span } from '../tree.js';
import { codeFrame } from '../code-frame.js';

export type FailureKind =
  'bounds' | 'uninitialized' | 'division' | 'assert' | 'trap' | 'deadlock' | 'mask' | 'alignment';

/**
 * The error that generated code and the functions that it calls throw. The scheduler turns it into
 * a {@link SimulationError}.
 */
export class Failure extends Error {
  readonly kind: FailureKind;
  readonly what: string;
  /** What to write instead, as a sentence. */
  readonly fix: string;
  /** Number of the place in the source. */
  readonly site: number;

  constructor(kind: FailureKind, what: string, fix: string, site: number) {
    super(what);
    this.kind = kind;
    this.what = what;
    this.fix = fix;
    this.site = site;
  }
}

/** A place in a file of the user; lines and columns count from 1. */
export interface SourcePosition {
  readonly file: string;
  readonly line: number;
  readonly column: number;
  /** The whole line of code. */
  readonly codeLine?: string;
}

export type Locate = (span: Span) => SourcePosition | undefined;

export type Index3 = readonly [x: number, y: number, z: number];

/**
 * The error of `kernel.simulate` for a thread that did what is undefined or a fault on the device.
 * The message names thread, block and source line.
 *
 * @example
 * ```ts
 * const shift = kernel('shift', { y: output(f32), x: input(f32) }, ({ y, x }, gpu) => {
 *   y[gpu.globalId.x] = x[gpu.globalId.x + 1]!;
 * });
 * try {
 *   await shift.simulate({ y: new Float32Array(4), x: new Float32Array(4) }, { block: 4 });
 * } catch (error) {
 *   const { kind, thread } = error as SimulationError;
 *   console.log(kind, thread); // bounds [ 3, 0, 0 ]
 * }
 * ```
 */
export class SimulationError extends NamedError {
  /** @internal */
  static override readonly [CLASS_NAME]: string = 'SimulationError';

  override readonly name = 'SimulationError';
  readonly kind: FailureKind;
  /** The thread's index in its block; undefined where many threads take part. */
  readonly thread: Index3 | undefined;
  readonly block: Index3 | undefined;
  readonly span: Span | undefined;
  /** The place in the user's file, if it is known. */
  readonly position: SourcePosition | undefined;

  constructor(
    kernel: string,
    { kind, what, fix }: Pick<Failure, 'kind' | 'what' | 'fix'>,
    where: {
      thread?: Index3;
      block?: Index3;
      span: Span | undefined;
      position: SourcePosition | undefined;
    },
  ) {
    const { thread, block, span, position } = where;
    const threadText =
      thread === undefined || block === undefined
        ? ''
        : ` Thread (${thread.join(', ')}) of block (${block.join(', ')})`;
    const place =
      position === undefined
        ? ''
        : `${threadText === '' ? ' At' : ', at'} ` +
          `${position.file}:${position.line}:${position.column}`;
    const tail = `${threadText}${place}`;
    const length = span === undefined ? 1 : span.end - span.start;
    const frame =
      position?.codeLine === undefined
        ? ''
        : `\n\n${codeFrame(position.codeLine, position.line, position.column, length)}`;
    super(`kernel '${kernel}': ${what}. ${fix}${tail === '' ? '' : `${tail}.`}${frame}`);
    this.kind = kind;
    this.thread = thread;
    this.block = block;
    this.span = span;
    this.position = position;
  }
}
