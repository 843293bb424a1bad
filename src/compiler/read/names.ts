/** The declaration that each name of a function refers to, and the number of its assignments. */
import type { AnyNode, Identifier } from 'acorn';
import { leftChain } from './left-chain.js';
import { isPresent } from './present.js';
import { childrenOf, type FunctionNode } from './syntax.js';

/** A declared name. */
export interface Declaration {
  readonly name: string;
  readonly kind: 'param' | 'var' | 'let' | 'const' | 'other';
  /** The place of its declaration, for keys that are the same in every pass. */
  readonly at: number;
  /** The number of assignments, including its initialiser. */
  writes: number;
  /** Whether it has an initialiser, and is visible only after that has run. */
  initialised: boolean;
  /** The number of assignments to its properties, but not to properties of these. */
  fieldWrites: number;
}

/** The declaration of every identifier that has one; identifiers without one are free. */
export type Names = ReadonlyMap<AnyNode, Declaration>;

interface Scope {
  readonly parent: Scope | undefined;
  readonly declared: Map<string, Declaration>;
}

export function resolveNames(fn: FunctionNode): Names {
  return new Resolver().function(fn);
}

/** A place where a name occurs. */
interface Occurrence {
  readonly node: Identifier;
  /**
   * `write` gives a value that does not depend on the one before, as `init` does; `change` (`+=`,
   * `++`) does.
   */
  readonly as: 'init' | 'declare' | 'write' | 'change' | 'fieldWrite' | 'read';
  readonly scope: Scope;
}

class Resolver {
  readonly #names = new Map<AnyNode, Declaration>();
  readonly #occurrences = new Map<Declaration, Occurrence[]>();

  function(fn: FunctionNode): Names {
    const scope: Scope = { parent: undefined, declared: new Map() };
    for (const param of fn.params) this.#declarePattern(param, 'param', scope, 'init');
    if (fn.body.type === 'BlockStatement') {
      this.#hoist(fn.body, scope);
      this.#declareBlock(fn.body.body, scope);
      for (const statement of fn.body.body) this.#visit(statement, scope);
    } else {
      this.#visit(fn.body, scope);
    }
    for (const [declaration, occurrences] of this.#occurrences)
      this.#conclude(declaration, occurrences);
    return this.#names;
  }

  /**
   * Counts assignments. A `var` of several blocks is split into several variables: tools that write
   * ES5 turn `let` into `var`, and adjacent blocks then share the name though not the value, nor
   * its type.
   */
  #conclude(declaration: Declaration, occurrences: readonly Occurrence[]): void {
    const groups = declaration.kind === 'var' ? apart(occurrences) : [occurrences];
    for (const group of groups) {
      const [first] = group;
      if (first === undefined) continue;
      const of: Declaration =
        groups.length === 1 ? declaration : { ...declaration, at: first.node.start };
      const count = (...kinds: Occurrence['as'][]) =>
        group.filter(({ as }) => kinds.includes(as)).length;
      of.writes = count('init', 'write', 'change');
      of.fieldWrites = count('fieldWrite');
      of.initialised = group.some(
        ({ as, scope }) => as === 'init' && group.every((other) => isWithin(other.scope, scope)),
      );
      for (const { node } of group) this.#names.set(node, of);
    }
  }

  #declare(name: Identifier, kind: Declaration['kind'], scope: Scope): Declaration {
    let declaration = scope.declared.get(name.name);
    if (declaration === undefined) {
      declaration = {
        name: name.name,
        kind,
        at: name.start,
        writes: 0,
        initialised: false,
        fieldWrites: 0,
      };
      scope.declared.set(name.name, declaration);
      this.#occurrences.set(declaration, []);
    }
    return declaration;
  }

  /** Declares the names of a pattern in `scope`. `as`: the kind of occurrence, seen from `from`. */
  #declarePattern(
    pattern: AnyNode,
    kind: Declaration['kind'],
    scope: Scope,
    as: Occurrence['as'] | undefined,
    from = scope,
  ): void {
    switch (pattern.type) {
      case 'Identifier': {
        const declaration = this.#declare(pattern, kind, scope);
        if (as !== undefined)
          this.#occurrences.get(declaration)!.push({ node: pattern, as, scope: from });
        return;
      }
      case 'ObjectPattern':
        for (const property of pattern.properties) {
          if (property.type === 'Property') {
            if (property.computed && as !== undefined) this.#visit(property.key, from);
            this.#declarePattern(property.value, kind, scope, as, from);
          } else {
            this.#declarePattern(property.argument, kind, scope, as, from);
          }
        }
        return;
      case 'ArrayPattern':
        for (const element of pattern.elements)
          if (element !== null) this.#declarePattern(element, kind, scope, as, from);
        return;
      case 'AssignmentPattern':
        this.#declarePattern(pattern.left, kind, scope, as, from);
        return;
      case 'RestElement':
        this.#declarePattern(pattern.argument, kind, scope, as, from);
    }
  }

  /** `var` belongs to the whole function. */
  #hoist(node: AnyNode, scope: Scope): void {
    if (isFunction(node)) return;
    if (node.type === 'VariableDeclaration' && node.kind === 'var') {
      for (const { id } of node.declarations) this.#declarePattern(id, 'var', scope, undefined);
    }
    for (const child of childrenOf(node)) this.#hoist(child, scope);
  }

  #declareBlock(statements: readonly AnyNode[], scope: Scope): void {
    for (const statement of statements) {
      if (statement.type === 'VariableDeclaration' && statement.kind !== 'var') {
        for (const { id } of statement.declarations)
          this.#declarePattern(id, statement.kind === 'const' ? 'const' : 'let', scope, undefined);
      } else if (
        (statement.type === 'FunctionDeclaration' || statement.type === 'ClassDeclaration') &&
        statement.id !== null
      ) {
        this.#declarePattern(statement.id, 'other', scope, 'init');
      }
    }
  }

  #refer(name: Identifier, as: Occurrence['as'], scope: Scope): void {
    for (let at: Scope | undefined = scope; at !== undefined; at = at.parent) {
      const declaration = at.declared.get(name.name);
      if (declaration === undefined) continue;
      this.#occurrences.get(declaration)!.push({ node: name, as, scope });
      return;
    }
  }

  /** Records the destination of an assignment. */
  #write(target: AnyNode, scope: Scope, as: 'write' | 'change' = 'write'): void {
    switch (target.type) {
      case 'Identifier':
        this.#refer(target, as, scope);
        return;
      case 'MemberExpression': {
        this.#visit(target, scope);
        let root: AnyNode = target;
        while (root.type === 'MemberExpression') root = root.object;
        if (root.type === 'Identifier')
          this.#refer(root, root === target.object ? 'fieldWrite' : 'read', scope);
        return;
      }
      case 'ObjectPattern':
        for (const property of target.properties)
          this.#write(property.type === 'Property' ? property.value : property.argument, scope);
        return;
      case 'ArrayPattern':
        for (const element of target.elements) if (element !== null) this.#write(element, scope);
        return;
      case 'AssignmentPattern':
        this.#write(target.left, scope);
        return;
      default:
        this.#visit(target, scope);
    }
  }

  #visit(node: AnyNode, scope: Scope): void {
    switch (node.type) {
      case 'Identifier':
        this.#refer(node, 'read', scope);
        return;
      case 'VariableDeclaration':
        for (const { id, init } of node.declarations) {
          if (isPresent(init)) this.#visit(init, scope);
          const owner = node.kind === 'var' ? functionScope(scope) : scope;
          this.#declarePattern(
            id,
            node.kind === 'var' ? 'var' : node.kind === 'const' ? 'const' : 'let',
            owner,
            !isPresent(init) ? 'declare' : 'init',
            scope,
          );
        }
        return;
      case 'AssignmentExpression':
        // The indices of the destination come before the value; a name is written after it.
        if (node.left.type === 'MemberExpression') this.#write(node.left, scope);
        this.#visit(node.right, scope);
        if (node.left.type !== 'MemberExpression')
          this.#write(node.left, scope, node.operator === '=' ? 'write' : 'change');
        return;
      case 'UpdateExpression':
        this.#write(node.argument, scope, 'change');
        return;
      case 'MemberExpression':
        this.#visit(node.object, scope);
        if (node.computed) this.#visit(node.property, scope);
        return;
      case 'BinaryExpression': {
        const { first, rest } = leftChain(node);
        this.#visit(first, scope);
        for (const { right } of rest) this.#visit(right, scope);
        return;
      }
      case 'Property':
        if (node.computed) this.#visit(node.key, scope);
        this.#visit(node.value, scope);
        return;
      case 'LabeledStatement':
        this.#visit(node.body, scope);
        return;
      case 'BreakStatement':
      case 'ContinueStatement':
        return;
      case 'BlockStatement': {
        const inner: Scope = { parent: scope, declared: new Map() };
        this.#declareBlock(node.body, inner);
        for (const statement of node.body) this.#visit(statement, inner);
        return;
      }
      case 'ForInStatement':
      case 'ForOfStatement': {
        const inner: Scope = { parent: scope, declared: new Map() };
        this.#declareBlock([node.left], inner);
        for (const part of [node.right, node.left, node.body]) this.#visit(part, inner);
        return;
      }
      case 'SwitchStatement': {
        this.#visit(node.discriminant, scope);
        const inner: Scope = { parent: scope, declared: new Map() };
        for (const { consequent } of node.cases) this.#declareBlock(consequent, inner);
        for (const { test, consequent } of node.cases) {
          if (isPresent(test)) this.#visit(test, inner);
          for (const statement of consequent) this.#visit(statement, inner);
        }
        return;
      }
      case 'ForStatement': {
        const inner: Scope = { parent: scope, declared: new Map() };
        if (isPresent(node.init)) {
          this.#declareBlock([node.init], inner);
          this.#visit(node.init, inner);
        }
        for (const part of [node.test, node.update, node.body])
          if (isPresent(part)) this.#visit(part, inner);
        return;
      }
      // A conditional operand is a block of its own: minifiers write if (a) { … } as a && (…).
      case 'LogicalExpression':
        this.#visit(node.left, scope);
        this.#visit(node.right, { parent: scope, declared: new Map() });
        return;
      case 'ConditionalExpression':
        this.#visit(node.test, scope);
        for (const side of [node.consequent, node.alternate])
          this.#visit(side, { parent: scope, declared: new Map() });
        return;
      case 'IfStatement': {
        this.#visit(node.test, scope);
        // A statement without braces is a block too: `if (a) var b = 1;`.
        for (const branch of [node.consequent, node.alternate])
          if (isPresent(branch)) this.#visit(branch, { parent: scope, declared: new Map() });
        return;
      }
      default:
        if (isFunction(node) || node.type === 'ClassDeclaration' || node.type === 'ClassExpression')
          return;
        for (const child of childrenOf(node)) this.#visit(child, scope);
    }
  }
}

function isFunction(node: AnyNode): boolean {
  return (
    node.type === 'FunctionDeclaration' ||
    node.type === 'FunctionExpression' ||
    node.type === 'ArrowFunctionExpression'
  );
}

function functionScope(scope: Scope): Scope {
  let at = scope;
  while (at.parent !== undefined) at = at.parent;
  return at;
}

function isWithin(scope: Scope, outer: Scope): boolean {
  for (let at: Scope | undefined = scope; at !== undefined; at = at.parent)
    if (at === outer) return true;
  return false;
}

/**
 * Groups occurrences by the blocks that assign the name, where each occurrence is in one of them
 * and follows the assignment; else all in one group.
 */
function apart(occurrences: readonly Occurrence[]): (readonly Occurrence[])[] {
  return (
    apartBy(occurrences, ['init', 'declare']) ??
    apartBy(
      occurrences.filter(({ as }) => as !== 'declare'),
      ['init', 'write'],
    ) ?? [occurrences]
  );
}

function apartBy(
  occurrences: readonly Occurrence[],
  starts: readonly Occurrence['as'][],
): (readonly Occurrence[])[] | undefined {
  const scopes = [
    ...new Set(occurrences.filter(({ as }) => starts.includes(as)).map(({ scope }) => scope)),
  ];
  if (scopes.length < 2 || scopes.some((a) => scopes.some((b) => a !== b && isWithin(a, b))))
    return undefined;
  const groups = scopes.map((scope) =>
    occurrences.filter((occurrence) => isWithin(occurrence.scope, scope)),
  );
  if (groups.reduce((sum, group) => sum + group.length, 0) !== occurrences.length) return undefined;
  // Occurrences are listed in their order of execution.
  return groups.every(([first]) => starts.includes(first!.as)) ? groups : undefined;
}
