/** The compiler's facts of the dtypes that kernels compute with, from the rows of `ground`. */
import { DTYPE_FACTS, namesWhere } from '../ground/dtype.js';
import type { PtxName, KernelDTypeName } from '../ground/dtype.js';
import type { DTypeFacts } from '../ground/dtype-row.js';
import type { AbiParam, KernelTree, StorageType, ValueType } from './tree.js';

/** Storage types in the table's order: of tensors, and of arrays that bodies declare. */
export const STORAGES = namesWhere(({ compute }) => compute !== null) as readonly KernelDTypeName[];

/** A table with an entry for each storage type. */
function ofEach<T>(value: (name: StorageType, facts: DTypeFacts) => T): Record<StorageType, T> {
  return Object.fromEntries(
    STORAGES.map((name) => [name, value(name, DTYPE_FACTS[name])]),
  ) as Record<StorageType, T>;
}

/** Bytes of an element in memory. */
export const storageBytes: Readonly<Record<StorageType, number>> = ofEach((_, { bytes }) => bytes);

/** The type that elements have when they are read. */
export const readAs: Readonly<Record<StorageType, ValueType>> = ofEach(
  (_, { compute }) => compute!,
);

/** The PTX type that a scalar parameter is declared with. */
export const parameterTypes: Readonly<Record<StorageType, string>> = ofEach(
  (_, { ptx }) => ptx!.parameter,
);

/** The PTX type that a scalar parameter is loaded with. */
export const loadTypes: Readonly<Record<StorageType, string>> = ofEach((_, { ptx }) => ptx!.load);

/** The type of a parameter of the PTX. For a tensor map it is the type of the map's address. */
export function abiStorage(param: AbiParam, indexType: KernelTree['indexType']): StorageType {
  return param.kind === 'pointer' || param.kind === 'map'
    ? 'u64'
    : param.kind === 'scalar'
      ? param.storage
      : indexType;
}

/** Dtypes that bodies can cast to: those with a PTX type. */
export const castStorages = namesWhere(
  ({ ptx }) => ptx !== null && ptx.type !== null,
) as readonly PtxName[];
