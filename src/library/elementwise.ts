/**
 * Kernels that compute each element of a tensor from one of each operand. There are two for each
 * number of operands, made for dtypes, a function and which operands are numbers: one for operands
 * that lie alike, whose threads take several elements in one access; one for whatever strides,
 * where neighbouring threads take neighbouring elements.
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
 * Sizes from which on indices of the last threads, or of what lies behind the end, are beyond 32
 * bits.
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

// A number stands beside a tensor that is not read: one body for all combinations.

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
   * Element number `i`, counted in row-major order. All operands have the shape of `like`, whose
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

// Axes of extent 1 are in front: each division that they would take is left out.
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

/**
 * An operation on elements: what it is called, which function of a kernel computes one, and dtypes.
 */
export interface Elementwise {
  readonly name: string;
  /** One to three operands, as numbers of the type that arithmetic on the dtype happens in. */
  readonly f: Usable;
  readonly group: Group;
  /** dtype of the result; left out, that of the operands. */
  readonly gives?: KernelDType;
  /** Operands that are of a dtype of their own: of where, the condition. */
  readonly own?: Readonly<Record<number, KernelDType>>;
  /** Names of the operands in errors. Default: x, y, z. */
  readonly names?: readonly string[];
}

/** The operation on operands: tensors, numbers, or operations that give them. */
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
    const walked = walkOf(shape, tensors);
    if (walked.axes > AXES) {
      // Views of more axes than the kernels index are written out first.
      const copies = tensors.map((tensor) =>
        tensor === undefined
          ? undefined
          : work.dense(tensor.broadcastTo(shape as never) as unknown as KernelTensor),
      );
      work.add(launch(definition, operands, copies, dtype, out, walkOf(shape, copies)));
    } else work.add(launch(definition, operands, tensors, dtype, out, walked));
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

/** How the operands are walked along with the result. */
interface Walk {
  /** Axes that are left where those that can be merged are. */
  readonly axes: number;
  /** Whether all operands are contiguous. */
  readonly flat: boolean;
  /** Of each operand that is a tensor. */
  readonly layouts: readonly (Layout | undefined)[];
}

function walkOf(shape: readonly number[], tensors: readonly (KernelTensor | undefined)[]): Walk {
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
  walk: Walk,
): DeviceOp<unknown> {
  const count = operands.length;
  const { size } = out;
  const numbers = tensors.map((tensor) => tensor === undefined);
  const dtypes = tensors.map((_, index) => own[index] ?? dtype);
  const scalars = dtypes.map((each) => DTYPES[arithmeticOf(each)]);
  const rank = Math.max(1, walk.axes);
  const each = walk.flat
    ? Math.max(2, Math.min(8, 16 / Math.max(dtype.bytes, out.dtype.bytes)))
    : STRIDED_EACH;
  const family = (walk.flat ? LINES : STRIDED)[count - 1]!;
  const key = `${name}_${dtype.name}${count === 1 ? '' : `_${numbers.map((number) => (number ? 'n' : 't')).join('')}`}${walk.flat ? '' : `_${rank}`}`;
  const launchable = family.member(key, (): Member => ({
    signature: {
      out: output(gives ?? dtype),
      ...Object.fromEntries(
        dtypes.map((type, index) => [TENSORS[index]!, walk.flat ? input(type) : input(type, AXES)]),
      ),
      ...(count === 1
        ? {}
        : Object.fromEntries(scalars.map((type, index) => [NUMBERS[index]!, type]))),
    },
    uses: {
      EACH: each,
      f,
      ...Object.fromEntries(numbers.map((number, index) => [CONSTANTS[index]!, number])),
      ...(walk.flat ? {} : { at: at[rank - 1]! }),
    },
    block: BLOCK,
  }));
  const passed = tensors.map((tensor, index) => {
    if (tensor === undefined) return undefined;
    const { shape, strides, offset } = walk.layouts[index]!;
    const missing = AXES - shape.length;
    const layout = walk.flat
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
    // Beside a number stands any tensor of the dtype, which is not read.
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
