// Parts of instructions that are long and the same for many instructions: a fragment of a matrix
// that is written to the warp's area, read from it, or moved between memory and registers. Each is
// one function of the module, which the instructions call: WebAssembly engines limit the size of
// functions, and kernels of matrix products contain thousands.

import type { Arg, Inst, Register } from '../analysis/program.js';
import { scalarType } from '../scalar-types.js';
import type { LocalType, ScalarType, WasmType } from '../scalar-types.js';
import { Bytes } from '../wasm/bytes.js';
import { Emitter } from './emitter.js';
import type { Surroundings } from './surroundings.js';

/** An input or an output: the operand of the instruction, and its type there. */
export interface PartValue {
  readonly arg: Arg;
  readonly type: ScalarType;
}

/** An input may also be in a local. */
export type PartInput = PartValue | { readonly local: number; readonly type: ScalarType };

interface Part {
  /** Distinguishes this part from all others of the module. */
  readonly key: string;
  readonly inputs: readonly PartInput[];
  readonly outputs?: readonly PartValue[];
  /** What the function needs from its caller. */
  readonly mailbox?: () => void;
  readonly matrixResults?: () => void;
  /** It accesses memory, and may fault. */
  readonly faults?: boolean;
  /** Writes the function's code; the registers are the inputs and outputs. */
  readonly build: (e: PartEmitter, inputs: readonly Arg[], outputs: readonly Arg[]) => void;
}

const FIXED: readonly WasmType[] = ['i32', 'i32', 'i32', 'i32', 'i32'];

/** Writes such a function: (ctx, thread, line, mailbox, results of matrices, …inputs) → outputs. */
export class PartEmitter extends Emitter {
  readonly ctx = 0;
  readonly thread = 1;
  readonly waitsForCluster = false;
  readonly paramBytes = undefined;
  private readonly inputs: readonly Register[];
  private readonly outputs: readonly Register[];

  constructor(
    around: Surroundings,
    inst: Inst,
    inputs: readonly Register[],
    outputs: readonly Register[],
  ) {
    super(around);
    this.inst = inst;
    this.inputs = inputs;
    this.outputs = outputs;
    this.paramCount = FIXED.length + inputs.length;
    inputs.forEach((register, index) => {
      this.bindRegister(register, FIXED.length + index);
    });
  }

  protected override paramType(index: number): LocalType {
    return FIXED[index] ?? this.inputs[index - FIXED.length]!.type.wasm;
  }

  protected override get resultTypes(): readonly LocalType[] {
    return this.outputs.map(({ type }) => type.wasm);
  }

  override pushLine(): void {
    this.code.get(2);
  }

  pushMailbox(): void {
    this.code.get(3);
  }

  pushMatrixResults(): void {
    this.code.get(4);
  }

  leaveFaulted(): void {
    this.pushOutputs();
    this.code.op('return');
  }

  /** Pushes the results that the function has computed so far. */
  private pushOutputs(): void {
    for (const register of this.outputs) this.code.get(this.registerLocal(register));
  }

  finish(): { locals: readonly LocalType[]; code: Uint8Array } {
    this.pushOutputs();
    this.code.op('end');
    const whole = new Bytes().append(this.prologue.finish()).append(this.code.finish());
    return { locals: this.localTypes, code: whole.finish() };
  }

  protected isBlockLocal(): boolean {
    return false;
  }

  protected emitInst(): void {
    throw this.outside();
  }

  unwind(): void {
    throw this.outside();
  }

  pushFrame(): void {
    throw this.outside();
  }

  pushThreadIndex(): void {
    throw this.outside();
  }

  pushStack(): void {
    throw this.outside();
  }

  pushLocalEnd(): void {
    throw this.outside();
  }

  private outside(): Error {
    return new Error(`'${this.inst.mnemonic}': only in the place of an instruction`);
  }
}

/** Calls the part; it is made at its first use. */
export function callPart(e: Emitter, part: Part): void {
  const { key, inputs, outputs = [], mailbox, matrixResults, faults = false, build } = part;
  const {
    code,
    around: { linker },
  } = e;
  const registers = (values: readonly PartInput[], name: string, first: number): Register[] =>
    values.map(({ type }, index) => ({ id: first + index, name, type }));
  const index = linker.once(
    key,
    {
      params: [...FIXED, ...inputs.map(({ type }) => type.wasm)],
      results: outputs.map(({ type }) => type.wasm),
    },
    () => {
      const given = registers(inputs, 'input', 0);
      const made = registers(outputs, 'output', inputs.length);
      const writer = new PartEmitter(e.around, e.inst, given, made);
      const args = (list: readonly Register[]): Arg[] =>
        list.map((register) => ({ kind: 'register', register, at: e.inst.source.start }));
      build(writer, args(given), args(made));
      return writer.finish();
    },
  );
  code.get(e.ctx).get(e.thread);
  e.pushLine();
  for (const push of [mailbox, matrixResults]) {
    if (push) push();
    else code.i32(0);
  }
  for (const input of inputs) {
    if ('local' in input) code.get(input.local);
    else e.push(input.arg, input.type);
  }
  code.op('call').u32(index);
  for (const { arg, type } of [...outputs].reverse()) e.pop(arg, type);
  if (!faults) return;
  code.op('global.get').u32(linker.globalIndex('unwind'));
  e.when(() => {
    e.unwind();
  });
}

/** The type of untyped bits of a register's width. */
export const bitsType = (bits: number): ScalarType => scalarType(bits === 64 ? 'b64' : 'b32');
