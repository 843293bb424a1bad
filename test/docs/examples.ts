/**
 * The examples in docstrings: each public function and class has an `@example`, a program without
 * its imports. The names of the package that it uses are imported for it; `device` is an open CPU
 * device, of `async-cuda/core` in that sub-path's examples. A fence `ts no-run` marks an example
 * that needs what a test machine may lack: it is only compiled.
 */
import { relative } from 'node:path';
import ts from 'typescript';

import { compilerOptions, entryPoints, repository } from '../project/entry-points.js';

export interface PublicExample {
  /** The function, class or `layouts.…` that the example belongs to. */
  readonly name: string;
  /** The sub-path that a program imports it from: `async-cuda`, `async-cuda/tensor`. */
  readonly path: string;
  /** Where it is declared, from the project's root. */
  readonly place: string;
  readonly runs: boolean;
  readonly text: string;
  /** The expected output lines, from its comments. */
  readonly prints: readonly string[];
}

export interface PublicExamples {
  readonly examples: readonly PublicExample[];
  /** Public functions and classes without one: name and place. */
  readonly missing: readonly string[];
  /** Methods of public classes without a docstring: name and place. */
  readonly undocumented: readonly string[];
  /** Sub-paths that export each name, the root first. */
  readonly exportedBy: ReadonlyMap<string, readonly string[]>;
}

/** Sub-paths whose examples have a device of level 3. */
const EAGER = ['async-cuda/core', 'async-cuda/driver', 'async-cuda/ptx'];

/** Every example of the package, and what has none. */
export function publicExamples(): PublicExamples {
  const entries = entryPoints().map(([path, file]): [string, string] => [
    path.replace('.', 'async-cuda'),
    file,
  ]);
  const program = ts.createProgram(
    entries.map(([, file]) => file),
    compilerOptions(),
  );
  const checker = program.getTypeChecker();
  const examples: PublicExample[] = [];
  const missing: string[] = [];
  const undocumented: string[] = [];
  const exportedBy = new Map<string, string[]>();
  const seen = new Set<ts.Declaration>();

  const visit = (path: string, file: ts.SourceFile, prefix: string): void => {
    for (const exported of checker.getExportsOfModule(checker.getSymbolAtLocation(file)!)) {
      const symbol =
        (exported.flags & ts.SymbolFlags.Alias) === 0
          ? exported
          : checker.getAliasedSymbol(exported);
      if (prefix === '')
        exportedBy.set(exported.name, [...(exportedBy.get(exported.name) ?? []), path]);
      const declaration = symbol.valueDeclaration;
      if (declaration === undefined || seen.has(declaration)) continue;
      seen.add(declaration);
      if (ts.isSourceFile(declaration)) {
        visit(path, declaration, `${exported.name}.`);
        continue;
      }
      if (!isClassOrFunction(checker, declaration) || isInternal(declaration)) continue;
      const name = prefix + exported.name;
      const place = relative(repository, declaration.getSourceFile().fileName);
      const found = (symbol.declarations ?? []).flatMap((each) => fencesOf(each));
      if (found.length === 0) missing.push(`${name} (${path}, ${place})`);
      if (ts.isClassDeclaration(declaration))
        for (const method of methodsWithoutText(checker, declaration))
          undocumented.push(`${name}.${method} (${place})`);
      for (const { language, text } of found)
        examples.push({
          name,
          path,
          place,
          runs: !language.includes('no-run'),
          text,
          prints: [...text.matchAll(/console\.log\(.*\);? \/\/ (.*)$/gm)].map(
            ([, line = '']) => line,
          ),
        });
    }
  };
  for (const [path, file] of entries) visit(path, program.getSourceFile(file)!, '');
  return { examples, missing, undocumented, exportedBy };
}

function isClassOrFunction(checker: ts.TypeChecker, declaration: ts.Declaration): boolean {
  if (ts.isClassDeclaration(declaration) || ts.isFunctionDeclaration(declaration)) return true;
  return (
    ts.isVariableDeclaration(declaration) &&
    checker.getTypeAtLocation(declaration).getCallSignatures().length > 0
  );
}

/**
 * Public methods and getters without a docstring, their own or that of an interface. `toString` and
 * symbols do what JavaScript defines.
 */
function methodsWithoutText(
  checker: ts.TypeChecker,
  declaration: ts.ClassDeclaration,
): ReadonlySet<string> {
  const hidden = ts.ModifierFlags.Private | ts.ModifierFlags.Protected;
  const found = declaration.members.filter(
    (member) =>
      (ts.isMethodDeclaration(member) || ts.isGetAccessor(member)) &&
      ts.isIdentifier(member.name) &&
      member.name.text !== 'toString' &&
      (ts.getCombinedModifierFlags(member) & hidden) === 0 &&
      !isInternal(member) &&
      checker.getSymbolAtLocation(member.name)?.getDocumentationComment(checker).length === 0,
  );
  return new Set(found.map((member) => member.name!.getText()));
}

/** As `stripInternal` decides it: such a declaration is not in the package's types. */
function isInternal(declaration: ts.Declaration): boolean {
  return ts
    .getJSDocCommentsAndTags(declaration)
    .some((comment) => comment.getFullText().includes('@internal'));
}

function fencesOf(declaration: ts.Declaration): { language: string; text: string }[] {
  return ts
    .getJSDocTags(declaration)
    .filter(({ tagName }) => tagName.text === 'example')
    .map((tag) => {
      const comment = ts.getTextOfJSDocComment(tag.comment) ?? '';
      const [, language, text] = /^```(ts[^\n]*)\n(.*?)^```/ms.exec(comment) ?? [];
      if (language === undefined || text === undefined)
        throw new Error(`an @example in ${declaration.getSourceFile().fileName} has no \`\`\`ts`);
      return { language, text };
    });
}

/** A module whose functions are the examples of one sub-path, by their places in the list. */
export function moduleOf(
  path: string,
  all: readonly PublicExample[],
  exportedBy: PublicExamples['exportedBy'],
): string {
  const imports = new Map<string, Set<string>>();
  const hoisted = new Set<string>();
  const bodies = all.map(({ text }, index) => {
    for (const name of identifiersOf(text)) {
      const places = exportedBy.get(name);
      if (places === undefined) continue;
      const from = places.includes(path) ? path : places[0]!;
      imports.set(from, (imports.get(from) ?? new Set()).add(name));
    }
    const body = text.replace(/^import .*;\n/gm, (line) => {
      hoisted.add(line);
      return '';
    });
    return `export async function example${index}(console: Printer, device: Opened) {\n${body}}\n`;
  });
  const opened = EAGER.includes(path) ? 'CoreDevice' : 'Device';
  return [
    ...[...imports].map(([from, names]) => `import { ${[...names].join(', ')} } from '${from}';\n`),
    ...hoisted,
    `import type { ${opened} as Opened } from 'async-cuda${opened === 'Device' ? '' : '/core'}';\n`,
    'interface Printer { log(...values: unknown[]): void }\n',
    ...bodies,
  ].join('');
}

/** Names that a text refers to and does not declare. */
function identifiersOf(text: string): Set<string> {
  const file = ts.createSourceFile('example.ts', text, ts.ScriptTarget.ES2022, true);
  const used = new Set<string>();
  const declared = new Set<string>();
  const visit = (node: ts.Node): void => {
    if (ts.isIdentifier(node)) {
      const { parent } = node;
      const isDeclared =
        (ts.isVariableDeclaration(parent) ||
          ts.isParameter(parent) ||
          ts.isFunctionDeclaration(parent) ||
          ts.isBindingElement(parent) ||
          ts.isImportSpecifier(parent) ||
          ts.isImportClause(parent)) &&
        parent.name === node;
      const isMember =
        (ts.isPropertyAccessExpression(parent) && parent.name === node) ||
        (ts.isPropertyAssignment(parent) && parent.name === node) ||
        (ts.isBindingElement(parent) && parent.propertyName === node);
      if (isDeclared) declared.add(node.text);
      else if (!isMember) used.add(node.text);
    }
    ts.forEachChild(node, visit);
  };
  visit(file);
  for (const name of declared) used.delete(name);
  return used;
}
