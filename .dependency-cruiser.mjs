/**
 * Rules about imports, which dependency-cruiser checks: `npm run lint:imports`.
 *
 * - Imports go down the layers. The table below is that of CONTRIBUTING.md: each folder of src/ is
 *   a layer, and imports itself and what its row allows; a type counts like a value.
 * - A layer is imported through its doors: its index.ts, and the files that its row in `doors`
 *   names. Each file of ground/ and native/ is a door. Code that runs on a thread of its own
 *   imports any file, and so do tests.
 * - No cycle of imports by values. Types may refer to each other in a cycle within one folder, and
 *   not across folders.
 * - A pure compiler (`pure`) reaches no Node builtin, also not through other layers, and of
 *   packages only those that its row names: it runs in a browser as it is.
 * - A package is one of package.json's dependencies, so that an installed async-cuda finds it.
 * - Nothing imports from outside src/.
 *
 * The command runs twice. The first run sees imports as compiled modules have them, and finds each
 * cycle by values; one of types could hide it. The second (`--ts-pre-compilation-deps`) sees types,
 * for which all other rules hold too, and the package's own name (`--ts-config`).
 */

import { builtinModules } from 'node:module';

/**
 * From the ground up. `imports`: the rows that may be imported; `onTopOf`: rows that may be
 * imported together with all that they may import. `everything` is the roof.
 */
export const layers = {
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
  // An engine of the library's products.
  cublas: { onTopOf: ['tensor'], imports: ['native'] },
  // The bytecode of NVIDIA's Tile IR.
  tileir: { pure: true },
  // acorn reads JavaScript; gen-mapping writes the source maps of what is simulated.
  compiler: {
    pure: true,
    imports: ['ground', 'tileir'],
    packages: ['acorn', '@jridgewell/gen-mapping'],
  },
  // native: where the assembler of Tile IR lies.
  kernels: { onTopOf: ['compiler', 'tensor'], imports: ['native'] },
  library: { onTopOf: ['kernels', 'cublas'] },
  nvrtc: { onTopOf: ['library'], imports: ['native'] },
  images: { onTopOf: ['library'], imports: ['native'] },
  // What all engines of inference are to their users.
  engine: { onTopOf: ['library'] },
  tensorrt: { onTopOf: ['engine'], imports: ['native'] },
  onnxruntime: { onTopOf: ['engine'], imports: ['native'] },
  inference: { onTopOf: ['tensorrt', 'onnxruntime', 'images'] },
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

/** The beginning of the paths in these layers, as a regular expression. */
const inside = (names) => {
  const ends = names.map((name) =>
    name.endsWith('.ts') ? `${name.replace('.', '\\.')}$` : `${name}/`,
  );
  return `^src/(?:${ends.join('|')})`;
};

/** Tests, and what only tests use, are not in the package. */
const TESTS = '\\.test(-support)?\\.ts$|/testing/';
/** Node's modules, by any of their names. */
const BUILTINS = `^(?:node:)?(?:${builtinModules.join('|')})$`;
/** A package, whether it is installed or not. */
const packagePath = (name) => `(?:^|/)node_modules/${name}/|^${name}(?:/|$)`;

const layerRules = Object.keys(layers).flatMap((name) => {
  const allowed = allowedFor(name);
  if (allowed === undefined) return [];
  return {
    name: `${name}-imports-below`,
    comment: `src/${name} may import ${allowed.join(', ')}.`,
    severity: 'error',
    from: { path: inside([name]) },
    to: { path: '^src/', pathNot: inside(allowed) },
  };
});

const pureRules = Object.entries(layers).flatMap(([name, { pure, packages = [] }]) =>
  pure !== true
    ? []
    : [
        {
          name: `${name}-reaches-no-builtin`,
          comment: `src/${name} is a pure compiler: it and its imports use no Node builtin.`,
          severity: 'error',
          from: { path: inside([name]), pathNot: TESTS },
          to: { path: BUILTINS, reachable: true },
        },
        {
          name: `${name}-packages`,
          comment: `Of packages src/${name} imports ${packages.join(', ') || 'none'}.`,
          severity: 'error',
          from: { path: inside([name]), pathNot: TESTS },
          to: { pathNot: ['^src/', BUILTINS, ...packages.map(packagePath)] },
        },
      ],
);

/**
 * The doors of a layer: `index.ts`, and the files that its row names. A single file that exported
 * all of them again would make each program load what only some need: with such files the import of
 * the package took 0.20 s of processor time instead of 0.12, as a bundler then no longer separates
 * the parts that are loaded on demand.
 */
const doors = {
  ptx: ['runtime/relaxed-probe', 'tensor-map'],
  driver: [
    'attributes',
    'cpu/open',
    'driver',
    'error',
    'flags',
    'launch-batch',
    'libcuda/nvtx',
    'libcuda/open',
  ],
  runtime: [
    'cache-folder',
    'commands',
    'commands/trace',
    'completion',
    'copy-crew',
    'decoder/host',
    'disk-cache',
    'error-of-failure',
    'exit',
    'failure',
    'held-operation',
    'host-allocation',
    'js-thread/open',
    'layout',
    'library-call',
    'load-module',
    'messages',
    'native-copy',
    'own-files',
    'procedures',
    'providers',
    'ranges',
    'ring-writer',
    'runtime',
    'version',
    'work-line',
  ],
  core: [
    'aborting',
    'adopted-memory',
    'call-stack',
    'capture',
    'condition-setter',
    'fill-pattern',
    'foreign-graph',
    'graph-condition',
    'holder',
    'host-codec',
    'host-work',
    'kept',
    'memory',
    'operation',
    'operation-places',
    'queued-operation',
    'signature',
    'struct-declaration',
    'tensor-map',
    'thread-ending',
    'work-line',
  ],
  ops: ['collect', 'device-op', 'given', 'make', 'node', 'pools', 'run', 'scheduling'],
  tensor: [
    'alignment',
    'coalescing',
    'host-copies',
    'launch',
    'layout',
    'layouts',
    'loaded-kernels',
    'make',
    'random-options',
    'results',
    'shape',
    'shared-elements',
  ],
  cublas: [],
  tileir: [],
  compiler: [
    'code-frame',
    'element/element-form',
    'element/gpu-of-elements',
    'emit/emit',
    'factors',
    'gpu',
    'lowering',
    'read/read-kernel',
    'read/too-deep',
    'signature',
    'simulate/arguments',
    'simulate/failure',
    'simulate/simulate',
    'source-error',
    'tile-ir/lower',
    'tile-ir/tile-ir-form',
    'tiles/tensor-entry',
    'tiles/tile-form',
    'tree',
  ],
  kernels: ['pixels'],
  library: ['kernel-family', 'operation', 'words'],
  nvrtc: ['mangled-words', 'source-signatures', 'structure-bytes'],
  images: [],
  engine: ['batching/index', 'engine', 'last-run', 'recent-ops', 'run-checks', 'run-outputs'],
  tensorrt: [],
  onnxruntime: ['model-bytes'],
  inference: [],
  device: ['compiled-module', 'device', 'module'],
};

/** Layers of which each file is a door, and those that none imports. */
const WITHOUT_DOORS = ['ground', 'native', 'index.ts', 'cli'];

for (const name of Object.keys(layers))
  if (doors[name] === undefined && !WITHOUT_DOORS.includes(name))
    throw new Error(`.dependency-cruiser.mjs: ${name} has no row in 'doors'`);

const doorRules = Object.entries(doors).map(([name, names]) => ({
  name: `${name}-through-its-doors`,
  comment: `Import src/${name}/index.ts, or a file that the row of ${name} in \`doors\` names.`,
  severity: 'error',
  from: { path: '^src/', pathNot: [inside([name]), TESTS, '/(?:thread|crew)/'] },
  to: { path: inside([name]), pathNot: `^src/${name}/(?:${['index', ...names].join('|')})\\.ts$` },
}));

/** @type {import('dependency-cruiser').IConfiguration} */
export default {
  forbidden: [
    {
      name: 'every-folder-has-a-row',
      comment: 'A folder of src/ is a layer: add a row to the table, from the ground up.',
      severity: 'error',
      from: { path: '^src/', pathNot: inside(Object.keys(layers)) },
      to: {},
    },
    ...layerRules,
    ...doorRules,
    ...pureRules,
    {
      name: 'only-dependencies',
      comment:
        "Packages are among package.json's dependencies: an installed async-cuda has no others.",
      severity: 'error',
      from: { path: '^src/', pathNot: TESTS },
      to: { pathNot: '^src/', dependencyTypesNot: ['npm', 'core', 'local', 'localmodule'] },
    },
    {
      name: 'nothing-outside-src',
      comment: 'An installed package has nothing of the project but src/.',
      severity: 'error',
      from: { path: '^src/', pathNot: TESTS },
      to: { pathNot: '^src/|node_modules/', dependencyTypes: ['local', 'localmodule'] },
    },
    {
      name: 'no-cycle-by-values',
      comment:
        'Break the cycle at its root: a contract in a file of its own, a registry that one file ' +
        'fills, or an argument.',
      severity: 'error',
      from: {},
      to: { circular: true, viaOnly: { dependencyTypesNot: ['type-only'] } },
    },
    {
      name: 'no-cycle-between-folders',
      comment: 'Types may refer to each other in a cycle within one folder only.',
      severity: 'error',
      from: { path: '^(src/|src/.+/)[^/]+$' },
      to: { pathNot: '^$1[^/]+$', circular: true },
    },
  ],
  options: {
    doNotFollow: { path: 'node_modules' },
    exclude: { path: '-source\\.ts$' },
  },
};
