/**
 * Kernels that compute each element of a tensor from one element of each operand. Each number of
 * operands has two bodies, specialised for dtypes, the function, and which operands are numbers. In
 * the one for contiguous operands a thread takes several elements in one access; in the one for any
 * strides adjacent threads take adjacent elements.
 */
import { CudaArgumentError, DTYPES } from '../core/index.js';
import type { KernelDType } from '../core/index.js';
import { invalid } from '../ground/arguments.js';
import { deviceFunction, input, output } from '../kernels/index.js';
import type { DeviceFunction, GpuWith, ReadElements, Usable } from '../kernels/index.js';
import { checkScalar } from '../core/struct-declaration.js';
import type { DeviceOp } from '../ops/index.js';
import { Tensor } from '../tensor/index.js';
import { broadcastAll, broadcastTo, coalesceTogether, contiguous } from '../tensor/layouts.js';
import type { KernelTensor, Layout } from '../tensor/index.js';
import { layoutOf } from '../tensor/layout.js';
import { showShape } from '../tensor/shape.js';
import { commonDType } from './common-dtype.js';
import { arithmeticOf, checkGroup } from './element-types.js';
import type { Group } from './element-types.js';
import { KernelFamily } from './kernel-family.js';
import type { Gpu, Input, Member, Output } from './kernel-family.js';
import { checkTensor, operation } from './operation.js';
import type { Plan } from './operation.js';
import { CASTS } from './reduction-kernels.js';

const BLOCK = 256;
/** Axes that the strided kernels index. */
const AXES = 4;
/** Elements of one thread of a strided kernel. */
const STRIDED_EACH = 4;
/**
 * Sizes from which on indices of the last threads, or of the first elements after the end, do not
 * fit in 32 bits.
 */
const WIDE_FROM = 2 ** 31 - 2 ** 16;

interface LineGpu<F> extends Gpu {
  /** Elements of a thread. */
  readonly EACH: number;
  /** Whether an operand is a number. */
  readonly X: boolean;
  readonly Y: boolean;
  readonly Z: boolean;
  readonly f: F;
}

type F1 = (x: number) => number;
type F2 = (x: number, y: number) => number;
type F3 = (x: number, y: number, z: number) => number;

// Where an operand is a number, its tensor parameter is not read: so one body serves all
// combinations.

const lines1 = new KernelFamily(
  'line1',
  ({ out, x }: { out: Output; x: Input }, gpu: LineGpu<F1>) => {
    const first = gpu.globalId.x * gpu.EACH;
    if (first <= out.length - gpu.EACH) {
      gpu.unroll(gpu.EACH);
      for (let k = 0; k < gpu.EACH; k++) out[first + k] = gpu.f(x[first + k]!);
    } else {
      gpu.unroll(1);
      for (let i = first; i < out.length; i++) out[i] = gpu.f(x[i]!);
    }
  },
);

const lines2 = new KernelFamily(
  'line2',
  (
    { out, x, y, a, b }: { out: Output; x: Input; y: Input; a: number; b: number },
    gpu: LineGpu<F2>,
  ) => {
    const first = gpu.globalId.x * gpu.EACH;
    if (first <= out.length - gpu.EACH) {
      gpu.unroll(gpu.EACH);
      for (let k = 0; k < gpu.EACH; k++)
        out[first + k] = gpu.f(gpu.X ? a : x[first + k]!, gpu.Y ? b : y[first + k]!);
    } else {
      gpu.unroll(1);
      for (let i = first; i < out.length; i++) out[i] = gpu.f(gpu.X ? a : x[i]!, gpu.Y ? b : y[i]!);
    }
  },
);

const lines3 = new KernelFamily(
  'line3',
  (
    {
      out,
      x,
      y,
      z,
      a,
      b,
      c,
    }: { out: Output; x: Input; y: Input; z: Input; a: number; b: number; c: number },
    gpu: LineGpu<F3>,
  ) => {
    const first = gpu.globalId.x * gpu.EACH;
    if (first <= out.length - gpu.EACH) {
      gpu.unroll(gpu.EACH);
      for (let k = 0; k < gpu.EACH; k++)
        out[first + k] = gpu.f(
          gpu.X ? a : x[first + k]!,
          gpu.Y ? b : y[first + k]!,
          gpu.Z ? c : z[first + k]!,
        );
    } else {
      gpu.unroll(1);
      for (let i = first; i < out.length; i++)
        out[i] = gpu.f(gpu.X ? a : x[i]!, gpu.Y ? b : y[i]!, gpu.Z ? c : z[i]!);
    }
  },
);

type Input4 = ReadElements<ReadElements<ReadElements<Input>>> & {
  readonly shape: readonly [number, number, number, number];
};

interface StridedGpu<F> extends LineGpu<F> {
  /**
   * Gives element `i`, counted in row-major order. All operands have the shape of `like`, so that
   * indices are computed once.
   */
  at(x: Input4, like: Input4, i: number): number;
}

const strided1 = new KernelFamily(
  'strided1',
  ({ out, x }: { out: Output; x: Input4 }, gpu: StridedGpu<F1>) => {
    const first = gpu.blockIdx.x * gpu.blockDim.x * gpu.EACH + gpu.threadIdx.x;
    gpu.unroll(gpu.EACH);
    for (let k = 0; k < gpu.EACH; k++) {
      const i = first + k * gpu.blockDim.x;
      if (i < out.length) out[i] = gpu.f(gpu.at(x, x, i));
    }
  },
);

const strided2 = new KernelFamily(
  'strided2',
  (
    { out, x, y, a, b }: { out: Output; x: Input4; y: Input4; a: number; b: number },
    gpu: StridedGpu<F2>,
  ) => {
    const first = gpu.blockIdx.x * gpu.blockDim.x * gpu.EACH + gpu.threadIdx.x;
    gpu.unroll(gpu.EACH);
    for (let k = 0; k < gpu.EACH; k++) {
      const i = first + k * gpu.blockDim.x;
      if (i < out.length) out[i] = gpu.f(gpu.X ? a : gpu.at(x, x, i), gpu.Y ? b : gpu.at(y, x, i));
    }
  },
);

const strided3 = new KernelFamily(
  'strided3',
  (
    {
      out,
      x,
      y,
      z,
      a,
      b,
      c,
    }: { out: Output; x: Input4; y: Input4; z: Input4; a: number; b: number; c: number },
    gpu: StridedGpu<F3>,
  ) => {
    const first = gpu.blockIdx.x * gpu.blockDim.x * gpu.EACH + gpu.threadIdx.x;
    gpu.unroll(gpu.EACH);
    for (let k = 0; k < gpu.EACH; k++) {
      const i = first + k * gpu.blockDim.x;
      if (i < out.length)
        out[i] = gpu.f(
          gpu.X ? a : gpu.at(x, x, i),
          gpu.Y ? b : gpu.at(y, x, i),
          gpu.Z ? c : gpu.at(z, x, i),
        );
    }
  },
);

// Axes of extent 1 come first, and there is a function without their divisions for each rank.
const at = [
  (x: Input4, _like: Input4, i: number): number => x[0]![0]![0]![i]!,
  (x: Input4, like: Input4, i: number): number => x[0]![0]![i / like.shape[3]]![i % like.shape[3]]!,
  (x: Input4, like: Input4, i: number): number => {
    const row = i / like.shape[3];
    return x[0]![row / like.shape[2]]![row % like.shape[2]]![i % like.shape[3]]!;
  },
  (x: Input4, like: Input4, i: number): number => {
    const row = i / like.shape[3];
    const plane = row / like.shape[2];
    return x[plane / like.shape[1]]![plane % like.shape[1]]![row % like.shape[2]]![
      i % like.shape[3]
    ]!;
  },
] as const;

const LINES = [lines1, lines2, lines3] as const;
const STRIDED = [strided1, strided2, strided3] as const;
const TENSORS = ['x', 'y', 'z'] as const;
const NUMBERS = ['a', 'b', 'c'] as const;
const CONSTANTS = ['X', 'Y', 'Z'] as const;

/** An elementwise operation: its name, the function that computes an element, and dtypes. */
export interface Elementwise {
  readonly name: string;
  /**
   * A function of one to three operands, in the type in which their common dtype is computed; or
   * one for each dtype, which its result determines: another key names another function.
   */
  readonly f: Usable | ByDType;
  readonly group: Group;
  /** The dtype of the result. Default: that of the operands. */
  readonly gives?: KernelDType;
  /** Operands with a dtype of their own, as the condition of `where`. */
  readonly own?: Readonly<Record<number, KernelDType>>;
  /** The dtype of operands that are all numbers. Default: one of them has to be a tensor. */
  readonly ofNumbers?: KernelDType;
  /** The operands' names in errors. Default: x, y, z. */
  readonly names?: readonly string[];
}

/** The function of a dtype. */
export interface ChosenFunction {
  /** Is different for different functions of an operation. */
  readonly key: string;
  readonly f: Usable;
}

/** Chooses a function by the dtype. */
export class ByDType {
  readonly choose: (dtype: KernelDType) => ChosenFunction;

  constructor(choose: (dtype: KernelDType) => ChosenFunction) {
    this.choose = choose;
  }
}

/** Makes the operation on operands: tensors, numbers, or operations that give them. */
export function elementwise(
  definition: Elementwise,
  operands: readonly unknown[],
): DeviceOp<KernelTensor> {
  return operation(publicName(definition), operands, (values) => planOf(definition, values));
}

/** The function's name as it is exported: kernels are named with underscores. */
const publicName = ({ name }: Elementwise): string =>
  name.replace(/_(.)/g, (_, letter: string) => letter.toUpperCase());

function planOf(definition: Elementwise, operands: readonly unknown[]): Plan<KernelTensor> {
  const { own = {}, gives } = definition;
  const name = publicName(definition);
  const names = definition.names ?? TENSORS;
  const tensors = operands.map((operand) =>
    operand instanceof Tensor ? (operand as KernelTensor) : undefined,
  );
  tensors.forEach((tensor, index) => {
    if (tensor !== undefined) checkTensor(name, names[index]!, tensor);
  });
  const main = tensors.findIndex(
    (tensor, index) => tensor !== undefined && own[index] === undefined,
  );
  if (main < 0 && definition.ofNumbers === undefined) {
    const first = operands.findIndex((_, index) => own[index] === undefined);
    if (typeof operands[first] === 'object') checkTensor(name, names[first]!, operands[first]);
    throw invalid(
      names[first]!,
      `a Tensor, for ${name}(…)`,
      operands[first],
      'The result has the dtype of a Tensor: make one with device.full(dtype, [], value).',
    );
  }
  tensors.forEach((tensor, index) => {
    if (tensor !== undefined && own[index] === undefined)
      checkGroup(name, names[index]!, tensor, definition.group);
  });
  const dtype = (commonDType(
    name,
    tensors.flatMap((tensor, index) =>
      tensor === undefined || own[index] !== undefined ? [] : [[names[index]!, tensor] as const],
    ),
  ) ?? definition.ofNumbers!) as KernelDType;
  operands.forEach((operand, index) => {
    checkOperand(name, names[index]!, operand, own[index] ?? dtype, own[index] !== undefined);
  });
  const shape = shapeOf(name, names, tensors);
  return (work) => {
    const out = work.result(gives ?? dtype, shape);
    if (out.size === 0) return out;
    const merged = mergedLayouts(shape, tensors);
    if (merged.axes > AXES) {
      // Views of more axes than the kernels index are copied first.
      const copies = tensors.map((tensor) =>
        tensor === undefined
          ? undefined
          : work.dense(tensor.broadcastTo(shape as never) as unknown as KernelTensor),
      );
      work.add(launch(definition, operands, copies, dtype, out, mergedLayouts(shape, copies)));
    } else work.add(launch(definition, operands, tensors, dtype, out, merged));
    return out;
  };
}

/** @param fixed whether the operand has a dtype of its own, to which nothing is promoted */
function checkOperand(
  name: string,
  argument: string,
  operand: unknown,
  dtype: KernelDType,
  fixed: boolean,
): void {
  if (!(operand instanceof Tensor)) {
    if (typeof operand !== 'number' && typeof operand !== 'bigint' && typeof operand !== 'boolean')
      checkTensor(name, argument, operand);
    checkScalar(argument, dtype.name, operand);
    return;
  }
  if (!fixed || operand.dtype === dtype) return;
  throw invalid(
    argument,
    `a Tensor of ${dtype.name}`,
    operand,
    dtype.name === 'bool'
      ? 'Compare it: notEqual(x, 0).'
      : `Convert it with convert(${dtype.name}).`,
  );
}

function shapeOf(
  name: string,
  names: readonly string[],
  tensors: readonly (KernelTensor | undefined)[],
): number[] {
  const given = tensors.flatMap((tensor) => (tensor === undefined ? [] : [tensor.shape]));
  try {
    return broadcastAll(given);
  } catch {
    const shown = tensors.flatMap((tensor, index) =>
      tensor === undefined ? [] : [`${names[index]!}: ${showShape(tensor.shape)}`],
    );
    throw new CudaArgumentError(
      'shape',
      `${name}: shapes that do not broadcast: ${shown.join(', ')}. From the end each extent ` +
        'has to be the same, or 1.',
    );
  }
}

/** The operands' layouts, broadcast to the result's shape and coalesced together. */
interface MergedLayouts {
  /** The number of axes that are left. */
  readonly axes: number;
  /** Whether all operands are contiguous. */
  readonly flat: boolean;
  /** The layout of each operand; `undefined` for a number. */
  readonly layouts: readonly (Layout | undefined)[];
}

function mergedLayouts(
  shape: readonly number[],
  tensors: readonly (KernelTensor | undefined)[],
): MergedLayouts {
  const wide = tensors.map((tensor) =>
    tensor === undefined ? undefined : (broadcastTo(tensor.layout, shape as never) as Layout),
  );
  const [, ...merged] = coalesceTogether([
    contiguous(shape),
    ...wide.filter((layout) => layout !== undefined),
  ]);
  let next = 0;
  const layouts = wide.map((layout) => (layout === undefined ? undefined : merged[next++]!));
  const flat = layouts.every(
    (layout) =>
      layout === undefined ||
      layout.shape.length === 0 ||
      (layout.shape.length === 1 && layout.strides[0] === 1),
  );
  return { axes: merged[0]!.shape.length, flat, layouts };
}

function launch(
  { name, f, gives, own = {} }: Elementwise,
  operands: readonly unknown[],
  tensors: readonly (KernelTensor | undefined)[],
  dtype: KernelDType,
  out: KernelTensor,
  merged: MergedLayouts,
): DeviceOp<unknown> {
  const count = operands.length;
  const { size } = out;
  const numbers = tensors.map((tensor) => tensor === undefined);
  // For a number any tensor is passed, which is not read.
  const any = tensors.find((tensor) => tensor !== undefined)!;
  const dtypes = tensors.map((tensor) => (tensor ?? any).dtype);
  const scalars = tensors.map((_, index) => DTYPES[arithmeticOf(own[index] ?? dtype)]);
  const chosen = f instanceof ByDType ? f.choose(dtype) : undefined;
  const computed = inCommonType(
    chosen?.f ?? (f as Usable),
    tensors.map((tensor, index) =>
      tensor === undefined || own[index] !== undefined ? undefined : tensor.dtype,
    ),
    dtype,
  );
  const rank = Math.max(1, merged.axes);
  const each = merged.flat
    ? Math.max(2, Math.min(8, 16 / Math.max(dtype.bytes, out.dtype.bytes)))
    : STRIDED_EACH;
  const family = (merged.flat ? LINES : STRIDED)[count - 1]!;
  // The dtypes that the kernel depends on: one, or each operand's where they differ.
  const named = [dtype, ...tensors.map((tensor) => tensor?.dtype ?? dtype)];
  const key = [
    name,
    ...(chosen === undefined ? [] : [chosen.key]),
    ...(new Set(named).size === 1 ? [dtype.name] : named.map((type) => type.name)),
    ...(count === 1 ? [] : [numbers.map((number) => (number ? 'n' : 't')).join('')]),
    ...(merged.flat ? [] : [rank]),
  ].join('_');
  const launchable = family.member(key, (): Member => ({
    signature: {
      out: output(gives ?? dtype),
      ...Object.fromEntries(
        dtypes.map((type, index) => [
          TENSORS[index]!,
          merged.flat ? input(type) : input(type, AXES),
        ]),
      ),
      ...(count === 1
        ? {}
        : Object.fromEntries(scalars.map((type, index) => [NUMBERS[index]!, type]))),
    },
    uses: {
      EACH: each,
      f: computed,
      ...Object.fromEntries(numbers.map((number, index) => [CONSTANTS[index]!, number])),
      ...(merged.flat ? {} : { at: at[rank - 1]! }),
    },
    block: BLOCK,
  }));
  const passed = tensors.map((tensor, index) => {
    if (tensor === undefined) return undefined;
    const { shape, strides, offset } = merged.layouts[index]!;
    const missing = AXES - shape.length;
    const layout = merged.flat
      ? layoutOf([size], [1], offset)
      : layoutOf(
          [...new Array<number>(missing).fill(1), ...shape],
          [...new Array<number>(missing).fill(0), ...strides],
          offset,
        );
    return new Tensor(tensor.buffer, layout, false);
  });
  const args = {
    out: out.reshape([size] as never),
    ...Object.fromEntries(
      passed.map((tensor, index) => [
        TENSORS[index]!,
        tensor ?? passed.find((other) => other !== undefined),
      ]),
    ),
    ...(count === 1
      ? {}
      : Object.fromEntries(
          operands.map((operand, index) => [
            NUMBERS[index]!,
            numbers[index] ? operand : zeroOf(scalars[index]!),
          ]),
        )),
  };
  return launchable(args, {
    grid: Math.ceil(size / (BLOCK * each)),
    ...(size >= WIDE_FROM ? { index: 'i64' } : {}),
  });
}

/**
 * The function with casts of those operands that are computed in another type than the common
 * dtype.
 */
function inCommonType(
  f: Usable,
  dtypes: readonly (KernelDType | undefined)[],
  dtype: KernelDType,
): Usable {
  const type = arithmeticOf(dtype);
  const differs = dtypes.map((each) => each !== undefined && arithmeticOf(each) !== type);
  if (type === 'bool' || !differs.some(Boolean)) return f;
  const whether = (index: number): Usable => (differs[index] ? CASTS[type] : asItIs);
  if (dtypes.length === 2) {
    const uses = { f: f as F2, castX: whether(0) as F1, castY: whether(1) as F1 };
    return deviceFunction(
      (x: number, y: number, gpu: GpuWith<typeof uses>) => gpu.f(gpu.castX(x), gpu.castY(y)),
      { uses },
    ) as DeviceFunction;
  }
  const uses = {
    f: f as F3,
    castX: whether(0) as F1,
    castY: whether(1) as F1,
    castZ: whether(2) as F1,
  };
  return deviceFunction(
    (x: number, y: number, z: number, gpu: GpuWith<typeof uses>) =>
      gpu.f(gpu.castX(x), gpu.castY(y), gpu.castZ(z)),
    { uses },
  ) as DeviceFunction;
}

const asItIs = (value: number): number => value;

function zeroOf(dtype: KernelDType): number | boolean {
  return dtype.name === 'bool' ? false : 0;
}
