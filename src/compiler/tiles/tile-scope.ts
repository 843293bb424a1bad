/** Names of a tile kernel's body, and their bindings. */
import type { AnyNode, CallExpression, Identifier } from 'acorn';

import { ARITHMETIC_NAMES } from '../element/gpu-of-elements.js';
import { propertyName } from '../read/property-name.js';
import { childrenOf } from '../read/syntax.js';
import type { KernelSource } from '../signature.js';
import { TILE_NAMES } from './tile-form.js';
import type { TileForm } from './tile-form.js';
import type { Staged } from './tile-products.js';
import { TileWriter } from './tile-writer.js';
import type { Found, TileValue } from './tile-writer.js';

const OWN_NAMES = ARITHMETIC_NAMES.filter((name) => name !== 'local' && name !== 'unroll');
export const WHAT_IS_WRITTEN =
  'Write const v = x.load() for the tile of an input, compute with it, and y.store(…).';

/** The binding of a name. */
export type Binding =
  | { readonly is: 'args' }
  | { readonly is: 'tile' }
  | { readonly is: 'param'; readonly name: string }
  /** A member of the second parameter. */
  | { readonly is: 'member'; readonly name: string }
  /** The variable of a loop over the tiles of an axis. */
  | { readonly is: 'step'; readonly axis: number }
  /** All tiles of an axis, in a counted ES5 loop: the loop's tile is the one at `counter`. */
  | { readonly is: 'tiles'; readonly axis: number; readonly counter: string }
  /** A variable that gets its value after its declaration. */
  | { readonly is: 'unset' }
  | (TileValue & { readonly is: 'value' })
  | Variable;

/** A constant or variable of the body. */
export interface Variable extends TileValue {
  readonly is: 'variable';
  /** The place of its declaration. */
  readonly at: number;
  /** The number of loops around its declaration. */
  readonly depth: number;
  /** Axes that these loops walk. */
  readonly walked: ReadonlySet<number>;
  /** Whether it gets more than one value. */
  readonly assigned: boolean;
  /** Its place in shared memory, by {@link stagedKey}. */
  readonly staged: Map<string, Staged>;
}

/** Resolves names and members. */
export abstract class TileScope extends TileWriter {
  protected readonly found: Found;
  protected names = new Map<string, Binding>();
  /** Places where parameters are destructured from the first parameter. */
  protected readonly named = new Map<string, AnyNode>();
  /** The block in which a name stands for one variable. */
  protected block: AnyNode;
  foundMore = false;

  constructor(definition: KernelSource, form: TileForm, found: Found, block: AnyNode) {
    super(definition, form);
    this.found = found;
    this.block = block;
  }

  protected bind(param: AnyNode | undefined, is: 'args' | 'tile'): void {
    if (param === undefined) return;
    if (param.type === 'Identifier') {
      this.names.set(param.name, { is });
      return;
    }
    if (param.type !== 'ObjectPattern')
      return this.fail(
        param,
        `${this.code(param)} is not supported in a tile kernel`,
        'Write ({ y, x }, tile) => { … }.',
      );
    for (const part of param.properties) {
      if (
        part.type !== 'Property' ||
        part.key.type !== 'Identifier' ||
        part.value.type !== 'Identifier'
      )
        return this.fail(
          part,
          `${this.code(part)} is not supported in a tile kernel`,
          'Name what is taken out of it: ({ y, x }, { sum }) => { … }.',
        );
      const { name } = part.key;
      this.names.set(
        part.value.name,
        is === 'args' ? { is: 'param', name: this.paramOf(part, name) } : { is: 'member', name },
      );
      if (is === 'args') this.named.set(name, part);
    }
  }

  private paramOf(node: AnyNode, name: string): string {
    const names = Object.keys(this.definition.signature);
    if (!names.includes(name))
      return this.fail(
        node,
        `\`${name}\` is not in the kernel's signature, which has ${names.join(', ')}`,
        `Add it to the signature: { ${name}: input(f32) }.`,
      );
    return name;
  }

  protected scope(block: AnyNode, write: () => void): void {
    const { names, block: around } = this;
    this.names = new Map(names);
    this.block = block;
    write();
    this.names = names;
    this.block = around;
  }

  /** Gives the parameter and the method's name of a call such as `x.load()`. */
  protected methodOf({
    callee,
  }: CallExpression): { readonly param: string; readonly method: string } | undefined {
    if (callee.type !== 'MemberExpression') return undefined;
    const method = propertyName(callee);
    const object = this.bindingOf(callee.object);
    return object?.is === 'param' && method !== undefined
      ? { param: object.name, method }
      : undefined;
  }

  protected bindingOf(node: AnyNode): Binding | undefined {
    if (node.type === 'Identifier') return this.names.get(node.name);
    if (node.type === 'ParenthesizedExpression') return this.bindingOf(node.expression);
    if (node.type !== 'MemberExpression') return undefined;
    const object = this.bindingOf(node.object);
    if (object?.is === 'tiles')
      return node.computed &&
        node.property.type === 'Identifier' &&
        node.property.name === object.counter
        ? { is: 'step', axis: object.axis }
        : undefined;
    const name = propertyName(node);
    if (name === undefined) return undefined;
    if (object?.is === 'args') return { is: 'param', name: this.paramOf(node, name) };
    return object?.is === 'tile' ? { is: 'member', name } : undefined;
  }

  /** The name of the tile's function that is called. */
  protected ownCallee(node: AnyNode): (typeof TILE_NAMES)[number] | undefined {
    const callee = node.type === 'CallExpression' ? this.bindingOf(node.callee) : undefined;
    return callee?.is === 'member' ? TILE_NAMES.find((name) => name === callee.name) : undefined;
  }

  protected isKnown(member: string): boolean {
    return (
      Object.hasOwn(this.definition.uses, member) ||
      (OWN_NAMES as readonly string[]).includes(member)
    );
  }

  /** Whether a variable with this initial value becomes another name of the binding. */
  protected isAlias(binding: Binding, assigned: boolean): boolean {
    switch (binding.is) {
      case 'args':
      case 'tile':
      case 'step':
        return true;
      case 'param':
        return !assigned || this.definition.signature[binding.name]!.kind === 'tensor';
      case 'member':
        return (
          (TILE_NAMES as readonly string[]).includes(binding.name) ||
          (!assigned && this.isKnown(binding.name))
        );
      default:
        return false;
    }
  }

  /** Whether a variable gets a second value: a minifier's `let` may be a constant. */
  protected isAssigned(here: Identifier, node: AnyNode = this.block): boolean {
    if (
      node.type === 'AssignmentExpression' &&
      node.left.type === 'Identifier' &&
      node.left.name === here.name &&
      node.left !== here
    )
      return true;
    if (
      node.type === 'VariableDeclaration' &&
      node.kind === 'var' &&
      node.declarations.some(
        ({ id, init }) => id !== here && id.type === 'Identifier' && id.name === here.name && init,
      )
    )
      return true;
    return childrenOf(node).some((child) => this.isAssigned(here, child));
  }
}
