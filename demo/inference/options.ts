/** The command line of the demo of inference. */
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

import type { TaskName } from './tasks.js';

export interface Options {
  readonly task: TaskName;
  readonly images: readonly string[];
  readonly out: string;
  /** A name for `Device.open`; undefined for the best device. */
  readonly device: string | undefined;
  /** What runs the models. */
  readonly engine: 'auto' | 'tensorrt' | 'onnxruntime';
  readonly help: boolean;
}

export const HELP = `Reads the text on photographs with ONNX models, and draws boxes around it.

Usage: npm run demo:inference -- [images] [options]

  images           PNG or JPEG files; default: those of the task in demo/inference
  --task NAME      text, or digits, which a smaller model of this project's own finds; default: text
  --device NAME    cpu, cpu:N, cuda or cuda:N; default: the first NVIDIA GPU, else the CPU device
  --engine NAME    auto, tensorrt or onnxruntime; default: auto, which is TensorRT on a GPU where it
                   is installed, else ONNX Runtime
  --out FILE       where to write the picture, a PNG; default: demo/out/text.png or digits.png
  --help           this text
`;

const PHOTOGRAPHS: Readonly<Record<TaskName, readonly string[]>> = {
  text: ['cafe.jpg', 'desk.jpg', 'parcel.jpg', 'station.jpg'].map((name) =>
    besideThisFile(`photographs/${name}`),
  ),
  digits: ['menu.jpg', 'table.jpg', 'label.jpg', 'tickets.jpg'].map((name) =>
    besideThisFile(`digits/photographs/${name}`),
  ),
};

/** @throws Error with a one-line message when the arguments make no sense. */
export function parseOptions(args: string[]): Options {
  const { values, positionals } = parseArgs({
    args,
    allowPositionals: true,
    options: {
      task: { type: 'string', default: 'text' },
      device: { type: 'string' },
      engine: { type: 'string', default: 'auto' },
      out: { type: 'string' },
      help: { type: 'boolean', short: 'h', default: false },
    },
  });
  const task = oneOf('--task', ['text', 'digits'], values.task);
  return {
    task,
    images: positionals.length > 0 ? positionals : PHOTOGRAPHS[task],
    out: values.out ?? besideThisFile(`../out/${task}.png`),
    device: values.device,
    engine: oneOf('--engine', ['auto', 'tensorrt', 'onnxruntime'], values.engine),
    help: values.help,
  };
}

function oneOf<const A extends string>(option: string, names: readonly A[], given: string): A {
  const found = names.find((name) => name === given);
  if (found === undefined)
    throw new Error(
      `${option}: expected ${names.slice(0, -1).join(', ')} or ${names.at(-1)}, got ${given}`,
    );
  return found;
}

function besideThisFile(path: string): string {
  return fileURLToPath(new URL(path, import.meta.url));
}
