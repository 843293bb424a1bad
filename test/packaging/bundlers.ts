/**
 * The bundlers that the package must survive, one row each: `file` into one file that Node runs.
 */
import { mkdir } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';

export interface Bundler {
  name: string;
  /**
   * Bundles the program `file`, all its packages included, into the folder `out`; returns the file
   * to run.
   */
  bundle(file: string, out: string): Promise<string>;
}

/**
 * The folder is made without a package.json of its own, so that the extension determines whether a
 * file is ESM or CommonJS.
 */
async function outputFile(file: string, out: string, ending: '.mjs' | '.cjs'): Promise<string> {
  const path = join(out, basename(file).replace(/\.mjs$/, ending));
  await mkdir(dirname(path), { recursive: true });
  return path;
}

async function withEsbuild(file: string, out: string, format: 'esm' | 'cjs'): Promise<string> {
  const { build } = await import('esbuild');
  const outfile = await outputFile(file, out, format === 'esm' ? '.mjs' : '.cjs');
  await build({
    entryPoints: [file],
    outfile,
    bundle: true,
    minify: true,
    platform: 'node',
    format,
    logLevel: 'silent',
  });
  return outfile;
}

export const bundlers: readonly Bundler[] = [
  { name: 'esbuild, ESM', bundle: (file, out) => withEsbuild(file, out, 'esm') },
  { name: 'esbuild, CommonJS', bundle: (file, out) => withEsbuild(file, out, 'cjs') },
  {
    name: 'rollup',
    async bundle(file, out) {
      const [{ rollup }, { nodeResolve }] = await Promise.all([
        import('rollup'),
        import('@rollup/plugin-node-resolve'),
      ]);
      const bundle = await rollup({
        input: file,
        plugins: [nodeResolve({ preferBuiltins: true })],
        external: /^node:/,
      });
      const path = await outputFile(file, out, '.mjs');
      await bundle.write({ file: path, format: 'es', inlineDynamicImports: true });
      await bundle.close();
      return path;
    },
  },
  {
    name: 'vite, ssr',
    async bundle(file, out) {
      const { build } = await import('vite');
      const path = await outputFile(file, out, '.mjs');
      await build({
        root: dirname(file),
        configFile: false,
        logLevel: 'error',
        ssr: { noExternal: true },
        build: {
          ssr: file,
          outDir: out,
          minify: true,
          rollupOptions: { output: { entryFileNames: basename(path) } },
        },
      });
      return path;
    },
  },
  {
    name: 'webpack',
    async bundle(file, out) {
      const { default: webpack } = await import('webpack');
      const path = await outputFile(file, out, '.cjs');
      await new Promise<void>((resolve, reject) => {
        const compiler = webpack({
          mode: 'production',
          target: 'node20.19',
          context: dirname(file),
          entry: file,
          output: { path: out, filename: basename(path) },
        });
        compiler.run((error, stats) => {
          compiler.close(() => {
            if (error) reject(error);
            else if (stats?.hasErrors() === true) reject(new Error(stats.toString('errors-only')));
            else resolve();
          });
        });
      });
      return path;
    },
  },
];
