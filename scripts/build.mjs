/**
 * Builds the package's JavaScript: `node scripts/build.mjs [--clean] [--scripts-only]`.
 *
 * First each script that a Worker runs is bundled into one self-contained CommonJS text and written
 * as a TypeScript module that exports it (Workers start from text: a `new URL('./worker.js',
 * import.meta.url)` breaks in bundlers), and the digest of the compiler's sources. Then the
 * package's entries are bundled as ESM with shared chunks. `tsc -p tsconfig.build.json` writes the
 * types.
 *
 * `--clean` empties dist first, types included; `--scripts-only` stops after the Workers' texts.
 */
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir, readFile, readdir, rename, rm, writeFile } from 'node:fs/promises';
import { dirname, join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

const root = resolve(dirname(fileURLToPath(import.meta.url)), '..');
const dist = join(root, 'dist');

/**
 * Texts that Workers run: bundled from `entry`, written to `output` as `export const <name>:
 * string`. In order: the second holds the first. One with `parameters` becomes an expression, a
 * function of them. The SHA-256 of one with `digest` is written to that module, which is loaded
 * before the text.
 */
const workerScripts = [
  {
    name: 'crewSource',
    entry: 'src/runtime/thread/crew-member.ts',
    output: 'src/runtime/thread/crew-source.ts',
  },
  {
    name: 'threadSource',
    entry: 'src/runtime/thread/main.ts',
    output: 'src/runtime/thread-source.ts',
    parameters: 'require, keepCode',
    digest: { name: 'threadSourceDigest', output: 'src/runtime/thread-source-digest.ts' },
  },
  { name: 'bootSource', entry: 'src/runtime/thread/boot.ts', output: 'src/runtime/boot-source.ts' },
  {
    name: 'compilerThreadSource',
    entry: 'src/nvrtc/thread/main.ts',
    output: 'src/nvrtc/thread-source.ts',
  },
  {
    name: 'tensorRTThreadSource',
    entry: 'src/tensorrt/thread/main.ts',
    output: 'src/tensorrt/thread-source.ts',
  },
  {
    name: 'onnxThreadSource',
    entry: 'src/onnxruntime/thread/main.ts',
    output: 'src/onnxruntime/thread-source.ts',
  },
  {
    name: 'nvjpegThreadSource',
    entry: 'src/images/media/nvjpeg/thread/main.ts',
    output: 'src/images/media/nvjpeg/thread-source.ts',
  },
];

/**
 * Sources of the compiler from TypeScript to PTX, and the module that exports their SHA-256: what
 * it made and was kept on disk counts no more once they have changed.
 */
const compilerDigest = {
  folders: ['src/compiler', 'src/tileir'],
  // The rows of the dtypes decide what is compiled, too.
  beside: ['dtype-row.ts', 'dtype.ts', 'dtypes.ts', 'narrow-floats.ts'].map(
    (name) => `src/ground/${name}`,
  ),
  output: 'src/kernels/compiler-digest.ts',
};

const { exports } = JSON.parse(await readFile(join(root, 'package.json'), 'utf8'));

/** `dist/<name>.js` from `entry`: the entries of the package, by `exports` of package.json. */
const entries = [
  ...Object.entries(exports)
    .filter(([, target]) => typeof target === 'object')
    .map(([, { types, default: output }]) => ({
      name: output.replace(/^\.\/dist\/(.*)\.js$/, '$1'),
      entry: types.replace(/^\.\/dist\/types\/(.*)\.d\.ts$/, 'src/$1.ts'),
    })),
  // No entry of the package: a thread that blocks requires it. See src/kernels/compiler-parts.ts.
  { name: 'whole-compiler', entry: 'src/kernels/whole-compiler.ts' },
  { name: 'cli', entry: 'src/cli/main.ts', executable: true },
];

/** @type {import('esbuild').BuildOptions} */
const everyBuild = {
  absWorkingDir: root,
  bundle: true,
  platform: 'node',
  target: 'node20.19',
  // Dependencies stay what npm installs. koffi, the one native one, is loaded only where a real GPU
  // is opened.
  external: ['koffi', 'acorn', '@jridgewell/gen-mapping'],
  // What is built does not validate the WebAssembly that it writes: see src/ptx/wasm/code.ts.
  define: { ASYNC_CUDA_BUILT: 'true' },
  // Where every character is ASCII the engine keeps the source as bytes, half as large, and reads
  // it sooner.
  charset: 'ascii',
  logLevel: 'warning',
  write: false,
};

/**
 * Splits rows whose source exists from those whose source does not, and prints those that were left
 * out.
 */
function present(rows) {
  return rows.filter(({ entry }) => {
    const found = existsSync(join(root, entry));
    if (!found) console.error(`build: ${entry} does not exist, left out`);
    return found;
  });
}

/**
 * Replaces the file in one step, and only if its contents change: other processes read these files
 * meanwhile.
 */
async function replaceFile(path, contents, mode) {
  const bytes = Buffer.from(contents);
  if (existsSync(path) && bytes.equals(await readFile(path))) return;
  await mkdir(dirname(path), { recursive: true });
  const temporary = `${path}.${process.pid}.tmp`;
  await writeFile(temporary, bytes, { mode });
  await rename(temporary, path);
}

export async function buildWorkerScripts() {
  for (const { name, entry, output, parameters, digest } of present(workerScripts)) {
    const result = await build({
      ...everyBuild,
      entryPoints: [entry],
      format: 'cjs',
      // There is no file whose address it could be.
      define: { ...everyBuild.define, 'import.meta.url': 'undefined' },
      // Names stay whole: they are what a stack trace from the thread shows.
      minifySyntax: true,
      minifyWhitespace: true,
      legalComments: 'none',
      metafile: true,
    });
    // With an old text lying there it would build, and not from a fresh clone.
    if (output in result.metafile.inputs)
      throw new Error(`${entry} imports ${output}, the text that is made from it`);
    const bundled = result.outputFiles[0].text;
    const text = parameters === undefined ? bundled : `(function(${parameters}){${bundled}\n})`;
    const origin = `// Written by scripts/build.mjs from ${entry}.\n\n`;
    await replaceFile(
      join(root, output),
      `${origin}/** The script that the Worker runs, as text. */\n` +
        `export const ${name}: string = ${literal(text)};\n`,
    );
    if (digest !== undefined)
      await replaceFile(
        join(root, digest.output),
        `${origin}/** SHA-256 of the script. */\n` +
          `export const ${digest.name} = '${createHash('sha256').update(text).digest('hex')}';\n`,
      );
  }
}

async function writeCompilerDigest() {
  const { folders, beside, output } = compilerDigest;
  const names = await Promise.all(
    folders.map(async (folder) =>
      (await readdir(join(root, folder), { recursive: true }))
        .map((name) => `${folder}/${name.replaceAll('\\', '/')}`)
        .sort(),
    ),
  );
  const sources = names
    .flat()
    .filter((name) => name.endsWith('.ts') && !/\.test(-support)?\.ts$/.test(name))
    .concat(beside);
  const hash = createHash('sha256');
  for (const name of sources)
    hash
      .update(`${name}\0`)
      .update(await readFile(join(root, name)))
      .update('\0');
  await replaceFile(
    join(root, output),
    `// Written by scripts/build.mjs from ${folders.join(' and ')}.\n\n` +
      `/** SHA-256 of the compiler's ` +
      `sources. */\nexport const compilerDigest = '${hash.digest('hex')}';\n`,
  );
}

/** All sources that are generated from others. */
export async function buildGenerated() {
  await writeCompilerDigest();
  await buildWorkerScripts();
}

export async function removeWorkerScripts() {
  for (const { output, digest } of workerScripts)
    for (const path of [output, ...(digest === undefined ? [] : [digest.output])])
      await rm(join(root, path), { force: true });
}

/**
 * The text as a string in single quotes, of which the Workers' texts have few. V8 reads a template
 * literal twice as slowly, because it keeps the text with and without the escapes (1.3 MB: 17
 * instead of 8 ms, Node 20 on a cloud machine).
 */
function literal(text) {
  const escapes = { '\n': '\\n', '\r': '\\r', "'": "\\'", '\\': '\\\\' };
  return `'${text.replace(/[\n\r'\\]/g, (character) => escapes[character])}'`;
}

async function buildEntries() {
  const rows = present(entries);
  if (rows.length === 0) return;
  const result = await build({
    ...everyBuild,
    entryPoints: Object.fromEntries(rows.map(({ name, entry }) => [name, entry])),
    outdir: dist,
    format: 'esm',
    // Readable: an uncaught error begins with the line of code that has thrown it.
    lineLimit: 160,
    legalComments: 'none',
    splitting: true,
    chunkNames: 'chunk-[hash]',
    sourcemap: 'linked',
    // The sources are in the repository; their text a second time would double the package.
    sourcesContent: false,
    metafile: true,
  });

  const written = new Set();
  for (const file of result.outputFiles) {
    const name = relative(dist, file.path);
    written.add(name);
    const row = rows.find((r) => `${r.name}.js` === name);
    await replaceFile(file.path, file.contents, row?.executable ? 0o755 : 0o644);
  }
  // Chunks of earlier builds. Last, so that a program that loads the package meanwhile finds a
  // whole one.
  for (const name of await readdir(dist)) {
    if (/\.js(\.map)?$/.test(name) && !written.has(name)) await rm(join(dist, name));
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const options = new Set(process.argv.slice(2));
  if (options.has('--clean')) await rm(dist, { recursive: true, force: true });
  await buildGenerated();
  if (!options.has('--scripts-only')) await buildEntries();
}
