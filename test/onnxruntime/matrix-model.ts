/** A model that consists mostly of its weights. */
import { onnxModel } from './onnx-model.js';

/** y = 2 x, of rows of `extent` elements: a product with a matrix of `extent` rows and columns. */
export function matrixModel(extent: number): Uint8Array {
  const data = Float32Array.from({ length: extent ** 2 }, (_, i) =>
    i % (extent + 1) === 0 ? 2 : 0,
  );
  return onnxModel({
    inputs: [['x', 'f32', ['n', extent]]],
    outputs: [['y', 'f32', ['n', extent]]],
    nodes: [{ op: 'MatMul', inputs: ['x', 'w'], outputs: ['y'] }],
    constants: [{ name: 'w', type: 'f32', shape: [extent, extent], data }],
  });
}
