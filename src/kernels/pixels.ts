/** Images as kernels copy their pixels: a tensor with the window of a convolution. */
import type { PixelWindow } from '../core/tensor-map.js';
import { Tensor } from '../tensor/index.js';
import type { KernelTensor } from '../tensor/index.js';

/** A view [image, row, column, channel], as `gpu.tensor.loadPixels` reads it. */
export class Pixels extends Tensor {
  readonly window: PixelWindow;

  constructor({ buffer, layout }: KernelTensor, window: PixelWindow) {
    super(buffer, layout, false);
    this.window = window;
  }
}
