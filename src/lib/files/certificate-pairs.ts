/** Finds certificates and their keys in a folder by their usual file names. */
import { opendir, stat } from 'node:fs/promises'
import { join, relative } from 'node:path'

/** Two files that belong together by their names. */
export interface CertificateFilePair {
  /** The path of the certificate inside the folder, which stays the same when its file is replaced. */
  readonly at: string
  readonly certFile: string
  readonly keyFile: string
  /** Changes whenever one of the files does, or a link to it. */
  readonly stamp: string
}

interface FoundPairs {
  readonly pairs: readonly CertificateFilePair[]
  /** Whether there was more than is searched. */
  readonly isCut: boolean
}

/** How many levels of folders are searched: `/etc/letsencrypt` has its pairs in `live/<name>/`. */
const MAX_DEPTH = 2

/** The most files and folders that are examined. */
const MAX_ENTRIES = 20_000

/** The name of the key for each name of a certificate; the first key that exists counts. */
const pairings: readonly (readonly [certificate: RegExp, key: string])[] = [
  // certbot
  [/^fullchain\.pem$/, 'privkey.pem'],
  // cert-manager (`tls`), and most others
  [/^(.+)\.crt$/, '$1.key'],
  [/^(.+)\.pem$/, '$1.key'],
  // mkcert
  [/^(.+)\.pem$/, '$1-key.pem'],
]

/** All pairs in `folder`; rejects when the folder itself cannot be read. */
export async function findCertificatePairs(folder: string): Promise<FoundPairs> {
  const pairs: CertificateFilePair[] = []
  let left = MAX_ENTRIES
  const look = async (at: string, depth: number): Promise<void> => {
    const files = new Set<string>()
    const folders: string[] = []
    for await (const entry of await opendir(at)) {
      if (left-- <= 0) break
      // Kubernetes keeps the former and the current files of a volume in folders whose names begin with two dots.
      if (entry.name.startsWith('.')) continue
      const kind = entry.isSymbolicLink() ? await stat(join(at, entry.name)).catch(() => undefined) : entry
      if (kind?.isDirectory()) folders.push(entry.name)
      else if (kind?.isFile()) files.add(entry.name)
    }
    for (const cert of [...files].sort()) {
      const key = keyBeside(cert, files)
      const pair = key === undefined ? undefined : await readStamped(folder, join(at, cert), join(at, key))
      if (pair) pairs.push(pair)
    }
    if (depth === 0) return
    // A folder that cannot be read, or is gone by now, must not hide the others.
    for (const each of folders.sort()) await look(join(at, each), depth - 1).catch(() => {})
  }
  await look(folder, MAX_DEPTH)
  return { pairs, isCut: left < 0 }
}

function keyBeside(cert: string, files: ReadonlySet<string>): string | undefined {
  for (const [pattern, key] of pairings) {
    const name = pattern.test(cert) ? cert.replace(pattern, key) : undefined
    if (name !== undefined && files.has(name)) return name
  }
  return undefined
}

async function readStamped(
  folder: string,
  certFile: string,
  keyFile: string,
): Promise<CertificateFilePair | undefined> {
  try {
    const stamps = await Promise.all([certFile, keyFile].map(stampOf))
    return { at: relative(folder, certFile), certFile, keyFile, stamp: stamps.join(' ') }
  } catch {
    // Removed since the folder was read.
    return undefined
  }
}

/** The stamp of the file that a link leads to, so that replacing the link changes it. */
async function stampOf(path: string): Promise<string> {
  const { dev, ino, size, mtimeNs, ctimeNs } = await stat(path, { bigint: true })
  return [dev, ino, size, mtimeNs, ctimeNs].join(':')
}
