/**
 * A tile kernel as Tile IR: the marked text is read to a typed tree, whose operations on numbers
 * become operations on tiles.
 */
import { moduleOf } from '../../tileir/index.js';
import type { DebugTable, SourcePlace, Value } from '../../tileir/index.js';
import { entryName } from '../emit/emit.js';
import { readKernel } from '../read/read-kernel.js';
import type { KernelSource } from '../signature.js';
import { KernelSourceError } from '../source-error.js';
import type { AbiParam, Span } from '../tree.js';
import { abiOf, parameterTypes, unknownDtypes } from './memory.js';
import { markedSource } from './marked-source.js';
import { TileIrBody } from './statements.js';
import type { CarriedExtents } from './statements.js';
import type { TileIrForm } from './tile-ir-form.js';

/** A kernel in Tile IR. */
export interface TileIrKernel {
  readonly bytecode: Uint8Array;
  /** Its name in the bytecode. */
  readonly entry: string;
  /** The parameters of the entry. */
  readonly abi: readonly AbiParam[];
}

/** The places of the user's file, by which the code is debugged. */
export interface TileIrLines {
  readonly file: string;
  /** The place of a span of one of the kernel's texts. */
  placeOf(text: string, offset: number): SourcePlace | undefined;
}

/**
 * Gives the bytecode of a kernel for one form of its tensors. `aligned`: whether each tensor begins
 * at a multiple of 16 bytes.
 *
 * @throws KernelSourceError
 */
export function tileIrKernel(
  source: KernelSource,
  form: TileIrForm,
  aligned: boolean,
  lines?: TileIrLines,
): TileIrKernel {
  const { signature, indexType, text } = source;
  for (const [name, storage] of unknownDtypes(signature))
    throw new KernelSourceError(
      `Tile IR has no elements of ${storage}, which is the dtype of ${name}`,
      "Leave the options' backend out, or convert the tensor before.",
      undefined,
      text,
    );
  const marked = markedSource(source, form);
  const tree = readKernel(marked.source);
  const entry = entryName(source.name);
  const abi = abiOf(signature, form);
  const carried: CarriedExtents = new Map();
  const start = lines?.placeOf(text, 0) ?? { line: 1, column: 1 };
  // A place is one within the function, also that of the function itself.
  const placed = (debug: DebugTable, { file }: TileIrLines, at: SourcePlace): number =>
    debug.place(debug.subprogram(entry, file, start), file, at);
  for (;;) {
    const before = carried.size;
    const grown = { found: false };
    const bytecode = moduleOf({
      name: entry,
      ...(lines === undefined ? {} : { place: (debug) => placed(debug, lines, start) }),
      parameters: (types) => parameterTypes(types, abi, signature, indexType),
      write: (to, parameters, debug) => {
        const given = (param: number): Value => parameters[param]!;
        const place = (span: Span): number | undefined => {
          const at = lines?.placeOf(tree.texts[span.text]!, span.start);
          return lines === undefined || at === undefined ? undefined : placed(debug, lines, at);
        };
        const body = new TileIrBody(to, { tree, form, operations: marked.operations }, carried);
        body.write({ signature, abi, given, aligned, place });
        grown.found = body.foundMore;
      },
    });
    if (!grown.found && carried.size === before) return { bytecode, entry, abi };
  }
}
