import { expect, test } from 'vitest';
import { KernelSourceError } from '../compiler/source-error.js';
import { locateSpans, showSource } from './show-source.js';
import type { Locator, SourceLocation } from './source-location.js';

const TEXT = '({ y }, gpu) => {\n\ty[1.5] = 1;\n}';

function locatorOf(place: Partial<SourceLocation>): Locator {
  return {
    text: TEXT,
    at: (offset) => {
      const before = TEXT.slice(0, offset).split('\n');
      return {
        file: '/app/kernels.ts',
        line: 40 + before.length,
        column: before.at(-1)!.length + 1,
        codeLine: TEXT.split('\n')[before.length - 1]!,
        original: true,
        ...place,
      };
    },
  };
}

const start = TEXT.indexOf('1.5');
const error = new KernelSourceError(
  'An index must be an integer, but 1.5 is a float',
  'Write gpu.i32(...).',
  { text: 0, start, end: start + 3 },
  TEXT,
);

test('file, line, column, what is wrong, the code with carets, what to write instead', () => {
  expect(showSource(error, locatorOf({})))
    .toBe(`/app/kernels.ts:42:4: An index must be an integer, but 1.5 is a float

  42 | y[1.5] = 1;
     |   ^^^

Write gpu.i32(...).`);
});

test('without a file the message names the text of the line', () => {
  expect(showSource(error, locatorOf({ original: false, file: '<kernel>' }))).toMatch(
    new RegExp(
      "^line 42, column 4 of the kernel's function as it runs " +
        '\\(its own file could not be found, or has no source map\\): An index',
    ),
  );
});

test("an error in a device function is shown in that function's text", () => {
  // The text is in pieces, so that it is not found in this file.
  const text = ['x => ', 'x["a"]'].join('');
  expect(
    showSource(
      new KernelSourceError(
        'This is a string',
        'Write a number.',
        { text: 1, start: 7, end: 10 },
        text,
      ),
      locatorOf({}),
    ),
  ).toContain(`  1 | ${text}\n    |        ^^^`);
});

test('an error of the whole kernel has no place', () => {
  expect(
    showSource(
      new KernelSourceError('The kernel has no output', 'Declare one.', undefined, TEXT),
      locatorOf({}),
    ),
  ).toBe('The kernel has no output\n\nDeclare one.');
});

test('only the part around the place of a long line is shown', () => {
  const long = `${'a();'.repeat(500)}y[1.5]=1;${'b();'.repeat(500)}`;
  const shown = showSource(error, {
    text: TEXT,
    at: (offset) => ({
      file: '/app/min.js',
      line: 1,
      column: 2003 + offset - start,
      codeLine: long,
      original: true,
    }),
  });
  const [code, carets] = shown.split('\n').slice(2, 4) as [string, string];
  expect(code.length).toBeLessThan(140);
  expect(code.slice(carets.indexOf('^'), carets.lastIndexOf('^') + 1)).toBe('1.5');
});

test('places of spans, by the text of each', () => {
  const locate = locateSpans([locatorOf({}), locatorOf({ original: false })]);
  expect(locate({ text: 0, start, end: start + 3 })).toMatchObject({
    file: '/app/kernels.ts',
    line: 42,
    column: 4,
  });
  expect(locate({ text: 1, start, end: start + 3 })).toBeUndefined();
});
