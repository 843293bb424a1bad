/**
 * Two-dimensional convolution: as a product on tensor cores where they are used
 * (convolution-product.ts), else directly. For groups with many results a block computes a
 * tile of results by pixels: inputs and weights of a few channels at a time are copied to shared
 * memory, where each is used for the whole tile. In groups with few results, as in depthwise
 * convolution, threads share nothing: each computes four pixels of up to eight results.
 */
import { f32, i32, i64 } from '../core/index.js';
import type { KernelDType } from '../core/index.js';
import { checkInteger, checkOptions, invalid } from '../ground/arguments.js';
import { input, output } from '../kernels/index.js';
import type { DeviceOp, OrOp } from '../ops/index.js';
import type { KernelTensor, Tensor } from '../tensor/index.js';
import { showShape } from '../tensor/shape.js';
import { checkActivation } from './activations.js';
import type { ActivationName } from './activations.js';
import { convolveByProduct, isByProduct } from './convolution-product.js';
import { NO_FINISH, finishProduct } from './finish.js';
import { checkOut } from './matmul.js';
import { checkTensor, operation } from './operation.js';
import type { Work } from './operation.js';
import { checkPrecision, usesTensorCores } from './product-engine.js';
import type { ProductPrecision } from './product-engine.js';
import { isWide } from './reduction-kernels.js';
import { narrow, tiled } from './convolution-kernels.js';
import { oneOf } from './warp-group-matmul.js';

const BLOCK = 256;
/** Results of a group up to which the kernel without shared memory is used. */
const MOST_NARROW = 8;

interface TileSize {
  readonly RESULTS: number;
  readonly PIXELS: number;
  readonly OWN_RESULTS: number;
  readonly OWN_PIXELS: number;
  readonly CHANNELS: number;
}

const SMALL: TileSize = { RESULTS: 16, PIXELS: 256, OWN_RESULTS: 4, OWN_PIXELS: 4, CHANNELS: 16 };
const MIDDLE: TileSize = { RESULTS: 64, PIXELS: 64, OWN_RESULTS: 4, OWN_PIXELS: 4, CHANNELS: 16 };
const LARGE: TileSize = { RESULTS: 128, PIXELS: 128, OWN_RESULTS: 8, OWN_PIXELS: 8, CHANNELS: 8 };
/** Multiprocessors of a large GPU: large tiles are used from so many blocks on. */
const BLOCKS = 132;

function tileOf(results: number, groups: number, pixels: number): TileSize {
  if (results <= SMALL.RESULTS * 2) return SMALL;
  const blocks = Math.ceil(results / LARGE.RESULTS) * Math.ceil(pixels / LARGE.PIXELS) * groups;
  return results > MIDDLE.RESULTS && blocks >= BLOCKS ? LARGE : MIDDLE;
}

/** dtypes of convolutions. */
export type ConvolutionName = 'f16' | 'bf16' | 'f32';

/** The order of axes of images: N images, C channels, H rows, W columns. */
export type ImageLayout = 'NCHW' | 'NHWC';

/** Options of {@link convolution2d}. */
export interface Convolution2dOptions<D extends ConvolutionName> {
  /** Axes of the operand and of the result. Default: NCHW. */
  readonly layout?: ImageLayout;
  /**
   * Pixels from one result to the next: downwards and across, or one number for both. Default: 1.
   */
  readonly stride?: number | readonly [down: number, across: number];
  /**
   * Zeros around the image: one number, two for rows and columns, or one for each side. Default: 0.
   */
  readonly padding?:
    | number
    | readonly [vertical: number, horizontal: number]
    | readonly [top: number, bottom: number, left: number, right: number];
  /** Pixels from one weight to the next. Default: 1. */
  readonly dilation?: number | readonly [down: number, across: number];
  /**
   * Groups of channels, each of which is convolved separately. As many groups as channels are a
   * depthwise convolution. Default: 1.
   */
  readonly groups?: number;
  /** Added at the end, one for each result channel; the operand's dtype. Default: 0. */
  readonly bias?: OrOp<Tensor<D>>;
  /** The function of each element, after the bias: as of `linear`. Default: none. */
  readonly activation?: ActivationName;
  /**
   * An existing contiguous tensor for the result, of its dtype and shape, which has no memory in
   * common with the operands. Its owner closes it. A repeated run of the operation then only queues
   * its launches, where nothing has to be copied.
   */
  readonly out?: OrOp<Tensor<D>>;
  /**
   * `'tensor'`: by tensor cores, where the device and the shapes have use for them, f32 as tf32.
   * `'exact'`: the same bits on every device. Default: exact for f32, else tensor.
   */
  readonly precision?: ProductPrecision;
}

const MOST = 2 ** 31 - 1;

/** A number for all sides, or a list of one of the lengths, as a list of the greatest length. */
function sides(
  argument: string,
  given: unknown,
  lengths: readonly (2 | 4)[],
  least: number,
): number[] {
  if (Array.isArray(given)) {
    if (!(lengths as readonly number[]).includes(given.length))
      throw invalid(argument, `a whole number or a list of ${lengths.join(' or ')}`, given);
    Array.from(given as unknown[]).forEach((each, index) => {
      checkInteger(`${argument}[${index}]`, each, least, MOST, 'pixels');
    });
    const [first, second] = given as [number, number];
    return given.length === 2 && lengths.includes(4)
      ? [first, first, second, second]
      : (given as number[]);
  }
  checkInteger(argument, given, least, MOST, 'pixels');
  return new Array<number>(Math.max(...lengths)).fill(given);
}

interface Settings {
  readonly layout: ImageLayout;
  readonly down: number;
  readonly across: number;
  readonly top: number;
  readonly bottom: number;
  readonly left: number;
  readonly right: number;
  readonly dilationDown: number;
  readonly dilationAcross: number;
  readonly groups: number;
}

const OPTIONS = [
  ...['layout', 'stride', 'padding', 'dilation', 'groups', 'bias'],
  ...['activation', 'out', 'precision'],
];

function settingsOf(options: Convolution2dOptions<ConvolutionName>): Settings {
  checkOptions('options', options, OPTIONS);
  const { layout = 'NCHW', stride = 1, padding = 0, dilation = 1, groups = 1 } = options;
  if (layout !== 'NCHW' && layout !== 'NHWC')
    throw invalid('options.layout', `'NCHW' or 'NHWC'`, layout);
  checkInteger('options.groups', groups, 1, MOST);
  checkActivation(options.activation);
  checkPrecision(options.precision);
  const [down, across] = sides('options.stride', stride, [2], 1) as [number, number];
  const [top, bottom, left, right] = sides('options.padding', padding, [2, 4], 0) as [
    number,
    number,
    number,
    number,
  ];
  const [dilationDown, dilationAcross] = sides('options.dilation', dilation, [2], 1) as [
    number,
    number,
  ];
  return { layout, down, across, top, bottom, left, right, dilationDown, dilationAcross, groups };
}

const TAKEN: readonly string[] = ['f16', 'bf16', 'f32'];

function checkOperand(
  argument: string,
  value: unknown,
  rank: number,
  axes: string,
  dtype?: KernelDType,
): asserts value is KernelTensor {
  checkTensor('convolution2d', argument, value);
  if (!TAKEN.includes(value.dtype.name))
    throw invalid(
      argument,
      'a Tensor of f16, bf16 or f32, for convolution2d(…)',
      value.dtype.name,
      'Convert it with convert(f32).',
    );
  if (dtype !== undefined && value.dtype !== dtype)
    throw invalid(
      argument,
      `a Tensor of ${dtype.name}, as x is`,
      value,
      `Convert it with convert(${dtype.name}).`,
    );
  if (value.rank !== rank)
    throw invalid(
      argument,
      `${rank === 1 ? 'one axis' : `${rank} axes`}, ${axes}, for convolution2d(…)`,
      value,
      rank === 4 && value.rank === 3 ? 'Give it one with unsqueeze(0).' : '',
    );
}

/** The extent of the result along an axis. */
function extentOf(
  axis: string,
  extent: number,
  before: number,
  after: number,
  weights: number,
  dilation: number,
  stride: number,
): number {
  const padded = extent + before + after;
  const reach = (weights - 1) * dilation + 1;
  if (padded > MOST) throw invalid('options.padding', `images of at most ${MOST} ${axis}`, padded);
  if (weights === 0) throw invalid('weights', `at least one of ${axis}`, weights);
  if (reach > padded)
    throw invalid(
      'weights',
      `at most the ${padded} ${axis} that images have with their padding`,
      reach,
      dilation > 1 ? `${weights} weights reach over so many with a dilation of ${dilation}.` : '',
    );
  return Math.floor((padded - reach) / stride) + 1;
}

/** One element of the dtype, for a parameter that is not read. */
const notRead = (work: Work, tensor: KernelTensor): KernelTensor =>
  tensor.size > 0 ? oneOf(tensor) : work.temporary(tensor.dtype, [1]);

/** Adds the launch. Tensors are NCHW views. */
function addConvolution(
  work: Work,
  x: KernelTensor,
  weights: KernelTensor,
  bias: KernelTensor | undefined,
  out: KernelTensor,
  settings: Settings,
): void {
  const { layout, down, across, top, left, dilationDown, dilationAcross, groups } = settings;
  const [images, allResults, outHeight, outWidth] = out.shape as readonly [
    number,
    number,
    number,
    number,
  ];
  const [, channels, rows, columns] = weights.shape as readonly [number, number, number, number];
  const [results, pixels] = [allResults / groups, images * outHeight * outWidth];
  const few = results <= MOST_NARROW;
  const CHANNELS_LAST = layout === 'NHWC';
  const BIAS = bias !== undefined;
  const [tile, OWN_RESULTS] = [tileOf(results, groups, pixels), 2 ** Math.ceil(Math.log2(results))];
  const parts = Math.ceil(results / (few ? OWN_RESULTS : tile.RESULTS));
  const tiles = Math.ceil(pixels / (few ? 4 : tile.PIXELS));
  const wide =
    isWide(x) || isWide(out) || isWide(weights) || tiles * parts * groups >= MOST - BLOCK;
  const whole = wide ? i64 : i32;
  const of = x.dtype;
  const sums = out.dtype === of ? '' : `_to_${out.dtype.name}`;
  const flags =
    `${sums}${CHANNELS_LAST ? '_nhwc' : ''}${BIAS ? '_bias' : ''}` + (wide ? '_wide' : '');
  const rest = Object.fromEntries(
    [
      'channels',
      'results',
      'height',
      'width',
      'rows',
      'columns',
      'outHeight',
      'outWidth',
      'pixels',
      'down',
      'across',
      'top',
      'left',
      'dilationDown',
      'dilationAcross',
      'tiles',
      'parts',
      'allParts',
    ].map((name) => [name, whole]),
  );
  const signature = {
    out: output(out.dtype, 4),
    x: input(of, 4),
    weights: input(of, 4),
    bias: input(of),
    ...rest,
  };
  const launch = few
    ? narrow.member(`${of.name}_${OWN_RESULTS}${flags}`, () => ({
        signature,
        uses: { CHANNELS_LAST, BIAS, OWN_RESULTS },
        block: BLOCK,
      }))
    : tiled.member(`${of.name}_${tile.RESULTS}x${tile.PIXELS}${flags}`, () => {
        const INPUTS = (tile.PIXELS * tile.CHANNELS) / BLOCK;
        return {
          signature,
          uses: {
            CHANNELS_LAST,
            BIAS,
            ...tile,
            INPUTS,
            WEIGHTS: (tile.RESULTS * tile.CHANNELS) / BLOCK,
            PLACES: CHANNELS_LAST ? INPUTS : 1,
          },
          block: BLOCK,
        };
      });
  const args = {
    out,
    x,
    bias: bias === undefined ? notRead(work, weights) : work.dense(bias),
    // A tile reads adjacent results of one channel.
    weights: few ? weights : work.dense(weights.permute([2, 3, 1, 0] as never)),
    channels,
    results,
    height: x.shape[2],
    width: x.shape[3],
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
    allParts: parts * groups,
  };
  work.add(
    launch(args, {
      grid: few ? Math.ceil((tiles * parts * groups) / BLOCK) : tiles * parts * groups,
      ...(wide ? { index: 'i64' } : {}),
    }),
  );
}

/** What is convolved, as NCHW and OIHW views. */
interface Operands {
  readonly x: KernelTensor;
  readonly weights: KernelTensor;
  readonly bias: KernelTensor | undefined;
  readonly activation: ActivationName | undefined;
}

/** Images as NHWC, weights as OHWI. */
const channelsLast = (tensor: KernelTensor): KernelTensor => tensor.permute([0, 2, 3, 1] as never);
const channelsFirst = (tensor: KernelTensor): KernelTensor => tensor.permute([0, 3, 1, 2] as never);

/** Adds a product on tensor cores. `out` has the layout of the settings. */
function addProduct(
  work: Work,
  { x, weights, bias, activation }: Operands,
  out: KernelTensor,
  settings: Settings,
): void {
  const last = settings.layout === 'NHWC';
  const written = last
    ? out
    : (work.temporary(out.dtype, [...channelsLast(out).shape]) as unknown as KernelTensor);
  const finish = { ...NO_FINISH, bias: bias && work.dense(bias), activation };
  convolveByProduct(work, channelsLast(x), channelsLast(weights), written, settings, finish);
  if (!last) work.add(out.copyFrom(channelsFirst(written)));
}

/** Adds a direct convolution, and the activation of its sums. */
function addDirect(
  work: Work,
  { x, weights, bias, activation }: Operands,
  out: KernelTensor,
  settings: Settings,
): void {
  const written =
    activation === undefined
      ? out
      : (work.temporary(f32, [...out.shape]) as unknown as KernelTensor);
  const seen = settings.layout === 'NHWC' ? channelsFirst(written) : written;
  addConvolution(work, x, weights, bias, seen, settings);
  if (activation !== undefined)
    work.add(finishProduct(written, out, { ...NO_FINISH, activation }, 1));
}

/**
 * Convolves images as neural networks do: a cross-correlation, in which the weights are not
 * mirrored. It gives a contiguous tensor, `out[n, o, y, x] = bias[o] + Σ x[n, g·C/groups + c,
 * y·stride - top + row·dilation, x·stride - left + column·dilation] · weights[o, c, row, column]`,
 * where g is the group of o, and pixels outside the image are 0. Sums are in f32, followed by the
 * bias and the activation, and rounded once. Products are added one after the other by fused
 * multiply-adds, by row of the weights, then column, then channel, with the bias at the end: the
 * bits are the same in either layout, in each run and on each device.
 *
 * On compute capability 9.0, f16 and bf16 (f32 as tf32 with `precision: 'tensor'`) of one group, 16
 * result channels or more and at least 16 products for each element are a product on tensor cores,
 * which reads images where they are: with `layout: 'NHWC'` and channels that are a multiple of 16
 * bytes nothing is copied but weights. Its sums differ in the last bits, as those of `matmul` do;
 * the activation of a result of 16 bits is within 2^-16 of its value before it is rounded.
 *
 * @param x `[N, C, H, W]`, or `[N, H, W, C]` with `layout: 'NHWC'`
 * @param weights `[results, C / groups, rows, columns]` in either layout
 * @throws CudaArgumentError for another dtype or number of axes, an unknown activation or
 *   precision, channels that do not fit the groups, weights that reach beyond the padded image, an
 *   `out` that is not contiguous or shares memory with an operand; at the call, or when run where
 *   operations give the operands
 *
 * @example
 * ```ts
 * using x = await device.ones(f32, [1, 1, 3, 3]);
 * using weights = await device.ones(f32, [1, 1, 3, 3]);
 * using y = await convolution2d(x, weights, { padding: 1 });
 * console.log(y.shape, (await y.read()).join(' ')); // [ 1, 1, 3, 3 ] 4 6 4 6 9 6 4 6 4
 * ```
 */
export function convolution2d<D extends ConvolutionName>(
  x: OrOp<Tensor<D>>,
  weights: OrOp<Tensor<NoInfer<D>>>,
  options: Convolution2dOptions<NoInfer<D>> = {},
): DeviceOp<Tensor<D, [number, number, number, number]>> {
  const settings = settingsOf(options);
  const { groups } = settings;
  const last = settings.layout === 'NHWC';
  const inputs = [x, weights, options.bias, options.out];
  return operation('convolution2d', inputs, ([given, factors, bias, into]) => {
    checkOperand('x', given, 4, settings.layout);
    checkOperand('weights', factors, 4, 'OIHW', given.dtype);
    const images = last ? channelsFirst(given) : given;
    const [count, channels, height, width] = images.shape as readonly [
      number,
      number,
      number,
      number,
    ];
    const [results, ofGroup, rows, columns] = factors.shape as readonly [
      number,
      number,
      number,
      number,
    ];
    if (channels % groups !== 0)
      throw invalid('options.groups', `a divisor of the ${channels} channels of x`, groups);
    if (results % groups !== 0)
      throw invalid('options.groups', `a divisor of the ${results} results of weights`, groups);
    if (ofGroup !== channels / groups) {
      throw invalid(
        'weights',
        `${channels / groups} channels on axis 1: those of x, ${channels}, in ${groups} ` +
          `group${groups === 1 ? '' : 's'}`,
        ofGroup,
        `x is ${showShape(given.shape)} in ${settings.layout}.`,
      );
    }
    if (bias !== undefined) {
      checkOperand('options.bias', bias, 1, 'one element for each result', given.dtype);
      if (bias.shape[0] !== results)
        throw invalid(
          'options.bias',
          `${results} elements, one for each result of weights`,
          bias.shape[0],
        );
    }
    const outHeight = extentOf(
      'rows',
      height,
      settings.top,
      settings.bottom,
      rows,
      settings.dilationDown,
      settings.down,
    );
    const outWidth = extentOf(
      'columns',
      width,
      settings.left,
      settings.right,
      columns,
      settings.dilationAcross,
      settings.across,
    );
    const shape = last
      ? [count, outHeight, outWidth, results]
      : [count, results, outHeight, outWidth];
    if (into !== undefined)
      checkOut('convolution2d', into, given.dtype, shape, { x: given, weights: factors, bias });
    const tensor = usesTensorCores('convolution2d', given.dtype, options.precision);
    return (work) => {
      const out = into ?? work.result(given.dtype, shape);
      const { activation } = options;
      if (out.size > 0)
        (tensor && isByProduct(images, factors, out, settings) ? addProduct : addDirect)(
          work,
          { x: images, weights: factors, bias, activation },
          out,
          settings,
        );
      return out as unknown as Tensor<D, [number, number, number, number]>;
    };
  });
}
