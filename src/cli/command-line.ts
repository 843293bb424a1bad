/**
 * The command line: the table of commands, and the choice of the command that the arguments name.
 */

import { VERSION } from '../runtime/version.js';

/** The output of a command; process.stdout and process.stderr are two. */
export interface Output {
  write(text: string): unknown;
}

interface Command {
  name: string;
  usage: string;
  summary: string;
  /** Options, e.g. `--json`, and actions, e.g. `clear`, with their descriptions. */
  options: Readonly<Record<string, string>>;
  /** Whether other words may follow: files, or a command's name. */
  operands: boolean;
  /** Runs the command. `args` are the words after its name, in order. Returns the exit status. */
  run(args: readonly string[], out: Output, err: Output): Promise<number> | number;
}

const commands: readonly Command[] = [
  {
    name: 'info',
    usage: 'info [--json]',
    summary: 'the machine, its devices and libraries, as Markdown for a bug report or as JSON',
    options: { '--json': 'prints JSON instead of Markdown' },
    operands: false,
    async run(args, out) {
      // The modules are loaded here, so that `help` needs no driver code.
      const [{ gatherInfo }, { formatInfo }] = await Promise.all([
        import('./info.js'),
        import('./info-report.js'),
      ]);
      const info = gatherInfo();
      out.write(
        args.includes('--json') ? `${JSON.stringify(info, undefined, 2)}\n` : formatInfo(info),
      );
      return 0;
    },
  },
  {
    name: 'cache',
    usage: 'cache [clear]',
    summary: 'the amount and the place of compiled code on disk; `clear` removes it',
    options: { clear: 'removes all entries' },
    operands: false,
    async run(args, out) {
      const { cacheContents, clearCache, describeCache } = await import('./cache.js');
      out.write(`${args.includes('clear') ? clearCache() : describeCache(cacheContents())}\n`);
      return 0;
    },
  },
  {
    name: 'types',
    usage: 'types <file.cu> [--out <file>] [--check]',
    summary:
      'writes the types of the kernels of a file of CUDA C++; `--check` checks whether they ' +
      'are up to date',
    options: {
      '--out': 'the file to write; by default it is next to the source, as kernels.d.cu.ts',
      '--check': 'writes nothing; exit status 1 when the file is not up to date',
    },
    operands: true,
    run: async (args, out, err) => (await import('./types.js')).writeTypes(args, out, err),
  },
  {
    name: 'version',
    usage: 'version',
    summary: "the package's version; `--version` and `-v` do the same",
    options: {},
    operands: false,
    run(_args, out) {
      out.write(`${VERSION}\n`);
      return 0;
    },
  },
  {
    name: 'help',
    usage: 'help [<command>]',
    summary: 'this text, or the options of one command',
    options: {},
    operands: true,
    run: (args, out, err) => help(args[0], out, err),
  },
];

/** Two columns: the usage, and its description. */
function table(rows: readonly (readonly [string, string])[]): string {
  const width = Math.max(...rows.map(([left]) => left.length));
  return rows.map(([left, right]) => `  ${left.padEnd(width)}  ${right}\n`).join('');
}

function helpText(): string {
  const rows = commands.map(({ usage, summary }) => [usage, summary] as const);
  return `Usage: async-cuda <command>\n\n${table(rows)}`;
}

function helpOf({ usage, summary, options }: Command): string {
  const rows = Object.entries(options);
  const listed = rows.length === 0 ? '' : `\n${table(rows)}`;
  const sentence = `${summary[0]!.toUpperCase()}${summary.slice(1)}.`;
  return `Usage: async-cuda ${usage}\n\n${sentence}\n${listed}`;
}

/** Writes the help of the command of that name, or of all commands. Returns the exit status. */
function help(name: string | undefined, out: Output, err: Output): number {
  if (name === undefined) {
    out.write(helpText());
    return 0;
  }
  const command = commandCalled(name, err);
  if (command === undefined) return USAGE_ERROR;
  out.write(helpOf(command));
  return 0;
}

/** The command of that name; undefined, with a message, where there is none. */
function commandCalled(name: string, err: Output): Command | undefined {
  const names = commands.map((command) => command.name);
  const command = commands.find((each) => each.name === (aliases[name] ?? name));
  if (command === undefined) {
    const near = closest(name, names);
    err.write(
      `async-cuda: there is no command '${name}'. ` +
        `${near === undefined ? '' : `Did you mean 'async-cuda ${near}'? `}` +
        "See 'async-cuda help'.\n",
    );
  }
  return command;
}

const aliases: Readonly<Record<string, string>> = {
  '--help': 'help',
  '-h': 'help',
  '--version': 'version',
  '-v': 'version',
};

/** The exit status for an unknown or missing command, or an unknown option. */
const USAGE_ERROR = 2;

/** Runs the command that `args` name, and returns the exit status of the process. */
export async function runCommandLine(
  args: readonly string[],
  out: Output,
  err: Output,
): Promise<number> {
  const [first, ...options] = args;
  if (first === undefined) {
    err.write(helpText());
    return USAGE_ERROR;
  }
  const command = commandCalled(first, err);
  if (command === undefined) return USAGE_ERROR;
  if (options.some((option) => option === '--help' || option === '-h')) {
    out.write(command.name === 'help' ? helpText() : helpOf(command));
    return 0;
  }
  const unknown = options.find(
    (option) =>
      !Object.hasOwn(command.options, option) && (!command.operands || option.startsWith('-')),
  );
  if (unknown !== undefined) {
    const names = Object.keys(command.options);
    const known = names.length === 0 ? 'It takes none.' : `It takes: ${names.join(', ')}.`;
    err.write(`async-cuda ${command.name}: there is no option '${unknown}'. ${known}\n`);
    return USAGE_ERROR;
  }
  return command.run(options, out, err);
}

/** The name that is most similar to `typed`, if one is similar enough. */
function closest(typed: string, names: readonly string[]): string | undefined {
  const [best] = names
    .map((name) => ({ name, distance: editDistance(typed, name) }))
    .sort((a, b) => a.distance - b.distance);
  return best !== undefined && best.distance <= 2 ? best.name : undefined;
}

/** The Levenshtein distance: insertions, deletions and substitutions from one word to the other. */
function editDistance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      next.push(
        Math.min(row[j]! + 1, next[j - 1]! + 1, row[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1)),
      );
    }
    row = next;
  }
  return row[b.length]!;
}
