/**
 * `npm run demo:inference`: reads the text on photographs on the best device found; what was read
 * goes to the terminal, the photographs with boxes around the lines to a PNG file.
 */
import { mkdir, writeFile } from 'node:fs/promises';
import { basename, dirname, relative } from 'node:path';
import { performance } from 'node:perf_hooks';

import { Device } from 'async-cuda';

import { EventLoopStall } from '../event-loop-stall.js';
import { milliseconds } from '../theme.js';
import type { Labelled } from './boxes-picture.js';
import { HELP, parseOptions } from './options.js';
import { Pictures } from './pictures.js';
import { TASKS, type TaskName } from './tasks.js';

/** The first runs pay for what happens once: kernels that are compiled, memory that grows. */
const WARM_UP_RUNS = 3;

const TITLES: Readonly<Record<TaskName, string>> = {
  text: 'async-cuda: text on photographs, read by ONNX models',
  digits: 'async-cuda: printed digits, found by an ONNX model',
};

function lines({ name, image, found }: Labelled): string[] {
  return [
    `${name}, ${image.width} x ${image.height}: ${found.length} found`,
    ...found.map(({ label, score, corners }) => {
      const [left, top, right, bottom] = [Math.min, Math.max].flatMap((extreme) =>
        (['x', 'y'] as const).map((axis) => extreme(...corners.map((corner) => corner[axis]))),
      );
      return (
        `  ${label.padEnd(26)} ${(100 * score).toFixed(0).padStart(3)} %  at ` +
        `${Math.round(left!)}, ${Math.round(top!)}, ${Math.round(right! - left!)} x ` +
        `${Math.round(bottom! - top!)}`
      );
    }),
  ];
}

/** A path as a reader of the terminal would type it. */
function shown(path: string): string {
  const fromHere = relative('', path);
  return fromHere.startsWith('..') ? path : fromHere;
}

/** What the work gives, and how long it held up the event loop. */
async function stalled<T>(
  work: () => Promise<T>,
): Promise<[T, ReturnType<EventLoopStall['stop']>]> {
  const stall = new EventLoopStall();
  try {
    const value = await work();
    return [value, stall.stop()];
  } catch (error) {
    // It would keep the process alive.
    stall.stop();
    throw error;
  }
}

async function main(): Promise<void> {
  const options = parseOptions(process.argv.slice(2));
  if (options.help) {
    process.stdout.write(HELP);
    return;
  }
  await using pictures = new Pictures();
  const [images, reading] = await stalled(() =>
    Promise.all(options.images.map((path) => pictures.read(path))),
  );

  const [newDevice, opening] = await stalled(() =>
    options.device === undefined ? Device.open() : Device.open(options.device),
  );
  await using device = newDevice;
  const [opened, loading] = await stalled(() =>
    TASKS[options.task](device, { engine: options.engine }),
  );
  await using task = opened;
  const find = async () => {
    const start = performance.now();
    const found = await task.find(images);
    return { found, time: performance.now() - start };
  };
  const [first, warming] = await stalled(async () => {
    const first = await find();
    for (let i = 1; i < WARM_UP_RUNS; i++) await find();
    return first;
  });
  const [{ found, time }, stall] = await stalled(find);

  const stalls = [reading, opening, loading, warming];
  const longest = Math.max(...stalls.map((before) => before.longest));
  const photographs = images.map((image, i) => ({
    name: basename(options.images[i]!),
    image,
    found: found[i]!,
  }));
  const where = `${device.name} (${device.kind})`;
  const count = `${images.length} ${images.length === 1 ? 'photograph' : 'photographs'}`;
  console.log(
    [
      `device: ${where}`,
      ...task.models.map((model, i) => `${i === 0 ? 'models: ' : '        '}${shown(model)}`),
      `        run by ${task.description}`,
      '',
      ...photographs.flatMap(lines),
      '',
      `${count}, from pixels to ${options.task}: ${milliseconds(time)}, the first time ` +
        `${milliseconds(first.time)}`,
      `longest event-loop stall: ${milliseconds(stall.longest)} in ${stall.samples} turns`,
      '  ' +
        `(${milliseconds(longest)} ` +
        'while the device was opened, and the models were loaded and warmed up)',
    ].join('\n'),
  );

  const picture = await pictures.draw(photographs, {
    title: TITLES[options.task],
    subtitle: [where, task.description, `${count} in ${milliseconds(time)}`].join('  ·  '),
  });
  await mkdir(dirname(options.out), { recursive: true });
  await writeFile(options.out, picture.data);
  console.log(`\nwrote ${shown(options.out)}, ${picture.width} x ${picture.height}`);
}

main().catch((error: unknown) => {
  const message = error instanceof Error ? error.message : String(error);
  console.error(`demo: ${message.split('\n')[0]}`);
  process.exitCode = 1;
});
