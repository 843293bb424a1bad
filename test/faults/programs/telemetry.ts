/** Loads ONNX Runtime, which sends and stores telemetry unless it is disabled. */
import { CoreDevice } from 'async-cuda/core';

import { loadOnnxEngine } from '../../../src/onnxruntime/index.js';
import { addModel } from '../../onnxruntime/onnx-model.js';

const device = await CoreDevice.open('cpu');
const engine = await loadOnnxEngine(device, addModel());
await engine.close();
await device.close();
console.log(JSON.stringify({ library: engine.description }));
