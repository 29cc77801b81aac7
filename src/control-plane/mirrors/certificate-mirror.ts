/** Keeps a data plane up to date with certificates: which of the stored ones and files serves which name. */
import type { Logger } from '../../lib/log/create-log.ts'
import type { Sealer } from '../../lib/secrets/seal.ts'
import type { ServedCertificate } from '../../link/planes/plane-calls.ts'
import { readName, readNames } from '../../model/hostport.ts'
import { openFields, resourceAt } from '../records/sealed-fields.ts'
import { reservedDomains } from '../resources/reserved-domains.ts'
import { tlsCertificates } from '../resources/tls-certificates.ts'
import type { Change } from '../store/feed.ts'
import type { Followed } from '../store/feed-follower.ts'
import type { StoredResource } from '../store/reader.ts'
import type { Store } from '../store/store.ts'
import {
  CertificateChoice,
  type CertificatesByName,
  type NamingDomain,
  type StoredCertificate,
} from './certificate-choice.ts'
import { StoredParts } from './stored-parts.ts'

/** Certificates in files on this machine; see `CertificateFiles`. */
export interface FileCertificates {
  ready(): Promise<void>
  readonly byName: CertificatesByName
}

/** `changed`: names whose certificate has changed or is gone. The map is changed in place by later calls. */
export type ReplaceCertificates = (served: CertificatesByName, changed: readonly string[]) => void

type Part = { readonly certificate: StoredCertificate } | { readonly domain: NamingDomain }

export class LiveCertificates implements Followed {
  readonly #sealer: Sealer
  readonly #files: FileCertificates | undefined
  readonly #replace: ReplaceCertificates
  readonly #log: Logger
  #isLoaded = false
  /** Certificates are unsealed once, when they are added or changed. */
  readonly #stored: StoredParts<Part>
  #choice = new CertificateChoice()

  constructor(options: {
    store: Store
    sealer: Sealer
    files?: FileCertificates | undefined
    replace: ReplaceCertificates
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
    const former = this.#choice.served
    this.#choice = new CertificateChoice()
    for (const part of this.#stored.byId.values()) this.#add(part)
    this.#choice.useFiles(this.#files?.byName ?? new Map())
    this.#replace(this.#choice.served, [...new Set([...former.keys(), ...this.#choice.settle()])])
  }

  /** Takes the changed files; during a load, its end does so. */
  filesChanged(): void {
    if (!this.#isLoaded) return
    this.#choice.useFiles(this.#files?.byName ?? new Map())
    this.#publish()
  }

  async apply(changes: readonly Change[]): Promise<void> {
    const change = await this.#stored.apply(changes)
    if (!change) return
    for (const [, part] of change.before) {
      if ('certificate' in part) this.#choice.removeCertificate(part.certificate)
      else this.#choice.removeDomain(part.domain)
    }
    for (const [, part] of change.after) this.#add(part)
    this.#publish()
  }

  #add(part: Part): void {
    if ('certificate' in part) this.#choice.addCertificate(part.certificate)
    else this.#choice.addDomain(part.domain)
  }

  #publish(): void {
    const changed = this.#choice.settle()
    if (changed.length > 0) this.#replace(this.#choice.served, changed)
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
      this.#log.error({ err: error, certificate: id }, 'cannot unseal a certificate; it is not served')
      return undefined
    }
  }
}

/** The normalised host names of a certificate; its other names are not served. */
export function namesOf({ fields }: Pick<StoredResource, 'fields'>): string[] {
  // What is stored has passed the form of its resource.
  const { dns_names: names } = fields.subject_alternative_names as { dns_names: readonly string[] }
  return readNames(names)
}
