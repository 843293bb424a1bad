/** Operations of a warp: shuffles, votes and matches. */
import type { Expression } from '../tree.js';
import type { Builder } from './builder.js';
import { convert } from './conversions.js';
import type { Value } from './function.js';

/** The operand of shfl: lanes of a segment in the upper byte, its last lane in the lower. */
function segment(mode: string, width: number): number {
  return ((32 - width) << 8) | (mode === 'up' ? 0 : 31);
}

export function buildShuffle(b: Builder, node: Extract<Expression, { op: 'shuffle' }>): Value {
  const value = b.value(node.value);
  const lane = b.value(node.lane);
  const mask = b.value(node.mask);
  const detail = `${node.mode} ${segment(node.mode, node.width)}`;
  const one = (part: Value): Value => b.effect('shuffle', 'b32', [part, lane, mask], detail);
  switch (value.type) {
    case 'pred':
      return b.make(
        'compare',
        'pred',
        [one(convert(b, value, 'bool', 'i32')), b.constant('b32', 0)],
        'ne',
        's32',
      );
    case 'b32':
      return one(value);
    case 'f32':
      return b.make('bits', 'f32', [one(b.make('bits', 'b32', [value]))]);
    default: {
      const bits = value.type === 'f64' ? b.make('bits', 'b64', [value]) : value;
      const low = one(b.make('low', 'b32', [bits]));
      const both = b.make('pair', 'b64', [low, one(b.make('high', 'b32', [bits]))]);
      return value.type === 'f64' ? b.make('bits', 'f64', [both]) : both;
    }
  }
}

export function buildVote(b: Builder, node: Extract<Expression, { op: 'vote' }>): Value {
  const predicate = b.value(node.predicate);
  return b.effect(
    'vote',
    node.mode === 'ballot' ? 'b32' : 'pred',
    [predicate, b.value(node.mask)],
    node.mode,
  );
}

export function buildMatch(b: Builder, node: Extract<Expression, { op: 'match' }>): Value {
  const value = b.value(node.value);
  return b.effect('match', 'b32', [bitsOf(b, value), b.value(node.mask)]);
}

function bitsOf(b: Builder, value: Value): Value {
  switch (value.type) {
    case 'f32':
      return b.make('bits', 'b32', [value]);
    case 'f64':
      return b.make('bits', 'b64', [value]);
    case 'pred':
      return convert(b, value, 'bool', 'i32');
    default:
      return value;
  }
}
