/** Expressions of a tile kernel's body, written for one slot of a thread. */
import type { AnyNode } from 'acorn';

import { propertyName } from '../read/property-name.js';
import { TILE_NAMES } from './tile-form.js';
import { TileScope, WHAT_IS_WRITTEN } from './tile-scope.js';
import type { Binding } from './tile-scope.js';
import { NO_AXES } from './tile-writer.js';
import type { Slot, Varies } from './tile-writer.js';

export abstract class TileExpressions extends TileScope {
  /** Loads, reductions and products that have been written, and the arrays that hold them. */
  protected readonly written = new Map<AnyNode, Binding & { readonly is: 'value' }>();

  varies(node: AnyNode): Varies {
    const written = this.written.get(node);
    if (written !== undefined) return written.varies;
    const binding = this.bindingOf(node);
    if (binding !== undefined)
      return binding.is === 'value' || binding.is === 'variable' ? binding.varies : NO_AXES;
    return operandsOf(node)
      .map((child) => this.varies(child))
      .reduce<Varies>((a, b) => this.join(node, a, b), NO_AXES);
  }

  /**
   * The axes of an operation on two values, element by element. Where both differ along rows, or
   * along columns, it has to be one axis.
   */
  protected join(node: AnyNode, a: Varies, b: Varies = NO_AXES): Varies {
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
        return this.fail(
          node,
          `${this.code(node)} is not supported in a tile kernel`,
          WHAT_IS_WRITTEN,
        );
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
          `${this.code(node)} represents a tile of ${this.axis(binding.axis).name}, and is ` +
            'no number',
          `Pass it to load and store: x.load(${this.code(node)}).`,
        );
      default:
        return this.fail(node, `${this.code(node)} as a whole is no value`, WHAT_IS_WRITTEN);
    }
  }
}

/** Expressions within an expression. */
export function operandsOf(node: AnyNode): AnyNode[] {
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
