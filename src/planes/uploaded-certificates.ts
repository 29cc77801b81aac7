/** The uploaded certificates by name, as the control plane says they change. */
import type { CertificateChange, ServedCertificate } from './port.ts'

export class UploadedCertificates {
  readonly #first = Promise.withResolvers<void>()
  /** Resolves when they were told for the first time. */
  readonly known = this.#first.promise
  readonly #replace: (served: ReadonlyMap<string, ServedCertificate>) => void
  #byName: ReadonlyMap<string, ServedCertificate> = new Map()

  /** `replace` is given a map that does not change afterwards; certificates that stay are the same objects. */
  constructor(replace: (served: ReadonlyMap<string, ServedCertificate>) => void) {
    this.#replace = replace
  }

  take({ isAll, certificates, names, removedNames }: CertificateChange): void {
    const byName = new Map(isAll ? [] : this.#byName)
    const known = new Map([...byName.values(), ...certificates].map((each) => [each.id, each]))
    for (const name of removedNames) byName.delete(name)
    for (const [name, id] of names) {
      const certificate = known.get(id)
      if (certificate) byName.set(name, certificate)
    }
    this.#byName = byName
    this.#replace(byName)
    this.#first.resolve()
  }
}
