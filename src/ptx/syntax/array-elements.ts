// Elements of arrays as operands, `a[2]` and `a[%r1+1]`: in ld and st the element, in mov and cvta
// its address. If the index is a register, instructions that compute the address are inserted
// before the instruction.

import { scalarType } from '../scalar-types.js';
import type { Instruction, Operand, PtxModule, Statement, Variable } from './ast.js';

/** Names that are declared within one pair of braces, and the scope around it. */
interface Scope {
  readonly around: Scope | undefined;
  readonly variables: ReadonlyMap<string, Variable>;
  readonly registers: readonly {
    readonly name: string;
    readonly count: number | undefined;
    readonly type: string;
  }[];
}

type Name = Extract<Operand, { kind: 'name' }>;
type Element = Name & { element: NonNullable<Name['element']> };

const isElement = (operand: Operand): operand is Element =>
  operand.kind === 'name' && operand.element !== undefined;

/** All operands that another one contains. */
function within(operand: Operand): Operand[] {
  const parts = (): Operand[] => {
    switch (operand.kind) {
      case 'vector':
      case 'list':
        return operand.elements;
      case 'pair':
        return [operand.first, operand.second];
      case 'not':
      case 'negated':
        return [operand.operand];
      case 'address':
        return operand.extra;
      default:
        return [];
    }
  };
  return parts().flatMap((part) => [part, ...within(part)]);
}

function scopeOf(
  declared: Iterable<Variable>,
  statements: readonly Statement[],
  around: Scope | undefined,
): Scope {
  const variables = new Map<string, Variable>();
  for (const variable of declared) variables.set(variable.name, variable);
  for (const statement of statements)
    if (statement.kind === 'variable') variables.set(statement.name, statement);
  const registers = statements.flatMap((statement) =>
    statement.kind === 'registers'
      ? statement.names.map(({ name, count }) => ({ name, count, type: statement.type }))
      : [],
  );
  return { around, variables, registers };
}

function variableNamed(name: string, scope: Scope | undefined): Variable | undefined {
  return scope && (scope.variables.get(name) ?? variableNamed(name, scope.around));
}

function registerType(register: string, scope: Scope | undefined): string | undefined {
  if (scope === undefined) return undefined;
  const found = scope.registers.find(({ name, count }) => {
    if (count === undefined) return name === register;
    const number = register.startsWith(name) ? register.slice(name.length) : '';
    return /^(?:0|[1-9]\d*)$/.test(number) && Number(number) < count;
  });
  return found?.type ?? registerType(register, scope.around);
}

class Resolver {
  private readonly module: PtxModule;
  private made = 0;

  constructor(module: PtxModule) {
    this.module = module;
  }

  statements(list: readonly Statement[], scope: Scope): Statement[] {
    return list.flatMap((statement) => {
      if (statement.kind === 'block')
        return [
          {
            ...statement,
            statements: this.statements(
              statement.statements,
              scopeOf([], statement.statements, scope),
            ),
          },
        ];
      return statement.kind === 'instruction' ? this.instruction(statement, scope) : [statement];
    });
  }

  private instruction(instruction: Instruction, scope: Scope): Statement[] {
    const { mnemonic, modifiers } = instruction;
    const before: Statement[] = [];
    const operands = instruction.operands.map((operand): Operand => {
      if (!isElement(operand)) {
        const inner = within(operand).find(isElement);
        if (inner !== undefined)
          throw this.fail(
            'an element of an array cannot be a part of an operand: load it into a register first',
            inner.at,
          );
        return operand;
      }
      const isAddress = mnemonic === 'ld' || mnemonic === 'ldu' || mnemonic === 'st';
      if (!isAddress && mnemonic !== 'mov' && !(mnemonic === 'cvta' && modifiers[0] !== 'to')) {
        throw this.fail(
          `'${mnemonic}' takes no element of an array: write its address into a register with ` +
            'mov.u64, and use [%rd1]',
          operand.at,
        );
      }
      const {
        name,
        at,
        element: { register, offset },
      } = operand;
      const variable = variableNamed(name, scope);
      if (variable === undefined || variable.dimensions.length === 0)
        throw this.fail(
          `'${name}' is no array, and has no elements: write [${name}+4] for the address four ` +
            'bytes after it',
          at,
        );
      const bytes = (scalarType(variable.type).bits / 8) * variable.vector;
      if (register === undefined) {
        return isAddress
          ? { kind: 'address', base: name, offset: offset * bytes, extra: [], at }
          : { kind: 'name', name, offset: offset * bytes, at };
      }
      const base = this.addressOf(operand, bytes, instruction, scope, before);
      if (isAddress) return { kind: 'address', base, offset: 0, extra: [], at };
      if (modifiers.some((modifier) => modifier.endsWith('64')))
        return { kind: 'name', name: base, offset: 0, at };
      return {
        kind: 'name',
        name: this.make(
          before,
          instruction,
          'b32',
          'cvt',
          ['u32', 'u64'],
          [{ kind: 'name', name: base, offset: 0, at }],
        ),
        offset: 0,
        at,
      };
    });
    return [...before, { ...instruction, operands }];
  }

  /**
   * The register with the address of an element; `out` gets the instructions that compute it. An
   * index is an unsigned integer of 32 bits, as in ptxas.
   */
  private addressOf(
    { name, at, element: { register, offset } }: Element,
    bytes: number,
    instruction: Instruction,
    scope: Scope,
    out: Statement[],
  ): string {
    const type = registerType(register!, scope);
    if (type === undefined || !isScalarInteger(type)) {
      throw this.fail(
        `'${register}' is no index: an integer, or a register of 16, 32 or 64 bits that holds one`,
        at,
      );
    }
    const { bits, kind } = scalarType(type);
    const named = (register: string): Operand => ({ kind: 'name', name: register, offset: 0, at });
    const integer = (value: number): Operand => ({ kind: 'integer', value: BigInt(value), at });
    let index = register!;
    if (bits !== 32)
      index = this.make(
        out,
        instruction,
        'b32',
        'cvt',
        kind === 'signed' && bits === 16 ? ['s32', 's16'] : ['u32', `u${bits}`],
        [named(index)],
      );
    if (offset !== 0)
      index = this.make(out, instruction, 'b32', 'add', ['u32'], [named(index), integer(offset)]);
    const start = this.make(out, instruction, 'b64', 'mov', ['u64'], [named(name)]);
    return this.make(
      out,
      instruction,
      'b64',
      'mad',
      ['wide', 'u32'],
      [named(index), integer(bytes), named(start)],
    );
  }

  /** Inserts an instruction before `origin`, and returns the register for its result. */
  private make(
    out: Statement[],
    { start, end, line }: Instruction,
    type: string,
    mnemonic: string,
    modifiers: string[],
    operands: Operand[],
  ): string {
    const name = `%array_element_${this.made++}`;
    out.push(
      { kind: 'registers', type, vector: 1, names: [{ name, count: undefined, at: start }] },
      {
        kind: 'instruction',
        mnemonic,
        modifiers,
        operands: [{ kind: 'name', name, offset: 0, at: start }, ...operands],
        start,
        end,
        line,
      },
    );
    return name;
  }

  private fail(message: string, at: number): Error {
    return this.module.source.error('semantic', message, at);
  }
}

function isScalarInteger(type: string): boolean {
  const { bits, kind } = scalarType(type);
  return (
    (kind === 'bits' || kind === 'signed' || kind === 'unsigned') &&
    (bits === 16 || bits === 32 || bits === 64)
  );
}

/** Resolves the elements in a module that has such operands. */
export function resolveElements(module: PtxModule): void {
  const resolver = new Resolver(module);
  const around = scopeOf(module.variables, [], undefined);
  for (const fn of module.functions) {
    if (fn.body !== undefined)
      fn.body = resolver.statements(
        fn.body,
        scopeOf([...fn.params, ...fn.returns], fn.body, around),
      );
  }
}
