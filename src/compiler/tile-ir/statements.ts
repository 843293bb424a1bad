/** Statements of the marked kernel: variables, stores, and loops over tiles. */
import type { FunctionBuilder, Value } from '../../tileir/index.js';
import type { Signature } from '../signature.js';
import type { AbiParam, Expression, Span, Statement } from '../tree.js';
import { OPERANDS, countName, isMark } from './marked-source.js';
import type { MarkedKernel } from './places.js';
import { TileIrExpressions } from './expressions.js';
import { joined, sameExtents } from './tile-values.js';
import type { Extents, Tile } from './tile-values.js';

/** The extents of variables that loops carry, by loop and variable. */
export type CarriedExtents = Map<string, Extents>;

/** What the entry is given. */
export interface EntryGiven {
  readonly signature: Signature;
  readonly abi: readonly AbiParam[];
  given(param: number): Value;
  readonly aligned: boolean;
  /** The debug attribute of a place. */
  place(span: Span): number | undefined;
}

const NO_BRANCHES = "Write a condition as a ? b : c, of values; or leave the options' backend out.";

/** Statements around the present one that may have been left. */
interface Group {
  readonly id: number;
  /** Where elements have left it; undefined where none can have. */
  left: Tile | undefined;
}

export class TileIrBody extends TileIrExpressions {
  /** Whether a loop carries more than was known, and everything has to be written again. */
  foundMore = false;
  private readonly carried: CarriedExtents;
  private readonly groups: Group[] = [];
  /** Where the statements around the present one are executed; undefined for everywhere. */
  private within: Tile | undefined = undefined;

  constructor(to: FunctionBuilder, kernel: MarkedKernel, carried: CarriedExtents) {
    super(to, kernel);
    this.carried = carried;
  }

  /** Writes the whole function. */
  write(entry: EntryGiven): void {
    const { signature, abi, aligned } = entry;
    const given = (at: number): Value => entry.given(at);
    this.placeOf = (span) => entry.place(span);
    this.memory.open(
      signature,
      this.form,
      (kind, param, axis) =>
        given(
          abi.findIndex(
            (each) =>
              each.kind === kind &&
              each.param === param &&
              (each.kind === 'pointer' || (each as { readonly axis: number }).axis === axis),
          ),
        ),
      aligned,
    );
    this.scalars = (param, field) => {
      for (const [at, each] of abi.entries())
        if (each.kind === 'scalar' && each.param === param && each.field === field)
          return this.memory.scalarOf(given(at), each.storage);
      throw new TypeError('a scalar that is no parameter');
    };
    this.openPlaces();
    this.openTokens(signature);
    this.statements(this.tree.body);
    this.to.to.write('return', { operands: [[]] });
  }

  /** Accesses of a tensor are in order where it is read and written, or written several times. */
  private openTokens(signature: Signature): void {
    const stores = new Map<string, number>();
    const count = (statements: readonly Statement[], inLoop: boolean): void => {
      for (const each of statements)
        if (each.kind === 'loop') count(each.body, true);
        else if (each.kind === 'store' && each.place.memory.kind === 'param') {
          const { name } = this.tree.params[each.place.memory.param]!;
          stores.set(name, (stores.get(name) ?? 0) + (inLoop ? 2 : 1));
        }
    };
    count(this.tree.body, false);
    for (const [name, entry] of Object.entries(signature))
      if (entry.kind === 'tensor' && (entry.access === 'inout' || (stores.get(name) ?? 0) > 1))
        this.memory.tokens.set(name, this.to.to.one('makeToken', this.to.types.token));
  }

  protected statements(list: readonly Statement[]): void {
    for (const each of list) {
      this.to.to.place = this.placeOf(each.span) ?? this.to.to.place;
      this.statement(each);
    }
  }

  private statement(node: Statement): void {
    switch (node.kind) {
      case 'assign':
        return this.assign(node.local, this.expression(node.value));
      case 'store':
        return this.store(node);
      case 'evaluate':
        this.expression(node.value);
        return;
      case 'if':
        return this.branch(node);
      case 'group':
        this.groups.push({ id: node.id, left: undefined });
        this.statements(node.body);
        this.groups.pop();
        return;
      case 'break':
        return this.leave(node);
      case 'loop':
        return this.loop(node);
      default:
        return this.fail(
          node.span,
          'Tile IR has no operation for this statement of a tile kernel',
          "Leave the options' backend out.",
        );
    }
  }

  private store(node: Statement & { readonly kind: 'store' }): void {
    const { memory, index } = node.place;
    const number = index.op === 'constant' ? Number(index.value) : -1;
    const value = this.expression(node.value);
    const { name } = this.tree.params[memory.kind === 'param' ? memory.param : -1]!;
    if (isMark(OPERANDS, name)) this.operands.set(number, value);
    else this.memory.store(name, value, this.place);
  }

  /** Where the present statement is executed: in all branches around it, and in no group left. */
  private get mask(): Tile | undefined {
    return this.groups.reduce(
      (mask, { left }) => (left === undefined ? mask : this.both(mask, this.inverted(left))),
      this.within,
    );
  }

  private both(a: Tile | undefined, b: Tile): Tile {
    return a === undefined ? b : this.to.each('andi', 'bool', [a, b], {});
  }

  private inverted(test: Tile): Tile {
    return this.to.each('xori', 'bool', [test, this.to.constant(true, 'bool')], {});
  }

  private assign(local: number, value: Tile): void {
    const { mask } = this;
    const before = this.locals.get(local);
    this.locals.set(
      local,
      mask === undefined || before === undefined ? value : this.to.select(mask, value, before),
    );
  }

  /** Both branches are executed, and each assigns the elements of which the test is its own. */
  private branch({ test, then, otherwise, span }: Statement & { readonly kind: 'if' }): void {
    const { within } = this;
    const taken = this.expression(test);
    for (const [statements, where] of [
      [then, taken],
      [otherwise, otherwise.length === 0 ? taken : this.inverted(taken)],
    ] as const) {
      this.checkPure(statements, span);
      this.within = this.both(within, where);
      this.statements(statements);
      this.within = within;
    }
  }

  private checkPure(statements: readonly Statement[], span: Span): void {
    if (statements.some(({ kind }) => kind === 'loop' || kind === 'return' || kind === 'continue'))
      this.fail(span, 'Tile IR has no branches for single elements of a tile', NO_BRANCHES);
  }

  private leave({ id, span }: Statement & { readonly kind: 'break' }): void {
    const at = this.groups.findIndex((group) => group.id === id);
    const group = this.groups[at];
    if (group === undefined) return this.fail(span, 'Tile IR has no break', NO_BRANCHES);
    const now = this.mask ?? this.to.constant(true, 'bool');
    // Groups within this one are left, too.
    for (const each of this.groups.slice(at))
      each.left = each.left === undefined ? now : this.to.each('ori', 'bool', [each.left, now], {});
  }

  /** A loop over all tiles of an axis. */
  private loop(node: Statement & { readonly kind: 'loop' }): void {
    const axis = this.axisOf(node.test);
    if (axis === undefined || this.within !== undefined)
      return this.fail(
        node.span,
        'Tile IR has loops over the tiles of an axis, and no others',
        "Write for (const part of tile.over('k')) { … }, or leave the options' backend out.",
      );
    const assigned = [...assignedIn(node.body)].filter((local) => this.locals.has(local));
    const before = assigned.map((local) => this.locals.get(local)!);
    const extents = assigned.map((local, at) =>
      joined(before[at]!.extents, this.carried.get(`${node.id} ${local}`) ?? before[at]!.extents),
    );
    const { to, types } = this.to;
    const tokens = [...this.memory.tokens.keys()];
    const carriedTypes = [
      ...assigned.map((_, at) => this.to.tileType(before[at]!.type, extents[at]!)),
      ...tokens.map(() => types.token),
    ];
    const start = before.map((value, at) => this.to.value(value, extents[at]));
    const scalar = this.to.tileType('i32', []);
    const number = (value: number): Value => this.to.scalar(this.to.constant(value, 'i32'));
    const outer = this.places.get(axis);
    const enter = (values: readonly Value[]): void => {
      for (const [at, local] of assigned.entries())
        this.locals.set(local, this.to.tile(values[at]!, before[at]!.type, extents[at]!));
      for (const [at, name] of tokens.entries())
        this.memory.tokens.set(name, values[assigned.length + at]!);
    };
    const results = to.write('for', {
      results: carriedTypes,
      operands: [
        [
          number(0),
          this.countOf(axis),
          number(1),
          ...start,
          ...tokens.map((name) => this.memory.tokens.get(name)!),
        ],
      ],
      region: {
        arguments: [scalar, ...carriedTypes],
        write: ([step, ...values]) => {
          this.places.set(axis, step!);
          enter(values);
          this.statements(node.body);
          const after = assigned.map((local, at) => {
            const value = this.locals.get(local)!;
            const whole = joined(value.extents, extents[at]!);
            if (!sameExtents(whole, extents[at]!)) {
              this.carried.set(`${node.id} ${local}`, whole);
              this.foundMore = true;
              return start[at]!;
            }
            return this.to.value(value, whole);
          });
          to.write('continue', {
            operands: [[...after, ...tokens.map((name) => this.memory.tokens.get(name)!)]],
          });
        },
      },
    });
    if (outer === undefined) this.places.delete(axis);
    else this.places.set(axis, outer);
    enter(results);
  }

  /** The axis whose tiles a loop counts. */
  private axisOf(test: Expression | undefined): number | undefined {
    if (test?.op !== 'compare' || test.right.op !== 'abi') return undefined;
    const param = this.tree.abi[test.right.abi]!;
    const { name } = this.tree.params[param.param]!;
    const axis = this.form.axes.findIndex((_, at) => countName(at) === name);
    return axis < 0 ? undefined : axis;
  }
}

/** Variables that statements assign. */
function assignedIn(statements: readonly Statement[]): Set<number> {
  const found = new Set<number>();
  for (const each of statements) {
    if (each.kind === 'assign') found.add(each.local);
    const nested =
      each.kind === 'if'
        ? [...each.then, ...each.otherwise]
        : each.kind === 'loop' || each.kind === 'group'
          ? each.body
          : [];
    for (const local of assignedIn(nested)) found.add(local);
  }
  return found;
}
