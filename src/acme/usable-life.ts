/** Whether what an authority sent is a certificate for the name that was ordered, and for how long. */
import { X509Certificate } from 'node:crypto'
import { AcmeFault } from './fault.ts'
import type { Life } from './timing.ts'

/** Throws `AcmeFault` when it is of no use; whether its key fits is looked at when it is kept. */
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
    throw unusable('It is no certificate in PEM form.', cause)
  }
}

function unusable(why: string, cause?: unknown): AcmeFault {
  return new AcmeFault('CERTIFICATE_UNUSABLE', why, { cause, isOrderLost: true })
}
