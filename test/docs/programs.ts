/**
 * The programs in the pages of docs/: every TypeScript block is one, with the output of each
 * console.log in a comment after it.
 */
import { mkdtemp, readFile, readdir, realpath, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { repository } from '../project/entry-points.js';

export interface DocumentedProgram {
  /** The page and the heading of the program. */
  title: string;
  /** Without extension. */
  file: string;
  text: string;
  /** The expected output lines, from its comments. */
  prints: string[];
}

/** The programs of a page, and the PTX that they read from kernels.ptx. */
export function programsOf(
  page: string,
  markdown: string,
): { programs: DocumentedProgram[]; ptx: string } {
  const programs: DocumentedProgram[] = [];
  let ptx = '';
  let heading = '';
  for (const [, title, language, text = ''] of markdown.matchAll(
    /^#+ ([^\n]*)$|^```(\w+)\n(.*?)^```$/gms,
  )) {
    if (title !== undefined) heading = title;
    if (language === 'ptx') ptx += text;
    if (language !== 'ts') continue;
    const prints = [...text.matchAll(/console\.log\(.*\);? \/\/ (.*)$/gm)].map(
      ([, line = '']) => line,
    );
    programs.push({
      title: `${page}, ${heading}`,
      file: `${page.replace('.md', '')}-${programs.length + 1}`,
      text,
      prints,
    });
  }
  return { programs, ptx };
}

/** Every program of docs/. */
export async function documentedPrograms(): Promise<{
  programs: DocumentedProgram[];
  ptx: string;
}> {
  const folder = join(repository, 'docs');
  const pages = (await readdir(folder)).filter((name) => name.endsWith('.md')).sort();
  const found = await Promise.all(
    pages.map(async (page) => programsOf(page, await readFile(join(folder, page), 'utf8'))),
  );
  return {
    programs: found.flatMap(({ programs }) => programs),
    ptx: found.map(({ ptx }) => ptx).join(''),
  };
}

/** A folder outside the repository, for as long as the tests run. */
export class ProgramFolder {
  readonly path: string;

  private constructor(path: string) {
    this.path = path;
  }

  static async create(): Promise<ProgramFolder> {
    return new ProgramFolder(await realpath(await mkdtemp(join(tmpdir(), 'async-cuda-docs-'))));
  }

  async write(name: string, text: string): Promise<string> {
    const path = join(this.path, name);
    await writeFile(path, text);
    return path;
  }

  async remove(): Promise<void> {
    await rm(this.path, { recursive: true, force: true });
  }
}
