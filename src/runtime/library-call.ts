/** What a call of a library consists of, for core. */
export { layoutOf, leavesOf } from '../driver/library-call.js';
export type { ArgumentLayout, ArgumentType, HostType, LibraryFunction, LibraryStatus, LibraryStatuses, PointersType, ScalarType, StructType } from '../driver/library-call.js';
