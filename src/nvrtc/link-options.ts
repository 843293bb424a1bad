/** The options of a link, and the checks of its inputs. */
import {
  checkBoolean,
  checkInteger,
  checkOptions,
  checkSignal,
  checkString,
  checkText,
  invalid,
} from '../ground/arguments.js';
import { isBytes } from '../ground/other-realms.js';
import type { Architecture } from './compile-options.js';
import { Program } from './program.js';
import type { LinkKind, LinkPart } from './thread/messages.js';

/** What can be linked: a program, or code of one kind, with its name in messages. */
export type LinkInput =
  | Program
  | { readonly ptx: string; readonly name?: string }
  | { readonly cubin: Uint8Array; readonly name?: string }
  | { readonly ltoir: Uint8Array; readonly name?: string }
  | { readonly fatbin: Uint8Array; readonly name?: string }
  | { readonly object: Uint8Array; readonly name?: string };

/** Options of {@link link}. Each has nvJitLink's default unless its description names another. */
export interface LinkOptions {
  /** The architecture to link for. Default: the one that the programs were compiled for. -arch */
  architecture?: Architecture;
  /**
   * The kind of the result. `'ptx'` is possible where all inputs are LTO-IR. Default `'cubin'`.
   * -ptx
   */
  output?: 'cubin' | 'ptx';
  /** How far the code is optimised, 0 or 3. -O */
  optimizationLevel?: 0 | 3;
  /** The most registers of one thread. -maxrregcount */
  maxRegisters?: number;
  /** Whether the code is for debuggers. -g */
  debug?: boolean;
  /** Whether the code has line numbers. -lineinfo */
  lineInfo?: boolean;
  /** Whether subnormal f32 become zero, in LTO-IR. -ftz */
  flushToZero?: boolean;
  /** Whether f32 division rounds to nearest, in LTO-IR. -prec-div */
  preciseDivision?: boolean;
  /** Whether f32 square roots round to nearest, in LTO-IR. -prec-sqrt */
  preciseSquareRoot?: boolean;
  /** Whether a * b + c may be one instruction, in LTO-IR. -fma */
  fuseMultiplyAdd?: boolean;
  /** The kernels that the program launches: others may be left out. -kernels-used */
  kernels?: readonly string[];
  /** Options in nvJitLink's spelling. */
  options?: readonly string[];
  /** Whether the result is cached on disk, and read from there. Default true. */
  cache?: boolean;
  /** Aborting it stops the wait. */
  signal?: AbortSignal;
}

export interface CheckedLink {
  readonly architecture: string;
  readonly parts: readonly LinkPart[];
  readonly flags: readonly string[];
  readonly output: 'cubin' | 'ptx';
  readonly cache: boolean;
  readonly signal: AbortSignal | undefined;
}

type Row = (argument: string, value: unknown) => readonly string[];

const onOff =
  (flag: string): Row =>
  (argument, value) => {
    checkBoolean(argument, value);
    return [`${flag}=${value === true ? 1 : 0}`];
  };
const set =
  (flag: string): Row =>
  (argument, value) => {
    checkBoolean(argument, value);
    return value === true ? [flag] : [];
  };

const FLAGS = {
  optimizationLevel: (argument, value) => {
    if (value !== 0 && value !== 3) throw invalid(argument, '0 or 3', value);
    return [`-O${value}`];
  },
  maxRegisters: (argument, value) => {
    checkInteger(argument, value, 1, 255, 'registers');
    return [`-maxrregcount=${value}`];
  },
  debug: set('-g'),
  lineInfo: set('-lineinfo'),
  flushToZero: onOff('-ftz'),
  preciseDivision: onOff('-prec-div'),
  preciseSquareRoot: onOff('-prec-sqrt'),
  fuseMultiplyAdd: onOff('-fma'),
  kernels: (argument, value) => strings(argument, value).map((name) => `-kernels-used=${name}`),
  options: strings,
} as const satisfies Partial<Record<keyof LinkOptions, Row>>;

const KNOWN = ['architecture', 'output', ...Object.keys(FLAGS), 'cache', 'signal'];
const KINDS: readonly string[] = ['ptx', 'cubin', 'ltoir', 'fatbin', 'object'] satisfies LinkKind[];

/**
 * Checks inputs and options.
 *
 * @throws CudaArgumentError for an input that cannot be linked, and for an unknown option
 */
export function checkLink(inputs: readonly LinkInput[], options: LinkOptions): CheckedLink {
  if (!Array.isArray(inputs) || inputs.length === 0)
    throw invalid(
      'inputs',
      'a list of programs, { ptx }, { cubin }, { ltoir }, { fatbin } or { object }',
      inputs,
    );
  const parts = (inputs as readonly LinkInput[]).map(partOf);
  checkOptions('options', options, KNOWN);
  const { output = 'cubin', cache = true, signal } = options;
  if ((output as string) !== 'cubin' && (output as string) !== 'ptx')
    throw invalid('options.output', "'cubin' or 'ptx'", output);
  const allLtoir = parts.every(({ kind }) => kind === 'ltoir');
  if (output === 'ptx' && !allLtoir)
    throw invalid(
      'options.output',
      "'cubin', since not all inputs are LTO-IR",
      output,
      "Compile them with outputs: ['ltoir'].",
    );
  checkBoolean('options.cache', cache);
  checkSignal(signal);
  const architecture = architectureOf(inputs as readonly LinkInput[], options.architecture, output);
  const flags = [`-arch=${architecture}`];
  if (parts.some(({ kind }) => kind === 'ltoir')) flags.push('-lto');
  if (output === 'ptx') flags.push('-ptx');
  for (const [key, row] of Object.entries<Row>(FLAGS)) {
    const value: unknown = options[key as keyof typeof FLAGS];
    if (value !== undefined) flags.push(...row(`options.${key}`, value));
  }
  return { architecture, parts, flags, output, cache, signal };
}

function partOf(input: LinkInput, index: number): LinkPart {
  const argument = `inputs[${index}]`;
  if (input instanceof Program) {
    // The least compiled form leaves most to optimise.
    const kind = (['ltoir', 'ptx', 'cubin'] as const).find((each) => input.has(each))!;
    return { kind, name: input.name, data: kind === 'ptx' ? ptxBytes(input.ptx) : input[kind] };
  }
  const kinds =
    typeof input === 'object' && (input as unknown) !== null
      ? KINDS.filter((kind) => kind in input)
      : [];
  if (kinds.length !== 1)
    throw invalid(
      argument,
      'a program, { ptx }, { cubin }, { ltoir }, { fatbin } or { object }',
      input,
    );
  const kind = kinds[0] as LinkKind;
  const { name = `${argument}.${kind}` } = input;
  checkText(`${argument}.name`, name);
  const data = (input as unknown as Record<LinkKind, unknown>)[kind];
  if (kind === 'ptx') {
    checkString(`${argument}.ptx`, data);
    return { kind, name, data: ptxBytes(data) };
  }
  if (!isBytes(data) || data.length === 0)
    throw invalid(`${argument}.${kind}`, 'a Uint8Array with bytes', data);
  return { kind, name, data };
}

/** Encodes PTX, which has to end with a zero. */
function ptxBytes(ptx: string): Uint8Array {
  return new TextEncoder().encode(ptx.endsWith('\0') ? ptx : `${ptx}\0`);
}

function architectureOf(
  inputs: readonly LinkInput[],
  given: Architecture | undefined,
  output: 'cubin' | 'ptx',
): string {
  if (given !== undefined) {
    if (typeof given !== 'string' || !/^(sm|compute)_\d{2,3}[af]?$/.test(given))
      throw invalid('options.architecture', "an architecture such as 'sm_90'", given);
    if (output === 'cubin' && !given.startsWith('sm_'))
      throw invalid(
        'options.architecture',
        'a real architecture for a cubin',
        given,
        `Write architecture: '${given.replace('compute', 'sm')}'.`,
      );
    return given;
  }
  const known = new Set(
    inputs.map((input) => (input instanceof Program ? input.architecture : undefined)),
  );
  const [only] = known;
  if (known.size === 1 && only?.startsWith('sm_') === true) return only;
  throw invalid(
    'options.architecture',
    "the architecture to link for, such as 'sm_90', where not all inputs are programs for " +
      'the same one',
    undefined,
  );
}

function strings(argument: string, value: unknown): string[] {
  if (!Array.isArray(value)) throw invalid(argument, 'a list of strings', value);
  return (value as readonly unknown[]).map((each, i) => {
    checkText(`${argument}[${i}]`, each);
    return each;
  });
}
