/**
 * Images: geometry, pixels and statistics, by our own kernels or NVIDIA's NPP.
 *
 * @packageDocumentation
 */
export { engines, getDefaultEngine, setDefaultEngine } from './engine.js';
export type { EngineInfo, EngineName, EngineOptions } from './engine.js';
export { crop } from './crop.js';
export type { Region } from './crop.js';
export type { Channels, ImageName } from './image.js';
export { resize, resizeBatch } from './resizing.js';
export type { ResizeBatchOptions, ResizeOptions } from './resizing.js';
export type { Filter, ResizeFilter } from './sampling.js';
export { remap, rotate, warpAffine, warpPerspective } from './warping.js';
export type { Matrix, RemapOptions, RotateOptions, WarpOptions } from './warping.js';
export type { Border } from './border.js';
export { mirror, rotateQuarters } from './mirroring.js';
export type { Flip, MoveOptions } from './mirroring.js';
export { copyBorder, copyConstantBorder, letterbox } from './bordering.js';
export type { BorderOptions, LetterboxOptions, Letterboxed } from './bordering.js';
