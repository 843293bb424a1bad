// Maps each line of PTX to the line of the original program that the last .loc before it names.

import type { SourceLine } from '../check.js';
import type { PtxModule, Statement } from '../syntax/ast.js';

export function sourceLines(module: PtxModule): ReadonlyMap<number, SourceLine> {
  const lines = new Map<number, SourceLine>();
  let current: SourceLine | undefined;
  const visit = (statements: readonly Statement[]): void => {
    for (const statement of statements) {
      if (statement.kind === 'block') visit(statement.statements);
      else if (statement.kind === 'location') {
        current = {
          file: module.files.get(statement.file) ?? `file ${statement.file}`,
          line: statement.line,
        };
      } else if (statement.kind === 'instruction' && current) lines.set(statement.line, current);
    }
  };
  for (const fn of module.functions) {
    current = undefined;
    visit(fn.body ?? []);
  }
  return lines;
}
