/** An empty application with the packed package installed in it, as a user would have it. */
import { execFile } from 'node:child_process';
import { cp, mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const execute = promisify(execFile);

export const repository = fileURLToPath(new URL('../../', import.meta.url));
export const fixture = fileURLToPath(new URL('./fixture/', import.meta.url));

/**
 * Runs a program to its end and returns what it printed; the error of a failed one shows both its
 * outputs.
 */
export async function runProgram(
  file: string,
  args: readonly string[],
  cwd: string,
): Promise<string> {
  try {
    const { stdout } = await execute(file, args, {
      cwd,
      maxBuffer: 64 << 20,
      env: { ...process.env, NODE_OPTIONS: '', ASYNC_CUDA_DEVICE: 'cpu' },
    });
    return stdout;
  } catch (error) {
    const { stdout, stderr } = error as { stdout?: string; stderr?: string };
    throw new Error(`${file} ${args.join(' ')} failed\n${stdout ?? ''}\n${stderr ?? ''}`, {
      cause: error,
    });
  }
}

const runNode = (args: readonly string[], cwd: string): Promise<string> =>
  runProgram(process.execPath, args, cwd);

export interface PackedFile {
  path: string;
  size: number;
}

export class InstalledApp {
  /** The application's folder. */
  readonly folder: string;
  /** What is in the package's tarball. */
  readonly packed: readonly PackedFile[];

  private constructor(folder: string, packed: readonly PackedFile[]) {
    this.folder = folder;
    this.packed = packed;
  }

  static async create(): Promise<InstalledApp> {
    // Not `npm run build`, which empties dist: other tests may be reading it.
    await runNode(['scripts/build.mjs'], repository);
    await runNode(['node_modules/typescript/bin/tsc', '-p', 'tsconfig.build.json'], repository);

    const folder = await mkdtemp(join(tmpdir(), 'async-cuda-app-'));
    const report = await runProgram(
      'npm',
      ['pack', '--ignore-scripts', '--json', '--pack-destination', folder],
      repository,
    );
    const [{ filename, files }] = JSON.parse(report) as [{ filename: string; files: PackedFile[] }];

    await writeFile(
      join(folder, 'package.json'),
      '{ "name": "app", "version": "1.0.0", "private": true, "type": "module" }\n',
    );
    try {
      await runProgram(
        'npm',
        ['install', '--prefer-offline', '--no-audit', '--no-fund', `./${filename}`],
        folder,
      );
    } catch {
      // No registry and no cache: the same layout by hand, with the packages that this repository
      // has.
      const modules = join(folder, 'node_modules');
      await mkdir(join(modules, 'async-cuda'), { recursive: true });
      await runProgram(
        'tar',
        ['-xzf', filename, '-C', join(modules, 'async-cuda'), '--strip-components=1'],
        folder,
      );
      for (const name of ['koffi', '@koromix', 'acorn', '@jridgewell'])
        await cp(join(repository, 'node_modules', name), join(modules, name), { recursive: true });
    }
    await mkdir(join(folder, 'node_modules/@types'), { recursive: true });
    await symlink(
      join(repository, 'node_modules/@types/node'),
      join(folder, 'node_modules/@types/node'),
    );
    await cp(fixture, folder, { recursive: true });
    return new InstalledApp(folder, packed(files));
  }

  /** Writes a file into the application and returns its path. */
  async write(name: string, text: string): Promise<string> {
    const path = join(this.folder, name);
    await mkdir(dirname(path), { recursive: true });
    await writeFile(path, text);
    return path;
  }

  /** Runs one of the application's files with Node. */
  run(...args: string[]): Promise<string> {
    return runNode(args, this.folder);
  }

  remove(): Promise<void> {
    return rm(this.folder, { recursive: true, force: true });
  }
}

function packed(files: readonly PackedFile[]): PackedFile[] {
  return files.map(({ path, size }) => ({ path, size }));
}
