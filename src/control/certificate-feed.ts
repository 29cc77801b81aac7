/** Sends a data plane which uploaded certificate is shown for which name: what changed, and not everything each time. */
import type { CertificateChange, ServedCertificate } from '../planes/port.ts'
import type { CertificatesByName } from './live-certificates.ts'

export class CertificateFeed {
  readonly #send: (change: CertificateChange) => void
  #sent: CertificatesByName | undefined

  constructor(send: (change: CertificateChange) => void) {
    this.#send = send
  }

  replace(served: CertificatesByName): void {
    const before = this.#sent
    const known = new Set(before?.values())
    const certificates = new Map<string, ServedCertificate>()
    const names: (readonly [string, string])[] = []
    for (const [name, certificate] of served) {
      if (before?.get(name) === certificate) continue
      names.push([name, certificate.id])
      if (!known.has(certificate)) certificates.set(certificate.id, certificate)
    }
    const removedNames = [...(before?.keys() ?? [])].filter((name) => !served.has(name))
    this.#sent = served
    this.#send({ isAll: !before, certificates: [...certificates.values()], names, removedNames })
  }
}
