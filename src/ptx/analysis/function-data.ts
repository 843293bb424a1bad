// .global and .const variables that are declared inside functions: each exists once for the whole
// module, as a static variable of C does, and only its name is local to the block.

import type { Initializer, PtxModule, Statement, Variable } from '../syntax/ast.js';

/** The names of such variables that are visible in a block, and their names in the module. */
interface Scope {
  readonly names: Map<string, string>;
  readonly around: Scope | undefined;
}

const isData = (statement: Statement): statement is Variable =>
  statement.kind === 'variable' && (statement.space === 'global' || statement.space === 'const');

function renamed(value: Initializer, scope: Scope): Initializer {
  switch (value.kind) {
    case 'list':
      return { ...value, elements: value.elements.map((element) => renamed(element, scope)) };
    case 'symbol': {
      for (let within: Scope | undefined = scope; within; within = within.around) {
        const name = within.names.get(value.name);
        if (name !== undefined) return { ...value, name };
      }
      return value;
    }
    default:
      return value;
  }
}

/**
 * Moves these variables to the module, under names that no text can contain: `kernel::variable`, or
 * `kernel::variable#2`.
 */
export function moveFunctionData(module: PtxModule): void {
  const taken = new Map<string, number>();
  const visit = (
    statements: readonly Statement[],
    around: Scope | undefined,
    owner: string,
  ): void => {
    const scope: Scope = { names: new Map(), around };
    for (const statement of statements) {
      if (statement.kind === 'block') visit(statement.statements, scope, owner);
      if (!isData(statement)) continue;
      const plain = `${owner}::${statement.name}`;
      const count = (taken.get(plain) ?? 0) + 1;
      taken.set(plain, count);
      const name = count === 1 ? plain : `${plain}#${count}`;
      scope.names.set(statement.name, name);
      const initializer = statement.initializer && renamed(statement.initializer, scope);
      module.variables.push({ ...statement, name, initializer });
      statement.placedAs = name;
    }
  };
  for (const { name, body } of module.functions) if (body) visit(body, undefined, name);
}
