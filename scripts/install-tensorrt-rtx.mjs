/**
 * Installs TensorRT for RTX (95 MB) from PyPI where the tests look for it,
 * node_modules/.cache/tensorrt-rtx: `node scripts/install-tensorrt-rtx.mjs`.
 */
import { installWheels } from './wheels.mjs';

await installWheels('tensorrt-rtx', [['tensorrt-rtx-cu13-libs', '1.7.1.116']]);
