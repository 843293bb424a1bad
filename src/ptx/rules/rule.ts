// A rule turns one kind of instruction into WebAssembly. Rules are keyed by mnemonic; types and
// modifiers are data that the rule looks up, so that a form nobody wrote down still works when its
// parts do.

import type { Inst } from '../analysis/program.js';
import type { Emitter } from '../emit/emitter.js';

export type Rule = (e: Emitter, inst: Inst) => void;
export type Rules = ReadonlyMap<string, Rule>;
export type RuleRow = readonly [mnemonic: string, rule: Rule];
