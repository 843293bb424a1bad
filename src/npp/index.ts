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
