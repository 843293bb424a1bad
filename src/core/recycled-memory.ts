/**
 * Memory of buffers that were closed lately, for whoever wants as many bytes again: a loop that
 * makes its results anew each time, and closes them, gets them without a word to the runtime
 * thread, and knows their addresses at once. (On two cores, where that thread had to be woken for
 * an allocation and had to wake this one for its end, it took a third to half of a millisecond
 * between two runs of a model.)
 *
 * What was closed is given back when nobody has wanted anything for a while, when memory is short,
 * and with the device.
 */
import { clearTimeout, setTimeout } from 'node:timers';

import { HANDLE } from '../runtime/layout.js';
import { DeviceBuffer } from './buffer.js';
import type { CoreDevice } from './device.js';
import type { DType, DTypeName } from '../ground/dtype.js';
import type { Allocation } from './memory.js';
import type { Stream } from './stream.js';

/**
 * Pieces that are remembered, in use or not, and bytes of them: others than this library may want
 * memory, too.
 */
const MOST = 64;
const MOST_BYTES = 2 ** 29;
const IDLE_MS = 1000;

interface Piece {
  readonly memory: Allocation;
  readonly giveBack: (on?: Stream) => void;
}

export class RecycledMemory {
  private readonly device: CoreDevice;
  /** What was given last at the end. */
  private readonly pieces: Piece[] = [];
  private bytes = 0;
  private timer: ReturnType<typeof setTimeout> | undefined = undefined;
  private wantedAt = 0;
  /** On which no allocation waits for what is freed on it. */
  private apart: Stream | undefined = undefined;

  constructor(device: CoreDevice) {
    this.device = device;
  }

  /** As {@link CoreDevice.allocScoped} on that stream, from the device's own pool. */
  alloc<D extends DTypeName>(dtype: DType<D>, length: number, stream: Stream): DeviceBuffer<D> {
    const bytes = length * dtype.bytes;
    const known = this.take(bytes);
    let buffer: DeviceBuffer<D>;
    if (known === undefined) buffer = this.device.allocScoped(dtype, length, { stream });
    else {
      const memory = this.device.allocAgain(known, stream, () => `alloc ${dtype.name}[${length}]`);
      memory.scoped = true;
      buffer = new DeviceBuffer(memory, dtype, 0, length, undefined);
    }
    if (bytes > 0 && bytes <= MOST_BYTES) this.remember(buffer.memory);
    return buffer;
  }

  /** It has failed, and what it holds may yet be said to be undefined: it is not given again. */
  forget(memory: Allocation): void {
    const at = this.pieces.findIndex((piece) => piece.memory === memory);
    if (at !== -1) this.remove(at).giveBack();
  }

  /** Gives back all that nobody uses. */
  release(on?: Stream): void {
    while (this.pieces.length > 0) this.remove(0).giveBack(on);
    if (this.timer !== undefined) clearTimeout(this.timer);
    this.timer = undefined;
  }

  /** As {@link release}, in front of any allocation that waits for memory. */
  makeRoom(): void {
    if (this.pieces.length === 0) return;
    this.apart ??= this.device.createStream();
    this.release(this.apart);
  }

  private take(bytes: number): Allocation | undefined {
    const { pieces } = this;
    for (let at = pieces.length - 1; at >= 0; at--) {
      const { memory } = pieces[at]!;
      if (memory.bytes !== bytes || !memory.isLeftToBorrower || !this.isSound(memory)) continue;
      this.remove(at);
      return memory;
    }
    return undefined;
  }

  private remove(at: number): Piece {
    const { pieces } = this;
    const piece = pieces[at]!;
    // Not by splice, which makes an array for what it takes out.
    pieces.copyWithin(at, at + 1);
    pieces.pop();
    this.bytes -= piece.memory.bytes;
    return piece;
  }

  /** Whether it is there, and nothing that failed has left it undefined. */
  private isSound({ handle }: Allocation): boolean {
    const { status, failure } = this.device.runtime.shared;
    return Atomics.load(status, handle) === HANDLE.live && Atomics.load(failure, handle) === 0;
  }

  private remember(memory: Allocation): void {
    const { pieces } = this;
    pieces.push({ memory, giveBack: memory.borrow() });
    this.bytes += memory.bytes;
    while (pieces.length > MOST || this.bytes > MOST_BYTES) this.remove(0).giveBack();
    this.wantedAt = performance.now();
    if (this.timer === undefined) this.lookLater(IDLE_MS);
  }

  private lookLater(milliseconds: number): void {
    this.timer = setTimeout(() => {
      this.timer = undefined;
      const left = this.wantedAt + IDLE_MS - performance.now();
      if (left > 1) this.lookLater(left);
      else this.release();
    }, milliseconds);
    this.timer.unref();
  }
}
