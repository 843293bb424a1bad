/**
 * One run of decoding pictures: by sharp on threads of libvips, with an upload through page-locked
 * staging, or by nvJPEG, which writes pixels on the device.
 */
import { readFile } from 'node:fs/promises';
import { setImmediate } from 'node:timers/promises';

import { CudaArgumentError, CudaError, CudaFormatError, u8 } from '../../core/index.js';
import type { CoreDevice, DeviceBuffer } from '../../core/index.js';
import { unlessAborted } from '../../core/aborting.js';
import type { HostTurn } from '../../core/host-work.js';
import { isArrayBuffer } from '../../ground/other-realms.js';
import { Made, allKnown } from '../../ops/collect.js';
import { DeviceOp, nodeOf } from '../../ops/device-op.js';
import { Later } from '../../ops/node.js';
import type { Submitted } from '../../ops/node.js';
import type { Run } from '../../ops/run.js';
import { Tensor } from '../../tensor/index.js';
import { contiguous } from '../../tensor/layouts.js';
import { writeDense } from '../../tensor/host-copies.js';
import { orderChannels } from '../channel-order.js';
import { MOST_EXTENT } from '../image.js';
import { PICTURE_CHANNELS } from './decoding-options.js';
import type { Decoding, PictureEngine } from './decoding-options.js';
import { decodeOnHost } from './host-decoding.js';
import type { HostPicture } from './host-decoding.js';
import { isJpeg, readJpegHeader } from './jpeg-header.js';
import type { JpegHeader } from './jpeg-header.js';
import { mayHaveNvjpeg, openNvjpeg, openedNvjpeg } from './nvjpeg/nvjpeg.js';
import type { HeldPicture, Nvjpeg, NvjpegPicture } from './nvjpeg/nvjpeg.js';
import { upright } from './orientation.js';
import { refusalOf } from './picture-source.js';
import type { CheckedSource } from './picture-source.js';

export type Image = Tensor<'u8', number[]>;

/** Bytes that are copied on this thread at a time. */
const SLICE = 1 << 20;

type Coded = CheckedSource & { readonly input: Uint8Array };

/** A JPEG for nvJPEG, and its place in the list of pictures. */
interface Taken {
  readonly source: Coded;
  readonly header: JpegHeader;
  readonly index: number;
}

export class DecodingRun {
  private readonly run: Run;
  private readonly device: CoreDevice;
  private readonly name: string;
  private readonly decoding: Decoding;
  private readonly signal: AbortSignal | undefined;
  /** Where the pictures are written, one after the other; undefined where each has a new tensor. */
  private readonly out: Image | undefined;

  constructor(
    run: Run,
    device: CoreDevice,
    name: string,
    decoding: Decoding,
    signal: AbortSignal | undefined,
    out: Image | undefined,
  ) {
    this.run = run;
    this.device = device;
    this.name = name;
    this.decoding = decoding;
    this.signal = signal;
    this.out = out;
  }

  of(sources: readonly CheckedSource[]): Submitted<Image[]> {
    const {
      device,
      decoding: { engine, format },
    } = this;
    if (sources.length === 0) return [];
    if (engine === 'sharp' || format === 'rgba' || !mayHaveNvjpeg(device))
      return this.bySharp(sources);
    const nvjpeg = openedNvjpeg(device);
    if (engine === 'auto' && nvjpeg === 'absent') return this.bySharp(sources);
    if (
      typeof nvjpeg === 'object' &&
      sources.every((source): source is Coded => typeof source.input !== 'string')
    )
      return this.withNvjpeg(nvjpeg, sources);
    return this.later(async () => {
      const [found, bytes] = await Promise.all([
        engine === 'auto' ? openNvjpeg(device).catch(() => undefined) : openNvjpeg(device),
        Promise.all(sources.map((source) => readBytes(source, engine))),
      ]);
      const read = bytes.flatMap((input, i): Coded[] =>
        input === undefined ? [] : [{ input, name: sources[i]!.name }],
      );
      return () =>
        found === undefined || read.length < sources.length
          ? this.bySharp(sources)
          : this.withNvjpeg(found, read);
    });
  }

  /** Queues work after an asynchronous result. */
  private later<T>(know: () => Promise<() => Submitted<T>>): Later<T> {
    const { run } = this;
    return run.goOn(new Later(unlessAborted(this.signal, know), false), (queue) => queue());
  }

  /** Decodes on the host and queues the upload. `indices` are the pictures' places in the list. */
  private bySharp(
    sources: readonly CheckedSource[],
    indices: readonly number[] = sources.map((_, i) => i),
  ): Later<Image[]> {
    return this.later(async () => {
      const pictures = await Promise.all(
        sources.map((source) => decodeOnHost(source, this.decoding)),
      );
      return () =>
        gathered(
          this.run,
          pictures.map((picture, i) => this.uploaded(picture, sources[i]!.name, indices[i]!)),
        );
    });
  }

  private uploaded(picture: HostPicture, name: string, index: number): Submitted<Image> {
    const {
      run,
      decoding: { format },
    } = this;
    const { data, width, height, channels } = picture;
    const place = this.placeFor(name, index, height, width);
    const isTurned = format === 'bgr';
    const image = place === undefined || isTurned ? this.newImage(height, width, channels) : place;
    writeDense(run, image.dense(), data as never, () => {
      giveBack(data);
    });
    return isTurned
      ? changed(run, image, (each) =>
          orderChannels(each, [2, 1, 0], {
            engine: 'own',
            ...(place === undefined ? {} : { out: place }),
          }),
        )
      : image;
  }

  /**
   * Decodes by nvJPEG where it takes the picture, else by sharp, unless nvJPEG was requested.
   *
   * @throws CudaFormatError, CudaError
   */
  private withNvjpeg(nvjpeg: Nvjpeg, sources: readonly Coded[]): Submitted<Image[]> {
    const headers = sources.map((source) => this.headerFor(source));
    const taken = sources.flatMap((source, index): Taken[] => {
      const header = headers[index];
      return header === undefined ? [] : [{ source, header, index }];
    });
    const others = headers.flatMap((header, index) => (header === undefined ? [index] : []));
    const given: Submitted<Image>[] = [];
    if (taken.length > 0)
      this.held(nvjpeg, taken).forEach((image, k) => {
        given[taken[k]!.index] = image;
      });
    if (others.length === 0) return gathered(this.run, given);
    const rest = this.bySharp(
      others.map((index) => sources[index]!),
      others,
    );
    // The first one waits for the memory of all of them.
    others.forEach((index, k) => {
      given[index] = new Later(
        rest.promise.then((images) => images[k]!),
        rest.queued,
        'unknown',
        k === 0 ? rest.owned : [],
      );
    });
    return gathered(this.run, given);
  }

  /** Gives the header of a JPEG for nvJPEG; undefined where sharp decodes it. */
  private headerFor({ input: bytes, name }: Coded): JpegHeader | undefined {
    const { format, engine, maxPixels } = this.decoding;
    const auto = engine === 'auto';
    if (auto && !isJpeg(bytes)) return undefined;
    let header: JpegHeader;
    try {
      header = readJpegHeader(bytes, name);
      checkTaken(header, name, maxPixels);
    } catch (error) {
      if (!auto) throw error;
      return undefined;
    }
    return auto && (header.profile === 'other' || (format === 'grey' && header.colors !== 'grey'))
      ? undefined
      : header;
  }

  /** Decodes all of them by nvJPEG, in one place of the stream. */
  private held(nvjpeg: Nvjpeg, taken: readonly Taken[]): Submitted<Image>[] {
    const {
      run,
      out,
      signal,
      decoding: { format, engine, orientation },
    } = this;
    const channels = PICTURE_CHANNELS[format];
    const uses: DeviceBuffer[] = [];
    const pictures: HeldPicture[] = [];
    const stored = taken.map(
      ({
        source,
        header,
        index,
      }): { image: Image; turn: ((image: Image) => DeviceOp<Image>) | undefined } => {
        const { width, height } = header;
        const turned = orientation === 'ignore' ? 1 : header.orientation;
        const place = this.placeFor(
          source.name,
          index,
          ...(turned < 5 ? ([height, width] as const) : ([width, height] as const)),
        );
        const isThere = place !== undefined && turned === 1;
        const image = isThere ? place : this.newImage(height, width, channels);
        const picture: NvjpegPicture = {
          bytes: source.input,
          name: source.name,
          width,
          height,
          format: format as NvjpegPicture['format'],
        };
        const offset = isThere ? index * height * width * channels : 0;
        // All of them are one memory, which is written in one operation.
        const use = isThere ? useOf(uses, out!) : uses.push(image.buffer) - 1;
        pictures.push({
          picture,
          use,
          offset,
          ...(engine === 'auto'
            ? { otherwise: (turn) => this.decodedInTurn(turn, source, image) }
            : {}),
        });
        if (turned === 1) return { image, turn: undefined };
        return {
          image,
          turn: (each) =>
            place === undefined
              ? upright(each, turned)
              : upright(each, turned).andThen(
                  (standing) => place.copyFrom(standing as never) as never,
                ),
        };
      },
    );
    const done = nvjpeg.decode(
      run.stream,
      taken.length === 1
        ? `${this.name} of ${taken[0]!.source.name}`
        : `${this.name} of ${taken.length} pictures`,
      pictures,
      uses,
      signal,
    );
    const over = unlessAborted(signal, () => done);
    // Later work of the stream waits for it in any case.
    done.catch(() => undefined);
    run.dependOn(over);
    return stored.map(({ image, turn }) =>
      turn === undefined ? image : changed(run, image, turn),
    );
  }

  /** Allocates a tensor. */
  private newImage(height: number, width: number, channels: number): Image {
    const image = new Tensor<'u8', number[]>(
      this.run.alloc(u8, height * width * channels),
      contiguous([height, width, channels]),
      true,
    );
    return image;
  }

  /** Gives a picture's part of `out`. @throws CudaArgumentError where it has another size */
  private placeFor(name: string, index: number, height: number, width: number): Image | undefined {
    const { out } = this;
    if (out === undefined) return undefined;
    const [, rows, columns] = out.shape;
    if (height !== rows || width !== columns)
      throw new CudaArgumentError(
        'options.out',
        `options.out: expected one for pictures of ${width} × ${height} pixels, as ${name} ` +
          `is, got ${out.toString()}. Leave it out, and resize what is given.`,
      );
    return out.slice(index);
  }

  /** Decodes by sharp after a failure of nvJPEG, into the place that is reserved in the stream. */
  private async decodedInTurn(turn: HostTurn, source: CheckedSource, image: Image): Promise<void> {
    const { shape } = image;
    const { format } = this.decoding;
    // The stored orientation is kept: a later step turns the image.
    const { data, width, height } = await decodeOnHost(source, {
      ...this.decoding,
      orientation: 'ignore',
    });
    if (height !== shape[0] || width !== shape[1])
      throw new CudaFormatError(
        'image',
        `${source.name}: ${width} × ${height} pixels were decoded, and its header says ` +
          `${shape[1]} × ${shape[0]}`,
      );
    const staging = await this.device.pinned(u8, data.length);
    try {
      turn.keep(staging);
      const view = staging.view();
      const slice = SLICE - (SLICE % 3);
      for (let at = 0; at < data.length; at += slice) {
        if (at > 0) await setImmediate();
        const end = Math.min(at + slice, data.length);
        view.set(data.subarray(at, end), at);
        if (format === 'bgr') {
          for (let i = at; i < end; i += 3) [view[i], view[i + 2]] = [data[i + 2]!, data[i]!];
        }
      }
      turn.copyOut(staging, 0, image.dense());
      await turn.copied();
    } finally {
      void staging.close();
    }
  }
}

/** The index of `out` in the list of used buffers. */
function useOf(uses: DeviceBuffer[], out: Image): number {
  const known = uses.findIndex((buffer) => buffer.memory === out.buffer.memory);
  return known === -1 ? uses.push(out.dense()) - 1 : known;
}

function gathered(run: Run, images: readonly Submitted<Image>[]): Submitted<Image[]> {
  return images.some((image) => image instanceof Later)
    ? (allKnown(run, images) as Later<Image[]>)
    : (images as Image[]);
}

/** Applies an operation to the image, which is closed after it. */
function changed(
  run: Run,
  image: Image,
  change: (image: Image) => DeviceOp<Image>,
): Submitted<Image> {
  return nodeOf(
    new DeviceOp(new Made<Image>(image.device, 'decodeImage', () => image)).andThen(change),
  ).submit(run);
}

/** The bytes of the source; undefined where a path cannot be read, for which sharp throws. */
async function readBytes(
  source: CheckedSource,
  engine: PictureEngine,
): Promise<Uint8Array | undefined> {
  const { input } = source;
  if (typeof input !== 'string') return input;
  try {
    return await readFile(input);
  } catch (cause) {
    if (engine === 'auto') return undefined;
    throw await refusalOf(source, cause);
  }
}

/**
 * @throws CudaFormatError for sizes that images do not have; CudaError (ERR_CUDA_UNSUPPORTED) for
 *   kinds of JPEGs that nvJPEG does not take
 */
function checkTaken(
  { width, height, frame, precision, components, colors }: JpegHeader,
  name: string,
  maxPixels: number,
): void {
  if (width > MOST_EXTENT || height > MOST_EXTENT)
    throw new CudaFormatError(
      'image',
      `${name}: it has ${width} × ${height} pixels, images have at most ${MOST_EXTENT} rows ` +
        'and columns',
    );
  if (width * height > maxPixels)
    throw new CudaFormatError(
      'image',
      `${name}: it has ${width} × ${height} pixels, options.maxPixels allows ${maxPixels}`,
    );
  const what =
    frame >= 0xc9
      ? 'arithmetic coding'
      : frame > 0xc2
        ? `the process of marker FF ${frame.toString(16).toUpperCase()} (lossless or hierarchical)`
        : precision !== 8
          ? `samples of ${precision} bits`
          : components !== 1 && components !== 3
            ? `${components} components${components === 4 ? ' (CMYK)' : ''}`
            : colors === 'rgb'
              ? 'RGB instead of luma and chroma'
              : height === 0
                ? 'its number of rows after its pixels'
                : undefined;
  if (what !== undefined)
    throw new CudaError(
      'ERR_CUDA_UNSUPPORTED',
      `image: ${name}: a JPEG with ${what}, which nvJPEG does not take. Leave out the ` +
        `engine, or write { engine: 'sharp' }.`,
    );
}

/**
 * Checks that the run is asynchronous: work of other threads cannot be recorded, and a blocked
 * thread does not get their messages.
 *
 * @throws CudaError
 */
export function checkAwaited(run: Run, name: string): void {
  run.checkNotRecording(name, 'run it before the capture');
  if (run.mode === 'block')
    throw new CudaError(
      'ERR_CUDA_UNSUPPORTED',
      `${name}: pictures are decoded by way of the event loop, which sync() blocks. Await the ` +
        'operation instead.',
    );
}

/**
 * Frees sharp's pixels at once, where JavaScript can (Node 22 and later). External memory makes the
 * garbage collector run full collections: 40 of them, 0.4 s, for 100 pictures of 11 MB.
 */
function giveBack({ buffer, byteLength }: Uint8Array): void {
  if (!isArrayBuffer(buffer) || buffer.byteLength !== byteLength) return;
  try {
    (buffer as { transfer?: (bytes: number) => unknown }).transfer?.(0);
  } catch {
    // The buffer cannot be detached.
  }
}
