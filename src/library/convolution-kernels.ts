/** The kernels of two-dimensional convolutions. */
import { type Input, type Output, type Gpu, KernelFamily } from './kernel-family.js';

type Input4 = readonly (readonly (readonly Input[])[])[];

type Output4 = readonly (readonly (readonly Output[])[])[];

interface ConvolutionArgs {
  /** [image][result][row][column], with any strides. */
  readonly out: Output4;
  /** [image][channel][row][column], with any strides. */
  readonly x: Input4;
  readonly weights: Input4;
  readonly bias: Input;
  /** Channels of one group. */
  readonly channels: number;
  readonly results: number;
  readonly height: number;
  readonly width: number;
  readonly rows: number;
  readonly columns: number;
  readonly outHeight: number;
  readonly outWidth: number;
  /** Pixels of one result channel, of all images. */
  readonly pixels: number;
  readonly down: number;
  readonly across: number;
  readonly top: number;
  readonly left: number;
  readonly dilationDown: number;
  readonly dilationAcross: number;
  /**
   * The number of tiles along the pixels (of the narrow kernel: the distance of a thread's pixels),
   * along a group's results, and along the results of all groups.
   */
  readonly tiles: number;
  readonly parts: number;
  readonly allParts: number;
}

interface ConvolutionGpu extends Gpu {
  /** Whether channels of a pixel are adjacent in memory. */
  readonly CHANNELS_LAST: boolean;
  readonly BIAS: boolean;
}

interface TiledGpu extends ConvolutionGpu {
  /** Results and pixels of a tile, and those of a thread: multiples of four. */
  readonly RESULTS: number;
  readonly PIXELS: number;
  readonly OWN_RESULTS: number;
  readonly OWN_PIXELS: number;
  /** Channels in shared memory. */
  readonly CHANNELS: number;
  /**
   * A thread's accesses that copy inputs and weights to shared memory, and the number of pixels
   * that it reads at.
   */
  readonly INPUTS: number;
  readonly WEIGHTS: number;
  readonly PLACES: number;
}

export const tiled = new KernelFamily(
  'convolution',
  (
    {
      out,
      x,
      weights,
      bias,
      channels,
      results,
      height,
      width,
      rows,
      columns,
      outHeight,
      outWidth,
      pixels,
      down,
      across,
      top,
      left,
      dilationDown,
      dilationAcross,
      tiles,
      parts,
    }: ConvolutionArgs,
    gpu: TiledGpu,
  ) => {
    // Rows are four elements longer, so that adjacent channels are written to different banks.
    const inputs = gpu.shared.f32(gpu.CHANNELS * (gpu.PIXELS + 4));
    const factors = gpu.shared.f32(gpu.CHANNELS * gpu.RESULTS);
    const sums = gpu.local.f32(gpu.OWN_RESULTS * gpu.OWN_PIXELS);
    const read = gpu.local.f32(gpu.INPUTS);
    const readFactors = gpu.local.f32(gpu.WEIGHTS);
    const own = gpu.local.f32(gpu.OWN_PIXELS);
    const ownFactors = gpu.local.f32(gpu.OWN_RESULTS);
    const images = gpu.local.i32(gpu.PLACES);
    const firstRows = gpu.local.i32(gpu.PLACES);
    const firstColumns = gpu.local.i32(gpu.PLACES);
    const offsets = gpu.local.i32(gpu.PLACES);
    const t = gpu.threadIdx.x;
    const part = gpu.blockIdx.x / tiles;
    const group = part / parts;
    const firstPixel = (gpu.blockIdx.x % tiles) * gpu.PIXELS;
    const firstResult = (part % parts) * gpu.RESULTS;
    // Adjacent threads read adjacent elements.
    const channelAt = gpu.CHANNELS_LAST ? t % gpu.CHANNELS : t / gpu.PIXELS;
    const pixelAt = gpu.CHANNELS_LAST ? t / gpu.CHANNELS : t % gpu.PIXELS;
    gpu.unroll(16);
    for (let j = 0; j < gpu.PLACES; j++) {
      const pixel = Math.min(firstPixel + pixelAt + j * (256 / gpu.CHANNELS), pixels - 1);
      const line = pixel / outWidth;
      images[j] = gpu.i32(line / outHeight);
      firstRows[j] = gpu.i32((line % outHeight) * down - top);
      firstColumns[j] = gpu.i32((pixel % outWidth) * across - left);
    }
    const weightAt = firstResult + (t % gpu.RESULTS);
    const weightChannel = t / gpu.RESULTS;
    const threadResult = gpu.CHANNELS_LAST
      ? t % (gpu.RESULTS / gpu.OWN_RESULTS)
      : t / (gpu.PIXELS / gpu.OWN_PIXELS);
    const threadPixel = gpu.CHANNELS_LAST
      ? t / (gpu.RESULTS / gpu.OWN_RESULTS)
      : t % (gpu.PIXELS / gpu.OWN_PIXELS);
    gpu.unroll(1);
    for (let row = 0; row < rows; row++) {
      gpu.unroll(1);
      for (let column = 0; column < columns; column++) {
        gpu.unroll(16);
        for (let j = 0; j < gpu.PLACES; j++) {
          const y = firstRows[j]! + row * dilationDown;
          const z = firstColumns[j]! + column * dilationAcross;
          offsets[j] = y >= 0 && y < height && z >= 0 && z < width ? 1 : 0;
        }
        gpu.unroll(1);
        for (let first = 0; first < channels; first += gpu.CHANNELS) {
          gpu.unroll(16);
          for (let j = 0; j < gpu.INPUTS; j++) {
            const place = gpu.CHANNELS_LAST ? j : 0;
            const channel = first + channelAt + (gpu.CHANNELS_LAST ? 0 : j * (256 / gpu.PIXELS));
            read[j] =
              offsets[place]! !== 0 && channel < channels
                ? x[images[place]!]![group * channels + channel]![
                    firstRows[place]! + row * dilationDown
                  ]![firstColumns[place]! + column * dilationAcross]!
                : 0;
          }
          gpu.unroll(16);
          for (let j = 0; j < gpu.WEIGHTS; j++) {
            const channel = first + weightChannel + j * (256 / gpu.RESULTS);
            readFactors[j] =
              weightAt < results && channel < channels
                ? weights[row]![column]![channel]![group * results + weightAt]!
                : 0;
          }
          // All threads have read the tile before.
          gpu.block.sync();
          gpu.unroll(16);
          for (let j = 0; j < gpu.INPUTS; j++) {
            const channel = channelAt + (gpu.CHANNELS_LAST ? 0 : j * (256 / gpu.PIXELS));
            const pixel = pixelAt + (gpu.CHANNELS_LAST ? j * (256 / gpu.CHANNELS) : 0);
            inputs[channel * (gpu.PIXELS + 4) + pixel] = read[j]!;
          }
          gpu.unroll(16);
          for (let j = 0; j < gpu.WEIGHTS; j++)
            factors[(weightChannel + j * (256 / gpu.RESULTS)) * gpu.RESULTS + (t % gpu.RESULTS)] =
              readFactors[j]!;
          gpu.block.sync();
          const here = Math.min(channels - first, gpu.CHANNELS);
          gpu.unroll(1);
          for (let c = 0; c < here; c++) {
            gpu.unroll(8);
            for (let k = 0; k < gpu.OWN_PIXELS; k++)
              own[k] =
                inputs[
                  c * (gpu.PIXELS + 4) +
                    (k / 4) * ((gpu.PIXELS / gpu.OWN_PIXELS) * 4) +
                    threadPixel * 4 +
                    (k % 4)
                ]!;
            gpu.unroll(8);
            for (let m = 0; m < gpu.OWN_RESULTS; m++)
              ownFactors[m] =
                factors[
                  c * gpu.RESULTS +
                    (m / 4) * ((gpu.RESULTS / gpu.OWN_RESULTS) * 4) +
                    threadResult * 4 +
                    (m % 4)
                ]!;
            gpu.unroll(8);
            for (let m = 0; m < gpu.OWN_RESULTS; m++) {
              gpu.unroll(8);
              for (let k = 0; k < gpu.OWN_PIXELS; k++)
                sums[m * gpu.OWN_PIXELS + k] =
                  own[k]! * ownFactors[m]! + sums[m * gpu.OWN_PIXELS + k]!;
            }
          }
        }
      }
    }
    gpu.unroll(8);
    for (let k = 0; k < gpu.OWN_PIXELS; k++) {
      const pixel =
        firstPixel + (k / 4) * ((gpu.PIXELS / gpu.OWN_PIXELS) * 4) + threadPixel * 4 + (k % 4);
      const line = pixel / outWidth;
      if (pixel < pixels) {
        gpu.unroll(8);
        for (let m = 0; m < gpu.OWN_RESULTS; m++) {
          const result =
            firstResult +
            (m / 4) * ((gpu.RESULTS / gpu.OWN_RESULTS) * 4) +
            threadResult * 4 +
            (m % 4);
          if (result < results) {
            const of = group * results + result;
            const sum = sums[m * gpu.OWN_PIXELS + k]!;
            out[line / outHeight]![of]![line % outHeight]![pixel % outWidth] = gpu.BIAS
              ? sum + bias[of]!
              : sum;
          }
        }
      }
    }
  },
);

interface NarrowGpu extends ConvolutionGpu {
  /** Results of a thread. */
  readonly OWN_RESULTS: number;
}

export const narrow = new KernelFamily(
  'convolution_narrow',
  (
    {
      out,
      x,
      weights,
      bias,
      channels,
      results,
      height,
      width,
      rows,
      columns,
      outHeight,
      outWidth,
      pixels,
      down,
      across,
      top,
      left,
      dilationDown,
      dilationAcross,
      tiles,
      parts,
      allParts,
    }: ConvolutionArgs,
    gpu: NarrowGpu,
  ) => {
    const sums = gpu.local.f32(4 * gpu.OWN_RESULTS);
    const images = gpu.local.i32(4);
    const firstRows = gpu.local.i32(4);
    const firstColumns = gpu.local.i32(4);
    const part = gpu.CHANNELS_LAST ? gpu.globalId.x % allParts : gpu.globalId.x / tiles;
    const unit = gpu.CHANNELS_LAST ? gpu.globalId.x / allParts : gpu.globalId.x % tiles;
    if (part >= allParts || unit >= tiles) return;
    const group = part / parts;
    const firstResult = (part % parts) * gpu.OWN_RESULTS;
    gpu.unroll(4);
    for (let j = 0; j < 4; j++) {
      const pixel = Math.min(unit + j * tiles, pixels - 1);
      const line = pixel / outWidth;
      images[j] = gpu.i32(line / outHeight);
      firstRows[j] = gpu.i32((line % outHeight) * down - top);
      firstColumns[j] = gpu.i32((pixel % outWidth) * across - left);
    }
    gpu.unroll(1);
    for (let row = 0; row < rows; row++) {
      gpu.unroll(1);
      for (let column = 0; column < columns; column++) {
        gpu.unroll(1);
        for (let channel = 0; channel < channels; channel++) {
          const of = group * channels + channel;
          gpu.unroll(4);
          for (let j = 0; j < 4; j++) {
            const y = firstRows[j]! + row * dilationDown;
            const z = firstColumns[j]! + column * dilationAcross;
            const value =
              y >= 0 && y < height && z >= 0 && z < width ? x[images[j]!]![of]![y]![z]! : 0;
            gpu.unroll(8);
            for (let m = 0; m < gpu.OWN_RESULTS; m++) {
              // Beyond the last result its weights are read again: these sums are not written.
              const factor =
                weights[group * results + Math.min(firstResult + m, results - 1)]![channel]![row]![
                  column
                ]!;
              sums[j * gpu.OWN_RESULTS + m] = value * factor + sums[j * gpu.OWN_RESULTS + m]!;
            }
          }
        }
      }
    }
    gpu.unroll(4);
    for (let j = 0; j < 4; j++) {
      const pixel = unit + j * tiles;
      const line = pixel / outWidth;
      if (pixel < pixels) {
        gpu.unroll(8);
        for (let m = 0; m < gpu.OWN_RESULTS; m++) {
          if (firstResult + m < results) {
            const of = group * results + firstResult + m;
            const sum = sums[j * gpu.OWN_RESULTS + m]!;
            out[line / outHeight]![of]![line % outHeight]![pixel % outWidth] = gpu.BIAS
              ? sum + bias[of]!
              : sum;
          }
        }
      }
    }
  },
);
