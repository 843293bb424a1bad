// Reads one instruction with its operands. The syntax of operands is the same for every
// instruction; the rules decide later what the operands mean.

import type { Instruction, Operand } from './ast.js';
import { TOKEN } from './lexer.js';
import type { TokenReader } from './token-reader.js';

/**
 * The constant expression after a plus, if there is one: `[a+-4]` is in the language, `[a-4]` is
 * not.
 */
function added(reader: TokenReader): bigint | undefined {
  if (reader.is('-')) throw reader.error("an offset is added: write '+-' for '-', as in [%rd1+-4]");
  if (!reader.accept('+')) return undefined;
  const constant = reader.constant();
  if (constant.kind !== 'integer') throw reader.error('expected an integer offset', constant.at);
  return BigInt.asIntN(64, constant.value);
}

/** Reads what follows a bracket: a name and what is added to it, or a number alone. */
function baseAndOffset(
  reader: TokenReader,
  wanted: string,
): { base: string | undefined; offset: bigint } {
  if (reader.kindAt(0) === TOKEN.word) {
    const base = reader.word(wanted);
    return { base, offset: reader.isEndOfOperand(0) ? 0n : (added(reader) ?? 0n) };
  }
  const constant = reader.constant();
  if (constant.kind !== 'integer') throw reader.error(`expected ${wanted}`, constant.at);
  return { base: undefined, offset: constant.value };
}

function address(reader: TokenReader): Operand {
  const { at } = reader;
  reader.expect('[');
  const { base, offset: constant } = baseAndOffset(reader, 'an address');
  const offset = Number(base === undefined ? BigInt.asUintN(64, constant) : constant);
  const extra: Operand[] = [];
  while (reader.accept(',')) extra.push(alone(reader, false));
  reader.expect(']');
  const found: Operand = { kind: 'address', base, offset, extra, at };
  if (reader.accept('.unified')) found.unified = true;
  return found;
}

function arrayElement(reader: TokenReader, name: string, at: number): Operand {
  reader.expect('[');
  const { base: register, offset } = baseAndOffset(reader, 'an index');
  reader.expect(']');
  reader.hasElements = true;
  return {
    kind: 'name',
    name,
    offset: 0,
    at,
    element: { register, offset: Number(BigInt.asIntN(64, offset)) },
  };
}

function sequence(reader: TokenReader, close: string, lists: boolean): Operand[] {
  const elements: Operand[] = [];
  if (reader.accept(close)) return elements;
  do elements.push(alone(reader, lists));
  while (reader.accept(','));
  reader.expect(close);
  return elements;
}

/** An operand within another one, where ptxas takes no plus after a name. */
function alone(reader: TokenReader, lists: boolean): Operand {
  const { at } = reader;
  const inner = operand(reader, lists);
  if (inner.kind === 'name' && inner.added !== undefined) {
    throw reader.error(
      `'${inner.name}' takes no constant here: compute the sum with add, and write its register`,
      at,
    );
  }
  return inner;
}

function operand(reader: TokenReader, lists: boolean): Operand {
  const { at } = reader;
  switch (reader.kindAt(0)) {
    case TOKEN.word:
      if (!reader.is('WARP_SZ')) return named(reader, at);
      break;
    case TOKEN.punctuation:
      return punctuated(reader, lists, at);
  }
  return reader.constant();
}

/** Colours are other names of the elements of vectors. */
function selectorOf(name: string): string {
  switch (name) {
    case 'r':
      return 'x';
    case 'g':
      return 'y';
    case 'b':
      return 'z';
    case 'a':
      return 'w';
    default:
      return name;
  }
}

function named(reader: TokenReader, at: number): Operand {
  const name = reader.word('an operand');
  if (reader.isEndOfOperand(0)) return { kind: 'name', name, offset: 0, at };
  if (reader.is('[')) return arrayElement(reader, name, at);
  const first: Operand = { kind: 'name', name, offset: 0, at };
  if (reader.kindAt(0) === TOKEN.dotted) {
    first.selector = selectorOf(reader.dotted('a selector'));
  } else {
    const plus = added(reader);
    if (plus !== undefined) return { ...first, offset: Number(plus), added: plus };
  }
  if (!reader.accept('|')) return first;
  return { kind: 'pair', first, second: reader.nested(() => alone(reader, false)), at };
}

function punctuated(reader: TokenReader, lists: boolean, at: number): Operand {
  return reader.nested(() => {
    if (reader.is('[')) return address(reader);
    if (reader.accept('{')) {
      const vector: Operand = { kind: 'vector', elements: sequence(reader, '}', false), at };
      return reader.accept('|')
        ? { kind: 'pair', first: vector, second: alone(reader, false), at }
        : vector;
    }
    if (lists && reader.accept('('))
      return { kind: 'list', elements: sequence(reader, ')', false), at };
    if (reader.is('!') && reader.kindAt(1) === TOKEN.word) {
      reader.advance();
      return { kind: 'not', operand: alone(reader, false), at };
    }
    if (reader.is('-') && reader.kindAt(1) === TOKEN.word && !reader.is('WARP_SZ', 1)) {
      reader.advance();
      return { kind: 'negated', operand: alone(reader, false), at };
    }
    return reader.constant();
  });
}

/**
 * Reads operands up to the semicolon. The list is copied to an array of its length: a growing array
 * reserves room for many elements, and few instructions have more than three operands.
 */
function operandList(reader: TokenReader, lists: boolean): Operand[] {
  const first = operand(reader, lists);
  if (!reader.accept(',')) return [first];
  const second = operand(reader, lists);
  if (!reader.accept(',')) return [first, second];
  const third = operand(reader, lists);
  if (!reader.accept(',')) return [first, second, third];
  const all = [first, second, third];
  do all.push(operand(reader, lists));
  while (reader.accept(','));
  return all;
}

export function parseInstruction(reader: TokenReader): Instruction {
  const start = reader.at;
  let predicate: Instruction['predicate'];
  if (reader.accept('@')) {
    const negated = reader.accept('!');
    predicate = { register: reader.word('a predicate register'), negated };
  }
  const { mnemonic, modifiers } = reader.form('an instruction');
  const operands = reader.is(';') ? [] : operandList(reader, mnemonic === 'call');
  const end = reader.previousEnd;
  if (!reader.accept(';')) throw reader.unexpected(`';' after '${mnemonic}'`);
  const instruction: Instruction = {
    kind: 'instruction',
    mnemonic,
    modifiers,
    operands,
    start,
    end,
    line: reader.source.lineOf(start),
  };
  if (predicate) instruction.predicate = predicate;
  return instruction;
}
