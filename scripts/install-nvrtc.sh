#!/usr/bin/env bash
# Installs NVIDIA's NVRTC and nvJitLink from PyPI where the tests look for them: node_modules/.cache/nvrtc. Needs Python 3
# with pip and nothing of NVIDIA's; no GPU.
set -euo pipefail
cd "$(dirname "$0")/.."

packages=(nvidia-cuda-nvrtc==13.5.37 nvidia-nvjitlink==13.5.37)
folder=node_modules/.cache/nvrtc
stamp="$folder/installed"

if [ "$(cat "$stamp" 2>/dev/null)" = "${packages[*]}" ]; then exit 0; fi
rm -rf "$folder"
mkdir -p "$folder"
python3 -m pip install --quiet --disable-pip-version-check --no-deps --only-binary :all: --target "$folder" "${packages[@]}"
echo "${packages[*]}" > "$stamp"
