/**
 * Tells a data plane which certificate to show for which name, sending only what has changed. The link delivers in order what it
 * is told, so nothing is waited for.
 */
import type { CertificateChange, ServedCertificate } from '../../link/planes/plane-calls.ts'
import type { CertificatesByName } from './certificate-choice.ts'

/** Returns what sends: `changed` are the names whose certificate may have changed since the last call. */
export function certificateSender(send: (change: CertificateChange) => void) {
  const sent = new Map<string, ServedCertificate>()
  /** How many names use each certificate at the plane. */
  const usesOf = new Map<ServedCertificate, number>()
  let isAll = true
  const use = (certificate: ServedCertificate, more: 1 | -1): number => {
    const uses = (usesOf.get(certificate) ?? 0) + more
    if (uses > 0) usesOf.set(certificate, uses)
    else usesOf.delete(certificate)
    return uses
  }
  return (served: CertificatesByName, changed: Iterable<string>): void => {
    const certificates = new Map<string, ServedCertificate>()
    const names: (readonly [string, string])[] = []
    const removedNames: string[] = []
    const left: ServedCertificate[] = []
    for (const name of changed) {
      const [before, now] = [sent.get(name), served.get(name)]
      if (before === now) continue
      if (before) left.push(before)
      if (now) {
        names.push([name, now.id])
        if (use(now, 1) === 1) certificates.set(now.id, now)
        sent.set(name, now)
      } else {
        removedNames.push(name)
        sent.delete(name)
      }
    }
    for (const certificate of left) use(certificate, -1)
    send({ isAll, certificates: [...certificates.values()], names, removedNames })
    isAll = false
  }
}
