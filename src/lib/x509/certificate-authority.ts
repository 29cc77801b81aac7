/** Our own certificate authority, created once: issues certificates for servers and for the members of a cluster. */
import { createPrivateKey, generateKeyPairSync, type KeyObject, randomBytes, X509Certificate } from 'node:crypto'
import type { Clock } from '../clock.ts'
import { BadInput } from '../shape/bad-input.ts'
import { certificateParts, readCertificateFields } from './certificate-fields.ts'
import { derSequence } from './der-writer.ts'
import {
  type CertificateContents,
  distinguishedName,
  extensions,
  keyId,
  keyUsageBit,
  MAX_COMMON_NAME,
  ownKeyId,
  writeCertificate,
} from './x509-writer.ts'

interface AuthorityOptions {
  readonly now?: Clock
  readonly random?: (bytes: number) => Buffer
}

export interface IssuedCertificate {
  /** In PEM, followed by any intermediate certificate that clients need. */
  readonly cert: string
  readonly key: string
  /** In milliseconds since 1970. */
  readonly notAfter: number
}

/** Certificates are valid from one hour in the past, for clients with slow clocks. */
const SKEW_MS = 3_600_000

const DAY_MS = 86_400_000

/** The same for members, which are often machines whose clocks nobody checks. */
const MEMBER_SKEW_MS = DAY_MS

const AUTHORITY_DAYS = 3650

/** Browsers refuse certificates that are valid for longer, from any issuer. */
const LEAF_DAYS = 397

/** Bytes of a serial number: 128 random bits. */
const SERIAL_BYTES = 16

/** Creates the certificate and key of a new authority, both in PEM. */
export function createAuthority({ now = Date.now, random = randomBytes }: AuthorityOptions = {}): {
  certPem: string
  keyPem: string
} {
  const { publicKey, privateKey } = newKeyPair()
  // Each authority has a unique name: a client that trusts two with the same name may try only the wrong one.
  const name = distinguishedName([
    ['organization', 'Postern'],
    ['commonName', `Postern CA ${random(4).toString('hex')}`],
  ])
  const notBefore = now() - SKEW_MS
  const certPem = writeCertificate(
    {
      serialNumber: serialNumber(random),
      issuer: name,
      subject: name,
      notBefore,
      notAfter: notBefore + AUTHORITY_DAYS * DAY_MS,
      publicKey,
      extensions: [
        extensions.basicConstraints({ isCa: true }),
        extensions.keyUsage(keyUsageBit.certSign, keyUsageBit.crlSign),
        extensions.subjectKeyId(keyId(publicKey)),
      ],
    },
    privateKey,
  )
  return { certPem, keyPem: toPem(privateKey) }
}

export class Authority {
  readonly certPem: string
  /** When the authority and all certificates it issued expire, in milliseconds since 1970. */
  readonly notAfter: number
  readonly #key: KeyObject
  readonly #name: Buffer
  readonly #keyId: Buffer | undefined
  readonly #chain: string
  readonly #now: Clock
  readonly #random: (bytes: number) => Buffer

  /** Throws `BadInput` when the two do not make a usable authority; the message never quotes the key. */
  constructor(certPem: string, keyPem: string, { now = Date.now, random = randomBytes }: AuthorityOptions = {}) {
    const { certificate, key } = readPair(certPem, keyPem)
    const { subject, issuer, extensions: own } = certificateParts(certificate.raw)
    this.certPem = certificate.toString()
    this.notAfter = certificate.validToDate.getTime()
    this.#key = key
    this.#name = derSequence(subject.body)
    this.#keyId = ownKeyId(own)
    // Clients have the root that they trust; an intermediate authority has to be sent along.
    this.#chain = subject.body.equals(issuer.body) ? '' : this.certPem
    this.#now = now
    this.#random = random
  }

  /** Makes a key and a server certificate for these names and addresses; a name may begin with `*.`. */
  issue(names: readonly string[]): IssuedCertificate {
    const notBefore = this.#now() - SKEW_MS
    const commonName = names.find((name) => name.length <= MAX_COMMON_NAME)
    return this.#issue({
      subject: distinguishedName(commonName === undefined ? [] : [['commonName', commonName]]),
      notBefore,
      notAfter: Math.min(notBefore + LEAF_DAYS * DAY_MS, this.notAfter),
      extensions: [
        extensions.extendedKeyUsage('serverAuth'),
        extensions.subjectAltName(names, { isCritical: commonName === undefined }),
      ],
    })
  }

  /**
   * Makes a key and a certificate for either end of a connection between members of a cluster. It names no host, only
   * `uri`, which `issue` never writes, so that neither can be mistaken for the other. By default it is valid for as
   * long as the authority: its key never leaves the process, so it need not be renewed.
   */
  issueMember(uri: string, { notAfter = this.notAfter }: { readonly notAfter?: number } = {}): IssuedCertificate {
    return this.#issue({
      subject: distinguishedName([]),
      notBefore: this.#now() - MEMBER_SKEW_MS,
      notAfter: Math.min(notAfter, this.notAfter),
      extensions: [extensions.extendedKeyUsage('serverAuth', 'clientAuth'), extensions.subjectUri(uri)],
    })
  }

  #issue({ extensions: own, notAfter, ...rest }: LeafContents): IssuedCertificate {
    const { publicKey, privateKey } = newKeyPair()
    const leaf = writeCertificate(
      {
        ...rest,
        notAfter,
        serialNumber: serialNumber(this.#random),
        issuer: this.#name,
        publicKey,
        extensions: [
          extensions.basicConstraints({ isCa: false }),
          extensions.keyUsage(keyUsageBit.digitalSignature),
          ...own,
          extensions.subjectKeyId(keyId(publicKey)),
          ...(this.#keyId ? [extensions.authorityKeyId(this.#keyId)] : []),
        ],
      },
      this.#key,
    )
    // Certificates count whole seconds.
    return { cert: leaf + this.#chain, key: toPem(privateKey), notAfter: Math.floor(notAfter / 1000) * 1000 }
  }
}

/** The contents that differ between the kinds of certificate. */
type LeafContents = Pick<CertificateContents, 'subject' | 'notBefore' | 'notAfter' | 'extensions'>

function readPair(certPem: string, keyPem: string): { certificate: X509Certificate; key: KeyObject } {
  const certificate = read('certificate', () => new X509Certificate(certPem))
  const key = read('key', () => createPrivateKey(keyPem))
  if (!readCertificateFields(certificate.raw).isCa) {
    throw new BadInput('This is not the certificate of an authority: it lacks the basic constraint `CA:TRUE`.')
  }
  if (key.asymmetricKeyType !== 'ec') throw new BadInput('The key of the authority must be an EC key.')
  if (!certificate.checkPrivateKey(key)) throw new BadInput('The key does not belong to the certificate.')
  return { certificate, key }
}

function read<T>(what: string, parse: () => T): T {
  try {
    return parse()
  } catch {
    // Without the cause: parsers may quote what they read.
    throw new BadInput(`The ${what} of the authority cannot be read; it must be in PEM form.`)
  }
}

function newKeyPair(): { publicKey: Buffer; privateKey: KeyObject } {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  return { publicKey: publicKey.export({ type: 'spki', format: 'der' }), privateKey }
}

function serialNumber(random: (bytes: number) => Buffer): Buffer {
  const bytes = random(SERIAL_BYTES)
  // RFC 5280 §4.1.2.2: a serial number is positive.
  return bytes.every((byte) => byte === 0) ? Buffer.from([1]) : bytes
}

function toPem(key: KeyObject): string {
  return key.export({ type: 'pkcs8', format: 'pem' }).toString()
}
