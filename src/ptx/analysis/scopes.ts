// Name scopes of a function body. Registers are declared in families (`%r<100>`), so a register is
// made at its first use; braces open a scope, by which inline assembly keeps its temporaries apart.

import type { ScalarType } from '../scalar-types.js';
import type { Prototype } from '../syntax/ast.js';
import type { Label, Register, Symbol } from './program.js';

interface Family {
  type: ScalarType;
  count: number;
}

export class Scope {
  readonly parent: Scope | undefined;
  readonly symbols = new Map<string, Symbol>();
  readonly prototypes = new Map<string, Prototype>();
  readonly targets = new Map<string, string[]>();
  readonly labels = new Map<string, Label>();
  private readonly registers = new Map<string, Register | ScalarType>();
  private readonly families = new Map<string, Family>();
  private readonly make: (name: string, type: ScalarType) => Register;

  constructor(make: (name: string, type: ScalarType) => Register, parent?: Scope) {
    this.make = make;
    this.parent = parent;
  }

  /** `element`: for registers that are vectors, the element with its dot. */
  declare(name: string, type: ScalarType, count: number | undefined, element = ''): void {
    if (count === undefined) this.registers.set(name + element, type);
    else this.families.set(name + element, { type, count });
  }

  bind(name: string, register: Register): void {
    this.registers.set(name, register);
  }

  register(name: string): Register | undefined {
    const known = this.registers.get(name);
    if (known) {
      if ('id' in known) return known;
      const made = this.make(name, known);
      this.registers.set(name, made);
      return made;
    }
    if (this.families.size) {
      // %r12 is member 12 of family %r. A family's own name may end in digits, so every split is
      // tried, the most likely first.
      const dot = name.indexOf('.');
      const end = dot < 0 ? name.length : dot;
      const element = name.slice(end);
      let first = end;
      while (first > 1 && isDigit(name, first - 1)) first--;
      for (let split = first; split < end; split++) {
        const family = this.families.get(name.slice(0, split) + element);
        if (!family) continue;
        const digits = name.slice(split, end);
        if ((digits.length > 1 && digits.startsWith('0')) || Number(digits) >= family.count)
          continue;
        const made = this.make(name, family.type);
        this.registers.set(name, made);
        return made;
      }
    }
    return this.parent?.register(name);
  }

  symbol(name: string): Symbol | undefined {
    return this.symbols.get(name) ?? this.parent?.symbol(name);
  }

  prototype(name: string): Prototype | undefined {
    return this.prototypes.get(name) ?? this.parent?.prototype(name);
  }

  targetList(name: string): string[] | undefined {
    return this.targets.get(name) ?? this.parent?.targetList(name);
  }

  label(name: string): Label | undefined {
    return this.labels.get(name) ?? this.parent?.label(name);
  }
}

function isDigit(text: string, at: number): boolean {
  const code = text.charCodeAt(at);
  return code >= 48 && code <= 57;
}
