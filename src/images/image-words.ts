/** Images of u8 as words, for kernels that read and write words. */
import { u32 } from '../core/index.js';
import { Tensor } from '../tensor/index.js';
import type { KernelTensor } from '../tensor/index.js';
import { layoutOf } from '../tensor/layout.js';
import { flat } from './image.js';
import type { Image } from './image.js';

/** Bytes of a word. */
export const WORD = 4;

/**
 * Gives the bytes of an image of u8 as words of u32, if its rows begin at multiples of four bytes
 * and the word of its last bytes is within its buffer; else undefined.
 */
export function wordsOf(image: Image): KernelTensor | undefined {
  if (image.dtype.name !== 'u8') return undefined;
  const { buffer, layout } = image.tensor;
  if (
    !buffer.memory.aligned ||
    [buffer.byteOffset, layout.offset, image.rowPitch, image.imagePitch].some(
      (each) => each % WORD !== 0,
    )
  )
    return undefined;
  const length = Math.ceil(flat(image).size / WORD) * WORD;
  if (layout.offset + length > buffer.length) return undefined;
  return (
    new Tensor(buffer, layoutOf([length], [1], layout.offset), false) as KernelTensor
  ).reinterpret(u32);
}
