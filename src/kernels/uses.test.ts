/** Names of constants and functions that kernels use. */
import { expect, test } from 'vitest';

import { CudaArgumentError, f32, output } from '../core/index.js';
import { gpuNamesIn } from '../compiler/read/gpu-names.js';
import { elementKernel } from './element-kernel.js';
import { kernel } from './kernel.js';
import { tileKernel } from './tile-kernel.js';
import { usedOf } from './uses.js';
import type { Uses } from './uses.js';
import { deviceFunction } from './define-device-function.js';

test.each(gpuNamesIn(''))("gpu's own members are not replaced: %s", (name) => {
  expect(() => usedOf('options.uses', { TILE: 16, [name]: 3 })).toThrow(CudaArgumentError);
});

test('the error names it, and another name', () => {
  expect(() => usedOf('options.uses', { lane: 3 })).toThrow(
    'options.uses.lane: expected another name, as gpu.lane is there already, got 3. Name it ' +
      'ownLane, say, and write gpu.ownLane.',
  );
});

test.each(['Math', 'PI', 'toString', 'min', 'ownLane', 'threads', 'sync'])(
  'other names are free: %s',
  (name) => {
    expect(usedOf('options.uses', { [name]: 3 })).toEqual({ [name]: 3 });
  },
);

const uses: Uses = { clamp: (x: number) => x };

test.each<[string, () => unknown]>([
  ['kernel', () => kernel('k', { y: output(f32) }, () => undefined, { uses })],
  ['elementKernel', () => elementKernel('k', { y: output(f32) }, () => 1, { uses })],
  ['deviceFunction', () => deviceFunction((x: number) => x, { uses })],
  [
    'tileKernel',
    () =>
      tileKernel(
        'k',
        { y: output(f32) },
        ({ y }) => {
          y.store(1);
        },
        { uses, tile: [1, null] },
      ),
  ],
])('%s rejects it at its definition', (_, define) => {
  expect(define).toThrow('options.uses.clamp: expected another name');
});
