/** Runs the type checker over texts of CUDA C++; returns what it read, and the cost. */
import { fileURLToPath } from 'node:url';
import ts from 'typescript';

const FILE = fileURLToPath(new URL('./read-types.probe.ts', import.meta.url));
const OPTIONS: ts.CompilerOptions = {
  strict: true,
  noEmit: true,
  target: ts.ScriptTarget.ES2022,
  module: ts.ModuleKind.NodeNext,
  types: [],
  lib: ['lib.es2022.d.ts'],
  skipLibCheck: true,
};

/**
 * What the type checker read of a text: descriptions by kernel, undefined for a list that is not
 * understood.
 */
export interface ReadByTypes {
  readonly kernels: Readonly<Record<string, readonly unknown[] | undefined>>;
  /** Whether the type accepts other names. */
  readonly open: boolean;
}

export interface Reading {
  readonly read: readonly ReadByTypes[];
  readonly errors: readonly string[];
  readonly instantiations: number;
}

/** A text as a literal of TypeScript with that value. */
export function literal(text: string): string {
  return `\`${text.replace(/[\\`]|\$\{/g, '\\$&').replaceAll('\r', '\\r')}\``;
}

const host = ts.createCompilerHost(OPTIONS);
const { getSourceFile, fileExists } = host;
let probe = '';
const files = new Map<string, ts.SourceFile | undefined>();
host.fileExists = (name) => name === FILE || fileExists(name);
host.getSourceFile = (name, ...rest) => {
  if (name === FILE) return ts.createSourceFile(name, probe, ts.ScriptTarget.ES2022, true);
  if (!files.has(name)) files.set(name, getSourceFile(name, ...rest));
  return files.get(name);
};

/** Reads each text by its type. */
export function readByTypes(texts: readonly string[]): Reading {
  const declared = texts.map(
    (text, i) => `export declare const k${i}: DescriptionsOf<${literal(text)}>;\n`,
  );
  probe = `import type { DescriptionsOf } from './description-types.js';\n` + declared.join('');
  // The program is not made from the previous one, which would keep that one's types.
  const program = ts.createProgram([FILE], OPTIONS, host);
  const file = program.getSourceFile(FILE)!;
  const checker = program.getTypeChecker();
  const read = file.statements
    .filter(ts.isVariableStatement)
    .map(({ declarationList }): ReadByTypes => {
      const type = checker.getTypeAtLocation(declarationList.declarations[0]!.name);
      return {
        kernels: Object.fromEntries(
          checker
            .getPropertiesOfType(type)
            .map((property) => [
              property.name,
              valueOf(checker, checker.getTypeOfSymbol(property)) as readonly unknown[] | undefined,
            ]),
        ),
        open: checker.getIndexInfosOfType(type).length > 0,
      };
    });
  const errors = program
    .getSemanticDiagnostics(file)
    .map(({ messageText }) => ts.flattenDiagnosticMessageText(messageText, '\n').slice(0, 400));
  return { read, errors, instantiations: program.getInstantiationCount() };
}

/** The value of a type of literals, tuples and objects. */
function valueOf(checker: ts.TypeChecker, type: ts.Type): unknown {
  if (type.isStringLiteral() || type.isNumberLiteral()) return type.value;
  if ((type.flags & ts.TypeFlags.Undefined) !== 0) return undefined;
  if (checker.isTupleType(type))
    return checker.getTypeArguments(type as ts.TypeReference).map((each) => valueOf(checker, each));
  if ((type.flags & ts.TypeFlags.Object) === 0) return `?${checker.typeToString(type)}`;
  return Object.fromEntries(
    checker
      .getPropertiesOfType(type)
      .map((property) => [property.name, valueOf(checker, checker.getTypeOfSymbol(property))]),
  );
}
