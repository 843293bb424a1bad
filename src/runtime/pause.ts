/** Lets the other thread of this core have all of it for some 50 ns. Undefined before Node 24. */
export const pauseProcessor = (Atomics as { pause?: () => void }).pause;
