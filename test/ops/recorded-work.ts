/** Operations on a buffer of i32 whose runs can be counted, for tests of operations. */
import { i32, inout, u32, u8 } from 'async-cuda/core';
import type { DeviceBuffer, Kernel } from 'async-cuda/core';
import { operation, setDefaultDevice } from 'async-cuda/ops';
import type { DeviceOp } from 'async-cuda/ops';

import { ELEMENTWISE } from '../core/kernels/elementwise.js';
import { WAITING } from '../core/kernels/waiting.js';
import { Gate } from '../core/test-device.js';
import type { TestDevice } from '../core/test-device.js';

export const LENGTH = 64;
const SHAPE = { grid: 1, block: LENGTH } as const;

export class RecordedWork {
  /** The work that was queued, in order. */
  readonly log: string[] = [];
  private readonly host: TestDevice;
  private readonly add1: Kernel;

  private constructor(host: TestDevice, add1: Kernel) {
    this.host = host;
    this.add1 = add1;
  }

  static async on(host: TestDevice): Promise<RecordedWork> {
    setDefaultDevice(host.device);
    return new RecordedWork(host, (await host.load(ELEMENTWISE)).kernel('add1', [inout(i32), u32]));
  }

  /** A new buffer on the run's stream, full of a value. */
  make(value: number): DeviceOp<DeviceBuffer<'i32'>> {
    return operation(this.host.device, (context) => {
      this.log.push(`make ${value}`);
      const buffer = context.alloc(i32, LENGTH);
      buffer.fill(context.stream, value);
      return buffer;
    });
  }

  fill(buffer: DeviceBuffer<'i32'>, value: number): DeviceOp<DeviceBuffer<'i32'>> {
    return operation(this.host.device, ({ stream }) => {
      this.log.push(`fill ${value} on ${stream.slot.index}`);
      buffer.fill(stream, value);
      return buffer;
    });
  }

  add(buffer: DeviceBuffer<'i32'>): DeviceOp<DeviceBuffer<'i32'>> {
    return operation(this.host.device, ({ stream }) => {
      this.log.push(`add on ${stream.slot.index}`);
      this.add1.launch(stream, SHAPE, buffer, LENGTH);
      return buffer;
    });
  }

  /** The first element. */
  read(buffer: DeviceBuffer<'i32'>): DeviceOp<number> {
    return operation(this.host.device, ({ stream }) => {
      this.log.push(`read on ${stream.slot.index}`);
      return buffer.read(stream);
    }).map((values) => values[0]!);
  }

  /** Fails on the device, after the callbacks have run: the memory does not exist. */
  failing(): DeviceOp<DeviceBuffer<'u8'>> {
    return operation(this.host.device, (context) => {
      this.log.push('failing');
      const buffer = context.alloc(u8, 2 ** 46);
      buffer.fill(context.stream, 1);
      return buffer;
    });
  }

  /** Holds its stream until the gate opens. */
  async hold(): Promise<{
    gate: Gate;
    held: DeviceOp<void>;
    kernel: Kernel;
    word: DeviceBuffer<'i32'>;
  }> {
    const module = await this.host.load(WAITING);
    const gate = await Gate.of(module);
    const kernel = module.kernel('hold');
    const word = this.host.device.alloc(i32, 1);
    const held = operation(this.host.device, ({ stream }) => {
      kernel.launch(stream, { grid: 1, block: 1 }, word);
    });
    return { gate, held, kernel, word };
  }

  /** Removes and returns the log. */
  taken(): string[] {
    return this.log.splice(0);
  }
}
