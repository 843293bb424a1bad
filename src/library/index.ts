/**
 * Our own kernels, written in TypeScript, as operations on tensors.
 *
 * @packageDocumentation
 */
export {
  abs, bitwiseNot, ceil, cos, erf, exp, expm1, floor, gelu, geluTanh, log, log10, log1p, log2, logicalNot, neg, reciprocal, relu, round, rsqrt, sigmoid, sign, silu, sin, softplus,
  sqrt, square, tan, tanh, trunc,
} from './unary.js';
export type { Unary } from './unary.js';
export {
  add, atan2, bitwiseAnd, bitwiseOr, bitwiseXor, div, equal, greater, greaterEqual, less, lessEqual, logicalAnd, logicalOr, logicalXor, maximum, minimum, mul, notEqual, pow, rem,
  sub, where,
} from './binary.js';
export type { Beside, Binary } from './binary.js';
export type { FloatName, IntegerName, NumberName } from './element-types.js';
