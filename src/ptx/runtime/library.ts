// All run-time functions.

import { CTX } from '../context.js';
import { PASS_FUNCTIONS } from '../lanes/block-passes.js';
import { LANE_FUNCTIONS } from '../lanes/memory.js';
import { HALF_CALL_FUNCTIONS } from '../lanes/halves.js';
import { VECTOR_CALL_FUNCTIONS } from '../lanes/vector-calls.js';
import { CHECKED_COPY_FUNCTIONS, COPY_FUNCTIONS } from '../rules/async-copy.js';
import { CLUSTER_FUNCTIONS } from '../rules/cluster.js';
import { WIDE_ACCESS_FUNCTIONS } from '../rules/wide-access.js';
import { MBARRIER_FUNCTIONS } from '../rules/mbarrier.js';
import { CONVERSION_FUNCTIONS } from '../rules/convert.js';
import { SMALL_FLOAT_FUNCTIONS } from '../rules/convert-small.js';
import { VIDEO_FUNCTIONS } from '../rules/video.js';
import { NAN_FUNCTIONS } from '../rules/nan.js';
import { WatLibrary } from '../wasm/wat.js';
import { APPROXIMATION_FUNCTIONS } from './approximations.js';
import { CHECKED_CLUSTER_BARRIER_FUNCTIONS, CLUSTER_BARRIER_FUNCTIONS } from './cluster-barrier.js';
import { FAULT_FUNCTIONS } from './faults.js';
import { FLOAT_FUNCTIONS } from './floats.js';
import { INTEGER_FUNCTIONS } from './integers.js';
import { MATRIX_FUNCTIONS } from './matrices.js';
import { SCHEDULER_FUNCTIONS } from './scheduler.js';
import { CHECKED_TENSOR_FUNCTIONS, TENSOR_FUNCTIONS } from './tensors.js';
import { CHECKED_TEXTURE_FUNCTIONS, TEXTURE_FUNCTIONS } from './textures.js';
import { WARP_FUNCTIONS } from './warp.js';
import {
  CHECKED_GROUP_OPERAND_FUNCTIONS,
  GROUP_FUNCTIONS,
  GROUP_OPERAND_FUNCTIONS,
} from './warp-groups.js';

/**
 * The clock advances at each read, from the value that the caller wrote. It belongs to the block:
 * the next call may be on another thread.
 */
const CLOCK_FUNCTIONS = `
(func $read_clock (param $ctx i32) (result i64) (local $time i64)
  (local.set $time (i64.add (i64.load offset=${CTX.clockLo} $ctx) 16L))
  (i64.store offset=${CTX.clockLo} $ctx $time)
  $time)
`;

let plain: WatLibrary | undefined;
let checked: WatLibrary | undefined;

/** `check`: the functions report their accesses. */
export function runtimeLibrary(check: boolean): WatLibrary {
  if (check)
    return (checked ??= new WatLibrary([
      ...texts(),
      CHECKED_TEXTURE_FUNCTIONS,
      CHECKED_COPY_FUNCTIONS,
      CHECKED_TENSOR_FUNCTIONS,
      CHECKED_CLUSTER_BARRIER_FUNCTIONS,
      CHECKED_GROUP_OPERAND_FUNCTIONS,
    ]));
  return (plain ??= new WatLibrary(texts()));
}

function texts(): readonly string[] {
  return [
    FAULT_FUNCTIONS,
    INTEGER_FUNCTIONS,
    FLOAT_FUNCTIONS,
    APPROXIMATION_FUNCTIONS,
    CONVERSION_FUNCTIONS,
    SCHEDULER_FUNCTIONS,
    WARP_FUNCTIONS,
    MATRIX_FUNCTIONS,
    GROUP_FUNCTIONS,
    GROUP_OPERAND_FUNCTIONS,
    TEXTURE_FUNCTIONS,
    TENSOR_FUNCTIONS,
    CLOCK_FUNCTIONS,
    MBARRIER_FUNCTIONS,
    VIDEO_FUNCTIONS,
    COPY_FUNCTIONS,
    WIDE_ACCESS_FUNCTIONS,
    SMALL_FLOAT_FUNCTIONS,
    NAN_FUNCTIONS,
    LANE_FUNCTIONS,
    PASS_FUNCTIONS,
    VECTOR_CALL_FUNCTIONS,
    HALF_CALL_FUNCTIONS,
    CLUSTER_FUNCTIONS,
    CLUSTER_BARRIER_FUNCTIONS,
  ];
}
