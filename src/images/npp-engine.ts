/** NVIDIA's NPP as an engine: its implementations, and whether it is available. */
import {
  nppAddAlpha,
  nppConvertColor,
  nppOrderChannels,
  nppRgbToYuv,
  nppToPacked,
  nppToPlanar,
  nppYuvToRgb,
} from './nvidia/channels.js';
import { nppBoxFilter, nppGaussianFilter } from './nvidia/filters.js';
import {
  nppCopyBorder,
  nppLetterbox,
  nppMirror,
  nppRemap,
  nppResize,
  nppResizeBatch,
  nppRotateQuarters,
  nppWarpAffine,
  nppWarpPerspective,
} from './nvidia/geometry.js';
import { openNpp } from './nvidia/library.js';
import {
  nppArithmetic,
  nppBlend,
  nppDifference,
  nppNormalise,
  nppRescale,
  nppThreshold,
} from './nvidia/pixelwise.js';
import { nppExtremes, nppHistogram, nppMeans, nppSums } from './nvidia/statistics.js';
import type { Engine } from './implementation.js';

export const nppEngine: Engine = {
  implementations: {
    resize: nppResize,
    resizeBatch: nppResizeBatch,
    letterbox: nppLetterbox,
    copyBorder: nppCopyBorder,
    mirror: nppMirror,
    rotateQuarters: nppRotateQuarters,
    remap: nppRemap,
    warpAffine: nppWarpAffine,
    warpPerspective: nppWarpPerspective,
    rotate: nppWarpAffine,
    add: nppArithmetic('add'),
    subtract: nppArithmetic('subtract'),
    multiply: nppArithmetic('multiply'),
    difference: nppDifference,
    rescale: nppRescale,
    threshold: nppThreshold,
    normalise: nppNormalise,
    blend: nppBlend,
    orderChannels: nppOrderChannels,
    addAlpha: nppAddAlpha,
    toPlanar: nppToPlanar,
    toPacked: nppToPacked,
    convertColor: nppConvertColor,
    gaussianFilter: nppGaussianFilter,
    boxFilter: nppBoxFilter,
    channelSums: nppSums,
    channelMeans: nppMeans,
    channelExtremes: nppExtremes,
    channelHistogram: nppHistogram,
    yuvToRgb: nppYuvToRgb,
    rgbToYuv: nppRgbToYuv,
  },
  async infoFor(device) {
    try {
      const { version } = await openNpp(device);
      return { name: 'npp', available: true, version };
    } catch (error) {
      return { name: 'npp', available: false, reason: (error as Error).message };
    }
  },
};
