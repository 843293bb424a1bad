/**
 * Installs NVIDIA's NVRTC and nvJitLink from PyPI where the tests look for them,
 * node_modules/.cache/nvrtc: `node scripts/install-nvrtc.mjs`.
 */
import { installWheels } from './wheels.mjs';

await installWheels('nvrtc', [
  ['nvidia-cuda-nvrtc', '13.5.37'],
  ['nvidia-nvjitlink', '13.5.37'],
]);
