/**
 * A conditional node: depending on its condition, one of its bodies runs, or none, or one
 * repeatedly.
 */
import {
  CUgraphConditionalNodeType,
  CUgraphExecUpdateResult,
  CUgraphNodeType,
} from '../../flags.js';
import { Operation, STEP } from './operation.js';
import type { Slice } from './operation.js';
import type { Condition } from './condition.js';
import type { Graph } from './graph.js';
import type { GraphPlan } from './graph-plan.js';

const {
  CU_GRAPH_COND_TYPE_IF: IF,
  CU_GRAPH_COND_TYPE_WHILE: WHILE,
  CU_GRAPH_COND_TYPE_SWITCH: SWITCH,
} = CUgraphConditionalNodeType;

/** The index of the body that runs for a value; where there is no such body, none runs. */
const CHOICES: Readonly<Record<number, (value: number) => number>> = {
  [IF]: (value) => (value !== 0 ? 0 : 1),
  [WHILE]: (value) => (value !== 0 ? 0 : -1),
  [SWITCH]: (value) => value,
};
const NAMES: Readonly<Record<number, string>> = {
  [IF]: 'if',
  [WHILE]: 'while',
  [SWITCH]: 'switch',
};

export class ConditionalOperation extends Operation {
  readonly nodeType = CUgraphNodeType.CU_GRAPH_NODE_TYPE_CONDITIONAL;
  private readonly condition: Condition;
  private readonly type: number;
  private readonly graphs: readonly Graph[];
  /** The bodies, ready to run. The node of a graph has none; only its running copy does. */
  private readonly plans: readonly GraphPlan[];
  private running: GraphPlan | undefined = undefined;

  constructor(
    condition: Condition,
    type: number,
    graphs: readonly Graph[],
    plans: readonly GraphPlan[] = [],
  ) {
    super();
    this.condition = condition;
    this.type = type;
    this.graphs = graphs;
    this.plans = plans;
  }

  override get bodies(): readonly Graph[] {
    return this.graphs;
  }

  override launchBegins(): void {
    this.condition.launchBegins();
    for (const plan of this.plans) plan.launchBegins();
  }

  step(slice: Slice): number {
    if (this.running === undefined) {
      const chosen = this.plans[CHOICES[this.type]!(this.condition.value)];
      if (chosen === undefined) return STEP.done;
      chosen.begin();
      this.running = chosen;
    }
    const outcome = this.running.step(slice);
    if (outcome !== STEP.done) return outcome;
    this.running = undefined;
    // A loop that never ends takes its turns with all other work.
    return this.type === WHILE ? STEP.more : STEP.done;
  }

  override restart(): void {
    this.running = undefined;
  }

  /** Makes a running copy, with the bodies as they are now. */
  copy(): Operation {
    return new ConditionalOperation(
      this.condition,
      this.type,
      this.graphs,
      this.graphs.map((graph) => graph.plan()),
    );
  }

  describe(): string {
    return (
      `${NAMES[this.type]!} (${this.graphs.length} ` +
      `${this.graphs.length === 1 ? 'body' : 'bodies'})`
    );
  }

  override replaces(old: Operation): number {
    const was = old as ConditionalOperation;
    if (was.type !== this.type || was.plans.length !== this.plans.length)
      return CUgraphExecUpdateResult.CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED;
    for (const [index, plan] of this.plans.entries()) {
      const { result } = plan.replaces(was.plans[index]!);
      if (result !== CUgraphExecUpdateResult.CU_GRAPH_EXEC_UPDATE_SUCCESS) return result;
    }
    return CUgraphExecUpdateResult.CU_GRAPH_EXEC_UPDATE_SUCCESS;
  }
}
