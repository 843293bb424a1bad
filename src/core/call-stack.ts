/** Call stacks, with positions as V8 counts them: in the text that runs, before any source map. */

/** One call. Line and column count from 1. */
export interface StackFrame {
  /**
   * A path, a file: URL, or the name that a script gave itself
   * (`webpack-internal:///./src/app.ts`).
   */
  readonly file: string;
  readonly line: number;
  readonly column: number;
}

/** Frames that are searched for a kernel's own, at most. */
const FRAMES = 24;

/**
 * The calls that led here, the nearest first, without `below` and what it called. V8 itself gives
 * the positions: under tsx, vitest and `--enable-source-maps` the text of `Error.stack` refers to
 * the original files, not to the text that runs.
 */
export function captureStack(below: (...args: never[]) => unknown): readonly StackFrame[] {
  const { stackTraceLimit } = Error;
  // eslint-disable-next-line @typescript-eslint/unbound-method -- put back as it was
  const { prepareStackTrace } = Error;
  const holder: { stack?: unknown } = {};
  try {
    Error.stackTraceLimit = FRAMES;
    Error.prepareStackTrace = (_error, sites) => sites;
    Error.captureStackTrace(holder, below);
    const sites = holder.stack;
    return Array.isArray(sites) ? sites.flatMap((site) => frameOf(site as NodeJS.CallSite)) : [];
  } finally {
    Error.stackTraceLimit = stackTraceLimit;
    Error.prepareStackTrace = prepareStackTrace;
  }
}

function frameOf(site: NodeJS.CallSite): StackFrame[] {
  const file = site.getScriptNameOrSourceURL() ?? site.getFileName();
  const line = site.getLineNumber();
  const column = site.getColumnNumber();
  return typeof file === 'string' &&
    file !== '' &&
    !file.startsWith('node:') &&
    line !== null &&
    column !== null
    ? [{ file, line, column }]
    : [];
}

/** The calls of an `Error.stack`. */
export function parseStack(stack: string): readonly StackFrame[] {
  return stack.split('\n').flatMap((text) => {
    const match = /^\s+at (?:.* \()?(?:async )?(.+?):(\d+):(\d+)\)?$/.exec(text);
    return match === null || match[1]!.startsWith('node:')
      ? []
      : [{ file: match[1]!, line: Number(match[2]), column: Number(match[3]) }];
  });
}

/** Frames that are searched for one outside of the library, at most. */
const CALLERS = 24;

/** The calls that led here as text, this one first. */
export function stackHere(): string {
  const { stackTraceLimit } = Error;
  Error.stackTraceLimit = CALLERS;
  const { stack = '' } = new Error('here');
  Error.stackTraceLimit = stackTraceLimit;
  return stack;
}

/** The folder that contains all files of the library: its sources, or what is built from them. */
function libraryFolder(ownFile: string): string {
  return ownFile
    .replace(/(?:[\\/]core[\\/]call-stack\.[jt]s|[\\/][^\\/]*)(?:\?.*)?$/, '/')
    .replaceAll('\\', '/');
}

/** The file of one line of a stack; '' where it has none, or is Node's own. */
const fileOf = (frame: string): string => parseStack(frame)[0]?.file ?? '';

/** The lines of {@link stackHere} that are calls, and those of them outside of the library. */
export function splitStack(stack: string): { all: string[]; outside: string[] } {
  const all = stack.split('\n').filter((line) => /^\s+at /.test(line));
  const library = libraryFolder(fileOf(all[0] ?? ''));
  const outside = all.filter((frame) => {
    const file = fileOf(frame).replaceAll('\\', '/');
    return file !== '' && !file.startsWith(library);
  });
  return { all, outside };
}

/**
 * The calls from outside of the library, the nearest first. Where the library is bundled with the
 * program, all calls.
 */
export function callersOf(stack: string): string {
  const { all, outside } = splitStack(stack);
  return (outside.length > 0 ? outside : all.slice(1)).join('\n');
}
