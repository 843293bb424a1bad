/**
 * Whether the engine writes a local that is set to zero at once, or where the zero is first needed.
 * V8 does it at once since 13 (Node 24): its new back end gives each value that meets others in a
 * loop a place on the stack, and writes the initial value there. Up to V8 12 (Node 22) it costs
 * nothing. An engine that does not report its version counts as new.
 */
export const writesZerosAtOnce: boolean = (() => {
  const { process } = globalThis as { process?: { versions?: { v8?: string } } };
  const v8 = Number.parseInt(process?.versions?.v8 ?? '', 10);
  return !(v8 < 13);
})();
