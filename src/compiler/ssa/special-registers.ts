/** Special registers: the thread's indices, and the values that are computed from them. */
import type { SpecialName } from '../tree.js';
import type { Builder } from './builder.js';
import type { Value } from './function.js';

/** The highest value of each special register. */
const specialRanges: Readonly<Record<string, number>> = {
  'tid.x': 1023,
  'tid.y': 1023,
  'tid.z': 63,
  'ntid.x': 1024,
  'ntid.y': 1024,
  'ntid.z': 64,
  'ctaid.x': 2 ** 31 - 2,
  'ctaid.y': 65534,
  'ctaid.z': 65534,
  'nctaid.x': 2 ** 31 - 1,
  'nctaid.y': 65535,
  'nctaid.z': 65535,
  laneid: 31,
  // The bound is more than a block has on any device: 227 KiB (CUDA C++ Programming Guide, table of
  // compute capabilities).
  dynamic_smem_size: 2 ** 20,
};

function special(b: Builder, name: string): Value {
  const { block } = b.options;
  const axis = 'xyz'.indexOf(name.at(-1)!);
  if (block && name.startsWith('ntid.')) return b.constant('b32', block[axis]!);
  if (block && name.startsWith('tid.') && block[axis] === 1) return b.constant('b32', 0);
  const value = b.once('special', 'b32', [], name);
  let highest = specialRanges[name]!;
  if (block && name.startsWith('tid.')) highest = block[axis]! - 1;
  value.range = [name.startsWith('n') ? 1 : 0, highest];
  return value;
}

/** The thread's number in its block. */
function linearThread(b: Builder): Value {
  const [x, y, z] = ['tid.x', 'tid.y', 'tid.z'].map((name) => special(b, name)) as [
    Value,
    Value,
    Value,
  ];
  const rows = b.make('add', 'b32', [b.make('mul', 'b32', [z, special(b, 'ntid.y')]), y]);
  const value = b.make('add', 'b32', [b.make('mul', 'b32', [rows, special(b, 'ntid.x')]), x]);
  if (value.constant === undefined) value.range ??= [0, 1023];
  return value;
}

/**
 * An index over the grid. In a kernel with i32 indices no tensor has more than 2^31 - 1 elements,
 * so the index is not negative.
 */
function across(b: Builder, first: string, second: string, added: Value | undefined): Value {
  const [x, y] = [special(b, first), special(b, second)];
  if (b.tree.indexType === 'i64') {
    const product = b.make('mul', 'b64', [
      b.make('extend', 'b64', [x], '', 'u32'),
      b.make('extend', 'b64', [y], '', 'u32'),
    ]);
    return added === undefined
      ? product
      : b.make('add', 'b64', [product, b.make('extend', 'b64', [added], '', 'u32')]);
  }
  const product = b.make('mul', 'b32', [x, y]);
  if (product.constant === undefined) product.range ??= [added === undefined ? 1 : 0, 2 ** 31 - 1];
  const value = added === undefined ? product : b.make('add', 'b32', [product, added]);
  if (value.constant === undefined) value.range ??= [0, 2 ** 31 - 1];
  return value;
}

export function buildSpecial(b: Builder, name: SpecialName): Value {
  const axis = name.at(-1)!;
  switch (name.slice(0, -2)) {
    case 'threadIdx':
      return special(b, `tid.${axis}`);
    case 'blockIdx':
      return special(b, `ctaid.${axis}`);
    case 'blockDim':
      return special(b, `ntid.${axis}`);
    case 'gridDim':
      return special(b, `nctaid.${axis}`);
    case 'globalId':
      return across(b, `ctaid.${axis}`, `ntid.${axis}`, special(b, `tid.${axis}`));
    case 'globalSize':
      return across(b, `nctaid.${axis}`, `ntid.${axis}`, undefined);
    default:
      break;
  }
  switch (name) {
    case 'lane':
      return b.options.block && b.options.block[1] === 1 && b.options.block[2] === 1
        ? b.make('and', 'b32', [special(b, 'tid.x'), b.constant('b32', 31)])
        : special(b, 'laneid');
    case 'warp':
      return b.make('shr', 'b32', [linearThread(b), b.constant('b32', 5)], '', 'u32');
    case 'clusterRank':
      return special(b, 'cluster_ctarank');
    case 'dynamicSharedBytes':
      return special(b, 'dynamic_smem_size');
    default:
      return b.effect('clock', 'b64', [], name);
  }
}
