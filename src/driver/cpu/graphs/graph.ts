/**
 * A graph: operations and what each depends on. Nodes are only ever added after the nodes they depend on, so the order
 * of the list is an order in which they may run.
 */
import type { CpuContext } from '../context.js';
import type { Machine } from '../machine.js';
import type { Allocation } from '../memory/device-memory.js';
import type { Operation } from '../streams/operation.js';
import { GraphPlan } from './graph-plan.js';

export interface GraphNode {
  readonly handle: number;
  readonly graph: Graph;
  readonly operation: Operation;
  readonly dependencies: readonly GraphNode[];
}

/**
 * The memory of a graph's allocation nodes. It is taken when the node is made, since its address is known from then
 * on, and given back when the graph and everything made from it are gone.
 */
export class GraphMemory {
  /** Allocated by each launch; `freed`: and freed by it too. */
  readonly allocations: { allocation: Allocation; freed: boolean; bytes: number }[] = [];
  private users = 0;

  use(): this {
    this.users++;
    return this;
  }

  drop(context: CpuContext): void {
    if (--this.users > 0) return;
    for (const { allocation } of this.allocations) {
      if (allocation.memory.at(allocation.address) === allocation) allocation.memory.retire(allocation);
      context.afterQueuedWork(() => allocation.memory.giveBack(allocation.range));
    }
    this.allocations.length = 0;
  }
}

export class Graph {
  readonly handle: number;
  readonly context: CpuContext;
  readonly nodes: GraphNode[] = [];
  readonly memory = new GraphMemory().use();
  private readonly machine: Machine;

  constructor(context: CpuContext) {
    this.context = context;
    this.machine = context.machine;
    this.handle = this.machine.newHandle();
  }

  /** A graph comes into being when its capture begins and can be named once it has ended. */
  publish(): void {
    this.machine.graphs.set(this.handle, this);
    for (const node of this.nodes) this.machine.graphNodes.set(node.handle, node);
  }

  add(operation: Operation, dependencies: readonly GraphNode[]): GraphNode {
    const node: GraphNode = { handle: this.machine.newHandle(), graph: this, operation, dependencies: [...dependencies] };
    this.nodes.push(node);
    return node;
  }

  clone(): Graph {
    const clone = new Graph(this.context);
    const twins = new Map<GraphNode, GraphNode>();
    for (const node of this.nodes) {
      twins.set(node, clone.add(node.operation.copy(), node.dependencies.map((dependency) => twins.get(dependency)!)));
    }
    return clone;
  }

  plan(): GraphPlan {
    const numbers = new Map(this.nodes.map((node, index) => [node, index]));
    return new GraphPlan(
      this.nodes.map((node) => node.operation.copy()),
      this.nodes.map((node) => node.dependencies.map((dependency) => numbers.get(dependency)!)),
    );
  }

  destroy(): void {
    this.machine.graphs.delete(this.handle);
    for (const node of this.nodes) this.machine.graphNodes.delete(node.handle);
    this.memory.drop(this.context);
  }

  /** The graph in the DOT language. */
  dot(): string {
    const lines = this.nodes.map((node) => `  n${node.handle} [shape="box", label="${node.operation.describe().replace(/["\\]/g, '\\$&')}"];`);
    for (const node of this.nodes) {
      for (const dependency of node.dependencies) lines.push(`  n${dependency.handle} -> n${node.handle};`);
    }
    return `digraph graph_${this.handle} {\n${lines.join('\n')}${lines.length > 0 ? '\n' : ''}}\n`;
  }
}

/** An executable graph. An update replaces the plan of later launches; those that are queued keep theirs. */
export class GraphExec {
  readonly handle: number;
  readonly context: CpuContext;
  readonly memory: GraphMemory;
  plan: GraphPlan;
  /** The plan that a stream is running: a graph never runs beside itself. */
  runningPlan: GraphPlan | undefined;

  constructor(context: CpuContext, plan: GraphPlan, memory: GraphMemory) {
    this.handle = context.machine.newHandle();
    this.context = context;
    this.plan = plan;
    this.memory = memory.use();
  }

  destroy(): void {
    this.context.machine.graphExecs.delete(this.handle);
    this.memory.drop(this.context);
  }
}
