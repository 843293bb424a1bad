/**
 * The two ways by which tensors reach ONNX Runtime: in place, and through page-locked memory. On
 * the CPU device it is the second where the device is checked, since a check has to see every
 * access; on a GPU where the library has no provider for it.
 */
import type { OpenOptions } from 'async-cuda/core';
import { loadOnnxEngine } from 'async-cuda/onnxruntime';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';

import { TestDevice, allModes, onCpu, testDevice } from '../core/test-device.js';
import { addModel } from './onnx-model.js';
import { someOf } from '../random-runs.js';

interface Path {
  readonly name: string;
  /**
   * Whether it goes through page-locked memory; undefined where the library's providers decide
   * that.
   */
  readonly staged: boolean | undefined;
  readonly options: OpenOptions;
}

// Kernels that only make inputs may leave gaps: what is looked for is what runs read and write.
const CHECKED: OpenOptions = { check: { uninitialised: false } };

/** The paths of the suite's device. */
export const paths: readonly Path[] = !onCpu
  ? [{ name: 'as its provider takes them', staged: undefined, options: {} }]
  : [
      ...(process.env['ASYNC_CUDA_TEST_CHECK'] === undefined
        ? [{ name: 'where they lie', staged: false, options: {} }]
        : []),
      { name: 'through page-locked memory', staged: true, options: CHECKED },
    ];

/**
 * Declares `body`'s tests for each path and mode, on a device of their own. `npm test` has the
 * first `quick` paths, in one mode.
 */
export function onPaths(title: string, body: (on: TestDevice) => void, quick = paths.length): void {
  const all = paths.flatMap((path) => allModes.map((mode) => ({ ...path, mode })));
  someOf(quick, describe)(all)(
    `${title}, tensors $name (${testDevice}, $mode)`,
    ({ staged, options, mode }) => {
      const on = new TestDevice(mode, options);
      beforeAll(() => on.open());
      afterAll(() => on.close());
      afterEach(() => {
        const unheard = on.errors.splice(0).map((error) => error.message);
        expect(unheard.join('\n'), 'failures that were not awaited').toBe('');
      });
      test.runIf(staged !== undefined)('uses that way', async () => {
        await using engine = await loadOnnxEngine(on.device, addModel());
        expect(engine.staged).toBe(staged);
        expect(engine.inProcess).toBe(staged === false);
      });
      body(on);
    },
  );
}
