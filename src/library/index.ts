/**
 * Operations on tensors, by kernels that are written in TypeScript.
 *
 * @packageDocumentation
 */
export type { Unary, UnaryTo } from './unary-function.js';
export * from './unary.js';
export * from './trigonometry.js';
export * from './float-classes.js';
export type { Beside, Binary, Common } from './binary-function.js';
export * from './binary.js';
export * from './comparisons.js';
export { clip, where } from './selection.js';
export type { WhereOptions } from './selection.js';
export { concat, flip, moveaxis, repeat, roll, stack, tile, unstack } from './arrangement.js';
export type { FlipOptions, JoinOptions, RepeatOptions, RollOptions } from './arrangement.js';
export { emptyLike, fullLike, meshgrid, onesLike, tril, triu, zerosLike } from './creation.js';
export type { Like, LikeOptions, MeshgridOptions, TriangleOptions } from './creation.js';
export { canCast, finfo, iinfo, isdtype, resultType } from './dtype-rules.js';
export type { DTypeKind, DTypeOrTensor, FloatInfo, IntegerInfo } from './dtype-rules.js';
export { all, any, max, mean, min, prod, sum } from './reductions.js';
export type { Reducing, SumName } from './reductions.js';
export type { AxisOptions } from './reduced-axes.js';
export { argmax, argmin } from './positions-of-extremes.js';
export type { PositionOptions, Positions } from './positions-of-extremes.js';
export { logSoftmax, softmax } from './softmax.js';
export { layerNorm, rmsNorm } from './normalization.js';
export type { LayerNormOptions, RmsNormOptions } from './normalization.js';
export { linear } from './linear.js';
export type { LinearOptions, Mapped, SmallLinearOptions } from './linear.js';
export type { ActivationName } from './activations.js';
export { groupedMatmul } from './grouped-matmul.js';
export type { EndsName, GroupedMatmulOptions, GroupedShape } from './grouped-matmul.js';
export { matmul } from './matmul.js';
export type {
  FactorName,
  MatmulOptions,
  Multiplied,
  SmallMatmulOptions,
  WholeMatmulOptions,
} from './matmul.js';
export type {
  ProductEngine,
  ProductPrecision,
  ProductScales,
  SmallFactorName,
  SmallProductName,
  WholeFactorName,
} from './product-engine.js';
export { attention, attentionForward } from './attention.js';
export { packedAttention } from './packed-attention.js';
export { attentionBackward } from './attention-backward.js';
export type { AttentionGradients } from './attention-backward.js';
export type { AttentionForward, AttentionName, AttentionOptions } from './attention.js';
export { cumsum } from './scan.js';
export type { ScanOptions } from './scan.js';
export { argSort, sort, topK } from './sorting.js';
export type { SortOptions, TopK, TopKOptions } from './sorting.js';
export { transpose } from './transposing.js';
export { gather, scatter, scatterAdd } from './indexing.js';
export type { AtomicName, IndexingOptions } from './indexing.js';
export { histogram } from './histogram.js';
export type { HistogramOptions } from './histogram.js';
export { convolution2d } from './convolution.js';
export type { Convolution2dOptions, ConvolutionName, ImageLayout } from './convolution.js';
export type { FloatName, IntegerName, NumberName } from './element-types.js';
export { randomIntegers, randomNormal, randomUniform } from './random.js';
export type { RandomIntegersOptions, RandomNormalOptions, RandomUniformOptions } from './random.js';
