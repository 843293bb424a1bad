const DIVISIONS = 12;
let quotient = 1;

/** Divisions that wait for one another keep little of a core busy. Node has no pause before 24. */
function divide(): void {
  let x = quotient;
  for (let i = 0; i < DIVISIONS; i++) x = 1.5 / (x + 1);
  quotient = x;
}

/** Lets the other thread of this core have all of it, or nearly, for some 50 ns. */
export const pauseProcessor: () => void = (Atomics as { pause?: () => void }).pause ?? divide;

/** What nobody ever wakes. */
const NOTHING = new Int32Array(new SharedArrayBuffer(4));

/** This thread sleeps so long: some 50 µs longer, in truth. */
export function sleepFor(milliseconds: number): void {
  Atomics.wait(NOTHING, 0, 0, milliseconds);
}
