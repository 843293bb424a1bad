/**
 * Lowering of bodies that do not describe a thread: the kernel of threads for a body and a form.
 */
import { elementSource } from './element/element-source.js';
import type { ElementForm } from './element/element-form.js';
import type { KernelSource } from './signature.js';
import type { TileForm } from './tiles/tile-form.js';
import { tileSource } from './tiles/tile-source.js';

export type Lowering =
  | { readonly to: 'elements'; readonly form: ElementForm }
  | { readonly to: 'tiles'; readonly form: TileForm };

/** @throws KernelSourceError */
export function lowered(source: KernelSource, lowering: Lowering): KernelSource {
  return lowering.to === 'elements'
    ? elementSource(source, lowering.form)
    : tileSource(source, lowering.form);
}
