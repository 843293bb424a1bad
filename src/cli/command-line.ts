/**
 * The command line: the table of commands, and which of them the arguments name.
 */

/** Where a command writes; process.stdout and process.stderr are two. */
export interface Output {
  write(text: string): unknown;
}

interface Command {
  name: string;
  usage: string;
  summary: string;
  /** What may follow its name: options, e.g. `--json`, and actions, e.g. `clear`. */
  options: readonly string[];
  run(options: ReadonlySet<string>, out: Output): Promise<void> | void;
  /**
   * In the place of `run` for a command that takes files: all arguments in order. Gives the exit
   * status.
   */
  runWith?(args: readonly string[], out: Output, err: Output): Promise<number>;
}

const commands: readonly Command[] = [
  {
    name: 'info',
    usage: 'info [--json]',
    summary: 'the machine, its devices and libraries, as Markdown for a bug report or as JSON',
    options: ['--json'],
    async run(options, out) {
      // Loaded here, so that `help` needs no driver code.
      const [{ gatherInfo }, { formatInfo }] = await Promise.all([
        import('./info.js'),
        import('./info-report.js'),
      ]);
      const info = gatherInfo();
      out.write(
        options.has('--json') ? `${JSON.stringify(info, undefined, 2)}\n` : formatInfo(info),
      );
    },
  },
  {
    name: 'cache',
    usage: 'cache [clear]',
    summary: 'how much compiled code is kept on disk, and where; `clear` removes it',
    options: ['clear'],
    async run(options, out) {
      const { cacheContents, clearCache, describeCache } = await import('./cache.js');
      out.write(`${options.has('clear') ? clearCache() : describeCache(cacheContents())}\n`);
    },
  },
  {
    name: 'types',
    usage: 'types <file.cu> [--out <file>] [--check]',
    summary:
      'writes the types of the kernels of a file of CUDA C++; `--check` looks whether they ' +
      'are up to date',
    options: ['--out', '--check'],
    run: () => undefined,
    runWith: async (args, out, err) => (await import('./types.js')).writeTypes(args, out, err),
  },
  {
    name: 'help',
    usage: 'help',
    summary: 'this text',
    options: [],
    run(_options, out) {
      out.write(helpText());
    },
  },
];

function helpText(): string {
  const width = Math.max(...commands.map(({ usage }) => usage.length));
  const lines = commands.map(({ usage, summary }) => `  ${usage.padEnd(width)}  ${summary}`);
  return `Usage: async-cuda <command>\n\n${lines.join('\n')}\n`;
}

const aliases: Readonly<Record<string, string>> = { '--help': 'help', '-h': 'help' };

/**
 * Exit status of a command line that names no command, an unknown one, or an option that the
 * command has not.
 */
const USAGE_ERROR = 2;

/** Runs what `args` ask for and returns the process's exit status. */
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
  const name = aliases[first] ?? first;
  const command = commands.find((c) => c.name === name);
  if (command === undefined) {
    const near = closest(
      name,
      commands.map((c) => c.name),
    );
    err.write(
      `async-cuda: there is no command '${first}'. ` +
        `${near === undefined ? '' : `Did you mean 'async-cuda ${near}'? `}See 'async-cuda ` +
        `help'.\n`,
    );
    return USAGE_ERROR;
  }
  const unknown = options.find(
    (option) =>
      !command.options.includes(option) &&
      (command.runWith === undefined || option.startsWith('-')),
  );
  if (unknown !== undefined) {
    const known =
      command.options.length === 0 ? 'It takes none.' : `It takes: ${command.options.join(', ')}.`;
    err.write(`async-cuda ${command.name}: there is no option '${unknown}'. ${known}\n`);
    return USAGE_ERROR;
  }
  if (command.runWith !== undefined) return command.runWith(options, out, err);
  await command.run(new Set(options), out);
  return 0;
}

/** The name that a slip of the finger would turn into `typed`, if there is one. */
function closest(typed: string, names: readonly string[]): string | undefined {
  const [best] = names
    .map((name) => ({ name, distance: editDistance(typed, name) }))
    .sort((a, b) => a.distance - b.distance);
  return best !== undefined && best.distance <= 2 ? best.name : undefined;
}

/** Levenshtein's: insertions, deletions and substitutions from one word to the other. */
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
