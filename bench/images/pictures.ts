/**
 * Shared by the benchmarks of images and their peers: photographs of noise, sizes, and the timing
 * of a GPU.
 */
import type { Round } from '../benchmark.js';
import type { CoreDevice, DeviceOp } from '../library.js';

/** As in bench/peers/c/npp.c and bench/peers/python/with_torchvision.py. */
export const [FROM_WIDTH, FROM_HEIGHT, TO] = [1920, 1080, 640];
export const CHANNELS = 3;
/** A letterbox: the colour around the photograph, and the numbers of the normalisation. */
export const AROUND = 114;
export const MEANS = [0.485, 0.456, 0.406] as const;
export const DEVIATIONS = [0.229, 0.224, 0.225] as const;

/** Samples of a round, and runs between the two events of one. */
export const SAMPLES = 5;
export const RUNS = 20;

/** Noise: all bytes are equally frequent, and the mean is 127.5. */
export function noise(images: number): Uint8Array<ArrayBuffer> {
  return new Uint8Array(images * FROM_WIDTH * FROM_HEIGHT * CHANNELS).map(
    (_, i) => Math.imul(i, 2654435761) >>> 24,
  );
}

/**
 * Checks that every line comes from noise: its mean is then about `expected`.
 *
 * @param length elements of a line
 * @throws Error that names the line
 */
export function proveLines(
  values: ArrayLike<number>,
  length: number,
  expected: (line: number) => { readonly mean: number; readonly within: number },
): void {
  for (let line = 0; line * length < values.length; line++) {
    let sum = 0;
    for (let i = 0; i < length; i++) sum += values[line * length + i]!;
    const { mean, within } = expected(line);
    if (!(Math.abs(sum / length - mean) <= within))
      throw new Error(`line ${line} of the result has a mean of ${sum / length}, not ${mean}`);
  }
}

/** The ms of one run of an operation that writes into existing memory, by the device's events. */
export async function timedByEvents(
  device: CoreDevice,
  op: DeviceOp<unknown>,
  samples: number,
): Promise<Round> {
  const { stream } = device;
  for (let i = 0; i < 3; i++) await op.runOn(stream);
  const times: number[] = [];
  for (let k = 0; k < samples; k++) {
    const [begin, end] = [device.createEvent(), device.createEvent()];
    stream.record(begin);
    const queued = Array.from({ length: RUNS }, () => op.runOn(stream));
    stream.record(end);
    times.push((await begin.elapsed(end)) / RUNS);
    await Promise.all(queued);
    begin.close();
    end.close();
  }
  return { samples: times };
}
