/** Expressions of a kernel's tree as JavaScript. */
import type {
  AbiParam,
  Expression,
  Place,
  Span,
  SpecialName,
  Statement,
  StorageType,
  ValueType,
} from '../tree.js';
import { isNarrow } from '../../ground/narrow-floats.js';
import { KernelWriter, isWaiting } from './kernel-writer.js';
import type { Rope } from './mapped-text.js';
import {
  PRECEDENCE,
  approximate,
  binary,
  bitcast,
  bound,
  compare,
  convert,
  infix,
  primary,
  unary,
} from './operators.js';
import type { Js } from './operators.js';
import { children } from './walk.js';

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

/** The value of an integer after it was written to a narrower type and read. */
const NARROW_INTEGERS: Partial<Record<string, (js: Js) => Js>> = {
  i8: (js) => infix('>>', infix('<<', js, primary('24')), primary('24')),
  i16: (js) => infix('>>', infix('<<', js, primary('16')), primary('16')),
  u8: (js) => infix('&', js, primary('255')),
  u16: (js) => infix('&', js, primary('65535')),
};

export abstract class ExpressionWriter extends KernelWriter {
  private readonly complex = new WeakMap<Expression, boolean>();

  /** Writes a statement as lines of its own. */
  protected abstract statement(node: Statement): void;

  /**
   * Gives a statement that is one expression. `alone`: it is a statement of its own, so that blocks
   * inside may come before it as statements.
   */
  protected abstract simple(node: Statement, alone: boolean): Js | undefined;

  /**
   * Whether an expression holds statements that JavaScript has no expression for: loops, groups,
   * ifs. They are written before the statement.
   */
  protected isComplex(node: Expression): boolean {
    let known = this.complex.get(node);
    if (known === undefined) {
      known =
        (node.op === 'block' && !node.statements.every((each) => this.isSimple(each))) ||
        children(node).some((child) => this.isComplex(child));
      this.complex.set(node, known);
    }
    return known;
  }

  protected isSimple(node: Statement): boolean {
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

  /**
   * Writes operands from left to right: an operand that statements of a later one follow is kept in
   * a variable.
   */
  protected operands(nodes: readonly Expression[]): Js[] {
    const last = nodes.reduce((latest, node, index) => (this.isComplex(node) ? index : latest), -1);
    return nodes.map((node, index) => {
      const js = this.expression(node);
      if (index >= last || node.op === 'constant') return js;
      const name = this.temporary();
      this.push([`const ${name} = `, bound(js, PRECEDENCE.assign), ';']);
      return primary(name);
    });
  }

  protected expression(node: Expression): Js {
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
        // clock and globaltimer are bigints already.
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
        // The distance of a shift is always a u32; the operator's row follows from the type of the
        // left operand.
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
      case 'atomic':
        return this.atomic(node);
      case 'shuffle': {
        const [value, lane, mask] = this.operands([node.value, node.lane, node.mask]) as [
          Js,
          Js,
          Js,
        ];
        return this.synchronise(
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
        return this.synchronise(
          `gpu.warp.${node.mode}`,
          this.operands([node.predicate, node.mask]),
          node.span,
        );
      case 'match':
        return this.synchronise(
          'gpu.warp.match',
          this.operands([node.value, node.mask]),
          node.span,
        );
      case 'activemask':
        return this.synchronise('gpu.warp.activeMask', [], node.span);
      case 'barrierReduce':
        return this.synchronise(
          `gpu.block.${node.mode}`,
          [this.expression(node.predicate)],
          node.span,
        );
      case 'block':
        return this.sequence(node);
    }
  }

  private atomic(node: Expression & { op: 'atomic' }): Js {
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

  /** Statements within an expression, and then its value. */
  private sequence(node: Expression & { op: 'block' }): Js {
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
      case 'map':
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

  protected memory({ memory, field }: Place): string {
    const name =
      memory.kind === 'param' ? this.paramNames[memory.param]! : this.arrayNames[memory.array]!;
    return field === undefined ? name : `${name}.fields${member(field.name)}`;
  }

  /** The value after it was written with this storage type and read. */
  private narrowed(storage: StorageType, value: Js): Js {
    if (isNarrow(storage)) return this.call('narrowed', primary(`'${storage}'`), value);
    return NARROW_INTEGERS[storage]?.(value) ?? value;
  }

  /** Typed arrays are indexed by numbers. */
  protected asIndex(place: Place, index: Js): Js {
    return place.index.type === 'i64' || place.index.type === 'u64'
      ? this.call('Number', index)
      : index;
  }

  /** Writes an operation at which the thread waits for others. */
  protected synchronise(request: string, operands: readonly Js[], span: Span): Js {
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
