/**
 * Installs NVIDIA's Tile IR assembler, with the ptxas and libnvvm that it needs (232 MB on disk),
 * from PyPI where the tests look for it, node_modules/.cache/tileiras:
 * `node scripts/install-tileiras.mjs`.
 */
import { installWheels } from './wheels.mjs';

const version = '13.5.37';

await installWheels('tileiras', [
  ['nvidia-cuda-tileiras', version, /\/bin\/tileiras$|licenses\//],
  ['nvidia-nvvm', version, /\/lib\/libnvvm\.so\.4$|licenses\//],
  ['nvidia-cuda-nvcc', version, /\/bin\/ptxas$|licenses\//],
]);
