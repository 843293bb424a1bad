// Every instruction that is covered. What is not in this table is refused when the module is
// compiled.

import { ASYNC_RULES } from './async-copy.js';
import { ATOMIC_RULES } from './atomics.js';
import { BIT_RULES } from './bits.js';
import { CLUSTER_RULES } from './cluster.js';
import { COMPARE_RULES } from './compare.js';
import { CONTROL_RULES } from './control.js';
import { CONVERT_RULES } from './convert.js';
import { ARITHMETIC_RULES } from './float.js';
import { INTEGER_ONLY_RULES } from './integer.js';
import { MATRIX_MEMORY_RULES } from './matrix-memory.js';
import { MBARRIER_RULES } from './mbarrier.js';
import { MEMORY_RULES } from './memory.js';
import { PACKED_RULES } from './packed-bytes.js';
import { TEXTURE_RULES } from './textures.js';
import { VIDEO_RULES } from './video.js';
import type { Rules } from './rule.js';

export const RULES: Rules = new Map([
  ...ARITHMETIC_RULES,
  ...INTEGER_ONLY_RULES,
  ...BIT_RULES,
  ...COMPARE_RULES,
  ...CONVERT_RULES,
  ...MEMORY_RULES,
  ...ATOMIC_RULES,
  ...CONTROL_RULES,
  ...PACKED_RULES,
  ...VIDEO_RULES,
  ...ASYNC_RULES,
  ...MBARRIER_RULES,
  ...MATRIX_MEMORY_RULES,
  ...TEXTURE_RULES,
  ...CLUSTER_RULES,
]);
