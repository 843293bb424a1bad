/** Compiles stand-ins for the receivers of NVTX calls: a profiler's library, and libnvToolsExt. */
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

import { loadKoffi } from '../../../native/koffi.js';

export type ToolKind = 'tool' | 'refusing tool' | 'idle tool' | 'libnvToolsExt';

const FLAGS: Readonly<Record<ToolKind, readonly string[]>> = {
  tool: ['-DTOOL'],
  'refusing tool': ['-DTOOL', '-DREFUSES'],
  'idle tool': ['-DTOOL', '-DIDLE'],
  libnvToolsExt: [],
};

/** A library that was built in `folder`, and its record of calls. */
export class NvtxTool {
  readonly path: string;
  private readonly log: () => string;
  private readonly forget: () => void;

  constructor(folder: string, kind: ToolKind) {
    this.path = join(
      folder,
      kind === 'libnvToolsExt' ? 'libnvToolsExt.so.1' : `${kind.replace(' ', '-')}.so`,
    );
    const source = fileURLToPath(new URL('./nvtx-tool.c', import.meta.url));
    execFileSync('gcc', [
      '-shared',
      '-fPIC',
      '-O1',
      '-Wno-unused-function',
      ...FLAGS[kind],
      source,
      '-o',
      this.path,
    ]);
    const library = loadKoffi().load(this.path);
    this.log = library.func('const char* tool_log()') as () => string;
    this.forget = library.func('void tool_forget()') as () => void;
  }

  /** Returns the lines recorded since the last call of this. */
  take(): string[] {
    const lines = this.log()
      .split('\n')
      .filter((line) => line !== '');
    this.forget();
    return lines;
  }
}
