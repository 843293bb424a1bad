/**
 * A kernel's tree as JavaScript: one function, or generator, that one thread runs. It keeps the
 * user's names and statements, one to a line, and gives every result the bits that the device gives
 * it.
 *
 *     function saxpy(gpu, y, x, a) {
 *       const i = gpu.globalId.x;
 *       if (i < y.length) {
 *         y.store(i, fma32(a, x.load(i, 0), y.load(i, 1)), 2);
 *       }
 *     }
 *
 * The last argument of a call that can fail is the number of its place in the source (`sites`).
 * Where threads synchronise, the generator yields a request and receives its result: `yield
 * gpu.block.sync(3)`.
 */
import type { KernelTree, Span } from '../tree.js';
import type { Locate } from './failure.js';
import { MappedText, inlineMap } from './mapped-text.js';
import { StatementWriter } from './statement-writer.js';

/** JavaScript of a kernel. */
export interface KernelJavaScript {
  /**
   * An expression with its source map. Its value is a function that takes the runtime and gives the
   * kernel's function.
   */
  readonly code: string;
  /** Places in the source, by the numbers in the code. */
  readonly sites: readonly Span[];
  /** Whether threads synchronise, so that they have to run in turns. */
  readonly generator: boolean;
}

export interface JavaScriptOptions {
  /**
   * Gives places in the user's file; without it the map leads to the kernel's own text, which it
   * carries.
   */
  readonly locate?: Locate | undefined;
  /** The name of the generated script in debuggers and stacks. */
  readonly sourceURL?: string | undefined;
}

export function writeJavaScript(
  tree: KernelTree,
  options: JavaScriptOptions = {},
): KernelJavaScript {
  return new FunctionWriter(tree).write(options);
}

/** Writes the whole function, and the script around it. */
class FunctionWriter extends StatementWriter {
  write({ locate, sourceURL }: JavaScriptOptions): KernelJavaScript {
    const { tree } = this;
    tree.arrays.forEach((array, index) => {
      if (array.space === 'local')
        this.push([`const ${this.arrayNames[index]!} = gpu.local(${index});`]);
    });
    this.list(tree.body);

    const text = new MappedText();
    text.add(0, `(function (runtime) {`);
    text.add(1, `'use strict';`);
    if (this.used.size > 0) text.add(1, `const { ${[...this.used].sort().join(', ')} } = runtime;`);
    const shared = this.arrayNames.filter((_, index) => tree.arrays[index]!.space !== 'local');
    text.add(1, [
      { at: { text: 0, start: 0, end: tree.texts[0]?.length ?? 0 } },
      `return function${this.generator ? '*' : ''} ` +
        `${this.functionName}(${['gpu', ...this.paramNames, ...shared].join(', ')}) {`,
    ]);
    for (const { indent, rope } of this.lines) text.add(indent, rope);
    text.add(1, '};');
    text.add(0, '})');
    const url = sourceURL ?? `async-cuda-simulation/${tree.name}.js`;
    const code =
      `${text.toString()}\n//# ` +
      `sourceURL=${url}\n${inlineMap(text.sourceMap(url, tree.name, tree.texts, locate))}\n`;
    return { code, sites: this.sites, generator: this.generator };
  }
}
