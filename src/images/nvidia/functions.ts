/**
 * NPP's functions as tables: families of one name, for dtypes and numbers of channels, by the
 * library file that has them. They are those with a stream context, which NPP 11 has, and which are
 * the only ones from NPP 13 on.
 *
 * Names are `nppi` + family + `_` + form + `_Ctx`, where a form is an element type (two for
 * conversions) and a layout: `8u_C3R`, `8u32f_C3R`, `8u_C3P3R`. Arithmetic of integers scales its
 * result by a power of two, with the suffix `Sfs`: `8u_C3RSfs`.
 */
import type { ArgumentType, FunctionRow, ScalarType } from '../../core/index.js';

/** NPP's names of u8, u16, f16 and f32. */
export type Element = '8u' | '16u' | '16f' | '32f';
/** The library files, by their names after `lib`. */
export type NppFile =
  'nppc' | 'nppig' | 'nppidei' | 'nppicc' | 'nppial' | 'nppif' | 'nppitc' | 'nppist';

const SIZE: ArgumentType = { struct: { width: 'i32', height: 'i32' } };
const RECT: ArgumentType = { struct: { x: 'i32', y: 'i32', width: 'i32', height: 'i32' } };
const POINT: ArgumentType = { struct: { x: 'i32', y: 'i32' } };

/**
 * NppStreamContext, which is the same in NPP 11 to 13. Not all versions have a function that fills
 * it (nppGetStreamContext), so that it is filled here. The last field is reserved, and from 13.2 on
 * a workspace; 0 is none.
 */
export const CONTEXT: ArgumentType = {
  struct: {
    hStream: 'stream',
    nCudaDeviceId: 'i32',
    nMultiProcessorCount: 'i32',
    nMaxThreadsPerMultiProcessor: 'i32',
    nMaxThreadsPerBlock: 'i32',
    nSharedMemPerBlock: 'u64',
    nCudaDevAttrComputeCapabilityMajor: 'i32',
    nCudaDevAttrComputeCapabilityMinor: 'i32',
    nStreamFlags: 'u32',
    nReserved0: 'i32',
  },
};

const BYTES: Readonly<Record<Element, number>> = { '8u': 1, '16u': 2, '16f': 2, '32f': 4 };
const INTEGERS: readonly Element[] = ['8u', '16u'];
const FLOATS: readonly Element[] = ['16f', '32f'];
const USUAL: readonly Element[] = ['8u', '16u', '32f'];
const ALL: readonly Element[] = ['8u', '16u', '16f', '32f'];
const PACKED: readonly number[] = [1, 3, 4];

/** A number for each channel: one is passed by value, several by pointer. For f16 they are f32. */
function numbers(element: Element, channels: number): ArgumentType {
  const scalar: ScalarType = INTEGERS.includes(element) ? 'i32' : 'f32';
  return channels === 1
    ? scalar
    : { host: channels * Math.max(BYTES[element], FLOATS.includes(element) ? 4 : 0) };
}

const SOURCE: readonly ArgumentType[] = ['in', 'i32'];
const TARGET: readonly ArgumentType[] = ['out', 'i32'];
const STEPPED: readonly ArgumentType[] = [...SOURCE, ...TARGET, SIZE];

type Rows = Record<string, FunctionRow>;

/** Functions of a family. `args` is without the context, which comes last. */
function family(
  name: string,
  forms: readonly (readonly [form: string, args: readonly ArgumentType[]])[],
  launches?: number,
): Rows {
  return Object.fromEntries(
    forms.map(([form, args]) => [
      nppName(name, form),
      { args: [...args, CONTEXT], ...(launches === undefined ? {} : { launches }) },
    ]),
  );
}

export function nppName(name: string, form: string): string {
  return `nppi${name}_${form}_Ctx`;
}

/** Packed images of these elements, with 1, 3 and 4 channels. */
function packed(
  elements: readonly Element[],
  args: (element: Element, channels: number) => readonly ArgumentType[],
  suffix = '',
  channels = PACKED,
): [string, readonly ArgumentType[]][] {
  return elements.flatMap((element) =>
    channels.map((count): [string, readonly ArgumentType[]] => [
      `${element}_C${count}R${suffix}`,
      args(element, count),
    ]),
  );
}

const always = (args: readonly ArgumentType[]) => (): readonly ArgumentType[] => args;

const WARP: readonly ArgumentType[] = ['in', SIZE, 'i32', RECT, 'out', 'i32', RECT];

const GEOMETRY: Rows = {
  ...family('Resize', packed(ALL, always([...SOURCE, SIZE, RECT, ...TARGET, SIZE, RECT, 'i32']))),
  ...family(
    'ResizeBatch',
    packed(['8u', '32f'], always([SIZE, RECT, SIZE, RECT, 'i32', 'in', 'u32'])),
  ),
  ...family(
    'Remap',
    packed(
      USUAL,
      always(['in', SIZE, 'i32', RECT, 'in', 'i32', 'in', 'i32', 'out', 'i32', SIZE, 'i32']),
    ),
  ),
  ...family('WarpAffineBack', packed(USUAL, always([...WARP, { host: 48 }, 'i32']))),
  ...family('WarpPerspectiveBack', packed(USUAL, always([...WARP, { host: 72 }, 'i32']))),
  ...family('Mirror', packed(USUAL, always([...STEPPED, 'i32']))),
};

const BORDER: readonly ArgumentType[] = [...SOURCE, SIZE, ...TARGET, SIZE, 'i32', 'i32'];

const EXCHANGE: Rows = {
  ...family(
    'CopyConstBorder',
    packed(USUAL, (element, channels) => [...BORDER, numbers(element, channels)]),
  ),
  ...family('CopyReplicateBorder', packed(USUAL, always(BORDER))),
  ...family('CopyWrapBorder', packed(USUAL, always(BORDER))),
  ...family('Copy', packed(ALL, always(STEPPED))),
  ...family(
    'Copy',
    USUAL.flatMap((element) =>
      [3, 4].flatMap((count): [string, readonly ArgumentType[]][] => [
        [`${element}_C${count}P${count}R`, [...SOURCE, { pointers: 'out', count }, 'i32', SIZE]],
        [`${element}_P${count}C${count}R`, [{ pointers: 'in', count }, 'i32', ...TARGET, SIZE]],
      ]),
    ),
  ),
  ...family('Transpose', packed(USUAL, always(STEPPED))),
  ...family(
    'Set',
    packed(USUAL, (element, channels) => [numbers(element, channels), ...TARGET, SIZE]),
  ),
  ...family(
    'Dup',
    USUAL.flatMap((element) =>
      [3, 4].map((count): [string, readonly ArgumentType[]] => [
        `${element}_C1C${count}R`,
        STEPPED,
      ]),
    ),
  ),
  ...family(
    'SwapChannels',
    USUAL.flatMap((element): [string, readonly ArgumentType[]][] => [
      [`${element}_C3R`, [...STEPPED, { host: 12 }]],
      [`${element}_C4R`, [...STEPPED, { host: 16 }]],
      [`${element}_C4C3R`, [...STEPPED, { host: 12 }]],
      [`${element}_C3C4R`, [...STEPPED, { host: 16 }, numbers(element, 1)]],
    ]),
  ),
  ...family(
    'Convert',
    PACKED.flatMap((count): [string, readonly ArgumentType[]][] => [
      ...['8u16u', '8u32f', '16u8u', '16u32f', '16f32f'].map(
        (pair): [string, readonly ArgumentType[]] => [`${pair}_C${count}R`, STEPPED],
      ),
      ...['32f8u', '32f16u', '32f16f'].map((pair): [string, readonly ArgumentType[]] => [
        `${pair}_C${count}R`,
        [...STEPPED, 'i32'],
      ]),
    ]),
  ),
};

const COLOUR: Rows = {
  ...family(
    'ColorToGray',
    USUAL.flatMap((element): [string, readonly ArgumentType[]][] => [
      [`${element}_C3C1R`, [...STEPPED, { host: 12 }]],
      [`${element}_C4C1R`, [...STEPPED, { host: 16 }]],
    ]),
  ),
  ...family('RGBToHSV', [['8u_C3R', STEPPED]]),
  ...family('HSVToRGB', [['8u_C3R', STEPPED]]),
  // These take a matrix of 3 × 4 numbers for any standard: NPP's other conversions are each for
  // one. NPP 11 does not have them.
  ...family('YUV420ToRGB', [
    [
      '8u_ColorTwist32f_P3C3R',
      [{ pointers: 'in', count: 3 }, { host: 12 }, ...TARGET, SIZE, { host: 48 }],
    ],
  ]),
  ...family('NV12ToRGB', [
    [
      '8u_ColorTwist32f_P2C3R',
      [{ pointers: 'in', count: 2 }, { host: 8 }, ...TARGET, SIZE, { host: 48 }],
    ],
  ]),
  ...family('RGBToYUV420', [
    [
      '8u_ColorTwist32f_C3P3R',
      [...SOURCE, { pointers: 'out', count: 3 }, { host: 12 }, SIZE, { host: 48 }],
    ],
  ]),
  ...family('RGBToNV12', [
    [
      '8u_ColorTwist32f_C3P2R',
      [...SOURCE, { pointers: 'out', count: 2 }, { host: 8 }, SIZE, { host: 48 }],
    ],
  ]),
};

const IN_PLACE: readonly ArgumentType[] = ['inout', 'i32', SIZE];
const WITH_IMAGE: readonly ArgumentType[] = [...SOURCE, ...SOURCE, ...TARGET, SIZE];

const ARITHMETIC: Rows = {
  ...(Object.assign(
    {},
    ...['AddC', 'SubC', 'MulC'].map((name): Rows => ({
      ...family(
        name,
        packed(FLOATS, (element, channels) => [
          ...SOURCE,
          numbers(element, channels),
          ...TARGET,
          SIZE,
        ]),
      ),
      ...family(
        name,
        packed(
          INTEGERS,
          (element, channels) => [...SOURCE, numbers(element, channels), ...TARGET, SIZE, 'i32'],
          'Sfs',
        ),
      ),
    })),
  ) as Rows),
  ...family(
    'AddC',
    PACKED.map((count) => [`32f_C${count}IR`, [numbers('32f', count), ...IN_PLACE]] as const),
  ),
  ...family(
    'MulC',
    PACKED.map((count) => [`32f_C${count}IR`, [numbers('32f', count), ...IN_PLACE]] as const),
  ),
  ...(Object.assign(
    {},
    ...['Add', 'Sub', 'Mul'].map((name): Rows => ({
      ...family(name, packed(FLOATS, always(WITH_IMAGE))),
      ...family(name, packed(INTEGERS, always([...WITH_IMAGE, 'i32']), 'Sfs')),
    })),
  ) as Rows),
  ...family('AbsDiff', [
    ...packed(['8u'], always(WITH_IMAGE)),
    ...packed(['16u', '16f', '32f'], always(WITH_IMAGE), '', [1]),
  ]),
  ...family('AlphaComp', [
    ['8u_AC4R', [...WITH_IMAGE, 'i32']],
    ['16u_AC4R', [...WITH_IMAGE, 'i32']],
    ['32f_AC4R', [...WITH_IMAGE, 'i32']],
  ]),
};

const FILTERED: readonly ArgumentType[] = [...SOURCE, SIZE, POINT, ...TARGET, SIZE];

const FILTERS: Rows = {
  ...family('FilterGaussAdvancedBorder', packed(USUAL, always([...FILTERED, 'i32', 'in', 'i32']))),
  ...family('FilterBoxBorder', packed(USUAL, always([...FILTERED, SIZE, POINT, 'i32']))),
};

const THRESHOLDS: Rows = {
  ...family(
    'Threshold_GT',
    packed(USUAL, (element, channels) => [...STEPPED, numbers(element, channels)], '', [1, 3]),
  ),
  ...family(
    'Threshold_LTValGTVal',
    packed(
      USUAL,
      (element, channels) => [
        ...STEPPED,
        ...new Array<ArgumentType>(4).fill(numbers(element, channels)),
      ],
      '',
      [1, 3],
    ),
  ),
  ...family(
    'Threshold_LTVal',
    packed(
      USUAL,
      (element, channels) => [...STEPPED, numbers(element, channels), numbers(element, channels)],
      '',
      [1, 3],
    ),
  ),
  ...family(
    'Threshold_GTVal',
    packed(
      USUAL,
      (element, channels) => [...STEPPED, numbers(element, channels), numbers(element, channels)],
      '',
      [1, 3],
    ),
  ),
};

/** Bytes of scratch memory, written to the host: an int in NPP 11, a size_t later. */
const SCRATCH_SIZE: ArgumentType = { host: 8 };

/** A whole number for each channel. */
function integers(channels: number): ArgumentType {
  return channels === 1 ? 'i32' : { host: channels * 4 };
}

/** A histogram for each channel. */
function histograms(channels: number): ArgumentType {
  return channels === 1 ? 'out' : { pointers: 'out', count: channels };
}

const STATISTICS: Rows = {
  ...(Object.assign(
    {},
    ...(['Sum', 'Mean', 'MinIndx', 'MaxIndx'] as const).map((name): Rows => ({
      ...family(`${name}GetBufferHostSize`, packed(USUAL, always([SIZE, SCRATCH_SIZE]))),
      ...family(
        name,
        packed(
          USUAL,
          always([
            ...SOURCE,
            SIZE,
            'inout',
            'out',
            ...(name.endsWith('Indx') ? (['out', 'out'] as const) : []),
          ]),
        ),
        4,
      ),
    })),
  ) as Rows),
  ...family(
    'HistogramEvenGetBufferSize',
    packed(INTEGERS, (_, channels) => [SIZE, integers(channels), SCRATCH_SIZE]),
  ),
  ...family(
    'HistogramEven',
    packed(INTEGERS, (_, channels) => [
      ...SOURCE,
      SIZE,
      histograms(channels),
      integers(channels),
      integers(channels),
      integers(channels),
      'inout',
    ]),
    4,
  ),
};

/** The functions of each library file. */
export const NPP_FUNCTIONS: Readonly<Record<NppFile, Readonly<Record<string, FunctionRow>>>> = {
  nppc: { nppGetLibVersion: { args: [], returns: { host: 12 } } },
  nppig: GEOMETRY,
  nppidei: EXCHANGE,
  nppicc: COLOUR,
  nppial: ARITHMETIC,
  nppif: FILTERS,
  nppitc: THRESHOLDS,
  nppist: STATISTICS,
};
