/**
 * Photographs as a network takes them, in one kernel: resized with a letterbox, normalised, as
 * planes of f16. The peer is a chain of seven calls of NPP, for one image after the other, and with
 * as many calls for all images as possible. One row has separate images, whose sizes could be any.
 */
import type { Benchmark, Contender, Peer, Setup } from '../benchmark.js';
import { core, imageLibrary, root } from '../library.js';
import {
  AROUND,
  CHANNELS,
  DEVIATIONS,
  FROM_HEIGHT,
  FROM_WIDTH,
  MEANS,
  RUNS,
  SAMPLES,
  TO,
  noise,
  proveLines,
  timedByEvents,
} from './pictures.js';

const { f16, u8 } = core;
const INNER = Math.round((TO * FROM_HEIGHT) / FROM_WIDTH);
const TOP = (TO - INNER) / 2;

async function start(
  { device: opened, count }: Setup,
  images: number,
  apart: boolean,
): Promise<Contender> {
  const device = root.Device.of(opened);
  const image = await device.tensor(u8, noise(images), [images, FROM_HEIGHT, FROM_WIDTH, CHANNELS]);
  const out = await device.zeros(f16, [images, CHANNELS, TO, TO]);
  const options = {
    width: TO,
    height: TO,
    color: AROUND,
    mean: [...MEANS],
    deviation: [...DEVIATIONS],
    out,
  };
  const op = apart
    ? imageLibrary.letterboxNormaliseBatch(
        Array.from({ length: images }, (_, i) => image.slice(i)),
        options,
      )
    : imageLibrary.letterboxNormalise(image, options);
  return {
    async round() {
      const round = await timedByEvents(opened, op, count(SAMPLES));
      proveLines(await out.read(), TO, (line) => {
        const [c, y] = [Math.floor(line / TO) % CHANNELS, line % TO];
        const inside = y >= TOP && y < TOP + INNER;
        const level = (inside ? 127.5 : AROUND) / 255;
        return { mean: (level - MEANS[c]!) / DEVIATIONS[c]!, within: inside ? 0.4 : 0.002 };
      });
      return round;
    },
    close() {
      image.close();
      out.close();
      return Promise.resolve();
    },
  };
}

const chain = (name: string, measurement: string, images: number): Peer => ({
  name,
  bar: '<= 0.5',
  program: 'NPP',
  request: ({ count }) => `${measurement} ${count(SAMPLES)} ${images} ${RUNS}`,
});

export const letterboxes: readonly Benchmark[] = (
  [
    [1, false],
    [32, false],
    [32, true],
  ] as const
).map(([images, apart]) => ({
  area: 'images',
  name: `letterbox, normalise ${images} ${apart ? 'images of' : '×'} 1920 × 1080 to f16`,
  unit: 'ms',
  statistic: 'median',
  peers: [
    chain('NPP, a chain of calls', 'letterbox-each', images),
    ...(images > 1 && !apart
      ? [chain('NPP, a chain of calls for all images', 'letterbox-all', images)]
      : []),
  ],
  start: (setup) => start(setup, images, apart),
}));
