/**
 * The reference pages name all that there is: what kernels find on `gpu`, codes of errors, and the
 * options of kernels and of the library.
 */
import { readFileSync, readdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';
import { describe, expect, test } from 'vitest';

const root = fileURLToPath(new URL('../../', import.meta.url));
const page = (name: string): string => readFileSync(`${root}docs/${name}`, 'utf8');

const entries = ['src/compiler/gpu.ts', 'src/library/index.ts', 'src/kernels/index.ts'];
const options = {
  target: ts.ScriptTarget.ES2022,
  module: ts.ModuleKind.NodeNext,
  moduleResolution: ts.ModuleResolutionKind.NodeNext,
  skipLibCheck: true,
  strict: true,
  noEmit: true,
};
const program = ts.createProgram(
  entries.map((entry) => root + entry),
  options,
);
const checker = program.getTypeChecker();

/** The types that a module exports, by their names. */
function typesOf(entry: string): ReadonlyMap<string, ts.Type> {
  const exported = checker.getExportsOfModule(
    checker.getSymbolAtLocation(program.getSourceFile(root + entry)!)!,
  );
  return new Map(
    exported.map((symbol) => {
      const real =
        (symbol.flags & ts.SymbolFlags.Alias) === 0 ? symbol : checker.getAliasedSymbol(symbol);
      return [symbol.name, checker.getDeclaredTypeOfSymbol(real)] as const;
    }),
  );
}

const namesIn = (type: ts.Type): string[] =>
  checker.getPropertiesOfType(type).map(({ name }) => name);

/** Members of gpu that have members of their own. */
const GROUPS: Readonly<Record<string, string>> = {
  warp: 'Warp',
  block: 'Block',
  grid: 'Grid',
  fence: 'Fences',
  async: 'AsyncCopies',
  fast: 'Fast',
  group: 'WarpGroup',
  tensor: 'TensorCopies',
  barrier: 'Barriers',
  cluster: 'Cluster',
};

describe('docs/gpu.md', () => {
  const types = typesOf('src/compiler/gpu.ts');
  const text = page('gpu.md');
  /** In the tables: at the beginning of a row, or after a comma there. */
  const named = new Set(
    [...text.matchAll(/^\| (`gpu\.[^|]*) \|/gm)].flatMap(([, cell]) =>
      [...cell!.matchAll(/`gpu\.([\w.]+)/g)].map(([, name]) => name!),
    ),
  );
  const known = [
    ...namesIn(types.get('Gpu')!).filter((name) => !(name in GROUPS)),
    'bool',
    ...Object.entries(GROUPS).flatMap(([group, type]) =>
      namesIn(types.get(type)!).map((name) => `${group}.${name}`),
    ),
  ];

  test('names each member of gpu in a table', () => {
    expect(known.length).toBeGreaterThan(90);
    expect(known.filter((name) => !named.has(name))).toEqual([]);
  });

  test('names none that there is not', () => {
    expect([...named].filter((name) => !known.includes(name))).toEqual([]);
  });

  test('names all kinds of arrays', () => {
    const kinds = namesIn(types.get('ArrayMethods')!);
    const [line = ''] = /^Each of the three has .*$/m.exec(text) ?? [];
    expect([...line.matchAll(/`(\w+)`/g)].map(([, name]) => name).sort()).toEqual(kinds.sort());
  });

  test('is linked from the pages that lead to it', () => {
    for (const name of ['README.md', 'kernels.md']) expect(page(name)).toContain('](gpu.md)');
  });
});

/**
 * The tables of a page whose first row names types of options: the types' names, and the options
 * that the rows name.
 */
function tablesOf(
  text: string,
): { readonly types: readonly string[]; readonly rows: readonly string[] }[] {
  return [...text.matchAll(/^\|(.*Options`.*)\| \|\n\|---\|---\|\n((?:\|.*\n)+)/gm)].map(
    ([, head, body]) => ({
      types: [...head!.matchAll(/`(\w+Options)`/g)].map(([, name]) => name!),
      rows: body!
        .split('\n')
        .flatMap((row) =>
          [...(/^\| ([^|]*) \|/.exec(row)?.[1] ?? '').matchAll(/`(\w+)`/g)].map(
            ([, name]) => name!,
          ),
        ),
    }),
  );
}

describe.each([
  ['library.md', 'src/library/index.ts', []],
  ['kernels.md', 'src/kernels/index.ts', ['CodeOptions', 'KernelCodeOptions']],
] as const)('docs/%s', (name, entry, parts) => {
  const tables = tablesOf(page(name));
  const types = [...typesOf(entry)].filter(
    ([type]) => type.endsWith('Options') && !(parts as readonly string[]).includes(type),
  );

  test.each(types.map(([type, of]) => [type, of] as const))(
    'names the options of %s',
    (type, of) => {
      const table = tables.find((each) => each.types.includes(type));
      expect(table, `a table whose first row names ${type}`).toBeDefined();
      expect(namesIn(of).filter((option) => !table!.rows.includes(option))).toEqual([]);
    },
  );

  test('names no option that there is not', () => {
    const known = new Map(types);
    for (const { types: of, rows } of tables) {
      const options = of.flatMap((type) => (known.has(type) ? namesIn(known.get(type)!) : []));
      expect(
        rows.filter((row) => !options.includes(row)),
        of.join(),
      ).toEqual([]);
    }
  });
});

describe('docs/errors.md', () => {
  const codes = new Set(
    [...readFileSync(`${root}src/ground/errors.ts`, 'utf8').matchAll(/\| '(ERR_CUDA_\w+)'/g)].map(
      ([, code]) => code!,
    ),
  );
  const rows = new Set(
    [...page('errors.md').matchAll(/^\| `(ERR_CUDA_\w+)` \|/gm)].map(([, code]) => code!),
  );

  test('has a row for each code, and for no other', () => {
    expect(codes.size).toBeGreaterThan(20);
    expect([...rows].sort()).toEqual([...codes].sort());
  });

  test('is about codes that a test expects', () => {
    const texts = ['src', 'test']
      .flatMap((folder) =>
        readdirSync(root + folder, { recursive: true, encoding: 'utf8' })
          .filter((file) => file.endsWith('.test.ts'))
          .map((file) => readFileSync(`${root}${folder}/${file}`, 'utf8')),
      )
      .join('\n');
    expect([...codes].filter((code) => !texts.includes(code))).toEqual([]);
  });
});
