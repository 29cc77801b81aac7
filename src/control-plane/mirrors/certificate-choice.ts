/** Which certificate is served for which name. */
import { Groups } from '../../lib/multi-map.ts'
import type { ServedCertificate } from '../../link/planes/plane-calls.ts'
import { wildcardOver } from '../../model/certificate-names.ts'

/** Certificates by name, exact or `*.…`. */
export type CertificatesByName = ReadonlyMap<string, ServedCertificate>

export interface StoredCertificate {
  readonly names: readonly string[]
  readonly served: ServedCertificate
  /** Whether this server got it from an authority. */
  readonly isIssued: boolean
}

/** A reserved domain that names its certificate. */
export interface NamingDomain {
  readonly name: string
  readonly certificateId: string
}

/**
 * Uploaded certificates win over files, and files over certificates that this server got by itself, even where only a
 * wildcard covers the name. A newer certificate wins over an older one for the same name; one that a reserved domain names
 * wins over all.
 *
 * Kept by name: the cost of a change depends on the change, not on the number of certificates.
 */
export class CertificateChoice {
  readonly #served = new Map<string, ServedCertificate>()
  readonly #byId = new Map<string, StoredCertificate>()
  readonly #uploaded = new Groups<ServedCertificate>()
  readonly #issued = new Groups<ServedCertificate>()
  /** Reserved domains by their name, and their names by the id of the certificate. */
  readonly #domains = new Groups<NamingDomain>()
  readonly #namedBy = new Groups<string>()
  /** Names of files and of issued certificates, by the wildcard over them. */
  readonly #below = new Groups<string>()
  /** Names whose certificate must be chosen again. */
  readonly #touched = new Set<string>()
  #files: CertificatesByName = new Map()

  get served(): CertificatesByName {
    return this.#served
  }

  /** Adds a certificate, or a reserved domain that names one; or deletes what was added. */
  put(how: 'add' | 'delete', part: StoredCertificate | NamingDomain): void {
    if ('certificateId' in part) {
      this.#domains[how](part.name, part)
      this.#namedBy[how](part.certificateId, part.name)
      this.#touched.add(part.name)
      return
    }
    const { names, served, isIssued } = part
    if (how === 'add') this.#byId.set(served.id, part)
    else this.#byId.delete(served.id)
    for (const name of names) {
      ;(isIssued ? this.#issued : this.#uploaded)[how](name, served)
      if (isIssued) this.#noteBelow(name)
      else this.#touchBelow(name)
      this.#touched.add(name)
    }
    for (const name of this.#namedBy.get(served.id)) this.#touched.add(name)
  }

  useFiles(files: CertificatesByName): void {
    const former = this.#files
    this.#files = files
    for (const name of [...former.keys(), ...files.keys()]) {
      this.#noteBelow(name)
      this.#touchBelow(name)
      this.#touched.add(name)
    }
  }

  /** Chooses again for all touched names; returns those whose certificate has changed or is gone. */
  settle(): string[] {
    const changed: string[] = []
    for (const name of this.#touched) {
      const chosen = this.#choose(name)
      if (this.#served.get(name) === chosen) continue
      changed.push(name)
      if (chosen) this.#served.set(name, chosen)
      else this.#served.delete(name)
    }
    this.#touched.clear()
    return changed
  }

  #noteBelow(name: string): void {
    const isThere = this.#issued.has(name) || this.#files.has(name)
    this.#below[isThere ? 'add' : 'delete'](wildcardOver(name), name)
  }

  /** Marks the names that a wildcard covers. */
  #touchBelow(name: string): void {
    if (name.startsWith('*.')) for (const below of this.#below.get(name)) this.#touched.add(below)
  }

  #choose(name: string): ServedCertificate | undefined {
    for (const { certificateId } of this.#domains.get(name)) {
      const named = this.#byId.get(certificateId)
      if (named) return named.served
    }
    const above = wildcardOver(name)
    const uploaded = newest(this.#uploaded.get(name))
    if (uploaded || this.#uploaded.has(above)) return uploaded
    const file = this.#files.get(name)
    if (file || this.#files.has(above)) return file
    return newest(this.#issued.get(name))
  }
}

/** The newest has the greatest id. */
function newest(certificates: Iterable<ServedCertificate>): ServedCertificate | undefined {
  let found: ServedCertificate | undefined
  for (const each of certificates) if (!found || each.id > found.id) found = each
  return found
}
