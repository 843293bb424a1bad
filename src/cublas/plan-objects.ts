/** Objects of the library that belong to a plan: descriptors, layouts, preferences. */
import type { NativeLibrary } from '../core/index.js';
import { DATA_TYPE, LAYOUT, attribute } from './enums.js';
import type { AttributeRow } from './enums.js';
import type { CublasLtFunction } from './functions.js';
import type { Matrix } from './product-form.js';

/** The answer of {@link NativeLibrary.ask}. */
type Answer = Awaited<ReturnType<NativeLibrary['ask']>>;

/** Gives the address that a function has written to its only bytes of the host. */
export function addressIn({ hosts: [bytes] }: Answer): number {
  return Number(new DataView(bytes!.buffer, bytes!.byteOffset, 8).getBigUint64(0, true));
}

/** The kinds of objects, and the functions that destroy them and set their attributes. */
const KINDS = {
  descriptor: {
    create: 'cublasLtMatmulDescCreate',
    set: 'cublasLtMatmulDescSetAttribute',
    destroy: 'cublasLtMatmulDescDestroy',
  },
  layout: {
    create: 'cublasLtMatrixLayoutCreate',
    set: 'cublasLtMatrixLayoutSetAttribute',
    destroy: 'cublasLtMatrixLayoutDestroy',
  },
  preference: {
    create: 'cublasLtMatmulPreferenceCreate',
    set: 'cublasLtMatmulPreferenceSetAttribute',
    destroy: 'cublasLtMatmulPreferenceDestroy',
  },
} as const satisfies Record<string, Record<'create' | 'set' | 'destroy', CublasLtFunction>>;

type Kind = keyof typeof KINDS;

/** An attribute and its value. */
export type Attribute = readonly [row: AttributeRow, value: number];

/** Makes objects, and destroys all that it has made. Each call is made on the second worker. */
export class PlanObjects {
  private readonly library: NativeLibrary;
  private readonly made: { readonly kind: Kind; readonly address: number }[] = [];

  constructor(library: NativeLibrary) {
    this.library = library;
  }

  /** Makes an object and sets its attributes. Returns its address. */
  async make(
    kind: Kind,
    args: readonly number[],
    attributes: readonly Attribute[],
  ): Promise<number> {
    const { library, made } = this;
    const { create, set } = KINDS[kind];
    const address = addressIn(await library.ask(create, [new Uint8Array(8), ...args]));
    made.push({ kind, address });
    await Promise.all(
      attributes.map(([row, value]) => library.ask(set, [address, ...attribute(row, value)])),
    );
    return address;
  }

  layout({ dtype, rows, columns, pitch, apart }: Matrix, batch: number): Promise<number> {
    return this.make(
      'layout',
      [DATA_TYPE[dtype], rows, columns, pitch],
      batch === 1
        ? []
        : [
            [LAYOUT.batchCount, batch],
            [LAYOUT.batchOffset, apart],
          ],
    );
  }

  async destroy(kind?: Kind): Promise<void> {
    const { made, library } = this;
    const all = made.splice(0);
    made.push(...all.filter((each) => kind !== undefined && each.kind !== kind));
    await Promise.all(
      all
        .filter((each) => !made.includes(each))
        .map((each) => library.ask(KINDS[each.kind].destroy, [each.address])),
    );
  }
}
