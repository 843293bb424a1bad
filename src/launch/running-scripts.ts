/**
 * The text of scripts as they run, from V8's own debugger interface: what tsx, vitest and webpack's eval modules made
 * is in no file. It is asked only when a place has to be shown that the files do not tell.
 */
import { pathToFileURL } from 'node:url';

export interface RunningScript {
  readonly text: string;
  /** What its `sourceMappingURL` says; empty where there is none. */
  readonly mapUrl: string;
  /** What V8 adds to line and to the first line's column when it counts positions in it. */
  readonly startLine: number;
  readonly startColumn: number;
}

type Inspector = typeof import('node:inspector');

/** As scripts are named in V8: paths are file: URLs there. */
const asUrl = (file: string): string => file.startsWith('/') || /^[A-Za-z]:[\\/]/.test(file) ? pathToFileURL(file).href : file;

const withoutQuery = (url: string): string => url.startsWith('file:') ? url.replace(/[?#].*$/, '') : url;

/** Scripts of that name, the latest first; none where Node has no inspector. */
export function runningScripts(file: string): readonly RunningScript[] {
  const wanted = withoutQuery(asUrl(file));
  let session: import('node:inspector').Session | undefined;
  try {
    const inspector = process.getBuiltinModule('node:inspector') as Inspector | undefined;
    if (inspector === undefined) return [];
    session = new inspector.Session();
    session.connect();
    const found: import('node:inspector').Debugger.ScriptParsedEventDataType[] = [];
    session.on('Debugger.scriptParsed', ({ params }) => {
      if (withoutQuery(asUrl(params.url)) === wanted) found.push(params);
    });
    // In one process, answers come before post returns.
    session.post('Debugger.enable');
    const scripts: RunningScript[] = [];
    for (const { scriptId, sourceMapURL = '', startLine, startColumn } of found.reverse()) {
      session.post('Debugger.getScriptSource', { scriptId }, (error, result) => {
        if (error === null) scripts.push({ text: result.scriptSource, mapUrl: sourceMapURL, startLine, startColumn });
      });
    }
    session.post('Debugger.disable');
    return scripts;
  } catch {
    // A Node that was built without it, or that does not permit it.
    return [];
  } finally {
    session?.disconnect();
  }
}
