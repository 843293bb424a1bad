/** Kernels of one body for many dtypes and constants, each defined at its first use. */
import type { Dimensions, KernelDType } from '../core/index.js';
import { kernel } from '../kernels/index.js';
import type {
  CallOptions,
  Gpu,
  KernelArray,
  KernelParam,
  ReadElements,
  Usable,
  WrittenElements,
} from '../kernels/index.js';
import type { DeviceOp } from '../ops/index.js';

/** A kernel whose parameters have no static types, since they depend on dtypes. */
export type Launchable = (
  args: Readonly<Record<string, unknown>>,
  options?: CallOptions,
) => DeviceOp<unknown>;

/** The dtypes of two factors, in a kernel's key. */
export const pairName = (left: KernelDType, right: KernelDType): string =>
  left === right ? left.name : `${left.name}_${right.name}`;

/** A kernel of a family, without the body. */
export interface Member {
  readonly signature: Readonly<Record<string, KernelParam>>;
  readonly uses?: Readonly<Record<string, Usable>>;
  readonly block?: Dimensions;
}

/** Elements in the bodies of families, of any dtype. */
export type Input = ReadElements<number>;
export type Output = WrittenElements<number>;
export type { Gpu, KernelArray };

/**
 * A body and the kernels that were defined with it. `Args` is the type of the body's first
 * parameter, `G` that of its second.
 */
export class KernelFamily<Args, G extends Gpu> {
  private readonly name: string;
  private readonly body: (args: Args, gpu: G) => void;
  private readonly members = new Map<string, Launchable>();

  constructor(name: string, body: (args: Args, gpu: G) => void) {
    this.name = name;
    this.body = body;
  }

  /**
   * Gives the kernel for a key, and defines it at the first call.
   *
   * @param key is different for different members. It has letters, digits and _ only, since it is
   *   part of the kernel's name
   */
  member(key: string, make: () => Member): Launchable {
    let found = this.members.get(key);
    if (found === undefined) {
      const { signature, uses = {}, block } = make();
      // The signature's types are not static.
      found = kernel(`${this.name}_${key}`, signature as never, this.body as never, {
        uses,
        ...(block === undefined ? {} : { block }),
      }) as unknown as Launchable;
      this.members.set(key, found);
    }
    return found;
  }
}
