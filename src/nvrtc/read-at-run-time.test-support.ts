/** Reads a text of CUDA C++ at run time, in the form of the type checker's reading. */
import { sourceSignatures } from './source-signatures.js';
import type { SourceType } from './source-signatures.js';

export interface Read {
  readonly kernels: Readonly<Record<string, readonly unknown[] | undefined>>;
  readonly open: boolean;
}

function plain(type: SourceType): unknown {
  if (typeof type === 'string') return type;
  return 'fields' in type
    ? {
        fields: Object.fromEntries(
          Object.entries(type.fields).map(([name, field]) => [name, plain(field)]),
        ),
      }
    : [plain(type[0]), type[1]];
}

export function readAtRunTime(text: string): Read {
  const { kernels, open } = sourceSignatures(text);
  return {
    kernels: Object.fromEntries(
      kernels.map(({ name, parameters }) => [name, parameters?.map(({ type }) => plain(type))]),
    ),
    open,
  };
}
