// Registers of two and four elements as parameters and results of functions: each element becomes a
// parameter with the element's name.

import type { Prototype, PtxModule, Statement, Variable } from '../syntax/ast.js';

/** The elements of a vector in their order, as PTX names them. */
const ELEMENTS = 'xyzw';

function elementsOf(variable: Variable): Variable[] {
  const { space, vector, name } = variable;
  if (space !== 'reg' || vector === 1) return [variable];
  return [...ELEMENTS.slice(0, vector)].map((element, index) => ({
    ...variable,
    vector: 1,
    elements: index === 0 ? vector : 0,
    name: name === '_' ? name : `${name}.${element}`,
  }));
}

function expand(prototype: Prototype): void {
  prototype.params = prototype.params.flatMap(elementsOf);
  prototype.returns = prototype.returns.flatMap(elementsOf);
}

/** Makes parameters of the elements of vectors, in functions and in prototypes of calls. */
export function expandVectorParameters({ functions }: PtxModule): void {
  const visit = (statements: readonly Statement[]): void => {
    for (const statement of statements) {
      if (statement.kind === 'block') visit(statement.statements);
      else if (statement.kind === 'prototype') expand(statement.prototype);
    }
  };
  for (const fn of functions) {
    if (!fn.entry) expand(fn);
    visit(fn.body ?? []);
  }
}

/** For each parameter in the text, the number of its elements, and the first of them. */
export const namedParameters = (variables: readonly Variable[]): readonly Variable[] =>
  variables.filter(({ elements }) => elements !== 0);
