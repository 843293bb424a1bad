/**
 * The memset command: `width` words of `bits` bits in each of `height` rows, `pitch` bytes from one
 * row to the next; one row where `height` is 0.
 */
import { ACCESS_SHIFT, ACCESS_WRITE, OP } from '../runtime/commands.js';
import { putInt64 } from '../runtime/ring-writer.js';
import type { Resource } from './resource.js';
import type { Stream } from './stream.js';

export interface Fill {
  /** Byte offset of the first word in its resource. */
  offset: number;
  /** 8, 16 or 32. */
  bits: number;
  value: number;
  width: number;
  height: number;
  pitch: number;
}

/** Writes the command; returns its number on the stream. The caller orders it. */
export function putMemset(
  stream: Stream,
  root: number,
  resource: Resource,
  access: number,
  fill: Fill,
): number {
  const body = stream.begin(OP.memset, 13, root);
  const { memory } = stream.runtime.ring;
  memory[body] = resource.handle | (access << ACCESS_SHIFT);
  putInt64(memory, body + 1, fill.offset);
  memory[body + 3] = fill.bits;
  memory[body + 4] = fill.value;
  putInt64(memory, body + 5, fill.width);
  memory[body + 7] = fill.height;
  memory[body + 8] = fill.pitch;
  return stream.commit();
}

/**
 * Fills `length` contiguous elements with the words of one: one command for each word. `access` is
 * the access of the first command.
 */
export function putWords(
  stream: Stream,
  root: number,
  resource: Resource,
  access: number,
  words: readonly number[],
  offset: number,
  length: number,
): number {
  let mark = 0;
  for (const [at, value] of words.entries()) {
    mark = putMemset(stream, root, resource, at === 0 ? access : ACCESS_WRITE, {
      offset: offset + at * 4,
      bits: 32,
      value,
      width: 1,
      height: length,
      pitch: words.length * 4,
    });
  }
  return mark;
}
