/**
 * Photographs to classes, end to end, in batches of 32: decoded (by nvJPEG on a GPU that has it,
 * else by sharp and uploaded), brought to the model's size and numbers by our kernel, run through
 * ResNet-50, and the greatest of its outputs found on the device. The weights are random with a
 * seed: the classes mean nothing, but they are the same for all contenders, and are compared.
 */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { performance } from 'node:perf_hooks';

import type { Engine } from 'async-cuda/inference';
import type { AnyTensor, Device, DeviceOp, Tensor } from 'async-cuda';

import type { Benchmark, Contender, LocalPeer, ProgramPeer, Setup } from '../benchmark.js';
import { core, imageLibrary, inference, library, ops, root } from '../library.js';
import { PeerAbsent } from '../peers/program.js';
import { DIFFERENT, HEIGHT, WIDTH, decode, loadSharp, makePhotographs } from './photographs.js';
import { CLASSES, SIDE, folderFor, resnet50 } from './resnet50.js';

const { f32, u8 } = core;
const PHOTOGRAPHS = 1000;
const BATCH = 32;
/** Batches in flight: those that arrive, wait for their turn, or are read. */
const AT_ONCE = 6;
/**
 * Runs of the model at once: while one runs the next is queued. With all of them at once they would
 * share the GPU and end together, and then all batches would arrive together while it is idle (5430
 * photographs a second instead of 8690, H100).
 */
const RUNS_AT_ONCE = 2;
/**
 * How often all photographs run before the first round: JavaScript engines compile what runs often.
 * (An H100's host: 1930, 2710, 5130, 5440 a second.)
 */
const WARM_PASSES = 3;
/** Mean and deviation of ImageNet's photographs, for which such networks are trained. */
const NORMALISATION = { mean: [0.485, 0.456, 0.406], deviation: [0.229, 0.224, 0.225], color: 114 };
/**
 * Photographs whose class may differ from the peer's: where two outputs are nearly equal, TF32 and
 * f32 differ.
 */
const MOST_DIFFERENT = 0.1;

type From = 'files' | 'pixels';

/** The inputs that all contenders of a run share. */
interface Material {
  readonly model: Uint8Array;
  readonly files: readonly Buffer[];
  readonly pixels: readonly Uint8Array[];
  readonly folder: { readonly path: string; remove(): Promise<void> };
}

let material: Promise<Material> | undefined;

async function prepared(): Promise<Material> {
  const files = await makePhotographs();
  const sharp = await loadSharp();
  const pixels = await Promise.all(files.map((file) => decode(sharp, file)));
  const model = resnet50();
  const folder = await folderFor(model);
  await Promise.all(
    files.map((file, i) => writeFile(join(folder.path, `${String(i).padStart(3, '0')}.jpg`), file)),
  );
  await writeFile(join(folder.path, 'pixels.u8'), Buffer.concat(pixels));
  process.once('exit', () => void folder.remove());
  return { model: model.bytes, files, pixels, folder };
}

/**
 * Classes of the photographs of these numbers, in their order. `place` is a number from 0 on that
 * no other batch in flight has.
 */
type Classify = (numbers: readonly number[], place: number) => PromiseLike<Iterable<number>>;

/** Classes of `count` photographs, with `AT_ONCE` batches in flight, and the time. */
async function classifyAll(
  count: number,
  classify: Classify,
  atOnce = AT_ONCE,
): Promise<{ readonly classes: number[]; readonly seconds: number; readonly stall: number }> {
  const classes = new Array<number>(count);
  let next = 0;
  let longest = 0;
  let last = performance.now();
  const watch = setInterval(() => {
    const now = performance.now();
    longest = Math.max(longest, now - last - 1);
    last = now;
  }, 1);
  const start = performance.now();
  await Promise.all(
    Array.from({ length: atOnce }, async (_, place) => {
      while (next < count) {
        const from = next;
        next = Math.min(count, from + BATCH);
        let i = from;
        for (const each of await classify(
          Array.from({ length: next - from }, (_, k) => (from + k) % DIFFERENT),
          place,
        ))
          classes[i++] = each;
      }
    }),
  );
  const seconds = (performance.now() - start) / 1000;
  clearInterval(watch);
  longest = Math.max(longest, performance.now() - last - 1);
  return { classes, seconds, stall: longest };
}

/** @throws Error where more than a few classes differ from those before */
function compare(classes: readonly number[], known: readonly number[], whose: string): void {
  const different =
    classes.filter((each, i) => each !== known[i % DIFFERENT]).length / classes.length;
  if (different > MOST_DIFFERENT)
    throw new Error(
      `${(100 * different).toFixed(0)} % of the photographs have another class than ${whose}`,
    );
}

/** On the CPU device, where it is only tested, a tenth: cores take a hundred times as long. */
function photographsOf({ device, count }: Pick<Setup, 'device' | 'count'>): number {
  return count(device.kind === 'cuda' ? PHOTOGRAPHS : PHOTOGRAPHS / 10);
}

/** Our classes of the first batches, with which peers in this process are compared. */
let ours: number[] | undefined;

function contender(from: From): (setup: Setup) => Promise<Contender> {
  return async ({ device, count }) => {
    const { model, files, pixels } = await (material ??= prepared());
    const lazy = root.Device.of(device);
    const shape = (n: number): number[] => [n, 3, SIDE, SIDE];
    const photographs = photographsOf({ device, count });
    const shapes = [BATCH, photographs % BATCH]
      .filter((n) => n > 0)
      .map((n) => ({ image: shape(n) }));
    const engine = await inference.loadEngine(device, model, {
      contexts: RUNS_AT_ONCE,
      onnxruntime: { shapes },
      tensorrt: { shapes: { image: { min: shape(1), opt: shape(BATCH), max: shape(BATCH) } } },
    });
    const classifier = await Classifier.open(
      lazy,
      engine,
      from === 'files' ? decoding(lazy, files) : uploading(pixels),
    );
    const classify: Classify = (numbers, place) => classifier.classify(numbers, place);
    for (let pass = 0; pass < (device.kind === 'cuda' ? WARM_PASSES : 0); pass++)
      await classifyAll(photographs, classify);
    return {
      async round() {
        const first = await classifyAll(2 * BATCH, classify);
        if (new Set(first.classes).size < 2) throw new Error('every photograph has the same class');
        ours = first.classes;
        const { classes, seconds, stall } = await classifyAll(photographs, classify);
        compare(classes, first.classes, 'in the round before');
        return {
          samples: [classes.length / seconds],
          notes: { 'stall, ms': stall, classes: sumOf(first.classes) },
        };
      },
      async close() {
        await engine.close();
        classifier.close();
      },
    };
  };
}

/** As the programs print it. */
function sumOf(classes: readonly number[]): number {
  return classes.slice(0, DIFFERENT).reduce((a, b) => a + b, 0);
}

type Photographs = Tensor<'u8', number[]>;
type Images = Tensor<'f32', number[]>;

const letterbox = (photographs: Photographs, out: Images): DeviceOp<unknown> =>
  imageLibrary.letterboxNormalise(photographs, {
    width: SIDE,
    height: SIDE,
    ...NORMALISATION,
    dtype: f32,
    out,
  });

/** Brings the photographs of the numbers to the device, into a tensor for as many. */
type Fill = (numbers: readonly number[], photographs: Photographs) => DeviceOp<unknown>;

const decoding =
  (device: Device, files: readonly Buffer[]): Fill =>
  (numbers, out) =>
    imageLibrary.decodeImages(
      device,
      numbers.map((i) => files[i]!),
      { out },
    );
const uploading =
  (pixels: readonly Uint8Array[]): Fill =>
  (numbers, photographs) =>
    root.allOf(numbers.map((i, k) => (photographs.slice(k) as Photographs).write(pixels[i]!)));

/** The work of a batch is one operation, on one of as many streams as batches are in flight. */
class Classifier {
  private readonly engine: Engine;
  private readonly fill: Fill;
  /** The photographs and the model's input of each batch in flight. */
  private readonly photographs: readonly Photographs[];
  private readonly images: readonly Images[];
  private readonly batches;

  private constructor(
    device: Device,
    engine: Engine,
    fill: Fill,
    photographs: readonly Photographs[],
    images: readonly Images[],
  ) {
    this.engine = engine;
    this.fill = fill;
    this.photographs = photographs;
    this.images = images;
    this.batches = new ops.RoundRobin(device, AT_ONCE);
  }

  static async open(device: Device, engine: Engine, fill: Fill): Promise<Classifier> {
    const photographs = await Promise.all(
      Array.from({ length: AT_ONCE }, () => device.uninitialized(u8, [BATCH, HEIGHT, WIDTH, 3])),
    );
    const images = await Promise.all(
      Array.from({ length: AT_ONCE }, () => device.uninitialized(f32, [BATCH, 3, SIDE, SIDE])),
    );
    return new Classifier(device, engine, fill, photographs, images as unknown as Images[]);
  }

  async classify(numbers: readonly number[], place: number): Promise<Iterable<number>> {
    const [photographs, image] = [this.photographs, this.images].map((all) =>
      all[place]!.slice([0, numbers.length]),
    ) as [Photographs, Images];
    const classes = this.fill(numbers, photographs)
      .andThen(() => letterbox(photographs, image))
      .andThen(() => this.engine.infer({ image: image as AnyTensor }))
      .andThen(({ logits }) =>
        root
          .value(logits as AnyTensor)
          .andThen((x) =>
            library
              .argmax(x as Images, { axis: 1 })
              .andThen((each) => (each as unknown as Tensor<'i32'>).read()),
          ),
      );
    return classes.schedule(this.batches) as unknown as Promise<Int32Array>;
  }

  close(): void {
    for (const each of [...this.photographs, ...this.images]) each.close();
    this.batches.close();
  }
}

/**
 * onnxruntime-node as its users have it: its provider for the device, pixels brought to its input
 * in JavaScript.
 */
function besideOnnxRuntime(from: From): LocalPeer {
  return {
    name: 'onnxruntime-node',
    bar: '>= 1.5',
    async start({ device, count }) {
      const { model, files, pixels } = await (material ??= prepared());
      const runtime = await import('onnxruntime-node').catch((cause: unknown) => {
        throw new PeerAbsent('onnxruntime-node is not installed', { cause });
      });
      const sharp = await loadSharp();
      const session = await runtime.InferenceSession.create(model, {
        executionProviders: [device.kind === 'cuda' ? 'cuda' : 'cpu'],
      }).catch((error: unknown) => {
        throw new PeerAbsent(error instanceof Error ? error.message.split('\n')[0] : String(error));
      });
      const height = Math.round((HEIGHT * SIDE) / WIDTH);
      const above = Math.floor((SIDE - height) / 2);
      const resized = (i: number): Promise<Uint8Array> => {
        const input =
          from === 'files'
            ? sharp(files[i])
            : sharp(pixels[i], { raw: { width: WIDTH, height: HEIGHT, channels: 3 } });
        const extend = {
          top: above,
          bottom: SIDE - height - above,
          background: { r: 114, g: 114, b: 114 },
        };
        return input
          .resize(SIDE, height, { fit: 'fill', kernel: 'linear' })
          .extend(extend)
          .removeAlpha()
          .raw()
          .toBuffer();
      };
      const classify: Classify = async (numbers) => {
        const photographs = await Promise.all(numbers.map(resized));
        const data = new Float32Array(photographs.length * 3 * SIDE * SIDE);
        let to = 0;
        for (const photograph of photographs) {
          for (let channel = 0; channel < 3; channel++) {
            const factor = 1 / 255 / NORMALISATION.deviation[channel]!;
            const offset = NORMALISATION.mean[channel]! / NORMALISATION.deviation[channel]!;
            for (let at = channel; at < photograph.length; at += 3)
              data[to++] = photograph[at]! * factor - offset;
          }
        }
        const { logits } = await session.run({
          image: new runtime.Tensor('float32', data, [photographs.length, 3, SIDE, SIDE]),
        });
        return Array.from(photographs, (_, i) =>
          greatest((logits!.data as Float32Array).subarray(i * CLASSES, (i + 1) * CLASSES)),
        );
      };
      return {
        async round() {
          await classifyAll(BATCH, classify, 1);
          const { classes, seconds, stall } = await classifyAll(
            photographsOf({ device, count }),
            classify,
          );
          return {
            samples: [classes.length / seconds],
            notes: {
              'stall, ms': stall,
              'as ours':
                classes.filter((each, i) => each === ours?.[i % DIFFERENT]).length / classes.length,
            },
          };
        },
        close: () => session.release(),
      };
    },
  };
}

function greatest(values: Float32Array): number {
  let at = 0;
  for (let i = 1; i < values.length; i++) if (values[i]! > values[at]!) at = i;
  return at;
}

const rows = [
  ['files', 'JPEG files'],
  ['pixels', 'pixels in memory'],
] as const;

function pyTorch(name: string, from: string): ProgramPeer {
  return {
    name,
    bar: '>= 1.5',
    program: 'ResNet-50 in PyTorch',
    request: async ({ count }) =>
      `${from} ${(await (material ??= prepared())).folder.path} ${count(PHOTOGRAPHS)} ${BATCH}`,
  };
}

export const classification: readonly Benchmark[] = rows.map(([from, what]) => ({
  area: 'inference',
  name: `classification of 1000 photographs, from ${what}, batches of 32`,
  unit: '1/s',
  statistic: 'median',
  rounds: 3,
  peers: [
    pyTorch('PyTorch eager', from),
    ...(from === 'files' ? [pyTorch('PyTorch eager, decoding on the GPU', 'files-on-gpu')] : []),
    besideOnnxRuntime(from),
  ],
  start: contender(from),
}));
