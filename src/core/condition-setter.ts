/**
 * The kernel that sets the condition of a conditional node from an element of a buffer, and the
 * check that the driver has such nodes.
 */
import { CudaError } from '../ground/errors.js';
import { invalid } from '../ground/arguments.js';
import type { CoreDevice } from './device.js';
import type { Kernel } from './kernel.js';

/**
 * `set(element, bytes of the element, mode, condition)`. With mode 0 the condition is the number
 * itself, and 2^32 - 1 for a number that 32 bits do not hold; with mode 1 whether the number is not
 * zero; with mode 2 whether it is zero; with mode 3 and above whether it equals `mode` - 3.
 */
const PTX = `.version 7.0
.target sm_70
.address_size 64
.extern .func cudaGraphSetConditional (.param .b64 handle, .param .b32 value);
.visible .entry set(
  .param .u64 element, .param .u32 bytes, .param .u32 mode, .param .u64 condition
) {
  .reg .b32 %r<6>; .reg .b64 %a<3>; .reg .b64 %d<3>; .reg .pred %p<6>;
  ld.param.u64 %a0, [element]; cvta.to.global.u64 %a0, %a0; ld.param.u64 %a1, [condition];
  ld.param.u32 %r0, [bytes]; ld.param.u32 %r1, [mode];
  setp.eq.u32 %p0, %r0, 1; setp.eq.u32 %p1, %r0, 2; setp.eq.u32 %p2, %r0, 4;
  @%p0 bra one;
  @%p1 bra two;
  @%p2 bra four;
  ld.global.u64 %d0, [%a0]; bra loaded;
one: ld.global.u8 %d0, [%a0]; bra loaded;
two: ld.global.u16 %d0, [%a0]; bra loaded;
four: ld.global.u32 %d0, [%a0];
loaded: setp.eq.u64 %p3, %d0, 0;
  setp.eq.u32 %p0, %r1, 0; setp.eq.u32 %p1, %r1, 1; setp.eq.u32 %p2, %r1, 2;
  @%p0 bra itself;
  @%p1 bra nonzero;
  @%p2 bra zero;
  sub.u32 %r2, %r1, 3; cvt.u64.u32 %d1, %r2; setp.eq.u64 %p4, %d0, %d1;
  selp.u32 %r3, 1, 0, %p4; bra known;
itself: min.u64 %d0, %d0, 4294967295; cvt.u32.u64 %r3, %d0; bra known;
nonzero: selp.u32 %r3, 0, 1, %p3; bra known;
zero: selp.u32 %r3, 1, 0, %p3;
known:
  {
    .param .b64 p0; .param .b32 p1; st.param.b64 [p0+0], %a1; st.param.b32 [p1+0], %r3;
    call.uni cudaGraphSetConditional, (p0, p1);
  }
  ret;
}`;

interface Setter {
  kernel: Kernel | undefined;
  readonly loaded: Promise<Kernel>;
}

const setters = new WeakMap<CoreDevice, Setter>();

/** The kernel of the device; starts loading it at the first call. */
function setterOf(device: CoreDevice): Setter {
  const known = setters.get(device);
  if (known !== undefined) return known;
  const loaded = device.loadModule(PTX).then((module) => module.kernel('set'));
  const setter: Setter = { kernel: undefined, loaded };
  loaded.then(
    (kernel) => {
      setter.kernel = kernel;
    },
    () => {
      setters.delete(device);
    },
  );
  setters.set(device, setter);
  return setter;
}

/**
 * Loads the kernel that reads conditions from buffers. It is awaited once before {@link graphIf},
 * {@link graphWhile} or {@link graphSwitch} takes a buffer.
 *
 * Rejects with code ERR_CUDA_UNSUPPORTED where the driver has no conditional nodes.
 *
 * @example
 * ```ts
 * await prepareConditions(device);
 * using stream = device.createStream();
 * using flag = device.alloc(i32, 1);
 * await using graph = await stream.capture(() => {
 *   graphIf(stream, flag, (body) => void flag.fill(body, 0)); // a buffer decides
 * });
 * console.log(await graph.nodeCount()); // 2
 * ```
 */
export async function prepareConditions(device: CoreDevice): Promise<void> {
  checkSupported(device, 'a conditional node', false);
  await setterOf(device).loaded;
}

/** The kernel where it is loaded; else a promise of it. */
export function loadedSetter(device: CoreDevice): Kernel | Promise<Kernel> {
  const { kernel, loaded } = setterOf(device);
  return kernel ?? loaded;
}

/**
 * Throws where the driver has no conditional nodes, or, with `several`, none with several bodies.
 */
export function checkSupported(device: CoreDevice, what: string, several: boolean): void {
  const { conditionalNodes } = device.runtime.info;
  if (conditionalNodes === 'all' || (conditionalNodes === 'single' && !several)) return;
  const needed = several ? '12.8' : '12.4';
  throw new CudaError(
    'ERR_CUDA_UNSUPPORTED',
    `${what} in a graph needs a driver of CUDA ${needed} or later; that of ${device.name} is ` +
      `of CUDA ${device.properties.driverVersion}. ` +
      (several
        ? 'Give the buffer that decides instead of a condition: then several nodes take its place.'
        : 'Run the operation without capturing it: the host then decides.'),
  );
}

/** @internal */
export function notPrepared(flag: unknown): CudaError {
  return invalid(
    'condition',
    'a GraphCondition, or a buffer once the kernel that reads it is loaded',
    flag,
    'Write await prepareConditions(device) before the capture.',
  );
}
