import * as fc from '../../test/fast-check.js';
import { describe, expect, test } from 'vitest';

import { LiteralError, parseLiteral } from './python-literal.js';
import type { Literal } from './python-literal.js';

/** As Python's repr writes it. */
function repr(value: Literal): string {
  if (value === null) return 'None';
  if (typeof value === 'boolean') return value ? 'True' : 'False';
  if (typeof value === 'number') return String(value);
  if (typeof value === 'string')
    return `'${value.replaceAll('\\', '\\\\').replaceAll("'", "\\'").replaceAll('\n', '\\n')}'`;
  if (value instanceof Map) {
    const entries = [...(value as Map<string, Literal>)];
    return `{${entries.map(([key, entry]) => `${repr(key)}: ${repr(entry)}`).join(', ')}}`;
  }
  const items = (value as Literal[]).map(repr);
  return `(${items.join(', ')}${items.length === 1 ? ',' : ''})`;
}

const { literal } = fc.letrec<{ literal: Literal }>((tie) => ({
  literal: fc.oneof(
    { maxDepth: 4 },
    fc.constantFrom<Literal>(null, true, false),
    fc.integer(),
    fc.string(),
    fc.array(tie('literal'), { maxLength: 4 }),
    fc
      .array(fc.tuple(fc.string(), tie('literal')), { maxLength: 4 })
      .map((entries) => new Map(entries)),
  ),
}));

test('reads what repr writes', { tags: 'random' }, () => {
  fc.assert(
    fc.property(literal, (value) => {
      expect(parseLiteral(repr(value))).toEqual(value);
    }),
  );
});

test('reads what other writers write', () => {
  expect(parseLiteral(" { \"a\" : [1, 2,], 'b':(3L), u'c': b'd' , } \n")).toEqual(
    new Map<string, unknown>([
      ['a', [1, 2]],
      ['b', 3],
      ['c', 'd'],
    ]),
  );
  expect(parseLiteral('(-1,)')).toEqual([-1]);
  expect(parseLiteral('()')).toEqual([]);
});

describe('errors have the place and the reason', () => {
  test.each([
    ['', 'expected a value, found the end', 0],
    ['{', 'expected a value, found the end', 1],
    ['{1: 2}', 'a key that is no string', 1],
    ["{'a' 2}", "expected ':', found '2'", 5],
    ["{'a': 1, 'a': 2}", "the key 'a' twice", 9],
    ['(1 2)', "expected ',' or ')', found '2'", 3],
    ['(,)', "expected a value, found ','", 1],
    ["'abc", 'a string that does not end', 4],
    ["'\\x41'", "an escape that strings here do not have: '\\x'", 2],
    ['1.5', "expected the end, found '.'", 1],
    ['99999999999999999999', "expected a value, found '99999999999999999999'", 0],
    ['__import__("os")', "expected a value, found '__import__'", 0],
    ['1 1', "expected the end, found '1'", 2],
    ['('.repeat(40), 'brackets 32 deep', 33],
  ])('%j', (text, message, position) => {
    let error: unknown;
    try {
      parseLiteral(text);
    } catch (thrown) {
      error = thrown;
    }
    expect(error).toBeInstanceOf(LiteralError);
    expect(error).toMatchObject({ message, position });
  });

  test('and nothing else comes out of any text', { tags: 'random' }, () => {
    fc.assert(
      fc.property(
        fc.oneof(
          fc.string(),
          fc.string({ unit: fc.constantFrom(...'{}()[],:\'"\\uTrueNone12L ') }),
        ),
        (text) => {
          try {
            parseLiteral(text);
          } catch (error) {
            expect(error).toBeInstanceOf(LiteralError);
          }
        },
      ),
      { numRuns: 1000 },
    );
  });
});
