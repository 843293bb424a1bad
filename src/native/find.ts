/**
 * Finds NVIDIA's libraries on disk: by versioned names, in the folders that the loader, the
 * toolkit, the driver's packages and Python wheels use. It loads no library and starts no program.
 *
 * The order of the folders is that of the user's intent: the library's own environment variable,
 * LD_LIBRARY_PATH, the toolkit and the Python environment that variables name, the driver's and the
 * loader's folders, then toolkits and wheels at their usual places.
 */
import { existsSync, readFileSync, readdirSync, statSync } from 'node:fs';
import { createRequire } from 'node:module';
import { homedir } from 'node:os';
import { basename, dirname, isAbsolute, join } from 'node:path';

import { fileNames } from './libraries.js';
import type { LibraryRow } from './libraries.js';

/** The machine that is searched. Tests fabricate one. */
export interface Machine {
  readonly platform: NodeJS.Platform;
  readonly arch: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly home: string;
  /** Prefix of all absolute folders that this file names itself; empty except in tests. */
  readonly root: string;
  /** The bases from which npm packages are resolved: paths or URLs. */
  readonly modules?: readonly string[];
}

/** A path that was tried, and why it did not serve. */
export interface Tried {
  readonly path: string;
  readonly reason: string;
}

/** The path of a library, or every path that was tried where there is none. */
export type FindResult = { readonly path: string } | { readonly tried: readonly Tried[] };

/** Describes the machine that the program runs on. */
export function thisMachine(): Machine {
  return {
    platform: process.platform,
    arch: process.arch,
    env: process.env,
    home: homedir(),
    root: '',
    modules: moduleBases(),
  };
}

/**
 * Returns the bases from which npm packages are resolved: the working directory, the program, this
 * file. In a Worker made from text only the first is available.
 */
function moduleBases(): string[] {
  const here: string | undefined = import.meta.url;
  const program = process.argv[1];
  return [
    `${process.cwd()}/`,
    ...(program !== undefined && isAbsolute(program) ? [program] : []),
    ...(here === undefined ? [] : [here]),
  ];
}

/**
 * Finds a library on disk, without loading it. The file may be for another processor, or damaged.
 *
 * @param row a row of {@link KNOWN_LIBRARIES}, or one of the program's own
 * @returns the path, or every path tried
 *
 * @example
 * ```ts no-run
 * const found = findLibrary(KNOWN_LIBRARIES.cudnn);
 * if ('path' in found) console.log(found.path); // /usr/local/cuda/lib64/libcudnn.so.9
 * else console.log(found.tried.length); // the number of paths tried
 * ```
 */
export function findLibrary(row: LibraryRow, machine: Machine = thisMachine()): FindResult {
  const tried: Tried[] = [];
  for (const path of candidatePaths(row, machine, tried)) {
    if (existsSync(path)) return { path };
    tried.push({ path, reason: 'no such file' });
  }
  return { tried };
}

/**
 * Yields every path where a library may lie, in order. Folders that do not exist yield no paths;
 * they are recorded in `tried`.
 */
export function* candidatePaths(
  row: LibraryRow,
  machine: Machine,
  tried: Tried[],
): Generator<string> {
  const names = fileNames(row, machine.platform);
  const named = (variables: readonly string[]): string | undefined =>
    variables.map((name) => machine.env[name]).find((value) => value !== undefined && value !== '');
  const override = named(row.environment);
  if (override !== undefined) {
    // The path that the user names is the only one tried.
    if (isFolder(override)) yield* filesIn(override, names, row);
    else yield override;
    return;
  }
  const seen = new Set<string>();
  const other = named(row.beside ?? []);
  if (other !== undefined) {
    const folder = isFolder(other) ? other : dirname(other);
    seen.add(folder);
    yield* filesIn(folder, names, row);
  }
  for (const folder of candidateFolders(row, machine)) {
    if (seen.has(folder)) continue;
    seen.add(folder);
    if (!isFolder(folder)) {
      tried.push({ path: join(folder, names[0] ?? ''), reason: 'no such folder' });
      continue;
    }
    yield* filesIn(folder, names, row);
  }
}

/**
 * Yields the paths that the library may have in a folder, the most specific name first. A name with
 * the whole version is yielded only where such a file exists.
 */
function* filesIn(folder: string, names: readonly string[], row: LibraryRow): Generator<string> {
  for (const name of names) yield join(folder, name);
  if (row.wholeVersion === true)
    yield* matching(folder, new RegExp(`^lib${row.base}\\.so\\.\\d+\\.\\d`));
}

/** Yields the folder of the npm package that contains the library. */
function* packageFolders(
  row: LibraryRow,
  { modules = [], platform, arch }: Machine,
): Generator<string> {
  if (row.npm === undefined) return;
  for (const base of modules) {
    try {
      const manifest = createRequire(base).resolve(`${row.npm.name}/package.json`);
      yield join(
        dirname(manifest),
        row.npm.folder.replace('{platform}', platform).replace('{arch}', arch),
      );
    } catch {
      // The package is not installed there.
    }
  }
}

/** Yields the folders in which a library is looked for, in order. */
export function* candidateFolders(row: LibraryRow, machine: Machine): Generator<string> {
  yield* packageFolders(row, machine);
  if (machine.platform === 'win32') {
    yield* windowsFolders(row, machine);
    return;
  }
  const { env, root } = machine;
  yield* pathList(env['LD_LIBRARY_PATH'], ':');
  if (row.from !== 'driver') {
    for (const toolkit of [env['CUDA_HOME'], env['CUDA_PATH']])
      if (toolkit) yield* toolkitFolders(toolkit, machine);
    for (const prefix of [env['VIRTUAL_ENV'], env['CONDA_PREFIX']]) {
      if (!prefix) continue;
      yield join(prefix, 'lib');
      for (const python of matching(join(prefix, 'lib'), /^python3/))
        yield* wheelFolders(join(python, 'site-packages'), row);
    }
    for (const packages of pathList(env['PYTHONPATH'], ':')) yield* wheelFolders(packages, row);
    for (const prefix of pythonsOnPath(machine)) {
      for (const python of matching(join(prefix, 'lib'), /^python3/))
        yield* wheelFolders(join(python, 'site-packages'), row);
    }
  }
  yield* driverFolders(machine);
  yield* loaderFolders(machine);
  if (row.from === 'driver') {
    // The compatibility package has a newer libcuda for data-centre GPUs; it is used only where
    // there is no other.
    yield `${root}/usr/local/cuda/compat`;
    return;
  }
  yield* toolkitFolders(`${root}/usr/local/cuda`, machine);
  for (const toolkit of matching(`${root}/usr/local`, /^cuda-\d/))
    yield* toolkitFolders(toolkit, machine);
  yield* toolkitFolders(`${root}/opt/cuda`, machine);
  for (const lib of [
    join(machine.home, '.local/lib'),
    `${root}/usr/local/lib`,
    `${root}/usr/lib`,
  ]) {
    for (const python of matching(lib, /^python3/)) {
      for (const packages of ['site-packages', 'dist-packages'])
        yield* wheelFolders(join(python, packages), row);
    }
  }
}

function multiarch(machine: Machine): string {
  return machine.arch === 'arm64' ? 'aarch64-linux-gnu' : 'x86_64-linux-gnu';
}

/** The folders where drivers install libcuda, besides the loader's own. */
function* driverFolders(machine: Machine): Generator<string> {
  const { root } = machine;
  const system = `${root}/usr/lib/${multiarch(machine)}`;
  yield system;
  yield `${root}/usr/lib64`;
  yield `${root}/usr/lib/wsl/lib`;
  yield `${root}/usr/local/nvidia/lib64`;
  yield `${root}/usr/local/nvidia/lib`;
  // Jetson uses the first before JetPack 6 and the second from then on.
  if (machine.arch === 'arm64') {
    yield `${system}/tegra`;
    yield `${system}/nvidia`;
  }
  yield `${root}/run/opengl-driver/lib`; // NixOS
}

/**
 * The loader's folders: those of ld.so.conf and the files that it includes, then the built-in ones.
 */
function* loaderFolders(machine: Machine): Generator<string> {
  const { root } = machine;
  yield* loaderConfiguration(`${root}/etc/ld.so.conf`, root, 0);
  yield `${root}/lib/${multiarch(machine)}`;
  yield `${root}/lib64`;
  yield `${root}/usr/lib`;
  yield `${root}/lib`;
}

function* loaderConfiguration(file: string, root: string, depth: number): Generator<string> {
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch {
    return;
  }
  for (const raw of text.split('\n')) {
    const line = raw.replace(/#.*/, '').trim();
    const include = /^include\s+(\S+)$/.exec(line)?.[1];
    if (include !== undefined) {
      // Only the last component may contain a wildcard, as in /etc/ld.so.conf.d/*.conf.
      const pattern = isAbsolute(include) ? root + include : join(dirname(file), include);
      const files = matching(dirname(pattern), wildcard(basename(pattern))).reverse();
      if (depth < 8)
        for (const included of files) yield* loaderConfiguration(included, root, depth + 1);
    } else if (line.startsWith('/')) {
      yield root + line;
    }
  }
}

function* toolkitFolders(toolkit: string, machine: Machine): Generator<string> {
  yield join(toolkit, 'lib64');
  const targets = machine.arch === 'arm64' ? ['sbsa-linux', 'aarch64-linux'] : ['x86_64-linux'];
  for (const target of targets) yield join(toolkit, 'targets', target, 'lib');
  yield join(toolkit, 'lib');
}

/** Environments whose Python is on the PATH, also where they were not activated. */
function* pythonsOnPath({ env }: Machine): Generator<string> {
  for (const folder of pathList(env['PATH'], ':')) {
    if (basename(folder) === 'bin' && existsSync(join(folder, 'python3'))) yield dirname(folder);
  }
}

/**
 * The folders of NVIDIA's wheels: `nvidia/cu13/lib`, `nvidia/cuda_nvrtc/lib`, `nvidia/cudnn/lib`,
 * …, the newest toolkit first.
 */
function* wheelFolders(sitePackages: string, row: LibraryRow): Generator<string> {
  if (!isFolder(sitePackages)) return;
  for (const wheel of matching(join(sitePackages, 'nvidia'), /^/)) {
    const lib = join(wheel, 'lib');
    if (isFolder(lib)) yield lib;
  }
  for (const folder of row.wheelFolders ?? []) yield join(sitePackages, folder);
}

/** The folders on Windows. They are not tested there. */
function* windowsFolders(row: LibraryRow, { env }: Machine): Generator<string> {
  if (row.from !== 'driver') {
    for (const [name, value] of Object.entries(env)) {
      if (/^CUDA_PATH(_V\d+_\d+)?$/.test(name) && value)
        yield* [join(value, 'bin', 'x64'), join(value, 'bin')];
    }
    for (const prefix of [env['VIRTUAL_ENV'], env['CONDA_PREFIX']]) {
      if (!prefix) continue;
      const sitePackages = join(prefix, 'Lib', 'site-packages');
      for (const wheel of matching(join(sitePackages, 'nvidia'), /^/))
        yield* [join(wheel, 'bin', 'x86_64'), join(wheel, 'bin')];
      for (const folder of row.wheelFolders ?? []) yield join(sitePackages, folder);
    }
  }
  yield join(env['SystemRoot'] ?? 'C:\\Windows', 'System32');
  yield* pathList(env['PATH'] ?? env['Path'], ';');
}

function pathList(value: string | undefined, separator: string): string[] {
  return (value ?? '').split(separator).filter((entry) => entry !== '');
}

/** The entries of a folder whose names match, as paths, the highest version first. */
export function matching(folder: string, pattern: RegExp): string[] {
  let names: string[];
  try {
    names = readdirSync(folder);
  } catch {
    return [];
  }
  return names
    .filter((name) => pattern.test(name))
    .sort((a, b) => b.localeCompare(a, 'en', { numeric: true }))
    .map((name) => join(folder, name));
}

function wildcard(text: string): RegExp {
  const escaped = text
    .replace(/[.+^${}()|[\]\\]/g, '\\$&')
    .replaceAll('*', '.*')
    .replaceAll('?', '.');
  return new RegExp(`^${escaped}$`);
}

export function isFolder(path: string): boolean {
  try {
    return statSync(path).isDirectory();
  } catch {
    return false;
  }
}
