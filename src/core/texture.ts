/**
 * Textures and surfaces: objects through which kernels read and write texels by coordinates. A
 * kernel takes them as 64-bit arguments. Their uses are tracked as uses of the memory that they
 * were made from.
 */
import { CudaDisposedError } from '../ground/errors.js';
import type { ProcedureArguments } from '../runtime/procedures.js';
import { DeviceArray } from './array.js';
import { checkBoolean, checkInteger, checkOptions, invalid } from '../ground/arguments.js';
import { DeviceBuffer } from './buffer.js';
import { DeviceBuffer2D } from './buffer-2d.js';
import type { CoreDevice } from './device.js';
import type { DType, DTypeName } from '../ground/dtype.js';
import type { Allocation } from './memory.js';
import type { Stream } from './stream.js';
import { texelFormat } from './texel-format.js';

/** The result for a coordinate outside the texture. */
export type AddressMode = 'wrap' | 'clamp' | 'mirror' | 'border';

/** The memory that a texture can be made from. */
export type TextureSource<D extends DTypeName = DTypeName> =
  DeviceArray<D> | DeviceBuffer2D<D> | DeviceBuffer<D>;

/** Options of {@link CoreDevice.createTexture}. */
export interface TextureOptions {
  /**
   * One mode for all dimensions, or one for each. `wrap` and `mirror` need normalized coordinates.
   * Default `clamp`.
   */
  addressMode?: AddressMode | readonly AddressMode[];
  /** `linear` interpolates between texels that are read as floats. Default `point`. */
  filter?: 'point' | 'linear';
  /**
   * `normalized` coordinates go from 0 to 1, those in `texels` from 0 to the size. Default
   * `texels`.
   */
  coordinates?: 'texels' | 'normalized';
  /**
   * `normalized` reads integers of 8 and 16 bits as floats of [0, 1] or [-1, 1]. Default `element`.
   */
  read?: 'element' | 'normalized';
  /** Whether texels of u8 are sRGB, and read as linear values. Default false. */
  srgb?: boolean;
  /** The result of the mode `border`, red to alpha. Default zeros. */
  border?: readonly [number, number, number, number];
  /** Elements of a texel of a buffer: 1 (default), 2 or 4. */
  channels?: number;
}

type Description = ProcedureArguments<'createTexture'>[1];
type Resource = ProcedureArguments<'createTexture'>[0];

/** CUaddress_mode */
const ADDRESS_MODES: Readonly<Record<AddressMode, number>> = {
  wrap: 0,
  clamp: 1,
  mirror: 2,
  border: 3,
};
/** CUfilter_mode */
const FILTERS = { point: 0, linear: 1 } as const;
/** CUresourcetype */
const RESOURCE = { array: 0, linear: 2, pitch2D: 3 } as const;
/** CU_TRSF_* */
const FLAG = { readAsInteger: 1, normalizedCoordinates: 2, srgb: 16 } as const;

/** CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT of every device. */
const ALIGNMENT = 512;

/** An object of the driver that gives access to texels in memory. */
export abstract class TexelObject<D extends DTypeName = DTypeName> implements AsyncDisposable {
  readonly dtype: DType<D>;
  /** The memory that the object reads or writes. @internal */
  readonly memory: Allocation;
  /** The difference of the object and the memory's address: kernels get the sum. @internal */
  readonly byteOffset: number;
  /** The object has no bytes at that place. @internal */
  readonly byteLength = 0;
  /** `cudaTextureObject_t` or `cudaSurfaceObject_t`, for structures that are passed to kernels. */
  readonly object: bigint;
  private ending: Promise<void> | undefined = undefined;
  /** The source, which the object keeps alive while it is open. */
  private source: TextureSource<D> | undefined;

  constructor(source: TextureSource<D>, object: number, address: number) {
    const { memory, dtype } = source;
    this.source = source;
    this.memory = memory;
    this.dtype = dtype;
    this.byteOffset = object - address;
    this.object = BigInt(object);
    memory.device.objects.own(this);
  }

  get device(): CoreDevice {
    return this.memory.device;
  }

  /** Whether {@link close} was called. */
  get isClosed(): boolean {
    return this.ending !== undefined;
  }

  /** Destroys the object once all work on its memory has ended. The memory stays. */
  async close(): Promise<void> {
    this.ending ??= this.end();
    await this.ending;
  }

  /** Calls {@link close}, for `await using`. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  toString(): string {
    return (
      `${this.constructor.name}<${this.dtype.name}> of ` +
      `${this.memory.toString()}${this.isClosed ? ', closed' : ''}`
    );
  }

  [Symbol.for('nodejs.util.inspect.custom')](): string {
    return this.toString();
  }

  /** @internal */
  checkArgument(stream: Stream, argument: string, kernel: string): void {
    if (this.isClosed)
      throw new CudaDisposedError(
        `${argument} of kernel '${kernel}': ${this.toString()}: used after it was closed.`,
      );
    stream.captureScope?.parts.add(this);
  }

  protected abstract destroy(): Promise<void>;

  private async end(): Promise<void> {
    this.device.objects.disown(this);
    if (this.device.runtime.lost !== undefined) return;
    await this.memory.settled();
    if (this.device.runtime.lost === undefined) await this.destroy();
    this.source = undefined;
  }
}

/**
 * A texture, through which kernels read texels. Made by {@link CoreDevice.createTexture}.
 * cuTexObjectCreate
 *
 * @example
 * ```ts
 * using image = device.alloc2D(f32, { width: 2, height: 1 });
 * image.write(device.stream, Float32Array.of(0, 8));
 * await using texture = await device.createTexture(image, { filter: 'linear' });
 * // A kernel takes it for a pointer: kernel.launch(stream, options, texture).
 * console.log(texture.dtype.name); // f32
 * ```
 */
export class Texture<D extends DTypeName = DTypeName> extends TexelObject<D> {
  protected override async destroy(): Promise<void> {
    await this.device.runtime.call('destroyTexture', Number(this.object));
  }
}

/**
 * A surface, through which kernels read and write the texels of an array. Made by
 * {@link CoreDevice.createSurface}. cuSurfObjectCreate
 *
 * @example
 * ```ts
 * await using array = await device.allocArray(f32, { width: 2, height: 2, surface: true });
 * await using surface = await device.createSurface(array);
 * // A kernel takes it for a pointer: kernel.launch(stream, options, surface).
 * console.log(surface.dtype.name); // f32
 * ```
 */
export class Surface<D extends DTypeName = DTypeName> extends TexelObject<D> {
  protected override async destroy(): Promise<void> {
    await this.device.runtime.call('destroySurface', Number(this.object));
  }
}

/** @internal */
export async function createTexture<D extends DTypeName>(
  device: CoreDevice,
  source: TextureSource<D>,
  options: TextureOptions,
): Promise<Texture<D>> {
  checkOptions('options', options, [
    'addressMode',
    'filter',
    'coordinates',
    'read',
    'srgb',
    'border',
    'channels',
  ]);
  const isBuffer = source instanceof DeviceBuffer;
  if (!isBuffer && !(source instanceof DeviceBuffer2D) && !(source instanceof DeviceArray)) {
    throw invalid('source', 'a DeviceArray, a DeviceBuffer2D or a DeviceBuffer', source);
  }
  const format = texelFormat('source.dtype', source.dtype);
  const description = describe(source, options);
  checkSource(device, source);
  const { memory } = source;
  if (!(source instanceof DeviceArray)) await source.allocated();
  checkSource(device, source);
  const address = device.runtime.shared.values[memory.handle]!;
  let resource: Resource;
  if (source instanceof DeviceArray)
    resource = { resType: RESOURCE.array, array: { hArray: address } };
  else if (isBuffer) {
    const linear = {
      devPtr: address + source.byteOffset,
      format,
      numChannels: channelsOf(source, options),
      sizeInBytes: source.byteLength,
    };
    resource = { resType: RESOURCE.linear, linear };
  } else {
    const { width, height, channels: numChannels, pitch: pitchInBytes } = source;
    const pitch2D = {
      devPtr: address + source.byteOffset,
      format,
      numChannels,
      width,
      height,
      pitchInBytes,
    };
    resource = { resType: RESOURCE.pitch2D, pitch2D };
  }
  const object = await device.runtime.call('createTexture', resource, description);
  return new Texture(source, object, address);
}

/** @internal */
export async function createSurface<D extends DTypeName>(
  device: CoreDevice,
  array: DeviceArray<D>,
): Promise<Surface<D>> {
  if (!(array instanceof DeviceArray))
    throw invalid(
      'array',
      'a DeviceArray',
      array,
      'Make one with await device.allocArray(dtype, { width, height, surface: true }).',
    );
  checkSource(device, array);
  if (!array.surface)
    throw invalid(
      'array',
      'an array for surfaces (CUDA_ARRAY3D_SURFACE_LDST)',
      array,
      'Make it with surface: true.',
    );
  const { handle } = array.memory;
  const address = device.runtime.shared.values[handle]!;
  const object = await device.runtime.call('createSurface', {
    resType: RESOURCE.array,
    array: { hArray: address },
  });
  return new Surface(array, object, address);
}

function checkSource(device: CoreDevice, source: TextureSource): void {
  if (source.isClosed)
    throw new CudaDisposedError(`source: ${source.toString()}: used after it was closed.`);
  if (source.device.runtime !== device.runtime)
    throw invalid('source', `memory of ${device.title}`, source);
  if (source instanceof DeviceArray) return;
  if (source.byteOffset % ALIGNMENT !== 0) {
    throw invalid(
      'source',
      `memory that begins at a multiple of ${ALIGNMENT} bytes of its allocation`,
      `one at ${source.byteOffset}`,
      'Texture the whole buffer and shift the coordinates.',
    );
  }
  if (source.length === 0) throw invalid('source', 'at least one texel', source);
}

function channelsOf(source: TextureSource, options: TextureOptions): number {
  const channels = source instanceof DeviceBuffer ? (options.channels ?? 1) : source.channels;
  if (channels !== 1 && channels !== 2 && channels !== 4) {
    throw invalid(
      source instanceof DeviceBuffer ? 'options.channels' : 'source.channels',
      '1, 2 or 4',
      channels,
    );
  }
  if (source instanceof DeviceBuffer)
    checkInteger(
      'source.length',
      source.length % channels,
      0,
      0,
      `elements over after texels of ${channels}`,
    );
  else if (options.channels !== undefined && options.channels !== channels)
    throw invalid('options.channels', `the source's ${channels}`, options.channels);
  return channels;
}

function oneOf<T extends string>(argument: string, value: unknown, known: readonly T[]): T {
  if (!known.includes(value as T))
    throw invalid(argument, known.map((name) => `'${name}'`).join(' or '), value);
  return value as T;
}

/** Checks that the options fit together, and returns the description for cuTexObjectCreate. */
function describe(source: TextureSource, options: TextureOptions): Description {
  channelsOf(source, options);
  const { dtype } = source;
  const filter = oneOf('options.filter', options.filter ?? 'point', ['point', 'linear']);
  const coordinates = oneOf('options.coordinates', options.coordinates ?? 'texels', [
    'texels',
    'normalized',
  ]);
  const read = oneOf('options.read', options.read ?? 'element', ['element', 'normalized']);
  checkBoolean('options.srgb', options.srgb);
  const isFloat = dtype.kind === 'float';
  if (read === 'normalized' && (isFloat || dtype.bytes > 2))
    throw invalid('options.read', `'element' for texels of ${dtype.name}`, read);
  if (filter === 'linear' && !isFloat && read === 'element') {
    throw invalid(
      'options.filter',
      "'point' for texels that are read as integers",
      filter,
      "Write read: 'normalized' where they have 8 or 16 bits.",
    );
  }
  if (options.srgb === true && (dtype.name !== 'u8' || read !== 'normalized'))
    throw invalid('options.srgb', "texels of u8 that are read: 'normalized'", dtype.name);
  if (source instanceof DeviceBuffer) {
    for (const name of ['filter', 'coordinates', 'addressMode', 'border'] as const) {
      if (options[name] !== undefined && options[name] !== 'point' && options[name] !== 'texels') {
        throw invalid(
          `options.${name}`,
          'nothing: a buffer is read by index',
          options[name],
          'Use an array or an image.',
        );
      }
    }
  }
  let flags = 0;
  if (!isFloat && read === 'element') flags |= FLAG.readAsInteger;
  if (coordinates === 'normalized') flags |= FLAG.normalizedCoordinates;
  if (options.srgb === true) flags |= FLAG.srgb;
  const { border = [0, 0, 0, 0] } = options;
  if (
    !Array.isArray(border) ||
    border.length !== 4 ||
    ![...border].every((value) => typeof value === 'number')
  )
    throw invalid('options.border', 'four numbers', border);
  const addressMode = modes(options.addressMode ?? 'clamp', coordinates === 'normalized');
  return { addressMode, filterMode: FILTERS[filter], flags, borderColor: border };
}

/** The CUaddress_mode of each dimension. */
function modes(
  given: AddressMode | readonly AddressMode[],
  normalized: boolean,
): [number, number, number] {
  const list: readonly unknown[] = Array.isArray(given) ? given : [given, given, given];
  if (list.length < 1 || list.length > 3)
    throw invalid('options.addressMode', 'one to three modes', given);
  const numbers = list.map((mode) => {
    const name = oneOf('options.addressMode', mode, Object.keys(ADDRESS_MODES) as AddressMode[]);
    if (!normalized && (name === 'wrap' || name === 'mirror')) {
      throw invalid(
        'options.addressMode',
        "'clamp' or 'border' for coordinates in texels",
        name,
        "Write coordinates: 'normalized'.",
      );
    }
    return ADDRESS_MODES[name];
  });
  return [numbers[0]!, numbers[1] ?? numbers[0]!, numbers[2] ?? numbers[0]!];
}
