/**
 * ffmpeg as a child process. It is no dependency: it is started from the PATH, or from the path
 * that the caller gives, when the first frame is requested.
 */
import { spawn } from 'node:child_process';
import type { ChildProcess, StdioOptions } from 'node:child_process';
import { once } from 'node:events';

import { CudaError, CudaLibraryError } from '../../core/index.js';
import { checkPath, checkText, invalid, pathOfUrl } from '../../ground/arguments.js';
import { isUrl } from '../../ground/other-realms.js';

/** Lines of its standard error that an error shows. */
const SHOWN_LINES = 6;
const ALWAYS = ['-nostdin', '-hide_banner', '-nostats'];

/** The size of a picture. */
export interface Extent {
  readonly width: number;
  readonly height: number;
}

export class FfmpegProcess {
  readonly child: ChildProcess;
  private readonly command: string;
  private readonly lines: string[] = [];
  private rest = '';
  private inOutput = false;
  private size: Extent | undefined = undefined;
  private sizeKnown: (() => void) | undefined = undefined;
  private readonly sized = new Promise<void>((resolve) => {
    this.sizeKnown = resolve;
  });
  /**
   * Resolves when the process has ended and its messages were read. Its output may still be unread,
   * for which the event `close` would wait.
   */
  private readonly closed: Promise<void>;

  private constructor(child: ChildProcess, command: string) {
    this.child = child;
    this.command = command;
    this.closed = Promise.all([once(child, 'exit'), once(child.stderr!, 'close')]).then(() => {
      this.take('\n');
    });
    this.closed.catch(() => undefined);
    child.stderr!.setEncoding('utf8').on('data', (text: string) => {
      this.take(text);
    });
    // After the end of a child Node drops output that has no listener.
    child.stdout?.on('readable', () => undefined);
    // Errors of pipes of a child that ended early are ignored: its exit status has the reason.
    for (const stream of [child.stdin, child.stdout, child.stderr])
      stream?.on('error', () => undefined);
  }

  /**
   * Starts the program.
   *
   * @throws CudaError with code ERR_CUDA_NO_LIBRARY where there is no such program
   */
  static async start(
    program: string,
    args: readonly string[],
    stdio: StdioOptions,
  ): Promise<FfmpegProcess> {
    const child = spawn(program, [...ALWAYS, ...args], { stdio, windowsHide: true });
    const started = new FfmpegProcess(child, `${program} ${args.join(' ')}`);
    try {
      await once(child, 'spawn');
    } catch (cause) {
      const { code } = cause as NodeJS.ErrnoException;
      const reason =
        code === 'ENOENT'
          ? `there is no program ${program}`
          : `${program} could not be started (${String(code)})`;
      throw new CudaError(
        'ERR_CUDA_NO_LIBRARY',
        `ffmpeg: ${reason}. ` +
          'Install ffmpeg (apt install ffmpeg, brew install ffmpeg, winget install ffmpeg), or ' +
          'pass its path as { ffmpeg }.',
        { cause },
      );
    }
    return started;
  }

  /**
   * Gives the size of the frames that it writes, from its messages; undefined where it has ended
   * without printing it.
   */
  async outputSize(): Promise<Extent | undefined> {
    await Promise.race([this.sized, this.closed]);
    return this.size;
  }

  /** Waits for its end. @throws CudaLibraryError, with its last lines, where it has failed */
  async succeeded(): Promise<void> {
    await this.closed;
    const { exitCode, signalCode } = this.child;
    if (exitCode === 0) return;
    const statusName = signalCode ?? `exit code ${String(exitCode)}`;
    const said = this.lines.slice(-SHOWN_LINES).join('\n');
    throw new CudaLibraryError(
      `ffmpeg failed (${statusName})${said === '' ? ', and said nothing' : `:\n${said}`}`,
      { library: 'ffmpeg', call: this.command, status: exitCode ?? -1, statusName },
    );
  }

  /** Kills it, and waits for its end. */
  async kill(): Promise<void> {
    const { child } = this;
    const gone =
      child.exitCode !== null || child.signalCode !== null ? undefined : once(child, 'exit');
    // Its output is not needed any more, so that it need not end in an orderly way.
    child.kill('SIGKILL');
    for (const stream of [child.stdin, child.stdout, child.stderr]) stream?.destroy();
    await gone;
  }

  private take(text: string): void {
    const lines = (this.rest + text).split(/[\r\n]+/);
    this.rest = lines.pop()!;
    for (const line of lines) {
      if (line.trim() === '') continue;
      if (this.lines.push(line.trimEnd()) > 64) this.lines.splice(0, 32);
      this.look(line);
    }
  }

  /**
   * `Output #0, rawvideo, to 'pipe:1':`, some lines later `Stream #0:0: Video: rawvideo (…), rgb24,
   * 1920x1080 [SAR …], …`
   */
  private look(line: string): void {
    this.inOutput ||= /\bOutput #0\b/.test(line);
    if (!this.inOutput || this.size !== undefined) return;
    const found = /Stream #0:0.*?: Video: .*?, (\d+)x(\d+)\b/.exec(line);
    if (found === null) return;
    this.size = { width: Number(found[1]), height: Number(found[2]) };
    this.sizeKnown!();
  }
}

/** Gives a file or a URL as an argument of ffmpeg. @throws CudaArgumentError */
export function ffmpegPlace(argument: string, place: unknown): string {
  if (isUrl(place))
    return checkedPlace(
      argument,
      place.protocol === 'file:' ? pathOfUrl(argument, place) : place.href,
    );
  return checkedPlace(argument, place);
}

/** A name that begins with a hyphen is a file here; ffmpeg would read an option. */
function checkedPlace(argument: string, place: unknown): string {
  checkPath(argument, place, 'a path or a URL');
  return place.startsWith('-') ? `./${place}` : place;
}

/** Options of ffmpeg. @throws CudaArgumentError */
export function checkArguments(argument: string, args: unknown): asserts args is readonly string[] {
  if (!Array.isArray(args) || ![...(args as unknown[])].every((each) => typeof each === 'string'))
    throw invalid(argument, "a list of strings, such as ['-vf', 'fps=5']", args);
  args.forEach((each, i) => {
    checkText(`${argument}[${i}]`, each);
  });
}
