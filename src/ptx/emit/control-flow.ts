// Writes basic blocks as structured WebAssembly. Forward branches leave nested blocks, back edges
// continue loops, and a thread that resumes in the middle gets there through the dispatch at the
// head of each region on its way.

import { UNCOVERED_MNEMONICS } from '../rules/uncovered.js';
import type { Block } from '../analysis/blocks.js';
import { successors } from '../analysis/blocks.js';
import type { Liveness } from '../analysis/liveness.js';
import type { Inst, Register } from '../analysis/program.js';
import { firstBlock } from '../analysis/regions.js';
import type { Region, Shape } from '../analysis/regions.js';
import { NoSuchType, scalarType } from '../scalar-types.js';
import type { Rule, Rules } from '../rules/rule.js';
import { NoSuchInstruction } from '../wasm/opcodes.js';
import { emitChoiceCheck } from './check.js';
import { Copies } from './copies.js';
import { Emitter } from './emitter.js';
import type { Surroundings } from './surroundings.js';

const PREDICATE = scalarType('pred');

export abstract class ControlFlowEmitter extends Emitter {
  readonly blocks: readonly Block[];
  readonly shape: Shape;
  readonly liveness: Liveness;
  private readonly rules: Rules;
  /** The entry number of each block that can be entered from elsewhere, from 1 up. */
  protected readonly entryOf = new Map<number, number>();
  protected readonly entries: number[] = [];
  private entryLocal = -1;
  private readonly nextInLayout = new Map<number, number>();
  private readonly labelled = new Set<number>();
  private readonly blockLabels = new Map<number, object>();
  private readonly loopLabels = new Map<Region, object>();
  /** For each register, the last instruction of the current block that names it. */
  private readonly lastUse: Int32Array;
  /** True if some loop has a dispatch, so that the entry number has to be cleared after its use. */
  private clearsEntry = false;
  private knownCopies: Copies | undefined = undefined;

  constructor(
    around: Surroundings,
    blocks: readonly Block[],
    shape: Shape,
    liveness: Liveness,
    rules: Rules,
  ) {
    super(around);
    this.blocks = blocks;
    this.shape = shape;
    this.liveness = liveness;
    this.rules = rules;
    this.lastUse = new Int32Array(liveness.registers);
  }

  override get copies(): Copies | undefined {
    if (this.around.check === undefined) return undefined;
    return (this.knownCopies ??= new Copies(this.blocks, this.liveness.registers, this.results));
  }

  /** Registers whose values leave the function. */
  protected get results(): readonly Register[] {
    return [];
  }

  protected isBlockLocal(register: Register): boolean {
    return this.liveness.isLocal(register);
  }

  /** Writes the end of a block that leaves: return, exit, trap, cut. */
  protected abstract leave(block: Block): void;
  /** Called after the decision to take a back edge: `again()` writes a br_if to the loop. */
  protected abstract backEdge(header: number, again: () => void): void;

  protected addEntry(block: number): void {
    if (this.entryOf.has(block)) return;
    this.entries.push(block);
    this.entryOf.set(block, this.entries.length);
  }

  protected get entryNumber(): number {
    if (this.entryLocal < 0) this.entryLocal = this.newLocal('i32');
    return this.entryLocal;
  }

  /** Writes the whole function, after entries have been added. */
  protected emitFlow(): void {
    const { shape } = this;
    for (const target of shape.irregularTargets) this.addEntry(target);
    shape.order.forEach((block, index) => {
      this.nextInLayout.set(block, shape.order[index + 1] ?? -1);
    });
    for (const from of shape.order) {
      for (const to of successors(this.blocks[from]!)) {
        // The label of an item is also that of the first block of each region around the target.
        if (this.nextInLayout.get(from) !== to || this.blocks[from]!.ending.kind === 'switch')
          this.labelled.add(to);
      }
    }
    const dispatches = (region: Region): boolean => this.innerEntries(region).length > 0;
    this.clearsEntry = shape.root.dispatchLoop;
    const visit = (region: Region): void => {
      if (region.header >= 0 && dispatches(region)) this.clearsEntry = true;
      for (const item of region.items) if (typeof item !== 'number') visit(item);
    };
    visit(shape.root);
    this.emitRegion(shape.root);
  }

  private innerEntries(region: Region): number[] {
    return this.entries.filter((block) => region.members.has(block) && block !== region.header);
  }

  private emitRegion(region: Region): void {
    const { code } = this;
    const inner = this.innerEntries(region);
    const isLoop = region.header >= 0 || region.dispatchLoop;
    if (region.header >= 0 && !inner.length && this.entryOf.has(region.header)) this.clearEntry();
    if (isLoop) {
      const label = {};
      this.loopLabels.set(region, label);
      this.openLabel('loop', label);
    }
    const { items } = region;
    const holdsEntry = (item: number | Region): boolean =>
      typeof item === 'number'
        ? this.entryOf.has(item) && inner.includes(item)
        : inner.some((block) => item.members.has(block));
    const opened: boolean[] = items.map(
      (item, index) =>
        index > 0 &&
        (this.labelled.has(firstBlock(item)) || (inner.length > 0 && holdsEntry(item))),
    );
    for (let index = items.length - 1; index > 0; index--) {
      if (!opened[index]) continue;
      const label = {};
      this.blockLabels.set(firstBlock(items[index]!), label);
      this.openLabel('block', label);
    }
    if (inner.length) {
      const fallthrough = {};
      this.openLabel('block', fallthrough);
      code
        .get(this.entryNumber)
        .op('br_table')
        .u32(this.entries.length + 1);
      const target = (block: number): number => {
        if (!inner.includes(block)) return this.depthOf(fallthrough);
        const index = items.findIndex((item) =>
          typeof item === 'number' ? item === block : item.members.has(block),
        );
        return index > 0
          ? this.depthOf(this.blockLabels.get(firstBlock(items[index]!))!)
          : this.depthOf(fallthrough);
      };
      code.u32(this.depthOf(fallthrough));
      for (const block of this.entries) code.u32(target(block));
      code.u32(this.depthOf(fallthrough));
      this.closeLabel();
    }
    items.forEach((item, index) => {
      if (opened[index]) this.closeLabel();
      if (typeof item !== 'number') {
        this.emitRegion(item);
        return;
      }
      const isHeader = item === region.header;
      if (this.entryOf.has(item) && (!isHeader || inner.length)) this.clearEntry();
      this.emitBlock(this.blocks[item]!);
    });
    if (isLoop) {
      this.closeLabel();
      this.loopLabels.delete(region);
    }
  }

  private clearEntry(): void {
    if (this.clearsEntry) this.code.i32(0).set(this.entryNumber);
  }

  private emitBlock(block: Block): void {
    const { insts, ending } = block;
    const { lastUse } = this;
    // An index is used: an iterator for each list of each instruction costs more than the work
    // itself.
    for (let index = 0; index < insts.length; index++) {
      const { uses, defs } = insts[index]!;
      for (let at = 0; at < uses.length; at++) lastUse[uses[at]!.id] = index;
      for (let at = 0; at < defs.length; at++) lastUse[defs[at]!.id] = index;
    }
    if ('inst' in ending)
      for (const register of ending.inst.uses) lastUse[register.id] = insts.length;
    for (let index = 0; index < insts.length; index++) {
      const inst = insts[index]!;
      this.emitInst(inst);
      const { uses, defs } = inst;
      for (let at = 0; at < uses.length; at++)
        if (lastUse[uses[at]!.id] === index) this.releaseRegister(uses[at]!);
      for (let at = 0; at < defs.length; at++)
        if (lastUse[defs[at]!.id] === index) this.releaseRegister(defs[at]!);
    }
    this.emitEnding(block);
    if ('inst' in ending) for (const register of ending.inst.uses) this.releaseRegister(register);
  }

  protected emitInst(inst: Inst): void {
    this.inst = inst;
    const rule = this.rules.get(inst.mnemonic);
    if (!rule)
      throw UNCOVERED_MNEMONICS.has(inst.mnemonic)
        ? this.unsupported()
        : this.semantic(`'${inst.mnemonic}' is no instruction of PTX`);
    if (this.around.check) emitChoiceCheck(this);
    if (inst.predicate) {
      this.code.get(this.registerLocal(inst.predicate.register));
      if (inst.predicate.negated) this.code.op('i32.eqz');
      this.when(() => {
        this.apply(rule, inst);
      });
    } else {
      this.apply(rule, inst);
    }
    this.endInstruction();
  }

  /**
   * A rule that requests an operation on the wrong kind of value has a type that PTX does not
   * allow.
   */
  private apply(rule: Rule, inst: Inst): void {
    try {
      rule(this, inst);
    } catch (error) {
      if (!(error instanceof NoSuchInstruction) && !(error instanceof NoSuchType)) throw error;
      const types = this.types()
        .map((type) => `.${type.name}`)
        .join(', ');
      throw this.semantic(`'${inst.mnemonic}' does not take ${types}`);
    }
  }

  private emitEnding(block: Block): void {
    const { ending } = block;
    if ('inst' in ending) this.inst = ending.inst;
    switch (ending.kind) {
      case 'jump':
        this.jump(block.index, ending.to);
        return;
      case 'switch': {
        this.emitSwitch(block.index, ending.inst, ending.to);
        return;
      }
      case 'branch': {
        const { yes, no } = ending;
        const { register, negated } = ending.inst.predicate!;
        if (yes === no) {
          this.jump(block.index, no);
          return;
        }
        this.code.get(this.registerLocal(register));
        const next = this.nextInLayout.get(block.index);
        let flip = negated;
        let [first, second] = [yes, no];
        // The condition of the branch that does not fall through.
        if (yes === next) {
          [first, second] = [no, yes];
          flip = !flip;
        }
        if (flip) this.code.op('i32.eqz');
        const label = this.forwardLabel(block.index, first);
        if (label) this.branchTo(label, 'br_if');
        else
          this.when(() => {
            this.jump(block.index, first, false);
          });
        this.jump(block.index, second);
        return;
      }
      default:
        this.leave(block);
        this.endInstruction();
    }
  }

  /** brx.idx: a table of blocks, each of which jumps. */
  private emitSwitch(from: number, inst: Inst, to: number[]): void {
    const targets = [...new Set(to)];
    const labels = targets.map(() => ({}));
    for (const label of [...labels].reverse()) this.openLabel('block', label);
    this.push(inst.args[0]!, scalarType('u32'));
    this.code.op('br_table').u32(to.length - 1);
    for (const block of to) this.code.u32(this.depthOf(labels[targets.indexOf(block)]!));
    targets.forEach((block) => {
      this.closeLabel();
      this.jump(from, block, false);
    });
  }

  /** The label of a branch, if a plain br is enough. */
  private forwardLabel(from: number, to: number): object | undefined {
    if (this.shape.irregular.has(from * this.blocks.length + to)) return undefined;
    for (const region of this.loopLabels.keys()) if (region.header === to) return undefined;
    return this.blockLabels.get(to);
  }

  private jump(from: number, to: number, mayFallThrough = true): void {
    if (this.shape.irregular.has(from * this.blocks.length + to)) {
      let region = this.shape.regionOf(to);
      while (!region.members.has(from)) region = region.parent!;
      const label = this.loopLabels.get(region)!;
      this.code.i32(this.entryOf.get(to)!).set(this.entryNumber);
      this.backEdge(to, () => this.branchTo(label, 'br_if'));
      return;
    }
    for (const [region, label] of this.loopLabels) {
      if (region.header !== to) continue;
      this.backEdge(to, () => this.branchTo(label, 'br_if'));
      return;
    }
    if (mayFallThrough && this.nextInLayout.get(from) === to) return;
    this.branchTo(this.blockLabels.get(to)!);
  }

  protected pushPredicate(register: Register): void {
    this.push({ kind: 'register', register, at: 0 }, PREDICATE);
  }
}
