/**
 * Simulation: kernels run as JavaScript on host arrays, thread by thread, for stepping through.
 * Every index is checked.
 */
import { CudaArgumentError } from '../core/index.js';
import type {
  BitArray,
  DType,
  DTypeName,
  KernelDTypeName,
  Dimensions,
  HostArray,
  PointerParam,
} from '../core/index.js';
import type { NarrowName } from '../ground/dtype.js';
import { checkBoolean, checkOptions, invalid, valueNamed } from '../ground/arguments.js';
import { isStackOverflow } from '../compiler/read/too-deep.js';
import { KernelSourceError } from '../compiler/source-error.js';
import { simulateKernel } from '../compiler/simulate/simulate.js';
import { lowered } from '../compiler/lowering.js';
import { readKernel } from '../compiler/read/read-kernel.js';
import type { Locate } from '../compiler/simulate/failure.js';
import { UnfitArgument, bindArguments } from '../compiler/simulate/arguments.js';
import type { HostArguments, HostTensor } from '../compiler/simulate/arguments.js';
import type { KernelTree } from '../compiler/tree.js';
import { compileError } from './compile-error.js';
import { passed } from './call-arguments.js';
import { checkDynamicShared, checkShapeOptions, gridOver, three, usualBlock } from './grid.js';
import { checkArraysTogether } from './host-arrays.js';
import type { StructsParam } from '../core/index.js';
import type { KernelParam, KernelParams, Parameter } from './parameters.js';
import { locateSpans } from './show-source.js';
import { locateText } from './source-location.js';
import type { HostValue, StructDeclaration, StructValue } from '../core/struct-declaration.js';
import type { Variant } from './variant.js';

/** Typed arrays that hold a dtype's elements. Narrow floats: their values, or their bits. */
type Elements<D extends DTypeName> = HostArray<D> | (D extends NarrowName ? BitArray<D> : never);

/**
 * A tensor of the host that has several axes. Strides count elements; without strides the tensor is
 * contiguous.
 */
export interface SimulatedTensor<A extends ArrayBufferView = ArrayBufferView> {
  readonly data: A;
  readonly shape: readonly number[];
  readonly strides?: readonly number[];
  /** The element that the tensor begins at. */
  readonly offset?: number;
}

type SimulatedArgument<P extends KernelParam> = P extends StructsParam
  ? ArrayBufferView
  : P extends PointerParam<infer D extends KernelDTypeName>
    ? Elements<D & KernelDTypeName> | SimulatedTensor<Elements<D & KernelDTypeName>>
    : P extends StructDeclaration<infer F>
      ? Readonly<StructValue<F>>
      : P extends DType<infer D extends KernelDTypeName>
        ? HostValue<D>
        : never;

/** The arguments of {@link KernelFunction.simulate}: typed arrays where a call takes tensors. */
export type SimulatedArguments<S extends KernelParams> = {
  readonly [K in keyof S]: SimulatedArgument<S[K]>;
};

/** Options of {@link KernelFunction.simulate}. */
export interface SimulationOptions {
  /** Default: one thread for each element of the largest output. */
  readonly grid?: Dimensions;
  /** Default: as in a launch. */
  readonly block?: Dimensions;
  /** Bytes of `gpu.dynamicShared`. */
  readonly sharedBytes?: number;
  /** Receives what the kernel prints. Default: `console.log`, line by line. */
  readonly print?: (text: string) => void;
  /** Whether reading shared memory that no thread has written is an error. Default: true. */
  readonly checkUninitialized?: boolean;
}

/** A kernel's tree, and the places of its texts. It is kept, so that breakpoints stay. */
interface Simulated {
  readonly tree: KernelTree;
  readonly locate: Locate;
}

const known = new WeakMap<Variant, Simulated>();

/** @throws CudaCompileError, CudaArgumentError, SimulationError */
export function simulate(
  variant: Variant,
  parameters: readonly Parameter[],
  defaults: Pick<SimulationOptions, 'grid' | 'block' | 'sharedBytes'>,
  args: Readonly<Record<string, unknown>>,
  options: SimulationOptions,
): void {
  const { name } = variant.definition;
  checkSimulation(options);
  checkArguments(name, parameters, args);
  const { tree, locate } = simulated(variant);
  const block = options.block ?? defaults.block ?? usualBlock(parameters);
  checkThreads(block);
  const sharedBytes = options.sharedBytes ?? defaults.sharedBytes;
  checkDynamicShared(
    name,
    tree.arrays.some(({ space }) => space === 'dynamic'),
    sharedBytes,
  );
  try {
    const grid = options.grid ?? defaults.grid ?? inferredGrid(name, tree, parameters, args, block);
    // All outputs are empty.
    if (three(grid).includes(0)) return;
    simulateKernel(tree, {
      grid,
      block,
      args: args as never,
      locate,
      sourceURL: `async-cuda/${name}.js`,
      ...(sharedBytes === undefined ? {} : { sharedBytes }),
      ...(options.print === undefined ? {} : { print: options.print }),
      ...(options.checkUninitialized === undefined
        ? {}
        : { checkUninitialized: options.checkUninitialized }),
    });
  } catch (error) {
    // The compiler rejects an argument with an error of its own.
    if (error instanceof UnfitArgument)
      throw new CudaArgumentError(`args.${error.argument}`, error.message, { cause: error });
    throw isStackOverflow(error) || error instanceof KernelSourceError
      ? compileError(error, variant.definition)
      : error;
  }
}

function checkSimulation(options: SimulationOptions): void {
  checkOptions('options', options, ['grid', 'block', 'sharedBytes', 'print', 'checkUninitialized']);
  checkShapeOptions(options);
  checkBoolean('options.checkUninitialized', options.checkUninitialized);
  const print: unknown = options.print;
  if (print !== undefined && typeof print !== 'function')
    throw invalid('options.print', 'a function that takes what the kernel prints', print);
}

/** Checks what a call checks, too. The kernel checks the arrays where it is given them. */
function checkArguments(
  kernel: string,
  parameters: readonly Parameter[],
  args: Readonly<Record<string, unknown>>,
): void {
  if (typeof (args as unknown) !== 'object' || args === null || Array.isArray(args))
    throw invalid(
      'args',
      'what the kernel takes, by name: ' +
        `${parameters.map(({ name }) => name).join(', ') || 'nothing'}`,
      args,
    );
  for (const parameter of parameters) {
    const value = valueNamed(args, parameter.name);
    if (parameter.entry.kind !== 'tensor' && value !== undefined) passed(kernel, parameter, value);
  }
  checkArraysTogether(kernel, parameters, args);
}

/** The limit of a block, on every device. */
const MOST_THREADS = 1024;

function checkThreads(block: Dimensions): void {
  const threads = three(block).reduce((product, count) => product * count, 1);
  if (threads > MOST_THREADS)
    throw invalid(
      'options.block',
      `at most ${MOST_THREADS} threads in a block`,
      threads,
      'Give a smaller block and a larger grid.',
    );
}

function inferredGrid(
  kernel: string,
  tree: KernelTree,
  parameters: readonly Parameter[],
  args: Readonly<Record<string, unknown>>,
  block: Dimensions,
): Dimensions {
  // A wrong argument is rejected first, and not the grid that cannot be inferred from it.
  bindArguments(tree, args as HostArguments);
  return gridOver(kernel, largestShape(parameters, args), block);
}

function simulated(variant: Variant): Simulated {
  let found = known.get(variant);
  if (found === undefined) {
    const { site, lowering } = variant.definition;
    try {
      const tree = readKernel(
        // Code of Tile IR is never simulated: a simulation has no device.
        lowering === undefined || lowering.to === 'tile-ir'
          ? variant.source('i32')
          : lowered(variant.source('i32'), lowering),
      );
      found = { tree, locate: locateSpans(tree.texts.map((text) => locateText(text, site))) };
    } catch (error) {
      throw compileError(error, variant.definition);
    }
    known.set(variant, found);
  }
  return found;
}

/** The shape of the largest output. */
function largestShape(
  parameters: readonly Parameter[],
  args: Readonly<Record<string, unknown>>,
): readonly number[] | undefined {
  let largest: readonly number[] | undefined;
  const count = (shape: readonly number[]): number =>
    shape.reduce((product, extent) => product * extent, 1);
  for (const { name, entry } of parameters) {
    const value = valueNamed(args, name);
    if (entry.kind !== 'tensor' || entry.access === 'input') continue;
    const shape = shapeOf(
      value,
      'struct' in entry.element ? entry.element.struct.bytes : undefined,
    );
    if (shape === undefined) continue;
    const seen = entry.rank === 1 ? [count(shape)] : shape;
    if (largest === undefined || count(seen) > count(largest)) largest = seen;
  }
  return largest;
}

function shapeOf(value: unknown, structBytes: number | undefined): readonly number[] | undefined {
  if (ArrayBuffer.isView(value))
    return [
      structBytes === undefined ? (value as Uint8Array).length : value.byteLength / structBytes,
    ];
  return (value as Partial<HostTensor> | undefined)?.shape;
}
