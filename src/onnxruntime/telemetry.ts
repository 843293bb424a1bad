/**
 * From 1.29 on, builds of ONNX Runtime for Linux and macOS write an identifier to the user's cache
 * and send usage data to their maker, unless an environment variable forbids it before the library
 * is loaded. The users of this package have not agreed to that, so it sets the variable.
 */

/** The first is the variable that the builds read, the second the one that was announced. */
const OPT_OUTS = ['ORT_DISABLE_TELEMETRY', 'ORT_TELEMETRY_DISABLED'] as const;

/**
 * Switches telemetry off. A value that the program has set stays: `ORT_DISABLE_TELEMETRY=0` leaves
 * it on.
 */
export function optOut(): void {
  if (OPT_OUTS.some((name) => process.env[name] !== undefined)) return;
  for (const name of OPT_OUTS) process.env[name] = '1';
}
