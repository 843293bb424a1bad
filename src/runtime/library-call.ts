/** The parts of a library's call, for core. */
export { layoutOf, leavesOf } from '../native/library-call.js';
export type {
  ArgumentLayout,
  ArgumentType,
  HostType,
  LibraryFunction,
  LibraryStatus,
  LibraryStep,
  LibraryStatuses,
  PointersType,
  ReturnedType,
  ScalarType,
  StepArgument,
  StructType,
} from '../native/library-call.js';
export type { LibraryRow } from '../native/libraries.js';
