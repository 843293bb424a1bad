/** What programs that use the library's types cost the type checker. */
import ts from 'typescript';

export interface TypeCost {
  /** Type instantiations of the whole program. */
  readonly count: number;
  /** Errors of the body alone. */
  readonly errors: readonly string[];
}

const usual: ts.CompilerOptions = {
  strict: true,
  noEmit: true,
  target: ts.ScriptTarget.ES2022,
  module: ts.ModuleKind.NodeNext,
  skipLibCheck: true,
};

/** Checks bodies after a preamble, as a virtual file of the folder. Their imports are read once. */
export function typeCosts(
  folder: string,
  preamble: string,
  options: ts.CompilerOptions,
): (body: string) => TypeCost {
  const path = `${folder}budget.ts`;
  const all = { ...usual, ...options };
  const host = ts.createCompilerHost(all);
  const { getSourceFile, fileExists } = host;
  let text = '';
  const files = new Map<string, ts.SourceFile | undefined>();
  host.fileExists = (name) => name === path || fileExists(name);
  host.getSourceFile = (name, ...rest) => {
    if (name === path) return ts.createSourceFile(name, text, ts.ScriptTarget.ES2022, true);
    if (!files.has(name)) files.set(name, getSourceFile(name, ...rest));
    return files.get(name);
  };
  let last: ts.Program | undefined;
  return (body) => {
    text = `${preamble}\n${body}\nexport {};`;
    const program = ts.createProgram([path], all, host, last);
    last = program;
    const errors = program
      .getSemanticDiagnostics(program.getSourceFile(path))
      .map(({ messageText }) => ts.flattenDiagnosticMessageText(messageText, '\n'));
    return { count: program.getInstantiationCount(), errors };
  };
}
