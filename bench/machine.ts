/** The machine of the measurements: hardware, driver, versions. */
import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { availableParallelism, cpus, totalmem } from 'node:os';
import { promisify } from 'node:util';

import type { CoreDevice } from './library.js';

const run = promisify(execFile);

export interface Machine {
  /** Null where there is none, or the run did not use it. */
  readonly gpu: string | null;
  readonly cpu: string;
  readonly cores: number;
  readonly memoryGiB: number;
  readonly os: string;
  /** NVIDIA's driver, e.g. `580.159.04`. */
  readonly driver: string | null;
}

export function cpuName(): string {
  return cpus()[0]?.model.trim() || process.arch;
}

export async function describeMachine(device: CoreDevice): Promise<Machine> {
  const gpu = device.kind === 'cuda' ? device.name : null;
  return {
    gpu,
    cpu: cpuName(),
    cores: availableParallelism(),
    memoryGiB: Math.round(totalmem() / 2 ** 30),
    os: `${process.platform}-${process.arch}`,
    driver: gpu === null ? null : await driverVersion(),
  };
}

/** Versions that every row carries; a peer's own are added to its rows. */
export async function versions(device: CoreDevice): Promise<Record<string, string>> {
  const base: Record<string, string> = {
    'async-cuda': await packageVersion('../package.json'),
    node: process.versions.node,
  };
  if (device.kind === 'cpu') return base;
  return {
    ...base,
    koffi: await packageVersion('../node_modules/koffi/package.json'),
    cuda: device.properties.driverVersion,
  };
}

async function packageVersion(path: string): Promise<string> {
  const { version } = JSON.parse(await readFile(new URL(path, import.meta.url), 'utf8')) as {
    version: string;
  };
  return version;
}

async function driverVersion(): Promise<string | null> {
  try {
    const { stdout } = await run(
      'nvidia-smi',
      ['--query-gpu=driver_version', '--format=csv,noheader'],
      { timeout: 20_000 },
    );
    return stdout.split('\n')[0]?.trim() ?? null;
  } catch {
    return null;
  }
}
