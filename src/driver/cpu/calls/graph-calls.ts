/**
 * Graphs: made by capture, instantiated, updated and launched.
 */
import {
  CUgraphConditionalNodeType,
  CUgraphExecUpdateResult,
  CUgraphInstantiate_flags,
  CU_GRAPH_COND_ASSIGN_DEFAULT,
} from '../../flags.js';
import type { GraphCalls } from '../../driver.js';
import { CUresult } from '../../../ground/result.js';
import { fail, hex, invalidValue } from '../failure.js';
import { submit } from '../streams/capture.js';
import { Condition } from '../streams/condition.js';
import { ConditionalOperation } from '../streams/conditional.js';
import { Graph, GraphExec } from '../streams/graph.js';
import type { GraphNode } from '../streams/graph.js';
import { GraphLaunchOperation } from '../streams/graph-plan.js';
import type { Machine } from '../machine.js';

/** Bodies that a conditional node may have. */
const MOST_BODIES: Readonly<Record<number, number>> = {
  [CUgraphConditionalNodeType.CU_GRAPH_COND_TYPE_IF]: 2,
  [CUgraphConditionalNodeType.CU_GRAPH_COND_TYPE_WHILE]: 1,
  [CUgraphConditionalNodeType.CU_GRAPH_COND_TYPE_SWITCH]: Infinity,
};

/** The nodes of the graph that have these handles. */
export function nodesOf(call: string, graph: Graph, handles: readonly number[]): GraphNode[] {
  return handles.map(
    (handle) =>
      graph.nodes.find((node) => node.handle === handle) ??
      invalidValue(call, `${handle} is no node of graph ${graph.handle}`),
  );
}

export function graphCalls(machine: Machine): GraphCalls {
  const graphOf = (call: string, handle: number): Graph =>
    machine.find(call, 'graph', machine.graphs, handle);
  const execOf = (call: string, handle: number): GraphExec =>
    machine.find(call, 'executable graph', machine.graphExecs, handle);

  /**
   * Memory that a graph allocates and does not free remains allocated after a launch, and must be
   * freed before the next, or is freed by it.
   */
  function reviveMemory(call: string, exec: GraphExec): void {
    for (const { allocation, freed, bytes } of exec.memory.allocations) {
      if (freed) continue;
      if (allocation.memory.at(allocation.address) === allocation) {
        if (exec.freesOnLaunch) allocation.memory.retire(allocation);
        else
          invalidValue(
            call,
            `${hex(allocation.address)}, allocated by the graph's last launch, has not been freed`,
          );
      }
      allocation.memory.revive(allocation, bytes);
    }
  }

  return {
    cuGraphCreate() {
      const graph = new Graph(machine.context('cuGraphCreate'));
      graph.publish();
      return graph.handle;
    },
    cuGraphDestroy(graph) {
      graphOf('cuGraphDestroy', graph).destroy();
    },
    cuGraphClone(handle) {
      const graph = graphOf('cuGraphClone', handle);
      if (graph.memory.allocations.length > 0) {
        fail(
          'cuGraphClone',
          CUresult.CUDA_ERROR_NOT_SUPPORTED,
          'a graph that allocates memory cannot be cloned',
        );
      }
      if (graph.isConditional)
        fail(
          'cuGraphClone',
          CUresult.CUDA_ERROR_NOT_SUPPORTED,
          'a graph with conditional nodes cannot be cloned',
        );
      const clone = graph.clone();
      clone.publish();
      return clone.handle;
    },
    cuGraphGetNodes: (graph) => graphOf('cuGraphGetNodes', graph).nodes.map((node) => node.handle),
    cuGraphNodeGetType: (node) =>
      machine.find('cuGraphNodeGetType', 'node of a graph', machine.graphNodes, node).operation
        .nodeType,
    cuGraphConditionalHandleCreate(handle, contextHandle, defaultLaunchValue, flags) {
      const call = 'cuGraphConditionalHandleCreate';
      const graph = graphOf(call, handle);
      if (contextHandle !== graph.context.handle)
        fail(
          call,
          CUresult.CUDA_ERROR_INVALID_CONTEXT,
          `the graph is of context ${graph.context.handle}, not ${contextHandle}`,
        );
      if ((flags & ~CU_GRAPH_COND_ASSIGN_DEFAULT) !== 0) invalidValue(call, `flags is ${flags}`);
      const condition = new Condition(
        call,
        graph,
        defaultLaunchValue,
        (flags & CU_GRAPH_COND_ASSIGN_DEFAULT) !== 0,
      );
      graph.memory.conditions.push(condition);
      return condition.handle;
    },
    cuGraphAddNode(handle, dependencies, { handle: conditionHandle, type, size, ctx }) {
      const call = 'cuGraphAddNode';
      const graph = graphOf(call, handle);
      const condition = graph.memory.conditions.find(
        (each) => each.handle === conditionHandle && each.graph === graph,
      );
      if (condition === undefined || condition.taken) {
        return invalidValue(
          call,
          `${conditionHandle} is ` +
            (condition === undefined
              ? 'no conditional handle of this graph'
              : 'the handle of another node'),
        );
      }
      if (ctx !== graph.context.handle)
        fail(
          call,
          CUresult.CUDA_ERROR_INVALID_CONTEXT,
          `the graph is of context ${graph.context.handle}, not ${ctx}`,
        );
      const most = MOST_BODIES[type] ?? invalidValue(call, `type is ${type}`);
      if (!(Number.isInteger(size) && size >= 1 && size <= most))
        invalidValue(call, `size is ${size}; it must be from 1 to ${most}`);
      condition.taken = true;
      const bodies = Array.from({ length: size }, () => new Graph(graph.context, graph));
      for (const body of bodies) body.publish();
      const node = graph.add(
        new ConditionalOperation(condition, type, bodies),
        nodesOf(call, graph, dependencies),
      );
      machine.graphNodes.set(node.handle, node);
      return { node: node.handle, bodies: bodies.map((body) => body.handle) };
    },
    cuGraphDebugDotPrint(graph, path) {
      const text = graphOf('cuGraphDebugDotPrint', graph).dot();
      try {
        machine.services.writeText(path, text);
      } catch (cause) {
        fail(
          'cuGraphDebugDotPrint',
          CUresult.CUDA_ERROR_OPERATING_SYSTEM,
          `${path}: ${String(cause)}`,
        );
      }
    },
    cuGraphInstantiate(handle, flags) {
      const graph = graphOf('cuGraphInstantiate', handle);
      if ((flags & ~15) !== 0) invalidValue('cuGraphInstantiate', `flags is ${flags}`);
      const exec = new GraphExec(
        graph.context,
        graph.plan(),
        graph.memory,
        (flags & CUgraphInstantiate_flags.CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH) !== 0,
      );
      machine.graphExecs.set(exec.handle, exec);
      return exec.handle;
    },
    cuGraphExecUpdate(handle, graphHandle) {
      const exec = execOf('cuGraphExecUpdate', handle);
      const graph = graphOf('cuGraphExecUpdate', graphHandle);
      const plan = graph.plan();
      const { result, node } = plan.replaces(exec.plan);
      if (result === CUgraphExecUpdateResult.CU_GRAPH_EXEC_UPDATE_SUCCESS)
        exec.replace(plan, graph.memory);
      return { result, errorNode: graph.nodes[node]?.handle ?? 0 };
    },
    /** What is queued or running goes on to its end. */
    cuGraphExecDestroy(exec) {
      execOf('cuGraphExecDestroy', exec).destroy();
    },
    /** There is nothing to upload. */
    cuGraphUpload(exec, stream) {
      execOf('cuGraphUpload', exec);
      machine.stream('cuGraphUpload', stream);
    },
    cuGraphLaunch(handle, streamHandle) {
      const call = 'cuGraphLaunch';
      const exec = execOf(call, handle);
      const stream = machine.stream(call, streamHandle);
      if (exec.context !== stream.context)
        fail(
          call,
          CUresult.CUDA_ERROR_INVALID_HANDLE,
          'the graph and the stream belong to different contexts',
        );
      const operation = new GraphLaunchOperation(exec);
      if (stream.capture !== undefined) {
        if (exec.plan.isConditional) {
          stream.capture.invalidate();
          fail(
            call,
            CUresult.CUDA_ERROR_NOT_SUPPORTED,
            'a graph with conditional nodes cannot be part of another',
          );
        }
        submit(call, stream, operation.copy());
      } else {
        reviveMemory(call, exec);
        submit(call, stream, operation);
      }
    },
  };
}
