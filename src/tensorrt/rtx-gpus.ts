/**
 * The GPUs of TensorRT for RTX. The library builds without a GPU, and reports an unsupported GPU
 * only when a plan is loaded.
 */

/**
 * Major compute capabilities that it has no code for: Hopper, and Blackwell of data centers. On an
 * H200 `deserializeCudaEngine` of 1.7.1 reports that 9.0 is not among the supported ones: 8.0, 8.6,
 * 8.9, 12.0 and others. The library decides about others than these two.
 */
const LACKED: readonly number[] = [9, 10];

/**
 * Returns why it does not run on a GPU of this compute capability; undefined where it does, or may.
 */
export function whyNotRtx(
  gpu: string,
  [major, minor]: readonly [number, number],
): string | undefined {
  if (!LACKED.includes(major)) return undefined;
  return (
    'TensorRT for RTX runs on GeForce and RTX GPUs (compute capability 7.5, 8.x and 12.x), and ' +
    `${gpu} has ${major}.${minor}. Install TensorRT, or use ONNX Runtime: ` +
    'async-cuda/onnxruntime.'
  );
}
