/** Elements as unsigned words: a kernel that only moves elements serves all dtypes of a size. */
import { u16, u32, u64, u8 } from '../core/index.js';
import type { KernelDType } from '../core/index.js';
import type { KernelTensor } from '../tensor/index.js';

const WORDS: Readonly<Record<number, KernelDType>> = { 1: u8, 2: u16, 4: u32, 8: u64 };

/** Gives the unsigned integer dtype of as many bytes. */
export function wordOf({ bytes }: KernelDType): KernelDType {
  return WORDS[bytes]!;
}

/** Gives the elements of a contiguous tensor as words, in one axis. */
export function words(tensor: KernelTensor): KernelTensor {
  return tensor.reshape([tensor.size] as never).reinterpret(wordOf(tensor.dtype) as never);
}
