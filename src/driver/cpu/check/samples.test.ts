// The compiler's tests of the kernels from nvcc, on a checked device.
import { describe, expect, test, vi } from 'vitest';
import { reports } from '../testing/checked-grid.js';

vi.mock('../../../ptx/run-grid.test-support.js', async (original) => {
  const own = await original<{ Grid: new (source: string) => object }>();
  const { Grid } = await import('../testing/checked-grid.js');
  // One target of three is enough. What a kernel prints is seen as text there, not as the format
  // that these tests look at.
  const Either = function (source: string): object {
    return source.includes('vprintf') || !source.includes('.target sm_80')
      ? new own.Grid(source)
      : new Grid(source);
  };
  return { ...own, Grid: Either };
});

describe('the samples of the compiler', { tags: 'thorough' }, async () => {
  await import('../../../ptx/samples-arrays.test.js');
  await import('../../../ptx/samples-language.test.js');
  await import('../../../ptx/samples-programs.test.js');

  /**
   * Kernels of the samples that have races: `spin` takes a lock with a relaxed compare-and-swap and
   * no fence after it, `warpops` has all threads write the same words and `tex_sample` all rows of
   * blocks, `bar_arrive` and `big` update words that other threads read.
   */
  const RACY = ['bar_arrive', 'big', 'spin', 'tex_sample', 'warpops'];

  test('the only reports are the known races', () => {
    const others = reports.filter(
      ({ kind, place }) =>
        (kind !== 'race' && kind !== 'same-value') || !RACY.includes(place!.kernel!),
    );
    expect(others.map(({ message }) => message)).toEqual([]);
    expect([...new Set(reports.map(({ place }) => place!.kernel!))].sort()).toEqual(RACY);
  });
});
