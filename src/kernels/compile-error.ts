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
 * Gives the error that a user sees for what compiling threw. Anything but an error in the source
 * stays as it is.
 */
export function compileError(
  thrown: unknown,
  { name, site, text }: Pick<Definition, 'name' | 'site' | 'text'>,
): unknown {
  // Emission recurses along the nesting of the tree, as reading recurses along that of the source.
  const error = isStackOverflow(thrown) ? tooDeepError({ text, uses: {} }) : thrown;
  if (!(error instanceof KernelSourceError)) return error;
  // A device function is mostly in the kernel's own file.
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
