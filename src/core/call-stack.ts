/** Where the running code is called from, as V8 counts it: in the text that runs, before any source map. */

/** One call. Line and column count from 1. */
export interface StackFrame {
  /** A path, a file: URL, or the name that a script gave itself (`webpack-internal:///./src/app.ts`). */
  readonly file: string;
  readonly line: number;
  readonly column: number;
}

/** More than this nobody looks through for a kernel's own frame. */
const FRAMES = 24;

/**
 * The calls that led here, the nearest first, without `below` and what it called. Asks V8 itself: under tsx, vitest and
 * `--enable-source-maps` the text in `Error.stack` is of the original files already, which says nothing about the text that runs.
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
    return Array.isArray(sites) ? sites.flatMap(site => frameOf(site as NodeJS.CallSite)) : [];
  } finally {
    Error.stackTraceLimit = stackTraceLimit;
    Error.prepareStackTrace = prepareStackTrace;
  }
}

function frameOf(site: NodeJS.CallSite): StackFrame[] {
  const file = site.getScriptNameOrSourceURL() ?? site.getFileName();
  const line = site.getLineNumber();
  const column = site.getColumnNumber();
  return typeof file === 'string' && file !== '' && !file.startsWith('node:') && line !== null && column !== null ? [{ file, line, column }] : [];
}

/** The calls of an `Error.stack`. */
export function parseStack(stack: string): readonly StackFrame[] {
  return stack.split('\n').flatMap(text => {
    const match = /^\s+at (?:.* \()?(?:async )?(.+?):(\d+):(\d+)\)?$/.exec(text);
    return match === null || match[1]!.startsWith('node:') ? [] : [{ file: match[1]!, line: Number(match[2]), column: Number(match[3]) }];
  });
}
