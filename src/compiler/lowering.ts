/**
 * Lowering of bodies that do not describe a thread: the kernel of threads for a body and a form.
 */
import { elementSource } from './element/element-source.js';
import type { ElementForm } from './element/element-form.js';
import type { KernelSource } from './signature.js';
import type { TileIrForm } from './tile-ir/tile-ir-form.js';
import type { TileForm } from './tiles/tile-form.js';
import { tileSource } from './tiles/tile-source.js';

/** To a kernel of threads. */
export type ThreadLowering =
  | { readonly to: 'elements'; readonly form: ElementForm }
  | { readonly to: 'tiles'; readonly form: TileForm };

/** To a kernel of threads, or to Tile IR (`tile-ir/lower.ts`). */
export type Lowering = ThreadLowering | { readonly to: 'tile-ir'; readonly form: TileIrForm };

/** @throws KernelSourceError */
export function lowered(source: KernelSource, lowering: ThreadLowering): KernelSource {
  return lowering.to === 'elements'
    ? elementSource(source, lowering.form)
    : tileSource(source, lowering.form);
}
