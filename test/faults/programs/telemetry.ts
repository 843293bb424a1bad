/** Loads ONNX Runtime, which sends and stores what it has to tell unless it is told not to. */
import { Device } from 'async-cuda/core';

import { loadEngine } from '../../../src/onnxruntime/index.js';
import { addModel } from '../../onnxruntime/onnx-model.js';

const device = await Device.open('cpu');
const engine = await loadEngine(device, addModel());
await engine.close();
await device.close();
console.log(JSON.stringify({ library: engine.description }));
