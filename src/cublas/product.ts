/** Products of matrices by cuBLASLt, as operations. */
import type { CoreDevice } from '../core/index.js';
import { u8 } from '../core/index.js';
import { Made } from '../ops/collect.js';
import { DeviceOp } from '../ops/device-op.js';
import type { Submitted } from '../ops/node.js';
import type { Run } from '../ops/run.js';
import { whenLoaded } from '../tensor/loaded-kernels.js';
import { openCublasLt, openedCublasLt } from './library.js';
import type { Plan } from './plan.js';
import { placedProduct } from './product-form.js';
import type { PlacedProduct, Product } from './product-form.js';

/**
 * Returns an operation that writes `out = act(alpha · a · b + beta · c + bias)`. The first one of a
 * form (dtypes, shapes, layouts, epilogue) opens the library and makes a plan, off this thread, and
 * continues then; later ones are queued at once, as one command. The workspace is allocated and
 * freed in stream order. It can be recorded in a graph; a blocking run (`sync`) needs a plan, which
 * {@link prepareProduct} makes.
 *
 * @throws CudaArgumentError for operands that the library cannot compute with; see
 *   {@link whyNotCublas}. It rejects with code ERR_CUDA_NO_LIBRARY where the library is not found,
 *   ERR_CUDA_UNSUPPORTED where it has no algorithm, and a {@link CudaLibraryError} where it fails
 */
export function cublasProduct(product: Product): DeviceOp<undefined> {
  const placed = placedProduct(product);
  const { device } = product.out;
  return new DeviceOp(
    new Made<undefined>(device, 'cuBLASLt', (run) => withPlan(run, device, placed), placed.tensors),
  );
}

/** Opens the library and makes the plan of a product, without computing it. */
export async function prepareProduct(product: Product): Promise<void> {
  await planFor(product.out.device, placedProduct(product));
}

/** Queues the product with its plan: now, or once it is made. */
function withPlan(run: Run, device: CoreDevice, placed: PlacedProduct): Submitted<undefined> {
  const known = openedCublasLt(device)?.planFor(placed.form).plan;
  if (known !== undefined) return queued(run, known, placed);
  return whenLoaded(
    run,
    undefined,
    planFor(device, placed),
    { what: `cuBLASLt's plan of ${placed.form.title}`, fix: 'await prepareProduct(…) before' },
    (plan) => (plan.isDropped ? withPlan(run, device, placed) : queued(run, plan, placed)),
  );
}

function queued(run: Run, plan: Plan, placed: PlacedProduct): undefined {
  const { workspaceBytes } = plan;
  plan.queue(
    run.stream,
    placed,
    workspaceBytes === 0 ? undefined : run.alloc(u8, workspaceBytes, { label: 'cuBLASLt' }),
  );
}

async function planFor(device: CoreDevice, { form }: PlacedProduct): Promise<Plan> {
  const lt = openedCublasLt(device) ?? (await openCublasLt(device));
  return lt.planFor(form).done;
}
