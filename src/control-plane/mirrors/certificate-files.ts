/** Certificates in files on this machine, such as those of certbot and cert-manager: found by file name, and checked. */
import { setImmediate as othersFirst, setTimeout as pause } from 'node:timers/promises'
import { type CertificateFilePair, findCertificatePairs } from '../../lib/files/certificate-pairs.ts'
import { readSmallFileAsync } from '../../lib/files/read-small-file.ts'
import { MAX_PRIVATE_KEY_BYTES, operatorsKeys } from '../../lib/x509/private-key.ts'
import { BadTlsCertificate, MAX_TLS_PEM_BYTES, readTlsCertificate } from '../../lib/x509/tls-certificate.ts'
import type { ServedCertificate } from '../../link/planes/plane-calls.ts'
import { coveredBy } from '../../model/certificate-names.ts'
import { readNames } from '../../model/hostport.ts'
import type { ControlTools } from '../store/control-tools.ts'

interface CertificateFilesOptions extends Pick<ControlTools, 'now' | 'log'> {
  readonly folder: string
  /** How often the folder is scanned, in milliseconds. */
  readonly lookMs?: number
}

interface ReadPair {
  readonly names: readonly string[]
  /** In milliseconds since 1970, as is `notAfter`. */
  readonly notBefore: number
  readonly notAfter: number
  readonly served: ServedCertificate
}

interface KnownPair {
  readonly stamp: string
  /** The last valid content; it stays in use while its files are being replaced and do not match. */
  readonly read: ReadPair | undefined
  readonly fault: string | undefined
}

const LOOK_MS = 5000

/** How long data planes wait for the first scan, in milliseconds: the folder may be on a machine that is down. */
const FIRST_LOOK_MS = 5000

/** Most certificates that are read from files; each worker holds all of them. */
const MAX_PAIRS = 5000

/**
 * The folder is scanned every few seconds rather than watched. A watch follows a file and not the link to it, and does not
 * work for folders on other machines.
 */
export class CertificateFiles {
  readonly #options: CertificateFilesOptions
  readonly #known = new Map<string, KnownPair>()
  readonly #listeners = new Set<() => void>()
  /** Pairs that were already logged as expired or not valid yet. */
  readonly #logged = new WeakSet<ReadPair>()
  readonly #stopping = new AbortController()
  readonly #looked = Promise.withResolvers<void>()
  #byName: ReadonlyMap<string, ServedCertificate> = new Map()
  #isCovered = coveredBy(new Set())
  #metrics = { served: 0, bad: 0 }
  /** The last fault of the folder itself, so that it is logged once. */
  #folderFault: string | undefined

  constructor(options: CertificateFilesOptions) {
    this.#options = options
  }

  /** Scans the folder now and from time to time. */
  start(): void {
    void this.#run()
  }

  stop(): void {
    this.#stopping.abort()
    this.#looked.resolve()
  }

  /** Resolves when the folder was scanned for the first time, or that takes too long. */
  async ready(): Promise<void> {
    await Promise.race([this.#looked.promise, pause(FIRST_LOOK_MS, undefined, { ref: false })])
  }

  /** The certificates by name, exact or `*.…`; the map is never changed in place. */
  get byName(): ReadonlyMap<string, ServedCertificate> {
    return this.#byName
  }

  /** Whether a file is served for a name. */
  covers(name: string): boolean {
    return this.#isCovered(name)
  }

  /** How many pairs are served, and how many are faulty. */
  get metrics(): Readonly<Record<'served' | 'bad', number>> {
    return this.#metrics
  }

  /** Calls `listener` when other certificates are served; returns a function that stops this. */
  whenChanged(listener: () => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  async #run(): Promise<void> {
    const { signal } = this.#stopping
    while (!signal.aborted) {
      await this.#look()
      this.#looked.resolve()
      await pause(this.#options.lookMs ?? LOOK_MS, undefined, { ref: false, signal }).catch(() => {})
    }
  }

  async #look(): Promise<void> {
    const { folder } = this.#options
    try {
      const { pairs, isCut } = await findCertificatePairs(folder)
      await this.#take(pairs.slice(0, MAX_PAIRS))
      const isMore = isCut || pairs.length > MAX_PAIRS
      this.#logFolderFault(isMore ? `too many files; at most ${MAX_PAIRS} pairs are read` : undefined)
    } catch (err) {
      // Certificates read before stay in use.
      this.#logFolderFault(codeOf(err))
    }
    this.#publish()
  }

  async #take(pairs: readonly CertificateFilePair[]): Promise<void> {
    const found = new Set(pairs.map(({ at }) => at))
    for (const at of this.#known.keys()) {
      if (found.has(at)) continue
      this.#known.delete(at)
      this.#options.log.info({ file: at }, 'certificate file removed')
    }
    for (const pair of pairs) {
      if (this.#stopping.signal.aborted) return
      const known = this.#known.get(pair.at)
      if (known?.stamp === pair.stamp) continue
      this.#known.set(pair.at, await this.#read(pair, known?.read))
      await othersFirst()
    }
  }

  async #read(pair: CertificateFilePair, former: ReadPair | undefined): Promise<KnownPair> {
    const { log } = this.#options
    const { at, stamp } = pair
    try {
      const read = await readPair(pair)
      const { names, served } = read
      log.info({ file: at, names: names.slice(0, 10), expires: served.notAfter }, 'certificate file loaded')
      return { stamp, read, fault: undefined }
    } catch (error) {
      const fault = error instanceof BadTlsCertificate ? error.message : codeOf(error)
      log.warn(
        { file: at, fault, is_former_served: former !== undefined },
        'cannot use certificate file; it is read again when it changes',
      )
      return { stamp, read: former, fault }
    }
  }

  /** Of several certificates for one name, the one that expires last is served. */
  #publish(): void {
    const now = this.#options.now()
    const byName = new Map<string, ServedCertificate>()
    let [served, bad] = [0, 0]
    const all = [...this.#known].sort(([, a], [, b]) => (a.read?.notAfter ?? 0) - (b.read?.notAfter ?? 0))
    for (const [at, { read, fault }] of all) {
      const isValid = read !== undefined && this.#isValid(at, read, now)
      if (isValid) for (const name of read.names) byName.set(name, read.served)
      if (isValid) served++
      if (!isValid || fault !== undefined) bad++
    }
    this.#metrics = { served, bad }
    if (isSame(byName, this.#byName)) return
    this.#byName = byName
    this.#isCovered = coveredBy(new Set(byName.keys()))
    for (const listener of this.#listeners) listener()
  }

  #isValid(at: string, read: ReadPair, now: number): boolean {
    if (read.notBefore <= now && now < read.notAfter) return true
    if (!this.#logged.has(read)) {
      const fault = now < read.notBefore ? 'it is not valid yet' : 'it has expired'
      this.#options.log.warn({ file: at, fault, expires: read.served.notAfter }, 'certificate file is not served')
    }
    this.#logged.add(read)
    return false
  }

  #logFolderFault(fault: string | undefined): void {
    if (fault !== undefined && fault !== this.#folderFault) {
      const { log, folder } = this.#options
      log.warn({ folder, fault }, 'cannot read all of the certificate folder; retrying')
    }
    this.#folderFault = fault
  }
}

async function readPair({ at, certFile, keyFile }: CertificateFilePair): Promise<ReadPair> {
  const cert = await readSmallFileAsync(certFile, MAX_TLS_PEM_BYTES)
  const key = await readSmallFileAsync(keyFile, MAX_PRIVATE_KEY_BYTES)
  const { dnsNames, notBefore, notAfter } = readTlsCertificate(cert, key, operatorsKeys)
  const names = readNames(dnsNames)
  if (names.length === 0) throw new BadTlsCertificate('certificate', 'The certificate names no host.')
  const life = { notBefore: Date.parse(notBefore), notAfter: Date.parse(notAfter) }
  return { names, ...life, served: { id: `file:${at}`, cert, key, notAfter } }
}

function isSame(a: ReadonlyMap<string, ServedCertificate>, b: ReadonlyMap<string, ServedCertificate>): boolean {
  return a.size === b.size && [...a].every(([name, served]) => b.get(name) === served)
}

function codeOf(error: unknown): string {
  const { code } = error as { readonly code?: unknown } // errors of the system have one
  return typeof code === 'string' ? code : String(error)
}
