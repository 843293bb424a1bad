/** NVIDIA's NPP as an engine: its rows, and whether it is there. */
import type { Engine } from './engine.js';

export const nppEngine: Engine = {
  carriers: {},
  look: () => Promise.resolve({ name: 'npp', available: false, reason: 'This version has no binding of NPP yet.' }),
};
