const DIVISIONS = 12;
let quotient = 1;

/** Dependent divisions keep little of a core busy. Node has no pause before 24. */
function divide(): void {
  let x = quotient;
  for (let i = 0; i < DIVISIONS; i++) x = 1.5 / (x + 1);
  quotient = x;
}

/** Lets the other hardware thread of this core have nearly all of it, for some 50 ns. */
export const pauseProcessor: () => void = (Atomics as { pause?: () => void }).pause ?? divide;

/** No thread ever notifies this word. */
const NOTHING = new Int32Array(new SharedArrayBuffer(4));

/** Sleeps for this time; in practice some 50 µs longer. */
export function sleepFor(milliseconds: number): void {
  Atomics.wait(NOTHING, 0, 0, milliseconds);
}
