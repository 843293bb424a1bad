/**
 * The lowering of a tile kernel's body to a kernel of threads: the body computes a tile, the kernel
 * each thread's elements of it. Each value that differs within the tile becomes an array of the
 * thread's elements, computed in a loop of constant length, so that it lies in registers. A
 * variable has the shape that all its values broadcast to, which is known once the whole body was
 * read: the body is read again until a pass finds nothing new.
 */
import type { AnyNode } from 'acorn';

import { ARITHMETIC_NAMES } from '../element/gpu-of-elements.js';
import { parseFunction } from '../read/parse.js';
import { childrenOf, type FunctionNode } from '../read/syntax.js';
import type { KernelSource, NarrowGpu, SignatureEntry } from '../signature.js';
import { tensorEntry } from './tensor-entry.js';
import { blockAxes, extraNames, tilesName } from './tile-form.js';
import type { TileForm } from './tile-form.js';
import { bufferName } from './tile-products.js';
import { TileChains } from './tile-chains.js';
import type { Found } from './tile-writer.js';
import { writeWarpHead } from './warp-products.js';
import { writeChainHead, writeChainTileEnd } from './chained-products.js';
import { writeProducer, writeProductHead, writeProductTail } from './warp-group-products.js';

const NARROW: NarrowGpu = {
  has: ARITHMETIC_NAMES,
  given: [],
  of: 'a function of a tile kernel',
  fix: 'Write what needs threads with kernel(…).',
};

/**
 * Gives the kernel of threads. `source`: the body, with the user's signature.
 *
 * @throws KernelSourceError
 */
export function tileSource(source: KernelSource, form: TileForm): KernelSource {
  return readAgain((found) => new TileBody(source, form, found));
}

/** Reads a body again until a pass finds nothing new. */
export function readAgain(bodyFor: (found: Found) => TileBody): KernelSource {
  const found: Found = {
    variables: new Map(),
    buffers: [],
    ahead: new Map(),
    fractions: new Set(),
    loaded: new Set(),
    stored: new Set(),
  };
  for (;;) {
    const body = bodyFor(found);
    try {
      const written = body.source();
      if (!body.foundMore) return written;
    } catch (error) {
      // The error may come from a shape that was not known yet.
      if (!body.foundMore) throw error;
    }
  }
}

/** Writes the whole kernel. */
export class TileBody extends TileChains {
  private readonly node: FunctionNode;

  constructor(definition: KernelSource, form: TileForm, found: Found) {
    const { node } = parseFunction(definition.text, 0);
    super(definition, form, found, node.body);
    this.node = node;
  }

  source(): KernelSource {
    const {
      out,
      definition: { name, signature, text, uses, indexType },
      form,
      node,
    } = this;
    this.bind(node.params[0], 'args');
    this.bind(node.params[1], 'tile');
    if (node.params[2] !== undefined)
      this.fail(
        node.params[2],
        'The body of a tile kernel has two parameters: its arguments, and the functions of tiles',
        'Write tile.i32(v) and tile.exp(v): the second one has arithmetic, too.',
      );
    for (const name of varsIn(node.body))
      if (!this.names.has(name)) this.names.set(name, { is: 'unset' });
    out.write('(args$, gpu$) => {\n');
    out.as(node, () => {
      const { product } = form;
      if (product?.by === 'warps') writeWarpHead(this, product);
      if (product?.by === 'warp groups') {
        writeProductHead(this, product);
        writeProducer(this, product);
      }
      if (product?.by === 'chain') {
        writeChainHead(this, product);
        this.writeCopying(product, node.body);
      }
      this.prologue();
      if (node.body.type === 'BlockStatement')
        for (const statement of node.body.body) this.statement(statement);
      else this.perform(node.body);
      if (product?.by === 'chain') writeChainTileEnd(this);
      if (product !== undefined && product.by !== 'warps') writeProductTail(this, product);
    });
    out.write('\n}');
    this.checkStored(node);
    const buffers = this.buffers.all;
    if (JSON.stringify(buffers) !== JSON.stringify(this.found.buffers)) this.foundMore = true;
    this.found.buffers = buffers;
    this.keepAccesses();
    const own: Record<string, SignatureEntry> = Object.fromEntries(
      Object.entries(signature).map(([each, entry]) => [
        each,
        entry.kind === 'tensor' ? tensorEntry(entry, form.tensors[each]!) : entry,
      ]),
    );
    Object.assign(own, this.extraEntries());
    return {
      name,
      indexType,
      signature: own,
      text: out.text,
      origin: out.origin(text),
      uses: Object.fromEntries(
        Object.entries(uses).map(([each, used]) => [
          each,
          typeof used === 'object' && 'text' in used ? { ...used, gpu: NARROW } : used,
        ]),
      ),
    };
  }

  /** Parameters after the user's. */
  protected extraEntries(): Record<string, SignatureEntry> {
    const { indexType } = this.definition;
    return Object.fromEntries(
      extraNames(this.form).map((name) => [name, { kind: 'scalar', storage: indexType }]),
    );
  }

  /** Checks that each output is written: otherwise its memory would keep its old contents. */
  private checkStored(node: FunctionNode): void {
    for (const [name, entry] of Object.entries(this.definition.signature)) {
      if (entry.kind !== 'tensor' || entry.access !== 'output' || this.stored.has(name)) continue;
      this.fail(
        this.named.get(name) ?? node.params[0] ?? node,
        `${name} is an output, and nothing is stored to it`,
        `Write ${name}.store(v) with the value of its tile, or leave ${name} out of the signature.`,
      );
    }
  }

  /**
   * Writes the places of the block's tile and of the thread's first element. Columns count in units
   * of their axis' width.
   */
  protected prologue(): void {
    const {
      form: { across, axes },
      definition: { indexType },
    } = this;
    this.line(
      ...this.found.buffers.map(
        ({ length, type }, buffer) =>
          `const ${bufferName(buffer)} = gpu$.shared.${type}(${length});`,
      ),
    );
    if (this.form.product !== undefined) {
      axes.forEach(({ cut }, axis) => {
        if (cut === 'whole') this.line(`const tile${axis}$ = 0;`);
        if (cut !== 'walk') this.writePlace(axis);
      });
      return;
    }
    this.line(
      `const threadColumn$ = gpu$.threadIdx.x % ${across};`,
      `const threadRow$ = gpu$.threadIdx.x / ${across};`,
      `const block$ = gpu$.${indexType}(gpu$.blockIdx.x);`,
    );
    let rest = 'block$';
    const [first, ...others] = blockAxes(this.form);
    // The number of the last axis changes fastest.
    for (const axis of others.reverse()) {
      this.line(
        `const tile${axis}$ = ${rest} % args$.${tilesName(axis)};`,
        `const rest${axis}$ = ${rest} / args$.${tilesName(axis)};`,
      );
      rest = `rest${axis}$`;
    }
    if (first !== undefined) this.line(`const tile${first}$ = ${rest};`);
    axes.forEach(({ cut }, axis) => {
      if (cut === 'whole') this.line(`const tile${axis}$ = 0;`);
      if (cut !== 'walk') this.writePlace(axis);
    });
  }
}

/** Names that `var` declares anywhere: they belong to the whole body. */
function varsIn(node: AnyNode): string[] {
  const own =
    node.type === 'VariableDeclaration' && node.kind === 'var'
      ? node.declarations.flatMap(({ id }) => (id.type === 'Identifier' ? [id.name] : []))
      : [];
  return [...own, ...childrenOf(node).flatMap(varsIn)];
}
