/**
 * Random trees of operations, and a model of their results: nested lists of elements. The model has
 * no memory; which tensors are open after a run follows from the rule of ownership: those of the
 * value, those that were kept, and no others.
 */
import { f32, keep, parallel, u8, zip } from 'async-cuda';
import type { DeviceOp, SharedOp, Tensor, Device } from 'async-cuda';
import { allOf, value } from 'async-cuda/ops';
import { add, sum } from 'async-cuda/library';
import * as fc from '../fast-check.js';

/** Elements of every tensor. */
export const COUNT = 4;

export type Leaf =
  | { readonly kind: 'make'; readonly value: number }
  | { readonly kind: 'fail'; readonly how: 'callback' | 'device' }
  /** Uses the value that an enclosing callback received: the innermost one, or an outer one. */
  | { readonly kind: 'received'; readonly out: number; readonly how: ReceivedUse }
  | { readonly kind: 'shared'; readonly which: number };
export type ReceivedUse =
  'itself' | 'plus one' | 'copy' | 'read and copy' | 'kept' | 'kept by a view' | 'reduced to views';

export type Tree =
  | Leaf
  | { readonly kind: 'andThen'; readonly of: Tree; readonly then: Tree }
  | { readonly kind: 'map'; readonly of: Tree; readonly how: Mapping }
  | { readonly kind: 'zip' | 'all' | 'parallel'; readonly of: readonly Tree[] }
  | { readonly kind: 'orElse' | 'ensure'; readonly of: Tree; readonly other: Tree }
  | { readonly kind: 'when'; readonly of: Tree; readonly then: Tree; readonly holds: boolean }
  | { readonly kind: 'repeat'; readonly of: Tree; readonly body: Tree; readonly turns: number }
  | { readonly kind: 'label'; readonly of: Tree };
export type Mapping =
  | 'view'
  | 'two views'
  | 'owner and view'
  | 'first'
  | 'nothing'
  | 'object'
  | 'Map and Set'
  | 'partition'
  | 'twice';

/** The result of a tree: elements of tensors, in lists. */
export type Elements = number[] | readonly Elements[];
type Value =
  Tensor | readonly Value[] | Record<string, unknown> | Map<unknown, unknown> | Set<unknown>;

export class Failure extends Error {}

export const trees: fc.Arbitrary<Tree> = fc.letrec<{ tree: Tree; leaf: Leaf }>((tie) => ({
  leaf: fc.oneof(
    {
      weight: 6,
      arbitrary: fc.record({
        kind: fc.constant('make' as const),
        value: fc.integer({ min: 1, max: 100 }),
      }),
    },
    {
      weight: 1,
      arbitrary: fc.record({
        kind: fc.constant('fail' as const),
        how: fc.constantFrom('callback' as const, 'device' as const),
      }),
    },
    {
      weight: 8,
      arbitrary: fc.record({
        kind: fc.constant('received' as const),
        out: fc.nat(2),
        how: fc.constantFrom<ReceivedUse>(
          'itself',
          'plus one',
          'copy',
          'read and copy',
          'kept',
          'kept by a view',
          'reduced to views',
        ),
      }),
    },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant('shared' as const), which: fc.nat(1) }) },
  ),
  tree: fc.oneof(
    { maxDepth: 6, withCrossShrink: true },
    { weight: 2, arbitrary: tie('leaf') },
    {
      weight: 6,
      arbitrary: fc.record({
        kind: fc.constant('andThen' as const),
        of: tie('tree'),
        then: tie('tree'),
      }),
    },
    {
      weight: 4,
      arbitrary: fc.record({
        kind: fc.constant('map' as const),
        of: tie('tree'),
        how: fc.constantFrom<Mapping>(
          'view',
          'two views',
          'owner and view',
          'first',
          'nothing',
          'object',
          'Map and Set',
          'partition',
          'twice',
        ),
      }),
    },
    {
      weight: 3,
      arbitrary: fc.record({
        kind: fc.constantFrom('zip' as const, 'all' as const, 'parallel' as const),
        of: fc.array(tie('tree'), { maxLength: 3 }),
      }),
    },
    {
      weight: 1,
      arbitrary: fc.record({
        kind: fc.constantFrom('orElse' as const, 'ensure' as const),
        of: tie('tree'),
        other: tie('tree'),
      }),
    },
    {
      weight: 1,
      arbitrary: fc.record({
        kind: fc.constant('when' as const),
        of: tie('tree'),
        then: tie('tree'),
        holds: fc.boolean(),
      }),
    },
    {
      weight: 1,
      arbitrary: fc.record({
        kind: fc.constant('repeat' as const),
        of: tie('tree'),
        body: tie('tree'),
        turns: fc.nat(3),
      }),
    },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant('label' as const), of: tie('tree') }) },
  ),
})).tree;

/** Makes operations of trees, and records what they keep. */
export class TreeBuilder {
  readonly kept: Tensor[] = [];
  /** Whether it is running. */
  isBusy = false;
  private readonly device: Device;
  readonly shared: readonly SharedOp<Value>[];

  constructor(device: Device) {
    this.device = device;
    this.shared = [0, 1].map(
      (which) => device.full(f32, [COUNT], 1000 + which).shared() as unknown as SharedOp<Value>,
    );
  }

  operation(tree: Tree, received: readonly Value[] = []): DeviceOp<Value> {
    const { device } = this;
    switch (tree.kind) {
      case 'make':
        return device.full(f32, [COUNT], tree.value) as unknown as DeviceOp<Value>;
      case 'fail':
        return (tree.how === 'device'
          ? device.uninitialized(u8, [2 ** 46])
          : device.zeros(f32, [COUNT]).map(() => {
              throw new Failure('mine');
            })) as unknown as DeviceOp<Value>;
      case 'received':
        return this.use(received[tree.out], tree.how);
      case 'shared':
        return this.shared[tree.which]!;
      case 'andThen':
        return this.operation(tree.of, received).andThen((given) =>
          this.operation(tree.then, [given, ...received]),
        );
      case 'map':
        return this.operation(tree.of, received).map((given) => mapped(given, tree.how) as never);
      case 'zip':
        return zip(
          ...tree.of.map((each) => this.operation(each, received)),
        ) as unknown as DeviceOp<Value>;
      case 'all':
        return allOf(
          tree.of.map((each) => this.operation(each, received)),
        ) as unknown as DeviceOp<Value>;
      case 'parallel':
        return parallel(
          ...tree.of.map((each) => this.operation(each, received)),
        ) as unknown as DeviceOp<Value>;
      case 'orElse':
        return this.operation(tree.of, received).orElse(() => this.operation(tree.other, received));
      case 'ensure':
        return this.operation(tree.of, received).ensure(
          () => this.operation(tree.other, received) as DeviceOp<unknown>,
        );
      case 'when':
        return this.operation(tree.of, received).when(
          () => device.full(u8, [1], tree.holds ? 1 : 0),
          (given) => this.operation(tree.then, [given, ...received]) as DeviceOp<unknown>,
        );
      case 'repeat':
        return this.operation(tree.of, received).andThen((given) => {
          let left = tree.turns;
          return value(given).repeatWhile(
            () => device.full(u8, [1], left-- > 0 ? 1 : 0),
            () => this.operation(tree.body, [given, ...received]) as DeviceOp<unknown>,
          );
        });
      case 'label':
        return this.operation(tree.of, received).label('a part');
    }
  }

  private use(given: Value | undefined, how: ReceivedUse): DeviceOp<Value> {
    const [first] = given === undefined ? [] : tensorsOf(given);
    if (first === undefined) return value([]) as DeviceOp<Value>;
    switch (how) {
      case 'itself':
        return value(given as never) as DeviceOp<Value>;
      case 'plus one':
        return add(first as Tensor<'f32'>, 1) as unknown as DeviceOp<Value>;
      case 'copy':
        return first.dup() as unknown as DeviceOp<Value>;
      case 'read and copy':
        return first.read().andThen(() => first.dup()) as unknown as DeviceOp<Value>;
      case 'kept':
        return first.dup().map((copy) => {
          this.kept.push(keep(copy));
          return [] as never;
        });
      case 'kept by a view':
        return first.dup().map((copy) => {
          this.kept.push(keep(view(copy as Tensor)));
          return [copy, view(copy as Tensor)] as never;
        });
      case 'reduced to views':
        return sum(first.reshape([1, COUNT] as never) as Tensor<'f32'>, { axis: 0 } as never).map(
          (each) => (each as Tensor).reshape([2, 2] as never) as never,
        );
    }
  }
}

const view = (tensor: Tensor): Tensor => tensor.reshape([COUNT] as never);

function mapped(given: Value, how: Mapping): Value {
  const tensors = tensorsOf(given);
  switch (how) {
    case 'view':
      return tensors.map(view);
    case 'two views':
      return tensors.flatMap((each) => [view(each), view(each)]);
    case 'owner and view':
      return tensors.flatMap((each) => [each, view(each)]);
    case 'first':
      return tensors.slice(0, 1);
    case 'nothing':
      return [];
    case 'object':
      return { first: tensors[0], rest: tensors.slice(1), none: undefined };
    case 'Map and Set':
      return new Map<unknown, unknown>([
        [1, tensors[0]],
        [2, new Set(tensors.slice(1))],
      ]);
    case 'partition':
      return tensors.map(
        (each) => (each.tryPartition([...each.shape] as never)?.unpartition() ?? each) as Tensor,
      );
    case 'twice':
      return [given, given];
  }
}

/** The tensors of a value, in order, with repetitions. */
export function tensorsOf(given: unknown): Tensor[] {
  if (typeof given !== 'object' || given === null) return [];
  if ('buffer' in given && 'layout' in given) return [given as Tensor];
  if (Array.isArray(given)) return given.flatMap(tensorsOf);
  if (given instanceof Map) return [...given.values()].flatMap(tensorsOf);
  if (given instanceof Set) return [...given].flatMap(tensorsOf);
  return Object.values(given).flatMap(tensorsOf);
}

/** The result of the tree: the elements of its tensors, in order. @throws Failure */
export function expected(tree: Tree, received: readonly number[][] = []): number[] {
  switch (tree.kind) {
    case 'make':
      return [tree.value];
    case 'fail':
      throw new Failure('as the tree says');
    case 'shared':
      return [1000 + tree.which];
    case 'received': {
      const given = received[tree.out] ?? [];
      const [first] = given;
      if (first === undefined) return [];
      return tree.how === 'itself'
        ? given
        : tree.how === 'plus one'
          ? [first + 1]
          : tree.how === 'kept'
            ? []
            : tree.how === 'kept by a view'
              ? [first, first]
              : [first];
    }
    case 'andThen':
      return expected(tree.then, [expected(tree.of, received), ...received]);
    case 'map': {
      const given = expected(tree.of, received);
      if (tree.how === 'two views' || tree.how === 'owner and view')
        return given.flatMap((each) => [each, each]);
      if (tree.how === 'first') return given.slice(0, 1);
      if (tree.how === 'nothing') return [];
      // A Set holds a tensor once, and the test compares elements: those of one tensor are the
      // same.
      return tree.how === 'twice' ? [...given, ...given] : given;
    }
    case 'zip':
    case 'all':
    case 'parallel':
      return tree.of.flatMap((each) => expected(each, received));
    case 'orElse':
      try {
        return expected(tree.of, received);
      } catch {
        return expected(tree.other, received);
      }
    case 'ensure': {
      let failed: unknown;
      let given: number[] = [];
      try {
        given = expected(tree.of, received);
      } catch (error) {
        failed = error;
      }
      expected(tree.other, received);
      if (failed !== undefined) throw failed as Error;
      return given;
    }
    case 'when': {
      const given = expected(tree.of, received);
      if (tree.holds) expected(tree.then, [given, ...received]);
      return given;
    }
    case 'repeat': {
      const given = expected(tree.of, received);
      if (tree.turns > 0) expected(tree.body, [given, ...received]);
      return given;
    }
    case 'label':
      return expected(tree.of, received);
  }
}
