/** Lets the other thread of this core have all of it for some 50 ns. Undefined before Node 24. */
export const pauseProcessor = (Atomics as { pause?: () => void }).pause;

/** What nobody ever wakes. */
const NOTHING = new Int32Array(new SharedArrayBuffer(4));

/** This thread sleeps so long: some 50 µs longer, in truth. */
export function sleepFor(milliseconds: number): void {
  Atomics.wait(NOTHING, 0, 0, milliseconds);
}
