/**
 * From 1.29 on, builds of ONNX Runtime for Linux and macOS write an identifier to the user's cache
 * and send what is run to their maker, unless the environment says otherwise before the library is
 * loaded. Whoever uses this package was not asked, so it says otherwise.
 */

/** One is what the builds read, the other what they were announced to read. */
const OPT_OUTS = ['ORT_DISABLE_TELEMETRY', 'ORT_TELEMETRY_DISABLED'] as const;

/** What the program has set stays: `ORT_DISABLE_TELEMETRY=0` leaves it on. */
export function optOut(): void {
  if (OPT_OUTS.some((name) => process.env[name] !== undefined)) return;
  for (const name of OPT_OUTS) process.env[name] = '1';
}
