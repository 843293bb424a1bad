/** The check of a signature that was read from the source against the compiled kernel's own. */
import { CudaError, DTYPES } from '../core/index.js';
import type { DTypeName } from '../core/index.js';
import type { KernelParam, KernelSignature } from '../ptx/index.js';
import type { SourceSignature, SourceType } from '../nvrtc/source-signatures.js';
import { sizeOf } from '../nvrtc/structure-bytes.js';

/**
 * Throws where the two differ: arguments that are encoded by a wrong signature would be wrong.
 *
 * @throws CudaError with code ERR_CUDA_INTERNAL that names the kernel, the parameter, and both
 *   types
 */
export function checkSignature(source: SourceSignature, compiled: KernelSignature): void {
  const { name, parameters } = source;
  if (parameters === undefined) return;
  if (parameters.length !== compiled.params.length) {
    throw mismatch(
      `kernel '${name}' has ${parameters.length} parameters in its source and ` +
        `${compiled.params.length} when compiled`,
    );
  }
  parameters.forEach(({ name: parameter, type }, i) => {
    const param = compiled.params[i]!;
    if (!agrees(type, param))
      throw mismatch(
        `parameter ${i} (${parameter}) of kernel '${name}' is ${show(type)} in its source ` +
          `and ${describe(param)} when compiled`,
      );
  });
}

function mismatch(what: string): CudaError {
  return new CudaError(
    'ERR_CUDA_INTERNAL',
    `${what}. The source was read wrong, as a macro of an option or a header may cause. ` +
      'Declare the signature: module.kernel(name, [inout(f32), …]).',
  );
}

function agrees(type: SourceType, param: KernelParam): boolean {
  if (type === 'unknown') return true;
  if (typeof type === 'string' && type.includes(' '))
    return param.size === 8 && !param.aggregate && !param.type.startsWith('f');
  const size = sizeOf(type);
  if (size === undefined || size.bytes !== param.size) return false;
  if (param.aggregate)
    return typeof type !== 'string' ? size.align === param.align : isNarrowFloat(type);
  if (typeof type !== 'string') return false;
  // PTX does not distinguish signed integers from unsigned ones, nor 16-bit floats from words.
  return (
    isNarrowFloat(type) ||
    (DTYPES[type as DTypeName].kind === 'float') === param.type.startsWith('f')
  );
}

/** Whether the type is a class in C++, which is passed as bytes. */
function isNarrowFloat(type: string): boolean {
  const { kind, bytes } = DTYPES[type as DTypeName];
  return kind === 'float' && bytes <= 2;
}

function describe({ aggregate, type, size, align }: KernelParam): string {
  return aggregate ? `a structure of ${size} bytes, aligned to ${align}` : `.${type}`;
}

function show(type: SourceType): string {
  if (typeof type === 'string') return type;
  if (!('fields' in type)) return `${show(type[0])}[${type[1]}]`;
  const { bytes = 0, align = 0 } = sizeOf(type) ?? {};
  return `a structure of ${bytes} bytes, aligned to ${align}`;
}
