/**
 * Photographs to classify: parts of the demo's own, mirrored and recoloured, as JPEG files and as
 * pixels.
 */
import { fileURLToPath } from 'node:url';
import type Sharp from 'sharp';

import { PeerAbsent } from '../peers/program.js';

export const [WIDTH, HEIGHT] = [640, 480];
/** Different ones; more are these again. */
export const DIFFERENT = 64;

/** @throws PeerAbsent where sharp is not installed */
export async function loadSharp(): Promise<typeof Sharp> {
  const { default: sharp } = await import('sharp').catch((cause: unknown) => {
    throw new PeerAbsent('sharp is not installed', { cause });
  });
  sharp.cache(false);
  return sharp;
}

export async function makePhotographs(): Promise<Buffer[]> {
  const sharp = await loadSharp();
  const coffee = await sharp(
    fileURLToPath(new URL('../../demo/images/coffee.png', import.meta.url)),
  )
    .raw()
    .toBuffer({ resolveWithObject: true });
  const { width, height } = coffee.info;
  return Promise.all(
    Array.from({ length: DIFFERENT }, (_, i) => {
      const size = 160 + ((i * 37) % 200);
      return sharp(coffee.data, { raw: { width, height, channels: 3 } })
        .extract({
          left: (i * 53) % (width - size),
          top: (i * 29) % (height - size),
          width: size,
          height: size,
        })
        .flop(i % 2 === 1)
        .flip(i % 4 > 1)
        .modulate({ hue: (i * 47) % 360, brightness: 0.7 + (i % 7) / 10 })
        .resize(WIDTH, HEIGHT, { fit: 'fill', kernel: 'cubic' })
        .jpeg({ quality: 90 })
        .toBuffer();
    }),
  );
}

/** Packed RGB. */
export async function decode(sharp: typeof Sharp, file: Uint8Array): Promise<Uint8Array> {
  return sharp(file).removeAlpha().raw().toBuffer();
}
