/**
 * The driver calls that this provider makes: the rows of all groups.
 */
import { DEVICE_CALLS } from './device-calls.js';
import { STREAM_CALLS } from './stream-calls.js';
import { MEMORY_CALLS } from './memory-calls.js';
import { POOL_CALLS } from './pool-calls.js';
import { COPY_CALLS } from './copy-calls.js';
import { TENSOR_MAP_CALLS } from './tensor-map-calls.js';
import { TEXTURE_CALLS } from './texture-calls.js';
import { CODE_CALLS, LINK_CALLS } from './code-calls.js';
import { LAUNCH_CALLS } from './launch-calls.js';
import { GRAPH_CALLS } from './graph-calls.js';
import type { Prototype, ValuesOf } from './call-row.js';

export const CALLS = {
  ...DEVICE_CALLS,
  ...STREAM_CALLS,
  ...MEMORY_CALLS,
  ...POOL_CALLS,
  ...COPY_CALLS,
  ...TEXTURE_CALLS,
  ...TENSOR_MAP_CALLS,
  ...CODE_CALLS,
  ...LAUNCH_CALLS,
  ...GRAPH_CALLS,
  ...LINK_CALLS,
} as const satisfies Record<string, Prototype>;

/**
 * A row's name: NVIDIA's name of the call, with `_v1` or `_v2` where there is a row for each
 * signature.
 */
export type CallName = keyof typeof CALLS;

/** What TypeScript passes for the arguments of a row. */
export type ArgumentsOf<N extends CallName> = ValuesOf<(typeof CALLS)[N]['args']>;
