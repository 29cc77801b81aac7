/** Tells a data plane which certificate to show for which name, sending only what has changed. */
import type { CertificateChange, ServedCertificate } from '../../link/planes/plane-calls.ts'
import type { CertificatesByName } from './certificate-choice.ts'

export class CertificateFeed {
  readonly #send: (change: CertificateChange) => void
  readonly #sent = new Map<string, ServedCertificate>()
  /** How many names use each certificate at the plane. */
  readonly #uses = new Map<ServedCertificate, number>()
  #isBegun = false

  constructor(send: (change: CertificateChange) => void) {
    this.#send = send
  }

  /** `changed` are the names whose certificate may have changed since the last call. */
  replace(served: CertificatesByName, changed: Iterable<string>): void {
    const certificates = new Map<string, ServedCertificate>()
    const names: (readonly [string, string])[] = []
    const removedNames: string[] = []
    const left: ServedCertificate[] = []
    for (const name of changed) {
      const [before, now] = [this.#sent.get(name), served.get(name)]
      if (before === now) continue
      if (before) left.push(before)
      if (!now) {
        removedNames.push(name)
        this.#sent.delete(name)
        continue
      }
      names.push([name, now.id])
      const uses = this.#uses.get(now) ?? 0
      if (uses === 0) certificates.set(now.id, now)
      this.#uses.set(now, uses + 1)
      this.#sent.set(name, now)
    }
    for (const certificate of left) this.#leave(certificate)
    this.#send({ isAll: !this.#isBegun, certificates: [...certificates.values()], names, removedNames })
    this.#isBegun = true
  }

  #leave(certificate: ServedCertificate): void {
    const uses = (this.#uses.get(certificate) ?? 0) - 1
    if (uses > 0) this.#uses.set(certificate, uses)
    else this.#uses.delete(certificate)
  }
}
