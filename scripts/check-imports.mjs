/**
 * Checks that imports go down the layers only: `node scripts/check-imports.mjs [ROOT]`.
 *
 * The table is that of CONTRIBUTING.md, "The layers". Each folder of src/ may import itself and
 * what its row allows; a type counts like a value. Beyond the table, in sources that are not tests:
 *
 * - a pure compiler (`pure`) imports no Node builtin, and of packages only those that its row names
 *   and that run in a browser as it does;
 * - a package must be one of package.json's dependencies, so that an installed async-cuda finds it;
 * - nothing imports from outside src/.
 *
 * Prints `file:line: what` for each violation, and what would have been allowed. Exit status 1 if
 * there is one.
 */
import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { builtinModules } from 'node:module';
import { dirname, join, relative, resolve, sep } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import ts from 'typescript';

/**
 * From the ground up. `imports`: the rows that may be imported; `onTopOf`: rows that may be
 * imported together with all that they may import. `everything` is the roof.
 */
const layers = {
  // Errors, checks of arguments, dtypes: what every layer needs.
  ground: {},
  ptx: { pure: true, imports: ['ground'] },
  // Libraries of native code: where they lie, and the foreign function interface that loads them.
  native: { imports: ['ground'] },
  driver: { imports: ['ground', 'ptx', 'native'] },
  // ptx: signatures are read where modules are loaded, off the JS thread.
  runtime: { imports: ['ground', 'driver', 'native', 'ptx'] },
  core: { imports: ['ground', 'runtime', 'ptx'] },
  ops: { imports: ['ground', 'core'] },
  tensor: { onTopOf: ['ops'] },
  // acorn reads JavaScript; gen-mapping writes the source maps of what is simulated.
  compiler: { pure: true, imports: ['ground'], packages: ['acorn', '@jridgewell/gen-mapping'] },
  kernels: { onTopOf: ['compiler', 'tensor'] },
  library: { onTopOf: ['kernels'] },
  nvrtc: { onTopOf: ['library'], imports: ['native'] },
  images: { onTopOf: ['library'], imports: ['native'] },
  // What all engines of inference are to their users.
  engine: { onTopOf: ['library'] },
  tensorrt: { onTopOf: ['engine'], imports: ['native'] },
  onnxruntime: { onTopOf: ['engine'], imports: ['native'] },
  inference: { onTopOf: ['tensorrt', 'onnxruntime', 'images'] },
  cublas: { onTopOf: ['library'], imports: ['native'] },
  nccl: { onTopOf: ['library'], imports: ['native'] },
  device: { everything: true },
  'index.ts': { everything: true },
  cli: { everything: true },
};

/** The names that a row may import, itself first; undefined where it may import everything. */
export function allowedFor(name, table = layers) {
  const row = table[name];
  if (row.everything) return undefined;
  const allowed = new Set([name, ...(row.imports ?? [])]);
  for (const below of row.onTopOf ?? []) {
    allowed.add(below);
    for (const further of allowedFor(below, table) ?? []) allowed.add(further);
  }
  return [...allowed];
}

/**
 * Every module name that the file imports, re-exports, requires or takes a type from, with its
 * line.
 */
function importsOf(path) {
  const file = ts.createSourceFile(path, readFileSync(path, 'utf8'), ts.ScriptTarget.Latest, true);
  const found = [];
  const add = (node) => {
    if (node === undefined || !ts.isStringLiteralLike(node)) return;
    found.push({
      specifier: node.text,
      line: file.getLineAndCharacterOfPosition(node.getStart(file)).line + 1,
    });
  };
  const visit = (node) => {
    if (ts.isImportDeclaration(node) || ts.isExportDeclaration(node)) add(node.moduleSpecifier);
    else if (ts.isExternalModuleReference(node)) add(node.expression);
    else if (ts.isImportTypeNode(node) && ts.isLiteralTypeNode(node.argument))
      add(node.argument.literal);
    else if (
      ts.isCallExpression(node) &&
      (node.expression.kind === ts.SyntaxKind.ImportKeyword ||
        node.expression.getText(file) === 'require')
    ) {
      add(node.arguments[0]);
    }
    ts.forEachChild(node, visit);
  };
  visit(file);
  return found;
}

/** Tests, and what only tests use, are not in the package. */
const isTest = (path) => /\.test(-support)?\.ts$/.test(path) || path.split(sep).includes('testing');
const isBuiltin = (specifier) =>
  specifier.startsWith('node:') || builtinModules.includes(specifier);
const packageOf = (specifier) =>
  specifier
    .split('/')
    .slice(0, specifier.startsWith('@') ? 2 : 1)
    .join('/');

/**
 * The violations in `root`/src, as `{ file, line, message }` with file relative to root.
 * @param {string} root folder with package.json and src/
 */
export function checkImports(root) {
  const { name: self, dependencies = {} } = JSON.parse(
    readFileSync(join(root, 'package.json'), 'utf8'),
  );
  const source = join(root, 'src');
  const violations = [];

  for (const entry of readdirSync(source, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile() || !/\.[cm]?ts$/.test(entry.name)) continue;
    const path = join(entry.parentPath ?? entry.path, entry.name);
    const file = relative(root, path);
    const layer = relative(source, path).split(sep)[0];
    const report = (line, message) =>
      violations.push({ file: file.replaceAll(sep, '/'), line, message });

    const row = layers[layer];
    if (row === undefined) {
      report(
        1,
        `src/${layer} is in no row of the table in scripts/check-imports.mjs; add one, from ` +
          'the ground up',
      );
      continue;
    }
    const allowed = allowedFor(layer);

    for (const { specifier, line } of importsOf(path)) {
      let target;
      if (specifier.startsWith('.')) {
        const inside = relative(source, resolve(dirname(path), specifier));
        if (inside.startsWith('..')) {
          if (!isTest(path))
            report(line, `'${specifier}' is outside src/: an installed package would not have it`);
          continue;
        }
        target = inside.split(sep)[0].replace(/\.js$/, '.ts');
      } else if (packageOf(specifier) === self) {
        target = specifier.split('/')[1] ?? 'index.ts';
      } else {
        if (isTest(path)) continue;
        if (row.pure && !(row.packages ?? []).includes(packageOf(specifier)))
          report(
            line,
            `'${specifier}': src/${layer} is a pure compiler and imports nothing but ` +
              `${['itself', ...(row.packages ?? [])].join(', ')}`,
          );
        else if (!row.pure && !isBuiltin(specifier) && !(packageOf(specifier) in dependencies)) {
          report(
            line,
            `'${specifier}' is not one of package.json's dependencies ` +
              `(${Object.keys(dependencies).join(', ') || 'none'})`,
          );
        }
        continue;
      }
      if (allowed !== undefined && !allowed.includes(target)) {
        report(
          line,
          `'${specifier}': ${layer} may not import ${target}; allowed: ${allowed.join(', ')}`,
        );
      }
    }
  }
  return violations.sort((a, b) => (a.file < b.file ? -1 : a.file > b.file ? 1 : a.line - b.line));
}

if (process.argv[1] !== undefined && import.meta.url === pathToFileURL(process.argv[1]).href) {
  const root = resolve(process.argv[2] ?? resolve(dirname(fileURLToPath(import.meta.url)), '..'));
  if (!existsSync(join(root, 'src'))) throw new Error(`${root} has no folder src/`);
  const violations = checkImports(root);
  for (const { file, line, message } of violations) console.error(`${file}:${line}: ${message}`);
  console.log(
    violations.length === 0
      ? 'imports: all go down the layers'
      : `imports: ${violations.length} violation(s)`,
  );
  process.exitCode = violations.length === 0 ? 0 : 1;
}
