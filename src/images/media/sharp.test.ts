import { expect, test } from 'vitest';

import { supportsExactWebp, loadSharp } from './sharp.js';
import type { Sharp } from './sharp.js';

test('without sharp the error says how to get it, and the next call tries again', async () => {
  const absent = Object.assign(new Error("Cannot find package 'sharp'"), {
    code: 'ERR_MODULE_NOT_FOUND',
  });
  await expect(loadSharp(() => Promise.reject(absent))).rejects.toMatchObject({
    code: 'ERR_CUDA_NO_LIBRARY',
    message: expect.stringMatching(/^sharp: not installed.*npm install sharp$/) as string,
    cause: absent,
  });
  await expect(
    loadSharp(() =>
      Promise.reject(
        new Error(
          'Could not load the "sharp" module using the linux-x64 runtime\nPossible solutions:',
        ),
      ),
    ),
  ).rejects.toMatchObject({
    code: 'ERR_CUDA_NO_LIBRARY',
    message: expect.stringContaining(
      'could not be loaded (Could not load the "sharp" module using the linux-x64 runtime)',
    ) as string,
  });
  const sharp = await loadSharp();
  expect(typeof sharp).toBe('function');
  expect(await loadSharp(() => Promise.reject(absent))).toBe(sharp);
});

test('a sharp that ignores an option of WebP does not support it', async () => {
  expect(supportsExactWebp(await loadSharp())).toBe(true);
  expect(supportsExactWebp((() => ({ webp: () => undefined })) as unknown as Sharp)).toBe(false);
});
