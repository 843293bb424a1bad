/** ONNX Runtime's telemetry is off unless the program enables it. */
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { findOnnxRuntime } from 'async-cuda/onnxruntime';
import { describe, expect, test } from 'vitest';

import { runProgram } from '../faults/program.js';

/** Where one of them is set the library sends nothing in any case. */
const CONTINUOUS_INTEGRATION = Object.fromEntries(
  [
    'CI',
    'TF_BUILD',
    'GITHUB_ACTIONS',
    'GITLAB_CI',
    'CIRCLECI',
    'TRAVIS',
    'JENKINS_URL',
    'BUILDKITE',
  ].map((name) => [name, '']),
);
const FILE = 'deviceid';
const { version, minor } = await findOnnxRuntime().then(
  ({ version }) => ({ version, minor: Number(version.split('.')[1]) }),
  () => ({ version: undefined, minor: 0 }),
);
const reason =
  version === undefined
    ? 'ONNX Runtime is not installed'
    : minor < 29 || process.platform !== 'linux'
      ? `ONNX Runtime ${version} has none here`
      : undefined;

if (reason !== undefined) describe.skip(`SKIPPED: telemetry: ${reason}`, () => undefined);
else
  describe('Telemetry of ONNX Runtime', () => {
    /** The files that a program leaves in its user's folder. */
    async function left(env: Readonly<Record<string, string>>): Promise<string[]> {
      // A load of the library in this process has set these variables; the program must start
      // without them.
      for (const name of ['ORT_DISABLE_TELEMETRY', 'ORT_TELEMETRY_DISABLED'])
        delete process.env[name];
      const home = mkdtempSync(join(tmpdir(), 'async-cuda-telemetry-'));
      try {
        const ended = await runProgram('telemetry', {
          env: {
            ...CONTINUOUS_INTEGRATION,
            HOME: home,
            XDG_CACHE_HOME: join(home, 'cache'),
            ...env,
          },
        });
        expect(ended).toMatchObject({
          code: 0,
          result: { library: expect.stringContaining('ONNX Runtime') as unknown },
        });
        return readdirSync(home, { recursive: true })
          .map(String)
          .filter((name) => name.endsWith(FILE));
      } finally {
        rmSync(home, { recursive: true });
      }
    }

    test('is off', async () => {
      expect(await left({})).toEqual([]);
    });

    test('is on where the program enables it', async () => {
      expect(await left({ ORT_DISABLE_TELEMETRY: '0' })).toHaveLength(1);
    });
  });
