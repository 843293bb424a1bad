/** Reads a kernel: from the text of its function and its signature to the typed tree. */
import type { KernelSource } from '../signature.js';
import { KernelSourceError } from '../source-error.js';
import type { KernelTree, Statement } from '../tree.js';
import { bindPattern } from './bindings.js';
import { checkAssigned } from './definite-assignment.js';
import { PassFacts, Pass } from './pass.js';
import { rules } from './rules.js';
import { performLast } from './statements.js';
import { isStackOverflow, tooDeepError } from './too-deep.js';
import { checkBarriers } from './uniform-barriers.js';
import type { Value } from './values.js';
import { readStatements } from './reading.js';

/**
 * The limit of passes. Types only rise, through 12 levels at most for each variable; a kernel that
 * takes more passes does not converge.
 */
const mostPasses = 64;

/**
 * Gives the typed tree of a kernel.
 *
 * @throws KernelSourceError where the text is no kernel: with the place, what is wrong and what to
 *   write instead
 */
export function readKernel(source: KernelSource): KernelTree {
  try {
    const facts = new PassFacts();
    const { parsed } = facts.parse(source.text, false);
    for (let passes = 0; passes < mostPasses; passes++) {
      const pass = new Pass(source, facts, rules);
      pass.frame = {
        parsed,
        text: 0,
        key: '',
        name: source.name,
        uses: source.uses,
        bindings: new Map(),
        caller: undefined,
        fn: undefined,
        result: undefined,
        targets: [],
        shownAs: undefined,
        unroll: undefined,
      };
      const body = readBody(pass);
      if (pass.changed || facts.settle()) continue;
      return finish(pass, body);
    }
    throw new KernelSourceError(
      "The types of this kernel's variables depend on each other without end",
      'Give them types with casts: let x = gpu.f32(0).',
      undefined,
      source.text,
    );
  } catch (error) {
    // Reading recurses along the nesting of the source.
    throw isStackOverflow(error) ? tooDeepError(source) : error;
  }
}

function readBody(pass: Pass): Statement[] {
  const { node } = pass.frame.parsed;
  const given: readonly Value[] = [{ kind: 'args' }, { kind: 'namespace', path: '' }];
  const statements = pass.collect(() => {
    for (const [at, param] of node.params.entries()) {
      const value = given[at];
      if (value === undefined)
        return pass.fail(
          param,
          'A kernel has two parameters, its arguments and gpu',
          'Take every argument out of the first: ({ y, x }, gpu) => { … }.',
        );
      bindPattern(pass, param, value);
    }
    if (node.body.type === 'BlockStatement') readStatements(pass, node.body.body);
    else performLast(pass, node.body);
  });
  return statements.at(-1)?.kind === 'return' ? statements.slice(0, -1) : statements;
}

function finish(pass: Pass, body: readonly Statement[]): KernelTree {
  pass.failNow();
  pass.showSpans();
  const locals = pass.locals();
  checkAssigned(body, (local, span) =>
    pass.fail(
      span,
      `\`${locals[local]!.name}\` is read where it may have no value yet`,
      'Give it one where it is declared, or on every path.',
    ),
  );
  checkBarriers(body, locals, pass.cooperative, (span, level) => {
    if (level === 'block')
      return pass.fail(
        span,
        'Not all threads of the block reach this barrier: a condition on the way to it ' +
          'depends on the thread',
        'Take it out of the condition.',
      );
    if (level === 'grid')
      return pass.fail(
        span,
        'Not all blocks of the grid reach this barrier: a condition on the way to it ' +
          'depends on the block',
        'Take it out of the condition.',
      );
    return pass.fail(
      span,
      'Not all lanes of the warp reach this operation: the condition around it depends on the lane',
      'Take it out of the condition: all 32 lanes do this together. Of shuffles, votes and ' +
        'warp barriers some lanes can be the members: pass their mask.',
    );
  });
  pass.finish();
  return {
    name: pass.source.name,
    params: pass.params.map((param) => param),
    abi: pass.finishAbi(),
    locals,
    arrays: pass.arrays,
    body,
    indexType: pass.source.indexType,
    cooperative: pass.cooperative,
    dependent: pass.dependent,
    texts: pass.facts.texts,
  };
}
