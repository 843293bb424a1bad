/**
 * `npm run demo`: a photograph goes through the pipeline on the best device found, then through
 * operations on images by each engine that the device has; the times go to the terminal, a picture
 * of the stages and a contact sheet of the engines to PNG files.
 */
import { mkdir, writeFile } from 'node:fs/promises';
import { basename, dirname, join, parse, relative } from 'node:path';
import { performance } from 'node:perf_hooks';

import { CoreDevice, type Trace } from 'async-cuda/core';

import { drawContactSheet, isMade } from './contact-sheet.js';
import { type Comparison, compareEngines } from './engines.js';
import { EventLoopStall } from './event-loop-stall.js';
import { type Image, encodePng, readImage } from './image.js';
import { loadKernels } from './kernels.js';
import { drawMontage } from './montage.js';
import { HELP, type Options, parseOptions } from './options.js';
import { type Stages, runPipeline } from './pipeline.js';
import { milliseconds } from './theme.js';
import { drawTrace } from './trace-picture.js';
import { traceFrames } from './traced-frames.js';
import { loadTypeScriptKernels } from './typescript-kernels.js';

/**
 * The first runs pay for what happens once: translating kernels, growing memory pools, JavaScript
 * not yet compiled.
 */
const WARM_UP_RUNS = 3;

interface Measured {
  readonly device: string;
  readonly stages: Stages;
  /** From the first command to the end of the last stage, on the device's clock. */
  readonly total: number;
  /** From the call to the last result in JavaScript's hands. */
  readonly wall: number;
  readonly stall: { readonly longest: number; readonly samples: number };
  readonly trace: Trace | undefined;
  /** The longest stall while modules were loaded and the first runs made. */
  readonly loadingStall: number;
  readonly comparison: Comparison;
}

async function measure(
  image: Image,
  { device: deviceName, kernels: written, trace: traced }: Options,
): Promise<Measured> {
  await using device = await (deviceName === undefined
    ? CoreDevice.open()
    : CoreDevice.open(deviceName));

  const loading = new EventLoopStall();
  const kernels = await (written === 'cuda' ? loadKernels(device) : loadTypeScriptKernels(device));
  for (let i = 0; i < WARM_UP_RUNS; i++) await runPipeline(device, image, kernels);
  const loadingStall = loading.stop().longest;

  const running = new EventLoopStall();
  const start = performance.now();
  const stages = await runPipeline(device, image, kernels);
  const wall = performance.now() - start;
  const stall = running.stop();

  const total = Math.max(...stages.times.map(({ end }) => end));
  const trace = traced === undefined ? undefined : await traceFrames(device, image, kernels);
  const comparison = await compareEngines(device, image);
  return {
    device: `${device.name} (${device.kind})`,
    stages,
    total,
    wall,
    stall,
    loadingStall,
    trace,
    comparison,
  };
}

function report({ device, stages, total, wall, stall, loadingStall }: Measured): string {
  const row = (name: string, value: string): string => `  ${name.padEnd(24)}${value.padStart(12)}`;
  return [
    `device: ${device}`,
    '',
    ...stages.times.map(({ name, stream, start, end }) =>
      row(`${stream}  ${name}`, milliseconds(end - start)),
    ),
    row('   total on the device', milliseconds(total)),
    row('   with read-back', milliseconds(wall)),
    '',
    `longest event-loop stall: ${milliseconds(stall.longest)} in ${stall.samples} turns`,
    `  (${milliseconds(loadingStall)} while kernels were loaded and warmed up)`,
  ].join('\n');
}

/** A line for each operation: how long each engine took, and by how much they differ. */
function reportEngines({ operations, npp, reason }: Comparison): string {
  const line = (...cells: readonly string[]): string =>
    `  ${cells[0]!.padEnd(40)}${cells
      .slice(1)
      .map((cell) => cell.padStart(16))
      .join('')}`;
  return [
    npp === undefined
      ? 'operations on images, our kernels only:'
      : `operations on images, our kernels and NVIDIA's NPP ${npp}:`,
    ...(npp === undefined
      ? [`  NPP is not on this device: ${(reason ?? '').split('\n')[0]!}`]
      : [line('', 'own', 'npp', 'largest diff.')]),
    ...operations.map(({ title, note, own, npp: theirs, largest }) =>
      line(
        `${title}, ${note}`,
        milliseconds(own.time),
        ...(theirs === undefined
          ? []
          : isMade(theirs)
            ? [milliseconds(theirs.time), `${largest!} of 255`]
            : ['-', theirs.split('\n')[0]!]),
      ),
    ),
  ].join('\n');
}

/** Beside the picture of the pipeline. */
function besides(path: string, name: string): string {
  const { dir, name: own, ext } = parse(path);
  return join(dir, `${own}-${name}${ext}`);
}

/** A path as a reader of the terminal would type it. */
function shown(path: string): string {
  const fromHere = relative('', path);
  return fromHere.startsWith('..') ? path : fromHere;
}

/** A file name that leaves room for the rest of the picture's heading. */
function shortened(name: string): string {
  return name.length > 40 ? `${name.slice(0, 24)}...${name.slice(-12)}` : name;
}

async function main(): Promise<void> {
  const options = parseOptions(process.argv.slice(2));
  if (options.help) {
    process.stdout.write(HELP);
    return;
  }

  const image = await readImage(options.image);
  const size = `${image.width} x ${image.height}`;
  console.log(`image:  ${shown(options.image)}, ${size}`);
  const measured = await measure(image, options);
  console.log(report(measured));

  const picture = drawMontage(image, measured.stages, {
    title:
      `async-cuda: seven kernels in ${options.kernels === 'cuda' ? 'CUDA C++' : 'TypeScript'} ` +
      'on two streams',
    subtitle: [
      measured.device,
      `${shortened(basename(options.image))}, ${size}`,
      `total ${milliseconds(measured.total)}`,
      `longest event-loop stall ${milliseconds(measured.stall.longest)}`,
    ].join('  ·  '),
  });
  await mkdir(dirname(options.out), { recursive: true });
  await writeFile(options.out, encodePng(picture));
  const sheet = drawContactSheet(measured.comparison, {
    title: 'async-cuda: operations on images',
    subtitle: [measured.device, `${shortened(basename(options.image))}, ${size}`].join('  ·  '),
  });
  const sheetFile = besides(options.out, 'engines');
  await writeFile(sheetFile, encodePng(sheet));
  console.log(`\n${reportEngines(measured.comparison)}`);
  console.log(`\nwrote ${shown(options.out)}, ${picture.width} x ${picture.height}`);
  console.log(`wrote ${shown(sheetFile)}, ${sheet.width} x ${sheet.height}`);
  const { trace } = measured;
  if (trace === undefined || options.trace === undefined) return;
  await mkdir(dirname(options.trace), { recursive: true });
  await trace.write(options.trace);
  await writeFile(`${options.trace}.png`, encodePng(drawTrace(trace.toJSON(), measured.device)));
  console.log(`wrote ${shown(options.trace)} and ${shown(`${options.trace}.png`)}`);
}

main().catch((error: unknown) => {
  const message = error instanceof Error ? error.message : String(error);
  console.error(`demo: ${message.split('\n')[0]}`);
  process.exitCode = 1;
});
