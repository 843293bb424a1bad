/**
 * The kernel that a tile kernel's body stands for: the body says what happens to a tile, the kernel
 * what each thread does to its elements of it. Each value that differs within the tile becomes an
 * array of the thread's elements, computed in a loop of constant length, so that it lies in
 * registers. A variable has the shape that all its values broadcast to, which is known when the
 * body was read to its end: it is read again until nothing new is found.
 */
import type {
  AnyNode,
  AssignmentExpression,
  CallExpression,
  Expression,
  ForOfStatement,
  ForStatement,
  Identifier,
  VariableDeclaration,
  VariableDeclarator,
} from 'acorn';

import { ARITHMETIC_NAMES } from '../element/gpu-of-elements.js';
import { parseFunction } from '../read/parse.js';
import type { KernelSource, NarrowGpu, SignatureEntry } from '../signature.js';
import { isReadByOthers, variesOf, writeLoad, writeStore } from './tile-memory.js';
import { tensorEntry } from './tensor-entry.js';
import { TILE_NAMES, blockAxes, extentName, extraNames, tilesName } from './tile-form.js';
import type { TileForm } from './tile-form.js';
import {
  BYTES,
  Buffers,
  SHARED_BYTES,
  bufferName,
  writeProduct,
  writeStaged,
  writeTurned,
} from './tile-products.js';
import type { Side, Staged } from './tile-products.js';
import { writeReduction } from './tile-reductions.js';
import type { Reduction } from './tile-reductions.js';
import { FIRST, NOWHERE, TileWriter } from './tile-writer.js';
import type { Found, Slot, TileValue, Varies } from './tile-writer.js';
import { propertyName } from '../read/property-name.js';
import { childrenOf, type FunctionNode } from '../read/syntax.js';

const OWN_NAMES = ARITHMETIC_NAMES.filter((name) => name !== 'local' && name !== 'unroll');
const WHAT_IS_WRITTEN =
  'Write const v = x.load() for the tile of an input, compute with it, and y.store(…).';
const CONSISTS_OF = 'A tile kernel consists of variables, stores and loops over tiles';

const NARROW: NarrowGpu = {
  has: ARITHMETIC_NAMES,
  given: [],
  of: 'a function of a tile kernel',
  fix: 'Write what needs threads with kernel(…).',
};

/** What a name of the body stands for. */
type Binding =
  | { readonly is: 'args' }
  | { readonly is: 'tile' }
  | { readonly is: 'param'; readonly name: string }
  /** A member of the second parameter. */
  | { readonly is: 'member'; readonly name: string }
  /** What a loop counts: the tiles of an axis. */
  | { readonly is: 'step'; readonly axis: number }
  /** All tiles of an axis, in a loop that ES5 counts: the one at `counter` is the loop's. */
  | { readonly is: 'tiles'; readonly axis: number; readonly counter: string }
  /** A variable that gets its value behind its declaration. */
  | { readonly is: 'unset' }
  | (TileValue & { readonly is: 'value' })
  | Variable;

/** A constant or variable of the body. */
interface Variable extends TileValue {
  readonly is: 'variable';
  /** Where it is declared. */
  readonly at: number;
  /** Loops around its declaration. */
  readonly depth: number;
  /** Axes that these loops walk. */
  readonly walked: ReadonlySet<number>;
  /** Whether it gets more than one value. */
  readonly assigned: boolean;
  /** Where it was put for products, by the axis that is summed over. */
  readonly staged: Map<number, Staged>;
}

/**
 * `source`: the body, with the signature that the user gave.
 *
 * @throws KernelSourceError
 */
export function tileSource(source: KernelSource, form: TileForm): KernelSource {
  const found: Found = {
    variables: new Map(),
    buffers: [],
    ahead: new Map(),
    loaded: new Set(),
    stored: new Set(),
  };
  for (;;) {
    const body = new TileBody(source, form, found);
    try {
      const written = body.source();
      if (!body.foundMore) return written;
    } catch (error) {
      // It may be about a shape that was not known yet.
      if (!body.foundMore) throw error;
    }
  }
}

class TileBody extends TileWriter {
  private readonly found: Found;
  private names = new Map<string, Binding>();
  /** Loads, reductions and products that have been written, and the arrays that hold them. */
  private readonly written = new Map<AnyNode, Binding & { readonly is: 'value' }>();
  /** Tensors whose tile was loaded, and stored. */
  private readonly loaded = new Set<string>();
  private readonly stored = new Set<string>();
  /** Where parameters are taken out of the first parameter. */
  private readonly named = new Map<string, AnyNode>();
  private readonly buffers = new Buffers();
  /** The statements around, in which a name stands for one variable. */
  private block!: AnyNode;
  /** The statement or declaration that is being written. */
  private whole!: AnyNode;
  /** Whether what is being written is computed under a condition. */
  private inBranch = false;
  /** Axes of the loops around what is being written. */
  private walked: ReadonlySet<number> = new Set();
  foundMore = false;

  constructor(definition: KernelSource, form: TileForm, found: Found) {
    super(definition, form);
    this.found = found;
  }

  source(): KernelSource {
    const {
      out,
      definition: { name, signature, text, uses, indexType },
      form,
    } = this;
    const { node } = parseFunction(text, 0);
    this.bind(node.params[0], 'args');
    this.bind(node.params[1], 'tile');
    this.block = node.body;
    for (const name of varsIn(node.body))
      if (!this.names.has(name)) this.names.set(name, { is: 'unset' });
    out.write('(args$, gpu$) => {\n');
    out.as(node, () => {
      this.prologue();
      if (node.body.type === 'BlockStatement')
        for (const statement of node.body.body) this.statement(statement);
      else this.perform(node.body);
    });
    out.write('\n}');
    this.checkStored(node);
    if (String(this.buffers.lengths) !== String(this.found.buffers)) this.foundMore = true;
    this.found.buffers = this.buffers.lengths;
    this.keepAccesses();
    const own: Record<string, SignatureEntry> = Object.fromEntries(
      Object.entries(signature).map(([each, entry]) => [
        each,
        entry.kind === 'tensor' ? tensorEntry(entry, form.tensors[each]!) : entry,
      ]),
    );
    for (const each of extraNames(form)) own[each] = { kind: 'scalar', storage: indexType };
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

  private bind(param: AnyNode | undefined, is: 'args' | 'tile'): void {
    if (param === undefined) return;
    if (param.type === 'Identifier') {
      this.names.set(param.name, { is });
      return;
    }
    if (param.type !== 'ObjectPattern')
      return this.fail(
        param,
        `${this.code(param)} is not known in a tile kernel`,
        'Write ({ y, x }, tile) => { … }.',
      );
    for (const part of param.properties) {
      if (
        part.type !== 'Property' ||
        part.key.type !== 'Identifier' ||
        part.value.type !== 'Identifier'
      )
        return this.fail(
          part,
          `${this.code(part)} is not known in a tile kernel`,
          'Name what is taken out of it: ({ y, x }, { sum }) => { … }.',
        );
      const { name } = part.key;
      this.names.set(
        part.value.name,
        is === 'args' ? { is: 'param', name: this.paramOf(part, name) } : { is: 'member', name },
      );
      if (is === 'args') this.named.set(name, part);
    }
  }

  private paramOf(node: AnyNode, name: string): string {
    const names = Object.keys(this.definition.signature);
    if (!names.includes(name))
      return this.fail(
        node,
        `\`${name}\` is not in the kernel's signature, which has ${names.join(', ')}`,
        `Add it to the signature: { ${name}: input(f32) }.`,
      );
    return name;
  }

  /** Each output is written: one that is not would keep what its memory had before. */
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
   * Whether a variable gets another value than the one that it gets here: a minifier's `let` may be
   * a constant.
   */
  private isAssigned(here: Identifier, node: AnyNode = this.block): boolean {
    if (
      node.type === 'AssignmentExpression' &&
      node.left.type === 'Identifier' &&
      node.left.name === here.name &&
      node.left !== here
    )
      return true;
    if (
      node.type === 'VariableDeclaration' &&
      node.kind === 'var' &&
      node.declarations.some(
        ({ id, init }) => id !== here && id.type === 'Identifier' && id.name === here.name && init,
      )
    )
      return true;
    return childrenOf(node).some((child) => this.isAssigned(here, child));
  }

  /**
   * Where the block's tile and the thread's first element are. Columns count in units of their
   * axis' width.
   */
  private prologue(): void {
    const {
      form: { across, axes },
      definition: { indexType },
    } = this;
    this.line(
      ...this.found.buffers.map(
        (length, buffer) => `const ${bufferName(buffer)} = gpu$.shared.f32(${length});`,
      ),
    );
    this.line(
      `const beside$ = gpu$.threadIdx.x % ${across};`,
      `const below$ = gpu$.threadIdx.x / ${across};`,
      `const block$ = gpu$.${indexType}(gpu$.blockIdx.x);`,
    );
    let rest = 'block$';
    const [first, ...others] = blockAxes(this.form);
    // The last axis goes fastest.
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

  /** Where the tile of a number begins and ends. */
  private writePlace(axis: number): void {
    const { tile, width } = this.axis(axis);
    const groups = Math.ceil(tile / width);
    this.line(
      `const top${axis}$ = tile${axis}$ * ${tile};`,
      `const left${axis}$ = tile${axis}$ * ${groups};`,
      `const firstRow${axis}$ = top${axis}$ + below$;`,
      `const firstGroup${axis}$ = left${axis}$ + beside$;`,
      `const lastRow${axis}$ = ` +
        `Math.min(args$.${extentName(axis)}${width === 1 ? '' : ` * ${width}`}, top${axis}$ + ` +
        `${tile}) - 1;`,
      `const lastGroup${axis}$ = Math.min(args$.${extentName(axis)}, left${axis}$ + ` +
        `${groups}) - 1;`,
    );
  }

  // Statements

  private statement(node: AnyNode): void {
    switch (node.type) {
      case 'EmptyStatement':
        return;
      case 'ExpressionStatement':
        return this.perform(node.expression);
      case 'BlockStatement':
        return this.scope(node, () => {
          for (const each of node.body) this.statement(each);
        });
      case 'ForOfStatement':
        return this.out.as(node, () => {
          this.loop(node);
        });
      case 'VariableDeclaration':
        for (const declarator of node.declarations)
          this.out.as(declarator, () => {
            this.declarator(declarator, node.kind);
          });
        return;
      case 'ForStatement':
        return this.countedLoop(node) ? undefined : this.failLoop(node);
      case 'WhileStatement':
      case 'DoWhileStatement':
      case 'ForInStatement':
        return this.failLoop(node);
      default:
        return this.fail(
          node,
          `${CONSISTS_OF}: ${this.code(node)}`,
          `${WHAT_IS_WRITTEN} What needs more is written with kernel(…).`,
        );
    }
  }

  private failLoop(node: AnyNode): never {
    return this.fail(
      node,
      `${CONSISTS_OF}: ${this.code(node)}`,
      "Write for (const part of tile.over('columns')) { … x.load(part) … } for an axis that " +
        'is cut by { walk: 64 }.',
    );
  }

  private scope(block: AnyNode, write: () => void): void {
    const { names, block: around } = this;
    this.names = new Map(names);
    this.block = block;
    write();
    this.names = names;
    this.block = around;
  }

  private declarator(declarator: VariableDeclarator, kind: VariableDeclaration['kind']): void {
    const { id, init } = declarator;
    this.whole = declarator;
    const of = init ? this.bindingOf(init) : undefined;
    if (id.type === 'ObjectPattern' && (of?.is === 'args' || of?.is === 'tile'))
      return this.bind(id, of.is);
    if (id.type !== 'Identifier')
      return this.fail(
        declarator,
        `${this.code(declarator)} is not known in a tile kernel`,
        'Write const v = …, one name for each value.',
      );
    const before = this.names.get(id.name);
    if (!init) {
      if (kind !== 'var') this.names.set(id.name, { is: 'unset' });
      return;
    }
    // Blocks have no `var` of their own: it is the one that is there.
    if (kind === 'var' && before?.is === 'variable')
      return this.assignment({
        type: 'AssignmentExpression',
        operator: '=',
        left: id,
        right: init,
        start: declarator.start,
        end: declarator.end,
      });
    this.variable(declarator, id, init, kind === 'const');
  }

  /**
   * A variable with its first value. What is no value, or stays what it is, has one more name: ES5
   * takes parameters apart by variables.
   */
  private variable(node: AnyNode, id: Identifier, init: Expression, constant: boolean): void {
    const assigned = !constant && this.isAssigned(id);
    const same = this.bindingOf(init);
    if (same !== undefined && this.hasNames(same, assigned)) {
      this.names.set(id.name, same);
      return;
    }
    this.hoist(init);
    // What is assigned on the way goes on changing.
    const known =
      assigned || init.type === 'AssignmentExpression' ? undefined : this.written.get(init);
    const name = known?.name ?? this.newName(id.name);
    const own = this.varies(init);
    const varies = assigned ? this.join(node, own, this.found.variables.get(id.start)) : own;
    const variable: Variable = {
      is: 'variable',
      name,
      varies,
      at: id.start,
      depth: this.depth,
      walked: this.walked,
      assigned,
      staged: new Map(),
    };
    if (!assigned) {
      if (known === undefined) this.define(name, init, varies);
      for (const axis of this.found.ahead.get(id.start) ?? [])
        variable.staged.set(axis, writeStaged(this, this.buffers, variable, axis));
    } else if (varies.rows === undefined && varies.columns === undefined) {
      this.out.write(`let ${name} = `);
      this.print(init, FIRST);
      this.line(';');
    } else {
      // A variable of all the types that are assigned to it, and an array of that type.
      this.out.write(`let ${name}type = `);
      this.print(init, FIRST);
      this.line(';', `const ${name} = gpu$.localLike$(${this.slots(varies)}, ${name}type);`);
      this.assign(variable, init);
    }
    this.names.set(id.name, variable);
  }

  /** Whether a variable that is given this becomes another name of it. */
  private hasNames(binding: Binding, assigned: boolean): boolean {
    switch (binding.is) {
      case 'args':
      case 'tile':
      case 'step':
        return true;
      case 'param':
        return !assigned || this.definition.signature[binding.name]!.kind === 'tensor';
      case 'member':
        return (
          (TILE_NAMES as readonly string[]).includes(binding.name) ||
          (!assigned && this.isKnown(binding.name))
        );
      default:
        return false;
    }
  }

  private isKnown(member: string): boolean {
    return (
      Object.hasOwn(this.definition.uses, member) ||
      (OWN_NAMES as readonly string[]).includes(member)
    );
  }

  private perform(node: AnyNode): void {
    // Minifiers join statements by commas.
    if (node.type === 'SequenceExpression') {
      for (const each of node.expressions) this.perform(each);
      return;
    }
    if (node.type === 'UnaryExpression' && (node.operator === 'void' || node.operator === '!'))
      return this.perform(node.argument);
    this.whole = node;
    const store = node.type === 'CallExpression' ? this.methodOf(node) : undefined;
    if (node.type === 'CallExpression' && store?.method === 'store')
      return this.store(node, store.param);
    if (node.type === 'AssignmentExpression')
      return this.out.as(node, () => {
        this.assignment(node);
      });
    if (node.type === 'UpdateExpression')
      return this.fail(
        node,
        `Nothing is counted in a tile kernel: ${this.code(node)}`,
        'Write v += 1 for each element of v, and for (const part of tile.over(…)) for a loop.',
      );
    return this.fail(node, `${CONSISTS_OF}: ${this.code(node)}`, WHAT_IS_WRITTEN);
  }

  /** `v = …`, `v += …`: element by element. */
  private assignment(node: AssignmentExpression): void {
    const { left, right, operator } = node;
    const to = left.type === 'Identifier' ? this.names.get(left.name) : undefined;
    if (left.type === 'Identifier' && operator === '=') {
      if (to?.is === 'unset') return this.variable(node, left, right, false);
      // A `var` counts the tiles of one loop after the other.
      const step = to?.is === 'step' ? this.bindingOf(right) : undefined;
      if (step?.is === 'step') {
        this.names.set(left.name, step);
        return;
      }
    }
    if (left.type !== 'Identifier' || to?.is !== 'variable') {
      return this.fail(
        node,
        `Only variables are assigned in a tile kernel: ${this.code(node)}`,
        'Write y.store(…): it writes the whole tile, and nothing else can be written.',
      );
    }
    if (!to.assigned)
      return this.fail(
        node,
        `\`${left.name}\` is a constant, and this assigns to it: ${this.code(node)}`,
        'Declare it with let.',
      );
    if (operator === '&&=' || operator === '||=' || operator === '??=')
      return this.fail(
        node,
        `${operator} is not known in a tile kernel: ${this.code(node)}`,
        'Write a condition: v = a ? b : v.',
      );
    this.hoist(right);
    const value: AnyNode =
      operator === '='
        ? right
        : {
            type: 'BinaryExpression',
            operator: operator.slice(0, -1) as '+',
            left,
            right,
            start: node.start,
            end: node.end,
          };
    const varies = this.join(node, this.varies(value), to.varies);
    const beyond = [varies.rows, varies.columns].find(
      (axis) => axis !== undefined && this.axis(axis).cut === 'walk' && !to.walked.has(axis),
    );
    if (beyond !== undefined) {
      const { name } = this.axis(beyond);
      return this.fail(
        node,
        `\`${left.name}\` is there after the loop over ${name}, and this value differs along ` +
          `${name}: ${this.code(node)}`,
        `Reduce it along ${name}, or declare a constant within the loop.`,
      );
    }
    if (varies.rows !== to.varies.rows || varies.columns !== to.varies.columns) {
      this.found.variables.set(to.at, varies);
      this.foundMore = true;
      this.names.set(left.name, { ...to, varies });
      return;
    }
    if (varies.rows === undefined && varies.columns === undefined) {
      this.out.write(`${to.name} = `);
      this.print(value, FIRST);
      return this.line(';');
    }
    this.out.write(`${to.name}type = `);
    this.print(value, FIRST);
    this.line(';');
    this.assign(to, value);
  }

  /** `for (const part of tile.over('k'))`: the block goes through all tiles of an axis. */
  private loop(node: ForOfStatement): void {
    const { left, right: given, body } = node;
    const declared = left.type === 'VariableDeclaration' ? left.declarations[0]?.id : left;
    const right = given.type === 'SequenceExpression' ? given.expressions.at(-1)! : given;
    if (given.type === 'SequenceExpression')
      for (const each of given.expressions.slice(0, -1)) this.perform(each);
    if (
      declared?.type !== 'Identifier' ||
      right.type !== 'CallExpression' ||
      this.ownCallee(right) !== 'over'
    ) {
      return this.fail(
        node,
        `A loop of a tile kernel goes over the tiles of an axis: ${this.code(node)}`,
        "Write for (const part of tile.over('columns')) { … }.",
      );
    }
    this.walk(right, body, declared.name, (axis) => ({ is: 'step', axis }));
  }

  /**
   * `for (var i = 0, parts = tile.over('k'); i < parts.length; i++)`: what ES5 makes of the loop
   * over all tiles, with `parts[i]` as the tile.
   */
  private countedLoop({ init, test, update, body }: ForStatement): boolean {
    if (
      init?.type !== 'VariableDeclaration' ||
      test?.type !== 'BinaryExpression' ||
      test.operator !== '<' ||
      update?.type !== 'UpdateExpression' ||
      update.operator !== '++'
    )
      return false;
    const { left, right } = test;
    const list =
      right.type === 'MemberExpression' && propertyName(right) === 'length'
        ? right.object
        : undefined;
    if (
      left.type !== 'Identifier' ||
      list?.type !== 'Identifier' ||
      update.argument.type !== 'Identifier' ||
      update.argument.name !== left.name
    )
      return false;
    const declared = (name: string): VariableDeclarator | undefined =>
      init.declarations.find(({ id }) => id.type === 'Identifier' && id.name === name);
    const [counter, tiles] = [declared(left.name), declared(list.name)];
    if (
      counter?.init?.type !== 'Literal' ||
      counter.init.value !== 0 ||
      tiles?.init?.type !== 'CallExpression' ||
      this.ownCallee(tiles.init) !== 'over'
    )
      return false;
    // Minifiers put the declarations before a loop into it.
    for (const each of init.declarations)
      if (each !== counter && each !== tiles)
        this.out.as(each, () => {
          this.declarator(each, init.kind);
        });
    const { init: call } = tiles;
    this.out.as(call, () => {
      this.walk(call, body, list.name, (axis) => ({ is: 'tiles', axis, counter: left.name }));
    });
    return true;
  }

  /**
   * The statements of a loop for every tile of an axis. `step`: what `declared` stands for in them.
   */
  private walk(
    over: CallExpression,
    body: AnyNode,
    declared: string,
    step: (axis: number) => Binding,
  ): void {
    const axis = this.axisNamed(over);
    const { name, tile, width } = this.axis(axis);
    if (this.walked.has(axis))
      return this.fail(
        over,
        `A loop over ${name} is already around this one: ${this.code(over)}`,
        'Give the inner one an axis with a name of its own.',
      );
    if (this.axis(axis).cut === 'whole') {
      // One tile of all: where it is, is known.
      return this.scope(body, () => {
        this.names.set(declared, step(axis));
        this.statement(body);
      });
    }
    const number = this.newName('step');
    const groups = Math.ceil(tile / width);
    this.line(
      'gpu$.unroll(1);',
      `for (let ${number} = gpu$.${this.definition.indexType}(0); ${number} < ` +
        `(args$.${extentName(axis)} + ${groups - 1}) / ${groups}; ${number}++) {`,
      `const tile${axis}$ = ${number};`,
    );
    this.writePlace(axis);
    const { walked } = this;
    this.walked = new Set([...walked, axis]);
    this.depth++;
    this.scope(body, () => {
      this.names.set(declared, step(axis));
      this.statement(body);
    });
    this.depth--;
    this.walked = walked;
    this.line('}');
  }

  /** The axis that `tile.over('k')` names. */
  private axisNamed(node: CallExpression): number {
    const [given] = node.arguments;
    const { axes } = this.form;
    const name =
      given?.type === 'Literal'
        ? given.value
        : given?.type === 'TemplateLiteral' && given.expressions.length === 0
          ? given.quasis[0]!.value.cooked
          : undefined;
    if (node.arguments.length !== 1 || typeof name !== 'string') {
      return this.fail(
        node,
        `over takes the name of an axis, known when the kernel is compiled: ${this.code(node)}`,
        `There are ${axes.map((each) => each.name).join(', ')}.`,
      );
    }
    const axis = axes.findIndex((each) => each.name === name);
    if (axis < 0)
      return this.fail(
        given!,
        `There is no axis ${name}: ${this.code(node)}`,
        `There are ${axes.map((each) => each.name).join(', ')}.`,
      );
    if (this.axis(axis).cut === 'blocks')
      return this.fail(
        given!,
        `Each block has one tile along ${name}: ${this.code(node)}`,
        `Cut it by { walk: ${this.axis(axis).tile} } in the options' tile, and each block ` +
          'goes through all tiles along it.',
      );
    return axis;
  }

  // Expressions

  /** `x.load`: the parameter and the method's name. */
  private methodOf({
    callee,
  }: CallExpression): { readonly param: string; readonly method: string } | undefined {
    if (callee.type !== 'MemberExpression') return undefined;
    const method = propertyName(callee);
    const object = this.bindingOf(callee.object);
    return object?.is === 'param' && method !== undefined
      ? { param: object.name, method }
      : undefined;
  }

  private bindingOf(node: AnyNode): Binding | undefined {
    if (node.type === 'Identifier') return this.names.get(node.name);
    if (node.type === 'ParenthesizedExpression') return this.bindingOf(node.expression);
    if (node.type !== 'MemberExpression') return undefined;
    const object = this.bindingOf(node.object);
    if (object?.is === 'tiles')
      return node.computed &&
        node.property.type === 'Identifier' &&
        node.property.name === object.counter
        ? { is: 'step', axis: object.axis }
        : undefined;
    const name = propertyName(node);
    if (name === undefined) return undefined;
    if (object?.is === 'args') return { is: 'param', name: this.paramOf(node, name) };
    return object?.is === 'tile' ? { is: 'member', name } : undefined;
  }

  /** The name of the tile's function that is called. */
  private ownCallee(node: AnyNode): (typeof TILE_NAMES)[number] | undefined {
    const callee = node.type === 'CallExpression' ? this.bindingOf(node.callee) : undefined;
    return callee?.is === 'member' ? TILE_NAMES.find((name) => name === callee.name) : undefined;
  }

  /** Writes the loads, reductions and products of an expression, innermost first. */
  private hoist(node: AnyNode): void {
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
   * `w = (v = x.load()) * v`, as minifiers write two statements: the assignment comes first, where
   * it always happens and nothing before it reads the variable.
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

  varies(node: AnyNode): Varies {
    const written = this.written.get(node);
    if (written !== undefined) return written.varies;
    const binding = this.bindingOf(node);
    if (binding !== undefined)
      return binding.is === 'value' || binding.is === 'variable' ? binding.varies : NOWHERE;
    return operandsOf(node)
      .map((child) => this.varies(child))
      .reduce<Varies>((a, b) => this.join(node, a, b), NOWHERE);
  }

  /** Two values, element by element: where both differ, they have to along one axis. */
  private join(node: AnyNode, a: Varies, b: Varies = NOWHERE): Varies {
    for (const [one, other, what] of [
      [a.rows, b.rows, 'rows'],
      [a.columns, b.columns, 'columns'],
    ] as const) {
      if (one === undefined || other === undefined || one === other) continue;
      const names = [this.axis(one).name, this.axis(other).name];
      this.fail(
        node,
        `The ${what} of one tile are ${names[0]}, those of the other ${names[1]}: ` +
          `${this.code(node)}`,
        `Only tiles of the same axes go together: reduce one along ${names[0]}, use ` +
          'tile.transpose(…) or tile.dot(…).',
      );
    }
    return { rows: a.rows ?? b.rows, columns: a.columns ?? b.columns };
  }

  print(node: AnyNode, slot: Slot): void {
    const { out } = this;
    const written = this.written.get(node);
    out.as(node, () => {
      if (written !== undefined) out.write(this.element(written, slot));
      else this.printNode(node, slot);
    });
  }

  private printNode(node: AnyNode, slot: Slot): void {
    const { out } = this;
    const parts = (...each: readonly (string | AnyNode)[]): void => {
      for (const part of each)
        if (typeof part === 'string') out.write(part);
        else this.print(part, slot);
    };
    const binding = this.bindingOf(node);
    if (binding !== undefined) {
      out.write(this.textOf(node, binding, slot));
      return;
    }
    switch (node.type) {
      case 'Identifier':
        return out.write(node.name);
      case 'Literal':
        return out.write(node.raw ?? String(node.value));
      case 'ParenthesizedExpression':
        return this.print(node.expression, slot);
      case 'BinaryExpression':
        return parts('(', node.left, ` ${node.operator} `, node.right, ')');
      case 'LogicalExpression':
        return parts('(', node.left, ` ${node.operator} `, node.right, ')');
      case 'ConditionalExpression':
        return parts('(', node.test, ' ? ', node.consequent, ' : ', node.alternate, ')');
      case 'UnaryExpression':
        return parts('(', node.operator, ' ', node.argument, ')');
      case 'SequenceExpression':
        return parts(
          '(',
          ...node.expressions.flatMap((each, at) => (at === 0 ? [each] : [', ', each])),
          ')',
        );
      case 'CallExpression':
        parts(node.callee, '(');
        for (const [at, argument] of node.arguments.entries())
          parts(...(at === 0 ? [] : [', ']), argument);
        return out.write(')');
      case 'MemberExpression': {
        if (node.computed) {
          const object = this.bindingOf(node.object);
          if (object?.is === 'param' || object?.is === 'value' || object?.is === 'variable')
            return this.fail(
              node,
              `There are no indices in a tile kernel: ${this.code(node)}`,
              WHAT_IS_WRITTEN,
            );
          return parts(node.object, '[', node.property, ']');
        }
        return parts(node.object, `.${propertyName(node) ?? ''}`);
      }
      case 'AssignmentExpression':
      case 'UpdateExpression':
        return this.fail(
          node,
          `An assignment is a statement of its own in a tile kernel: ${this.code(node)}`,
          'Write it before, on a line of its own.',
        );
      default:
        return this.fail(node, `${this.code(node)} is not known in a tile kernel`, WHAT_IS_WRITTEN);
    }
  }

  private textOf(node: AnyNode, binding: Binding, slot: Slot): string {
    switch (binding.is) {
      case 'value':
      case 'variable':
        return this.element(binding, slot);
      case 'param': {
        const { kind } = this.definition.signature[binding.name]!;
        if (kind === 'tensor')
          return this.fail(
            node,
            `${binding.name} is a tensor, and its tile has to be read first: ${this.code(node)}`,
            `Write ${binding.name}.load().`,
          );
        return `args$.${binding.name}`;
      }
      case 'member': {
        if (this.isKnown(binding.name)) return `gpu$.${binding.name}`;
        if ((TILE_NAMES as readonly string[]).includes(binding.name))
          return this.fail(node, `${binding.name} is a function`, `Write ${binding.name}(v, 1).`);
        return this.fail(
          node,
          `There is no ${binding.name} in a tile kernel: ${this.code(node)}`,
          `There are ${TILE_NAMES.join(', ')}, arithmetic, and what uses lists. What needs ` +
            'threads is written with kernel(…).',
        );
      }
      case 'unset':
        return this.fail(
          node,
          `${this.code(node)} has no value yet here, or had it in a loop only`,
          'Give it one where it is declared: let v = 0.',
        );
      case 'step':
        return this.fail(
          node,
          `${this.code(node)} stands for a tile of ${this.axis(binding.axis).name}, and is ` +
            'no number',
          `Pass it to load and store: x.load(${this.code(node)}).`,
        );
      default:
        return this.fail(node, `${this.code(node)} as a whole is no value`, WHAT_IS_WRITTEN);
    }
  }

  // Memory

  /**
   * Looks at the steps that a load or store is given: those of all axes of the tensor that are
   * walked.
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
          'Which tile it is, the kernel knows.',
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
    this.meetOver(param, 'stored');
    this.loaded.add(param);
    this.written.set(node, { is: 'value', ...writeLoad(this, param) });
  }

  private store(node: CallExpression, param: string): void {
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
        'Where the tile is written to, the kernel knows.',
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
      this.meetOver(param, 'loaded');
      writeStore(this, param, { name, varies });
    });
  }

  /**
   * A tile is not written before all threads have loaded it, nor loaded before it is written: they
   * meet in between where one of them reads what another one writes. In a loop what stands behind
   * this comes before it, too.
   */
  private meetOver(param: string, was: 'loaded' | 'stored'): void {
    if (
      (this[was].has(param) || (this.depth > 0 && this.found[was].has(param))) &&
      isReadByOthers(this, param)
    )
      this.meet();
  }

  /** What loops have to know of the statements behind them. */
  private keepAccesses(): void {
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

  // Whole tiles

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
    this.written.set(node, { is: 'value', ...writeReduction(this, value, reduction, of, axis) });
    this.checkShared(node);
  }

  /**
   * The reader would speak of arrays that the user never wrote. It still does where elements have
   * 64 bits: types are not known here.
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
    const turned = writeTurned(this, this.operandValue(value), value);
    this.written.set(node, { is: 'value', ...turned });
    this.checkShared(node);
  }

  /** The value of an expression in arrays of its own, and the variable that it is. */
  private operandValue(node: AnyNode): TileValue {
    const written = this.written.get(node);
    if (written !== undefined) return written;
    const binding = this.bindingOf(node);
    if (binding?.is === 'variable' || binding?.is === 'value') return binding;
    const value: TileValue = { name: this.newName('operand'), varies: this.varies(node) };
    this.define(value.name, node, value.varies);
    return value;
  }

  /** An operand of a product; what is only turned stays where it is. */
  private operand(
    node: AnyNode,
    call: CallExpression,
  ): { readonly node: AnyNode; readonly turned: boolean; readonly varies: Varies } {
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
    };
  }

  private product(node: CallExpression): void {
    const [a, b, more] = node.arguments;
    if (a === undefined || b === undefined || node.arguments.length > 3)
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
    const value: TileValue = { name: this.newName('product'), varies };
    this.line(`const ${value.name} = gpu$.local.f32(${this.slots(varies)});`);
    if (more !== undefined) {
      this.hoist(more);
      this.join(node, this.varies(more), varies);
      this.assign(value, more);
    }
    writeProduct(
      this,
      this.buffers,
      value,
      this.side(left, summed),
      this.side(right, summed),
      summed,
    );
    if (this.buffers.bytes > SHARED_BYTES) {
      return this.fail(
        node,
        `The operands of products take ${this.buffers.bytes} bytes of shared memory here, ` +
          `and a block has ${SHARED_BYTES}: ${this.code(node)}`,
        'Take smaller tiles along the axes of this product.',
      );
    }
    this.checkShared(node);
    this.written.set(node, { is: 'value', ...value });
  }

  /** A constant from outside of the loop is put into shared memory where it is declared. */
  private side(
    { node, turned }: { readonly node: AnyNode; readonly turned: boolean },
    summed: number,
  ): Side {
    const value = this.operandValue(node);
    const variable = this.bindingOf(node);
    if (variable?.is !== 'variable' || variable.assigned || variable.depth === this.depth)
      return { value, turned, staged: undefined };
    const staged = variable.staged.get(summed);
    if (staged === undefined) {
      const ahead = this.found.ahead.get(variable.at) ?? new Set<number>();
      this.found.ahead.set(variable.at, ahead.add(summed));
      this.foundMore = true;
    }
    return { value, turned, staged };
  }
}

/** Expressions within an expression. */
function operandsOf(node: AnyNode): AnyNode[] {
  switch (node.type) {
    case 'BinaryExpression':
    case 'LogicalExpression':
      return [node.left, node.right];
    case 'ConditionalExpression':
      return [node.test, node.consequent, node.alternate];
    case 'UnaryExpression':
      return [node.argument];
    case 'ParenthesizedExpression':
      return [node.expression];
    case 'SequenceExpression':
      return node.expressions;
    case 'CallExpression':
      return [node.callee, ...node.arguments];
    case 'MemberExpression':
      return node.computed ? [node.object, node.property] : [node.object];
    default:
      return [];
  }
}

/** Names that are declared by `var` anywhere: they belong to the whole body. */
function varsIn(node: AnyNode): string[] {
  const own =
    node.type === 'VariableDeclaration' && node.kind === 'var'
      ? node.declarations.flatMap(({ id }) => (id.type === 'Identifier' ? [id.name] : []))
      : [];
  return [...own, ...childrenOf(node).flatMap(varsIn)];
}

/** Whether a name stands in the source before a place. */
function isNamedBefore(node: AnyNode, name: string, place: number): boolean {
  if (node.start >= place) return false;
  if (node.type === 'Identifier') return node.name === name;
  return (
    node.type === 'MemberExpression' && !node.computed ? [node.object] : childrenOf(node)
  ).some((child) => isNamedBefore(child, name, place));
}
