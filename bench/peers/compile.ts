/**
 * Compiles a C peer at run time: with gcc, and for a GPU the toolkit's cuda.h; libcuda itself is
 * loaded by the program.
 */
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

import { scratchFolder } from '../scratch.js';
import { PeerAbsent } from './program.js';

const run = promisify(execFile);

/**
 * The command of the compiled `peers/c/NAME.c`, which needs no GPU and is optimised for this
 * machine. @throws PeerAbsent without gcc
 */
export function compileForThisMachine(name: string): Promise<string[]> {
  return compile(name, ['-O3', '-march=native', '-fopenmp'], ['-lm']);
}

/** The command of the compiled `peers/c/NAME.c`. @throws PeerAbsent without gcc or cuda.h */
export async function compileC(name: string): Promise<string[]> {
  const toolkits = [process.env.CUDA_HOME, process.env.CUDA_PATH, '/usr/local/cuda'].filter(
    (folder) => folder !== undefined,
  );
  const include = toolkits
    .map((folder) => join(folder, 'include'))
    .find((folder) => existsSync(join(folder, 'cuda.h')));
  if (include === undefined)
    throw new PeerAbsent(`no include/cuda.h in ${toolkits.join(', ')}; set CUDA_HOME`);
  return compile(name, ['-O2', '-pthread', `-I${include}`], ['-ldl']);
}

/**
 * The path of the machine code of `peers/cuda/NAME.cu`, compiled by nvcc. @throws PeerAbsent
 * without nvcc
 */
export async function compileCuda(
  name: string,
  [major, minor]: readonly [number, number],
): Promise<string> {
  const output = join(scratchFolder(), `${name}.cubin`);
  await nvcc(name, output, [`-arch=sm_${major}${minor}`, '-cubin']);
  return output;
}

/**
 * The command of the program `peers/cuda/NAME.cu`, compiled by nvcc for the GPUs of this machine.
 * @throws PeerAbsent without nvcc
 */
export async function compileCudaProgram(name: string): Promise<string[]> {
  const program = join(scratchFolder(), name);
  await nvcc(name, program, ['-arch=native', '-std=c++17']);
  return [program];
}

async function nvcc(name: string, output: string, options: readonly string[]): Promise<void> {
  const source = fileURLToPath(new URL(`cuda/${name}.cu`, import.meta.url));
  const found = [process.env.CUDA_HOME, process.env.CUDA_PATH, '/usr/local/cuda']
    .filter((folder) => folder !== undefined)
    .map((folder) => join(folder, 'bin/nvcc'))
    .find(existsSync);
  try {
    await run(found ?? 'nvcc', ['-O3', ...options, '-o', output, source]);
  } catch (error) {
    throw new PeerAbsent(
      error instanceof Error ? error.message.split('\n').slice(0, 3).join(' ') : String(error),
    );
  }
}

async function compile(
  name: string,
  options: readonly string[],
  libraries: readonly string[],
): Promise<string[]> {
  const program = join(scratchFolder(), name);
  const source = fileURLToPath(new URL(`c/${name}.c`, import.meta.url));
  try {
    await run('gcc', [...options, '-Wall', '-o', program, source, ...libraries]);
  } catch (error) {
    throw new PeerAbsent(
      error instanceof Error ? error.message.split('\n').slice(0, 3).join(' ') : String(error),
    );
  }
  return [program];
}
