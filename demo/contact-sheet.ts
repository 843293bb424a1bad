/**
 * The picture of what each engine made: a column for each operation, a row for each engine, and
 * where there are two one for what differs.
 */
import { Canvas } from './canvas.js';
import type { Compared, Comparison, Made } from './engines.js';
import type { Image } from './image.js';
import type { Heading } from './montage.js';
import { fitWithin } from './resize.js';
import { BACKGROUND, CARD, QUIET, TEXT, milliseconds } from './theme.js';

const CELL = 320;
const MARGIN = 56;
const GAP = 28;
const HEADING = 132;
const LABEL = 44;
const CAPTION = 74;
/** Differences are a few steps of 255. */
const MAGNIFIED = 16;

interface Row {
  readonly label: string;
  /** Undefined where there is no picture: the lines then have the reason. */
  cell(compared: Compared): {
    readonly image: Image | undefined;
    readonly lines: readonly [large: string, small: string];
    readonly right: string;
  };
}

export function drawContactSheet(
  { operations, npp, reason }: Comparison,
  { title, subtitle }: Heading,
): Canvas {
  const rows: readonly Row[] = [
    {
      label: "engine 'own': our kernels in TypeScript",
      cell: ({ title: name, note, own }) => ({
        image: own.image,
        lines: [name, note],
        right: milliseconds(own.time),
      }),
    },
    ...(npp === undefined
      ? []
      : ([
          {
            label: `engine 'npp': NVIDIA's NPP ${npp}`,
            cell: ({ title: name, note, npp: theirs }) => ({
              image: isMade(theirs) ? theirs.image : undefined,
              lines: [name, isMade(theirs) ? note : 'not by NPP'],
              right: isMade(theirs) ? milliseconds(theirs.time) : '',
            }),
          },
          {
            label: `what differs, magnified ${MAGNIFIED} times`,
            cell: ({ own, npp: theirs, largest, mean }) => ({
              image: isMade(theirs) ? magnified(own.image, theirs.image) : undefined,
              lines:
                largest === undefined
                  ? ['', '']
                  : [`largest ${largest}`, `mean ${mean!.toFixed(3)}, of 255`],
              right: '',
            }),
          },
        ] satisfies Row[])),
  ];
  const images = rows.map((row) => operations.map((each) => row.cell(each)));
  // All images of a row are drawn at most this high: photographs that lie leave no empty space.
  const heights = images.map((cells) =>
    Math.max(
      1,
      ...cells.map(({ image }) => (image === undefined ? 0 : fitWithin(image, CELL).height)),
    ),
  );
  const rest = npp === undefined ? 60 : 0;
  const canvas = new Canvas(
    2 * MARGIN + operations.length * CELL + (operations.length - 1) * GAP,
    MARGIN +
      HEADING +
      heights.reduce((sum, height) => sum + LABEL + height + CAPTION + GAP, 0) +
      rest +
      MARGIN -
      GAP,
    BACKGROUND,
  );
  canvas.text(MARGIN, MARGIN + 34, title, { size: 40, color: TEXT });
  canvas.text(MARGIN, MARGIN + 80, subtitle, { size: 24, color: QUIET });

  let top = MARGIN + HEADING;
  rows.forEach((row, r) => {
    const height = heights[r]!;
    canvas.text(MARGIN, top + 18, row.label, { size: 24, color: QUIET });
    images[r]!.forEach(({ image, lines: [large, small], right }, column) => {
      const x = MARGIN + column * (CELL + GAP);
      const y = top + LABEL;
      canvas.fill(x, y, CELL, height, CARD);
      if (image !== undefined) {
        const fitted = fitWithin(image, CELL);
        canvas.draw(x + ((CELL - fitted.width) >> 1), y + ((height - fitted.height) >> 1), fitted);
      }
      canvas.text(x, y + height + 36, large, { size: 24, color: TEXT });
      canvas.text(x + CELL, y + height + 36, right, { size: 24, color: TEXT, align: 'right' });
      canvas.text(x, y + height + 64, small, { size: 18, color: QUIET });
    });
    top += LABEL + height + CAPTION + GAP;
  });
  if (npp === undefined) {
    canvas.text(MARGIN, top + 18, "Only our kernels: NVIDIA's NPP is not on this device.", {
      size: 24,
      color: TEXT,
    });
    canvas.text(MARGIN, top + 46, shortened(reason ?? ''), { size: 18, color: QUIET });
  }
  return canvas;
}

export function isMade(made: Made | string | undefined): made is Made {
  return typeof made === 'object';
}

/** Grey is no difference. */
function magnified(a: Image, b: Image): Image {
  return {
    width: a.width,
    height: a.height,
    data: a.data.map((value, i) =>
      Math.max(0, Math.min(255, 128 + (b.data[i]! - value) * MAGNIFIED)),
    ),
  };
}

/** A line of the picture. */
function shortened(text: string): string {
  const [line = ''] = text.split('\n');
  return line.length > 150 ? `${line.slice(0, 147)}...` : line;
}
