/**
 * The kernel that a tile kernel's body stands for: the body says what happens to a tile, the kernel what each thread does to
 * its elements of it. Each constant that varies within the tile becomes an array of the thread's elements, computed in
 * a loop of constant length, so that it lies in registers; reductions go through warps and shared memory.
 *
 * A thread beyond the edge works on the last element again: what it reads is there, and what it computes changes no largest and no
 * smallest. Sums leave it out, and stores too.
 */
import type { AnyNode, CallExpression, Expression } from 'acorn';

import { parseFunction } from '../read/parse.js';
import { propertyName } from '../read/members.js';
import type { KernelSource, NarrowGpu, SignatureEntry } from '../signature.js';
import { KernelSourceError } from '../source-error.js';
import { ARITHMETIC_NAMES } from '../element/gpu-of-elements.js';
import { PrintedText } from './printed-text.js';
import { EXTENT_NAMES, TILE_NAMES } from './tile-form.js';
import type { TileForm } from './tile-form.js';

type Reduction = (typeof TILE_NAMES)[number];

const OWN_NAMES = ARITHMETIC_NAMES.filter((name) => name !== 'local' && name !== 'unroll');
const WHAT_IS_WRITTEN = 'Write const v = x.load() for the tile of an input, compute with it, and y.store(…).';

const NARROW: NarrowGpu = { has: ARITHMETIC_NAMES, given: [], of: 'a function of a tile kernel', fix: 'Write what needs threads with kernel(…).' };

/** Along which axes a value differs within the tile. */
interface Varies {
  readonly rows: boolean;
  readonly columns: boolean;
}

const NOWHERE: Varies = { rows: false, columns: false };

/** What a name of the body stands for. */
type Binding =
  | { readonly is: 'args' }
  | { readonly is: 'tile' }
  | { readonly is: 'param'; readonly name: string }
  /** A member of the second parameter. */
  | { readonly is: 'member'; readonly name: string }
  | { readonly is: 'value'; readonly name: string; readonly varies: Varies };

/** Slots of a thread, as texts. */
interface Slot {
  readonly row: string;
  readonly column: string;
}

const FIRST: Slot = { row: '0', column: '0' };
const TURN: Slot = { row: 'r$', column: 'c$' };

/**
 * `source`: the body, with the signature that the user gave.
 *
 * @throws KernelSourceError
 */
export function tileSource(source: KernelSource, form: TileForm): KernelSource {
  return new TileWriter(source, form).source();
}

class TileWriter {
  private readonly definition: KernelSource;
  private readonly form: TileForm;
  private readonly out = new PrintedText();
  private readonly names = new Map<string, Binding>();
  /** Loads and reductions that have been written, and the arrays that hold them. */
  private readonly written = new Map<AnyNode, Binding & { readonly is: 'value' }>();
  /** Tensors whose tile was stored. */
  private readonly stored = new Set<string>();
  private count = 0;

  constructor(definition: KernelSource, form: TileForm) {
    this.definition = definition;
    this.form = form;
  }

  source(): KernelSource {
    const { out, definition: { name, signature, text, uses, indexType }, form } = this;
    const { node } = parseFunction(text, 0);
    this.bind(node.params[0], 'args');
    this.bind(node.params[1], 'tile');
    out.write('(args$, gpu$) => {\n');
    out.as(node, () => {
      this.prologue();
      if (node.body.type === 'BlockStatement') for (const statement of node.body.body) this.statement(statement);
      else this.perform(node.body);
    });
    out.write('\n}');
    const own: Record<string, SignatureEntry> = Object.fromEntries(Object.entries(signature).map(([each, entry]) => [each, entry.kind === 'tensor' ? { ...entry, rank: form.access[each] === 'strided' ? 2 : 1 } : entry]));
    for (const each of EXTENT_NAMES) own[each] = { kind: 'scalar', storage: indexType };
    return {
      name, indexType, signature: own, text: out.text, origin: out.origin(text),
      uses: Object.fromEntries(Object.entries(uses).map(([each, used]) => [each, typeof used === 'object' && 'text' in used ? { ...used, gpu: NARROW } : used])),
    };
  }

  private fail(node: AnyNode, what: string, fix: string): never {
    throw new KernelSourceError(what, fix, { text: 0, start: node.start, end: node.end }, this.definition.text);
  }

  private code(node: AnyNode): string {
    return this.definition.text.slice(node.start, node.end).replace(/\s+/g, ' ').slice(0, 60);
  }

  private bind(param: AnyNode | undefined, is: 'args' | 'tile'): void {
    if (param === undefined) return;
    if (param.type === 'Identifier') {
      this.names.set(param.name, { is });
      return;
    }
    if (param.type !== 'ObjectPattern') return this.fail(param, `${this.code(param)} is not known in a tile kernel`, 'Write ({ y, x }, tile) => { … }.');
    for (const part of param.properties) {
      if (part.type !== 'Property' || part.key.type !== 'Identifier' || part.value.type !== 'Identifier') return this.fail(part, `${this.code(part)} is not known in a tile kernel`, 'Name what is taken out of it: ({ y, x }, { sum }) => { … }.');
      this.names.set(part.value.name, is === 'args' ? { is: 'param', name: this.paramOf(part, part.key.name) } : { is: 'member', name: part.key.name });
    }
  }

  private paramOf(node: AnyNode, name: string): string {
    const names = Object.keys(this.definition.signature);
    if (!names.includes(name)) return this.fail(node, `\`${name}\` is not in the kernel's signature, which has ${names.join(', ')}`, `Add it to the signature: { ${name}: input(f32) }.`);
    return name;
  }

  /** Where the block's tile and the thread's first element are. Columns count in units of the form's width. */
  private prologue(): void {
    const { tile: [tileRows, tileColumns], across, width, wholeRows } = this.form;
    this.line(
      `const tile$ = gpu$.${this.definition.indexType}(gpu$.blockIdx.x);`,
      ...(wholeRows ? ['const tileRow$ = tile$;', 'const tileColumn$ = 0;'] : ['const tileRow$ = tile$ / args$.tiles$;', 'const tileColumn$ = tile$ % args$.tiles$;']),
      `const beside$ = gpu$.threadIdx.x % ${across};`, `const below$ = gpu$.threadIdx.x / ${across};`,
      `const topRow$ = tileRow$ * ${tileRows};`, `const leftGroup$ = tileColumn$ * ${Math.ceil(tileColumns / width)};`,
      'const firstRow$ = topRow$ + below$;', 'const firstGroup$ = leftGroup$ + beside$;',
      `const lastRow$ = Math.min(args$.rows$, topRow$ + ${tileRows}) - 1;`,
      `const lastGroup$ = Math.min(args$.groups$, leftGroup$ + ${Math.ceil(tileColumns / width)}) - 1;`,
    );
  }

  private line(...lines: readonly string[]): void {
    for (const line of lines) this.out.write(`${line}\n`);
  }

  private newName(of: string): string {
    return `${of}$${this.count++}`;
  }

  // Statements

  private statement(node: AnyNode): void {
    switch (node.type) {
      case 'EmptyStatement': return;
      case 'ExpressionStatement': return this.perform(node.expression);
      case 'VariableDeclaration': {
        if (node.kind !== 'const') return this.fail(node, `There are only constants in a tile kernel: ${this.code(node)}`, 'Write const, with another name for each value.');
        for (const declarator of node.declarations) {
          const { id, init } = declarator;
          if (id.type !== 'Identifier' || init === null || init === undefined) return this.fail(declarator, `${this.code(declarator)} is not known in a tile kernel`, 'Write const v = …, one name for each value.');
          const name = this.newName(id.name);
          this.hoist(init);
          const varies = this.varies(init);
          this.out.as(declarator, () => { this.define(name, init, varies); });
          this.names.set(id.name, { is: 'value', name, varies });
        }
        return;
      }
      default: return this.fail(node, `A tile kernel consists of constants and stores: ${this.code(node)}`, `${WHAT_IS_WRITTEN} What needs more is written with kernel(…).`);
    }
  }

  private perform(node: AnyNode): void {
    const store = node.type === 'CallExpression' ? this.methodOf(node) : undefined;
    if (node.type === 'CallExpression' && store?.method === 'store') return this.store(node, store.param);
    if (node.type === 'AssignmentExpression' || node.type === 'UpdateExpression') {
      return this.fail(node, `Nothing is assigned in a tile kernel: ${this.code(node)}`, 'Write y.store(…): it writes the whole tile, and nothing else can be written.');
    }
    return this.fail(node, `A tile kernel consists of constants and stores: ${this.code(node)}`, WHAT_IS_WRITTEN);
  }

  // Expressions

  /** `x.load`: the parameter and the method's name. */
  private methodOf({ callee }: CallExpression): { readonly param: string; readonly method: string } | undefined {
    if (callee.type !== 'MemberExpression') return undefined;
    const method = propertyName(callee);
    const object = this.bindingOf(callee.object);
    return object?.is === 'param' && method !== undefined ? { param: object.name, method } : undefined;
  }

  private bindingOf(node: AnyNode): Binding | undefined {
    if (node.type === 'Identifier') return this.names.get(node.name);
    if (node.type !== 'MemberExpression') return undefined;
    const object = this.bindingOf(node.object);
    const name = propertyName(node);
    if (name === undefined) return undefined;
    if (object?.is === 'args') return { is: 'param', name: this.paramOf(node, name) };
    return object?.is === 'tile' ? { is: 'member', name } : undefined;
  }

  /** Writes the loads and reductions of an expression, innermost first. */
  private hoist(node: AnyNode): void {
    if (node.type === 'CallExpression') {
      const own = this.methodOf(node);
      if (own !== undefined) {
        if (own.method !== 'load') return this.fail(node, `${this.code(node)} gives no value`, own.method === 'store' ? 'A store is a statement of its own.' : `A tensor has load() and store(…). ${WHAT_IS_WRITTEN}`);
        this.out.as(node, () => { this.load(node, own.param); });
        return;
      }
      const callee = this.bindingOf(node.callee);
      const reduction = callee?.is === 'member' ? TILE_NAMES.find((name) => name === callee.name) : undefined;
      for (const argument of node.arguments) this.hoist(argument);
      if (reduction !== undefined) this.out.as(node, () => { this.reduce(node, reduction); });
      return;
    }
    for (const child of operandsOf(node)) this.hoist(child);
  }

  private varies(node: AnyNode): Varies {
    const written = this.written.get(node);
    if (written !== undefined) return written.varies;
    const binding = this.bindingOf(node);
    if (binding !== undefined) return binding.is === 'value' ? binding.varies : NOWHERE;
    return operandsOf(node).map((child) => this.varies(child)).reduce((a, b) => ({ rows: a.rows || b.rows, columns: a.columns || b.columns }), NOWHERE);
  }

  /** Writes the expression for one slot. */
  private print(node: AnyNode, slot: Slot): void {
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
      for (const part of each) if (typeof part === 'string') out.write(part); else this.print(part, slot);
    };
    const binding = this.bindingOf(node);
    if (binding !== undefined) {
      out.write(this.bound(node, binding, slot));
      return;
    }
    switch (node.type) {
      case 'Identifier': return out.write(node.name);
      case 'Literal': return out.write(node.raw ?? String(node.value));
      case 'ParenthesizedExpression': return this.print(node.expression, slot);
      case 'BinaryExpression': return parts('(', node.left, ` ${node.operator} `, node.right, ')');
      case 'LogicalExpression': return parts('(', node.left, ` ${node.operator} `, node.right, ')');
      case 'ConditionalExpression': return parts('(', node.test, ' ? ', node.consequent, ' : ', node.alternate, ')');
      case 'UnaryExpression': return parts('(', node.operator, ' ', node.argument, ')');
      case 'SequenceExpression': return parts('(', ...node.expressions.flatMap((each, at) => (at === 0 ? [each] : [', ', each])), ')');
      case 'CallExpression':
        parts(node.callee, '(');
        for (const [at, argument] of node.arguments.entries()) parts(...(at === 0 ? [] : [', ']), argument);
        return out.write(')');
      case 'MemberExpression': {
        if (node.computed) {
          const object = this.bindingOf(node.object);
          if (object?.is === 'param' || object?.is === 'value') return this.fail(node, `There are no indices in a tile kernel: ${this.code(node)}`, WHAT_IS_WRITTEN);
          return parts(node.object, '[', node.property, ']');
        }
        return parts(node.object, `.${propertyName(node) ?? ''}`);
      }
      case 'AssignmentExpression': case 'UpdateExpression': return this.fail(node, `Nothing is assigned in a tile kernel: ${this.code(node)}`, 'Write const, with another name for each value.');
      default: return this.fail(node, `${this.code(node)} is not known in a tile kernel`, WHAT_IS_WRITTEN);
    }
  }

  private bound(node: AnyNode, binding: Binding, slot: Slot): string {
    switch (binding.is) {
      case 'value': return this.element(binding, slot);
      case 'param': {
        const { kind } = this.definition.signature[binding.name]!;
        if (kind === 'tensor') return this.fail(node, `${binding.name} is a tensor, and its tile has to be read first: ${this.code(node)}`, `Write ${binding.name}.load().`);
        return `args$.${binding.name}`;
      }
      case 'member': {
        if (Object.hasOwn(this.definition.uses, binding.name) || (OWN_NAMES as readonly string[]).includes(binding.name)) return `gpu$.${binding.name}`;
        if ((TILE_NAMES as readonly string[]).includes(binding.name)) return this.fail(node, `${binding.name} is a function`, `Write ${binding.name}(v, 1).`);
        return this.fail(node, `There is no ${binding.name} in a tile kernel: ${this.code(node)}`, `There are ${TILE_NAMES.join(', ')}, arithmetic, and what uses lists. What needs threads is written with kernel(…).`);
      }
      default: return this.fail(node, `${this.code(node)} as a whole is no value`, WHAT_IS_WRITTEN);
    }
  }

  /** The element of a slot. */
  private element({ name, varies: { rows, columns } }: { readonly name: string; readonly varies: Varies }, { row, column }: Slot): string {
    if (!rows && !columns) return name;
    if (!columns) return `${name}[${row}]`;
    if (!rows || this.form.rows === 1) return `${name}[${column}]`;
    return row === '0' ? `${name}[${column}]` : `${name}[${row} * ${this.form.columns} + ${column}]`;
  }

  private slots({ rows, columns }: Varies): number {
    return (rows ? this.form.rows : 1) * (columns ? this.form.columns : 1);
  }

  /** Loops over the slots that a value has. */
  private each({ rows, columns }: Varies, turn: () => void): void {
    this.out.write(`${rows ? `for (let r$ = 0; r$ < ${this.form.rows}; r$++) ` : ''}${columns ? `for (let c$ = 0; c$ < ${this.form.columns}; c$++) ` : ''}{ `);
    turn();
    this.line(' }');
  }

  /** Writes a constant: what it is in each of the thread's slots. */
  private define(name: string, node: AnyNode, varies: Varies): void {
    const { out } = this;
    if (!varies.rows && !varies.columns) {
      out.write(`const ${name} = `);
      this.print(node, FIRST);
      this.line(';');
      return;
    }
    this.declare('local', name, this.slots(varies), node);
    this.each(varies, () => {
      out.write(`${this.element({ name, varies }, TURN)} = `);
      this.print(node, TURN);
      out.write(';');
    });
  }

  /** An array of the expression's type. */
  private declare(space: 'local' | 'shared', name: string, length: number, like: AnyNode): void {
    this.out.write(`const ${name} = gpu$.${space}Like$(${length}, `);
    this.print(like, FIRST);
    this.line(');');
  }

  // Memory

  private place(param: string): string {
    const { width } = this.form;
    const column = width === 1 ? 'group$' : `group$ * ${width} + k$`;
    switch (this.form.access[param]!) {
      case 'dense': return `args$.${param}[(row$ * args$.groups$ + group$)${width === 1 ? '' : ` * ${width} + k$`}]`;
      case 'row': return `args$.${param}[${column}]`;
      case 'column': return `args$.${param}[row$]`;
      case 'one': return `args$.${param}[0]`;
      case 'strided': return `args$.${param}[row$][${column}]`;
    }
  }

  private variesOf(param: string): Varies {
    const access = this.form.access[param]!;
    return { rows: access !== 'row' && access !== 'one', columns: access !== 'column' && access !== 'one' };
  }

  /** Every thread reads, those beyond the edge what is at the edge. */
  private load(node: CallExpression, param: string): void {
    const entry = this.definition.signature[param]!;
    if (entry.kind !== 'tensor') return this.fail(node, `${param} is no tensor`, `Write ${param}.`);
    if (entry.access === 'output') return this.fail(node, `${param} is an output, and is not read`, `Declare it as inout(…), or store first what ${param}.load() should give.`);
    if (node.arguments.length > 0) return this.fail(node, `load takes no arguments: ${this.code(node)}`, 'It gives the tile of the block: which one that is, the kernel knows.');
    const { rows, down, columns, width, across, exactRows, exactColumns } = this.form;
    const varies = this.variesOf(param);
    const name = this.newName(param);
    const value: Binding & { readonly is: 'value' } = { is: 'value', name, varies };
    const row = `const row$ = ${exactRows ? `firstRow$ + r$ * ${down}` : `Math.min(firstRow$ + r$ * ${down}, lastRow$)`};`;
    const group = `const group$ = ${exactColumns ? `firstGroup$ + q$ * ${across}` : `Math.min(firstGroup$ + q$ * ${across}, lastGroup$)`};`;
    this.written.set(node, value);
    if (this.stored.has(param)) this.meet();
    if (!varies.rows && !varies.columns) return this.line(`const ${name} = ${this.place(param)};`);
    this.line(`const ${name} = gpu$.localLike$(${this.slots(varies)}, args$.${param}[0]${this.form.access[param] === 'strided' ? '[0]' : ''});`);
    this.line(
      varies.rows ? `for (let r$ = 0; r$ < ${rows}; r$++) { ${row}` : '{',
      varies.columns ? `for (let q$ = 0; q$ < ${columns / width}; q$++) { ${group}` : '{',
      varies.columns && width > 1 ? `for (let k$ = 0; k$ < ${width}; k$++)` : '',
      `${this.element({ name, varies }, { row: 'r$', column: width === 1 ? 'q$' : `q$ * ${width} + k$` })} = ${this.place(param)};`,
      '} }',
    );
  }

  /** Only what is in the tile and in the tensor is written, each element by one thread. */
  private store(node: CallExpression, param: string): void {
    const entry = this.definition.signature[param]!;
    const [value] = node.arguments;
    if (entry.kind !== 'tensor' || entry.access === 'input') return this.fail(node, `${param} is ${entry.kind === 'tensor' ? 'an input' : 'no tensor'}, and is not written`, 'Declare it as output(…) or inout(…).');
    if (value === undefined || node.arguments.length > 1) return this.fail(node, `store takes one value: ${this.code(node)}`, 'Where the tile is written to, the kernel knows.');
    this.hoist(value);
    const { rows, down, columns, width, across, exactRows, exactColumns } = this.form;
    const varies = this.varies(value);
    const to = this.variesOf(param);
    if (varies.columns && !to.columns) return this.fail(value, `${param} has one element for each row here, and this value differs along a row`, 'Reduce it along axis 1: tile.sum(v, 1).');
    if (varies.rows && !to.rows) return this.fail(value, `${param} has one row here, and this value differs between rows`, 'Reduce it along axis 0: tile.sum(v, 0).');
    const name = this.newName('stored');
    this.stored.add(param);
    this.out.as(value, () => {
      this.define(name, value, varies);
      if (entry.access === 'inout') this.meet();
      const row = to.rows ? `for (let r$ = 0; r$ < ${rows}; r$++) { const row$ = firstRow$ + r$ * ${down};` : '{';
      const group = to.columns ? `for (let q$ = 0; q$ < ${columns / width}; q$++) { const group$ = firstGroup$ + q$ * ${across};` : '{';
      const inside = [
        to.rows ? (exactRows ? '' : 'row$ <= lastRow$') : 'below$ === 0', to.columns ? (exactColumns ? '' : 'group$ <= lastGroup$') : 'beside$ === 0',
      ].filter((test) => test !== '').join(' && ');
      this.line(
        row, group, inside === '' ? '{' : `if (${inside}) {`, to.columns && width > 1 ? `for (let k$ = 0; k$ < ${width}; k$++)` : '',
        `${this.place(param)} = ${this.element({ name, varies }, { row: 'r$', column: width === 1 ? 'q$' : `q$ * ${width} + k$` })};`,
        '} } }',
      );
    });
  }

  /** Threads beyond the edge read what others write: a tile is not written before all have read it, nor the other way round. */
  private meet(): void {
    if (!this.form.exactRows || !this.form.exactColumns) this.line('gpu$.block.sync();');
  }

  // Reductions

  private axisOf(node: CallExpression): 0 | 1 | undefined {
    const [, axis] = node.arguments as Expression[];
    if (axis === undefined) return undefined;
    if (axis.type === 'Literal' && (axis.value === 0 || axis.value === 1)) return axis.value;
    return this.fail(axis, `The axis is 0 or 1, and known when the kernel is compiled: ${this.code(axis)}`, 'Write 1 for along the rows, 0 for along the columns, and nothing for the whole tile.');
  }

  private reduce(node: CallExpression, reduction: Reduction): void {
    const [value] = node.arguments;
    if (value === undefined || value.type === 'SpreadElement') return this.fail(node, `${reduction} takes a value, and an axis: ${this.code(node)}`, `Write tile.${reduction}(v, 1).`);
    const axis = this.axisOf(node);
    const name = this.newName(reduction);
    const varies: Varies = { rows: axis === 1, columns: axis === 0 };
    const join = (a: string, b: string): string => (reduction === 'max' || reduction === 'min' ? `Math.${reduction}(${a}, ${b})` : `${a} + ${b}`);
    if (axis === 1) this.alongRows(name, value, reduction, join);
    else if (axis === 0) this.alongColumns(name, value, reduction, join);
    else this.whole(name, value, reduction, join);
    this.written.set(node, { is: 'value', name, varies });
  }

  /** Joins the elements of some slots into `sum$`. What is beyond the edge counts for no sum. */
  private joinSlots(value: AnyNode, loops: Varies, reduction: Reduction, join: (a: string, b: string) => string): void {
    const { out, form: { down, width, across, exactRows, exactColumns } } = this;
    const sums = reduction === 'sum' || reduction === 'mean';
    out.write('let sum$ = ');
    if (sums) out.write('0');
    else this.print(value, { row: loops.rows ? '0' : 'r$', column: loops.columns ? '0' : 'c$' });
    this.line(';');
    const group = width === 1 ? 'c$' : `(c$ / ${width})`;
    const inside = [
      loops.rows && !exactRows ? `firstRow$ + r$ * ${down} <= lastRow$` : '', loops.columns && !exactColumns ? `firstGroup$ + ${group} * ${across} <= lastGroup$` : '',
    ].filter((test) => test !== '').join(' && ');
    this.each(loops, () => {
      out.write('const each$ = ');
      this.print(value, TURN);
      out.write(`; sum$ = ${join('sum$', sums && inside !== '' ? `(${inside} ? each$ : 0)` : 'each$')};`);
    });
  }

  private rowExtent(): string {
    return `(lastGroup$ + 1 - leftGroup$)${this.form.width === 1 ? '' : ` * ${this.form.width}`}`;
  }

  private butterfly(lanes: number, join: (a: string, b: string) => string): void {
    for (let bits = lanes / 2; bits >= 1; bits /= 2) this.line(`sum$ = ${join('sum$', `gpu$.warp.shuffleXor(sum$, ${bits})`)};`);
  }

  private alongRows(name: string, value: AnyNode, reduction: Reduction, join: (a: string, b: string) => string): void {
    const { rows, across, down } = this.form;
    const warps = across / 32;
    const part = this.newName('part');
    const mean = reduction === 'mean' ? ` / (${this.rowExtent()})` : '';
    this.declare('local', name, rows, value);
    if (warps > 1) this.declare('shared', part, down * rows * warps, value);
    this.line(`for (let r$ = 0; r$ < ${rows}; r$++) {`);
    this.joinSlots(value, { rows: false, columns: true }, reduction, join);
    this.butterfly(Math.min(32, across), join);
    if (warps <= 1) {
      this.line(`${name}[r$] = sum$${mean}; }`);
      return;
    }
    this.line(
      `if (gpu$.lane === 0) ${part}[(below$ * ${rows} + r$) * ${warps} + beside$ / 32] = sum$;`, '}', 'gpu$.block.sync();',
      `for (let r$ = 0; r$ < ${rows}; r$++) {`, `const from$ = (below$ * ${rows} + r$) * ${warps};`, `let sum$ = ${part}[from$];`,
      `for (let w$ = 1; w$ < ${warps}; w$++) sum$ = ${join('sum$', `${part}[from$ + w$]`)};`, `${name}[r$] = sum$${mean};`, '}',
    );
  }

  private alongColumns(name: string, value: AnyNode, reduction: Reduction, join: (a: string, b: string) => string): void {
    const { columns, across, down } = this.form;
    const part = this.newName('part');
    const mean = reduction === 'mean' ? ' / (lastRow$ + 1 - topRow$)' : '';
    this.declare('local', name, columns, value);
    if (down > 1) this.declare('shared', part, down * columns * across, value);
    this.line(`for (let c$ = 0; c$ < ${columns}; c$++) {`);
    this.joinSlots(value, { rows: true, columns: false }, reduction, join);
    if (down === 1) {
      this.line(`${name}[c$] = sum$${mean}; }`);
      return;
    }
    this.line(
      `${part}[(below$ * ${columns} + c$) * ${across} + beside$] = sum$;`, '}', 'gpu$.block.sync();',
      `for (let c$ = 0; c$ < ${columns}; c$++) {`, `let sum$ = ${part}[c$ * ${across} + beside$];`,
      `for (let d$ = 1; d$ < ${down}; d$++) sum$ = ${join('sum$', `${part}[(d$ * ${columns} + c$) * ${across} + beside$]`)};`, `${name}[c$] = sum$${mean};`, '}',
    );
  }

  private whole(name: string, value: AnyNode, reduction: Reduction, join: (a: string, b: string) => string): void {
    const { across, down } = this.form;
    const warps = (across * down) / 32;
    const part = this.newName('part');
    const mean = reduction === 'mean' ? ` / ((lastRow$ + 1 - topRow$) * (${this.rowExtent()}))` : '';
    this.declare('shared', part, warps, value);
    this.line('{');
    this.joinSlots(value, { rows: true, columns: true }, reduction, join);
    this.butterfly(32, join);
    this.line(
      `if (gpu$.lane === 0) ${part}[gpu$.warpIdx] = sum$;`, '}', 'gpu$.block.sync();', `let ${name}all = ${part}[0];`,
      `for (let w$ = 1; w$ < ${warps}; w$++) ${name}all = ${join(`${name}all`, `${part}[w$]`)};`, `const ${name} = ${name}all${mean};`,
    );
  }
}

/** Expressions within an expression. */
function operandsOf(node: AnyNode): AnyNode[] {
  switch (node.type) {
    case 'BinaryExpression': case 'LogicalExpression': return [node.left, node.right];
    case 'ConditionalExpression': return [node.test, node.consequent, node.alternate];
    case 'UnaryExpression': return [node.argument];
    case 'ParenthesizedExpression': return [node.expression];
    case 'SequenceExpression': return node.expressions;
    case 'CallExpression': return [node.callee, ...node.arguments];
    case 'MemberExpression': return node.computed ? [node.object, node.property] : [node.object];
    default: return [];
  }
}
