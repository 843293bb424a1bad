import * as fc from '../../test/fast-check.js';
import { expect, test } from 'vitest';

import { withEscapedNewlines } from './escaped-newlines.js';

test('a newline in a string is escaped', () => {
  expect(withEscapedNewlines('printf("a\n%d\n", i);\n')).toBe('printf("a\\n%d\\n", i);\n');
});

test('so is one in a character', () => {
  expect(withEscapedNewlines("if (c == '\n') n = L'\n';")).toBe("if (c == '\\n') n = L'\\n';");
});

test('raw strings stay as they are', () => {
  for (const text of ['R"(a\n")"', 'const char* s = u8R"x(a\n)" "\n)x";\n'])
    expect(withEscapedNewlines(text)).toBe(text);
});

test('quotes in comments are none', () => {
  const text = '// don\'t "\n/* it\'s "\n */ int x; // "\\\n more "\nint y;';
  expect(withEscapedNewlines(text)).toBe(text);
});

test('an escaped quote does not end a string', () => {
  expect(withEscapedNewlines('f("\\"\n", "\\\\\n");\n"\n"')).toBe('f("\\"\\n", "\\\\\\n");\n"\\n"');
});

test('a line that goes on stays one', () => {
  expect(withEscapedNewlines('f("a\\\nb\n");')).toBe('f("a\\\nb\\n");');
  expect(withEscapedNewlines('#define F(x) \\\n  g("a\n")\n')).toBe(
    '#define F(x) \\\n  g("a\\n")\n',
  );
});

test('separators of digits and apostrophes in errors open no character', () => {
  const text = "int x = 1'000'000;\n#error don't\nint y = 0xff'ff;\n";
  expect(withEscapedNewlines(text)).toBe(text);
});

test('a carriage return goes with its newline', () => {
  expect(withEscapedNewlines('f("a\r\n");\r\n')).toBe('f("a\\r\\n");\r\n');
});

test('what was escaped stays, and no string has a newline', { tags: 'random' }, () => {
  const piece = fc.constantFrom(
    '"a\n"',
    "'\n'",
    '// "x\n',
    '/* \n" */',
    ' x ',
    '\n',
    '"\\""',
    'R"(\n)"',
    '"b\\n"',
    "1'0",
    '/',
  );
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 12 }), (pieces) => {
      const escaped = withEscapedNewlines(pieces.join(' '));
      expect(withEscapedNewlines(escaped)).toBe(escaped);
      expect(escaped.match(/(?<=^|\s)"a\n"/)).toBeNull();
    }),
  );
});
