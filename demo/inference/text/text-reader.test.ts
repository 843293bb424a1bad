import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { Device } from 'async-cuda';
import { loadEngine } from 'async-cuda/inference';
import type { Engine } from 'async-cuda/inference';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';

import { Canvas } from '../../canvas.js';
import { readImage } from '../../image.js';
import type { HostPhotograph, Point } from '../photograph.js';
import { editDistance } from './edit-distance.js';
import { findOcrModels } from './ocr-models.js';
import { DETECTION_OPTIONS, RECOGNITION_OPTIONS, TextReader } from './text-reader.js';
import type { TextLine } from './text-reader.js';
import { whyNoOcr } from './why-no-ocr.test-support.js';

const folder = new URL('../photographs/', import.meta.url);
const truth = JSON.parse(await readFile(new URL('truth.json', folder), 'utf8')) as Record<
  string,
  { text: string; corners: [number, number][] }[]
>;
const readImages = (): Promise<HostPhotograph[]> =>
  Promise.all(Object.keys(truth).map((name) => readImage(fileURLToPath(new URL(name, folder)))));

/**
 * The recognition was trained on Chinese above all, and leaves out spaces: what is compared is
 * without them.
 */
const withoutSpaces = (text: string): string => text.replaceAll(' ', '');
const middleOf = (corners: readonly Point[]): Point => ({
  x: corners.reduce((sum, { x }) => sum + x / 4, 0),
  y: corners.reduce((sum, { y }) => sum + y / 4, 0),
});
const textsOf = (lines: readonly TextLine[]): string[] => lines.map(({ text }) => text);

function sign(text: string, width = 320, height = 96): HostPhotograph {
  const canvas = new Canvas(width, height, [250, 250, 250]);
  canvas.text(width / 2, height / 2 + 14, text, { size: 40, color: [20, 20, 20], align: 'center' });
  return canvas;
}

describe.skipIf(whyNoOcr !== undefined)(
  `text on photographs${whyNoOcr === undefined ? '' : ` (SKIPPED: ${whyNoOcr})`}`,
  () => {
    let device: Device;
    let detection: Engine;
    let recognition: Engine;
    let reader: TextReader;
    beforeAll(async () => {
      device = await Device.open(process.env['ASYNC_CUDA_TEST_DEVICE'] === 'cuda' ? 'cuda' : 'cpu');
      const models = await findOcrModels();
      detection = await loadEngine(device, models.detection, DETECTION_OPTIONS);
      recognition = await loadEngine(device, models.recognition, RECOGNITION_OPTIONS);
      reader = new TextReader(device, { detection, recognition, characters: models.characters });
    }, 300_000);
    afterAll(async () => {
      await recognition?.close();
      await detection?.close();
      await device?.close();
    });

    test(
      "every line of the demo's photographs is read where it is, and nothing else",
      { tags: 'thorough' },
      async () => {
        const found = await reader.read(await readImages());
        let wrong = 0;
        let written = 0;
        for (const [i, [name, lines]] of Object.entries(truth).entries()) {
          expect(found[i]!.length, name).toBe(lines.length);
          for (const { text, corners } of lines) {
            const middle = middleOf(corners.map(([x, y]) => ({ x, y })));
            const nearest = found[i]!.map((line) => ({
              line,
              away: Math.hypot(
                middleOf(line.corners).x - middle.x,
                middleOf(line.corners).y - middle.y,
              ),
            })).sort((a, b) => a.away - b.away)[0]!;
            expect(nearest.away, `${name}: ${text}`).toBeLessThan(8);
            // The corner at which the line begins is the first, whichever way it runs.
            expect(
              Math.hypot(
                nearest.line.corners[0]!.x - corners[0]![0],
                nearest.line.corners[0]!.y - corners[0]![1],
              ),
              `${name}: ${text}`,
            ).toBeLessThan(16);
            expect(nearest.line.score).toBeGreaterThan(0.8);
            wrong += editDistance(withoutSpaces(nearest.line.text), withoutSpaces(text));
            written += withoutSpaces(text).length;
          }
        }
        // 200 characters and more, of which at most two are misread; on the CPU device it is none.
        expect(written).toBeGreaterThan(200);
        expect(wrong).toBeLessThanOrEqual(2);
      },
    );

    test(
      'a photograph has the same text alone and among others, also of other proportions',
      { tags: 'thorough' },
      async () => {
        const images = await readImages();
        const others = [
          sign('tall', 96, 400),
          images[1]!,
          sign('wide', 900, 64),
          sign('1', 64, 64),
          images[2]!,
        ];
        const [together, alone] = [await reader.read(others), await reader.read([images[2]!])];
        expect(textsOf(together[4]!).map(withoutSpaces)).toEqual(
          textsOf(alone[0]!).map(withoutSpaces),
        );
        expect(textsOf(together[0]!)).toEqual(['tall']);
        expect(textsOf(together[2]!)).toEqual(['wide']);
      },
    );

    test('an image without text gives no lines', { tags: 'thorough' }, async () => {
      expect(await reader.read([new Canvas(200, 100, [90, 120, 60])])).toEqual([[]]);
      expect(await reader.read([])).toEqual([]);
    });

    test('an operation that is run again reads again', async () => {
      const reading = reader.read([sign('again')]);
      expect((await reading).map(textsOf)).toEqual([['again']]);
      expect((await reading).map(textsOf)).toEqual([['again']]);
    });

    test('nothing is kept on the device', { tags: 'thorough' }, async () => {
      const images = await readImages();
      await reader.read(images);
      const before = (await device.stats()).memory.inUse;
      await reader.read(images);
      expect((await device.stats()).memory.inUse).toBe(before);
    });
  },
);
