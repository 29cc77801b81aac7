/** OpenSSH certificates (openssh/PROTOCOL.certkeys): a public key and its permitted uses, signed by an authority. */
import { createHash, type KeyObject } from 'node:crypto'
import { BadInput } from '../shape/bad-input.ts'
import { blobType, keyOfBlob, sshKeyTypes } from './ssh-key-blob.ts'
import { isSignedSsh, publicBlobOf, signSsh } from './ssh-signature.ts'
import { SshWireReader, sshStrings, sshUint32, sshUint64 } from './ssh-wire.ts'

/** The longest certificate, in bytes: it must fit into one packet of any SSH program (RFC 4253 §6.1). */
const MAX_SSH_CERTIFICATE_BYTES = 30 * 1024

/** The most that OpenSSH accepts (SSHKEY_CERT_MAX_PRINCIPALS). */
export const MAX_SSH_PRINCIPALS = 256

/** The most critical options, and the most extensions, of one certificate. */
export const MAX_SSH_OPTIONS = 64

const SUFFIX = '-cert-v01@openssh.com'

const kinds = { user: 1, host: 2 } as const

/** What an authority certifies about a key. */
export interface SshCertificateFacts {
  readonly kind: keyof typeof kinds
  readonly serial: bigint
  /** A name for the certificate, which SSH servers write to their logs. */
  readonly keyId: string
  /** The users or hosts that it is for; an empty list means all. */
  readonly principals: readonly string[]
  /** In seconds since 1970; valid from `validAfter` on, until just before `validBefore`. */
  readonly validAfter: bigint
  readonly validBefore: bigint
  /** A server that does not know one of these must refuse the certificate. A flag has an empty value. */
  readonly criticalOptions: Readonly<Record<string, string>>
  readonly extensions: Readonly<Record<string, string>>
}

export interface SshCertificate extends SshCertificateFacts {
  /** The certified public key, in wire form. */
  readonly keyBlob: Buffer
  /** The public key of the authority that signed this; the caller must check whether to trust it. */
  readonly authorityBlob: Buffer
}

/** Whether `type` names a certificate, not a plain key. */
export function isSshCertificateType(type: string): boolean {
  return type.endsWith(SUFFIX)
}

/** The type of the plain key, or of the signature, that belongs to a certificate type. */
export function plainType(type: string): string {
  return isSshCertificateType(type) ? type.slice(0, -SUFFIX.length) : type
}

/** The hash of a certificate's wire form, by which it is looked up. */
export function sshCertificateDigest(blob: Buffer): string {
  return createHash('sha256').update(blob).digest('base64url')
}

/**
 * Makes and signs a certificate in wire form. `nonce` must be random, so that the signed bytes cannot be predicted.
 *
 * Written by hand: `ssh2` neither reads nor signs certificates, and libraries that do read them leniently.
 */
export async function makeSshCertificate(
  keyBlob: Buffer,
  facts: SshCertificateFacts,
  { authority, nonce }: { readonly authority: KeyObject; readonly nonce: Buffer },
): Promise<Buffer> {
  const reader = new SshWireReader(keyBlob, damagedInput)
  const type = reader.string().toString('latin1')
  const authorityBlob = publicBlobOf(authority)
  const signed = Buffer.concat([
    sshStrings(`${type}${SUFFIX}`, nonce),
    // The parts of the key, which follow its type.
    reader.rest(),
    sshUint64(facts.serial),
    sshUint32(kinds[facts.kind]),
    sshStrings(facts.keyId, sshStrings(...facts.principals)),
    sshUint64(facts.validAfter),
    sshUint64(facts.validBefore),
    // The empty string after the extensions is a reserved field.
    sshStrings(writeOptions(facts.criticalOptions), writeOptions(facts.extensions), '', authorityBlob),
  ])
  const blob = Buffer.concat([signed, sshStrings(await signSsh(authority, authorityBlob, signed))])
  if (blob.length > MAX_SSH_CERTIFICATE_BYTES) {
    throw new BadInput(
      `The certificate would have ${blob.length} bytes, and SSH programs read at most ${MAX_SSH_CERTIFICATE_BYTES}; give it fewer or shorter principals, options or extensions.`,
    )
  }
  return blob
}

/** Reads a certificate and checks its signature; the caller must check whether to trust its authority. */
export function readSshCertificate(blob: Buffer): SshCertificate {
  if (blob.length > MAX_SSH_CERTIFICATE_BYTES) {
    throw new BadInput(`The certificate is over ${MAX_SSH_CERTIFICATE_BYTES} bytes.`)
  }
  const reader = new SshWireReader(blob, damagedInput)
  const type = plainKeyType(reader.string().toString('latin1'))
  reader.string() // the nonce
  const keyBlob = readKeyBlob(reader, type)
  const serial = reader.uint64()
  const kind = reader.uint32()
  const keyId = reader.text()
  const principals = readPrincipals(reader.string())
  const [validAfter, validBefore] = [reader.uint64(), reader.uint64()]
  const [criticalOptions, extensions] = [readOptions(reader.string()), readOptions(reader.string())]
  reader.string() // a reserved field, to be ignored
  const authorityBlob = reader.string()
  const signed = blob.subarray(0, blob.length - reader.left)
  const signature = reader.string()
  reader.end()

  keyOfBlob(keyBlob)
  const name = kind === kinds.user ? 'user' : kind === kinds.host ? 'host' : undefined
  if (name === undefined) throw new BadInput('The certificate is neither for a user nor for a host.')
  // The format has no chains: an authority must be a plain key, not a certificate.
  if (!sshKeyTypes.includes(blobType(authorityBlob))) throw damagedInput()
  if (!isSignedSsh(authorityBlob, signed, signature)) {
    throw new BadInput('The signature of the certificate was not made by its authority.')
  }
  return {
    kind: name,
    serial,
    keyId,
    principals,
    validAfter,
    validBefore,
    criticalOptions,
    extensions,
    keyBlob,
    authorityBlob,
  }
}

function plainKeyType(type: string): string {
  const plain = plainType(type)
  if (plain === type || !sshKeyTypes.includes(plain))
    throw new BadInput('This is not a certificate of a supported type.')
  return plain
}

/** Reads the parts of the certified key, two for RSA and ECDSA and one for Ed25519, as a plain key. */
function readKeyBlob(reader: SshWireReader, type: string): Buffer {
  const parts = [reader.string()]
  if (type !== 'ssh-ed25519') parts.push(reader.string())
  return sshStrings(type, ...parts)
}

function readPrincipals(bytes: Buffer): string[] {
  const reader = new SshWireReader(bytes, damagedInput)
  const principals: string[] = []
  while (!reader.isAtEnd) {
    if (principals.length === MAX_SSH_PRINCIPALS) throw new BadInput('The certificate has too many principals.')
    principals.push(reader.text())
  }
  return principals
}

/** Sorted by name. A value is a string within a string; a flag is an empty one. */
function writeOptions(options: Readonly<Record<string, string>>): Buffer {
  const sorted = Object.entries(options).sort(([a], [b]) => Buffer.compare(Buffer.from(a), Buffer.from(b)))
  return sshStrings(...sorted.flatMap(([name, value]) => [name, value === '' ? '' : sshStrings(value)]))
}

function readOptions(bytes: Buffer): Record<string, string> {
  const reader = new SshWireReader(bytes, damagedInput)
  const options: Record<string, string> = Object.create(null)
  let last: Buffer | undefined
  for (let count = 0; !reader.isAtEnd; count++) {
    if (count === MAX_SSH_OPTIONS) throw new BadInput('The certificate has too many options.')
    const name = reader.text()
    const value = new SshWireReader(reader.string(), damagedInput)
    const position = Buffer.from(name)
    if (last && Buffer.compare(last, position) >= 0) throw damagedInput()
    last = position
    options[name] = value.isAtEnd ? '' : value.text()
    value.end()
  }
  return options
}

function damagedInput(): Error {
  return new BadInput('The certificate is damaged: its parts do not fit together.')
}
