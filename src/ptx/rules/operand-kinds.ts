// Which kinds of operands may stand in a place of a form, as in NVIDIA's assembler. Operands of the
// instruction's own type are compared where their values are read (`Emitter.push`); here are those
// that have a type of their own, such as masks, counts and cache policies, which a rule may not
// even look at, and results.

import type { Arg, Register } from '../analysis/program.js';
import { isScalarType, scalarType } from '../scalar-types.js';

/** Instructions whose result nobody need want. */
const RESULT_UNWANTED = new Set(['atom', 'mbarrier', 'setp', 'copy']);
/** Those that take no `_` for the first of two results either. */
const FIRST_WANTED = new Set(['shfl', 'vote']);
/** Instructions without a form of one result. */
const TWO_RESULTS = new Set(['elect']);
/** Instructions that read special registers. */
const READS_SPECIAL = new Set(['mov', 'cvt']);
/** Their results, which may be waited for in vain, are written only where something reads them. */
const WARP_RESULTS = new Set(['shfl', 'redux', 'vote']);
/**
 * Instructions that take a variable's address in a register, or with an offset, but not its bare
 * name.
 */
const NAMES_REFUSED = new Set(['alloca', 'stackrestore', 'isspacep']);
/** Their registers stand in braces, one alone too. */
const BRACES = new Set(['ldmatrix', 'stmatrix', 'mma']);
/** Their vectors may be of wider registers than elements; then all have one width. */
const WIDER_ELEMENTS = new Set(['ld', 'ldu', 'st']);

/** What a token begins with; tokens are few. */
const names = new Map<string, string>();
function nameIn(token: string): string {
  let name = names.get(token);
  if (name === undefined) names.set(token, (name = token.split(/[|.]/, 1)[0]!));
  return name;
}
const INTEGERS = new Set(
  ['b', 's', 'u'].flatMap((kind) => [16, 32, 64].map((bits) => `${kind}${bits}`)),
);

/** True where an operand may stand in a place of a row. */
export function fitsPlace(
  mnemonic: string,
  modifiers: readonly string[],
  arg: Arg,
  token: string,
  result: boolean,
): boolean {
  const { kind } = arg;
  // Of all instructions only vmad takes one, and not where it adds one to the sum.
  if (kind === 'negated' && (mnemonic !== 'vmad' || modifiers.includes('po'))) return false;
  switch (token[0]) {
    case 'T':
      if (!result && (kind === 'register' || kind === 'integer')) return true;
      break;
    case '[':
      return kind === 'address';
    case '{':
      return kind === 'vector'
        ? fitsVector(mnemonic, arg, result)
        : kind !== 'address' && !BRACES.has(mnemonic);
    case '_':
      return kind === 'sink';
    case 'p':
    case '!':
      return fitsPredicate(mnemonic, arg, token, result);
  }
  if (token >= '0' && token < ':')
    return (
      kind === 'integer' ||
      ((mnemonic === 'bar' || mnemonic === 'barrier') && fitsInteger(arg, 'b32'))
    );
  if (kind === 'special') return !result && READS_SPECIAL.has(mnemonic);
  const two = token.includes('|');
  if (kind === 'pair') {
    if (
      !two ||
      !result ||
      (arg.second.kind !== 'sink' && !fitsPredicate(mnemonic, arg.second, 'p', true))
    )
      return false;
    return arg.first.kind === 'sink'
      ? !FIRST_WANTED.has(mnemonic)
      : fitsPlace(mnemonic, modifiers, arg.first, token.split('|')[0]!, true);
  }
  if (kind === 'sink')
    return (
      result &&
      (two
        ? !FIRST_WANTED.has(mnemonic) && !TWO_RESULTS.has(mnemonic)
        : RESULT_UNWANTED.has(mnemonic) && (mnemonic !== 'mbarrier' || token === 'b64'))
    );
  if (two && TWO_RESULTS.has(mnemonic)) return false;
  if (kind === 'address' || (kind === 'not' && token !== 'T')) return false;
  if (result && kind !== 'register' && kind !== 'vector' && kind !== 'selected') return false;
  if (kind === 'symbol' && arg.offset === 0 && NAMES_REFUSED.has(mnemonic)) return false;
  const name = nameIn(token);
  if (result && WARP_RESULTS.has(mnemonic) && name === 'T')
    return fitsResult(arg, modifiers.filter(isScalarType).at(-1)!);
  if (mnemonic === 'cvt' && modifiers.includes('pack')) return true;
  if (name === 'f32')
    return (
      kind !== 'register' ||
      (arg.register.type.bits === 32 && arg.register.type.kind !== 'predicate')
    );
  if (!INTEGERS.has(name)) return true;
  // Video instructions take no variables, others have 32 bits of an address.
  if (kind === 'symbol')
    return (
      arg.offset !== 0 &&
      (mnemonic === 'isspacep' || (name.endsWith('32') && !mnemonic.startsWith('v')))
    );
  return fitsInteger(arg, name);
}

function fitsPredicate(mnemonic: string, arg: Arg, token: string, result: boolean): boolean {
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
      return result && mnemonic === 'setp';
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

/** A register of that width that holds no float, or what stands for an integer. */
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
  mnemonic: string,
  { elements }: Arg & { kind: 'vector' },
  result: boolean,
): boolean {
  if (BRACES.has(mnemonic))
    return elements.every(({ kind }) => kind === 'register' || (result && kind === 'sink'));
  if (!WIDER_ELEMENTS.has(mnemonic)) return true;
  let first: Register | undefined;
  for (const element of elements) {
    if (element.kind !== 'register') continue;
    if (first && first.type.bits !== element.register.type.bits) return false;
    first = element.register;
  }
  return true;
}
