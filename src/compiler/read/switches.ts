/** switch: a chain of `if` where no case falls through, else cases that a number selects. */
import type { SwitchStatement } from 'acorn';
import type { Expression, Statement } from '../tree.js';
import { completes, leaves, withoutLast } from './flow.js';
import { compare, constant, logical } from './nodes.js';
import { operate } from './operators.js';
import type { Pass } from './pass.js';
import { held } from './slots.js';
import type { NumberValue } from './values.js';
import { isPresent } from './present.js';
import { truth } from './operands.js';
import { branch, readNumber, readStatements } from './reading.js';

/** Cases that share their statements: `case 1: case 2: …`. */
interface Group {
  readonly tests: Expression[];
  readonly isDefault: boolean;
  readonly body: Statement[];
}

export function readSwitch(pass: Pass, node: SwitchStatement, labels: readonly string[]): void {
  const id = pass.newGroup();
  const span = pass.span(node);
  const value = held(pass, readNumber(pass, node.discriminant), 'switched') as NumberValue;
  const groups: Group[] = [];
  let tests: Expression[] = [];
  let isDefault = false;
  pass.frame.targets.push({ labels, id, kind: 'switch' });
  for (const [at, each] of node.cases.entries()) {
    const { test } = each;
    if (!isPresent(test)) isDefault = true;
    else
      tests.push(
        truth(
          operate({
            pass,
            node: test,
            operator: '===',
            left: value,
            right: readNumber(pass, test),
            syntax: { left: node.discriminant, right: test },
          }),
        ),
      );
    if (each.consequent.length === 0 && at < node.cases.length - 1) continue;
    groups.push({
      tests,
      isDefault,
      body: pass.collect(() => readStatements(pass, each.consequent)),
    });
    tests = [];
    isDefault = false;
  }
  pass.frame.targets.pop();
  const any = (of: readonly Expression[]): Expression =>
    of.reduce((a, b) => logical('or', a, b, span));
  const body = pass.collect(() => {
    if (groups.every((group, at) => at === groups.length - 1 || !completes(group.body))) {
      const chosen = groups.filter((group) => !group.isDefault);
      const otherwise = groups.find((group) => group.isDefault);
      const from = (at: number): void => {
        const group = chosen[at] ?? otherwise;
        if (group === undefined) return;
        const run = () => withoutLast(group.body, id).forEach((statement) => pass.emit(statement));
        if (at >= chosen.length) run();
        else branch(pass, node, any(group.tests), run, () => from(at + 1));
      };
      from(0);
      return;
    }
    const number = (at: number) => constant(at, 'i32', span);
    const defaultAt = groups.findIndex((group) => group.isDefault);
    const selected = groups.reduceRight<Expression>(
      (rest, group, at) =>
        group.tests.length === 0
          ? rest
          : {
              op: 'conditional',
              type: 'i32',
              test: any(group.tests),
              then: number(at),
              otherwise: rest,
              span,
            },
      number(defaultAt < 0 ? groups.length : defaultAt),
    );
    const entry = pass.reusable(selected, 'entry');
    // After the entered case the cases after it run too, until one leaves.
    for (const [at, group] of groups.entries()) {
      branch(
        pass,
        node,
        compare('le', entry, number(at), span),
        () => group.body.forEach((statement) => pass.emit(statement)),
        undefined,
      );
    }
  });
  if (leaves(body, id)) pass.emit({ kind: 'group', id, body, span });
  else for (const statement of body) pass.emit(statement);
}
