import { readFile } from 'node:fs/promises';
import { expect, test } from 'vitest';

import { VERSION } from '../../src/runtime/version.js';

test('the version in the sources is the package’s', async () => {
  const { version } = JSON.parse(
    await readFile(new URL('../../package.json', import.meta.url), 'utf8'),
  ) as { version: string };
  expect(VERSION).toBe(version);
});
