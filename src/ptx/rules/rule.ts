// A rule turns one kind of instruction into WebAssembly. The rows of the table of instructions
// refer to the rules (`isa/`); types and modifiers are data that a rule looks up.

import type { Inst } from '../analysis/program.js';
import type { Emitter } from '../emit/emitter.js';

export type Rule = (e: Emitter, inst: Inst) => void;
/** The rules by mnemonic. */
export type Rules = Pick<ReadonlyMap<string, Rule>, 'get'>;
