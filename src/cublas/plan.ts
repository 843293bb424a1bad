/**
 * A plan: what the library needs for products of one form. Descriptors, layouts and the choice of
 * an algorithm are made once; then each product is one command, which sets the descriptor's
 * pointers and calls cublasLtMatmul.
 */
import { CudaError, CudaLibraryError, NativeSteps } from '../core/index.js';
import type { LibraryMemory, LibraryStep, StepArgument, Stream } from '../core/index.js';
import { COMPUTE_TYPE, DATA_TYPE, DESCRIPTOR, OPERATION, PREFERENCE, SCALE_MODE } from './enums.js';
import {
  ALGORITHM_ARGUMENT,
  ALGORITHM_BYTES,
  ALPHA_ARGUMENT,
  BETA_ARGUMENT,
  CUBLASLT_FUNCTIONS,
  HEURISTIC_RESULT,
  matmulArguments,
} from './functions.js';
import type { CublasLt } from './library.js';
import { PlanObjects } from './plan-objects.js';
import type { Attribute } from './plan-objects.js';
import type { PlacedProduct, PointerName, ProductForm } from './product-form.js';
import { ALIGNMENT } from './product-form.js';

/** The most bytes of a workspace: NVIDIA advises 32 MiB from Hopper on, and 4 MiB before. */
const WORKSPACE_BYTES = { hopper: 2 ** 25, before: 2 ** 22 } as const;
/**
 * Stands for pointers while an algorithm is chosen: the library finds none for a bias whose pointer
 * is not set. It does not read what it points to.
 */
const SOME_ADDRESS = 2 ** 20;
/** The number of streams from which on those whose work has ended are forgotten. */
const MOST_USES = 16;

/** A stream that has used a plan, up to its operation `mark`. */
interface Use {
  readonly stream: Stream;
  mark: number;
}

export class Plan {
  readonly form: ProductForm;
  /** The bytes of memory that a product needs while it runs; 0 for none. */
  readonly workspaceBytes: number;
  private readonly steps: NativeSteps;
  private readonly objects: PlanObjects;
  private readonly numbers: Float32Array;
  private readonly alphaWord: number;
  private readonly betaWord: number;
  private uses: Use[] = [];
  /** Whether nothing may be queued any more, since the plan's end is under way. */
  isDropped = false;
  /** Whether a capture has used it, whose end is not seen on its stream. */
  private captured = false;

  constructor(
    { device, library }: CublasLt,
    form: ProductForm,
    objects: PlanObjects,
    steps: readonly LibraryStep[],
    algorithm: Uint8Array,
    workspaceBytes: number,
  ) {
    this.form = form;
    this.objects = objects;
    this.workspaceBytes = workspaceBytes;
    this.steps = new NativeSteps(device, {
      name: `cublasLtMatmul of ${form.title}`,
      library: library.name,
      statuses: library.statusRows,
      steps,
      launches: CUBLASLT_FUNCTIONS.cublasLtMatmul.launches,
    });
    const { words, starts } = this.steps;
    const matmul = starts.at(-1)!;
    this.numbers = new Float32Array(words.buffer);
    this.alphaWord = matmul[ALPHA_ARGUMENT]!;
    this.betaWord = matmul[BETA_ARGUMENT]!;
    new Uint8Array(words.buffer).set(algorithm, 4 * matmul[ALGORITHM_ARGUMENT]!);
  }

  /**
   * Queues a product of the plan's form after what `stream` has queued.
   *
   * @param workspace memory of {@link workspaceBytes}; undefined where that is 0
   */
  queue(
    stream: Stream,
    { tensors, alpha, beta }: PlacedProduct,
    workspace: LibraryMemory | undefined,
  ): number {
    const { steps, numbers } = this;
    numbers[this.alphaWord] = alpha;
    numbers[this.betaWord] = beta;
    const memory: LibraryMemory[] = tensors.map(({ buffer }) => buffer);
    const offsets = tensors.map(({ layout, dtype }) => layout.offset * dtype.bytes);
    // An earlier failure that left out undefined does not matter where all of it is written.
    const out = tensors.at(-1)!;
    const isWhole =
      this.form.readsC !== true &&
      out.isContiguous &&
      out.size * out.dtype.bytes === out.buffer.memory.bytes;
    const whole = tensors.map((tensor) => isWhole && tensor === out);
    if (workspace !== undefined) {
      memory.push(workspace);
      offsets.push(0);
      whole.push(true);
    }
    const root = steps.queue(stream, memory, undefined, whole, offsets);
    if (stream.captureScope === undefined) this.used(stream, stream.mark);
    else this.captured = true;
    return root;
  }

  /**
   * Resolves when all commands that use the plan have been executed: with false where that cannot
   * be known before the device's end.
   */
  async ended(): Promise<boolean> {
    const { uses } = this;
    await Promise.all(
      uses
        .filter(({ stream }) => !stream.isClosed)
        .map(({ stream, mark }) => stream.passed(mark).catch(ignore)),
    );
    return !this.captured && uses.every(({ stream, mark }) => stream.hasPassed(mark));
  }

  /** Destroys the plan's objects. Nothing may use it any more. */
  async destroy(): Promise<void> {
    this.steps.close();
    await this.objects.destroy();
  }

  private used(stream: Stream, mark: number): void {
    const known = this.uses.find((use) => use.stream === stream);
    if (known !== undefined) {
      known.mark = mark;
      return;
    }
    if (this.uses.length >= MOST_USES)
      this.uses = this.uses.filter((use) => !use.stream.hasPassed(use.mark));
    this.uses.push({ stream, mark });
  }
}

function ignore(): void {
  // The work has ended, with an error that its own user gets.
}

/** The attributes of the descriptor by the pointers, and whether what they point to is written. */
const POINTERS: Readonly<
  Record<PointerName, { readonly number: number; readonly access: 'in' | 'out' }>
> = {
  biasPointer: { number: DESCRIPTOR.biasPointer.number, access: 'in' },
  scaleOfA: { number: DESCRIPTOR.scaleOfA.number, access: 'in' },
  scaleOfB: { number: DESCRIPTOR.scaleOfB.number, access: 'in' },
  scaleOfD: { number: DESCRIPTOR.scaleOfD.number, access: 'in' },
  amaxOfD: { number: DESCRIPTOR.amaxOfD.number, access: 'out' },
};

/**
 * Makes a plan, on the second worker.
 *
 * @throws CudaLibraryError where a function fails, with the product in its message; CudaError with
 *   code ERR_CUDA_UNSUPPORTED where the library has no algorithm
 */
export async function makePlan(lt: CublasLt, form: ProductForm): Promise<Plan> {
  const objects = new PlanObjects(lt.library);
  try {
    return await planOf(lt, form, objects);
  } catch (error) {
    await objects.destroy().catch(ignore);
    throw named(error, form);
  }
}

async function planOf(lt: CublasLt, form: ProductForm, objects: PlanObjects): Promise<Plan> {
  const { library, handle } = lt;
  const { left, right, c, d, batch, pointers } = form;
  const [descriptor, forLeft, forRight, forD, givenC] = await all([
    objects.make(
      'descriptor',
      [COMPUTE_TYPE[form.tf32 ? 'tf32' : 'f32'], DATA_TYPE.f32],
      descriptorAttributes(form),
    ),
    objects.layout(left, batch),
    objects.layout(right, batch),
    objects.layout(d, batch),
    c === undefined ? 0 : objects.layout(c, batch),
  ]);
  const forC = c === undefined ? forD! : givenC!;
  const { algorithm, workspaceBytes } = await algorithmFor(lt, form, objects, [
    descriptor!,
    forLeft!,
    forRight!,
    forC,
    forD!,
  ]);
  const title = `cublasLtMatmul(${form.title})`;
  const steps = pointers.map((name) => {
    const { number, access } = POINTERS[name];
    const args: StepArgument[] = [
      { constant: descriptor! },
      { constant: number },
      { pointers: access, count: 1 },
      { constant: 8 },
    ];
    return library.step('cublasLtMatmulDescSetAttribute', args, {
      title: `cublasLtMatmulDescSetAttribute(${name} of ${form.title})`,
      kept: true,
    });
  });
  const args = matmulArguments(
    { handle, descriptor: descriptor!, left: forLeft!, right: forRight!, c: forC, d: forD! },
    form.readsC,
    workspaceBytes,
  );
  steps.push(library.step('cublasLtMatmul', args, { title }));
  return new Plan(lt, form, objects, steps, algorithm, workspaceBytes);
}

function descriptorAttributes(form: ProductForm): Attribute[] {
  const { leftIsTransposed, rightIsTransposed, epilogue, biasType, vectors, pointers } = form;
  const operation = (isTransposed: boolean): number =>
    isTransposed ? OPERATION.transpose : OPERATION.none;
  return [
    [DESCRIPTOR.transposeA, operation(leftIsTransposed)],
    [DESCRIPTOR.transposeB, operation(rightIsTransposed)],
    [DESCRIPTOR.epilogue, epilogue],
    ...(biasType === undefined ? [] : [[DESCRIPTOR.biasType, DATA_TYPE[biasType]] as const]),
    ...(form.fastAccumulation ? [[DESCRIPTOR.fastAccumulation, 1] as const] : []),
    ...(vectors
      ? ([
          [DESCRIPTOR.scaleModeOfA, SCALE_MODE.vector],
          [DESCRIPTOR.scaleModeOfB, SCALE_MODE.vector],
        ] as const)
      : []),
    ...pointers.map((name): Attribute => [DESCRIPTOR[name], SOME_ADDRESS]),
  ];
}

/** Asks the library for an algorithm, once for each plan. cublasLtMatmulAlgoGetHeuristic */
async function algorithmFor(
  { library, handle, device, path }: CublasLt,
  form: ProductForm,
  objects: PlanObjects,
  described: readonly number[],
): Promise<{ algorithm: Uint8Array; workspaceBytes: number }> {
  const [major] = device.properties.computeCapability;
  const alignments: readonly Attribute[] = [
    [PREFERENCE.alignmentOfA, form.left.alignment],
    [PREFERENCE.alignmentOfB, form.right.alignment],
    [PREFERENCE.alignmentOfC, (form.c ?? form.d).alignment],
    [PREFERENCE.alignmentOfD, form.d.alignment],
  ];
  const preference = await objects.make(
    'preference',
    [],
    [
      [PREFERENCE.workspaceBytes, major >= 9 ? WORKSPACE_BYTES.hopper : WORKSPACE_BYTES.before],
      ...alignments.filter(([, alignment]) => alignment < ALIGNMENT),
    ],
  );
  const { hosts } = await library.ask('cublasLtMatmulAlgoGetHeuristic', [
    handle,
    ...described,
    preference,
    1,
    new Uint8Array(HEURISTIC_RESULT.bytes),
    new Uint8Array(4),
  ]);
  await objects.destroy('preference');
  const [result, count] = hosts.map((bytes) => new DataView(bytes.buffer, bytes.byteOffset));
  const state = result!.getInt32(HEURISTIC_RESULT.state, true);
  if (count!.getInt32(0, true) < 1 || state !== 0)
    throw new CudaError(
      'ERR_CUDA_UNSUPPORTED',
      `${library.name} (${path}) has no algorithm for the product ${form.title} on ` +
        `${device.name}${form.left.dtype.startsWith('f8') ? HINT_FOR_8_BITS : ''}.`,
    );
  return {
    algorithm: hosts[0]!.slice(0, ALGORITHM_BYTES),
    workspaceBytes: Number(result!.getBigUint64(HEURISTIC_RESULT.workspaceSize, true)),
  };
}

const HINT_FOR_8_BITS =
  ': factors of 8 bits need compute capability 8.9, rows of a and columns of b that are ' +
  'contiguous (b is the transpose of a tensor [N, K]), and K and N that are multiples of 16';

/** Resolves when all have, also where one fails: its failure is thrown then. */
async function all<T>(values: readonly (T | Promise<T>)[]): Promise<T[]> {
  const settled = await Promise.allSettled(values);
  return settled.map((each) => {
    if (each.status === 'rejected') throw each.reason;
    return each.value;
  });
}

/** The error of a call, with the product in its message. */
function named(error: unknown, { title }: ProductForm): unknown {
  if (!(error instanceof CudaLibraryError)) return error;
  const { library, call, status, statusName, code, operation } = error;
  return new CudaLibraryError(
    `${error.message}, for the product ${title}`,
    { library, call, status, statusName },
    code,
    { cause: error, ...(operation === undefined ? {} : { operation }) },
  );
}
