/**
 * The common part of the writers of statements and expressions: the lines of the generated
 * function, its names, and the places in the source that it refers to by number.
 */
import { instructionRow } from '../instructions.js';
import { KernelSourceError } from '../source-error.js';
import type { Expression, KernelTree, Span, Statement } from '../tree.js';
import type { Rope } from './mapped-text.js';
import { PRECEDENCE, bound, primary } from './operators.js';
import type { Js } from './operators.js';
import { RESERVED_NAMES } from './reserved-names.js';
import { RUNTIME_NAMES } from './runtime.js';
import { declarationsOf } from './scopes.js';
import type { Declaration } from './scopes.js';
import { walk } from './walk.js';

/** Operations at which a thread waits for others. */
const SYNCHRONISING: ReadonlySet<Expression['op']> = new Set([
  'shuffle',
  'vote',
  'match',
  'activemask',
  'barrierReduce',
]);

/**
 * Whether an expression in a loop may wait for other threads: it reads memory that they change, so
 * they have to run meanwhile.
 */
export const isWaiting = (node: Expression): boolean =>
  (node.op === 'load' && node.cache === 'volatile') ||
  (node.op === 'atomic' && (node.operator === 'cas' || node.operator === 'exch'));

interface Line {
  readonly indent: number;
  readonly rope: Rope;
}

/** Declarations at one statement. */
interface Declared {
  readonly before: number[];
  by?: number;
}

export abstract class KernelWriter {
  protected lines: Line[] = [];
  private indent = 2;
  protected readonly sites: Span[] = [];
  protected readonly used = new Set<string>();
  protected readonly declarations: readonly (Declaration | undefined)[];
  protected readonly declared = new Map<readonly Statement[], Map<number, Declared>>();
  protected readonly assignments: number[];
  protected readonly localNames: string[] = [];
  protected readonly paramNames: string[];
  protected readonly arrayNames: string[];
  protected readonly functionName: string;
  protected readonly generator: boolean;
  protected readonly tree: KernelTree;
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

    let synchronises = false;
    this.assignments = tree.locals.map(() => 0);
    walk(tree.body, {
      expression: (node, inLoop) => {
        synchronises ||= SYNCHRONISING.has(node.op) || (inLoop && isWaiting(node));
      },
      statement: (node) => {
        synchronises ||=
          node.kind === 'barrier' || node.kind === 'matrixProduct' || node.kind === 'loadMatrices';
        if (node.kind === 'instruction' && instructionRow(node.name).betweenGrids !== true)
          throw new KernelSourceError(
            `gpu.${node.name} is not simulated`,
            "Run the kernel on a CPU device: open('cpu', { computeCapability: '9.0' }).",
            node.span,
            tree.texts[node.span.text] ?? '',
          );
        if (node.kind === 'assign') this.assignments[node.local]!++;
      },
    });
    this.generator = synchronises;
  }

  /**
   * Gives variables their names. Variables of one name keep it where their scopes do not overlap.
   */
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

  protected push(rope: Rope): void {
    this.lines.push({ indent: this.indent, rope });
  }

  /** Gives the lines that `write` writes, one level further in. */
  protected inner(write: () => void): Line[] {
    const { lines } = this;
    const inner: Line[] = [];
    this.lines = inner;
    this.indent++;
    write();
    this.indent--;
    this.lines = lines;
    return inner;
  }

  protected block(head: Rope, inner: readonly Line[], tail: Rope = '}'): void {
    this.push(head);
    this.lines.push(...inner);
    this.push(tail);
  }

  protected readonly call = (name: string, ...operands: readonly Js[]): Js => {
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

  protected site(span: Span): Js {
    this.sites.push(span);
    return primary(`${this.sites.length - 1}`);
  }

  protected temporary(): string {
    return `$${this.temporaries++}`;
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
