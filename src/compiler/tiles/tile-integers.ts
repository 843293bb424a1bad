/**
 * Which values of a tile kernel's body are integers: products of integers are summed in i32, others
 * in f32. Types are the reader's, which reads the written text; what is written depends on this
 * one.
 */
import type { AnyNode } from 'acorn';

import { propertyName } from '../read/property-name.js';
import { TileExpressions } from './tile-expressions.js';
import { INTEGERS } from './tile-form.js';

/** A literal takes the type of what it is combined with. */
type Kind = 'integer' | 'literal' | 'other';

const COMBINING: readonly string[] = ['+', '-', '*', '/', '%', '&', '|', '^', '<<', '>>'];
const SAME_KIND: readonly string[] = ['min', 'max', 'abs'];

const combined = (kinds: readonly Kind[]): Kind =>
  kinds.includes('other') ? 'other' : kinds.includes('integer') ? 'integer' : 'literal';

export abstract class TileIntegers extends TileExpressions {
  /** Whether a value is computed from integers of at most 32 bits only. */
  protected isInteger(node: AnyNode): boolean {
    return this.kindOf(node) === 'integer';
  }

  /** Whether it is computed from something else, too. */
  protected isFraction(node: AnyNode): boolean {
    return this.kindOf(node) === 'other';
  }

  private kindOf(node: AnyNode): Kind {
    const binding = this.written.get(node) ?? this.bindingOf(node);
    if (binding !== undefined) {
      const entry = binding.is === 'param' ? this.definition.signature[binding.name] : undefined;
      const storage =
        binding.is === 'value' || binding.is === 'variable'
          ? binding.storage
          : entry?.kind === 'scalar'
            ? entry.storage
            : undefined;
      return storage !== undefined && INTEGERS.includes(storage) ? 'integer' : 'other';
    }
    switch (node.type) {
      case 'Literal':
        return Number.isInteger(node.value) && /^\w+$/.test(node.raw ?? '') ? 'literal' : 'other';
      case 'ParenthesizedExpression':
        return this.kindOf(node.expression);
      case 'UnaryExpression':
        return node.operator === '-' || node.operator === '~'
          ? this.kindOf(node.argument)
          : 'other';
      case 'BinaryExpression':
        return COMBINING.includes(node.operator)
          ? combined([this.kindOf(node.left), this.kindOf(node.right)])
          : 'other';
      case 'ConditionalExpression':
        return combined([this.kindOf(node.consequent), this.kindOf(node.alternate)]);
      case 'CallExpression':
        return this.kindOfCall(node);
      default:
        return 'other';
    }
  }

  private kindOfCall({ callee, arguments: given }: AnyNode & { type: 'CallExpression' }): Kind {
    const binding = this.bindingOf(callee);
    if (binding?.is === 'member')
      return (INTEGERS as readonly string[]).includes(binding.name) ? 'integer' : 'other';
    const isMath =
      callee.type === 'MemberExpression' &&
      callee.object.type === 'Identifier' &&
      callee.object.name === 'Math';
    return isMath && SAME_KIND.includes(propertyName(callee) ?? '')
      ? combined(given.map((each) => this.kindOf(each)))
      : 'other';
  }
}
