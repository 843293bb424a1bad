/** The compiler as one module, for a thread that blocks: see compiler-parts.ts. */
export { emitKernel } from '../compiler/emit/emit.js';
export { lowered } from '../compiler/lowering.js';
export { tileIrKernel } from '../compiler/tile-ir/lower.js';
export { readKernel } from '../compiler/read/read-kernel.js';
export { compileError } from './compile-error.js';
export { locateText } from './source-location.js';
