"""Unpacks node.xz and project.tar.xz, which lie beside this file, and prints the path of the Node
binary.

    node=$(python3 unpack.py FOLDER)

FOLDER/node is the binary and FOLDER/project the project. Needs Python 3.8 or later and nothing
else. A folder that holds this very bundle already is left as it is.
"""

import hashlib
import lzma
import os
import shutil
import sys
import tarfile


def digest(path):
    sha = hashlib.sha256()
    with open(path, "rb") as file:
        for block in iter(lambda: file.read(1 << 20), b""):
            sha.update(block)
    return sha.hexdigest()


def unpack_node(archive, folder):
    binary = os.path.join(folder, "node")
    with lzma.open(archive) as packed, open(binary + ".tmp", "wb") as file:
        shutil.copyfileobj(packed, file, 1 << 20)
    os.chmod(binary + ".tmp", 0o755)
    os.replace(binary + ".tmp", binary)


def unpack_project(archive, folder):
    project = os.path.join(folder, "project")
    shutil.rmtree(project, ignore_errors=True)
    with tarfile.open(archive, "r:xz") as tar:
        if hasattr(tarfile, "data_filter"):
            tar.extractall(project, filter="data")
        else:
            tar.extractall(project)


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: python3 unpack.py FOLDER")
    folder = os.path.abspath(sys.argv[1])
    here = os.path.dirname(os.path.abspath(__file__))
    os.makedirs(folder, exist_ok=True)
    for name, unpack in (("node.xz", unpack_node), ("project.tar.xz", unpack_project)):
        archive = os.path.join(here, name)
        stamp = os.path.join(folder, "." + name + ".sha256")
        wanted = digest(archive)
        if os.path.exists(stamp) and open(stamp).read() == wanted:
            continue
        unpack(archive, folder)
        with open(stamp, "w") as file:
            file.write(wanted)
    print(os.path.join(folder, "node"))


main()
