import { expect, test } from 'vitest';

import { LINE_ARGS, LineWriter, takeFrom } from './work-line.js';
import type { LineMemory } from './work-line.js';

const args = new Float64Array(LINE_ARGS);

function memoryOf(writer: LineWriter): LineMemory {
  return { line: writer.memory, control: new SharedArrayBuffer(4096), slots: undefined };
}

test(
  'a thread executes the entries in order, with their numbers, and leaves where nothing ' +
    'more comes',
  () => {
    const writer = new LineWriter();
    expect(
      writer.write(
        0,
        1,
        Float64Array.from(args, (_, i) => i),
      ),
    ).toBe(true);
    expect(
      writer.write(
        0,
        2,
        Float64Array.from(args, (_, i) => 10 + i),
      ),
    ).toBe(false);
    const carried: number[][] = [];
    takeFrom(memoryOf(writer), (entries, at) => {
      carried.push([...entries.subarray(at, at + LINE_ARGS)]);
    });
    expect(carried).toEqual([Array.from(args, (_, i) => i), Array.from(args, (_, i) => 10 + i)]);
    expect([writer.done, writer.isLeft()]).toEqual([2, false]);
    expect(writer.write(0, 3, args)).toBe(true);
  },
);

test('it leaves after some time if entries keep coming; the writer must request it again', () => {
  const writer = new LineWriter();
  writer.write(0, 1, args);
  const begun = performance.now();
  let carried = 0;
  takeFrom(memoryOf(writer), () => {
    if (performance.now() - begun > 5000) throw new Error('it stays');
    carried++;
    writer.write(0, 1, args);
  });
  expect(carried).toBe(writer.done);
  expect(writer.written - writer.done).toBe(1);
  // One of the two callers gets true.
  expect([writer.isLeft(), writer.isLeft()]).toEqual([true, false]);
});

test('at an entry that fails it leaves; what was written from there on is taken back', () => {
  const writer = new LineWriter();
  for (let hold = 1; hold <= 3; hold++) writer.write(0, hold, args);
  let carried = 0;
  expect(() => {
    takeFrom(memoryOf(writer), () => {
      if (++carried === 2) throw new Error('of mine');
    });
  }).toThrow('of mine');
  expect([writer.done, writer.written]).toEqual([1, 3]);
  writer.takeBack();
  expect([writer.done, writer.written]).toEqual([1, 1]);
  expect(writer.write(0, 2, args)).toBe(true);
});
