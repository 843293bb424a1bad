/** The writer of Tile IR's bytecode, which NVIDIA's assembler makes machine code of. */
export type { Assumption, TypedNumber } from './attributes.js';
export type { DebugTable, SourcePlace } from './debug-info.js';
export { FunctionBuilder } from './function-builder.js';
export type { Operand, Operation, Value } from './function-builder.js';
export { BYTECODE_VERSION, moduleOf } from './module-writer.js';
export type { EntryPoint } from './module-writer.js';
export { OPERATIONS } from './operations.js';
export type { AttributesOf, FlagsOf, OperationName } from './operations.js';
export { DYNAMIC, TypeTable } from './types.js';
export type { ElementName, Padding, TypeId } from './types.js';
