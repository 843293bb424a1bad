import { expect, test } from 'vitest';

import { linesOf } from './compiled-kernels.js';

test('a text is located once for all of its statements', () => {
  const located: string[] = [];
  const { lineOf } = linesOf({ definition: { text: 'kernel', site: [] } }, (text) => {
    located.push(text);
    const place = { file: 'a.ts', column: text.length, codeLine: '', original: true };
    return { text, at: (offset) => ({ ...place, line: offset }) };
  });
  for (let line = 1; line < 10; line++)
    for (const text of ['kernel', 'one function', 'another function'])
      expect(lineOf(text, line)).toEqual({ line, column: text.length });
  expect(located).toEqual(['kernel', 'one function', 'another function']);
});
