/** The cases of all sample modules. */
import type { SampleModule } from '../sample-case.js';
import { K01_SAXPY } from './k01-saxpy.js';
import { K02_HALF_BF16 } from './k02-half-bf16.js';
import { K03_REDUCE } from './k03-reduce.js';
import { K04_SGEMM } from './k04-sgemm.js';
import { K05_SOFTMAX } from './k05-softmax.js';
import { K06_HIST } from './k06-hist.js';
import { K07_SCAN } from './k07-scan.js';
import { K08_TRANSPOSE } from './k08-transpose.js';
import { K09_NBODY } from './k09-nbody.js';
import { K10_MANDEL } from './k10-mandel.js';
import { K11_RESIZE } from './k11-resize.js';
import { K12_PHILOX } from './k12-philox.js';
import { K13_BITONIC } from './k13-bitonic.js';
import { K14_PRINTF } from './k14-printf.js';
import { K15_COOP } from './k15-coop.js';
import { K16_ASYNC } from './k16-async.js';
import { K17_CALLS } from './k17-calls.js';
import { K18_MATH } from './k18-math.js';
import { K18B_FASTMATH } from './k18b-fastmath.js';
import { K19_SPMV } from './k19-spmv.js';
import { K20_SWITCH_GOTO } from './k20-switch-goto.js';

export const SAMPLE_MODULES: readonly SampleModule[] = [
  K01_SAXPY,
  K02_HALF_BF16,
  K03_REDUCE,
  K04_SGEMM,
  K05_SOFTMAX,
  K06_HIST,
  K07_SCAN,
  K08_TRANSPOSE,
  K09_NBODY,
  K10_MANDEL,
  K11_RESIZE,
  K12_PHILOX,
  K13_BITONIC,
  K14_PRINTF,
  K15_COOP,
  K16_ASYNC,
  K17_CALLS,
  K18_MATH,
  K18B_FASTMATH,
  K19_SPMV,
  K20_SWITCH_GOTO,
];
