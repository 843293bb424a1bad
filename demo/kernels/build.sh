#!/bin/sh
# Compiles every kernel beside this script to PTX. The PTX is committed, so this is needed only
# after editing a kernel.
#
# compute_75 (Turing) is the oldest architecture that CUDA 13 compiles for; a driver translates it
# for any later GPU. nvcc need not be installed system-wide. From PyPI, into any folder:
#
#   pip install --no-deps --target /tmp/nvcc \
#     'nvidia-cuda-nvcc==13.0.*' 'nvidia-nvvm==13.0.*' \
#     'nvidia-cuda-crt==13.0.*' 'nvidia-cuda-runtime==13.0.*'
#   NVCC=/tmp/nvcc/nvidia/cu13/bin/nvcc demo/kernels/build.sh
set -eu
cd "$(dirname "$0")"
for source in *.cu; do
  "${NVCC:-nvcc}" -ptx -arch=compute_75 -std=c++17 "$source" -o "${source%.cu}.ptx"
  # nvcc writes its newest PTX version. These kernels need 7.0 at most (ptxas accepts it), with
  # which drivers from CUDA 11.0 on load the file.
  sed -i 's/^\.version .*/.version 7.0/' "${source%.cu}.ptx"
done
