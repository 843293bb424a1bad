import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test, vi } from 'vitest';
import type { Driver } from '../driver/driver.js';
import { DriverError, LibraryNotFoundError } from '../driver/error.js';
import { CUresult } from '../ground/result.js';
import { DEVICE_ROWS } from './device-rows.js';
import { formatInfo } from './info-report.js';
import { gatherInfo } from './info.js';
import type { InfoSources } from './info.js';

/** The part of a driver that the report uses, with one device. */
const oneGpu = {
  cuInit: () => undefined,
  cuDriverGetVersion: () => 13010,
  cuDeviceGetCount: () => 1,
  cuDeviceGet: (ordinal: number) => ordinal,
  cuDeviceGetName: () => 'NVIDIA H200',
  cuDeviceTotalMem: () => 141 * 2 ** 30,
  cuDeviceGetPCIBusId: () => '0000:3B:00.0',
  cuDeviceGetAttribute: (attribute: number) => attribute,
} as Partial<Driver> as Driver;

const missing = (): never => {
  throw new LibraryNotFoundError(
    'libcuda',
    [{ path: '/usr/lib64/libcuda.so.1', reason: 'no such file' }],
    'Install the driver.',
  );
};

const sources = (changes: Partial<InfoSources> = {}): InfoSources => ({
  openLibcuda: missing,
  openCpu: () => ({ ...oneGpu, cuDeviceGetName: () => 'the CPU' }),
  env: {},
  cache: () => undefined,
  ...changes,
});

describe('where there is no GPU', () => {
  test('the report lists the paths that were tried', () => {
    const report = formatInfo(gatherInfo(sources()));
    expect(report).toContain('libcuda was not found. Install the driver.');
    expect(report).toContain('1 paths tried');
    expect(report).toContain('- `/usr/lib64/libcuda.so.1`: no such file');
  });

  test('the CPU device is still listed', () => {
    expect(gatherInfo(sources()).devices.map(({ id, name }) => [id, name])).toEqual([
      ['cpu:0', 'the CPU'],
    ]);
  });
});

test('a driver that loads and fails to start is a problem in the report', () => {
  const refusing = {
    ...oneGpu,
    cuInit: () => {
      throw new DriverError('cuInit', CUresult.CUDA_ERROR_NO_DEVICE);
    },
  };
  const info = gatherInfo(sources({ openLibcuda: () => refusing }));
  expect(info.driver).toMatchObject({ cuda: '13.1' });
  expect(formatInfo(info)).toContain('cuInit returned CUDA_ERROR_NO_DEVICE (100)');
});

test('a CPU device that does not open is a problem in the report', () => {
  const info = gatherInfo(
    sources({
      openCpu: () => {
        throw new Error('no memory');
      },
    }),
  );
  expect(info.problems).toEqual([{ message: 'no memory' }]);
  expect(formatInfo(info)).toContain('None.');
});

test('GPUs come first, each property a row', () => {
  const info = gatherInfo(sources({ openLibcuda: () => oneGpu }));
  expect(info.devices.map(({ id }) => id)).toEqual(['cuda:0', 'cpu:0']);
  const report = formatInfo(info);
  expect(report).toContain('| name | NVIDIA H200 | the CPU |');
  expect(report).toContain('| memory | 141.0 GiB | 141.0 GiB |');
  for (const property of Object.keys(DEVICE_ROWS)) expect(report).toContain(`| ${property} |`);
});

test('a property that the driver refuses leaves the others', () => {
  const old = {
    ...oneGpu,
    cuDeviceGetAttribute: () => {
      throw new DriverError('cuDeviceGetAttribute', CUresult.CUDA_ERROR_INVALID_VALUE);
    },
  };
  const [device] = gatherInfo(sources({ openLibcuda: () => old })).devices;
  expect(device?.properties['multiprocessors']).toBe(
    'cuDeviceGetAttribute returned CUDA_ERROR_INVALID_VALUE (1)',
  );
  expect(device?.properties['memory']).toBe('141.0 GiB');
});

test('the report has the cache of compiled code', () => {
  const info = gatherInfo(
    sources({ cache: () => ({ folder: '/var/cache/code', entries: 3, bytes: 5 * 2 ** 20 }) }),
  );
  expect(info.cache).toEqual({ folder: '/var/cache/code', entries: 3, bytes: 5242880 });
  expect(formatInfo(info)).toContain('| compiled code | /var/cache/code: 3 entries, 5.0 MiB |');
  expect(formatInfo(gatherInfo(sources()))).toContain('| compiled code | off');
});

test('the report has the relevant variables only', () => {
  const info = gatherInfo(
    sources({ env: { CUDA_VISIBLE_DEVICES: '1', ASYNC_CUDA_DEVICE: 'cpu', SECRET_TOKEN: 'x' } }),
  );
  expect(info.environment).toEqual({ CUDA_VISIBLE_DEVICES: '1', ASYNC_CUDA_DEVICE: 'cpu' });
});

test.skipIf(homedir().length <= 1)('the home folder is not in the report', () => {
  const info = gatherInfo(sources({ env: { CUDA_HOME: `${homedir()}/cuda` } }));
  expect(formatInfo(info)).toContain('| CUDA_HOME | ~/cuda |');
});

describe.skipIf(process.platform === 'win32')('a program of NVIDIA', () => {
  /** The report's line of the Tile IR assembler where it is a shell script. */
  function reported(script: string, mode = 0o755): string | undefined {
    const folder = mkdtempSync(join(tmpdir(), 'async-cuda-info-'));
    const program = join(folder, 'tileiras');
    writeFileSync(program, `#!/bin/sh\n${script}\n`, { mode });
    vi.stubEnv('ASYNC_CUDA_TILEIRAS', folder);
    try {
      const report = formatInfo(gatherInfo(sources()));
      const line = report.split('\n').find((each) => each.includes('Tile IR assembler'));
      return line?.replace(program, 'PATH');
    } finally {
      vi.unstubAllEnvs();
      rmSync(folder, { recursive: true });
    }
  }
  const name = "NVIDIA's Tile IR assembler";

  test('is listed with its place and version', () => {
    expect(reported('echo "Cuda compilation tools, release 13.5, V13.5.37"')).toBe(
      `| ${name} | PATH, 13.5.37 |`,
    );
  });

  test('that prints no version, or does not start, is listed with that', () => {
    expect(reported('exit 3')).toBe(`| ${name} | PATH, it prints no version |`);
    expect(reported('', 0o644)).toMatch(/PATH, it does not start: .*EACCES/);
  });

  test('that is not there is listed as missing', () => {
    vi.stubEnv('ASYNC_CUDA_TILEIRAS', '/nowhere/tileiras');
    try {
      expect(formatInfo(gatherInfo(sources()))).toContain(`${name} (1 paths tried)`);
    } finally {
      vi.unstubAllEnvs();
    }
  });
});

test('this machine has a report', () => {
  const info = gatherInfo();
  expect(info.asyncCuda).toMatch(/^\d+\.\d+\.\d+/);
  expect(info.devices.some(({ id }) => id === 'cpu:0')).toBe(true);
  expect(JSON.parse(JSON.stringify(info))).toEqual(info);
  expect(formatInfo(info)).toMatch(/^### async-cuda /);
});
