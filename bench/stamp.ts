/**
 * Marks memory before it is copied and looks for the marks afterwards: in the first, middle and
 * last byte, so that a copy of part of it does not pass.
 */
let last = 0;

function places(bytes: Uint8Array): number[] {
  return [0, bytes.length >> 1, bytes.length - 1];
}

/** Writes a mark that differs from the one before; returns it. */
export function stamp(bytes: Uint8Array): number {
  last = (last % 250) + 1;
  for (const place of places(bytes)) bytes[place] = last;
  return last;
}

/** @throws Error where one of the places does not have the mark */
export function expectStamp(bytes: Uint8Array, mark: number): void {
  for (const place of places(bytes)) {
    if (bytes[place] !== mark)
      throw new Error(`byte ${place} is ${bytes[place]}, not ${mark}: it was not copied`);
  }
}

export function gigabytesPerSecond(bytes: number, ms: number): number {
  return bytes / ms / 1e6;
}
