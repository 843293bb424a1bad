/** Statements, in their order. */
import type { Statement } from '../tree.js';
import type { Builder } from './builder.js';
import { branchOn } from './choices.js';
import { buildValue } from './expressions.js';
import { buildInstruction } from './instructions.js';
import { buildLoop } from './loops.js';
import { buildCopyAsync, buildLoadMatrices, buildMatrixProduct } from './matrices.js';
import { assertThat, buildClear, buildStore } from './places.js';

export function buildStatements(b: Builder, statements: readonly Statement[]): void {
  for (const statement of statements) {
    if (!b.reachable) return;
    const outer = b.span;
    b.span = statement.span;
    buildStatement(b, statement);
    b.span = outer;
  }
}

function buildStatement(b: Builder, node: Statement): void {
  switch (node.kind) {
    case 'assign': {
      const value = buildValue(b, node.value);
      b.write(node.local, value);
      return;
    }
    case 'store':
      buildStore(b, node.place, node.value, node.cache);
      return;
    case 'clear':
      buildClear(b, node.array);
      return;
    case 'if':
      buildIf(b, node);
      return;
    case 'loop':
      buildLoop(b, node);
      return;
    case 'group': {
      const leave = b.newBlock();
      b.exits.set(node.id, { leave, again: undefined });
      buildStatements(b, node.body);
      b.jump(leave);
      b.enterIfReached(leave);
      return;
    }
    case 'break':
      b.jump(b.exits.get(node.id)!.leave);
      return;
    case 'continue':
      b.jump(b.exits.get(node.id)!.again!);
      return;
    case 'return':
      b.finish();
      return;
    case 'evaluate':
      buildValue(b, node.value);
      return;
    case 'barrier':
      if (node.of === 'warp') b.effect('barrier', 'none', [buildValue(b, node.mask)], 'warp');
      else b.effect('barrier', 'none', [], node.of);
      return;
    case 'fence':
      b.effect('fence', 'none', [], node.scope);
      return;
    case 'matrixProduct':
      buildMatrixProduct(b, node);
      return;
    case 'loadMatrices':
      buildLoadMatrices(b, node);
      return;
    case 'copyAsync':
      buildCopyAsync(b, node);
      return;
    case 'copyCommit':
      b.effect('copyCommit', 'none', []);
      return;
    case 'copyWait':
      b.effect('copyWait', 'none', [], String(node.pending));
      return;
    case 'instruction':
      buildInstruction(b, node);
      return;
    case 'print': {
      const values = node.values.map((value) => buildValue(b, value));
      let bytes = 0;
      for (const { type } of values) {
        const size = type === 'b32' ? 4 : 8;
        bytes = Math.ceil(bytes / size) * size + size;
      }
      b.f.printBytes = Math.max(b.f.printBytes, bytes);
      b.effect('print', 'none', values, b.f.text(node.format));
      return;
    }
    case 'assert':
      assertThat(b, buildValue(b, node.test), b.f.text(node.message));
      return;
    case 'trap':
      b.effect('trap', 'none', []);
      b.finish();
      return;
    default:
      throw b.error(
        `'${(node as { kind: string }).kind}' is no statement of the tree`,
        'This is a defect of the compiler; please report it.',
        (node as Statement).span,
      );
  }
}

function buildIf(b: Builder, node: Extract<Statement, { kind: 'if' }>): void {
  const leave = b.newBlock();
  const then = b.newBlock();
  const otherwise = node.otherwise.length > 0 ? b.newBlock() : leave;
  branchOn(b, node.test, then, otherwise);
  b.enterIfReached(then);
  buildStatements(b, node.then);
  b.jump(leave);
  if (otherwise !== leave) {
    b.enterIfReached(otherwise);
    buildStatements(b, node.otherwise);
    b.jump(leave);
  }
  b.enterIfReached(leave);
}
