// Reads one instruction with its operands. Operand syntax is the same for every instruction: what the operands
// mean is decided by the rules, later.

import type { Instruction, Operand } from './ast.js';
import { TOKEN } from './lexer.js';
import type { TokenReader } from './token-reader.js';

function addressOffset(reader: TokenReader): number {
  // A constant expression behind a plus: `[a+-4]` is in the language, `[a-4]` is not.
  if (reader.is('-')) throw reader.error("an offset is added: write '+-' for '-', as in [%rd1+-4]");
  if (!reader.accept('+')) return 0;
  const constant = reader.constant(8);
  if (constant.kind !== 'integer') throw reader.error('expected an integer offset', constant.at);
  return Number(BigInt.asIntN(64, constant.value));
}

function address(reader: TokenReader): Operand {
  const { at } = reader;
  reader.expect('[');
  let base: string | undefined;
  let offset = 0;
  if (reader.kindAt(0) === TOKEN.word) {
    base = reader.word('an address');
    offset = addressOffset(reader);
  } else {
    const constant = reader.constant();
    if (constant.kind !== 'integer') throw reader.error('expected an address', constant.at);
    offset = Number(BigInt.asUintN(64, constant.value));
  }
  const extra: Operand[] = [];
  while (reader.accept(',')) extra.push(operand(reader, false));
  reader.expect(']');
  // `[a].unified` is a hint about the address.
  if (reader.is('.unified')) reader.advance();
  return { kind: 'address', base, offset, extra, at };
}

function arrayElement(reader: TokenReader, name: string, at: number): Operand {
  reader.expect('[');
  let register: string | undefined;
  let offset: number;
  if (reader.kindAt(0) === TOKEN.word) {
    register = reader.word('an index');
    offset = addressOffset(reader);
  } else {
    const constant = reader.constant();
    if (constant.kind !== 'integer') throw reader.error('expected an integer', constant.at);
    offset = Number(BigInt.asIntN(64, constant.value));
  }
  reader.expect(']');
  reader.hasElements = true;
  return { kind: 'name', name, offset: 0, at, element: { register, offset } };
}

function sequence(reader: TokenReader, close: string, lists: boolean): Operand[] {
  const elements: Operand[] = [];
  if (reader.accept(close)) return elements;
  do elements.push(operand(reader, lists)); while (reader.accept(','));
  reader.expect(close);
  return elements;
}

function operand(reader: TokenReader, lists: boolean): Operand {
  return reader.nested(() => {
    const { at } = reader;
    if (reader.is('[')) return address(reader);
    if (reader.accept('{')) {
      const vector: Operand = { kind: 'vector', elements: sequence(reader, '}', false), at };
      return reader.accept('|') ? { kind: 'pair', first: vector, second: operand(reader, false), at } : vector;
    }
    if (lists && reader.accept('(')) return { kind: 'list', elements: sequence(reader, ')', false), at };
    if (reader.is('!') && reader.kindAt(1) === TOKEN.word) {
      reader.advance();
      return { kind: 'not', operand: operand(reader, false), at };
    }
    if (reader.is('-') && reader.kindAt(1) === TOKEN.word && reader.textAt(1) !== 'WARP_SZ') {
      reader.advance();
      return { kind: 'negated', operand: operand(reader, false), at };
    }
    if (reader.kindAt(0) === TOKEN.word && !reader.is('WARP_SZ')) {
      const name = reader.word('an operand');
      if (reader.is('[')) return arrayElement(reader, name, at);
      const selector = reader.kindAt(0) === TOKEN.dotted ? reader.dotted('a selector') : undefined;
      const offset = addressOffset(reader);
      const first: Operand = selector === undefined ? { kind: 'name', name, offset, at } : { kind: 'name', name, offset, at, selector };
      if (!reader.accept('|')) return first;
      return { kind: 'pair', first, second: operand(reader, false), at };
    }
    return reader.constant();
  });
}

export function parseInstruction(reader: TokenReader): Instruction {
  const start = reader.at;
  let predicate: Instruction['predicate'];
  if (reader.accept('@')) {
    const negated = reader.accept('!');
    predicate = { register: reader.word('a predicate register'), negated };
  }
  const { mnemonic, modifiers } = reader.form('an instruction');
  const operands: Operand[] = [];
  if (!reader.is(';')) {
    do operands.push(operand(reader, mnemonic === 'call')); while (reader.accept(','));
  }
  const end = reader.previousEnd;
  if (!reader.accept(';')) throw reader.unexpected(`';' after '${mnemonic}'`);
  const instruction: Instruction = { kind: 'instruction', mnemonic, modifiers, operands, start, end, line: reader.source.lineOf(start) };
  if (predicate) instruction.predicate = predicate;
  return instruction;
}
