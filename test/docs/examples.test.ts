/**
 * The examples in docstrings: none is missing, they compile, and they print what their comments
 * state.
 */
import { inspect } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';

import { Device } from 'async-cuda';
import { CoreDevice } from 'async-cuda/core';

import { problemsOf } from '../project/entry-points.js';
import { moduleOf, publicExamples } from './examples.js';
import { ProgramFolder } from './programs.js';

const { examples, missing, undocumented, exportedBy } = publicExamples();
const paths = [...new Set(examples.map(({ path }) => path))];
const modules = paths.map((path) => {
  const mine = examples.filter((example) => example.path === path);
  const file = `${path.replace('/', '-')}.mts`;
  return { path, mine, file, text: moduleOf(path, mine, exportedBy) };
});

let folder: ProgramFolder;
beforeAll(async () => {
  folder = await ProgramFolder.create();
  for (const { file, text } of modules) await folder.write(file, text);
});
afterAll(() => folder?.remove());

test('every public function and class has one', () => {
  expect(missing).toEqual([]);
});

test('every method of a public class has a docstring', () => {
  expect(undocumented).toEqual([]);
});

test('each console.log has its output as a comment', () => {
  const silent = examples.filter(
    ({ text, prints }) => prints.length !== (text.match(/console\.log\(/g)?.length ?? 0),
  );
  expect(silent.map(({ name, place }) => `${name}, ${place}`)).toEqual([]);
});

// A sub-path whose examples all need more than a test machine has no test here.
const running = modules.filter(({ mine }) => mine.some(({ runs }) => runs));

describe.each(running)('$path', ({ path, mine, file }) => {
  const isCore = moduleOf(path, [], exportedBy).includes('CoreDevice');
  let device: Device | CoreDevice;
  let functions: Record<string, (console: object, device: object) => Promise<void>>;
  beforeAll(async () => {
    const name = process.env['ASYNC_CUDA_TEST_DEVICE'] as 'cpu' | undefined;
    device = await (isCore ? CoreDevice : Device).open(name ?? 'cpu');
    functions = (await import(/* @vite-ignore */ `${folder.path}/${file}`)) as typeof functions;
  });
  afterAll(() => device?.close());

  test.each(mine.map((example, index) => ({ ...example, index })).filter(({ runs }) => runs))(
    '$name',
    async ({ index, prints }) => {
      const printed: string[] = [];
      const log = (...values: unknown[]): void => {
        printed.push(
          values.map((value) => (typeof value === 'string' ? value : inspect(value))).join(' '),
        );
      };
      await functions[`example${index}`]!({ log }, device);
      expect(printed).toEqual(prints);
    },
  );
});

test('all of them compile', { tags: 'thorough' }, () => {
  expect(problemsOf(modules.map(({ file }) => `${folder.path}/${file}`))).toEqual([]);
});
