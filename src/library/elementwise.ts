/**
 * Kernels that compute each element of a tensor from one element of each operand. Each number of
 * operands has two bodies, specialised for dtypes, the function, and which operands are numbers. In
 * the one for contiguous operands a thread takes several elements in one access; in the one for any
 * strides adjacent threads take adjacent elements.
 */
import { CudaArgumentError, DTYPES } from '../core/index.js';
import type { KernelDType } from '../core/index.js';
import { invalid } from '../ground/arguments.js';
import { input, output } from '../kernels/index.js';
import type { ReadElements, Usable } from '../kernels/index.js';
import { checkScalar } from '../core/struct-declaration.js';
import type { DeviceOp } from '../ops/index.js';
import { Tensor } from '../tensor/index.js';
import { broadcastAll, broadcastTo, coalesceTogether, contiguous } from '../tensor/layouts.js';
import type { KernelTensor, Layout } from '../tensor/index.js';
import { layoutOf } from '../tensor/layout.js';
import { showShape } from '../tensor/shape.js';
import { arithmeticOf, checkGroup } from './element-types.js';
import type { Group } from './element-types.js';
import { KernelFamily } from './kernel-family.js';
import type { Gpu, Input, Member, Output } from './kernel-family.js';
import { checkTensor, operation } from './operation.js';
import type { Plan } from './operation.js';

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
  /** A function of one to three operands, in the type in which their dtype is computed. */
  readonly f: Usable;
  readonly group: Group;
  /** The dtype of the result. Default: that of the operands. */
  readonly gives?: KernelDType;
  /** Operands with a dtype of their own, as the condition of `where`. */
  readonly own?: Readonly<Record<number, KernelDType>>;
  /** The operands' names in errors. Default: x, y, z. */
  readonly names?: readonly string[];
}

/** Makes the operation on operands: tensors, numbers, or operations that give them. */
export function elementwise(
  definition: Elementwise,
  operands: readonly unknown[],
): DeviceOp<KernelTensor> {
  return operation(definition.name, operands, (values) => planOf(definition, values));
}

function planOf(definition: Elementwise, operands: readonly unknown[]): Plan<KernelTensor> {
  const { name, own = {}, gives } = definition;
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
  if (main < 0) {
    const first = operands.findIndex((_, index) => own[index] === undefined);
    if (typeof operands[first] === 'object') checkTensor(name, names[first]!, operands[first]);
    throw invalid(
      names[first]!,
      `a Tensor, for ${name}(…)`,
      operands[first],
      'The result has the dtype of a Tensor: make one with device.full(dtype, [], value).',
    );
  }
  const { dtype } = tensors[main]!;
  checkGroup(name, names[main]!, tensors[main]!, definition.group);
  operands.forEach((operand, index) => {
    checkOperand(
      name,
      names[index]!,
      operand,
      own[index] ?? dtype,
      own[index] === undefined ? names[main]! : undefined,
    );
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

function checkOperand(
  name: string,
  argument: string,
  operand: unknown,
  dtype: KernelDType,
  like: string | undefined,
): void {
  if (!(operand instanceof Tensor)) {
    if (typeof operand !== 'number' && typeof operand !== 'bigint' && typeof operand !== 'boolean')
      checkTensor(name, argument, operand);
    checkScalar(argument, dtype.name, operand);
    return;
  }
  if (operand.dtype === dtype) return;
  throw invalid(
    argument,
    `a Tensor of ${dtype.name}${like === undefined ? '' : `, as ${like} is`}`,
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
  const dtypes = tensors.map((_, index) => own[index] ?? dtype);
  const scalars = dtypes.map((each) => DTYPES[arithmeticOf(each)]);
  const rank = Math.max(1, merged.axes);
  const each = merged.flat
    ? Math.max(2, Math.min(8, 16 / Math.max(dtype.bytes, out.dtype.bytes)))
    : STRIDED_EACH;
  const family = (merged.flat ? LINES : STRIDED)[count - 1]!;
  const key =
    `${name}_${dtype.name}` +
    `${count === 1 ? '' : `_${numbers.map((number) => (number ? 'n' : 't')).join('')}`}` +
    `${merged.flat ? '' : `_${rank}`}`;
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
      f,
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
    // For a number any tensor of the dtype is passed, which is not read.
    ...Object.fromEntries(
      passed.map((tensor, index) => [
        TENSORS[index]!,
        tensor ?? passed.find((other, at) => other !== undefined && dtypes[at] === dtypes[index]),
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

function zeroOf(dtype: KernelDType): number | boolean {
  return dtype.name === 'bool' ? false : 0;
}
