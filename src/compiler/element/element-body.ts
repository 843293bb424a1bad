/**
 * Checks of an element kernel's body before the kernel around it is written: it reads no output,
 * and returns the element of each. The reader sees only the written kernel, and its errors would
 * name structures that are not in the user's source.
 */
import type { AnyNode, ObjectExpression, Property } from 'acorn';

import type { Declaration } from '../read/names.js';
import { parseFunction } from '../read/parse.js';
import type { ParsedFunction } from '../read/parse.js';
import type { KernelSource } from '../signature.js';
import { KernelSourceError } from '../source-error.js';
import { propertyName } from '../read/property-name.js';
import { childrenOf } from '../read/syntax.js';

/** @throws KernelSourceError */
export function checkElementBody(source: Pick<KernelSource, 'signature' | 'text'>): void {
  const body = new ElementBody(source);
  body.checkReads();
  body.checkResults();
}

class ElementBody {
  private readonly text: string;
  private readonly signature: KernelSource['signature'];
  private readonly parsed: ParsedFunction;
  private readonly nodes: readonly AnyNode[];
  /** The outputs: the body returns their elements. */
  private readonly written: readonly string[];

  constructor({ text, signature }: Pick<KernelSource, 'signature' | 'text'>) {
    this.text = text;
    this.signature = signature;
    this.parsed = parseFunction(text, 0);
    this.nodes = [...within(this.parsed.node.body)];
    this.written = Object.keys(signature).filter(
      (name) => this.isTensor(name, 'output') || this.isTensor(name, 'inout'),
    );
  }

  private isTensor(name: string, access: 'input' | 'output' | 'inout'): boolean {
    const entry = Object.hasOwn(this.signature, name) ? this.signature[name]! : undefined;
    return entry?.kind === 'tensor' && entry.access === access;
  }

  private fail(node: AnyNode, what: string, fix: string): never {
    throw new KernelSourceError(
      what,
      fix,
      { text: 0, start: node.start, end: node.end },
      this.text,
    );
  }

  /** Checks reads: an output has no element before the body returns. */
  checkReads(): void {
    const [elements] = this.parsed.node.params;
    if (elements?.type === 'ObjectPattern') this.checkPattern(elements);
    const own = elements?.type === 'Identifier' ? this.declaration(elements) : undefined;
    if (own === undefined) return;
    const isElements = (node: AnyNode | null | undefined): boolean =>
      node?.type === 'Identifier' && this.declaration(node) === own;
    for (const node of this.nodes) {
      if (node.type === 'MemberExpression' && isElements(node.object))
        this.checkRead(node, propertyName(node));
      if (node.type === 'VariableDeclarator' && isElements(node.init)) this.checkPattern(node.id);
      if (node.type === 'AssignmentExpression' && isElements(node.right))
        this.checkPattern(node.left);
    }
  }

  private checkPattern(pattern: AnyNode): void {
    if (pattern.type !== 'ObjectPattern') return;
    for (const part of pattern.properties)
      if (part.type === 'Property') this.checkRead(part, keyOf(part));
  }

  private checkRead(node: AnyNode, name: string | undefined): void {
    if (name === undefined || !this.isTensor(name, 'output')) return;
    this.fail(
      node,
      `${name} is an output, and the body finds no element of it`,
      `${this.howToReturn()} To read what was in it before, declare it as inout(…).`,
    );
  }

  /** Checks what every return gives. */
  checkResults(): void {
    const { body } = this.parsed.node;
    if (body.type !== 'BlockStatement') return this.checkResult(body);
    const returns = this.nodes.filter((node) => node.type === 'ReturnStatement');
    if (returns.length === 0) this.failNothing(body);
    for (const each of returns) {
      if (each.argument) this.checkResult(each.argument);
      else this.failNothing(each);
    }
  }

  private failNothing(node: AnyNode): never {
    return this.fail(
      node,
      `The body returns nothing, and ${this.listed()} ` +
        `${this.written.length === 1 ? 'takes its element' : 'take their elements'} from what ` +
        'it returns',
      this.howToReturn(),
    );
  }

  private checkResult(node: AnyNode): void {
    switch (node.type) {
      case 'ParenthesizedExpression':
        return this.checkResult(node.expression);
      case 'SequenceExpression':
        return this.checkResult(node.expressions.at(-1)!);
      case 'ConditionalExpression':
        this.checkResult(node.consequent);
        return this.checkResult(node.alternate);
      case 'UnaryExpression':
        return node.operator === 'void' ? this.failNothing(node) : this.checkNumber(node);
      case 'BinaryExpression':
      case 'UpdateExpression':
      case 'Literal':
        return this.checkNumber(node);
      case 'ObjectExpression':
        return this.checkObject(node, node);
      case 'Identifier': {
        const object = this.objectOf(node);
        if (object !== undefined) this.checkObject(object, node);
        else if (this.isElement(node)) this.checkNumber(node);
      }
    }
  }

  private checkNumber(node: AnyNode): void {
    if (this.written.length > 1)
      this.fail(node, `${this.listed()} are written, and this is one number`, this.howToReturn());
  }

  /** Checks a returned object. `shown`: the place of the return. */
  private checkObject({ properties }: ObjectExpression, shown: AnyNode): void {
    if (this.written.length === 1)
      return this.fail(
        shown,
        `${this.listed()} is all that is written, and this is an object`,
        this.howToReturn(),
      );
    const own = properties.filter((part) => part.type === 'Property');
    const given = own.map(keyOf);
    // The reader checks the rest where the object is read.
    if (own.length < properties.length || given.includes(undefined)) return;
    for (const [at, name] of given.entries()) {
      if (this.written.includes(name!)) continue;
      const isInput = this.isTensor(name!, 'input');
      this.fail(
        own[at]!,
        `${name!} is returned, and is ${isInput ? 'an input' : 'no output'}`,
        isInput
          ? `Leave it out, or declare it as inout(…).`
          : `Leave it out, or add it to the signature: { ${name!}: output(f32) }.`,
      );
    }
    const missing = this.written.filter((name) => !given.includes(name));
    if (missing.length > 0)
      this.fail(
        shown,
        `${listOf(missing)} ${missing.length === 1 ? 'is' : 'are'} not returned`,
        `Return ${missing.length === 1 ? 'it' : 'them'} too: ${this.object()}.`,
      );
  }

  private declaration(node: AnyNode): Declaration | undefined {
    return this.parsed.names.get(node);
  }

  /** The object that a variable is declared with: its fields stay the same. */
  private objectOf(name: AnyNode): ObjectExpression | undefined {
    const declared = this.declaration(name);
    if (declared === undefined) return undefined;
    for (const node of this.nodes) {
      if (
        node.type === 'VariableDeclarator' &&
        node.init?.type === 'ObjectExpression' &&
        this.declaration(node.id) === declared
      )
        return node.init;
    }
    return undefined;
  }

  /** Whether a name is a member of the body's first parameter: an element, or a number. */
  private isElement(name: AnyNode): boolean {
    const [elements] = this.parsed.node.params;
    if (elements?.type !== 'ObjectPattern') return false;
    const part = elements.properties.find(
      (each) =>
        each.type === 'Property' &&
        this.declaration(each.value) !== undefined &&
        this.declaration(each.value) === this.declaration(name),
    ) as Property | undefined;
    const key = part === undefined ? undefined : keyOf(part);
    return (
      key !== undefined &&
      Object.hasOwn(this.signature, key) &&
      this.signature[key]!.kind !== 'struct'
    );
  }

  private listed(): string {
    return listOf(this.written);
  }

  private object(): string {
    return `{ ${this.written.join(', ')} }`;
  }

  private howToReturn(): string {
    return this.written.length === 1
      ? `Return the element of ${this.written[0]!}: return x * 2.`
      : `Return an object of their elements: return ${this.object()}.`;
  }
}

/** All nodes that a function executes itself, in the order of its text. */
function* within(node: AnyNode): Generator<AnyNode> {
  yield node;
  if (
    node.type === 'FunctionDeclaration' ||
    node.type === 'FunctionExpression' ||
    node.type === 'ArrowFunctionExpression'
  )
    return;
  for (const child of childrenOf(node)) yield* within(child);
}

function keyOf({
  key,
  computed,
}: {
  readonly key: AnyNode;
  readonly computed: boolean;
}): string | undefined {
  if (key.type === 'Identifier') return computed ? undefined : key.name;
  return key.type === 'Literal' ? String(key.value) : undefined;
}

function listOf(names: readonly string[]): string {
  return names.length < 2
    ? names.join('')
    : `${names.slice(0, -1).join(', ')} and ${names.at(-1)!}`;
}
