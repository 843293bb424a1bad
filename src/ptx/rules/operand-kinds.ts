// The kinds of operands that may occur in a place of a form, by NVIDIA's assembler. Operands of the
// instruction's own type are checked where their values are read (`Emitter.push`). This file checks
// those that have a type of their own, such as masks, counts and cache policies, which some rules
// do not read at all, and results. Properties of single instructions are in their rows.

import type { Arg, Register } from '../analysis/program.js';
import type { OperandTraits } from '../isa/traits.js';
import { isScalarType, scalarType } from '../scalar-types.js';

/** The leading word of a token; tokens are few. */
const names = new Map<string, string>();
function nameIn(token: string): string {
  let name = names.get(token);
  if (name === undefined) names.set(token, (name = token.split(/[|.]/, 1)[0]!));
  return name;
}
const INTEGERS = new Set(
  ['b', 's', 'u'].flatMap((kind) => [16, 32, 64].map((bits) => `${kind}${bits}`)),
);

/** True if an operand may occur in a place of a form. */
export function fitsPlace(
  traits: OperandTraits,
  modifiers: readonly string[],
  arg: Arg,
  token: string,
  result: boolean,
): boolean {
  const { kind } = arg;
  if (kind === 'negated' && traits.negated?.(modifiers) !== true) return false;
  switch (token[0]) {
    case 'T':
      if (!result && (kind === 'register' || kind === 'integer')) return true;
      break;
    case '[':
      return kind === 'address' && fitsAddress(arg, token);
    case '{':
      return kind === 'vector'
        ? fitsVector(traits, arg, result)
        : kind !== 'address' && !traits.braces;
    case '_':
      return kind === 'sink';
    case 'p':
    case '!':
      return fitsPredicate(traits, arg, token, result);
  }
  if (token >= '0' && token < ':')
    return kind === 'integer' || (traits.registersForNumbers === true && fitsInteger(arg, 'b32'));
  if (kind === 'special') return !result && traits.readsSpecial === true;
  const two = token.includes('|');
  if (kind === 'pair') {
    if (
      !two ||
      !result ||
      (arg.second.kind !== 'sink' && !fitsPredicate(traits, arg.second, 'p', true))
    )
      return false;
    return arg.first.kind === 'sink'
      ? !traits.firstWanted
      : fitsPlace(traits, modifiers, arg.first, token.split('|')[0]!, true);
  }
  if (kind === 'sink')
    return (
      result &&
      (two
        ? !traits.firstWanted && !traits.twoResults
        : traits.resultUnwanted === 'always' || traits.resultUnwanted === token)
    );
  if (two && traits.twoResults) return false;
  if (kind === 'address' || (kind === 'not' && token !== 'T')) return false;
  if (result && kind !== 'register' && kind !== 'vector' && kind !== 'selected') return false;
  if (kind === 'symbol' && arg.offset === 0 && traits.refusesNames) return false;
  const name = nameIn(token);
  if (result && traits.warpResult && name === 'T')
    return fitsResult(arg, modifiers.filter(isScalarType).at(-1)!);
  if (modifiers.includes('pack')) return true;
  if (name === 'f32')
    return (
      kind !== 'register' ||
      (arg.register.type.bits === 32 && arg.register.type.kind !== 'predicate')
    );
  if (!INTEGERS.has(name)) return true;
  if (kind === 'symbol')
    return (
      arg.offset !== 0 &&
      (traits.takesOffsets === true || (name.endsWith('32') && !traits.refusesOffsets))
    );
  return fitsInteger(arg, name);
}

/** `[g,3]` is an address with three coordinates in braces. */
function fitsAddress({ extra }: Arg & { kind: 'address' }, token: string): boolean {
  const count = /,(\d)/.exec(token)?.[1];
  if (count === undefined) return extra.length === 0;
  const [coordinates, ...more] = extra;
  return (
    more.length === 0 &&
    coordinates?.kind === 'vector' &&
    coordinates.elements.length === Number(count) &&
    coordinates.elements.every((element) => fitsInteger(element, 'b32'))
  );
}

function fitsPredicate(traits: OperandTraits, arg: Arg, token: string, result: boolean): boolean {
  switch (arg.kind) {
    case 'register':
      return arg.register.type.kind === 'predicate';
    case 'pair':
      return (
        result &&
        token.includes('|') &&
        [arg.first, arg.second].every(({ kind }) => kind === 'sink' || kind === 'register')
      );
    case 'sink':
      return result && traits.resultUnwanted === 'always';
    case 'not':
    case 'integer':
      return !result;
    default:
      return false;
  }
}

function fitsResult(arg: Arg, name: string): boolean {
  if (arg.kind !== 'register') return false;
  const [own, type] = [arg.register.type, scalarType(name)];
  return (
    own.kind !== 'predicate' &&
    own.bits === type.bits &&
    (own.kind !== 'float' || type.kind === 'float' || type.kind === 'bits')
  );
}

/** A register of that width that holds no float, or an operand that can replace an integer. */
function fitsInteger(arg: Arg, name: string): boolean {
  switch (arg.kind) {
    case 'register':
      return (
        arg.register.type.kind !== 'float' &&
        arg.register.type.kind !== 'predicate' &&
        arg.register.type.bits === scalarType(name).bits
      );
    case 'selected':
    case 'negated':
      return fitsInteger(arg.operand, name);
    case 'integer':
      return true;
    default:
      return false;
  }
}

function fitsVector(
  traits: OperandTraits,
  { elements }: Arg & { kind: 'vector' },
  result: boolean,
): boolean {
  if (traits.braces)
    return elements.every(({ kind }) => kind === 'register' || (result && kind === 'sink'));
  if (!traits.widerElements) return true;
  let first: Register | undefined;
  for (const element of elements) {
    if (element.kind !== 'register') continue;
    if (first && first.type.bits !== element.register.type.bits) return false;
    first = element.register;
  }
  return true;
}
