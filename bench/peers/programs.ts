/** The peer programs: the list, how each is started, and those that run. */
import { fileURLToPath } from 'node:url';

import { compileC, compileCudaProgram, compileForThisMachine } from './compile.js';
import { DETECTOR, MATRIX, RESNET, onnxRuntimeLibrary } from './onnxruntime.js';
import type { Subject } from './onnxruntime.js';
import { PeerAbsent, Program } from './program.js';

export const KERNELS = fileURLToPath(new URL('../kernels/', import.meta.url));

const PYTHON = process.env.PYTHON ?? 'python3';

/**
 * Command and first arguments; all are then given the GPU's number and the folder of the kernels.
 */
const COMMANDS = {
  launches: () => compileC('launches'),
  copies: () => compileC('copies'),
  products: () => compileC('products'),
  cuBLAS: () => compileC('cublas'),
  NPP: () => compileC('npp'),
  CUB: () => compileCudaProgram('sorts'),
  'cuda.core': () => [PYTHON, here('python/with_cuda_core.py')],
  CuPy: () => [PYTHON, here('python/with_cupy.py')],
  PyTorch: () => [PYTHON, here('python/with_pytorch.py')],
  'attention in PyTorch': () => [PYTHON, here('python/with_pytorch_attention.py')],
  'products in PyTorch': () => [PYTHON, here('python/with_pytorch_products.py')],
  'ResNet-50 in PyTorch': () => [PYTHON, here('python/with_pytorch_resnet.py')],
  torchvision: () => [PYTHON, here('python/with_torchvision.py')],
  Triton: () => [PYTHON, here('python/with_triton.py')],
  kernels: () => compileForThisMachine('kernels'),
  'ONNX Runtime': () => byOnnxRuntime(DETECTOR),
  'ResNet-50 in ONNX Runtime': () => byOnnxRuntime(RESNET),
  'a matrix in ONNX Runtime': () => byOnnxRuntime(MATRIX),
  "Numba's simulator": () => [PYTHON, here('python/with_numba_simulator.py')],
} satisfies Record<string, () => string[] | Promise<string[]>>;

export type ProgramName = keyof typeof COMMANDS;

/** Programs that run on the machine's cores and need no GPU. */
const ON_CORES: ReadonlySet<ProgramName> = new Set<ProgramName>([
  'kernels',
  'ONNX Runtime',
  'ResNet-50 in ONNX Runtime',
  'a matrix in ONNX Runtime',
  "Numba's simulator",
]);

async function byOnnxRuntime({ file, input, outputs }: Subject): Promise<string[]> {
  return [
    ...(await compileForThisMachine('onnxruntime')),
    await onnxRuntimeLibrary(),
    await file(),
    input,
    ...outputs,
  ];
}

function here(path: string): string {
  return fileURLToPath(new URL(path, import.meta.url));
}

export class Programs {
  private readonly ordinal: number | undefined;
  private readonly running = new Map<ProgramName, Promise<Program>>();

  /**
   * @param ordinal the GPU's number; undefined where the device is none, and every program is
   *   absent
   */
  constructor(ordinal: number | undefined) {
    this.ordinal = ordinal;
  }

  /** Whether a program can run here at all. */
  possible(name: ProgramName): boolean {
    return this.ordinal !== undefined || ON_CORES.has(name);
  }

  /**
   * Starts all of these side by side and waits for them, so that none starts up while something is
   * measured. Returns a line for each: its versions, or why it is absent.
   */
  async start(names: readonly ProgramName[]): Promise<string[]> {
    const results = await Promise.allSettled(names.map((name) => this.get(name)));
    return results.map((result, i) => {
      if (result.status === 'rejected')
        return `${names[i]}: absent: ${(result.reason as Error).message}`;
      return `${names[i]}: ${Object.entries(result.value.versions)
        .map((pair) => pair.join(' '))
        .join(', ')}`;
    });
  }

  /** @throws PeerAbsent */
  get(name: ProgramName): Promise<Program> {
    let program = this.running.get(name);
    if (program === undefined) {
      program = this.launch(name);
      program.catch(() => undefined);
      this.running.set(name, program);
    }
    return program;
  }

  async close(): Promise<void> {
    for (const result of await Promise.allSettled(this.running.values())) {
      if (result.status === 'fulfilled') result.value.close();
    }
  }

  private async launch(name: ProgramName): Promise<Program> {
    if (!this.possible(name)) throw new PeerAbsent('it needs a GPU');
    const [command, ...args] = await COMMANDS[name]();
    return Program.start(name, command!, [...args, String(this.ordinal ?? 0), KERNELS]);
  }
}
