/**
 * `npm run demo:inference`: finds the printed digits on photographs on the best device found; what was found goes to the
 * terminal, the photographs with boxes around the digits to a PNG file.
 */
import { mkdir, writeFile } from 'node:fs/promises';
import { basename, dirname, relative } from 'node:path';
import { performance } from 'node:perf_hooks';
import { fileURLToPath } from 'node:url';

import { Device } from 'async-cuda';
import { loadEngine } from 'async-cuda/inference';

import { EventLoopStall } from '../event-loop-stall.js';
import { encodePng, readImage } from '../image.js';
import { milliseconds } from '../theme.js';
import { type Labelled, drawBoxes } from './boxes-picture.js';
import { DigitDetector, ENGINE_OPTIONS, MODEL } from './digit-detector.js';
import { HELP, parseOptions } from './options.js';

/** The first runs pay for what happens once: kernels that are compiled, memory that grows. */
const WARM_UP_RUNS = 2;

function lines({ name, image, detections }: Labelled): string[] {
  const place = ({ left, top, right, bottom }: Labelled['detections'][number]['box']): string =>
    `at ${Math.round(left)}, ${Math.round(top)}, ${Math.round(right - left)} x ${Math.round(bottom - top)}`;
  return [
    `${name}, ${image.width} x ${image.height}: ${detections.length === 0 ? 'no digits' : `${detections.length} digits`}`,
    ...detections.map(({ label, score, box }) => `  ${label}  ${(100 * score).toFixed(0).padStart(3)} %  ${place(box)}`),
  ];
}

/** A path as a reader of the terminal would type it. */
function shown(path: string): string {
  const fromHere = relative('', path);
  return fromHere.startsWith('..') ? path : fromHere;
}

async function main(): Promise<void> {
  const options = parseOptions(process.argv.slice(2));
  if (options.help) {
    process.stdout.write(HELP);
    return;
  }
  const images = await Promise.all(options.images.map(readImage));

  await using device = await (options.device === undefined ? Device.open() : Device.open(options.device));
  const loading = new EventLoopStall();
  await using engine = await loadEngine(device, fileURLToPath(MODEL), { ...ENGINE_OPTIONS, engine: options.engine ?? 'auto' });
  const detector = new DigitDetector(device, engine);
  for (let i = 0; i < WARM_UP_RUNS; i++) await detector.detect(images);
  const loadingStall = loading.stop().longest;

  const running = new EventLoopStall();
  const start = performance.now();
  const found = await detector.detect(images);
  const time = performance.now() - start;
  const stall = running.stop();

  const photographs = images.map((image, i) => ({ name: basename(options.images[i]!), image, detections: found[i]! }));
  const where = `${device.name} (${device.kind})`;
  const count = `${images.length} ${images.length === 1 ? 'photograph' : 'photographs'}`;
  console.log([
    `device: ${where}`,
    `model:  ${shown(fileURLToPath(MODEL))}, run by ${engine.description}`,
    '',
    ...photographs.flatMap(lines),
    '',
    `${count}, from pixels to boxes: ${milliseconds(time)}`,
    `longest event-loop stall: ${milliseconds(stall.longest)} in ${stall.samples} turns`,
    `  (${milliseconds(loadingStall)} while the model was loaded and warmed up)`,
  ].join('\n'));

  const picture = drawBoxes(photographs, {
    title: 'async-cuda: printed digits, found by an ONNX model',
    subtitle: [where, engine.description, `${count} in ${milliseconds(time)}`].join('  ·  '),
  });
  await mkdir(dirname(options.out), { recursive: true });
  await writeFile(options.out, encodePng(picture));
  console.log(`\nwrote ${shown(options.out)}, ${picture.width} x ${picture.height}`);
}

main().catch((error: unknown) => {
  const message = error instanceof Error ? error.message : String(error);
  console.error(`demo: ${message.split('\n')[0]}`);
  process.exitCode = 1;
});
