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
 * The last argument of what can fail is the number of its place in the source (`sites`). Where
 * threads meet, the generator yields what it waits for and gets the answer: `yield
 * gpu.block.sync(3)`.
 */
import type {
  AbiParam,
  Expression,
  KernelTree,
  Place,
  Span,
  SpecialName,
  Statement,
  StorageType,
  ValueType,
} from '../tree.js';
import type { Locate } from './failure.js';
import { MappedText, inlineMap } from './mapped-text.js';
import type { Rope } from './mapped-text.js';
import { isNarrow } from '../../ground/narrow-floats.js';
import {
  PRECEDENCE,
  approximate,
  binary,
  bitcast,
  bound,
  compare,
  convert,
  infix,
  prefix,
  primary,
  unary,
} from './operators.js';
import type { Js } from './operators.js';
import { RESERVED_NAMES } from './reserved-names.js';
import { RUNTIME_NAMES } from './runtime.js';
import { declarationsOf } from './scopes.js';
import type { Declaration } from './scopes.js';
import { children, walk } from './walk.js';

/** JavaScript of a kernel. */
export interface KernelJavaScript {
  /**
   * An expression whose value takes the runtime and gives the kernel's function; with its source
   * map.
   */
  readonly code: string;
  /** Places in the source by the numbers that the code has. */
  readonly sites: readonly Span[];
  /** Threads meet somewhere, so that they have to run in turns. */
  readonly generator: boolean;
}

export interface JavaScriptOptions {
  /**
   * Places in the user's file; without it the map leads to the kernel's own text, which it carries.
   */
  readonly locate?: Locate | undefined;
  /** Name of the generated script, as debuggers and stacks show it. */
  readonly sourceURL?: string | undefined;
}

export function writeJavaScript(
  tree: KernelTree,
  options: JavaScriptOptions = {},
): KernelJavaScript {
  return new Writer(tree).write(options);
}

/** Operations at which a thread waits for others. */
const MEETING: ReadonlySet<Expression['op']> = new Set([
  'shuffle',
  'vote',
  'match',
  'activemask',
  'barrierReduce',
]);

/**
 * A loop that reads what other threads may change waits for them, so that they have to run
 * meanwhile.
 */
const isWaiting = (node: Expression): boolean =>
  (node.op === 'load' && node.cache === 'volatile') ||
  (node.op === 'atomic' && (node.operator === 'cas' || node.operator === 'exch'));

const ATOMIC_METHODS = {
  add: 'atomicAdd',
  min: 'atomicMin',
  max: 'atomicMax',
  and: 'atomicAnd',
  or: 'atomicOr',
  xor: 'atomicXor',
  exch: 'atomicExchange',
  cas: 'atomicCompareExchange',
} as const;

const SPECIALS: Partial<Record<SpecialName, string>> = {
  lane: 'gpu.lane',
  warp: 'gpu.warpIdx',
  clock: 'gpu.clock()',
  globaltimer: 'gpu.globalTimer()',
};

/** What an integer looks like after it was written to a narrower one. */
const NARROW_INTEGERS: Partial<Record<string, (js: Js) => Js>> = {
  i8: (js) => infix('>>', infix('<<', js, primary('24')), primary('24')),
  i16: (js) => infix('>>', infix('<<', js, primary('16')), primary('16')),
  u8: (js) => infix('&', js, primary('255')),
  u16: (js) => infix('&', js, primary('65535')),
};

interface Line {
  readonly indent: number;
  readonly rope: Rope;
}

/** A loop or group that is being written. */
interface Target {
  readonly id: number;
  readonly isLoop: boolean;
  /** How `continue` is written; undefined in groups. */
  readonly turn: 'continue' | 'label' | undefined;
  /** Something leaves it by its name. */
  named: boolean;
  /** Something leaves its body for the update by name. */
  turned: boolean;
}

/** Declarations at one statement. */
interface Declared {
  readonly before: number[];
  by?: number;
}

class Writer {
  private lines: Line[] = [];
  private indent = 2;
  private readonly sites: Span[] = [];
  private readonly used = new Set<string>();
  private readonly targets: Target[] = [];
  private readonly complex = new WeakMap<Expression, boolean>();
  private readonly declarations: readonly (Declaration | undefined)[];
  private readonly declared = new Map<readonly Statement[], Map<number, Declared>>();
  private readonly assignments: number[];
  private readonly localNames: string[] = [];
  private readonly paramNames: string[];
  private readonly arrayNames: string[];
  private readonly functionName: string;
  private readonly generator: boolean;
  private readonly tree: KernelTree;
  private temporaries = 0;

  constructor(tree: KernelTree) {
    this.tree = tree;
    const taken = new Set<string>([...RESERVED_NAMES, ...RUNTIME_NAMES, 'gpu', 'runtime']);
    const name = (wanted: string): string => {
      const free = freeName(wanted, (candidate) => !taken.has(candidate));
      taken.add(free);
      return free;
    };
    this.functionName = name(tree.name);
    this.paramNames = tree.params.map((param) => name(param.name));
    this.arrayNames = tree.arrays.map((array) => name(array.name));
    this.declarations = declarationsOf(tree);
    this.nameLocals(taken);

    let meets = false;
    this.assignments = tree.locals.map(() => 0);
    walk(tree.body, {
      expression: (node, inLoop) => {
        meets ||= MEETING.has(node.op) || (inLoop && isWaiting(node));
      },
      statement: (node) => {
        meets ||=
          node.kind === 'barrier' || node.kind === 'matrixProduct' || node.kind === 'loadMatrices';
        if (node.kind === 'assign') this.assignments[node.local]!++;
      },
    });
    this.generator = meets;
  }

  /** Variables of one name keep it where their scopes lie apart. */
  private nameLocals(taken: ReadonlySet<string>): void {
    const named: { name: string; declaration: Declaration }[] = [];
    this.tree.locals.forEach((local, index) => {
      const declaration = this.declarations[index];
      if (declaration === undefined) return;
      const { list, within } = declaration;
      const overlaps = (other: Declaration): boolean =>
        within.has(other.list) || other.within.has(list);
      const name = freeName(
        local.name,
        (candidate) =>
          !taken.has(candidate) &&
          named.every((each) => each.name !== candidate || !overlaps(each.declaration)),
      );
      named.push({ name, declaration });
      this.localNames[index] = name;
      let here = this.declared.get(list);
      if (here === undefined) this.declared.set(list, (here = new Map<number, Declared>()));
      let at = here.get(declaration.index);
      if (at === undefined) here.set(declaration.index, (at = { before: [] }));
      if (declaration.byAssignment) at.by = index;
      else at.before.push(index);
    });
  }

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

  private push(rope: Rope): void {
    this.lines.push({ indent: this.indent, rope });
  }

  /** Lines that `write` gives, one step further in. */
  private inner(write: () => void): Line[] {
    const { lines } = this;
    const inner: Line[] = [];
    this.lines = inner;
    this.indent++;
    write();
    this.indent--;
    this.lines = lines;
    return inner;
  }

  private block(head: Rope, inner: readonly Line[], tail: Rope = '}'): void {
    this.push(head);
    this.lines.push(...inner);
    this.push(tail);
  }

  private readonly call = (name: string, ...operands: readonly Js[]): Js => {
    if (RUNTIME_NAMES.has(name)) this.used.add(name);
    return {
      rope: [
        name,
        '(',
        ...operands.flatMap((each, index) => [
          index > 0 ? ', ' : '',
          bound(each, PRECEDENCE.assign),
        ]),
        ')',
      ],
      precedence: PRECEDENCE.call,
    };
  };

  private site(span: Span): Js {
    this.sites.push(span);
    return primary(`${this.sites.length - 1}`);
  }

  private temporary(): string {
    return `$${this.temporaries++}`;
  }

  // Statements.

  private list(statements: readonly Statement[]): void {
    const here = this.declared.get(statements);
    for (let index = 0; index < statements.length; index++) {
      const at = here?.get(index);
      for (const local of at?.before ?? []) this.push(`let ${this.localNames[local]!};`);
      const statement = statements[index]!;
      const next = statements[index + 1];
      if (
        at?.by !== undefined &&
        statement.kind === 'assign' &&
        next?.kind === 'loop' &&
        this.declarations[at.by]!.last === index + 1 &&
        this.inHead(next) &&
        !this.isComplex(statement.value) &&
        here?.get(index + 1) === undefined
      ) {
        this.loop(next, [
          { at: statement.span },
          `let ${this.localNames[at.by]!} = `,
          bound(this.expression(statement.value), PRECEDENCE.assign),
        ]);
        index++;
        continue;
      }
      this.statement(statement, at?.by);
    }
  }

  /** `declares`: the variable that this assignment declares. */
  private statement(node: Statement, declares?: number): void {
    switch (node.kind) {
      case 'assign':
      case 'store':
      case 'clear':
      case 'evaluate':
      case 'barrier':
      case 'print':
      case 'assert':
      case 'trap':
      case 'matrixProduct':
      case 'loadMatrices':
      case 'copyAsync':
      case 'copyCommit':
      case 'copyWait': {
        const js = this.simple(node, true);
        if (js === undefined) return;
        const keyword =
          declares === undefined
            ? ''
            : this.tree.locals[declares]!.constant && this.assignments[declares] === 1
              ? 'const '
              : 'let ';
        this.push([{ at: node.span }, keyword, js.rope, ';']);
        return;
      }
      case 'fence':
        return;
      case 'if': {
        this.conditional(node, '');
        return;
      }
      case 'loop': {
        this.loop(node, undefined);
        return;
      }
      case 'group': {
        this.group(node);
        return;
      }
      case 'break':
      case 'continue': {
        this.push([{ at: node.span }, this.jump(node), ';']);
        return;
      }
      case 'return': {
        this.push([{ at: node.span }, 'return;']);
        return;
      }
    }
  }

  /**
   * A statement that is one expression. `alone`: it stands by itself, so that blocks inside may
   * come before it as statements.
   */
  private simple(node: Statement, alone: boolean): Js | undefined {
    const first = (value: Expression): Js => {
      if (!alone || value.op !== 'block') return this.expression(value);
      value.statements.forEach((each) => {
        this.statement(each);
      });
      return first(value.value);
    };
    switch (node.kind) {
      case 'assign':
        return {
          rope: [this.localNames[node.local]!, ' = ', bound(first(node.value), PRECEDENCE.assign)],
          precedence: PRECEDENCE.assign,
        };
      case 'evaluate': {
        const js = first(node.value);
        return node.value.op === 'constant' || node.value.op === 'local' ? undefined : js;
      }
      case 'store': {
        const [index, value] = this.operands([node.place.index, node.value]) as [Js, Js];
        return this.call(
          `${this.memory(node.place)}.store`,
          this.asIndex(node.place, index),
          value,
          this.site(node.span),
        );
      }
      case 'clear':
        return this.call(`${this.arrayNames[node.array]!}.clear`);
      case 'barrier': {
        const operands = node.of === 'warp' ? [first(node.mask)] : [];
        return this.meet(`gpu.${node.of}.sync`, operands, node.span);
      }
      case 'print': {
        const values = this.operands(node.values);
        return this.call(
          'gpu.print',
          primary(JSON.stringify(node.format)),
          primary([
            '[',
            ...values.flatMap((each, index) => [
              index > 0 ? ', ' : '',
              bound(each, PRECEDENCE.assign),
            ]),
            ']',
          ]),
        );
      }
      case 'assert':
        return this.call(
          'gpu.assert',
          first(node.test),
          primary(JSON.stringify(node.message)),
          this.site(node.span),
        );
      case 'trap':
        return this.call('gpu.trap', this.site(node.span));
      case 'matrixProduct': {
        const parts = [node.sum, node.a, node.b];
        const indices = this.operands(parts.map(({ index }) => index));
        return this.meet(
          'gpu.warp.mma',
          [
            primary(`'${node.shape}'`),
            primary(`'${node.type}'`),
            ...parts.flatMap(({ array }, at) => [primary(this.arrayNames[array]!), indices[at]!]),
          ],
          node.span,
        );
      }
      case 'loadMatrices': {
        const [index, fromIndex] = this.operands([node.to.index, node.from.index]) as [Js, Js];
        return this.meet(
          'gpu.warp.loadMatrices',
          [
            primary('gpu.lane'),
            primary(this.arrayNames[node.to.array]!),
            index,
            primary(this.memory(node.from)),
            this.asIndex(node.from, fromIndex),
            primary(`${node.to.length / 2}`),
            primary(String(node.transposed)),
          ],
          node.span,
        );
      }
      case 'copyAsync': {
        const [index, fromIndex, given] = this.operands([
          node.to.index,
          node.from.index,
          ...(node.given === undefined ? [] : [node.given]),
        ]) as [Js, Js, Js | undefined];
        return this.call(
          'gpu.async.copy',
          primary(this.memory(node.to)),
          this.asIndex(node.to, index),
          primary(this.memory(node.from)),
          this.asIndex(node.from, fromIndex),
          primary(`${node.count}`),
          given ?? primary(`${node.count}`),
          this.site(node.span),
        );
      }
      case 'copyCommit':
        return this.call('gpu.async.commit');
      case 'copyWait':
        return this.call('gpu.async.wait', primary(`${node.pending}`));
      default:
        return undefined;
    }
  }

  private conditional(node: Statement & { kind: 'if' }, before: string): void {
    const test = this.expression(node.test);
    const then = this.inner(() => {
      this.list(node.then);
    });
    this.push([{ at: node.span }, before, 'if (', test.rope, ') {']);
    this.lines.push(...then);
    const only =
      node.otherwise.length === 1 && !this.declared.has(node.otherwise)
        ? node.otherwise[0]!
        : undefined;
    if (only?.kind === 'if' && !this.isComplex(only.test)) {
      this.conditional(only, '} else ');
      return;
    }
    if (node.otherwise.length > 0) {
      const otherwise = this.inner(() => {
        this.list(node.otherwise);
      });
      this.push('} else {');
      this.lines.push(...otherwise);
    }
    this.push('}');
  }

  /** Whether test and update can stand in the head of a `for`. */
  private inHead(node: Statement & { kind: 'loop' }): boolean {
    return (
      !node.testAfter &&
      (node.test === undefined || !this.isComplex(node.test)) &&
      node.update.every((each) => this.isSimple(each))
    );
  }

  private loop(node: Statement & { kind: 'loop' }, start: Rope | undefined): void {
    const inHead = this.inHead(node);
    const asDo =
      node.testAfter &&
      node.update.length === 0 &&
      node.test !== undefined &&
      !this.isComplex(node.test);
    const target: Target = {
      id: node.id,
      isLoop: true,
      turn: inHead || asDo ? 'continue' : 'label',
      named: false,
      turned: false,
    };
    const at = { at: node.span };
    const label = (): string => (target.named ? `loop${node.id}: ` : '');
    this.targets.push(target);
    if (inHead || asDo) {
      const body = this.inner(() => {
        this.list(node.body);
      });
      const test = node.test === undefined ? undefined : this.expression(node.test).rope;
      const update = node.update.flatMap((each, index) => {
        const js = this.simple(each, false);
        return js === undefined ? [] : [index > 0 ? ', ' : '', { at: each.span }, js.rope];
      });
      if (asDo) this.block([at, label(), 'do {'], body, ['} while (', test!, ');']);
      else if (start === undefined && update.length === 0 && test !== undefined)
        this.block([at, label(), 'while (', test, ') {'], body);
      else
        this.block(
          [
            at,
            label(),
            'for (',
            start ?? '',
            test === undefined ? ';' : ['; ', test],
            update.length === 0 ? ';' : ['; ', update],
            ') {',
          ],
          body,
        );
      this.targets.pop();
      return;
    }
    const leave = (): void => {
      if (node.test === undefined) return;
      const test = this.expression(node.test);
      this.push([{ at: node.test.span }, 'if (', prefix('!', test).rope, ') break;']);
    };
    const inner = this.inner(() => {
      if (!node.testAfter) leave();
      const plain = this.inner(() => {
        this.list(node.body);
      });
      if (target.turned) this.block(`turn${node.id}: {`, plain);
      else this.lines.push(...plain.map(({ indent, rope }) => ({ indent: indent - 1, rope })));
      this.list(node.update);
      if (node.testAfter) leave();
    });
    this.targets.pop();
    this.block([at, label(), 'for (;;) {'], inner);
  }

  private group(node: Statement & { kind: 'group' }): void {
    const target: Target = {
      id: node.id,
      isLoop: false,
      turn: undefined,
      named: false,
      turned: false,
    };
    this.targets.push(target);
    const body = this.inner(() => {
      this.list(node.body);
    });
    this.targets.pop();
    this.block([{ at: node.span }, target.named ? `group${node.id}: {` : '{'], body);
  }

  private jump(node: Statement & { kind: 'break' | 'continue' }): string {
    const target = this.targets.find((each) => each.id === node.id);
    if (target === undefined)
      throw new Error(
        `the tree of kernel '${this.tree.name}' leaves ${node.id}, which is not around it`,
      );
    if (node.kind === 'continue' && target.turn === 'label') {
      target.turned = true;
      return `break turn${node.id}`;
    }
    // Without a name both mean the innermost loop.
    if (target.isLoop && this.targets.filter((each) => each.isLoop).at(-1) === target)
      return node.kind;
    target.named = true;
    return `${node.kind} ${target.isLoop ? 'loop' : 'group'}${node.id}`;
  }

  // Expressions.

  /**
   * Holds statements that JavaScript has no expression for: loops, groups, ifs. They are written
   * before the statement.
   */
  private isComplex(node: Expression): boolean {
    let known = this.complex.get(node);
    if (known === undefined) {
      known =
        (node.op === 'block' && !node.statements.every((each) => this.isSimple(each))) ||
        children(node).some((child) => this.isComplex(child));
      this.complex.set(node, known);
    }
    return known;
  }

  private isSimple(node: Statement): boolean {
    switch (node.kind) {
      case 'assign':
      case 'evaluate':
        return !this.isComplex(node.value);
      case 'store':
        return !this.isComplex(node.place.index) && !this.isComplex(node.value);
      case 'assert':
        return !this.isComplex(node.test);
      case 'print':
        return !node.values.some((each) => this.isComplex(each));
      case 'barrier':
        return node.of !== 'warp' || !this.isComplex(node.mask);
      case 'matrixProduct':
        return ![node.sum, node.a, node.b].some(({ index }) => this.isComplex(index));
      case 'loadMatrices':
        return !this.isComplex(node.to.index) && !this.isComplex(node.from.index);
      case 'copyAsync':
        return (
          !this.isComplex(node.to.index) &&
          !this.isComplex(node.from.index) &&
          (node.given === undefined || !this.isComplex(node.given))
        );
      case 'clear':
      case 'trap':
      case 'fence':
      case 'copyCommit':
      case 'copyWait':
        return true;
      default:
        return false;
    }
  }

  /** Operands from left to right: one that is followed by statements is kept in a variable. */
  private operands(nodes: readonly Expression[]): Js[] {
    const last = nodes.reduce((latest, node, index) => (this.isComplex(node) ? index : latest), -1);
    return nodes.map((node, index) => {
      const js = this.expression(node);
      if (index >= last || node.op === 'constant') return js;
      const name = this.temporary();
      this.push([`const ${name} = `, bound(js, PRECEDENCE.assign), ';']);
      return primary(name);
    });
  }

  private expression(node: Expression): Js {
    const { rope, precedence } = this.plain(node);
    return { rope: [{ at: node.span }, rope], precedence };
  }

  private plain(node: Expression): Js {
    switch (node.op) {
      case 'constant':
        return constant(node.type, node.value);
      case 'local':
        return primary(this.localNames[node.local]!);
      case 'abi':
        return this.abi(this.tree.abi[node.abi]!);
      case 'special': {
        const js = primary(SPECIALS[node.name] ?? `gpu.${node.name}`);
        // clock and globaltimer are bigints as they are.
        return node.name === 'clock' || node.name === 'globaltimer'
          ? js
          : convert('i32', node.type, js, this.call);
      }
      case 'unary':
        return unary(
          node.operator,
          node.type,
          node.operand.type,
          this.expression(node.operand),
          this.call,
        );
      case 'binary': {
        const [left, right] = this.operands([node.left, node.right]) as [Js, Js];
        const divides =
          (node.operator === 'div' || node.operator === 'rem') &&
          node.type !== 'f32' &&
          node.type !== 'f64';
        const divisor =
          divides && node.right.op !== 'constant'
            ? this.call('divisor', right, this.site(node.span))
            : right;
        // The distance of a shift is a u32 always, but what counts is the type of what is shifted.
        return binary(node.operator, node.type, left, divisor, this.call);
      }
      case 'fma':
        return this.call(
          node.type === 'f32' ? 'fma32' : 'fma64',
          ...this.operands([node.a, node.b, node.c]),
        );
      case 'compare': {
        const [left, right] = this.operands([node.left, node.right]) as [Js, Js];
        return compare(node.operator, left, right);
      }
      case 'logical':
        return this.logical(node);
      case 'conditional':
        return this.choice(node);
      case 'convert':
        if (node.odd) return this.call('roundToOdd', this.expression(node.operand));
        return convert(node.operand.type, node.type, this.expression(node.operand), this.call);
      case 'narrow':
        return this.narrowed(node.storage, this.expression(node.operand));
      case 'bitcast':
        return bitcast(node.operand.type, node.type, this.expression(node.operand), this.call);
      case 'approximate':
        return approximate(node.name, this.operands(node.operands), this.call);
      case 'load': {
        const index = this.expression(node.place.index);
        const js = this.call(
          `${this.memory(node.place)}.load`,
          this.asIndex(node.place, index),
          this.site(node.span),
        );
        return this.afterTurn(node, js);
      }
      case 'atomic': {
        const values = node.compare === undefined ? [node.operand] : [node.compare, node.operand];
        const [index, ...operands] = this.operands([node.place.index, ...values]) as [Js, ...Js[]];
        const stored = operands.map((operand) => this.narrowed(node.place.storage, operand));
        const js = this.call(
          `${this.memory(node.place)}.${ATOMIC_METHODS[node.operator]}`,
          this.asIndex(node.place, index),
          ...stored,
          this.site(node.span),
        );
        return this.afterTurn(node, js);
      }
      case 'shuffle': {
        const [value, lane, mask] = this.operands([node.value, node.lane, node.mask]) as [
          Js,
          Js,
          Js,
        ];
        return this.meet(
          'gpu.warp.shuffle',
          [
            primary(`'${node.mode}'`),
            value,
            convertedTo32(node.lane.type, lane, this.call),
            primary(`${node.width}`),
            mask,
          ],
          node.span,
        );
      }
      case 'vote':
        return this.meet(
          `gpu.warp.${node.mode}`,
          this.operands([node.predicate, node.mask]),
          node.span,
        );
      case 'match':
        return this.meet('gpu.warp.match', this.operands([node.value, node.mask]), node.span);
      case 'activemask':
        return this.meet('gpu.warp.activeMask', [], node.span);
      case 'barrierReduce':
        return this.meet(`gpu.block.${node.mode}`, [this.expression(node.predicate)], node.span);
      case 'block': {
        if (this.isComplex(node)) {
          node.statements.forEach((each) => {
            this.statement(each);
          });
          return this.expression(node.value);
        }
        const parts = node.statements.flatMap((each) => {
          const js = this.simple(each, false);
          return js === undefined ? [] : [[{ at: each.span }, js.rope] as Rope];
        });
        const value = this.expression(node.value);
        if (parts.length === 0) return value;
        return {
          rope: [...parts.flatMap((part) => [part, ', ']), bound(value, PRECEDENCE.assign)],
          precedence: PRECEDENCE.comma,
        };
      }
    }
  }

  private logical(node: Expression & { op: 'logical' }): Js {
    const left = this.expression(node.left);
    if (!this.isComplex(node.right))
      return infix(node.operator === 'and' ? '&&' : '||', left, this.expression(node.right));
    const name = this.temporary();
    this.push([`let ${name} = `, bound(left, PRECEDENCE.assign), ';']);
    const inner = this.inner(() => {
      this.keep(name, node.right);
    });
    this.block(`if (${node.operator === 'and' ? '' : '!'}${name}) {`, inner);
    return primary(name);
  }

  private choice(node: Expression & { op: 'conditional' }): Js {
    const test = this.expression(node.test);
    if (!this.isComplex(node.then) && !this.isComplex(node.otherwise)) {
      const rope = [
        bound(test, PRECEDENCE.or),
        ' ? ',
        bound(this.expression(node.then), PRECEDENCE.assign),
        ' : ',
        bound(this.expression(node.otherwise), PRECEDENCE.assign),
      ];
      return { rope, precedence: PRECEDENCE.conditional };
    }
    const name = this.temporary();
    this.push(`let ${name};`);
    const then = this.inner(() => {
      this.keep(name, node.then);
    });
    const otherwise = this.inner(() => {
      this.keep(name, node.otherwise);
    });
    this.push(['if (', test.rope, ') {']);
    this.lines.push(...then);
    this.block('} else {', otherwise);
    return primary(name);
  }

  private keep(name: string, node: Expression): void {
    const js = this.expression(node);
    this.push([`${name} = `, bound(js, PRECEDENCE.assign), ';']);
  }

  private abi(abi: AbiParam): Js {
    const name = this.paramNames[abi.param]!;
    const counted = (text: string): Js =>
      this.tree.indexType === 'i64' ? this.call('BigInt', primary(text)) : primary(text);
    switch (abi.kind) {
      case 'pointer':
        throw new Error(`the tree of kernel '${this.tree.name}' reads the address of '${name}'`);
      case 'length':
        return counted(`${name}.length`);
      case 'extent':
        return counted(`${name}.shape[${abi.axis}]`);
      case 'stride':
        return counted(`${name}.strides[${abi.axis}]`);
      case 'scalar': {
        const param = this.tree.params[abi.param]!;
        if (param.kind !== 'struct' || abi.field === undefined) return primary(name);
        return primary(`${name}${member(param.struct.fields[abi.field]!.name)}`);
      }
    }
  }

  private memory({ memory, field }: Place): string {
    const name =
      memory.kind === 'param' ? this.paramNames[memory.param]! : this.arrayNames[memory.array]!;
    return field === undefined ? name : `${name}.fields${member(field.name)}`;
  }

  /** What would be read if it were written there. */
  private narrowed(storage: StorageType, value: Js): Js {
    if (isNarrow(storage)) return this.call('narrowed', primary(`'${storage}'`), value);
    return NARROW_INTEGERS[storage]?.(value) ?? value;
  }

  /** Indices are numbers to typed arrays. */
  private asIndex(place: Place, index: Js): Js {
    return place.index.type === 'i64' || place.index.type === 'u64'
      ? this.call('Number', index)
      : index;
  }

  /** The thread waits for others. */
  private meet(request: string, operands: readonly Js[], span: Span): Js {
    return {
      rope: ['yield ', this.call(request, ...operands, this.site(span)).rope],
      precedence: PRECEDENCE.assign,
    };
  }

  private afterTurn(node: Expression, js: Js): Js {
    if (!this.generator || !isWaiting(node)) return js;
    return { rope: ['yield gpu.turn(), ', js.rope], precedence: PRECEDENCE.comma };
  }
}

function freeName(wanted: string, isFree: (candidate: string) => boolean): string {
  const valid = /^[A-Za-z_$][\w$]*$/.test(wanted) ? wanted : `_${wanted.replace(/[^\w$]/gu, '_')}`;
  let candidate = valid;
  // `$` and a number are temporaries.
  for (let number = 2; !isFree(candidate) || /^\$\d+$/.test(candidate); number++)
    candidate = `${valid}$${number}`;
  return candidate;
}

const member = (name: string): string =>
  /^[A-Za-z_$][\w$]*$/.test(name) ? `.${name}` : `[${JSON.stringify(name)}]`;

function convertedTo32(
  type: ValueType,
  js: Js,
  call: (name: string, ...operands: readonly Js[]) => Js,
): Js {
  return type === 'i64' || type === 'u64' ? convert(type, 'i32', js, call) : js;
}

function constant(type: ValueType, value: number | bigint | boolean): Js {
  const text = typeof value === 'bigint' ? `${value}n` : Object.is(value, -0) ? '-0' : `${value}`;
  if (text.startsWith('-')) return { rope: text, precedence: PRECEDENCE.unary };
  return primary(type === 'bool' ? String(Boolean(value)) : text);
}
