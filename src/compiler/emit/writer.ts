/** The PTX text while it is written: registers, labels, operands. */
import { doubleBits, floatBits } from '../ssa/fold.js';
import type { RegisterType, Value } from '../ssa/function.js';
import type { Feature } from './targets.js';

const prefixes: Readonly<Record<RegisterType, string>> = {
  pred: '%p',
  b16: '%rs',
  b32: '%r',
  b64: '%rd',
  f32: '%f',
  f64: '%fd',
  none: '',
};
const declared = {
  pred: 'pred',
  b16: 'b16',
  b32: 'b32',
  b64: 'b64',
  f32: 'f32',
  f64: 'f64',
} as const;

export class Writer {
  readonly capability: number;
  readonly lines: string[] = [];
  readonly features = new Set<Feature>();
  /** Whether only PTX for exactly this architecture has all instructions: sm_90a. */
  specific = false;
  /** Functions of the device's runtime that are called. */
  readonly uses = new Set<'print' | 'assert'>();
  /** Values that take another one's register. */
  roots: ReadonlyMap<Value, Value> = new Map();
  private readonly registers = new Map<Value, string>();
  private readonly counts: Record<RegisterType, number> = {
    pred: 0,
    b16: 0,
    b32: 0,
    b64: 0,
    f32: 0,
    f64: 0,
    none: 0,
  };
  private labels = 0;

  constructor(capability: number) {
    this.capability = capability;
  }

  register(type: RegisterType): string {
    return `${prefixes[type]}${++this.counts[type]}`;
  }

  label(): string {
    return `$L__${++this.labels}`;
  }

  /** Writes an instruction. */
  line(text: string): void {
    this.lines.push(`\t${text};`);
  }

  raw(text: string): void {
    this.lines.push(text);
  }

  put(label: string): void {
    this.lines.push(`${label}:`);
  }

  /** The text of a constant, or the value's register. */
  operand(value: Value): string {
    if (value.constant !== undefined) return immediate(value);
    if (value.op === 'undefined')
      return value.type === 'f32'
        ? '0f00000000'
        : value.type === 'f64'
          ? '0d0000000000000000'
          : '0';
    const root = this.roots.get(value) ?? value;
    let register = this.registers.get(root);
    if (register === undefined) {
      register = this.register(value.type);
      this.registers.set(root, register);
    }
    return register;
  }

  /** The register of a predicate: PTX takes no constant there. */
  predicate(value: Value): string {
    if (value.constant === undefined && value.op !== 'undefined') return this.operand(value);
    const register = this.register('pred');
    this.line(`mov.pred ${register}, ${value.constant === true ? '-1' : '0'}`);
    return register;
  }

  /** The address of an access. */
  address(base: Value, offset: number): string {
    const from = base.op === 'symbol' ? base.detail : this.operand(base);
    return offset === 0 ? `[${from}]` : `[${from}+${offset}]`;
  }

  declarations(): string[] {
    return Object.entries(declared)
      .filter(([type]) => this.counts[type as RegisterType] > 0)
      .map(
        ([type, name]) =>
          `\t.reg .${name} ` +
          `\t${prefixes[type as RegisterType]}<${this.counts[type as RegisterType] + 1}>;`,
      );
  }
}

function hex(bits: bigint, digits: number): string {
  return BigInt.asUintN(digits * 4, bits)
    .toString(16)
    .toUpperCase()
    .padStart(digits, '0');
}

export function immediate(value: Value): string {
  const { constant, type } = value;
  switch (type) {
    case 'f32':
      return `0f${hex(BigInt(floatBits(constant as number)), 8)}`;
    case 'f64':
      return `0d${hex(doubleBits(constant as number), 16)}`;
    case 'pred':
      return constant === true ? '-1' : '0';
    default:
      return String(constant);
  }
}
