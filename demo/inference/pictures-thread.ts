/**
 * The thread of `pictures.ts`: it decodes photographs, and draws and encodes the picture. Either
 * takes hundreds of milliseconds.
 */
import { parentPort } from 'node:worker_threads';

import { encodePng, readImage } from '../image.js';
import { drawBoxes } from './boxes-picture.js';
import type { PictureRequest, PictureReply } from './pictures.js';

async function answer(
  request: PictureRequest,
): Promise<{ value: PictureReply; transfer: ArrayBuffer[] }> {
  if (request.kind === 'read') {
    const image = await readImage(request.path);
    // Decoders give parts of larger arrays.
    const data = image.data.slice();
    return { value: { ...image, data }, transfer: [data.buffer] };
  }
  const picture = drawBoxes(request.photographs, request.titles);
  const { width, height } = picture;
  const data = encodePng(picture).slice();
  return { value: { width, height, data }, transfer: [data.buffer] };
}

parentPort!.on('message', (request: PictureRequest & { id: number }) => {
  void answer(request).then(
    ({ value, transfer }) => {
      parentPort!.postMessage({ id: request.id, value }, transfer);
    },
    (error: unknown) => {
      parentPort!.postMessage({
        id: request.id,
        error: error instanceof Error ? error.message : String(error),
      });
    },
  );
});
