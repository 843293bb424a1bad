/** What the tests of frames share. */
import type { VideoFrame } from 'async-cuda/images';
import { expect } from 'vitest';

/** Frames of `bytes` bytes each; all bytes of the n-th are n + 1. */
export function pieces(count: number, bytes: number): Uint8Array {
  return Uint8Array.from({ length: count * bytes }, (_, i) => Math.floor(i / bytes) + 1);
}

export const RGB = { width: 4, height: 2, pixelFormat: 'rgb24' } as const;
export const RGB_BYTES = 24;

/** The first byte of each frame, all of whose bytes are the same. */
export async function firstValues(of: AsyncIterable<VideoFrame<'rgb24'>>): Promise<number[]> {
  const values: number[] = [];
  for await (const frame of of) {
    expect(new Set(frame.data).size).toBe(1);
    values.push(frame.data[0]!);
  }
  return values;
}
