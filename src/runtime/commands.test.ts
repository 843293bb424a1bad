/** The table of commands: the properties that the compiler does not check. */
import { describe, expect, test } from 'vitest';

import { EXECUTE, OP, TRAIT, TRAITS, commandOf } from './commands.js';

const rows = Object.entries(OP).map(([name, op]) => ({ name, op, row: commandOf(op)! }));

describe('the table of commands', () => {
  test('has a number from 1 to 255 for each, and the row of that number is its own', () => {
    expect(new Set(rows.map(({ op }) => op)).size).toBe(rows.length);
    for (const { op, row } of rows) {
      expect(op).toBeGreaterThan(0);
      expect(op).toBeLessThan(256);
      expect(row.op).toBe(op);
      expect(EXECUTE[op]).toBe(row.execute);
    }
  });

  test.each(rows)('$name has words that follow one another', ({ row }) => {
    const places: number[] = Object.values(row.words);
    expect(places).toEqual([...new Set(places)].sort((a, b) => a - b));
    if (places.length !== 0) expect(places[0]).toBe(0);
    // The last one takes one word or two.
    const end = (places.at(-1) ?? -1) + 1;
    expect([end, end + 1]).toContain(row.length);
  });

  test.each(rows)('$name has a description for traces and errors', ({ row }) => {
    const empty = new Int32Array(32);
    expect(row.operands(empty, 0).every((word) => word === 0)).toBe(true);
    if (row.inFlight !== undefined || row.takesTime)
      expect([row.inFlight !== undefined, row.takesTime || row.launches !== 0]).toEqual(
        row.op === OP.hold ? [false, true] : [true, true],
      );
    if (row.inFlight !== undefined) expect(row.trace?.(empty, 0).kind).toBeTruthy();
    if (row.copies !== undefined) expect(row.trace?.(empty, 0).direction).toBe('hostToDevice');
  });

  test('describes an unknown number as such', () => {
    expect(commandOf(200)).toBeUndefined();
    expect(TRAITS[200]).toBe(0);
    expect(() => EXECUTE[200]!(undefined as never, new Int32Array(8), 4, 0)).toThrow(
      'the ring holds a command with the unknown number 200',
    );
  });

  test('lets no visit execute a command that allocates, loads, captures or parks', () => {
    const mayVisit = TRAIT.visitAlways | TRAIT.visitBelowLimit | TRAIT.visitShort;
    const visited = rows.filter(({ op }) => (TRAITS[op]! & mayVisit) !== 0);
    expect(visited.map(({ name }) => name).sort()).toEqual([
      'copy',
      'fence',
      'graphLaunch',
      'launch',
      'launchGrid',
      'launchLine',
      'memset',
      'pad',
      'record',
      'wait',
    ]);
  });
});
