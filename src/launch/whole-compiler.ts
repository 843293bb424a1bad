/** The compiler as one module, for a thread that blocks: see compiler-parts.ts. */
export { emitKernel } from '../kernel/emit/emit.js';
export { lowered } from '../kernel/lowering.js';
export { readKernel } from '../kernel/read/read-kernel.js';
export { compileError } from './compile-error.js';
export { locateText } from './source-location.js';
