/** Options of loading a module. */
import type { ProcedureArguments } from '../runtime/procedures.js';
import { checkBoolean, checkInteger, checkOptions } from '../ground/arguments.js';

/** Options of `CoreDevice.loadModule`. All but `prints` apply to PTX. Default: the JIT's own. */
export interface ModuleOptions {
  /** CU_JIT_MAX_REGISTERS */
  maxRegisters?: number;
  /** 0 to 4. CU_JIT_OPTIMIZATION_LEVEL */
  optimizationLevel?: number;
  /** CU_JIT_GENERATE_DEBUG_INFO */
  debug?: boolean;
  /** CU_JIT_GENERATE_LINE_INFO */
  lineInfo?: boolean;
  /**
   * Whether its kernels call `printf`. Default: whether the image mentions `vprintf`, which a
   * compressed fatbin does not show. On a GPU the text of such kernels is written before their
   * launch resolves.
   */
  prints?: boolean;
}

/**
 * Checks the options.
 *
 * @throws CudaArgumentError for an unknown option, or a value of the wrong type
 */
export function checkModuleOptions(options: ModuleOptions): void {
  checkOptions('options', options, [
    'maxRegisters',
    'optimizationLevel',
    'debug',
    'lineInfo',
    'prints',
  ]);
  const { maxRegisters, optimizationLevel } = options;
  if (maxRegisters !== undefined)
    checkInteger('options.maxRegisters', maxRegisters, 1, 1024, 'registers');
  if (optimizationLevel !== undefined)
    checkInteger('options.optimizationLevel', optimizationLevel, 0, 4);
  for (const name of ['debug', 'lineInfo', 'prints'] as const)
    checkBoolean(`options.${name}`, options[name]);
}

/** The options in the driver's form. */
export function jitOptions({
  maxRegisters,
  optimizationLevel,
  debug,
  lineInfo,
}: ModuleOptions): ProcedureArguments<'loadModule'>[1] {
  return {
    ...(maxRegisters === undefined ? {} : { CU_JIT_MAX_REGISTERS: maxRegisters }),
    ...(optimizationLevel === undefined ? {} : { CU_JIT_OPTIMIZATION_LEVEL: optimizationLevel }),
    ...(debug === undefined ? {} : { CU_JIT_GENERATE_DEBUG_INFO: debug }),
    ...(lineInfo === undefined ? {} : { CU_JIT_GENERATE_LINE_INFO: lineInfo }),
  };
}
