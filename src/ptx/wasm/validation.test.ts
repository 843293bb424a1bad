import { describe, expect, it } from 'vitest';

import * as fc from '../../../test/fast-check.js';
import type { LocalType } from '../scalar-types.js';
import { Code } from './code.js';
import { ModuleBuilder } from './module.js';
import { OPCODES, immediateOf } from './opcodes.js';
import type { Opcode } from './opcodes.js';
import type { FunctionTypes } from './validation.js';
import { emitWat, parseWat } from './wat.js';

const LOCALS: readonly LocalType[] = ['i32', 'i64', 'f32', 'f64', 'v128'];
const CALLEE = { params: ['i32', 'f64'], results: ['i64'] } as const;
const types: FunctionTypes = {
  local: (index) => LOCALS[index],
  global: (index) => (index === 0 ? 'i32' : undefined),
  function: (index) => (index === 0 ? CALLEE : undefined),
  results: () => ['i32'],
};

const typed = (): Code => new Code(types);
/** Assembles a function without parameters and with one i32 result around a text. */
const write = (text: string): Code => {
  const code = typed();
  emitWat(code, text, { $i: 0, $j: 1, $f: 2, $d: 3, $v: 4, $none: 9 });
  return code;
};

describe('ill-typed code fails where it is written', () => {
  it.each<[kind: string, write: () => void, error: string]>([
    [
      'an operand of another type',
      () => typed().i32(1).i64(2).op('i32.add'),
      "'i32.add' at byte 4: it needs i32 where i64 is. The stack holds i32 i64.",
    ],
    ['no operand', () => typed().op('i64.eqz'), 'it needs i64. The stack holds nothing.'],
    ['a result of another type', () => typed().i32(1).op('f32.neg'), 'it needs f32 where i32 is'],
    ['a vector', () => typed().get(4).op('i32.eqz'), 'it needs i32 where v128 is'],
    ['a lane', () => write('(f32x4.replace_lane 0 $v $i)'), 'it needs f32 where i32 is'],
    ['a shift of a vector', () => write('(i32x4.shl $v $v)'), 'it needs i32 where v128 is'],
    ['an address', () => write('(i32.load $j)'), 'it needs i32 where i64 is'],
    ['a stored value', () => write('(i64.store $i $i)'), 'it needs i64 where i32 is'],
    ['local.set', () => write('(local.set $j $i)'), "'local.set' at byte 2: it needs i64"],
    ['local.tee', () => write('(local.tee $f $i)'), 'it needs f32 where i32 is'],
    ['a local that is not there', () => write('$none'), 'there is no local 9'],
    ['global.set', () => typed().get(1).op('global.set').u32(0), 'it needs i32 where i64 is'],
    ['a global that is not there', () => typed().op('global.get').u32(3), 'there is no global 3'],
    ['an argument', () => typed().get(0).get(0).op('call').u32(0), 'it needs f64 where i32 is'],
    ['a function that is not there', () => typed().op('call').u32(7), 'there is no function 7'],
    ['select of two types', () => write('(select $i $f $i)'), 'it needs f32 where i32 is'],
    ['drop of nothing', () => typed().op('drop'), 'it needs a value'],
    ['a condition', () => typed().get(1).op('if').byte(0x40), 'it needs i32 where i64 is'],
    ["a block's result", () => write('(block (result f32) $i)'), 'it needs f32 where i32 is'],
    ['a block without its result', () => write('(block (result f32))'), 'it needs f32'],
    ['a value too many', () => write('(block $b $i)'), 'values are left on the stack'],
    ['values of the outer block', () => write('$i (block i32.eqz drop)'), 'it needs i32'],
    ['an arm', () => write('(if (result i32) $i (then 1) (else 1L))'), 'it needs i32 where i64'],
    ['an if without else', () => write('(if (result i32) $i (then 1))'), 'the if has no else'],
    ['else in a block', () => typed().op('block').byte(0x40).op('else'), 'it is in a block'],
    ["a branch's value", () => write('(block $out (result f64) (br $out $i))'), 'it needs f64'],
    ['br_table', () => write('(block $a (br_table $a $a $j))'), 'it needs i32 where i64 is'],
    ['a depth', () => typed().op('br').u32(2), 'no block is open at depth 2'],
    ['return', () => typed().get(3).op('return'), 'it needs i32 where f64 is'],
    ["a function's end", () => typed().get(1).op('end'), 'it needs i32 where i64 is'],
    ['code behind the end', () => typed().i32(1).op('end').op('nop'), 'the function has ended'],
    ['a type of a block', () => typed().op('block').byte(3), '0x3 is no type of a block'],
    ['bytes that are no instruction', () => typed().byte(0x06), '0x6 is no instruction'],
  ])('%s', (_, ill, error) => {
    expect(ill).toThrow(error);
  });

  it('fails in WAT, with the name of the instruction', () => {
    const [fn] = parseWat('(func $f (param $a i32) (result i64) (local $b f32) (i64.add $a $b))');
    const links = {
      functionIndex: () => 0,
      globalIndex: () => 0,
      signature: () => undefined,
      globalType: () => undefined,
    };
    expect(() => fn!.assemble(links)).toThrow("'i64.add' at byte 4: it needs i64 where f32 is");
  });
});

describe('code that is never reached', () => {
  it.each([
    ['br', '(block $out (result i32) (br $out $i) i32.add)'],
    ['return', '(block (result i64) (return $i))'],
    ['return of more', '(block (result i32) $j $d (return $i))'],
    ['unreachable', '(block (result f32) unreachable f32.add)'],
    ['br_table', '(block $a (result i32) $d (br_table $a $a $i $i) select)'],
    ['an operand of each type', 'unreachable (local.set $v i32x4.add)'],
    ['a block in it', 'unreachable (block (result i32) unreachable i32.eqz) (drop i32.eqz)'],
    ['an endless loop', '(loop $again (br $again)) '],
    ['an arm that leaves', '(if (result i64) $i (then (return 1)) (else $j))'],
  ])('has any operands behind %s', (_, text) => {
    expect(() => write(text)).not.toThrow();
  });

  it.each([
    ['operands that were pushed', 'unreachable $i f32.neg', 'it needs f32 where i32 is'],
    ['values that are left', '(block unreachable $i)', 'values are left on the stack'],
    ['a block in it, which is typed', 'unreachable (block (result i32))', 'it needs i32'],
    ['the code behind its block', '(block unreachable) (drop i32.eqz)', 'it needs i32'],
  ])('is checked for %s', (_, text, error) => {
    expect(() => write(text)).toThrow(error);
  });
});

describe('code that is moved', () => {
  it('is as if it had never been written', () => {
    const code = typed().i32(1);
    const start = code.length;
    code.i64(2).op('i64.eqz').op('i32.add').op('if').byte(0x40);
    code.cut(start);
    expect(() => code.i32(2).op('i32.add')).not.toThrow();
    expect(() => code.op('i64.eqz')).toThrow('it needs i64 where i32 is. The stack holds i32.');
  });

  it('is validated at its new place', () => {
    const code = typed().get(0).get(0);
    const sum = code.op('i32.add').cut(4);
    expect(() => code.append(sum)).not.toThrow();
    expect(() => code.get(1).append(sum)).toThrow('it needs i32 where i64 is');
  });

  it('may be inserted before code that is already written', () => {
    const code = typed();
    code.op('nop');
    const start = code.length;
    code.get(0).op('drop');
    expect(() =>
      code.insert(start, () => {
        code.get(1);
      }),
    ).not.toThrow();
    expect(() => code.op('i64.eqz').op('end')).not.toThrow();
  });
});

describe('engines', () => {
  const plain = (Object.keys(OPCODES) as Opcode[]).filter((name) => {
    const immediate = immediateOf(name);
    return immediate === undefined && !name.includes('relaxed') && name !== 'else';
  });
  const step = fc.oneof(
    { arbitrary: fc.constantFrom(...plain), weight: 3 },
    { arbitrary: fc.nat(4).map((local) => ({ get: local })), weight: 9 },
    { arbitrary: fc.nat(4).map((local) => ({ set: local })), weight: 2 },
    { arbitrary: fc.constantFrom(0x40, 0x7f, 0x7e).map((type) => ({ block: type })), weight: 2 },
    { arbitrary: fc.constantFrom(0x40, 0x7f).map((type) => ({ loop: type })), weight: 1 },
    { arbitrary: fc.constantFrom(0x40, 0x7f).map((type) => ({ if: type })), weight: 2 },
    { arbitrary: fc.nat(2).map((depth) => ({ br: depth })), weight: 1 },
    { arbitrary: fc.nat(2).map((depth) => ({ br_if: depth })), weight: 1 },
    { arbitrary: fc.constantFrom<Opcode>('end', 'else', 'drop', 'unreachable'), weight: 6 },
  );

  it('accept the same code', { tags: 'random' }, () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 14 }), (steps) => {
        const module = new ModuleBuilder();
        const index = module.reserve('f', { params: [], results: ['i32'] }, 'f');
        const emit = (code: Code): Uint8Array => {
          for (const each of steps) {
            if (typeof each === 'string') code.op(each);
            else
              for (const [name, number] of Object.entries(each))
                if (name === 'get') code.get(number);
                else if (name === 'set') code.set(number);
                else code.op(name as Opcode).byte(number);
          }
          return code.op('end').finish();
        };
        module.define(index, LOCALS, emit(new Code()));
        const accepts = (write: () => unknown): boolean => {
          try {
            write();
            return true;
          } catch {
            return false;
          }
        };
        const code = typed();
        // A block may still be open at the end.
        const accepted = accepts(() => emit(code)) && !accepts(() => code.op('nop'));
        expect(accepted).toBe(WebAssembly.validate(module.finish() as Uint8Array<ArrayBuffer>));
      }),
      { numRuns: 4000 },
    );
  });
});
