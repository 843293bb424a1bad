/**
 * Machine code from the bytecode of Tile IR, by NVIDIA's assembler: a program, which runs beside
 * the event loop. What it made is kept on disk by the bytecode, the target and the assembler.
 *
 * A machine without the assembler uses what is in the cache, and exported machine code: files in
 * the folder that `ASYNC_CUDA_TILEIR_CUBINS` names.
 */
import { execFile, spawnSync } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { mkdir, mkdtemp, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';

import { KernelSourceError } from '../compiler/source-error.js';
import { CudaError } from '../core/index.js';
import { cubinEntry, openDiskCache } from '../core/kept.js';
import { TILEIRAS, findProgram, howToGetProgram } from '../native/find-program.js';
import type { Tried } from '../native/find.js';

/** What is assembled. */
export interface Assembly {
  readonly bytecode: Uint8Array;
  readonly capability: readonly [major: number, minor: number];
  /** Whether the machine code names lines of the user's file. */
  readonly lines: boolean;
  /** The kernel's name and text, for errors. */
  readonly name: string;
  readonly text: string;
}

/** The targets of the assembler, as it names them. */
const TARGETS = [80, 86, 87, 88, 89, 90, 100, 103, 107, 110, 120, 121];
const EXPORTED = 'ASYNC_CUDA_TILEIR_CUBINS';

/** @throws CudaError with code ERR_CUDA_UNSUPPORTED for a GPU that Tile IR is not assembled for */
function targetOf({ capability: [major, minor], name }: Assembly): string {
  const number = major * 10 + minor;
  if (TARGETS.includes(number)) return `sm_${number}`;
  throw new CudaError(
    'ERR_CUDA_UNSUPPORTED',
    `kernel '${name}': Tile IR is assembled for compute capabilities 8.0 and newer, and the ` +
      `device has ${major}.${minor}. Leave the options' backend out.`,
  );
}

/** The name of the file that machine code is exported to. */
const fileOf = ({ bytecode, lines }: Assembly, target: string): string =>
  `${createHash('sha256').update(bytecode).digest('hex')}${lines ? '.lines' : ''}.${target}.cubin`;

function exportedPath(assembly: Assembly, target: string): string | undefined {
  const folder = process.env[EXPORTED] ?? '';
  return folder === '' ? undefined : join(folder, fileOf(assembly, target));
}

/** What is needed to assemble, or to find what was assembled. */
interface Plan {
  readonly target: string;
  /** The assembler's path; undefined where there is none, in the places tried. */
  readonly program: string | undefined;
  readonly tried: readonly Tried[];
  /** The entry of this assembler's machine code, and that of any assembler's. */
  readonly entries: readonly [own: string, any: string];
}

function planOf(assembly: Assembly): Plan {
  const target = targetOf(assembly);
  const found = findProgram(TILEIRAS);
  const program = 'path' in found ? found.path : undefined;
  const of = [createHash('sha256').update(assembly.bytecode).digest('hex'), target, assembly.lines];
  return {
    target,
    program,
    tried: 'tried' in found ? found.tried : [],
    entries: [
      cubinEntry([...of, program === undefined ? undefined : identityOf(program)]),
      cubinEntry(of),
    ],
  };
}

/** The assembler's version, as its size and date tell it without starting it. */
function identityOf(program: string): string {
  const { size, mtimeMs } = statSync(program);
  return `${size} ${mtimeMs}`;
}

/** @throws CudaError with code ERR_CUDA_NO_LIBRARY */
function noAssembler({ name }: Assembly, { target, tried }: Plan): never {
  throw new CudaError(
    'ERR_CUDA_NO_LIBRARY',
    `kernel '${name}': ${TILEIRAS.name} (${TILEIRAS.file}) was not found, and no machine code of ` +
      `this kernel for ${target} is in the cache. ${howToGetProgram(TILEIRAS)} Or export the ` +
      `machine code where it is installed, by kernel.exportCubin(…), and set ${EXPORTED} to the ` +
      `folder.\nTried:\n${tried.map(({ path, reason }) => `  ${path}: ${reason}`).join('\n')}`,
  );
}

/** The error of the assembler, as one of the kernel's source. */
function refusal({ text }: Assembly, program: string, message: string): KernelSourceError {
  const folder = dirname(dirname(program));
  return new KernelSourceError(
    `NVIDIA's Tile IR assembler refused this kernel: ${message.trim()}`,
    `Where it says no more than that it failed, see whether ptxas and libnvvm.so.4 of its own ` +
      `version are in ${join(folder, 'bin')} and ${join(folder, 'lib')}; otherwise change the ` +
      `kernel, or leave the options' backend out.`,
    { text: 0, start: 0, end: text.length },
    text,
  );
}

const argumentsFor = ({ lines }: Assembly, target: string, from: string, to: string): string[] => [
  ...['--gpu-name', target, '--opt-level', '3'],
  ...(lines ? ['--lineinfo'] : []),
  ...['--output-file', to, from],
];

/**
 * Gives the machine code. It rejects with CudaError of code ERR_CUDA_NO_LIBRARY where there is no
 * assembler, and with KernelSourceError where the assembler refuses the kernel.
 */
export async function assemble(assembly: Assembly): Promise<Uint8Array> {
  const plan = planOf(assembly);
  const { target, program, entries } = plan;
  const exported = exportedPath(assembly, target);
  const given =
    exported === undefined ? undefined : await readFile(exported).catch(() => undefined);
  if (given !== undefined) return given;
  const cache = openDiskCache();
  const kept = await cache?.read(entries[program === undefined ? 1 : 0]);
  if (kept !== undefined) return kept;
  if (program === undefined) return noAssembler(assembly, plan);
  const cubin = await run(assembly, target, program);
  // No code waits for the writes.
  for (const entry of entries) void cache?.write(entry, cubin);
  return cubin;
}

async function run(assembly: Assembly, target: string, program: string): Promise<Uint8Array> {
  const folder = await mkdtemp(join(tmpdir(), 'async-cuda-tileir-'));
  try {
    const [from, to] = [join(folder, 'kernel.tileirbc'), join(folder, 'kernel.cubin')];
    await writeFile(from, assembly.bytecode);
    await new Promise<void>((resolve, reject) => {
      execFile(program, argumentsFor(assembly, target, from, to), (error, _, stderr) => {
        if (error === null) resolve();
        else reject(refusal(assembly, program, stderr === '' ? error.message : stderr));
      });
    });
    return await readFile(to);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** Does what {@link assemble} does, on a thread that blocks. */
export function assembleNow(assembly: Assembly): Uint8Array {
  const plan = planOf(assembly);
  const { target, program, entries } = plan;
  const exported = exportedPath(assembly, target);
  if (exported !== undefined && statSync(exported, { throwIfNoEntry: false }) !== undefined)
    return readFileSync(exported);
  const cache = openDiskCache();
  const kept = cache?.get(entries[program === undefined ? 1 : 0]);
  if (kept !== undefined) return kept;
  if (program === undefined) return noAssembler(assembly, plan);
  const folder = mkdtempSync(join(tmpdir(), 'async-cuda-tileir-'));
  try {
    const [from, to] = [join(folder, 'kernel.tileirbc'), join(folder, 'kernel.cubin')];
    writeFileSync(from, assembly.bytecode);
    const { status, stderr, error } = spawnSync(program, argumentsFor(assembly, target, from, to), {
      encoding: 'utf8',
    });
    if (status !== 0) throw refusal(assembly, program, error?.message ?? stderr);
    const cubin = readFileSync(to);
    for (const entry of entries) void cache?.write(entry, cubin);
    return cubin;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Writes the machine code to a file of the folder, whole or not at all, and gives its path. */
export async function exportAssembled(
  folder: string,
  assembly: Assembly,
  cubin: Uint8Array,
): Promise<string> {
  await mkdir(folder, { recursive: true });
  const path = join(folder, fileOf(assembly, targetOf(assembly)));
  const unfinished = `${path}.${randomBytes(6).toString('hex')}.tmp`;
  await writeFile(unfinished, cubin);
  await rename(unfinished, path);
  return path;
}
