/**
 * Errors in a kernel's source, as users see them: with the place in their own file, the code, and
 * what to write instead.
 */
import { CudaCompileError } from '../core/index.js';
import { isStackOverflow, tooDeepError } from '../compiler/read/too-deep.js';
import { KernelSourceError } from '../compiler/source-error.js';
import { showSource } from './show-source.js';
import { locateText } from './source-location.js';
import type { Definition } from './variant.js';

/**
 * What compiling threw, as the error that is told; anything but an error in the source as it is.
 */
export function compileError(
  thrown: unknown,
  { name, site, text }: Pick<Definition, 'name' | 'site' | 'text'>,
): unknown {
  // What makes PTX of the tree follows its nesting with its own calls, as what reads the source
  // does.
  const error = isStackOverflow(thrown) ? tooDeepError({ text, uses: {} }) : thrown;
  if (!(error instanceof KernelSourceError)) return error;
  // A device function most often stands in the kernel's own file.
  const locator = locateText(error.text, site);
  const shown = showSource(error, locator);
  const place = error.span === undefined ? undefined : locator.at(error.span.start);
  return new CudaCompileError(`kernel '${name}': ${shown}`, shown, '', {
    cause: error,
    ...(place?.original === true
      ? { place: { file: place.file, line: place.line, column: place.column } }
      : {}),
  });
}
