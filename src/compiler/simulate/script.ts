/** A kernel's JavaScript as a function that runs one thread. */
import type { KernelTree } from '../tree.js';
import type { Locate } from './failure.js';
import { writeJavaScript } from './javascript.js';
import type { JavaScriptOptions, KernelJavaScript } from './javascript.js';
import { RUNTIME } from './runtime.js';
import type { ThreadView } from './thread-view.js';

type KernelFunction = (gpu: ThreadView, ...values: unknown[]) => unknown;

export interface Compiled extends KernelJavaScript {
  readonly run: KernelFunction;
}

/** Scripts are kept with their trees, so that breakpoints stay and nothing is compiled twice. */
const compiled = new WeakMap<
  KernelTree,
  Map<Locate | undefined, Map<string | undefined, Compiled>>
>();

export function compile(tree: KernelTree, { locate, sourceURL }: JavaScriptOptions): Compiled {
  let byLocate = compiled.get(tree);
  if (byLocate === undefined)
    compiled.set(
      tree,
      (byLocate = new Map<Locate | undefined, Map<string | undefined, Compiled>>()),
    );
  let byUrl = byLocate.get(locate);
  if (byUrl === undefined) byLocate.set(locate, (byUrl = new Map<string | undefined, Compiled>()));
  let found = byUrl.get(sourceURL);
  if (found === undefined) {
    const javascript = writeJavaScript(tree, { locate, sourceURL });
    // An indirect eval runs in the global scope, and keeps the lines that the source map counts.
    const make = (0, eval)(javascript.code) as (runtime: typeof RUNTIME) => KernelFunction;
    byUrl.set(sourceURL, (found = { ...javascript, run: make(RUNTIME) }));
  }
  return found;
}
