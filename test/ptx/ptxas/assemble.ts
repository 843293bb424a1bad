/** NVIDIA's assembler, where there is one: which lines of a text it refuses, and why. It runs without a GPU. */
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export interface Refusal {
  /** 0 where ptxas names none. */
  line: number;
  message: string;
}

const folder = mkdtempSync(join(tmpdir(), 'async-cuda-ptxas-'));
process.on('exit', () => { rmSync(folder, { recursive: true, force: true }); });
let files = 0;

/** `PTXAS` names the program; default: the one on the path. */
export const PTXAS = process.env.PTXAS ?? 'ptxas';

/** All that ptxas has against a text; empty where it accepts it. */
export async function assemble(text: string, arch: string): Promise<Refusal[]> {
  const file = join(folder, `${files++}.ptx`);
  writeFileSync(file, text);
  const [code, output] = await new Promise<[unknown, string]>(resolve => {
    execFile(PTXAS, [`-arch=${arch}`, '-O0', '-o', '/dev/null', file], { maxBuffer: 1 << 26 }, (error, stdout, stderr) => {
      resolve([error?.code, stdout + stderr]);
    });
  });
  rmSync(file, { force: true });
  if (code === undefined) return [];
  if (code === 'ENOENT') throw new Error(`${PTXAS} cannot be run; set PTXAS (pip download nvidia-cuda-nvcc has one)`);
  const refusals: Refusal[] = [];
  for (const line of output.split('\n')) {
    const place = /, line (\d+); (?:error|fatal) *: (.*)/.exec(line);
    if (place) refusals.push({ line: Number(place[1]), message: place[2]! });
  }
  return refusals.length ? refusals : [{ line: 0, message: output.split('\n')[0] ?? '' }];
}
