/** The command line of the demo of inference. */
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

export interface Options {
  readonly images: readonly string[];
  readonly out: string;
  /** A name for `Device.open`; undefined for the best device. */
  readonly device: string | undefined;
  /** What runs the model; undefined for the best that is there. */
  readonly engine: 'tensorrt' | 'onnxruntime' | undefined;
  readonly help: boolean;
}

export const HELP = `Finds the printed digits on photographs with an ONNX model, and draws boxes around them.

Usage: npm run demo:inference -- [images] [options]

  images           PNG or JPEG files; default: those in demo/inference/photographs
  --device NAME    cpu, cpu:N, cuda or cuda:N; default: the first NVIDIA GPU, else the CPU device
  --engine NAME    tensorrt or onnxruntime; default: TensorRT on a GPU where it is installed, else ONNX Runtime
  --out FILE       where to write the picture, a PNG; default: demo/out/digits.png
  --help           this text
`;

const PHOTOGRAPHS = ['menu.jpg', 'table.jpg', 'label.jpg', 'tickets.jpg'];
const ENGINES = ['tensorrt', 'onnxruntime'] as const;

/** @throws Error with a one-line message when the arguments make no sense. */
export function parseOptions(args: string[]): Options {
  const { values, positionals } = parseArgs({
    args,
    allowPositionals: true,
    options: {
      device: { type: 'string' },
      engine: { type: 'string' },
      out: { type: 'string' },
      help: { type: 'boolean', short: 'h', default: false },
    },
  });
  return {
    images: positionals.length > 0 ? positionals : PHOTOGRAPHS.map((name) => besideThisFile(`photographs/${name}`)),
    out: values.out ?? besideThisFile('../out/digits.png'),
    device: values.device,
    engine: engineOf(values.engine),
    help: values.help,
  };
}

function engineOf(name: string | undefined): Options['engine'] {
  const found = ENGINES.find((each) => each === name);
  if (name !== undefined && found === undefined) throw new Error(`--engine: expected ${ENGINES.join(' or ')}, got ${name}`);
  return found;
}

function besideThisFile(path: string): string {
  return fileURLToPath(new URL(path, import.meta.url));
}
