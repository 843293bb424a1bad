/**
 * Simplifies control flow: removes unreachable blocks, merges blocks that follow one another, and
 * replaces phis of one value by that value.
 */
import { resolve, successors } from '../ssa/function.js';
import type { Block, SsaFunction, Value } from '../ssa/function.js';

/** Removes the edge from one block to another. */
function unlink(from: Block, to: Block): void {
  const at = to.before.indexOf(from);
  to.before.splice(at, 1);
  for (const phi of to.phis) phi.args.splice(at, 1);
}

function decideBranches(f: SsaFunction): void {
  for (const block of f.blocks) {
    const { end } = block;
    if (end?.kind !== 'branch') continue;
    const test = resolve(end.test);
    if (test.constant !== undefined) {
      const [taken, other] = test.constant ? [end.then, end.otherwise] : [end.otherwise, end.then];
      unlink(block, other);
      block.end = { kind: 'jump', to: taken };
    } else if (end.then === end.otherwise && end.then.phis.length === 0) {
      unlink(block, end.then);
      block.end = { kind: 'jump', to: end.then };
    } else if (test.op === 'not') {
      block.end = {
        kind: 'branch',
        test: resolve(test.args[0]!),
        then: end.otherwise,
        otherwise: end.then,
      };
    }
  }
}

function dropUnreachable(f: SsaFunction): void {
  const seen = new Set<Block>([f.entry]);
  const open = [f.entry];
  for (let block = open.pop(); block !== undefined; block = open.pop()) {
    for (const next of successors(block)) {
      if (seen.has(next)) continue;
      seen.add(next);
      open.push(next);
    }
  }
  if (seen.size === f.blocks.length) return;
  for (const block of f.blocks) {
    if (seen.has(block)) continue;
    for (const next of successors(block)) if (seen.has(next)) unlink(block, next);
  }
  f.blocks = f.blocks.filter((block) => seen.has(block));
}

/** The value that the phi has on every edge. */
function onlyValue(phi: Value): Value | undefined {
  let only: Value | undefined;
  for (const arg of phi.args) {
    const value = resolve(arg);
    if (value === phi || value === only) continue;
    if (only !== undefined) return undefined;
    only = value;
  }
  return only;
}

export function dropPhis(f: SsaFunction): void {
  for (let changed = true; changed;) {
    changed = false;
    for (const block of f.blocks) {
      if (block.phis.length === 0) continue;
      const kept = block.phis.filter((phi) => {
        const only = onlyValue(phi);
        if (only === undefined) return true;
        phi.replacement = only;
        return false;
      });
      if (kept.length < block.phis.length) {
        block.phis = kept;
        changed = true;
      }
    }
  }
}

function joinChains(f: SsaFunction): void {
  const gone = new Set<Block>();
  for (const block of f.blocks) {
    if (gone.has(block)) continue;
    for (;;) {
      const { end } = block;
      if (
        end?.kind !== 'jump' ||
        end.to === block ||
        end.to.before.length !== 1 ||
        end.to === f.entry
      )
        break;
      const next = end.to;
      for (const phi of next.phis) phi.replacement = resolve(phi.args[0]!);
      for (const value of next.values) value.block = block;
      block.values.push(...next.values);
      block.end = next.end;
      block.keepRolled ||= next.keepRolled;
      for (const after of successors(next)) after.before[after.before.indexOf(next)] = block;
      gone.add(next);
    }
  }
  if (gone.size > 0) f.blocks = f.blocks.filter((block) => !gone.has(block));
}

/** Removes blocks that only jump: their predecessors jump to their successor. */
function skipEmpty(f: SsaFunction): void {
  const gone = new Set<Block>();
  for (const block of f.blocks) {
    const { end } = block;
    if (
      block === f.entry ||
      end?.kind !== 'jump' ||
      block.values.length > 0 ||
      block.phis.length > 0 ||
      end.to === block
    )
      continue;
    const { to } = end;
    // A phi distinguishes edges by their predecessor.
    if (to.phis.length > 0 && block.before.some((from) => to.before.includes(from))) continue;
    // A loop keeps its entry block, where there is more than one edge into it.
    const at = to.before.indexOf(block);
    const ways = [...block.before];
    if (ways.length === 0) continue;
    to.before.splice(at, 1, ...ways);
    for (const phi of to.phis) phi.args.splice(at, 1, ...ways.map(() => phi.args[at]!));
    for (const from of new Set(ways)) {
      const old = from.end!;
      if (old.kind === 'jump') from.end = { kind: 'jump', to };
      else if (old.kind === 'branch')
        from.end = {
          kind: 'branch',
          test: old.test,
          then: old.then === block ? to : old.then,
          otherwise: old.otherwise === block ? to : old.otherwise,
        };
    }
    gone.add(block);
  }
  if (gone.size > 0) f.blocks = f.blocks.filter((block) => !gone.has(block));
}

export function tidyControlFlow(f: SsaFunction, skip = true): void {
  decideBranches(f);
  dropUnreachable(f);
  dropPhis(f);
  if (skip) skipEmpty(f);
  decideBranches(f);
  joinChains(f);
  dropPhis(f);
}
