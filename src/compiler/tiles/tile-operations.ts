/**
 * Loads, stores, reductions and products of a tile kernel's body: they are written before the
 * expression that holds them.
 */
import type { AnyNode, AssignmentExpression, CallExpression, Expression } from 'acorn';

import { childrenOf } from '../read/syntax.js';
import { ACCUMULATORS, FACTORS, together } from '../factors.js';
import type { Accumulator } from '../factors.js';
import type { StorageType } from '../tree.js';
import { operandsOf } from './tile-expressions.js';
import { TileIndices } from './tile-indices.js';
import { isReadByOthers, variesOf, writeLoad, writeStore } from './tile-memory.js';
import { BYTES, SHARED_BYTES } from './tile-form.js';
import type { ChainedProducts, SumStorage } from './tile-form.js';
import { factorValue, isFactorOf } from './chained-products.js';
import { Buffers, writeProduct, writeTurned } from './tile-products.js';
import type { Side } from './tile-products.js';
import { writeReduction } from './tile-reductions.js';
import type { Reduction } from './tile-reductions.js';
import { WHAT_IS_WRITTEN } from './tile-scope.js';
import { stagedKey } from './tile-writer.js';
import type { StagedForm, TileValue, Varies } from './tile-writer.js';
import { writeCopiedStore } from './warp-group-products.js';

/** An operand of a product, whose rows and columns may be exchanged. */
export interface ProductOperand {
  /** The expression before the exchange. */
  readonly node: AnyNode;
  readonly turned: boolean;
  /** The axes after it. */
  readonly varies: Varies;
  /** As of {@link TileValue}. */
  readonly storage: StorageType | undefined;
}

/** The axes of a product, the type of its sums, and what it is added to. */
/** What the options of a product may be. */
const PRODUCT_OPTIONS = { precision: ['exact', 'tensor'], accumulate: ACCUMULATORS } as const;

export interface ProductOptions {
  readonly precision?: 'exact' | 'tensor';
  readonly accumulate?: Accumulator;
}

export interface ProductAxes extends StagedForm {
  readonly varies: Varies;
  readonly more: AnyNode | undefined;
}

/** dtypes that a product would have to narrow. */
const WIDE: readonly StorageType[] = ['f64', 'i64', 'u64'];

export abstract class TileOperations extends TileIndices {
  /** Tensors whose tile was loaded, and those whose tile was stored. */
  private readonly loaded = new Set<string>();
  protected readonly stored = new Set<string>();
  protected readonly buffers = new Buffers();
  /** The statement or declaration that is being written. */
  protected whole: AnyNode = this.block;
  /** Whether the expression that is being written is computed under a condition. */
  private inBranch = false;

  /** Writes an assignment, which may be within an expression. */
  protected abstract assignment(node: AssignmentExpression): void;

  /** Writes the loads, reductions and products of an expression, innermost first. */
  protected hoist(node: AnyNode): void {
    if (node.type === 'CallExpression') {
      const method = this.methodOf(node);
      if (method !== undefined) {
        if (method.method !== 'load')
          return this.fail(
            node,
            `${this.code(node)} gives no value`,
            method.method === 'store'
              ? 'A store is a statement of its own.'
              : `A tensor has load() and store(…). ${WHAT_IS_WRITTEN}`,
          );
        this.out.as(node, () => {
          this.load(node, method.param);
        });
        return;
      }
      const own = this.ownCallee(node);
      if (own === 'dot')
        return this.out.as(node, () => {
          this.product(node);
        });
      if (own === 'over')
        return this.fail(
          node,
          `over gives tiles to loop over, and no value: ${this.code(node)}`,
          "Write for (const part of tile.over('columns')) { … }.",
        );
      if (own === 'index' || own === 'start' || own === 'end')
        return this.out.as(node, () => {
          if (own === 'index') this.index(node);
          else this.place(node, own);
        });
      for (const argument of node.arguments) this.hoist(argument);
      if (own === 'transpose')
        return this.out.as(node, () => {
          this.transposed(node);
        });
      if (own !== undefined)
        this.out.as(node, () => {
          this.reduce(node, own);
        });
      return;
    }
    if (node.type === 'AssignmentExpression' && node.left.type === 'Identifier')
      return this.hoistAssignment(node, node.left.name);
    const { inBranch } = this;
    for (const [at, child] of operandsOf(node).entries()) {
      this.inBranch =
        inBranch ||
        (at > 0 && (node.type === 'ConditionalExpression' || node.type === 'LogicalExpression'));
      this.hoist(child);
    }
    this.inBranch = inBranch;
  }

  /**
   * `w = (v = x.load()) * v` is what minifiers make of two statements. The assignment is written
   * first where it always happens and no earlier code reads the variable.
   */
  private hoistAssignment(node: AssignmentExpression, name: string): void {
    if (this.inBranch || isNamedBefore(this.whole, name, node.start)) return;
    this.out.as(node, () => {
      this.assignment(node);
    });
    const variable = this.names.get(name);
    if (variable?.is === 'variable')
      this.written.set(node, { is: 'value', name: variable.name, varies: variable.varies });
  }

  /**
   * Checks the steps of a load or store: they have to be those of all walked axes of the tensor.
   */
  private checkSteps(
    node: CallExpression,
    param: string,
    steps: readonly AnyNode[],
    verb: string,
  ): void {
    const { outer, row, column } = this.form.tensors[param]!;
    const own = [...outer, row, column].filter((axis) => axis !== undefined);
    const given = new Set<number>();
    for (const step of steps) {
      const binding = this.bindingOf(step);
      if (binding?.is !== 'step')
        return this.fail(
          step,
          `${verb} takes what a loop over tiles counts, and no index: ${this.code(step)}`,
          'Pass the variable of the loop; without a loop the kernel selects the tile.',
        );
      if (!own.includes(binding.axis))
        return this.fail(
          step,
          `${param} has no axis ${this.axis(binding.axis).name}: ${this.code(node)}`,
          `Leave ${this.code(step)} out.`,
        );
      given.add(binding.axis);
    }
    const { rows, columns } = variesOf(this.form.tensors[param]!);
    for (const axis of own) {
      const { name, cut } = this.axis(axis);
      if (
        cut !== 'walk' ||
        given.has(axis) ||
        (this.form.broadcast && axis !== rows && axis !== columns)
      )
        continue;
      return this.fail(
        node,
        `${param} has many tiles along ${name}, and this does not say which: ${this.code(node)}`,
        `Write for (const part of tile.over('${name}')) { … ` +
          `${param}.${verb}(${verb === 'load' ? 'part' : '…, part'}) … }.`,
      );
    }
  }

  private load(node: CallExpression, param: string): void {
    const entry = this.definition.signature[param]!;
    if (entry.kind !== 'tensor') return this.fail(node, `${param} is no tensor`, `Write ${param}.`);
    if (entry.access === 'output')
      return this.fail(
        node,
        `${param} is an output, and is not read`,
        `Declare it as inout(…), or store first what ${param}.load() should give.`,
      );
    this.checkSteps(node, param, node.arguments, 'load');
    this.barrierBetween(param, 'stored');
    this.loaded.add(param);
    this.written.set(node, { is: 'value', ...this.writeLoad(param) });
  }

  protected store(node: CallExpression, param: string): void {
    const entry = this.definition.signature[param]!;
    const [value, ...steps] = node.arguments;
    if (entry.kind !== 'tensor' || entry.access === 'input')
      return this.fail(
        node,
        `${param} is ${entry.kind === 'tensor' ? 'an input' : 'no tensor'}, and is not written`,
        'Declare it as output(…) or inout(…).',
      );
    if (value === undefined)
      return this.fail(
        node,
        `store takes a value: ${this.code(node)}`,
        'Write y.store(v): the kernel selects the place of the tile.',
      );
    this.hoist(value);
    this.checkSteps(node, param, steps, 'store');
    const varies = this.varies(value);
    const to = variesOf(this.form.tensors[param]!);
    if (varies.columns !== undefined && to.columns === undefined)
      return this.fail(
        value,
        `${param} has one element for each row here, and this value differs along a row`,
        'Reduce it along axis 1: tile.sum(v, 1).',
      );
    if (varies.rows !== undefined && to.rows === undefined)
      return this.fail(
        value,
        `${param} has one row here, and this value differs between rows`,
        'Reduce it along axis 0: tile.sum(v, 0).',
      );
    this.join(value, varies, to);
    const name = this.newName('stored');
    this.stored.add(param);
    this.out.as(value, () => {
      this.define(name, value, varies);
      this.barrierBetween(param, 'loaded');
      this.writeStore(param, { name, varies });
    });
  }

  // What these write depends on where tiles lie: here in the registers of the block's threads.

  protected writeLoad(param: string): TileValue {
    const { product } = this.form;
    return product?.by === 'chain' && isFactorOf(product, param)
      ? factorValue(this, param)
      : writeLoad(this, param);
  }

  protected writeStore(param: string, value: TileValue): void {
    const { product } = this.form;
    if (product !== undefined && product.by !== 'warps' && product.copied?.name === param)
      writeCopiedStore(this, product, product.copied, value);
    else writeStore(this, param, value);
  }

  protected writeReduction(
    value: AnyNode,
    reduction: Reduction,
    of: Varies,
    axis: 0 | 1 | undefined,
  ): TileValue {
    return writeReduction(this, value, reduction, of, axis);
  }

  protected writeTurned(value: TileValue, like: AnyNode): TileValue {
    return writeTurned(this, value, like);
  }

  /**
   * Writes a barrier between a load and a store of a tile where one thread reads what another
   * writes: all threads load before any stores, and store before any loads. In a loop, later
   * statements also run before this one.
   */
  private barrierBetween(param: string, was: 'loaded' | 'stored'): void {
    if (
      (this[was].has(param) || (this.depth > 0 && this.found[was].has(param))) &&
      isReadByOthers(this, param)
    )
      this.barrier();
  }

  /** Keeps the accesses for the next pass: a loop depends on later statements. */
  protected keepAccesses(): void {
    for (const was of ['loaded', 'stored'] as const) {
      for (const param of this[was]) {
        const entry = this.definition.signature[param]!;
        if (entry.kind !== 'tensor' || entry.access !== 'inout' || this.found[was].has(param))
          continue;
        this.found[was].add(param);
        this.foundMore = true;
      }
    }
  }

  private axisOf(node: CallExpression): 0 | 1 | undefined {
    const [, axis] = node.arguments as Expression[];
    if (axis === undefined) return undefined;
    if (axis.type === 'Literal' && (axis.value === 0 || axis.value === 1)) return axis.value;
    return this.fail(
      axis,
      `The axis is 0 or 1, and known when the kernel is compiled: ${this.code(axis)}`,
      'Write 1 for along the rows, 0 for along the columns, and nothing for the whole tile.',
    );
  }

  private reduce(node: CallExpression, reduction: Reduction): void {
    const [value] = node.arguments;
    if (value === undefined || value.type === 'SpreadElement')
      return this.fail(
        node,
        `${reduction} takes a value, and an axis: ${this.code(node)}`,
        `Write tile.${reduction}(v, 1).`,
      );
    const axis = this.axisOf(node);
    const { rows, columns } = this.varies(value);
    if (
      !this.form.broadcast &&
      ((axis !== 0 && columns === undefined) || (axis !== 1 && rows === undefined))
    ) {
      return this.fail(
        value,
        'This value is the same along ' +
          `${columns === undefined && axis !== 0 ? 'a row' : 'a column'}, and there is nothing ` +
          `to reduce: ${this.code(node)}`,
        'Reduce it along the axis that it differs along.',
      );
    }
    const of = this.form.broadcast ? { rows: 0, columns: 1 } : { rows, columns };
    const storage = reduction !== 'mean' && this.isInteger(value) ? 'i32' : undefined;
    this.written.set(node, {
      is: 'value',
      ...this.writeReduction(value, reduction, of, axis),
      storage,
    });
    this.checkShared(node);
  }

  /**
   * Checks the shared memory here, because the reader's error would name arrays that are not in the
   * user's source. The reader still reports it where elements have 64 bits: types are not known
   * here.
   */
  private checkShared(node: AnyNode): void {
    const bytes = this.buffers.bytes + this.sharedElements * BYTES;
    if (bytes <= SHARED_BYTES) return;
    const tile = this.form.axes.map((axis) => `${axis.tile} ${axis.name}`).join(' × ');
    this.fail(
      node,
      `Up to here the reductions, products and turned tiles of this kernel take ${bytes} ` +
        `bytes of shared memory in tiles of ${tile}, and a block has ${SHARED_BYTES}: ` +
        `${this.code(node)}`,
      'Take smaller tiles, or fewer of these in one kernel: each has memory of its own.',
    );
  }

  private transposed(node: CallExpression): void {
    const [value] = node.arguments;
    if (value === undefined || node.arguments.length > 1)
      return this.fail(
        node,
        `transpose takes one value: ${this.code(node)}`,
        'Write tile.transpose(v).',
      );
    if (this.form.broadcast)
      return this.fail(
        node,
        `Rows and columns of all tensors are one here, and cannot be exchanged: ${this.code(node)}`,
        "Name the axes of each tensor: { axes: { y: ['n', 'm'], x: ['m', 'n'] }, tile: { m: " +
          '32, n: 32 } }.',
      );
    const turned = this.writeTurned(this.operandValue(value), value);
    this.written.set(node, { is: 'value', ...turned });
    this.checkShared(node);
  }

  /** The value of an expression: its variable, or arrays of its own. */
  protected operandValue(node: AnyNode): TileValue {
    const written = this.written.get(node);
    if (written !== undefined) return written;
    const binding = this.bindingOf(node);
    if (binding?.is === 'variable' || binding?.is === 'value') return binding;
    const value: TileValue = {
      name: this.newName('operand'),
      varies: this.varies(node),
      storage: this.isInteger(node) ? 'i32' : undefined,
    };
    this.define(value.name, node, value.varies);
    return value;
  }

  /** An operand of a product; a transposition alone moves no elements. */
  private operand(node: AnyNode, call: CallExpression): ProductOperand {
    const turned =
      this.ownCallee(node) === 'transpose' && (node as CallExpression).arguments.length === 1;
    const inner = turned ? (node as CallExpression).arguments[0]! : node;
    this.hoist(inner);
    const { rows, columns } = this.varies(inner);
    if (rows === undefined || columns === undefined)
      return this.fail(
        node,
        'dot takes tiles of rows and columns, and this value is the same along ' +
          `${rows === undefined ? 'a column' : 'a row'}: ${this.code(call)}`,
        'Write a * b and tile.sum(…) where one of them is a row or a column.',
      );
    return {
      node: inner,
      turned,
      varies: turned ? { rows: columns, columns: rows } : { rows, columns },
      storage: this.storageOf(inner),
    };
  }

  private storageOf(node: AnyNode): StorageType | undefined {
    const value = this.written.get(node) ?? this.bindingOf(node);
    if (value?.is === 'value' || value?.is === 'variable') return value.storage;
    return this.isInteger(node) ? 'i32' : undefined;
  }

  /** Checks the dtypes of a product's operands, and gives the type of its sums. */
  private sumsOf(
    node: CallExpression,
    operands: readonly ProductOperand[],
    { precision, accumulate }: ProductOptions,
  ): SumStorage {
    const known = operands.map(({ storage }) => storage);
    const wide = known.find((storage) => storage !== undefined && WIDE.includes(storage));
    if (wide !== undefined)
      return this.fail(
        node,
        `dot multiplies elements of up to 32 bits, and these are ${wide}: ${this.code(node)}`,
        `Convert them first: const v = tile.${wide === 'f64' ? 'f32' : 'i32'}(x.load(part)).`,
      );
    const [a, b] = known;
    if (precision === 'tensor' && a !== undefined && b !== undefined && !together(a, b))
      return this.fail(
        node,
        `Tensor cores have no product of ${a} and ${b}: ${this.code(node)}`,
        `They multiply two tiles of ${Object.keys(FACTORS).join(', ')}: of one dtype, of both ` +
          'kinds of f8, or of i8 and u8. Convert one, or leave the precision out.',
      );
    const exact = operands.every(({ node: operand }) => this.isInteger(operand)) ? 'i32' : 'f32';
    if (accumulate !== undefined) this.checkSums(node, known, exact, accumulate);
    if (accumulate === 'f16' && precision === 'exact')
      return this.fail(
        node,
        `An exact product is summed in f32, and not in f16: ${this.code(node)}`,
        'Leave accumulate or the precision out.',
      );
    return exact;
  }

  /** Checks that an instruction sums products of these dtypes in what the options name. */
  private checkSums(
    node: CallExpression,
    [a, b]: readonly (StorageType | undefined)[],
    exact: SumStorage,
    accumulate: Accumulator,
  ): void {
    const factors = a !== undefined && b !== undefined && together(a, b) ? FACTORS[a] : undefined;
    const allowed = factors?.sums ?? [exact];
    if (allowed.includes(accumulate)) return;
    const inHalf = Object.entries(FACTORS).flatMap(([name, { sums }]) =>
      sums.includes('f16') ? [name] : [],
    );
    const given = [...new Set([a, b].map((each) => each ?? 'a computed tile'))].join(' and ');
    this.fail(
      node,
      `Products of ${given} are summed in ${allowed.join(' or ')}, and not in ${accumulate}: ` +
        this.code(node),
      accumulate === 'f16'
        ? `Leave accumulate out: tiles of ${inHalf.join(', ')} have sums of f16, as they are ` +
            'loaded.'
        : `Write { accumulate: '${allowed[0]!}' }, or leave it out.`,
    );
  }

  /** Checks the options of a product. This form computes it exactly, which all allow. */
  protected checkOptions(node: AnyNode): ProductOptions {
    const found: Record<string, unknown> = {};
    for (const property of node.type === 'ObjectExpression' ? node.properties : [node]) {
      const known =
        property.type === 'Property' &&
        property.key.type === 'Identifier' &&
        !property.computed &&
        property.value.type === 'Literal' &&
        Object.hasOwn(PRODUCT_OPTIONS, property.key.name) &&
        !Object.hasOwn(found, property.key.name)
          ? { name: property.key.name, value: property.value.value }
          : undefined;
      const values: readonly unknown[] =
        known === undefined ? [] : PRODUCT_OPTIONS[known.name as keyof ProductOptions];
      if (known === undefined || !values.includes(known.value))
        return this.fail(
          node,
          `The options of dot are constants, precision and accumulate: ${this.code(node)}`,
          `Write tile.dot(a, b, sum, { precision: 'exact' }), or { accumulate: 'f16' }: ` +
            `${Object.entries(PRODUCT_OPTIONS)
              .map(([name, all]) => `${name} is ${all.map((each) => `'${each}'`).join(' or ')}`)
              .join(', ')}.`,
        );
      found[known.name] = known.value;
    }
    return found;
  }

  private product(node: CallExpression): void {
    const [a, b, more, options] = node.arguments;
    const given = options === undefined ? {} : this.checkOptions(options);
    if (a === undefined || b === undefined || node.arguments.length > 4)
      return this.fail(
        node,
        `dot takes two tiles, and what their product is added to: ${this.code(node)}`,
        'Write sum = tile.dot(a, b, sum).',
      );
    if (this.form.broadcast)
      return this.fail(
        node,
        'All tensors are broadcast to one shape here, and two of its tiles have no product: ' +
          `${this.code(node)}`,
        "Name the axes of each tensor: { axes: { c: ['m', 'n'], a: ['m', 'k'], b: ['k', 'n'] " +
          '}, tile: { m: 64, n: 64, k: { walk: 32 } } }.',
      );
    const left = this.operand(a, node);
    const right = this.operand(b, node);
    const summed = left.varies.columns!;
    if (summed !== right.varies.rows) {
      const names = [summed, right.varies.rows!].map((axis) => this.axis(axis).name);
      return this.fail(
        node,
        `The columns of the left tile are ${names[0]}, the rows of the right one ` +
          `${names[1]}: ${this.code(node)}`,
        'They have to be one axis. Exchange rows and columns by tile.transpose(…) where that ' +
          'makes it so.',
      );
    }
    const varies: Varies = { rows: left.varies.rows, columns: right.varies.columns };
    if (varies.rows === varies.columns)
      return this.fail(
        node,
        `Rows and columns of this product are both ${this.axis(varies.rows!).name}: ` +
          `${this.code(node)}`,
        'Pass the tensor twice, and name its axes differently the second time.',
      );
    const type = this.sumsOf(node, [left, right], given);
    this.written.set(node, {
      is: 'value',
      ...this.writeProduct(node, left, right, { summed, type, varies, more }),
      storage: type,
    });
  }

  /** Writes a product that was checked, added to the value of `more`. */
  protected writeProduct(
    node: CallExpression,
    left: ProductOperand,
    right: ProductOperand,
    { varies, more, ...form }: ProductAxes,
  ): TileValue {
    if (this.form.product?.by === 'chain') return this.chainedTile(this.form.product);
    const value: TileValue = { name: this.newName('product'), varies };
    this.line(`const ${value.name} = gpu$.local.${form.type}(${this.slots(varies)});`);
    if (more !== undefined) {
      this.hoist(more);
      this.join(node, this.varies(more), varies);
      this.assign(value, more);
    }
    writeProduct(this, this.buffers, value, this.side(left, form), this.side(right, form), form);
    if (this.buffers.bytes > SHARED_BYTES) {
      return this.fail(
        node,
        `The operands of products take ${this.buffers.bytes} bytes of shared memory here, ` +
          `and a block has ${SHARED_BYTES}: ${this.code(node)}`,
        'Take smaller tiles along the axes of this product.',
      );
    }
    this.checkShared(node);
    return value;
  }

  /** The tile of the first of two chained products, which the loop has begun. */
  protected abstract chainedTile(chain: ChainedProducts): TileValue;

  /**
   * An operand in shared memory. A constant from outside of the loop is staged where it is
   * declared.
   */
  private side({ node, turned }: ProductOperand, form: StagedForm): Side {
    const value = this.operandValue(node);
    const variable = this.bindingOf(node);
    if (variable?.is !== 'variable' || variable.assigned || variable.depth === this.depth)
      return { value, turned, staged: undefined };
    const key = stagedKey(form);
    const staged = variable.staged.get(key);
    if (staged === undefined) {
      const ahead = this.found.ahead.get(variable.at) ?? new Map<string, StagedForm>();
      this.found.ahead.set(variable.at, ahead.set(key, form));
      this.foundMore = true;
    }
    return { value, turned, staged };
  }
}

/** Whether a name occurs in the source before a place. */
function isNamedBefore(node: AnyNode, name: string, place: number): boolean {
  if (node.start >= place) return false;
  if (node.type === 'Identifier') return node.name === name;
  return (
    node.type === 'MemberExpression' && !node.computed ? [node.object] : childrenOf(node)
  ).some((child) => isNamedBefore(child, name, place));
}
