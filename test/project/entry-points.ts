/** The sub-paths of the package, their sources, and the options that compile them. */
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';

/** The project's folder, with a slash at its end. */
export const repository = fileURLToPath(new URL('../../', import.meta.url));

/** Each sub-path as `exports` of package.json names it, and its source file. */
export function entryPoints(): [path: string, file: string][] {
  const { exports } = JSON.parse(readFileSync(`${repository}package.json`, 'utf8')) as {
    exports: Record<string, string | { types: string }>;
  };
  return Object.entries(exports).flatMap(([path, entry]): [string, string][] =>
    typeof entry === 'string'
      ? []
      : [[path, repository + entry.types.replace('./dist/types', 'src').replace('.d.ts', '.ts')]],
  );
}

/** Options of the project, for programs that lie elsewhere. */
export function compilerOptions(): ts.CompilerOptions {
  const { config } = ts.readConfigFile(`${repository}tsconfig.json`, (path) =>
    ts.sys.readFile(path),
  ) as { config: object };
  const { options } = ts.parseJsonConfigFileContent(
    { ...config, include: [], files: [] },
    ts.sys,
    repository,
  );
  return { ...options, typeRoots: [`${repository}node_modules/@types`] };
}

/** What the compiler reports of each file: its name, the line, and the message. */
export function problemsOf(files: readonly string[]): string[] {
  const program = ts.createProgram([...files], compilerOptions());
  return files.flatMap((file) => {
    const source = program.getSourceFile(file);
    return [
      ...program.getSyntacticDiagnostics(source),
      ...program.getSemanticDiagnostics(source),
    ].map(({ messageText, start = 0 }) => {
      const line = source?.getLineAndCharacterOfPosition(start).line ?? 0;
      const text = source?.text.split('\n')[line]?.trim() ?? '';
      return `${file}:${line + 1}: ${ts.flattenDiagnosticMessageText(messageText, '\n')} (${text})`;
    });
  });
}
