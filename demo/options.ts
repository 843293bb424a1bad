/** The demo's command line. */
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

export interface Options {
  readonly image: string;
  readonly out: string;
  /** Where a trace of several photographs at once goes; undefined for none. */
  readonly trace: string | undefined;
  /** A name for `Device.open`; undefined for the best device. */
  readonly device: string | undefined;
  /** Whose kernels run. */
  readonly kernels: 'cuda' | 'typescript';
  readonly help: boolean;
}

export const HELP = `Runs a photograph through seven kernels on two streams and draws what came out.

Usage: npm run demo -- [image] [options]

  image            a PNG or JPEG file; default: demo/images/coffee.png
  --device NAME    cpu, cpu:N, cuda or cuda:N; default: the first NVIDIA GPU, else the CPU device
  --kernels WHICH  cuda or typescript: the same kernels, written in CUDA C++ or in TypeScript;
                   default: typescript
  --out FILE       where to write the picture, a PNG; default: demo/out/pipeline.png. Beside it goes
                   a contact sheet of image operations by our kernels and, where it is installed,
                   by NVIDIA's NPP: demo/out/pipeline-engines.png
  --trace FILE     also runs four photographs at once, and writes a trace of that run for
                   https://ui.perfetto.dev and a picture of the trace, FILE.png
  --help           this text
`;

/** @throws Error with a one-line message when the arguments make no sense. */
export function parseOptions(args: string[]): Options {
  const { values, positionals } = parse(args);
  if (positionals.length > 1)
    throw new Error(`expected one image, got ${positionals.length}: ${positionals.join(', ')}`);
  return {
    image: positionals[0] ?? besideThisFile('images/coffee.png'),
    out: values.out ?? besideThisFile('out/pipeline.png'),
    trace: values.trace,
    device: values.device,
    kernels: oneOf(values.kernels, ['cuda', 'typescript']),
    help: values.help,
  };
}

function parse(args: string[]) {
  return parseArgs({
    args,
    allowPositionals: true,
    options: {
      device: { type: 'string' },
      out: { type: 'string' },
      trace: { type: 'string' },
      kernels: { type: 'string', default: 'typescript' },
      help: { type: 'boolean', short: 'h', default: false },
    },
  });
}

function oneOf<const T extends string>(value: string, known: readonly T[]): T {
  const found = known.find((each) => each === value);
  if (found === undefined)
    throw new Error(`--kernels: expected ${known.join(' or ')}, got ${value}`);
  return found;
}

function besideThisFile(path: string): string {
  return fileURLToPath(new URL(path, import.meta.url));
}
