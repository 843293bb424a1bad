/**
 * The texts of running scripts, from V8's own debugger interface: the output of tsx, vitest and
 * webpack's eval modules is in no file. It is read only where a place has to be shown that files do
 * not give.
 */
import { pathToFileURL } from 'node:url';

export interface RunningScript {
  readonly text: string;
  /** The URL in its `sourceMappingURL` comment; empty where there is none. */
  readonly mapUrl: string;
  /**
   * V8 adds these to the line and to the first line's column when it counts positions in the
   * script.
   */
  readonly startLine: number;
  readonly startColumn: number;
}

type Inspector = typeof import('node:inspector');

/** The name of a script in V8: paths are file: URLs there. */
const asUrl = (file: string): string =>
  file.startsWith('/') || /^[A-Za-z]:[\\/]/.test(file) ? pathToFileURL(file).href : file;

const withoutQuery = (url: string): string =>
  url.startsWith('file:') ? url.replace(/[?#].*$/, '') : url;

type Parsed = import('node:inspector').Debugger.ScriptParsedEventDataType;

/** All scripts by name, and the session that reads their texts. */
interface Listed {
  readonly session: import('node:inspector').Session;
  readonly scripts: ReadonlyMap<string, readonly Parsed[]>;
  /** Those that were read, by their ids. */
  readonly texts: Map<string, RunningScript>;
}

let listed: Listed | undefined;

/**
 * Scripts are listed once for all calls within one turn of the event loop: a list takes V8 a tenth
 * of a second where a thousand modules are loaded, and a kernel has a text for each of its
 * functions.
 */
function listScripts(): Listed | undefined {
  if (listed !== undefined) return listed;
  const inspector = process.getBuiltinModule('node:inspector') as Inspector | undefined;
  if (inspector === undefined) return undefined;
  const session = new inspector.Session();
  session.connect();
  const scripts = new Map<string, Parsed[]>();
  session.on('Debugger.scriptParsed', ({ params }) => {
    const name = withoutQuery(asUrl(params.url));
    const before = scripts.get(name);
    if (before === undefined) scripts.set(name, [params]);
    else before.push(params);
  });
  // Within one process, V8 answers before `post` returns.
  session.post('Debugger.enable');
  setImmediate(() => {
    listed = undefined;
    session.post('Debugger.disable');
    session.disconnect();
  });
  listed = { session, scripts, texts: new Map() };
  return listed;
}

/** Gives the scripts of a name, the latest first; none where Node has no inspector. */
export function runningScripts(file: string): readonly RunningScript[] {
  try {
    const list = listScripts();
    return list === undefined
      ? []
      : textsOf(list, list.scripts.get(withoutQuery(asUrl(file))) ?? []);
  } catch {
    // This Node was built without the inspector, or does not permit it.
    return [];
  }
}

/** Gives the script that has this text, and its name, where exactly one script has it. */
export function onlyScriptWith(
  text: string,
): { readonly file: string; readonly script: RunningScript } | undefined {
  let only: { readonly file: string; readonly script: RunningScript } | undefined;
  try {
    const list = listScripts();
    if (list === undefined) return undefined;
    for (const [file, parsed] of list.scripts) {
      if (file === '' || file.startsWith('node:')) continue;
      const script = textsOf(list, parsed.slice(-1)).find((each) => each.text.includes(text));
      if (script === undefined) continue;
      if (only !== undefined) return undefined;
      only = { file, script };
    }
  } catch {
    // Node has no inspector, as above.
  }
  return only;
}

function textsOf({ session, texts }: Listed, parsed: readonly Parsed[]): RunningScript[] {
  for (const { scriptId, sourceMapURL: mapUrl = '', startLine, startColumn } of parsed) {
    if (texts.has(scriptId)) continue;
    session.post('Debugger.getScriptSource', { scriptId }, (error, result) => {
      if (error === null)
        texts.set(scriptId, { text: result.scriptSource, mapUrl, startLine, startColumn });
    });
  }
  return [...parsed].reverse().flatMap(({ scriptId }) => texts.get(scriptId) ?? []);
}
