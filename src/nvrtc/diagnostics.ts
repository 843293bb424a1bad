/** Reads the compiler's log, message by message. */

export type Severity = 'error' | 'warning' | 'remark' | 'note';

/** One message of the compiler. */
export interface Diagnostic {
  readonly severity: Severity;
  readonly message: string;
  /** NVIDIA's number of a warning, for `-diag-suppress`. */
  readonly number: number | undefined;
  /** The file; undefined where the message is about no place. */
  readonly file: string | undefined;
  /** The line, from 1. */
  readonly line: number | undefined;
  /**
   * The column, from 1; undefined where the log does not show it (NVRTC before 12.3 or so) and the
   * line does not determine it.
   */
  readonly column: number | undefined;
  /** The line's text, where it is known. */
  readonly code: string | undefined;
}

const HEAD = new RegExp(
  /^(?:(.+?)\((\d+)\): )?/.source +
    /(catastrophic error|internal error|error|warning|remark|note)/.source +
    /(?: #(\d+)(?:-D)?)?: (.*)$/.source,
  'i',
);
const CARET = /^\s*\^\s*$/;
/** The log shows a line after two spaces. */
const INDENT = 2;
/** The compiler's own lines at the end. */
const SUMMARY = new RegExp(
  '^(\\d+ (catastrophic )?errors? detected in|Compilation terminated|' +
    'Remark: The warnings can be suppressed|Error limit reached)',
);

/**
 * Returns the messages of a log, in order.
 *
 * @param textOf returns the text of a file that the log names, if it is known: the line comes from
 * it where the log does not show it
 */
export function readDiagnostics(
  log: string,
  textOf: (file: string) => string | undefined,
): Diagnostic[] {
  const lines = log.split(/\r?\n/);
  const found: Diagnostic[] = [];
  for (let at = 0; at < lines.length; at++) {
    const head = HEAD.exec(lines[at]!);
    if (head === null || SUMMARY.test(lines[at]!)) continue;
    const [, file, lineNumber, kind, number, first] = head;
    const parts = [first!];
    let shown: string | undefined;
    let caret: number | undefined;
    while (at + 1 < lines.length) {
      const next = lines[at + 1]!;
      if (next.trim() === '' || HEAD.test(next) || SUMMARY.test(next)) break;
      if (CARET.test(lines[at + 2] ?? '')) {
        shown = next.slice(INDENT);
        caret = lines[at + 2]!.indexOf('^') - INDENT;
        at += 2;
        break;
      }
      parts.push(next.trim());
      at++;
    }
    const line = lineNumber === undefined ? undefined : Number(lineNumber);
    const code =
      shown ??
      (file === undefined || line === undefined
        ? undefined
        : textOf(file)?.split(/\r?\n/)[line - 1]);
    const message = parts.join(' ');
    found.push({
      severity: severityOf(kind!),
      message,
      number: number === undefined ? undefined : Number(number),
      file,
      line,
      code,
      column:
        caret !== undefined
          ? caret + 1
          : code === undefined
            ? undefined
            : columnOfName(code, message),
    });
  }
  return found;
}

function severityOf(kind: string): Severity {
  const lower = kind.toLowerCase();
  return lower.endsWith('error') ? 'error' : (lower as Severity);
}

/**
 * Finds the column where the log has no caret: that of the name which the message quotes, if it
 * occurs once in the line.
 */
function columnOfName(code: string, message: string): number | undefined {
  const name = /"([^"]+)"/.exec(message)?.[1];
  if (name === undefined) return undefined;
  const at = code.indexOf(name);
  return at === -1 || code.includes(name, at + 1) ? undefined : at + 1;
}
