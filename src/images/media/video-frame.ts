/** Frames of a video in page-locked memory. */
import { CudaDisposedError } from '../../core/index.js';
import type { DType, HostArray, PinnedBuffer } from '../../core/index.js';
import { Made } from '../../ops/collect.js';
import { DeviceOp } from '../../ops/device-op.js';
import { Tensor } from '../../tensor/index.js';
import { contiguous } from '../../tensor/layouts.js';
import type { FrameForm, PixelFormat, PixelFormats } from './pixel-formats.js';

/**
 * A frame of a video, in page-locked memory that later frames use again: it can be used until the
 * next frame is requested. Copies to the device that were queued before are waited for.
 *
 * @example
 * ```ts no-run
 * for await (const frame of frames(device, { input: 'film.mp4', pixelFormat: 'nv12' })) {
 *   using uploaded = await frame.upload();
 *   using image = await yuvToRgb(uploaded, { format: 'nv12' });
 *   console.log(image.shape); // [ 1080, 1920, 3 ]
 * }
 * ```
 */
export class VideoFrame<P extends PixelFormat = PixelFormat> {
  /** From 0. */
  readonly index: number;
  /** Pixels. */
  readonly width: number;
  /** Pixels, of luma. */
  readonly height: number;
  readonly pixelFormat: P;
  readonly dtype: DType<PixelFormats[P]>;
  /** The shape of the tensor that {@link upload} makes. */
  readonly shape: readonly number[];
  private readonly memory: PinnedBuffer<PixelFormats[P]>;
  private over = false;

  /** @internal */
  constructor(
    index: number,
    { width, height, pixelFormat, dtype, shape }: FrameForm<P>,
    memory: PinnedBuffer<PixelFormats[P]>,
  ) {
    this.index = index;
    this.width = width;
    this.height = height;
    this.pixelFormat = pixelFormat;
    this.dtype = dtype;
    this.shape = shape;
    this.memory = memory;
  }

  /**
   * The page-locked memory: `tensor.write(frame.pinned)` copies it to an existing tensor.
   *
   * @throws CudaDisposedError after the next frame was requested
   */
  get pinned(): PinnedBuffer<PixelFormats[P]> {
    if (this.over)
      throw new CudaDisposedError(
        `frame ${this.index}: used after the next one was requested, which uses its memory. ` +
          'Copy it before: await frame.upload().',
      );
    return this.memory;
  }

  /**
   * The elements, in the memory of {@link pinned}.
   *
   * @throws CudaDisposedError after the next frame was requested
   */
  get data(): HostArray<PixelFormats[P]> {
    return this.pinned.view();
  }

  /**
   * Copies the frame to a new tensor of {@link shape}, which the caller closes. The operation has
   * to be run (awaited, or be part of one that is) before the next frame is requested.
   * cuMemcpyHtoDAsync
   */
  upload(): DeviceOp<Tensor<PixelFormats[P], number[]>> {
    const { device } = this.pinned;
    return new DeviceOp(
      new Made<Tensor<PixelFormats[P], number[]>>(device, `frame ${this.index}.upload()`, (run) => {
        run.checkNotRecording(
          'the upload of a frame',
          'its memory is used again. Launch with graph.update(input.write(frame.pinned))',
        );
        const { pinned } = this;
        const tensor = new Tensor<PixelFormats[P], number[]>(
          run.alloc(this.dtype, pinned.length),
          contiguous([...this.shape]),
          true,
        );
        tensor.buffer.write(run.stream, pinned);
        return tensor;
      }),
    );
  }

  /** Ends the frame: another one uses its memory now. @internal */
  retire(): void {
    this.over = true;
  }
}
