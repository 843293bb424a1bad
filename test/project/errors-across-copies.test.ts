import { describe, expect, test, vi } from 'vitest';

import { DriverError } from '../../src/driver/error.js';
import { PtxError } from '../../src/ptx/error.js';
import { CLASS_NAME } from '../../src/ground/named-error.js';
import * as errors from '../../src/ground/errors.js';

const classes = Object.entries<object>({ ...errors }).filter(([, of]) =>
  Object.hasOwn(of, CLASS_NAME),
);

test('each class of errors has a name of its own', () => {
  expect(classes.length).toBeGreaterThan(8);
  for (const [name, of] of classes)
    expect((of as { [CLASS_NAME]?: string })[CLASS_NAME]).toBe(name);
});

describe('instanceof across two copies of the package', () => {
  const copies = async () => {
    vi.resetModules();
    return {
      other: await import('../../src/ground/errors.js'),
      driver: await import('../../src/driver/error.js'),
    };
  };

  test('an error of one copy is an instance of the other copy’s classes', async () => {
    const { other } = await copies();
    const error = new other.CudaArgumentError('x', 'x is wrong');
    expect(other.CudaArgumentError).not.toBe(errors.CudaArgumentError);
    expect(error).toBeInstanceOf(errors.CudaArgumentError);
    expect(error).toBeInstanceOf(errors.CudaError);
    expect(error).toBeInstanceOf(Error);
    expect(error instanceof errors.CudaDisposedError).toBe(false);
    expect(error instanceof DriverError).toBe(false);
  });

  test('an error of a deeper class is an instance of all its bases', async () => {
    const { other } = await copies();
    const error = new other.CudaCheckError('race', []);
    expect(error).toBeInstanceOf(errors.CudaCheckError);
    expect(error).toBeInstanceOf(errors.CudaDeviceLostError);
    expect(error).toBeInstanceOf(errors.CudaError);
  });

  test('a base is not an instance of a class derived from it', async () => {
    const { other } = await copies();
    expect(new other.CudaError('ERR_CUDA_DRIVER', 'm') instanceof errors.CudaArgumentError).toBe(
      false,
    );
  });

  test('a class that a program derives takes its own instances only', async () => {
    const { other } = await copies();
    class Own extends errors.CudaError {}
    expect(new Own('ERR_CUDA_DRIVER', 'm')).toBeInstanceOf(Own);
    expect(new Own('ERR_CUDA_DRIVER', 'm')).toBeInstanceOf(other.CudaError);
    expect(new other.CudaError('ERR_CUDA_DRIVER', 'm') instanceof Own).toBe(false);
  });

  test.each([undefined, null, 1, 'text', {}, new Error('m'), Object.create(null)])(
    '%o is not an instance',
    (value) => {
      expect((value as unknown) instanceof errors.CudaError).toBe(false);
      expect((value as unknown) instanceof PtxError).toBe(false);
    },
  );
});
