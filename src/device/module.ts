/** Modules and kernels whose launches are operations. */
import type {
  Kernel as CoreKernel,
  KernelAttributes,
  Module as CoreModule,
  ParamDeclaration,
} from '../core/index.js';
import type { DeviceOp, GivenAll } from '../ops/index.js';
import { callKernel } from '../tensor/index.js';
import type { LaunchArgument, OpLaunchOptions } from '../tensor/index.js';

/**
 * Loaded code. Made by {@link Device.loadModule}.
 *
 * @example
 * ```ts
 * await using module = await device.loadModule(`.version 7.0
 * .target sm_70
 * .address_size 64
 * .visible .entry seven(.param .u64 y) {
 *   .reg .b64 %y; ld.param.u64 %y, [y]; st.global.u32 [%y], 7; ret;
 * }`);
 * const seven = module.kernel('seven', [output(u32)]);
 * const [y] = await seven.call({ grid: 1, block: 1 }, device.zeros(u32, [1]));
 * console.log(await y.read()); // Uint32Array(1) [ 7 ]
 * y.close();
 * ```
 */
export class OpModule implements AsyncDisposable {
  /** The same module at level 3. */
  readonly core: CoreModule;

  /** @internal */
  constructor(core: CoreModule) {
    this.core = core;
  }

  /**
   * A kernel of the module.
   *
   * @param signature the parameters: `[inout(f32), f32, i32]`. Without a signature, buffers count
   *   as read and written, and numbers are converted by the parameters' sizes
   * @throws CudaError with code ERR_CUDA_NOT_FOUND
   */
  kernel(name: string, signature?: readonly ParamDeclaration[]): OpKernel {
    return new OpKernel(this.core.kernel(name, signature));
  }

  /** Unloads the module, after its launches. cuLibraryUnload */
  close(): Promise<void> {
    return Promise.resolve(this.core.close());
  }

  /** Calls {@link close}, for `await using`. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}

/**
 * A kernel whose launches are operations. Made by {@link OpModule.kernel}.
 *
 * @example
 * ```ts
 * await using module = await device.loadModule(`.version 7.0
 * .target sm_70
 * .address_size 64
 * .visible .entry seven(.param .u64 y) {
 *   .reg .b64 %y; ld.param.u64 %y, [y]; st.global.u32 [%y], 7; ret;
 * }`);
 * const seven = module.kernel('seven', [output(u32)]);
 * console.log(String(seven)); // Kernel seven(u32*)
 * const y = await seven.call({ grid: 1, block: 1 }, device.zeros(u32, [1])).first();
 * console.log(await y.read()); // Uint32Array(1) [ 7 ]
 * y.close();
 * ```
 */
export class OpKernel {
  /** The same kernel at level 3. */
  readonly core: CoreKernel;

  /** @internal */
  constructor(core: CoreKernel) {
    this.core = core;
  }

  /** The kernel's name in the module. */
  get name(): string {
    return this.core.name;
  }

  /** The kernel's attributes, from the driver. */
  get attributes(): Readonly<KernelAttributes> {
    return this.core.attributes;
  }

  /**
   * The launch as an operation whose value is the list of its arguments. Arguments may be
   * operations: they run before it. The grid may be left out where an argument is a partition.
   * cuLaunchKernel
   */
  call<const A extends readonly (LaunchArgument | DeviceOp<LaunchArgument>)[]>(
    options: OpLaunchOptions,
    ...args: A
  ): DeviceOp<GivenAll<A>> {
    return callKernel(this.core, options, ...args);
  }

  toString(): string {
    return this.core.toString();
  }

  [Symbol.for('nodejs.util.inspect.custom')](): string {
    return this.toString();
  }
}
