/**
 * Gathers the facts about the machine for a bug report. Missing or broken parts are reported, never
 * thrown.
 */
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { cpus, release, totalmem, version as systemVersion } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

import { openCpu } from '../driver/cpu/open.js';
import type { Driver } from '../driver/driver.js';
import { LibraryNotFoundError } from '../driver/error.js';
import { findLibrary } from '../native/find.js';
import type { FindResult } from '../native/find.js';
import { KNOWN_PROGRAMS, findProgram } from '../native/find-program.js';
import { koffiPath } from '../native/koffi.js';
import { KNOWN_LIBRARIES } from '../native/libraries.js';
import { openLibcuda } from '../driver/libcuda/open.js';
import type { CacheContents } from '../runtime/disk-cache.js';
import { cacheContents } from './cache.js';
import { describeDevices } from './device-rows.js';
import type { DeviceInfo } from './device-rows.js';
import { engineFeatures } from './engine-features.js';
import type { EngineFeatures } from './engine-features.js';
import { messageOf } from '../ground/other-realms.js';

export interface Problem {
  message: string;
  /** The places where a library was searched for, in order. */
  tried?: readonly { path: string; reason: string }[];
}

export interface DriverInfo {
  /** e.g. `13.0` */
  cuda: string;
  /** The file that was loaded, where the system gives it. */
  path?: string;
  /** The kernel module's version, e.g. `580.95.05`, where the system gives it. */
  kernelModule?: string;
}

export interface LibraryInfo {
  name: string;
  path?: string;
  /** What a program says about its version, or why it does not start. */
  version?: string | { problem: Problem };
  pathsTried?: number;
}

export interface Info {
  asyncCuda: string;
  node: { version: string; v8: string; platform: string; arch: string };
  system: { release: string; version: string };
  cpu: { model: string; cores: number; memoryBytes: number };
  koffi: { version: string; path: string } | { problem: Problem };
  driver: DriverInfo | { problem: Problem };
  /** The devices, GPUs first. */
  devices: DeviceInfo[];
  /** Failures of devices. */
  problems: Problem[];
  features: EngineFeatures;
  /** Libraries, then programs. */
  libraries: LibraryInfo[];
  /** The compiled code on disk; null where that is switched off. */
  cache: CacheContents | null;
  /** Environment variables that change which libraries are found or how they run. */
  environment: Record<string, string>;
}

function problemOf(error: unknown): Problem {
  if (error instanceof LibraryNotFoundError) {
    return { message: error.message.split('\nTried:')[0]!, tried: error.tried };
  }
  return { message: messageOf(error) };
}

/** The version in the package.json above this file, in the sources as in the build. */
function packageVersion(): string {
  for (
    let folder = dirname(fileURLToPath(import.meta.url));
    folder !== dirname(folder);
    folder = dirname(folder)
  ) {
    const manifest = manifestIn(folder);
    if (manifest?.name === 'async-cuda') return manifest.version ?? 'unknown';
  }
  return 'unknown';
}

function manifestIn(folder: string): { name?: string; version?: string } | undefined {
  try {
    return JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as {
      name?: string;
      version?: string;
    };
  } catch {
    return undefined;
  }
}

function koffiInfo(): Info['koffi'] {
  const path = koffiPath();
  if (path === undefined)
    return { problem: { message: 'not installed; a real GPU cannot be opened' } };
  return { version: manifestIn(dirname(path))?.version ?? 'unknown', path };
}

/** The libcuda that the process has mapped, on Linux. */
function mappedLibcuda(): string | undefined {
  try {
    return /\S*\/libcuda\.so\S*/.exec(readFileSync('/proc/self/maps', 'utf8'))?.[0];
  } catch {
    return undefined;
  }
}

function kernelModuleVersion(): string | undefined {
  try {
    return /\s(\d+\.\d+(?:\.\d+)?)\s/.exec(
      readFileSync('/proc/driver/nvidia/version', 'utf8'),
    )?.[1];
  } catch {
    return undefined;
  }
}

function driverInfo(driver: Driver): DriverInfo {
  const version = driver.cuDriverGetVersion();
  const info: DriverInfo = {
    cuda: `${Math.floor(version / 1000)}.${Math.floor((version % 1000) / 10)}`,
  };
  const path = mappedLibcuda();
  if (path !== undefined) info.path = path;
  const kernelModule = kernelModuleVersion();
  if (kernelModule !== undefined) info.kernelModule = kernelModule;
  return info;
}

const libraryInfo = (name: string, found: FindResult): LibraryInfo =>
  'path' in found ? { name, path: found.path } : { name, pathsTried: found.tried.length };

/** How long a program may take to print its version: the first start reads it from the disk. */
const VERSION_MS = 10_000;

/** The version that NVIDIA's program prints, e.g. `13.5.37`. */
function programVersion(path: string): string | { problem: Problem } {
  const { stdout, error } = spawnSync(path, ['--version'], {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'ignore'],
    timeout: VERSION_MS,
  });
  if (error !== undefined) return { problem: { message: `it does not start: ${error.message}` } };
  const version = /\bV(\d+(?:\.\d+)+)/.exec(stdout)?.[1];
  return version ?? { problem: { message: 'it prints no version' } };
}

const VARIABLES = new RegExp(
  '^(ASYNC_CUDA_.*|LD_LIBRARY_PATH|NODE_OPTIONS|NVIDIA_VISIBLE_DEVICES|' +
    'CUDA_(HOME|PATH|VISIBLE_DEVICES|MODULE_LOADING|CACHE_.*|LAUNCH_BLOCKING))$',
);

export interface InfoSources {
  openLibcuda(): Driver;
  openCpu(): Driver;
  env: Readonly<Record<string, string | undefined>>;
  cache(): CacheContents | undefined;
}

const thisProcess: InfoSources = {
  openLibcuda,
  openCpu,
  env: process.env,
  cache: cacheContents,
};

export function gatherInfo(sources: InfoSources = thisProcess): Info {
  const devices: DeviceInfo[] = [];
  const problems: Problem[] = [];
  let driver: Info['driver'];
  try {
    const libcuda = sources.openLibcuda();
    driver = driverInfo(libcuda);
    listDevices(libcuda, 'cuda');
  } catch (error) {
    driver = { problem: problemOf(error) };
  }
  try {
    listDevices(sources.openCpu(), 'cpu');
  } catch (error) {
    problems.push(problemOf(error));
  }

  /**
   * Lists the devices. A driver that loads may still fail to start, for example where there is no
   * GPU: that is reported, too.
   */
  function listDevices(opened: Driver, kind: 'cuda' | 'cpu'): void {
    try {
      opened.cuInit(0);
      devices.push(...describeDevices(opened, kind));
    } catch (error) {
      problems.push(problemOf(error));
    }
  }

  const processors = cpus();
  return {
    asyncCuda: packageVersion(),
    node: {
      version: process.version,
      v8: process.versions.v8,
      platform: process.platform,
      arch: process.arch,
    },
    system: { release: release(), version: systemVersion() },
    cpu: {
      model: processors[0]?.model.trim() ?? 'unknown',
      cores: processors.length,
      memoryBytes: totalmem(),
    },
    koffi: koffiInfo(),
    driver,
    devices,
    problems,
    features: engineFeatures(),
    libraries: [
      ...Object.values(KNOWN_LIBRARIES).map((row) => libraryInfo(row.name, findLibrary(row))),
      ...Object.values(KNOWN_PROGRAMS).map((row) => {
        const info = libraryInfo(row.name, findProgram(row));
        return info.path === undefined ? info : { ...info, version: programVersion(info.path) };
      }),
    ],
    cache: sources.cache() ?? null,
    environment: Object.fromEntries(
      Object.entries(sources.env).filter(
        (entry): entry is [string, string] => VARIABLES.test(entry[0]) && entry[1] !== undefined,
      ),
    ),
  };
}
