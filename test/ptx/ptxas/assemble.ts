/**
 * NVIDIA's assembler, where there is one: which lines of a text it refuses, and why. It runs
 * without a GPU.
 */
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
process.on('exit', () => {
  rmSync(folder, { recursive: true, force: true });
});
let files = 0;

/** `PTXAS` names the program; default: the one on the path. */
export const PTXAS = process.env.PTXAS ?? 'ptxas';

/** All errors of ptxas for a text; empty where it accepts the text. */
export async function assemble(text: string, arch: string): Promise<Refusal[]> {
  const file = join(folder, `${files++}.ptx`);
  writeFileSync(file, text);
  const [code, output] = await new Promise<[unknown, string]>((resolve) => {
    execFile(
      PTXAS,
      [`-arch=${arch}`, '-O0', '-o', '/dev/null', file],
      { maxBuffer: 1 << 26 },
      (error, stdout, stderr) => {
        resolve([error?.code, stdout + stderr]);
      },
    );
  });
  rmSync(file, { force: true });
  if (code === undefined) return [];
  if (code === 'ENOENT')
    throw new Error(`${PTXAS} cannot be run; set PTXAS (pip download nvidia-cuda-nvcc has one)`);
  const refusals: Refusal[] = [];
  for (const line of output.split('\n')) {
    const place = /, line (\d+); (?:error|fatal) *: (.*)/.exec(line);
    if (place) refusals.push({ line: Number(place[1]), message: place[2]! });
  }
  return refusals.length ? refusals : [{ line: 0, message: output.split('\n')[0] ?? '' }];
}

/**
 * The errors of ptxas for each of the lines of one kernel, which begin `before` lines after its
 * beginning.
 */
export async function refusedLines(
  lines: readonly string[],
  kernel: (lines: readonly string[]) => string,
  before: number,
  arch: string,
): Promise<(string | undefined)[]> {
  const refused = lines.map((): string | undefined => undefined);
  const judge = async (batch: readonly number[]): Promise<void> => {
    if (!batch.length) return;
    const refusals = await assemble(kernel(batch.map((index) => lines[index]!)), arch);
    if (!refusals.length) return;
    const named = refusals.filter(({ line }) => line > before && line <= before + batch.length);
    const sure = named.filter(
      ({ message }) => batch.length === 1 || !message.startsWith('Parsing error'),
    );
    for (const { line, message } of sure) refused[batch[line - before - 1]!] = message;
    // ptxas stops at some errors: the remaining lines may not have been read.
    if (sure.length) await judge(batch.filter((index) => refused[index] === undefined));
    else if (named.length) {
      // A syntax error may be that of the line before.
      const alone = new Set(
        named.flatMap(({ line }) => [line - before - 2, line - before - 1]).filter((at) => at >= 0),
      );
      for (const at of alone) await judge([batch[at]!]);
      await judge(batch.filter((_, at) => !alone.has(at)));
    } else if (batch.length === 1) refused[batch[0]!] = refusals[0]!.message;
    else
      for (const half of [batch.slice(0, batch.length >> 1), batch.slice(batch.length >> 1)])
        await judge(half);
  };
  for (let at = 0; at < lines.length; at += 100)
    await judge(lines.slice(at, at + 100).map((_, index) => at + index));
  return refused;
}
