/** Keeps the data plane told of uploaded certificates: which one serves which name. */
import type { Logger } from '../lib/log.ts'
import type { Sealer } from '../lib/seal.ts'
import { readName } from '../model/hostport.ts'
import { reservedDomains } from '../resources/reserved-domains.ts'
import type { Resource } from '../resources/resource.ts'
import { tlsCertificates } from '../resources/tls-certificates.ts'
import type { Change } from '../store/feed.ts'
import type { StoredResource } from '../store/reader.ts'
import type { Store } from '../store/store.ts'
import type { Followed } from './follower.ts'
import { openFields } from './secrets.ts'

export interface ServedCertificate {
  readonly id: string
  readonly cert: string
  readonly key: string
  readonly notAfter: string
}

/** By name, exact or `*.…`; the whole of what is uploaded. */
export type CertificatesByName = ReadonlyMap<string, ServedCertificate>

const AT_A_TIME = 100

export class LiveCertificates implements Followed {
  readonly #store: Store
  readonly #sealer: Sealer
  readonly #replace: (served: CertificatesByName) => void
  readonly #log: Logger
  readonly #certificates = new Map<string, StoredResource>()
  readonly #domains = new Map<string, StoredResource>()

  constructor(options: {
    store: Store
    sealer: Sealer
    replace: (served: CertificatesByName) => void
    log: Logger
  }) {
    this.#store = options.store
    this.#sealer = options.sealer
    this.#replace = options.replace
    this.#log = options.log
  }

  async load(): Promise<void> {
    await this.#loadAll(tlsCertificates, this.#certificates)
    await this.#loadAll(reservedDomains, this.#domains)
    this.#tell()
  }

  async apply(changes: readonly Change[]): Promise<void> {
    const kinds = new Map([
      [tlsCertificates.kind, this.#certificates],
      [reservedDomains.kind, this.#domains],
    ])
    const touched = changes.filter(({ kind }) => kinds.has(kind))
    if (touched.length === 0) return
    const found = await this.#store.read((reader) => reader.resources(touched.map(({ id }) => id)))
    for (const { kind, id } of touched) kinds.get(kind)?.delete(id)
    for (const resource of found) kinds.get(resource.kind)?.set(resource.id, resource)
    this.#tell()
  }

  async #loadAll({ kind }: Resource, into: Map<string, StoredResource>): Promise<void> {
    into.clear()
    let beforeId: string | undefined
    do {
      const some = await this.#store.read((reader) =>
        reader.page({ kind, limit: AT_A_TIME, ...(beforeId !== undefined && { beforeId }) }),
      )
      for (const each of some) into.set(each.id, each)
      beforeId = some.at(-1)?.id
    } while (beforeId !== undefined)
  }

  /** A newer certificate wins over an older one of the same name, and what a reserved domain names over both. */
  #tell(): void {
    const served = new Map<string, ServedCertificate>()
    const byAge = [...this.#certificates.values()].sort((a, b) => (a.id < b.id ? -1 : 1))
    for (const certificate of byAge) {
      const opened = this.#open(certificate)
      if (opened) for (const name of namesOf(certificate)) served.set(name, opened)
    }
    for (const { fields } of this.#domains.values()) {
      // What is stored has passed the form of its resource.
      const named = this.#certificates.get((fields.certificate_id as string | undefined) ?? '')
      const opened = named && this.#open(named)
      if (opened) served.set(readName(String(fields.domain)), opened)
    }
    this.#replace(served)
  }

  #open({ id, fields }: StoredResource): ServedCertificate | undefined {
    try {
      const { certificate_pem, private_key_pem, not_after } = openFields(this.#sealer, tlsCertificates.secrets, fields)
      return { id, cert: String(certificate_pem), key: String(private_key_pem), notAfter: String(not_after) }
    } catch (error) {
      this.#log.error({ err: error, certificate: id }, 'a certificate cannot be opened and is not served')
      return undefined
    }
  }
}

/** Names as they are compared; what a certificate holds besides names serves nobody here. */
function namesOf({ fields }: StoredResource): string[] {
  // What is stored has passed the form of its resource.
  const { dns_names: names } = fields.subject_alternative_names as { dns_names: readonly string[] }
  return names.flatMap((name) => {
    try {
      return [readName(name)]
    } catch {
      return []
    }
  })
}
