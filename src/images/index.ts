/**
 * Images: geometry, pixels, statistics, pictures and videos, by our own kernels or NVIDIA's NPP.
 *
 * @packageDocumentation
 */
export { engines, getDefaultEngine, setDefaultEngine } from './engine.js';
export type { EngineInfo, EngineName, EngineOptions } from './implementation.js';
export { crop } from './crop.js';
export type { Region } from './crop.js';
export type { Channels, ImageName } from './image.js';
export { resize, resizeBatch } from './resizing.js';
export type { ResizeBatchOptions, ResizeOptions } from './resizing.js';
export type { Filter, ResizeFilter } from './sampling.js';
export { convertColor } from './color-formats.js';
export type { ConvertColorOptions } from './color-formats.js';
export type { ColorFormat } from './parameters.js';
export type { LumaMatrix } from './luma.js';
export { addImages, difference, multiplyImages, subtractImages } from './arithmetic.js';
export type { ArithmeticOptions, ImageArithmetic, MultiplyOptions } from './arithmetic.js';
export { blend } from './blending.js';
export type { BlendOptions } from './blending.js';
export type { ChannelNumbers } from './channel-numbers.js';
export { addAlpha, orderChannels, toPacked, toPlanar } from './channel-order.js';
export type { AddAlphaOptions, ChannelOptions } from './channel-order.js';
export { normalise } from './normalising.js';
export type { Normalisation, NormaliseOptions, NormalisedName } from './normalising.js';
export type { TensorOrder } from './parameters.js';
export { rescale } from './rescaling.js';
export type { RescaleOptions } from './rescaling.js';
export { threshold } from './thresholding.js';
export type { ThresholdOptions } from './thresholding.js';
export type { ThresholdKind } from './parameters.js';
export { rgbToYuv, yuvToRgb } from './yuv.js';
export type { RgbToYuvOptions, YuvOptions, YuvToRgbOptions } from './yuv.js';
export type { RgbFormat } from './parameters.js';
export type { YuvFormat } from './yuv-frame.js';
export type { YuvRange } from './yuv-matrices.js';
export { remap, rotate, warpAffine, warpPerspective } from './warping.js';
export type { RemapOptions, RotateOptions, Matrix, WarpOptions } from './warping.js';
export type { Border } from './border.js';
export { mirror, rotateQuarters } from './mirroring.js';
export type { MoveOptions } from './mirroring.js';
export type { Flip } from './parameters.js';
export { copyBorder, copyConstantBorder, letterbox } from './bordering.js';
export type { BorderOptions, LetterboxOptions, Letterboxed } from './bordering.js';
export { letterboxNormalise, letterboxNormaliseBatch } from './letterboxing.js';
export { letterboxPlacement } from './letterbox-placement.js';
export type { LetterboxNormaliseOptions } from './letterboxing.js';
export type { Placement } from './letterboxing-pixels.js';
export { boxFilter, filter2d, gaussianFilter, sobel } from './filtering.js';
export type {
  BoxOptions,
  Filter2dOptions,
  FilterOptions,
  GaussianOptions,
  SobelOptions,
} from './filtering.js';
export { channelExtremes, channelHistogram, channelMeans, channelSums } from './statistics.js';
export type { ChannelExtremes, ChannelHistogramOptions } from './statistics.js';
export { decodeImage, decodeImages } from './media/decoding.js';
export { imageSize } from './media/image-size.js';
export type { ImageSize, ImageSizeOptions } from './media/image-size.js';
export type { DecodeImagesOptions } from './media/decoding.js';
export type {
  DecodeImageOptions,
  PictureColor,
  PictureEngine,
  PictureFormat,
} from './media/decoding-options.js';
export type { PictureSource } from './media/picture-source.js';
export { encodeImage } from './media/encoding.js';
export type { EncodeImageOptions, FileFormat } from './media/encoding.js';
export { frames } from './media/frames.js';
export type { FfmpegFramesOptions, FramesOptions, RawFramesOptions } from './media/frames.js';
export type { ByteStream } from './media/byte-reader.js';
export type { PixelFormat, PixelFormats } from './media/pixel-formats.js';
export { VideoFrame } from './media/video-frame.js';
export { FrameEncoder, encodeFrames } from './media/frame-encoder.js';
export type { EncodeFramesOptions } from './media/frame-encoder.js';
