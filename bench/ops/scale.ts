/**
 * The operation of the execution-mode rows: y = x * g on 2,048 half-precision numbers, to and fro
 * between two buffers, as launches of level 3 and as operations.
 */
import { bitsOfF16, roundToF16 } from '../runtime/f16.js';
import { loadKernels } from '../runtime/tick.js';
import {
  type CoreDevice,
  type DeviceBuffer,
  type DeviceOp,
  type Kernel,
  type Module,
  type OpContext,
  type Pending,
  type Stream,
  core,
  ops,
} from '../library.js';

const ELEMENTS = 2048;
/**
 * 1 + 2⁻¹⁰, exact in f16: every operation of a chain moves the value by one or two units in the
 * last place.
 */
const G = 1.0009765625;
const LAUNCH = { grid: ELEMENTS / 256, block: 256 };

const { f16, f32, i32, input, output } = core;
const { allOf, operation } = ops;

type Numbers = DeviceBuffer<'f16'>;

/** The result of the given number of operations on 1. */
function resultOf(count: number): number {
  let value = 1;
  for (let i = 0; i < count; i++) value = roundToF16(value * G);
  return value;
}

/** The last arguments of the measurements in C. */
export function inC(count: number): string {
  return `${count} ${ELEMENTS} ${bitsOfF16(resultOf(count))}`;
}

export class Scale {
  readonly device: CoreDevice;
  private readonly module: Module;
  private readonly kernel: Kernel;
  private readonly a: Numbers;
  private readonly b: Numbers;
  /**
   * {@link op}, for `andThen`. Made once: a function with a name of its own, made in each chain,
   * would get its name from tsx, which takes longer (0.3 µs) than building all that is measured
   * here.
   */
  private readonly next: (x: Numbers) => DeviceOp<Numbers>;

  private constructor(device: CoreDevice, module: Module) {
    this.device = device;
    this.module = module;
    this.kernel = module.kernel('scale_f16', [output(f16), input(f16), f32, i32]);
    this.a = device.alloc(f16, ELEMENTS);
    this.b = device.alloc(f16, ELEMENTS);
    this.a.fill(device.stream, 1);
    this.b.fill(device.stream, 1);
    this.next = (x) => this.op(x);
  }

  static async open(device: CoreDevice): Promise<Scale> {
    return new Scale(device, await loadKernels(device));
  }

  /** Launches of level 3. */
  launches(stream: Stream, count: number): void {
    const { kernel, a, b } = this;
    for (let i = 0; i < count; i++) {
      const even = i % 2 === 0;
      kernel.launch(stream, LAUNCH, even ? b : a, even ? a : b, G, ELEMENTS);
    }
  }

  /** One launch of level 3, which is awaited. */
  launch(stream: Stream): Pending {
    return this.kernel.launch(stream, LAUNCH, this.b, this.a, G, ELEMENTS);
  }

  /** The numbers, scaled, in the other buffer. */
  op(x: Numbers): DeviceOp<Numbers> {
    const { kernel } = this;
    const y = x === this.a ? this.b : this.a;
    return operation(this.device, ({ stream }: OpContext) => {
      kernel.launch(stream, LAUNCH, y, x, G, ELEMENTS);
      return y;
    });
  }

  /** The first operation of a chain: on the buffer that {@link prove} fills. */
  first(): DeviceOp<Numbers> {
    return this.op(this.a);
  }

  /** Each operation uses the result of the one before it. */
  chain(count: number): DeviceOp<Numbers> {
    let chain = this.first();
    for (let i = 1; i < count; i++) chain = chain.andThen(this.next);
    return chain;
  }

  /** The same work as a list of operations. */
  list(count: number): DeviceOp<Numbers[]> {
    const { a, b } = this;
    return allOf(Array.from({ length: count }, (_, i) => this.op(i % 2 === 0 ? a : b)));
  }

  /** @throws Error where `run` does not have the result of the given number of operations */
  async prove(count: number, run: () => PromiseLike<unknown>): Promise<void> {
    const { stream } = this.device;
    await this.a.fill(stream, 1);
    await run();
    const expected = resultOf(count);
    const result = await (count % 2 === 0 ? this.a : this.b).read(stream);
    if (!result.every((value) => value === expected))
      throw new Error(`${count} operations gave ${result[0]}, not ${expected}`);
  }

  async close(): Promise<void> {
    this.a.close();
    this.b.close();
    await this.module.close();
  }
}
