/** for, while and do. */
import type { AnyNode } from 'acorn';
import type { Expression, Statement } from '../tree.js';
import { withoutLast } from './flow.js';
import type { Pass } from './pass.js';
import { knownTest, perform, readTest, readStatement } from './reading.js';

interface Loop {
  readonly test?: AnyNode | undefined;
  readonly update?: AnyNode | undefined;
  readonly body: AnyNode;
  readonly testAfter: boolean;
}

export function readLoop(pass: Pass, node: AnyNode, loop: Loop, labels: readonly string[]): void {
  pass.inLoop(() => {
    readTurns(pass, node, loop, labels);
  });
}

function readTurns(
  pass: Pass,
  node: AnyNode,
  { test, update, body, testAfter }: Loop,
  labels: readonly string[],
): void {
  const span = pass.span(node);
  const id = pass.newGroup();
  const { unroll } = pass.frame;
  pass.frame.unroll = undefined;
  const readIt = (): { before: Statement[]; value: Expression | undefined } => {
    let value: Expression | undefined;
    const before = pass.collect(() => {
      if (test !== undefined) value = readTest(pass, test);
    });
    if (value !== undefined && knownTest(value) === true) value = undefined;
    return { before, value };
  };

  // The parts are read in the order in which they run, so that each name is bound before its use.
  const first = testAfter ? undefined : readIt();
  if (first?.value !== undefined && knownTest(first.value) === false) {
    for (const statement of first.before) pass.emit(statement);
    return;
  }
  pass.frame.targets.push({ labels, id, kind: 'loop' });
  const inside = withoutLast(
    pass.collect(() => readStatement(pass, body)),
    id,
    'continue',
  );
  pass.frame.targets.pop();
  const after = update === undefined ? [] : pass.collect(() => perform(pass, update));
  const tested = first ?? readIt();

  // A test with statements is computed inside the loop: before the body, or where each iteration
  // ends.
  const inBody = !testAfter && tested.before.length > 0;
  const leave: Statement[] =
    inBody && tested.value !== undefined
      ? [
          {
            kind: 'if',
            test: tested.value,
            then: [],
            otherwise: [{ kind: 'break', id, span }],
            span,
          },
        ]
      : [];
  const kept = inBody ? undefined : tested.value;
  pass.emit({
    kind: 'loop',
    id,
    testAfter,
    span,
    body: inBody ? [...tested.before, ...leave, ...inside] : inside,
    update: testAfter ? [...after, ...tested.before] : after,
    ...(kept !== undefined && { test: kept }),
    ...(unroll !== undefined && { unroll: unroll.turns }),
  });
}
