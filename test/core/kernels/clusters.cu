// The source of clusters.ptx: nvcc -ptx -arch=sm_90 -std=c++17, the .version set to 8.7.
#include <cooperative_groups.h>
#include <cstdint>
namespace cg = cooperative_groups;

// A histogram whose bins are spread over the shared memory of a cluster's blocks, of a size that
// the launch decides.
extern "C" __global__ void histogram(const int *values, int n, int *bins, int bins_per_block) {
  extern __shared__ int own[];
  cg::cluster_group cluster = cg::this_cluster();
  for (int i = threadIdx.x; i < bins_per_block; i += blockDim.x) own[i] = 0;
  cluster.sync();
  for (int i = cg::this_grid().thread_rank(); i < n; i += cg::this_grid().num_threads()) {
    int bin = values[i];
    atomicAdd(cluster.map_shared_rank(own, bin / bins_per_block) + bin % bins_per_block, 1);
  }
  cluster.sync();
  for (int i = threadIdx.x; i < bins_per_block; i += blockDim.x)
    atomicAdd(&bins[cluster.block_rank() * bins_per_block + i], own[i]);
}

// Each round, every block adds what its neighbour in the ring has.
extern "C" __global__ void __cluster_dims__(4, 1, 1) ring(int *out, int rounds) {
  __shared__ int cells[2][96];
  cg::cluster_group cluster = cg::this_cluster();
  unsigned rank = cluster.block_rank();
  cells[0][threadIdx.x] = blockIdx.x * 1000 + threadIdx.x;
  cluster.sync();
  for (int round = 0; round < rounds; round++) {
    int *next = cluster.map_shared_rank(cells[round & 1], (rank + 1) % cluster.num_blocks());
    cells[~round & 1][threadIdx.x] =
        cells[round & 1][threadIdx.x] + next[threadIdx.x] * (round + 1);
    cluster.sync();
  }
  out[blockIdx.x * 96 + threadIdx.x] = cells[rounds & 1][threadIdx.x];
}

// Where every block of a cluster of 2 by 2 finds itself, and which block an address is in.
extern "C" __global__ void __cluster_dims__(2, 2, 1) places(int *out) {
  __shared__ int sum;
  cg::cluster_group cluster = cg::this_cluster();
  dim3 in = cluster.block_index(), size = cluster.dim_blocks();
  uint32_t cluster_x, cluster_y, clusters_x, clusters_y;
  asm("mov.u32 %0, %%clusterid.x;" : "=r"(cluster_x));
  asm("mov.u32 %0, %%clusterid.y;" : "=r"(cluster_y));
  asm("mov.u32 %0, %%nclusterid.x;" : "=r"(clusters_x));
  asm("mov.u32 %0, %%nclusterid.y;" : "=r"(clusters_y));
  if (threadIdx.x == 0) sum = 0;
  cluster.sync();
  int is_shared;
  int *first = cluster.map_shared_rank(&sum, 0);
  asm("{ .reg .pred p; isspacep.shared::cluster p, %1; selp.u32 %0, 1, 0, p; }"
      : "=r"(is_shared)
      : "l"(first));
  // Exact whatever the order.
  if (threadIdx.x < 3) atomicAdd(first, (int)(cluster.block_rank() + 1) * 10);
  if (threadIdx.x == 3)
    atomicMax(cluster.map_shared_rank(&sum, 3), 7000 + (int)cluster.block_rank());
  cluster.sync();
  if (threadIdx.x == 0) {
    int *o = out + 16 * (blockIdx.x + gridDim.x * blockIdx.y);
    int values[16] = {(int)in.x, (int)in.y, (int)in.z, (int)size.x, (int)size.y, (int)size.z,
        (int)cluster.block_rank(), (int)cluster.num_blocks(), (int)cluster_x, (int)cluster_y,
        (int)clusters_x, (int)clusters_y,
        (int)cluster.query_shared_rank(cluster.map_shared_rank(&sum, 2)),
        (int)cg::cluster_group::thread_rank(), sum, is_shared};
    for (int i = 0; i < 16; i++) o[i] = values[i];
  }
  cluster.sync();
}

__device__ uint32_t shared_address(const void *p) { return (uint32_t)__cvta_generic_to_shared(p); }

// Blocks hand a value round by mbarriers that lie in each other's memory.
extern "C" __global__ void __cluster_dims__(3, 1, 1) relay(int *out, int laps) {
  __shared__ alignas(8) uint64_t full;
  __shared__ int cell;
  cg::cluster_group cluster = cg::this_cluster();
  unsigned rank = cluster.block_rank(), next = (rank + 1) % 3;
  uint32_t bar = shared_address(&full), there, there_cell;
  asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(bar), "r"(next));
  asm("mapa.shared::cluster.u32 %0, %1, %2;"
      : "=r"(there_cell)
      : "r"(shared_address(&cell)), "r"(next));
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(bar));
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    cell = 0;
  }
  cluster.sync();
  for (int lap = 0; lap < laps; lap++) {
    if (rank != 0 || lap != 0) {
      uint32_t done;
      // What the block waits for is the arrival of the one before.
      int parity = (rank == 0 ? lap - 1 : lap) & 1;
      do
        asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, "
                     "[%1], %2; selp.u32 %0, 1, 0, p; }"
            : "=r"(done)
            : "r"(bar), "r"(parity)
            : "memory");
      while (!done);
    }
    __syncthreads();
    if (threadIdx.x == 0) {
      int value = cell * 3 + (int)rank + 1;
      if (lap == laps - 1) out[blockIdx.x] = value;
      asm volatile("st.shared::cluster.u32 [%0], %1;" ::"r"(there_cell), "r"(value) : "memory");
      asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" ::"r"(there)
          : "memory");
    }
  }
  cluster.sync();
}

// The first block copies to the blocks of a mask; every one sends a word to the last with its bytes
// counted there.
extern "C" __global__ void __cluster_dims__(4, 1, 1)
    copies(const int *in, int *out, unsigned mask) {
  __shared__ alignas(16) int block[64];
  __shared__ alignas(8) int sent[4];
  __shared__ alignas(8) uint64_t bars[2];
  cg::cluster_group cluster = cg::this_cluster();
  unsigned rank = cluster.block_rank();
  uint32_t arrived = shared_address(&bars[0]), counted = shared_address(&bars[1]);
  block[threadIdx.x] = -1;
  if (threadIdx.x < 4) sent[threadIdx.x] = -1;
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(arrived));
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(counted));
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(arrived),
        "r"(mask >> rank & 1 ? 256 : 0)
        : "memory");
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(counted),
        "r"(rank == 3 ? 16 : 0)
        : "memory");
    asm volatile("fence.mbarrier_init.release.cluster; fence.proxy.async;" ::: "memory");
  }
  cluster.sync();
  if (rank == 0 && threadIdx.x == 0) {
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::"
                 "cluster [%0], [%1], 256, [%2], %3;" ::"r"(shared_address(block)),
        "l"(in + 64 * (blockIdx.x / 4)), "r"(arrived), "h"((short)mask)
        : "memory");
  }
  if (threadIdx.x == 32) {
    uint32_t to, bar;
    asm("mapa.shared::cluster.u32 %0, %1, 3;" : "=r"(to) : "r"(shared_address(&sent[rank])));
    asm("mapa.shared::cluster.u32 %0, %1, 3;" : "=r"(bar) : "r"(counted));
    asm volatile(
        "st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [%0], %1, [%2];" ::"r"(to),
        "r"((int)blockIdx.x * 5), "r"(bar)
        : "memory");
  }
  for (uint32_t bar : { arrived, counted }) {
    uint32_t done;
    do
      asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, "
                   "[%1], 0; selp.u32 %0, 1, 0, p; }"
          : "=r"(done)
          : "r"(bar)
          : "memory");
    while (!done);
  }
  int *o = out + 68 * blockIdx.x;
  o[threadIdx.x] = block[threadIdx.x];
  if (threadIdx.x < 4) o[64 + threadIdx.x] = sent[threadIdx.x];
  cluster.sync();
}

// Half of the threads of each block leave before the cluster meets, and one block does other work
// between arriving and waiting.
extern "C" __global__ void __cluster_dims__(2, 1, 1) leavers(int *out) {
  __shared__ int cells[64];
  cg::cluster_group cluster = cg::this_cluster();
  cells[threadIdx.x] = 0;
  __syncthreads();
  if (threadIdx.x >= 32) return;
  int *other = cluster.map_shared_rank(cells, cluster.block_rank() ^ 1);
  cells[threadIdx.x] = blockIdx.x + 1;
  cluster.barrier_arrive();
  int sum = 0;
  if (cluster.block_rank() == 1) for (int i = 0; i < 3000; i++) sum = sum * 5 + i;
  cluster.barrier_wait();
  int found = other[threadIdx.x];
  cluster.sync();
  out[blockIdx.x * 32 + threadIdx.x] = found * 100 + (sum == 12345 ? 1 : 0);
}
