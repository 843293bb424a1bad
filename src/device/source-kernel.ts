/** A kernel of CUDA C++ that takes structures as objects. */
import type { Kernel as CoreKernel } from '../core/index.js';
import { isPlainObject } from '../ground/other-realms.js';
import { bytesOf } from '../nvrtc/structure-bytes.js';
import type { SourceParameter } from '../nvrtc/source-signatures.js';
import type { DeviceOp, GivenAll } from '../ops/index.js';
import type { LaunchArgument, OpLaunchOptions } from '../tensor/index.js';
import { OpKernel } from './module.js';

/** Whether a parameter is passed as bytes, although it is a number in JavaScript. */
const isBytes = ({ type }: SourceParameter): boolean =>
  typeof type !== 'string' || /^b?f(?:16|8e\dm\d)$/.test(type);

/** @internal */
export class SourceKernel extends OpKernel {
  readonly #parameters: readonly SourceParameter[];

  constructor(core: CoreKernel, parameters: readonly SourceParameter[]) {
    super(core);
    this.#parameters = parameters;
  }

  override call<const A extends readonly (LaunchArgument | DeviceOp<LaunchArgument>)[]>(
    options: OpLaunchOptions,
    ...args: A
  ): DeviceOp<GivenAll<A>> {
    const packed = args.map((arg, i) => this.#packed(arg, i));
    // The value of the launch has the arguments as they were passed, not their bytes.
    return super
      .call(options, ...packed)
      .map<unknown>((given) =>
        (given as readonly unknown[]).map((value, i) => (packed[i] === args[i] ? value : args[i])),
      ) as DeviceOp<GivenAll<A>>;
  }

  #packed(
    arg: LaunchArgument | DeviceOp<LaunchArgument>,
    i: number,
  ): LaunchArgument | DeviceOp<LaunchArgument> {
    const parameter = this.#parameters[i];
    if (parameter === undefined || !isBytes(parameter)) return arg;
    const isObject = isPlainObject(arg);
    return isObject || typeof arg === 'number'
      ? bytesOf(
          `args[${i}]${parameter.name === '' ? '' : ` (${parameter.name})`}`,
          parameter.type,
          arg,
        )
      : arg;
  }
}
