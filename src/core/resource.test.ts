import * as fc from '../../test/fast-check.js';
import { expect, test } from 'vitest';

import { ACCESS_READ, ACCESS_WRITE } from '../runtime/commands.js';
import { Resource } from './resource.js';
import type { Stream } from './stream.js';

/** The part of a stream that a resource uses. It records the waits. */
class Waits {
  readonly waits = new Map<unknown, number>();

  waitFor(other: unknown, mark: number): void {
    this.waits.set(other, mark);
  }
}

test(
  'an access waits for the last use of each stream that it conflicts with, and for nothing ' +
    'before the last write',
  { tags: 'random' },
  () => {
    const access = fc.record({ stream: fc.nat(3), write: fc.boolean() });
    fc.assert(
      fc.property(fc.array(access, { maxLength: 60 }), (accesses) => {
        const streams = Array.from({ length: 4 }, () => new Waits());
        const resource = new Resource(1);
        let writer: { stream: Waits; mark: number } | undefined;
        let readers = new Map<Waits, number>();
        accesses.forEach(({ stream: index, write }, at) => {
          const stream = streams[index]!;
          const expected = new Map<unknown, number>();
          if (writer !== undefined && writer.stream !== stream)
            expected.set(writer.stream, writer.mark);
          if (write)
            for (const [reader, mark] of readers) if (reader !== stream) expected.set(reader, mark);
          stream.waits.clear();
          const kind = write ? ACCESS_WRITE : ACCESS_READ;
          resource.order(stream as unknown as Stream, kind);
          expect(stream.waits).toEqual(expected);
          resource.used(stream as unknown as Stream, kind, at + 1);
          if (write) {
            writer = { stream, mark: at + 1 };
            readers = new Map();
          } else readers.set(stream, at + 1);
          // The next write on a stream need not wait for reads of the same stream.
          expect(resource.readerCount).toBe(
            [...readers.keys()].filter((reader) => reader !== writer?.stream).length,
          );
        });
      }),
    );
  },
);
