/**
 * Installs wheels from PyPI into a folder of node_modules/.cache, by Node alone: no Python, nothing
 * of NVIDIA's, no GPU.
 */
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { inflateRawSync } from 'node:zlib';

const platforms = { 'linux-x64': 'manylinux.*_x86_64', 'linux-arm64': 'manylinux.*_aarch64' };
const platform = platforms[`${process.platform}-${process.arch}`];

/**
 * The address of the package index, as pip takes it: PIP_INDEX_URL, or `index-url` of the section
 * `global` or `install` of pip's configuration (PIP_CONFIG_FILE, the user's, the machine's), else
 * pip's own default.
 */
function indexUrl() {
  const { PIP_INDEX_URL, PIP_CONFIG_FILE, XDG_CONFIG_HOME } = process.env;
  if (PIP_INDEX_URL) return PIP_INDEX_URL;
  const files = [
    PIP_CONFIG_FILE,
    join(XDG_CONFIG_HOME || join(homedir(), '.config'), 'pip', 'pip.conf'),
    join(homedir(), '.pip', 'pip.conf'),
    '/etc/pip.conf',
  ];
  for (const file of files) {
    if (!file || !existsSync(file)) continue;
    let section = '';
    for (const line of readFileSync(file, 'utf8').split('\n')) {
      section = /^\s*\[(.+)\]/.exec(line)?.[1] ?? section;
      const url = /^\s*index[-_]url\s*[=:]\s*(\S+)/.exec(line)?.[1];
      if (url !== undefined && ['global', 'install'].includes(section)) return url;
    }
  }
  for (const python of ['python3', 'python']) {
    // The default of the pip that is installed.
    const { stdout } = spawnSync(
      python,
      ['-c', 'from pip._internal.models.index import PyPI; print(PyPI.simple_url)'],
      { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] },
    );
    if (stdout?.trim()) return stdout.trim();
  }
  throw new Error(
    'No Python package index is configured, and pip is not installed: set PIP_INDEX_URL to the ' +
      "index's address, or index-url in pip's configuration",
  );
}

/** The package's wheel for this machine, as the index names it (PEP 691). */
async function wheelOf(name, version) {
  const listed = await fetch(`${indexUrl().replace(/\/+$/, '')}/${name}/`, {
    headers: { accept: 'application/vnd.pypi.simple.v1+json' },
  });
  if (!listed.ok) throw new Error(`${name}: PyPI answered ${listed.status}`);
  const { files } = await listed.json();
  const pattern = new RegExp(
    `^${name.replaceAll('-', '_')}-${version.replaceAll('.', '\\.')}-.*${platform}.*\\.whl$`,
  );
  const file = files.find(({ filename }) => pattern.test(filename));
  if (file === undefined)
    throw new Error(`${name}: PyPI has no ${version} for ${process.platform}-${process.arch}`);
  const answer = await fetch(new URL(file.url, listed.url));
  if (!answer.ok) throw new Error(`${file.url}: ${answer.status}`);
  const bytes = Buffer.from(await answer.arrayBuffer());
  const digest = createHash('sha256').update(bytes).digest('hex');
  if (digest !== file.hashes.sha256)
    throw new Error(`${file.filename}: its SHA-256 is ${digest}, PyPI's ${file.hashes.sha256}`);
  return bytes;
}

/** The files of a wheel, which is a ZIP archive: read by its central directory (APPNOTE 4.3.12). */
function* filesOf(archive, keep) {
  const end = archive.lastIndexOf(Buffer.from('PK\x05\x06', 'latin1'));
  if (end < 0) throw new Error('a wheel without a directory');
  let at = archive.readUInt32LE(end + 16);
  for (let i = archive.readUInt16LE(end + 10); i > 0; i--) {
    const [method, packed, nameLength, extra, comment, mode, head] = [
      archive.readUInt16LE(at + 10),
      archive.readUInt32LE(at + 20),
      archive.readUInt16LE(at + 28),
      archive.readUInt16LE(at + 30),
      archive.readUInt16LE(at + 32),
      // The upper half of the external attributes is that of Unix.
      archive.readUInt16LE(at + 40) & 0o777,
      archive.readUInt32LE(at + 42),
    ];
    const name = archive.toString('utf8', at + 46, at + 46 + nameLength);
    at += 46 + nameLength + extra + comment;
    if (name.endsWith('/')) continue;
    const start = head + 30 + archive.readUInt16LE(head + 26) + archive.readUInt16LE(head + 28);
    const bytes = archive.subarray(start, start + packed);
    if (method !== 0 && method !== 8) throw new Error(`${name}: packed by method ${method}`);
    if (keep.test(name)) yield [name, method === 8 ? inflateRawSync(bytes) : bytes, mode || 0o644];
  }
}

/**
 * `packages`: their names on PyPI and versions, and a pattern of the files to keep where not all of
 * them are. What is there already is left as it is.
 */
export async function installWheels(cache, packages) {
  const folder = fileURLToPath(new URL(`../node_modules/.cache/${cache}/`, import.meta.url));
  const wanted = packages.map((each) => each.join(' ')).join('\n');
  const stamp = join(folder, 'installed');
  if (platform === undefined)
    throw new Error(`PyPI has no ${packages[0][0]} for ${process.platform}-${process.arch}`);
  if ((await readFile(stamp, 'utf8').catch(() => '')) === wanted) return;
  await rm(folder, { recursive: true, force: true });
  for (const [name, version, keep = /^/] of packages) {
    for (const [path, bytes, mode] of filesOf(await wheelOf(name, version), keep)) {
      const target = resolve(folder, path);
      if (!target.startsWith(folder)) throw new Error(`${name}: ${path} leads out of its folder`);
      await mkdir(dirname(target), { recursive: true });
      await writeFile(target, bytes, { mode });
    }
  }
  await writeFile(stamp, wanted);
}
