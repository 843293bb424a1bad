/** Compiles one program with NVRTC, from its source to the requested outputs. */
import { join } from 'node:path';

import type { Compiled, CompileRequest, Output } from './messages.js';
import { NVRTC } from './nvrtc-library.js';
import type { NvrtcLibrary } from './nvrtc-library.js';
import { Refused } from './refused.js';
import { atLeast, versionName } from './version.js';

/** The outputs of each compilation: code for link-time optimisation excludes the others. */
const PASSES: readonly (readonly Output[])[] = [['ptx', 'cubin'], ['ltoir']];

interface Passed extends Omit<Compiled, 'version' | 'architecture'> {}

export function compileProgram(nvrtc: NvrtcLibrary, request: CompileRequest): Compiled {
  for (const { what, since } of request.needs) {
    if (!atLeast(nvrtc.version, since))
      throw new Refused({
        reason: 'too-old',
        message: `${what} needs NVRTC ${versionName(since)} or later; this is ${nvrtc.name}`,
      });
  }
  const architecture = architectureFor(nvrtc, request);
  const real = architecture?.startsWith('sm_') === true;
  if (request.outputs.includes('cubin') && !real && request.architecture !== undefined) {
    throw new Refused({
      reason: 'unsupported',
      message:
        `a cubin is for one architecture, such as 'sm_90'; '${architecture}' is a virtual ` + 'one',
    });
  }
  const flags = [...request.flags];
  if (architecture !== undefined) flags.unshift(`--gpu-architecture=${architecture}`);
  if (request.bundledHeaders !== undefined)
    flags.push(...bundledHeaders(nvrtc, request.bundledHeaders));

  const all: Partial<Passed>[] = [];
  for (const pass of PASSES) {
    const outputs = pass.filter(
      (output) => request.outputs.includes(output) && (output !== 'cubin' || real),
    );
    if (outputs.length > 0)
      all.push(
        compileOnce(
          nvrtc,
          request,
          outputs,
          pass.includes('ltoir') ? [...flags, '--dlink-time-opt'] : flags,
        ),
      );
  }
  return {
    ptx: undefined,
    cubin: undefined,
    ltoir: undefined,
    loweredNames: {},
    ...Object.assign({}, ...all.reverse()),
    version: nvrtc.version,
    architecture,
    // The log about the source is the same in each pass.
    log: all[0]?.log ?? '',
  } as Compiled;
}

/**
 * The architecture to compile for: the device's, or the newest before it that the library supports,
 * whose PTX the device takes.
 */
function architectureFor(
  nvrtc: NvrtcLibrary,
  { architecture, capability, outputs }: CompileRequest,
): string | undefined {
  if (architecture !== undefined || capability === undefined) return architecture;
  const wanted = capability[0] * 10 + capability[1];
  const known = nvrtc.supportedArchitectures();
  const best = known.filter((number) => number <= wanted).at(-1);
  if (best === undefined) {
    throw new Refused({
      reason: 'unsupported',
      message:
        `${nvrtc.name} compiles for compute capability ` +
        `${versionName([Math.floor((known[0] ?? 0) / 10), (known[0] ?? 0) % 10])} and later, ` +
        `and the device has ${versionName(capability)}: it needs an older NVRTC`,
    });
  }
  return `${outputs.includes('cubin') && best === wanted ? 'sm' : 'compute'}_${best}`;
}

/**
 * Returns the options for the headers that the library contains. The library writes them first
 * where they are not in the folder yet.
 */
function bundledHeaders(nvrtc: NvrtcLibrary, folder: string): string[] {
  if (!nvrtc.has('nvrtcInstallBundledHeaders')) return [];
  const own = join(folder, versionName(nvrtc.version));
  const reason: (string | null)[] = [null];
  const result = nvrtc.call('nvrtcInstallBundledHeaders', own, 0, reason);
  if (result !== NVRTC.SUCCESS) {
    throw new Refused({
      reason: 'library',
      message:
        `nvrtcInstallBundledHeaders returned ${nvrtc.resultName(result)} for ${own}: ` +
        `${reason[0] ?? 'no reason given'}`,
    });
  }
  return [`--include-path=${own}`, `--include-path=${join(own, 'cccl')}`];
}

function compileOnce(
  nvrtc: NvrtcLibrary,
  request: CompileRequest,
  outputs: readonly Output[],
  flags: readonly string[],
): Partial<Passed> {
  const handle = [0];
  const headers = request.headers;
  nvrtc.check(
    'nvrtcCreateProgram',
    nvrtc.call(
      'nvrtcCreateProgram',
      handle,
      request.source,
      request.name,
      headers.length,
      headers.map(([, text]) => text),
      headers.map(([name]) => name),
    ),
  );
  const program = handle[0]!;
  try {
    for (const expression of request.nameExpressions)
      nvrtc.check(
        'nvrtcAddNameExpression',
        nvrtc.call('nvrtcAddNameExpression', program, expression),
      );
    const result = nvrtc.call('nvrtcCompileProgram', program, flags.length, flags);
    const log = nvrtc.text('nvrtcGetProgramLogSize', 'nvrtcGetProgramLog', program);
    if (result === NVRTC.INVALID_OPTION)
      throw new Refused({
        reason: 'option',
        message: `${log.trim().replace(/^nvrtc: error: /, '')} (${nvrtc.name})`,
      });
    if (result === NVRTC.COMPILATION || result === NVRTC.NAME_EXPRESSION_NOT_VALID)
      throw new Refused({ reason: 'source', log, version: nvrtc.version });
    if (result !== NVRTC.SUCCESS) {
      const message =
        'nvrtcCompileProgram returned ' +
        `${nvrtc.resultName(result)}${log.trim() === '' ? '' : `: ${log.trim()}`}`;
      throw new Refused(
        result === NVRTC.OUT_OF_MEMORY
          ? { reason: 'memory', message }
          : { reason: 'library', message },
      );
    }
    return {
      log,
      loweredNames: Object.fromEntries(
        request.nameExpressions.map((expression) => [
          expression,
          loweredName(nvrtc, program, expression),
        ]),
      ),
      ...(outputs.includes('ptx')
        ? { ptx: nvrtc.text('nvrtcGetPTXSize', 'nvrtcGetPTX', program) }
        : {}),
      ...(outputs.includes('cubin')
        ? { cubin: nvrtc.bytes('nvrtcGetCUBINSize', 'nvrtcGetCUBIN', program) }
        : {}),
      ...(outputs.includes('ltoir')
        ? { ltoir: nvrtc.bytes('nvrtcGetLTOIRSize', 'nvrtcGetLTOIR', program) }
        : {}),
    };
  } finally {
    nvrtc.call('nvrtcDestroyProgram', handle);
  }
}

function loweredName(nvrtc: NvrtcLibrary, program: number, expression: string): string {
  const name: (string | null)[] = [null];
  nvrtc.check('nvrtcGetLoweredName', nvrtc.call('nvrtcGetLoweredName', program, expression, name));
  return name[0]!;
}
