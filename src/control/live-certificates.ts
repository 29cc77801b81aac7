/** Keeps the data plane up to date with certificates: which one serves which name, of all that are stored or are files. */
import type { Logger } from '../lib/log/log.ts'
import type { Sealer } from '../lib/secrets/seal.ts'
import { readName, readNames } from '../model/hostport.ts'
import type { ServedCertificate } from '../planes/port.ts'
import { reservedDomains } from '../resources/reserved-domains.ts'
import { tlsCertificates } from '../resources/tls-certificates.ts'
import type { Change } from '../store/feed.ts'
import type { StoredResource } from '../store/reader.ts'
import type { Store } from '../store/store.ts'
import type { Followed } from './follower.ts'
import { openFields, resourceAt } from './secrets.ts'
import { StoredParts } from './stored-parts.ts'

/** All certificates by name, exact or `*.…`. */
export type CertificatesByName = ReadonlyMap<string, ServedCertificate>

/** Certificates that are files on this machine; see `CertificateFiles`. */
export interface FileCertificates {
  ready(): Promise<void>
  readonly byName: CertificatesByName
}

interface StoredCertificate {
  readonly names: readonly string[]
  readonly served: ServedCertificate
  /** This server got it from an authority. */
  readonly isIssued: boolean
}

/** A reserved domain that names its certificate. */
interface NamingDomain {
  readonly name: string
  readonly certificateId: string
}

type Part = { readonly certificate: StoredCertificate } | { readonly domain: NamingDomain }

export class LiveCertificates implements Followed {
  readonly #sealer: Sealer
  readonly #files: FileCertificates | undefined
  readonly #replace: (served: CertificatesByName) => void
  readonly #log: Logger
  #isLoaded = false
  /** Certificates are opened once, when they are added or changed. */
  readonly #stored: StoredParts<Part>

  constructor(options: {
    store: Store
    sealer: Sealer
    files?: FileCertificates | undefined
    replace: (served: CertificatesByName) => void
    log: Logger
  }) {
    const kinds = [tlsCertificates.kind, reservedDomains.kind]
    this.#stored = new StoredParts({ store: options.store, kinds, partOf: (resource) => this.#partOf(resource) })
    this.#sealer = options.sealer
    this.#files = options.files
    this.#replace = options.replace
    this.#log = options.log
  }

  async load(): Promise<void> {
    this.#isLoaded = false
    await this.#files?.ready()
    await this.#stored.load()
    this.#isLoaded = true
    this.#publish()
  }

  /** Other files are there now; while everything is being read, that is seen at the end. */
  filesChanged(): void {
    if (this.#isLoaded) this.#publish()
  }

  async apply(changes: readonly Change[]): Promise<void> {
    if (await this.#stored.apply(changes)) this.#publish()
  }

  #partOf(resource: StoredResource): Part | undefined {
    const { kind, fields } = resource
    if (kind === tlsCertificates.kind) {
      const served = this.#open(resource)
      return served && { certificate: { names: namesOf(resource), served, isIssued: Boolean(fields.issued_for) } }
    }
    // What is stored has passed the form of its resource.
    const { domain, certificate_id: certificateId } = fields as { domain: string; certificate_id?: string | null }
    return certificateId ? { domain: { name: readName(domain), certificateId } } : undefined
  }

  /**
   * What was uploaded wins over files, and these over what this server got by itself, also where only a wildcard covers
   * the name. A newer certificate wins over an older one of the same name, and what a reserved domain names over all.
   */
  #publish(): void {
    const served = new Map<string, ServedCertificate>()
    const parts = [...this.#stored.byId.values()]
    const certificates = parts.flatMap((part) => ('certificate' in part ? [part.certificate] : []))
    const byAge = certificates.sort((a, b) => (a.served.id < b.served.id ? -1 : 1))
    const byRank: Iterable<readonly [string, ServedCertificate]>[] = [
      named(byAge.filter(({ isIssued }) => !isIssued)),
      this.#files?.byName ?? [],
      named(byAge.filter(({ isIssued }) => isIssued)),
    ]
    for (const rank of byRank) {
      const isCovered = coveredBy(new Set(served.keys()))
      for (const [name, each] of rank) if (!isCovered(name)) served.set(name, each)
    }
    for (const part of parts) {
      const chosen = 'domain' in part ? this.#stored.byId.get(part.domain.certificateId) : undefined
      if ('domain' in part && chosen && 'certificate' in chosen) served.set(part.domain.name, chosen.certificate.served)
    }
    this.#replace(served)
  }

  #open({ id, fields }: StoredResource): ServedCertificate | undefined {
    try {
      const { certificate_pem, private_key_pem, not_after } = openFields(
        this.#sealer,
        tlsCertificates.secrets,
        fields,
        resourceAt(id),
      )
      return { id, cert: String(certificate_pem), key: String(private_key_pem), notAfter: String(not_after) }
    } catch (error) {
      this.#log.error({ err: error, certificate: id }, 'certificate cannot be opened and is not served')
      return undefined
    }
  }
}

function named(certificates: readonly StoredCertificate[]): (readonly [string, ServedCertificate])[] {
  return certificates.flatMap(({ names, served }) => names.map((name) => [name, served] as const))
}

/** Whether one of `names`, some of which are wildcards, covers a name as certificates do: `*` is one label. */
export function coveredBy(names: ReadonlySet<string>): (name: string) => boolean {
  return (name) => names.has(name) || names.has(`*${name.slice(name.indexOf('.'))}`)
}

/** Normalised names; other entries of a certificate are of no use here. */
export function namesOf({ fields }: Pick<StoredResource, 'fields'>): string[] {
  // What is stored has passed the form of its resource.
  const { dns_names: names } = fields.subject_alternative_names as { dns_names: readonly string[] }
  return readNames(names)
}
