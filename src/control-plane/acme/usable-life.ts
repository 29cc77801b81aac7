/** Checks that an authority sent a certificate for the name that was ordered, and how long it is valid. */
import { X509Certificate } from 'node:crypto'
import { AcmeFault } from './order-fault.ts'
import type { Life } from './order-times.ts'

/** Throws `AcmeFault` if it is unusable. Whether its key matches is checked when it is stored. */
export function usableLife(pem: string, name: string, now: number): Life {
  const leaf = readLeaf(pem)
  const names = (leaf.subjectAltName ?? '').split(', ')
  if (!names.includes(`DNS:${name}`)) throw unusable(`It is not for ${name}.`)
  const life = { notBefore: leaf.validFromDate.getTime(), notAfter: leaf.validToDate.getTime() }
  if (life.notAfter <= now) throw unusable('It has expired.')
  return life
}

function readLeaf(pem: string): X509Certificate {
  try {
    return new X509Certificate(pem)
  } catch (cause) {
    throw unusable('It is not a certificate in PEM.', cause)
  }
}

function unusable(why: string, cause?: unknown): AcmeFault {
  return new AcmeFault('CERTIFICATE_UNUSABLE', why, { cause, isOrderLost: true })
}
