/** The uploaded certificates by name, kept up to date by the control plane. */
import type { CertificateChange, ServedCertificate } from '../../link/planes/plane-calls.ts'

interface Known {
  readonly certificate: ServedCertificate
  /** How many names have it. */
  uses: number
}

/** Not a `MirroredMap`: many names share a certificate, which is sent once and kept as long as a name has it. */
export class UploadedCertificates {
  readonly #first = Promise.withResolvers<void>()
  /** Resolves when the uploaded certificates are known for the first time. */
  readonly known = this.#first.promise
  readonly #replace: (served: ReadonlyMap<string, ServedCertificate>) => void
  readonly #byName = new Map<string, ServedCertificate>()
  /** The current certificates by id; during a change, names may still have the former version of a renewed one. */
  readonly #byId = new Map<string, Known>()

  /** `replace` gets the same map each time, with its current content; unchanged certificates are the same objects. */
  constructor(replace: (served: ReadonlyMap<string, ServedCertificate>) => void) {
    this.#replace = replace
  }

  take({ isAll, certificates, names, removedNames }: CertificateChange): void {
    if (isAll) {
      this.#byName.clear()
      this.#byId.clear()
    }
    for (const certificate of certificates) this.#byId.set(certificate.id, { certificate, uses: 0 })
    const left = new Set<string>()
    for (const name of removedNames) this.#leave(name, left)
    for (const [name, id] of names) {
      const known = this.#byId.get(id)
      if (!known) continue
      this.#leave(name, left)
      this.#byName.set(name, known.certificate)
      known.uses++
    }
    for (const id of left) if (this.#byId.get(id)?.uses === 0) this.#byId.delete(id)
    this.#replace(this.#byName)
    this.#first.resolve()
  }

  #leave(name: string, left: Set<string>): void {
    const certificate = this.#byName.get(name)
    if (!certificate) return
    this.#byName.delete(name)
    left.add(certificate.id)
    const known = this.#byId.get(certificate.id)
    if (known?.certificate === certificate) known.uses--
  }
}
