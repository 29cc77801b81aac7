/** Reads a bundle of CA certificates in PEM form: each certificate, and the fields of the first. */

import { createHash, X509Certificate } from 'node:crypto'
import { BadInput } from '../shape/bad-input.ts'
import { readCertificateFields } from './certificate-fields.ts'
import { decodeBase64, holdsPrivateKey } from './pem.ts'

/** The most certificates in one bundle. */
export const MAX_CA_CERTIFICATES = 64

/** The most UTF-8 bytes in one bundle, including text around the certificates. */
export const MAX_CA_PEM_BYTES = 256 * 1024

interface CaCertificates {
  /** Each certificate in its plain PEM form, with the SHA-256 of its DER in lower-case hex. */
  readonly certificates: readonly { readonly pem: string; readonly fingerprint: string }[]
  readonly first: {
    /** `''` when the subject has none; the last when it has several. */
    readonly subject_common_name: string
    readonly not_before: string
    readonly not_after: string
    readonly key_usages: string[]
    readonly extended_key_usages: string[]
  }
}

/** Reads concatenated PEM certificates and ignores text around them; throws an `Error` that says which one is wrong. */
export function readCaCertificates(pem: string): CaCertificates {
  if (Buffer.byteLength(pem) > MAX_CA_PEM_BYTES) {
    throw new BadInput(
      `The certificates are over ${MAX_CA_PEM_BYTES / 1024} KiB; send only the CA certificates you need.`,
    )
  }
  if (holdsPrivateKey(pem)) {
    throw new BadInput('This holds a private key, which must not be sent to anyone; send only the CA certificates.')
  }
  const certificates = readBlocks(pem, MAX_CA_CERTIFICATES, readCa)
  const [first] = certificates
  if (!first)
    throw new BadInput('There is no certificate here; send it in PEM form, starting `-----BEGIN CERTIFICATE-----`.')
  return {
    certificates: certificates.map(({ pem, fingerprint }) => ({ pem, fingerprint })),
    first: first.facts,
  }
}

/** What `read` makes of the text between each `BEGIN CERTIFICATE` and its `END`; throws when there are more than `max`. */
export function readBlocks<T>(pem: string, max: number, read: (base64: string, which: string) => T): T[] {
  const blocks = findBlocks(pem, max)
  return blocks.map((block, i) =>
    read(block, blocks.length === 1 ? 'The certificate' : `Certificate ${i + 1} of ${blocks.length}`),
  )
}

function findBlocks(pem: string, max: number): string[] {
  const blocks: string[] = []
  let start: number | undefined
  for (const { 0: mark, 1: edge, 2: label = '', index } of pem.matchAll(/-----(BEGIN|END) ([^\r\n-]{1,64})-----/g)) {
    if (label !== 'CERTIFICATE') {
      const name = /^[A-Z0-9 ]+$/.test(label) ? `\`${label}\`` : 'other'
      throw new BadInput(`Only \`CERTIFICATE\` blocks are accepted; remove the ${name} block.`)
    }
    if ((edge === 'BEGIN') !== (start === undefined)) throw unpairedLine()
    if (start === undefined) {
      if (blocks.length === max) throw new BadInput(`At most ${max} certificates are accepted.`)
      start = index + mark.length
    } else {
      blocks.push(pem.slice(start, index))
      start = undefined
    }
  }
  if (start !== undefined) throw unpairedLine()
  return blocks
}

function unpairedLine(): Error {
  return new BadInput('A certificate lacks its `BEGIN` or `END` line; copy the whole file again.')
}

function readCa(base64: string, which: string) {
  const read = readBlock(base64, which)
  if (!read.isCa) {
    throw new BadInput(`${which} is not a CA certificate (it lacks the basic constraint \`CA:TRUE\`).`, {
      reason: 'not_a_ca',
    })
  }
  return read
}

/** Reads one certificate from the base64 between its BEGIN and END lines; `which` begins the error message. */
export function readBlock(base64: string, which: string) {
  const unreadable = `${which} cannot be read; it may be cut short or changed.`
  const der = decodeBase64(base64)
  if (!der) throw new BadInput(`${unreadable} Between its BEGIN and END lines there must be base64 only.`)
  try {
    return readDer(der)
  } catch (cause) {
    throw new BadInput(unreadable, { cause })
  }
}

function readDer(der: Buffer) {
  // First, because this reader is stricter: OpenSSL ignores trailing bytes, and accepts PEM inside the base64.
  const fields = readCertificateFields(der)
  const certificate = new X509Certificate(der)
  if (!certificate.publicKey.asymmetricKeyType) throw new BadInput('the public key is of an unknown kind')
  return {
    der,
    certificate,
    pem: certificate.toString(),
    fingerprint: createHash('sha256').update(der).digest('hex'),
    isCa: fields.isCa,
    facts: {
      subject_common_name: fields.commonName,
      not_before: timestamp(certificate.validFromDate),
      not_after: timestamp(certificate.validToDate),
      key_usages: fields.keyUsages,
      extended_key_usages: fields.extendedKeyUsages,
    },
  }
}

function timestamp(date: Date): string {
  return date.toISOString().replace(/\.\d+Z$/, 'Z')
}
