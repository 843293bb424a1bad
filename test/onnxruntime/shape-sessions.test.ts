/** The session that each run uses, of a model whose shapes change. */
import { setImmediate } from 'node:timers/promises';
import * as fc from '../fast-check.js';
import { describe, expect, test } from 'vitest';

import { ShapeSessions } from '../../src/onnxruntime/shape-sessions.js';

/** Sessions 1, 2, …; `asked` counts the requests for more than the first. */
function counted(most: number, room = Infinity): { sessions: ShapeSessions; asked: () => number } {
  let asked = 0;
  const load = (): Promise<number | undefined> =>
    Promise.resolve(++asked > room ? undefined : asked + 1);
  return {
    sessions: new ShapeSessions(1, { most, load, end: () => undefined }),
    asked: () => asked,
  };
}

describe('Sessions by shapes', () => {
  test('one shape, or shapes that do not repeat, take one session', async () => {
    const { sessions, asked } = counted(4);
    for (const shape of ['a', 'a', 'b', 'c', 'd', 'd']) {
      expect(sessions.take(shape)).toBe(1);
      await setImmediate();
    }
    expect(asked()).toBe(0);
    expect(await sessions.end()).toEqual([1]);
  });

  test('alternating shapes have sessions of their own, and keep them', async () => {
    const { sessions, asked } = counted(4);
    const taken = [];
    for (let i = 0; i < 20; i++) {
      taken.push(sessions.take(['a', 'b', 'c'][i % 3]!));
      await setImmediate();
    }
    expect(new Set(taken.slice(-3)).size).toBe(3);
    expect(taken.slice(-3)).toEqual(taken.slice(-6, -3));
    expect(asked()).toBe(2);
    expect([...(await sessions.end())].sort()).toEqual([1, 2, 3]);
  });

  test('there are never more than the limit; the least recently used one changes', async () => {
    const { sessions, asked } = counted(2);
    for (let i = 0; i < 12; i++) {
      sessions.take('abc'[i % 3]!);
      await setImmediate();
    }
    expect(asked()).toBe(1);
    const [a, b] = [sessions.take('a'), sessions.take('b')];
    expect(a).not.toBe(b);
    expect(sessions.take('a')).toBe(a);
    expect(sessions.take('c')).toBe(b);
    expect(sessions.take('a')).toBe(a);
    expect(sessions.count).toBe(2);
  });

  test(
    'shapes that were named before have sessions from the first run on',
    { tags: 'random' },
    async () => {
      await fc.assert(
        fc.asyncProperty(
          fc.integer({ min: 2, max: 5 }),
          fc.array(fc.constantFrom(...'abcdefg')),
          fc.array(fc.constantFrom(...'abcdefg'), { maxLength: 40 }),
          async (most, named, shapes) => {
            const { sessions, asked } = counted(most);
            await sessions.prepare(named);
            const there = [...new Set(named)].slice(0, most);
            expect(sessions.count).toBe(Math.max(1, there.length));
            const before = asked();
            const first = new Map(there.map((shape) => [shape, sessions.take(shape)]));
            expect(new Set(first.values()).size).toBe(there.length);
            for (const shape of shapes)
              if (first.has(shape)) expect(sessions.take(shape)).toBe(first.get(shape));
            await setImmediate();
            expect(asked()).toBe(before);
          },
        ),
      );
    },
  );

  test('without room for all that were named, runs use those that exist', async () => {
    const { sessions, asked } = counted(4, 1);
    await sessions.prepare(['a', 'b', 'c', 'd']);
    expect(asked()).toBe(2);
    expect(sessions.count).toBe(2);
    expect(sessions.take('a')).not.toBe(sessions.take('b'));
    expect([1, 2]).toContain(sessions.take('d'));
  });

  test('without room, or where loading fails, runs go on with those that are there', async () => {
    const { sessions, asked } = counted(4, 1);
    let failures = 0;
    const failing = new ShapeSessions(7, {
      most: 4,
      load: () => {
        failures++;
        return Promise.reject(new Error('out of memory'));
      },
      end: () => undefined,
    });
    for (let i = 0; i < 30; i++) {
      expect([1, 2]).toContain(sessions.take('abcd'[i % 4]!));
      expect(failing.take('abcd'[i % 4]!)).toBe(7);
      await setImmediate();
    }
    expect(asked()).toBe(2);
    expect(failures).toBe(1);
    expect(await failing.end()).toEqual([7]);
  });

  test('closing waits for one that is being loaded, and releases it with the others', async () => {
    let loaded = (session: number): void => {
      throw new Error(`${session} was not asked for`);
    };
    let ended = false;
    const sessions = new ShapeSessions(1, {
      most: 4,
      load: () =>
        new Promise((resolve) => {
          loaded = resolve;
        }),
      end: () => {
        ended = true;
      },
    });
    for (const shape of ['a', 'b', 'a', 'b']) expect(sessions.take(shape)).toBe(1);
    const end = sessions.end();
    expect(ended).toBe(false);
    loaded(2);
    expect([...(await end)].sort()).toEqual([1, 2]);
    expect(ended).toBe(true);
  });

  test(
    'a shape that ran last on a session runs there again, whatever came before',
    { tags: 'random' },
    async () => {
      await fc.assert(
        fc.asyncProperty(
          fc.integer({ min: 1, max: 5 }),
          fc.array(fc.constantFrom(...'abcdefg'), { maxLength: 60 }),
          async (most, shapes) => {
            const { sessions } = counted(most);
            const last = new Map<number, string>();
            for (const shape of shapes) {
              const ready = [...last].find(([, each]) => each === shape)?.[0];
              const session = sessions.take(shape);
              if (ready !== undefined && most > 1) expect(session).toBe(ready);
              last.set(session, shape);
              expect(last.size).toBeLessThanOrEqual(most);
              await setImmediate();
            }
          },
        ),
      );
    },
  );
});
