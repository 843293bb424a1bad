/** Limits of entries and bytes: which entries are dropped, and which stay. */
import * as fc from '../../test/fast-check.js';
import { expect, test } from 'vitest';

import { LeastRecent } from './least-recent.js';

test('the least recently used entry is dropped first', () => {
  const map = new LeastRecent<number>({ entries: 3, bytes: 100 });
  for (const at of [1, 2, 3]) map.set(`${at}`, at, 10);
  expect(map.get('1')).toBe(1);
  map.set('4', 4, 10);
  expect([map.get('1'), map.get('2'), map.get('3'), map.get('4')]).toEqual([1, undefined, 3, 4]);
  map.set('5', 5, 80);
  expect([map.get('1'), map.get('3'), map.get('4'), map.get('5'), map.bytes]).toEqual([
    undefined,
    3,
    4,
    5,
    100,
  ]);
  map.set('6', 6, 20);
  expect([map.get('3'), map.get('4'), map.get('5'), map.get('6'), map.bytes]).toEqual([
    undefined,
    undefined,
    5,
    6,
    100,
  ]);
});

test('an entry above the limit is kept alone, until the next one', () => {
  const map = new LeastRecent<string>({ entries: 3, bytes: 100 });
  map.set('a', 'a', 10);
  map.set('large', 'large', 500);
  expect([map.get('a'), map.get('large'), map.size]).toEqual([undefined, 'large', 1]);
  map.set('b', 'b', 1);
  expect([map.get('large'), map.get('b'), map.bytes]).toEqual([undefined, 'b', 1]);
});

test('an entry that is being made is not dropped, and counts once it is made', () => {
  const map = new LeastRecent<object>({ entries: 1, bytes: 100 });
  const [one, two, other] = [{}, {}, {}];
  map.set('one', one);
  map.set('two', two);
  expect([map.get('one'), map.get('two'), map.bytes]).toEqual([one, two, 0]);
  map.settle('two', other, 50);
  expect(map.bytes).toBe(0);
  map.settle('two', two, 50);
  expect([map.size, map.bytes]).toEqual([2, 50]);
  map.settle('one', one, 50);
  expect([map.get('one'), map.get('two'), map.bytes]).toEqual([one, undefined, 50]);
  map.settle('one', one, 50);
  expect(map.bytes).toBe(50);
});

test('bytes are those of the entries, and stay within the limit', { tags: 'random' }, () => {
  const key = fc.constantFrom('a', 'b', 'c', 'd', 'e', 'f');
  const step = fc.oneof(
    fc.record({ do: fc.constant('set' as const), key, bytes: fc.nat(60) }),
    fc.record({ do: fc.constant('get' as const), key }),
    fc.record({ do: fc.constant('delete' as const), key }),
  );
  fc.assert(
    fc.property(fc.array(step), (steps) => {
      const map = new LeastRecent<number>({ entries: 4, bytes: 100 });
      const sizes = new Map<string, number>();
      for (const each of steps) {
        if (each.do === 'set') {
          map.set(each.key, each.bytes, each.bytes);
          sizes.set(each.key, each.bytes);
          expect(map.get(each.key)).toBe(each.bytes);
        } else if (each.do === 'get') map.get(each.key);
        else map.delete(each.key);
        const there = [...sizes].filter(([name]) => map.get(name) !== undefined);
        expect(there.length).toBe(map.size);
        expect(map.bytes).toBe(there.reduce((sum, [, bytes]) => sum + bytes, 0));
        expect(map.size).toBeLessThanOrEqual(4);
        if (map.size > 1) expect(map.bytes).toBeLessThanOrEqual(100);
      }
    }),
  );
});
