// Lowers calls: arguments are bound to parameters, and functions that cannot be real ones are
// inlined.

import { BRANCH } from '../isa/traits.js';
import { scalarType } from '../scalar-types.js';
import type {
  Instruction,
  Operand,
  Prototype,
  PtxFunction,
  Statement,
  Variable,
} from '../syntax/ast.js';
import { INLINING } from './call-graph.js';
import { undefinedSymbol, variableLayout } from './data-layout.js';
import { isBare } from './lower-operands.js';
import { WideLowering } from './lower-wide.js';
import { MOST_INSTRUCTIONS, NOWHERE } from './lowering-state.js';
import type { LoweringContext } from './lowering-state.js';
import { assignRoles } from './operand-roles.js';
import { functionsIn, sameShape } from './pointed-functions.js';
import type { Arg, CallValue, Inst, Label, Register } from './program.js';
import type { Scope } from './scopes.js';
import { namedParameters } from './vector-parameters.js';

/** The most nested calls that are inlined. */
export const DEEPEST_INLINING = 200;

export interface LoweredCall {
  source: Instruction;
  target: PtxFunction | string | { address: Register; prototype: Prototype };
  argValues: CallValue[];
  resultValues: CallValue[];
  predicate: Inst['predicate'];
}

export abstract class CallLowering extends WideLowering {
  /** Functions that have to be inlined are inlined at their calls. */
  protected readonly inlines: boolean;
  protected inlining = 0;

  /** The scope of what is declared outside functions, for each thread. */
  protected readonly outermost = this.newScope();

  constructor(fn: PtxFunction, context: LoweringContext, inlines: boolean) {
    super(fn, context);
    this.inlines = inlines;
  }

  protected abstract body(
    statements: readonly Statement[],
    scope: Scope,
    returnTo: Label | undefined,
  ): void;

  protected call(source: Instruction, scope: Scope, predicate: Inst['predicate']): void {
    const { context, out } = this;
    const operands = [...source.operands];
    const results =
      operands[0]?.kind === 'list' ? (operands.shift() as Operand & { kind: 'list' }).elements : [];
    const callee = operands.shift();
    if (callee?.kind !== 'name' || !isBare(callee))
      throw this.fail(source, 'expected a function', callee?.at ?? source.start);
    const args =
      operands[0]?.kind === 'list' ? (operands.shift() as Operand & { kind: 'list' }).elements : [];
    const bind = ({ params, returns }: Prototype): [CallValue[], CallValue[]] => {
      const values: [CallValue[], CallValue[]] = [
        this.callValues(args, params, scope, source),
        this.callValues(results, returns, scope, source),
      ];
      this.matchArguments(source, [...returns, ...params], [...values[1], ...values[0]]);
      return values;
    };

    const pointer = scope.register(callee.name);
    let target: PtxFunction | string | { address: Register; prototype: Prototype };
    let argValues: CallValue[];
    let resultValues: CallValue[];
    if (pointer) {
      const list = operands.shift();
      const prototype =
        list?.kind === 'name' && isBare(list)
          ? this.prototypeOf(list.name, scope, source)
          : undefined;
      if (!prototype)
        throw this.fail(
          source,
          'an indirect call needs a .callprototype, .calltargets or a table of functions',
          source.start,
        );
      [argValues, resultValues] = bind(prototype);
      target = { address: pointer, prototype };
      out.indirectCalls = true;
      const waiting = this.inlines ? context.waiting.filter((fn) => sameShape(prototype, fn)) : [];
      if (waiting.length) {
        this.callOneOf(waiting, { source, target, argValues, resultValues, predicate });
        return;
      }
    } else {
      const fn = context.functions.get(callee.name);
      if (!fn) throw this.fail(source, `undefined function '${callee.name}'`, callee.at);
      if (fn.entry)
        throw this.fail(source, `'${callee.name}' is a kernel, not a function`, callee.at);
      const [takes, gives] = [
        namedParameters(fn.params).length,
        namedParameters(fn.returns).length,
      ];
      if (takes !== args.length || gives !== results.length) {
        throw this.fail(
          source,
          `'${callee.name}' takes ${takes} parameters and returns ${gives}, the call has ` +
            `${args.length} and ${results.length}`,
          callee.at,
        );
      }
      [argValues, resultValues] = bind(fn);
      if (fn.body) {
        const traits = context.traits.get(fn)!;
        if (traits.inlined && this.inlines) {
          this.inline(fn, source, argValues, resultValues, predicate);
          return;
        }
        if (traits.waits && this.inlines) {
          throw context.module.source.error(
            'unsupported',
            `'${fn.name}' is recursive and waits for other threads: not covered yet`,
            callee.at,
            context.module.source.text.slice(source.start, source.end),
          );
        }
        out.calls.add(fn);
        target = fn;
      } else if (context.hostFunctions.has(callee.name)) {
        target = callee.name;
      } else {
        // CUDA's headers call this for `kernel<<<…>>>`, streams and events in a kernel.
        if (!callee.name.startsWith('__cudaCDP2'))
          throw this.fail(source, undefinedSymbol(callee.name, context.module), callee.at);
        throw context.module.source.error(
          'unsupported',
          `function '${callee.name}' is of CUDA's device runtime: kernels that launch ` +
            'kernels (dynamic parallelism) are not covered. Launch them from the host',
          callee.at,
          context.module.source.text.slice(source.start, source.end),
        );
      }
    }
    this.pushCall({ source, target, argValues, resultValues, predicate });
    if (target === '__assertfail')
      this.push({
        mnemonic: 'exit',
        traits: BRANCH,
        modifiers: [],
        args: [],
        predicate,
        source,
        defs: [],
        uses: [],
        targets: NOWHERE,
        call: undefined,
      });
  }

  protected pushCall({ source, target, argValues, resultValues, predicate }: LoweredCall): void {
    const defs: Register[] = [];
    const uses: Register[] = [];
    for (const value of argValues) {
      if (value.kind === 'register' || value.kind === 'pointer') uses.push(value.register);
    }
    for (const value of resultValues) {
      if (value.kind === 'register') defs.push(value.register);
      else if (value.kind === 'pointer') uses.push(value.register);
    }
    if (typeof target === 'object' && 'address' in target) uses.push(target.address);
    if (predicate) uses.push(predicate.register, ...defs);
    this.push({
      mnemonic: 'call',
      traits: this.traitsOf('call'),
      modifiers: source.modifiers,
      args: [],
      predicate,
      source,
      defs,
      uses,
      targets: NOWHERE,
      call: { callee: target, args: argValues, results: resultValues },
    });
  }

  /**
   * Functions that wait are inlined here, each after a comparison of its address; an address of no
   * such function is called.
   */
  protected callOneOf(
    waiting: readonly PtxFunction[],
    call: LoweredCall & { target: { address: Register } },
  ): void {
    const { source, target, argValues, resultValues, predicate } = call;
    const { context } = this;
    const at = source.start;
    const done: Label = { name: '(called)', block: -1 };
    if (predicate)
      this.branch(source, done, { register: predicate.register, negated: !predicate.negated });
    for (const fn of waiting) {
      if (!context.traits.get(fn)!.inlined) {
        throw context.module.source.error(
          'unsupported',
          `'${fn.name}' is recursive and waits for other threads: not covered yet`,
          at,
          context.module.source.text.slice(at, source.end),
        );
      }
      this.matchArguments(source, [...fn.returns, ...fn.params], [...resultValues, ...argValues]);
      const other: Label = { name: `(not ${fn.name})`, block: -1 };
      const address: Arg = {
        kind: 'register',
        register: this.newRegister('(function)', scalarType('u64')),
        at,
      };
      const equal = this.newRegister('(is it)', scalarType('pred'));
      this.made(
        source,
        'mov',
        ['u64'],
        [address, { kind: 'symbol', symbol: { kind: 'function', target: fn }, offset: 0, at }],
      );
      this.made(
        source,
        'setp',
        ['eq', 'u64'],
        [
          { kind: 'register', register: equal, at },
          { kind: 'register', register: target.address, at },
          address,
        ],
      );
      this.branch(source, other, { register: equal, negated: true });
      this.inline(fn, source, argValues, resultValues, undefined);
      this.branch(source, done, undefined);
      this.out.code.push(other);
    }
    this.pushCall({ ...call, predicate: undefined });
    this.out.code.push(done);
  }

  /**
   * What a call through a pointer names after its arguments: a prototype, a list of functions, or a
   * variable that contains their addresses.
   */
  protected prototypeOf(name: string, scope: Scope, source: Instruction): Prototype | undefined {
    const { functions, module } = this.context;
    const known = scope.prototype(name);
    if (known) return known;
    const targets = scope.targetList(name) ?? functionsIn(name, module);
    for (const target of targets) {
      const fn = functions.get(target);
      if (!fn || fn.entry)
        throw this.fail(source, `'${target}' in '${name}' is no function`, source.start);
    }
    // All of them have the same parameters.
    return targets[0] === undefined ? undefined : functions.get(targets[0]);
  }

  /**
   * Aggregates are passed as the memory that contains them and have the parameter's size; scalars
   * have the parameter's type.
   */
  protected matchArguments(
    source: Instruction,
    variables: readonly Variable[],
    values: readonly CallValue[],
  ): void {
    variables.forEach((variable, index) => {
      const value = values[index];
      if (value && !this.takes(variable, value))
        throw this.fail(
          source,
          'parameter ' +
            `'${variable.elements === undefined ? variable.name : variable.name.split('.')[0]!}' ` +
            'does not take this argument',
          source.start,
        );
    });
  }

  protected takes(variable: Variable, value: CallValue): boolean {
    const { aggregate, size, element } = variableLayout(variable);
    switch (value.kind) {
      case 'frame':
        return (
          aggregate &&
          (variable.dimensions[0] === 0 ||
            this.out.frameVariables.find(({ offset }) => offset === value.offset)?.size === size)
        );
      case 'pointer':
        return aggregate;
      case 'constant':
        return !aggregate;
      case 'register': {
        const { type } = value.register;
        const wanted = scalarType(variable.type);
        // Elements of vectors are compared by width, as in ptxas.
        const alike =
          variable.elements !== undefined ||
          type.kind === 'bits' ||
          wanted.kind === 'bits' ||
          (type.kind === 'float') === (wanted.kind === 'float');
        return !aggregate && Math.max(type.bits, 8) === element * 8 && alike;
      }
    }
  }

  /** The arguments or results of a call; for a vector, each element. */
  protected callValues(
    operands: readonly Operand[],
    variables: readonly Variable[],
    scope: Scope,
    source: Instruction,
  ): CallValue[] {
    const named = namedParameters(variables);
    return operands.flatMap((operand, index) => {
      const variable = named[index];
      const count = variable?.elements ?? 1;
      if (variable === undefined || count === 1)
        return [this.callValue(operand, scope, source, variable)];
      const arg = this.operand(operand, scope, source);
      const elements =
        arg.kind === 'sink'
          ? Array.from({ length: count }, () => arg)
          : arg.kind === 'vector'
            ? arg.elements
            : [];
      if (elements.length !== count)
        throw this.fail(
          source,
          `parameter '${variable.name.split('.')[0]!}' takes a register of ${count} elements`,
          operand.at,
        );
      return elements.map((element): CallValue => ({
        kind: 'register',
        register:
          element.kind === 'register'
            ? element.register
            : this.newRegister('_', scalarType(variable.type)),
      }));
    });
  }

  protected callValue(
    operand: Operand,
    scope: Scope,
    source: Instruction,
    result?: Variable,
  ): CallValue {
    const arg = this.operand(operand, scope, source);
    if (arg.kind === 'register') return { kind: 'register', register: arg.register };
    if (arg.kind === 'symbol') {
      if (arg.symbol.kind === 'paramRegister')
        return { kind: 'register', register: arg.symbol.register };
      if (arg.symbol.kind === 'frame') return { kind: 'frame', offset: arg.symbol.offset };
      if (arg.symbol.kind === 'incoming') return { kind: 'pointer', register: arg.symbol.pointer };
    }
    if (arg.kind === 'sink')
      return {
        kind: 'register',
        register: this.newRegister('_', scalarType(result?.type ?? 'b64')),
      };
    return { kind: 'constant', arg };
  }

  protected inline(
    fn: PtxFunction,
    source: Instruction,
    args: CallValue[],
    results: CallValue[],
    predicate: Inst['predicate'],
  ): void {
    const after: Label = { name: `(after ${fn.name})`, block: -1 };
    this.context.lowered.add(fn);
    // A few empty functions that call each other twice are a short text and more code than any
    // memory holds.
    this.instructions += INLINING;
    if (this.instructions > MOST_INSTRUCTIONS || ++this.inlining > DEEPEST_INLINING) {
      throw this.tooLarge();
    }
    if (predicate)
      this.branch(source, after, { register: predicate.register, negated: !predicate.negated });
    const scope = this.newScope(this.outermost);
    /** Results whose type in the function differs from that of the register that takes them. */
    const converted: { from: Register; to: Register }[] = [];
    const bind = (variable: Variable, value: CallValue, incoming: boolean): void => {
      const { aggregate } = variableLayout(variable);
      if (value.kind === 'frame') {
        scope.symbols.set(variable.name, { kind: 'frame', offset: value.offset });
      } else if (value.kind === 'pointer') {
        scope.symbols.set(variable.name, { kind: 'incoming', pointer: value.register });
      } else if (aggregate) {
        throw this.fail(
          source,
          `parameter '${variable.name}' of '${fn.name}' is an aggregate`,
          source.start,
        );
      } else if (value.kind === 'constant' || incoming) {
        // The callee may write to its copy.
        const register = this.newRegister(variable.name, scalarType(variable.type));
        const from: Arg =
          value.kind === 'constant'
            ? value.arg
            : { kind: 'register', register: value.register, at: source.start };
        const move: Inst = {
          mnemonic: 'copy',
          traits: this.traitsOf('copy'),
          modifiers: [],
          args: [{ kind: 'register', register, at: source.start }, from],
          predicate: undefined,
          source,
          defs: [],
          uses: [],
          targets: [],
          call: undefined,
        };
        assignRoles(move);
        this.push(move);
        this.alias(scope, variable, register);
      } else if (
        variable.space === 'reg' &&
        value.register.type.name !== variable.type &&
        value.register.type.bits > 8
      ) {
        const from = this.newRegister(variable.name, scalarType(variable.type));
        converted.push({ from, to: value.register });
        this.alias(scope, variable, from);
      } else {
        this.alias(scope, variable, value.register);
      }
    };
    fn.params.forEach((variable, index) => bind(variable, args[index]!, true));
    fn.returns.forEach((variable, index) => bind(variable, results[index]!, false));
    const returned: Label = converted.length ? { name: `(end of ${fn.name})`, block: -1 } : after;
    this.body(fn.body!, this.newScope(scope), returned);
    this.inlining--;
    if (returned !== after) this.out.code.push(returned);
    for (const { from, to } of converted) {
      const args: Arg[] = [to, from].map((register) => ({
        kind: 'register',
        register,
        at: source.start,
      }));
      this.made(source, 'mov', [`b${to.type.bits}`], args);
    }
    this.out.code.push(after);
  }
}
