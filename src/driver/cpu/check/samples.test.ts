// All that the compiler's own tests run with the kernels from nvcc, on a device that is checked: no report may come.
import { vi } from 'vitest';

vi.mock('../../../ptx/run-grid.test-support.js', async (original) => {
  const { Grid } = await import('../testing/checked-grid.js');
  return { ...(await original<object>()), Grid };
});

await import('../../../ptx/samples.test.js');
