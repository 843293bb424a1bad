/**
 * `npx tsx demo/inference/photographs/make.ts` makes the photographs beside it, and truth.json:
 * what is written on them and where. No photograph with text on it came with an open licence, so
 * signs are put into one that has: set in the demo's typeface, laid onto the scene in perspective,
 * with its light, by the library's own operations on images.
 */
import { writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';

import { Device, type DeviceOp, type Tensor, u8 } from 'async-cuda';
import {
  addAlpha,
  blend,
  crop,
  encodeImage,
  gaussianFilter,
  mirror,
  orderChannels,
  rescale,
  resize,
  warpPerspective,
} from 'async-cuda/images';

import { Canvas, type Color } from '../../canvas.js';
import { readImage } from '../../image.js';
import { type FontSize, textWidth } from '../../typeface.js';
import type { Point } from '../photograph.js';
import { perspective, project } from './perspective.js';

interface Sign {
  readonly lines: readonly string[];
  readonly size: FontSize;
  readonly paper: Color;
  readonly ink: Color;
  /** Where its middle lies on the photograph, and how wide it is there. */
  readonly middle: Place;
  readonly width: number;
  /** Clockwise, in degrees. */
  readonly turn: number;
  /**
   * By how much its right end is further away than its left one: 0.2 makes it by a fifth smaller.
   */
  readonly depth: number;
}

type Place = readonly [x: number, y: number];

interface Scene {
  readonly name: string;
  /** The part of the photograph that it shows. */
  readonly part: {
    readonly x: number;
    readonly y: number;
    readonly width: number;
    readonly height: number;
  };
  readonly mirrored: boolean;
  readonly brightness: number;
  readonly signs: readonly Sign[];
}

type Pixels = Tensor<'u8', number[]>;

const WIDTH = 720;
const HEIGHT = 480;
const WHOLE = { x: 0, y: 0, width: 600, height: 400 };
/** A blur, as by a lens that is not quite sharp. */
const BLUR = { radius: 1 };

/** Clockwise from the top left: how far to the right and how far down. */
const CORNERS: readonly Place[] = [
  [0, 0],
  [1, 0],
  [1, 1],
  [0, 1],
];

const SCENES: readonly Scene[] = [
  {
    name: 'cafe.jpg',
    part: WHOLE,
    mirrored: false,
    brightness: 1,
    signs: [
      {
        lines: ['Espresso 2.40', 'Cappuccino 3.20', 'Hot chocolate 3.50'],
        size: 40,
        paper: [38, 42, 40],
        ink: [240, 236, 220],
        middle: [142, 112],
        width: 250,
        turn: 4,
        depth: 0.12,
      },
      {
        lines: ['open until 18:30'],
        size: 40,
        paper: [244, 238, 220],
        ink: [150, 30, 24],
        middle: [586, 410],
        width: 230,
        turn: -8,
        depth: -0.15,
      },
    ],
  },
  {
    name: 'desk.jpg',
    part: { x: 130, y: 90, width: 360, height: 240 },
    mirrored: true,
    brightness: 1.15,
    signs: [
      {
        lines: ['Call Anna about', 'the invoice no. 4711'],
        size: 40,
        paper: [252, 226, 90],
        ink: [30, 34, 60],
        middle: [186, 366],
        width: 280,
        turn: -7,
        depth: 0.1,
      },
      {
        lines: ['RESERVED'],
        size: 40,
        paper: [250, 250, 250],
        ink: [20, 90, 60],
        middle: [580, 80],
        width: 200,
        turn: 10,
        depth: 0.15,
      },
      {
        lines: ['table 12'],
        size: 40,
        paper: [30, 60, 120],
        ink: [240, 240, 240],
        middle: [622, 410],
        width: 140,
        turn: 7,
        depth: -0.1,
      },
    ],
  },
  {
    name: 'parcel.jpg',
    part: { x: 0, y: 160, width: 360, height: 240 },
    mirrored: false,
    brightness: 0.9,
    signs: [
      {
        lines: ['Museum of Tomorrow', '27 Harbour Street', '10115 Berlin'],
        size: 40,
        paper: [246, 246, 242],
        ink: [24, 24, 28],
        middle: [192, 120],
        width: 310,
        turn: -6,
        depth: 0.15,
      },
      {
        lines: ['FRAGILE'],
        size: 40,
        paper: [196, 30, 36],
        ink: [255, 250, 240],
        middle: [660, 160],
        width: 230,
        turn: 92,
        depth: 0.1,
      },
      {
        lines: ['handle with care'],
        size: 40,
        paper: [236, 220, 190],
        ink: [60, 40, 30],
        middle: [448, 430],
        width: 260,
        turn: 5,
        depth: 0.1,
      },
    ],
  },
  {
    name: 'station.jpg',
    part: { x: 240, y: 0, width: 360, height: 240 },
    mirrored: true,
    brightness: 0.75,
    signs: [
      {
        lines: ['Platform 9'],
        size: 40,
        paper: [20, 60, 140],
        ink: [250, 250, 250],
        middle: [150, 90],
        width: 250,
        turn: 6,
        depth: 0.15,
      },
      {
        lines: ['Mind the gap between', 'the train and the platform'],
        size: 40,
        paper: [250, 210, 50],
        ink: [16, 16, 16],
        middle: [526, 388],
        width: 330,
        turn: 8,
        depth: -0.12,
      },
      {
        lines: ['EXIT'],
        size: 40,
        paper: [0, 130, 80],
        ink: [250, 250, 250],
        middle: [620, 80],
        width: 130,
        turn: -6,
        depth: 0.1,
      },
      {
        lines: ['Basel 14:05'],
        size: 24,
        paper: [24, 26, 32],
        ink: [255, 196, 70],
        middle: [140, 410],
        width: 150,
        turn: -10,
        depth: 0.1,
      },
    ],
  },
];

/** A sign as it is made, seen from the front; and where each line's ink is on it. */
function face({ lines, size, paper, ink }: Sign): {
  canvas: Canvas;
  places: { left: number; top: number; right: number; bottom: number }[];
} {
  const [margin, leading] = [Math.round(0.7 * size), Math.round(1.35 * size)];
  const widest = Math.max(...lines.map((line) => textWidth(line, size)));
  const canvas = new Canvas(
    widest + 2 * margin,
    2 * margin + (lines.length - 1) * leading + size,
    paper,
  );
  const places = lines.map((line, i) => {
    const baseline = margin + i * leading + 0.85 * size;
    canvas.text(margin, baseline, line, { size, color: ink });
    return {
      left: margin,
      top: baseline - 0.75 * size,
      right: margin + textWidth(line, size),
      bottom: baseline + 0.25 * size,
    };
  });
  return { canvas, places };
}

/** Laid over the scene. */
function withSign(device: Device, scene: Pixels, sign: Sign): DeviceOp<Pixels> {
  const { canvas } = face(sign);
  return (
    device
      .tensor(u8, canvas.data, [canvas.height, canvas.width, 3])
      .andThen((image) => addAlpha(image))
      // What is outside of the sign is transparent black, which is how premultiplied colours have
      // it: its edges are smooth.
      .andThen((image) =>
        warpPerspective(image, matrixOf(sign), { width: WIDTH, height: HEIGHT, filter: 'linear' }),
      )
      .andThen((front) =>
        addAlpha(scene).andThen((back) => blend(front, back, { premultiplied: true })),
      )
      .andThen((blended) => orderChannels(blended, [0, 1, 2]))
  );
}

function matrixOf(sign: Sign): ReturnType<typeof perspective> {
  const { canvas } = face(sign);
  const {
    middle: [x, y],
    width,
    turn,
    depth,
  } = sign;
  const [cos, sin] = [Math.cos((turn * Math.PI) / 180), Math.sin((turn * Math.PI) / 180)];
  const height = (width * canvas.height) / canvas.width;
  const quadrilateral = CORNERS.map(([right, down]): Point => {
    const [along, across] = [(right - 0.5) * width, (down - 0.5) * height * (1 - right * depth)];
    return { x: x + along * cos - across * sin - 0.5, y: y + along * sin + across * cos - 0.5 };
  });
  // Matrices count from the middle of the first pixel.
  return perspective(
    CORNERS.map(([right, down]) => ({
      x: right * canvas.width - 0.5,
      y: down * canvas.height - 0.5,
    })),
    quadrilateral,
  );
}

function picture(
  device: Device,
  photograph: Pixels,
  { part, mirrored, brightness, signs }: Scene,
): DeviceOp<Uint8Array> {
  const scene = resize(crop(photograph, part), {
    width: WIDTH,
    height: HEIGHT,
    filter: 'cubic',
  }).andThen((image) => (mirrored ? mirror(image, 'horizontal') : image.dup()));
  return signs
    .reduce<DeviceOp<Pixels>>(
      (so, sign) => so.andThen((image) => withSign(device, image, sign)),
      scene,
    )
    .andThen((image) => gaussianFilter(image, BLUR))
    .andThen((image) => rescale(image, u8, { scale: brightness }))
    .andThen((image) => encodeImage(image, { format: 'jpeg', quality: 88 }));
}

async function main(): Promise<void> {
  await using device = await Device.open('cpu');
  const coffee = await readImage(
    fileURLToPath(new URL('../../images/coffee.png', import.meta.url)),
  );
  using photograph = await device.tensor(u8, coffee.data, [coffee.height, coffee.width, 3]);
  const truth: Record<string, { text: string; corners: Place[] }[]> = {};
  for (const scene of SCENES) {
    await writeFile(new URL(scene.name, import.meta.url), await picture(device, photograph, scene));
    truth[scene.name] = scene.signs.flatMap((sign) =>
      face(sign).places.map(({ left, top, right, bottom }, i) => ({
        text: sign.lines[i]!,
        corners: (
          [
            [left, top],
            [right, top],
            [right, bottom],
            [left, bottom],
          ] as const
        ).map(([x, y]): Place => {
          const at = project(matrixOf(sign), { x, y });
          return [Math.round(at.x), Math.round(at.y)];
        }),
      })),
    );
  }
  const lines = Object.entries(truth).map(
    ([name, texts]) =>
      `  ${JSON.stringify(name)}: ` +
      `[\n${texts.map((each) => `    ${JSON.stringify(each)}`).join(',\n')}\n  ]`,
  );
  await writeFile(new URL('truth.json', import.meta.url), `{\n${lines.join(',\n')}\n}\n`);
}

await main();
