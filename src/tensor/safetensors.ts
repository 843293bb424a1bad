/**
 * safetensors files: a header in JSON, and after it the tensors' bytes, each of which belongs to
 * one tensor.
 *
 * The checks are those of the reference implementation (huggingface/safetensors, `tensor.rs`): a
 * header of at most 100 MB that begins with `{`, tensors that follow one another without holes and
 * overlaps, exactly to the end of the file. Duplicate keys are an error here: the format forbids
 * them, and the reference accepts them.
 */
import { checkOptions, invalid } from '../ground/arguments.js';
import { DTYPES, DTYPE_FACTS, DTYPE_NAMES } from '../ground/dtype.js';
import type { DType, DTypeName } from '../ground/dtype.js';
import { CudaFormatError } from '../core/index.js';
import { isMap } from '../ground/other-realms.js';
import { contiguous } from './layout.js';
import { numel, showShape } from './shape.js';
import { aligned, checkBytes, checkTensorData, packed } from './tensor-data.js';
import type { TensorData } from './tensor-data.js';

/** One tensor as a header describes it. */
export interface SafetensorsEntry {
  readonly dtype: DType;
  readonly shape: readonly number[];
  /** First byte of the tensor, from the start of the file. */
  readonly start: number;
  /** The tensor's last byte, plus 1. */
  readonly end: number;
}

/** One tensor of a type for which this library has no dtype. */
export interface SafetensorsOther extends Omit<SafetensorsEntry, 'dtype'> {
  /** The file's name of the type, such as `'F8_E8M0'`. */
  readonly dtype: string;
}

/** The contents of a file's header. */
export interface SafetensorsHeader {
  /** The tensors by their names, in the order in which they lie in the file. */
  readonly tensors: ReadonlyMap<string, SafetensorsEntry>;
  /** Tensors of types for which this library has no dtype (F4, F6, F8_E8M0 and newer ones). */
  readonly others: ReadonlyMap<string, SafetensorsOther>;
  /** Texts of the file's metadata, by their keys. */
  readonly metadata: ReadonlyMap<string, string>;
  /** Bytes of the whole file, by its header. */
  readonly fileBytes: number;
}

/** A file's tensors and metadata. */
export interface Safetensors {
  readonly tensors: ReadonlyMap<string, TensorData>;
  readonly metadata: ReadonlyMap<string, string>;
}

/** The reference's limit: larger headers would take minutes to parse. */
const LONGEST_HEADER = 100_000_000;

/** Axes of a tensor at most, far above what files have: it keeps messages and layouts small. */
const LARGEST_RANK = 64;

const METADATA = '__metadata__';

/**
 * All types of the format, in the order of the reference's enumeration. The reference writes
 * tensors from the last type to the first.
 */
const ORDER = [
  'BOOL',
  'F4',
  'F6_E2M3',
  'F6_E3M2',
  'U8',
  'I8',
  'F8_E5M2',
  'F8_E4M3',
  'F8_E8M0',
  'I16',
  'U16',
  'F16',
  'BF16',
  'I32',
  'U32',
  'F32',
  'C64',
  'F64',
  'I64',
  'U64',
] as const;

type FileType = (typeof ORDER)[number];

const DTYPE_OF: ReadonlyMap<string, DTypeName> = new Map(
  ORDER.flatMap((type) =>
    DTYPE_NAMES.filter((name) => fileTypeOf(name) === type).map((name) => [type, name] as const),
  ),
);

/** The format's type for a dtype; null where it has none. */
function fileTypeOf(name: DTypeName): FileType | null {
  return DTYPE_FACTS[name].safetensors;
}

/** Brackets in brackets at most. A header has three: lists in objects in one object. */
const DEEPEST = 32;
const [QUOTE, BACKSLASH, OPEN_BRACKET, CLOSE_BRACKET, OPEN_BRACE, CLOSE_BRACE] = [
  0x22, 0x5c, 0x5b, 0x5d, 0x7b, 0x7d,
];

function wrong(message: string, offset?: number, cause?: unknown): CudaFormatError {
  return new CudaFormatError('safetensors', message, offset, { cause });
}

/**
 * Gives the number of bytes from the start of a file to its first tensor, from the file's first
 * eight bytes. So many {@link readSafetensorsHeader} needs of a file that is too large to be read
 * whole.
 *
 * @throws CudaFormatError for fewer than eight bytes, and for a header of more than 100 MB
 *
 * @example
 * ```ts
 * // The first eight bytes of a file: here its header has 64.
 * console.log(safetensorsHeaderBytes(Uint8Array.of(64, 0, 0, 0, 0, 0, 0, 0))); // 72
 * ```
 */
export function safetensorsHeaderBytes(first: Uint8Array): number {
  checkBytes('first', first);
  if (first.length < 8)
    throw wrong(
      `the file has ${first.length} bytes, and the length of its header takes 8`,
      first.length,
    );
  const view = new DataView(first.buffer, first.byteOffset, 8);
  const length = view.getUint32(0, true) + view.getUint32(4, true) * 2 ** 32;
  if (length > LONGEST_HEADER)
    throw wrong(`a header of ${length} bytes; the format allows ${LONGEST_HEADER}`, 0);
  return 8 + length;
}

/**
 * Reads the header, from the first bytes of the file: as many as {@link safetensorsHeaderBytes}
 * gives, or more. That the file has `fileBytes` bytes is not checked.
 *
 * @throws CudaFormatError for a header that is cut short or damaged
 *
 * @example
 * ```ts
 * const file = writeSafetensors({
 *   bias: { dtype: u8, layout: layouts.contiguous([3]), bytes: Uint8Array.of(1, 2, 3) },
 * });
 * const { tensors, fileBytes } = readSafetensorsHeader(file);
 * console.log([...tensors.keys()], fileBytes === file.length); // [ 'bias' ] true
 * ```
 */
export function readSafetensorsHeader(file: Uint8Array): SafetensorsHeader {
  const begin = safetensorsHeaderBytes(file);
  if (begin > file.length)
    throw wrong(`a header of ${begin - 8} bytes, and the file has ${file.length - 8}`, file.length);
  if (file[8] !== 0x7b)
    throw wrong(begin === 8 ? 'an empty header' : "the header does not begin with '{'", 8);
  let text: string;
  try {
    // TextDecoder does not take shared memory.
    text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(file.slice(8, begin));
  } catch (error) {
    throw wrong('the header is not UTF-8', 8, error);
  }
  checkDepth(text);
  let header: Record<string, unknown>;
  try {
    header = JSON.parse(text) as Record<string, unknown>;
  } catch (error) {
    throw wrong('the header is no JSON', 8, error);
  }
  checkKeys(text);

  const metadata = readMetadata(header[METADATA]);
  const entries = Object.entries(header)
    .filter(([name]) => name !== METADATA)
    .map(([name, entry]) => ({ name, ...readEntry(name, entry, begin) }))
    .sort((a, b) => a.start - b.start || a.end - b.end);
  let at = begin;
  for (const { name, start, end } of entries) {
    if (start !== at)
      throw wrong(
        `tensor ${show(name)} begins at byte ${start}, ` +
          `${start < at ? 'within the tensor before it' : 'after a hole'}; expected ${at}`,
        start,
      );
    at = end;
  }
  const tensors = new Map<string, SafetensorsEntry>();
  const others = new Map<string, SafetensorsOther>();
  for (const { name, dtype, ...place } of entries) {
    if (typeof dtype === 'string') others.set(name, { dtype, ...place });
    else tensors.set(name, { dtype, ...place });
  }
  return { tensors, others, metadata, fileBytes: at };
}

function otherType(name: string, type: unknown): CudaFormatError {
  return wrong(
    `tensor ${show(name)} has dtype ${show(type)}; dtypes of tensors are ` +
      `${[...DTYPE_OF.keys()].join(', ')}`,
  );
}

/**
 * Checks the depth of brackets, so that recursion over the values, as in error messages, does not
 * overflow the stack.
 */
function checkDepth(text: string): void {
  let depth = 0;
  let inString = false;
  for (let at = 0; at < text.length; at++) {
    const character = text.charCodeAt(at);
    if (inString) {
      if (character === BACKSLASH) at++;
      else if (character === QUOTE) inString = false;
    } else if (character === QUOTE) inString = true;
    else if (character === OPEN_BRACE || character === OPEN_BRACKET) {
      if (++depth > DEEPEST)
        throw wrong(
          `the header is nested more than ${DEEPEST} deep, at character ${at} of it: it has ` +
            'lists in objects in one object',
          8,
        );
    } else if (character === CLOSE_BRACE || character === CLOSE_BRACKET) depth--;
  }
}

/**
 * Checks that no key of an object comes twice: JSON.parse would keep the last one only. The text is
 * JSON.
 */
function checkKeys(text: string): void {
  const open: Set<string>[] = [];
  for (const { 0: token, index } of text.matchAll(/"(?:[^"\\]|\\.)*"(\s*:)?|[{}]/g)) {
    if (token === '{') open.push(new Set());
    else if (token === '}') open.pop();
    else if (token.endsWith(':')) {
      const key = JSON.parse(token.slice(0, token.lastIndexOf('"') + 1)) as string;
      if (/\p{Surrogate}/u.test(key)) throw wrong(`the key ${show(key)} is not Unicode`);
      const keys = open.at(-1)!;
      if (keys.has(key))
        throw wrong(`the key ${show(key)} twice, again at character ${index} of the header`);
      keys.add(key);
    }
  }
}

function readMetadata(value: unknown): ReadonlyMap<string, string> {
  if (value === undefined || value === null) return new Map();
  if (typeof value !== 'object' || Array.isArray(value))
    throw wrong(`${METADATA} is ${show(value)}, not an object of texts`);
  return new Map(
    Object.entries(value).map(([key, text]) => {
      if (typeof text !== 'string')
        throw wrong(`${METADATA} has ${show(text)} for ${show(key)}, not a text`);
      return [key, text];
    }),
  );
}

function readEntry(
  name: string,
  value: unknown,
  begin: number,
): SafetensorsEntry | SafetensorsOther {
  const what = `tensor ${show(name)}`;
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw wrong(`${what} is ${show(value)}, not an object`);
  const { dtype: type, shape, data_offsets: offsets } = value as Record<string, unknown>;
  if (typeof type !== 'string') throw otherType(name, type);
  const found = DTYPE_OF.get(type);
  const dtype = found === undefined ? type : DTYPES[found];
  if (!Array.isArray(shape) || !shape.every(isCount))
    throw wrong(`${what} has shape ${show(shape)}, not a list of extents`);
  if (shape.length > LARGEST_RANK)
    throw wrong(`${what} has ${shape.length} axes; expected no more than ${LARGEST_RANK}`);
  if (!Array.isArray(offsets) || offsets.length !== 2 || !offsets.every(isCount))
    throw wrong(`${what} has data_offsets ${show(offsets)}, not [start, end]`);
  const [from, to] = offsets as [number, number];
  const product = shape.reduce(
    (all, extent) => all * Math.max(extent, 1),
    typeof dtype === 'string' ? 1 : dtype.bytes,
  );
  if (product > Number.MAX_SAFE_INTEGER)
    throw wrong(`${what} has a shape of too many elements: ${showShape(shape)}`);
  if (typeof dtype === 'string') {
    // The size of elements of an unknown type is not known here.
    if (to < from) throw wrong(`${what} has data_offsets ${show(offsets)}, not [start, end]`);
  } else {
    const bytes = numel(shape) * dtype.bytes;
    if (to - from !== bytes)
      throw wrong(
        `${what} has data_offsets ${show(offsets)}, ${to - from} bytes; ${showShape(shape)} ` +
          `of ${dtype.name} takes ${bytes}`,
      );
  }
  // Plus 0, since JSON may have -0.
  const place = { shape: shape.map((extent) => extent + 0), start: begin + from, end: begin + to };
  return typeof dtype === 'string' ? { dtype, ...place } : { dtype, ...place };
}

function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0;
}

function show(value: unknown): string {
  const text = JSON.stringify(value) as string | undefined;
  if (text === undefined) return 'none';
  return text.length > 60 ? `${text.slice(0, 57)}…` : text;
}

/**
 * Reads the tensors of a file. Their bytes are views of the file's where they are aligned to the
 * dtype, as the reference writes them, else copies.
 *
 * @param names the tensors to read; types of others do not matter then. Default: all
 * @throws CudaFormatError for a file that is cut short or damaged, that has bytes after its last
 *   tensor, or a tensor of a type for which this library has no dtype (F4, F6, F8_E8M0);
 *   CudaArgumentError for a name that the file does not have
 *
 * @example
 * ```ts
 * const file = writeSafetensors({
 *   bias: { dtype: u8, layout: layouts.contiguous([3]), bytes: Uint8Array.of(1, 2, 3) },
 * });
 * const { tensors } = readSafetensors(file);
 * console.log(tensors.get('bias')?.bytes.join(' ')); // 1 2 3
 * ```
 */
export function readSafetensors(file: Uint8Array, names?: readonly string[]): Safetensors {
  checkBytes('file', file);
  if (
    names !== undefined &&
    (!Array.isArray(names) || !names.every((name) => typeof name === 'string'))
  )
    throw invalid('names', 'a list of names', names);
  const { tensors, others, metadata, fileBytes } = readSafetensorsHeader(file);
  if (file.length !== fileBytes)
    throw wrong(
      `the file has ${file.length} bytes; its header says ${fileBytes}`,
      Math.min(file.length, fileBytes),
    );
  const read = ([name, { dtype, shape, start, end }]: [string, SafetensorsEntry]): [
    string,
    TensorData,
  ] => [
    name,
    {
      dtype,
      layout: contiguous([...shape]),
      bytes: aligned(file.subarray(start, end), dtype.bytes),
    },
  ];
  const wanted = names ?? [...others.keys(), ...tensors.keys()];
  const found = wanted.map((name): [string, SafetensorsEntry] => {
    const entry = tensors.get(name);
    if (entry !== undefined) return [name, entry];
    const other = others.get(name);
    if (other !== undefined) throw otherType(name, other.dtype);
    throw invalid(
      'names',
      `names of the file: ${[...tensors.keys()].slice(0, 8).join(', ')}`,
      name,
    );
  });
  return { tensors: new Map(found.map(read)), metadata };
}

/** Options of {@link writeSafetensors}. */
export interface WriteSafetensorsOptions {
  /** Texts for readers of the file, such as `{ format: 'pt' }`. */
  readonly metadata?: Readonly<Record<string, string>> | ReadonlyMap<string, string>;
}

/**
 * Writes tensors as a file, in the reference's order: by dtype, with the largest elements first,
 * then by name, so that each tensor is aligned. Elements are written in row-major order.
 *
 * @throws CudaArgumentError for an object that is no tensor, a dtype that the format does not have,
 *   and a name that the format does not take
 *
 * @example
 * ```ts
 * const file = writeSafetensors(
 *   { bias: { dtype: u8, layout: layouts.contiguous([3]), bytes: Uint8Array.of(1, 2, 3) } },
 *   { metadata: { format: 'pt' } },
 * );
 * console.log(readSafetensors(file).metadata.get('format')); // pt
 * ```
 */
export function writeSafetensors(
  tensors: Readonly<Record<string, TensorData>> | ReadonlyMap<string, TensorData>,
  options: WriteSafetensorsOptions = {},
): Uint8Array {
  checkOptions('options', options, ['metadata']);
  const encoder = new TextEncoder();
  const entries = entriesOf('tensors', tensors).map(([name, tensor]) => {
    checkName('tensors', name);
    if (name === METADATA)
      throw invalid(
        'tensors',
        `names other than ${METADATA}, which is the place of the metadata`,
        name,
      );
    const argument = `tensors[${JSON.stringify(name)}]`;
    checkTensorData(argument, tensor);
    const type = checkedFileType(argument, tensor.dtype);
    return { name, key: encoder.encode(name), tensor, type, data: packed(tensor) };
  });
  const rank = ({ type }: (typeof entries)[number]): number => ORDER.indexOf(type);
  entries.sort((a, b) => rank(b) - rank(a) || Buffer.compare(a.key, b.key));

  const parts: string[] = [];
  const metadata =
    options.metadata === undefined ? [] : entriesOf('options.metadata', options.metadata);
  if (metadata.length > 0) {
    const texts = metadata.map(([key, text]) => {
      checkName('options.metadata', key);
      checkName(`options.metadata[${JSON.stringify(key)}]`, text);
      return `${JSON.stringify(key)}:${JSON.stringify(text)}`;
    });
    parts.push(`"${METADATA}":{${texts.join()}}`);
  }
  let at = 0;
  for (const { name, tensor, type, data } of entries) {
    const end = at + data.length;
    parts.push(
      `${JSON.stringify(name)}:{"dtype":"${type}","shape":[${tensor.layout.shape.join()}],` +
        `"data_offsets":[${at},${end}]}`,
    );
    at = end;
  }
  const header = encoder.encode(`{${parts.join()}}`);
  // Spaces up to a multiple of eight bytes, so that the first tensor is aligned.
  const begin = 8 + Math.ceil(header.length / 8) * 8;
  if (begin - 8 > LONGEST_HEADER)
    throw invalid(
      'tensors',
      `names and metadata of at most ${LONGEST_HEADER} bytes`,
      `${header.length} bytes`,
    );
  const file = new Uint8Array(begin + at);
  new DataView(file.buffer).setUint32(0, begin - 8, true);
  file.fill(0x20, 8 + header.length, begin);
  file.set(header, 8);
  let end = begin;
  for (const { data } of entries) {
    file.set(data, end);
    end += data.length;
  }
  return file;
}

/** @throws CudaArgumentError for a dtype that the format has no type for */
function checkedFileType(argument: string, dtype: DType): FileType {
  const type = fileTypeOf(dtype.name);
  if (type !== null) return type;
  const names = [...DTYPE_OF.values()].join(', ');
  throw invalid(`${argument}.dtype`, `one of ${names}, as safetensors has them`, dtype.name);
}

function entriesOf<T>(
  argument: string,
  given: Readonly<Record<string, T>> | ReadonlyMap<string, T>,
): [string, T][] {
  if (isMap(given)) return [...given];
  if (typeof given !== 'object' || (given as unknown) === null || Array.isArray(given))
    throw invalid(argument, 'an object or a Map, by names', given);
  return Object.entries(given);
}

function checkName(argument: string, name: unknown): void {
  if (typeof name !== 'string') throw invalid(argument, 'a text', name);
  if (/\p{Surrogate}/u.test(name))
    throw invalid(argument, 'Unicode text, without lone surrogates', name);
}
