/** Statements of a kernel's tree as JavaScript, one to a line. */
import type { Expression, Statement } from '../tree.js';
import { ExpressionWriter } from './expression-writer.js';
import type { Rope } from './mapped-text.js';
import { PRECEDENCE, bound, prefix, primary } from './operators.js';
import type { Js } from './operators.js';

/** A loop or group that is being written. */
interface Target {
  readonly id: number;
  readonly isLoop: boolean;
  /** The form of `continue`; undefined in groups. */
  readonly turn: 'continue' | 'label' | undefined;
  /** Whether a jump leaves it by its name. */
  named: boolean;
  /** Whether a jump leaves its body for the update by name. */
  turned: boolean;
}

export abstract class StatementWriter extends ExpressionWriter {
  private readonly targets: Target[] = [];

  protected list(statements: readonly Statement[]): void {
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
  protected statement(node: Statement, declares?: number): void {
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
      // Those that are simulated have no effect.
      case 'instruction':
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

  protected simple(node: Statement, alone: boolean): Js | undefined {
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
        return this.synchronise(`gpu.${node.of}.sync`, operands, node.span);
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
        return this.synchronise(
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
        return this.synchronise(
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

  /** Whether test and update can be in the head of a `for`. */
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
}
