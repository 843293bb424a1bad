/**
 * Machine code as text, from NVIDIA's disassemblers. They come with the CUDA toolkit and not with
 * the driver.
 */
import { execFile } from 'node:child_process';
import { access, constants, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { promisify } from 'node:util';

import { CudaError } from '../core/index.js';

/**
 * Programs that print the instructions of a cubin, with their arguments. The first that is found is
 * used, in the first folder.
 */
const TOOLS = [
  ['nvdisasm', ['-c']],
  ['cuobjdump', ['-sass']],
] as const;

/** The folder into which NVIDIA's installers put the toolkit. */
const TOOLKIT = '/usr/local/cuda';

/** The limit of a program's output: no kernel's text is longer. */
const MOST_BYTES = 1 << 28;

type Environment = Readonly<Record<string, string | undefined>>;

/** Folders in which tools are searched: those of PATH, then the toolkit's. */
function folders(env: Environment, toolkit: string): string[] {
  const { PATH: path = '', CUDA_HOME: home = '', CUDA_PATH: other = '' } = env;
  return [
    ...path.split(delimiter),
    ...[home, other, toolkit]
      .filter((folder) => folder !== '')
      .map((folder) => join(folder, 'bin')),
  ].filter((folder) => folder !== '');
}

/**
 * Gives the instructions of a cubin as text. It rejects with ERR_CUDA_UNSUPPORTED where there is no
 * disassembler.
 */
export async function disassemble(
  cubin: Uint8Array,
  env: Environment = process.env,
  toolkit = TOOLKIT,
): Promise<string> {
  const places = folders(env, toolkit);
  for (const folder of places) {
    for (const [tool, args] of TOOLS) {
      const program = join(folder, tool);
      if (!(await isExecutable(program))) continue;
      return run(program, args, cubin);
    }
  }
  throw new CudaError(
    'ERR_CUDA_UNSUPPORTED',
    `kernel.sass(): found neither ${TOOLS.map(([tool]) => tool).join(' nor ')} in ` +
      `${places.join(', ')}. ` +
      'They come with the CUDA toolkit, or alone: pip install nvidia-cuda-nvdisasm puts ' +
      'nvdisasm in a bin folder, which PATH has to name. kernel.ptx(device) needs neither.',
  );
}

async function run(program: string, args: readonly string[], cubin: Uint8Array): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'async-cuda-sass-'));
  try {
    const file = join(folder, 'kernel.cubin');
    await writeFile(file, cubin);
    const { stdout } = await promisify(execFile)(program, [...args, file], {
      maxBuffer: MOST_BYTES,
    });
    return stdout;
  } catch (error) {
    throw new CudaError(
      'ERR_CUDA_UNSUPPORTED',
      `kernel.sass(): ${program} failed: ${(error as Error).message}`,
      { cause: error },
    );
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function isExecutable(path: string): Promise<boolean> {
  try {
    await access(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
