/**
 * NVIDIA's cuBLASLt as an engine of matrix products. It is not an entry of the package: the library
 * of operations uses it.
 */
export { openCublasLt, openedCublasLt } from './library.js';
export type { CublasLt, OpenCublasLtOptions } from './library.js';
export { cublasProduct, prepareProduct } from './product.js';
export { whyNotCublas } from './product-form.js';
export type { PlannedProduct, Product } from './product-form.js';
