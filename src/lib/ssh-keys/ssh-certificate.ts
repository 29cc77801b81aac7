/**
 * OpenSSH certificates (openssh/PROTOCOL.certkeys): a public key with who may use it, signed by an authority.
 *
 * Written by hand: of the libraries kept here `ssh2` neither reads nor signs them, and those that do read them leniently.
 */
import { createHash, type KeyObject } from 'node:crypto'
import { BadInput } from '../shape/bad-input.ts'
import { blobType, keyOfBlob, sshKeyTypes } from './ssh-key-blob.ts'
import { isSignedSsh, publicBlobOf, signSsh } from './ssh-signature.ts'
import { SshWireReader, sshStrings, sshUint32, sshUint64 } from './ssh-wire.ts'

/** How many bytes a certificate may have: it must fit into one packet of any SSH program (RFC 4253 §6.1). */
export const MAX_SSH_CERTIFICATE_BYTES = 30 * 1024

/** OpenSSH reads no more (SSHKEY_CERT_MAX_PRINCIPALS). */
export const MAX_SSH_PRINCIPALS = 256

/** Critical options, and extensions, of one certificate. */
export const MAX_SSH_OPTIONS = 64

const SUFFIX = '-cert-v01@openssh.com'

const kinds = { user: 1, host: 2 } as const

/** What an authority says of a key. */
export interface SshCertificateFacts {
  readonly kind: keyof typeof kinds
  readonly serial: bigint
  /** What logs call it. */
  readonly keyId: string
  /** Users, or hosts, that it is for; none means all of them. */
  readonly principals: readonly string[]
  /** In seconds since 1970; valid from the first on, and before the second. */
  readonly validAfter: bigint
  readonly validBefore: bigint
  /** What whoever does not know an option must refuse; the empty text is a flag. */
  readonly criticalOptions: Readonly<Record<string, string>>
  readonly extensions: Readonly<Record<string, string>>
}

export interface SshCertificate extends SshCertificateFacts {
  /** The plain public key that it is for, in the wire form. */
  readonly keyBlob: Buffer
  /** The public key of the authority; nothing is known of it here but that it signed this. */
  readonly authorityBlob: Buffer
}

/** Whether this is the name of a certificate's type. */
export function isSshCertificateType(type: string): boolean {
  return type.endsWith(SUFFIX)
}

/** The type of the plain key, or the signature, of a certificate's type. */
export function plainType(type: string): string {
  return isSshCertificateType(type) ? type.slice(0, -SUFFIX.length) : type
}

/** What a certificate is found by: the hash of its wire form. */
export function sshCertificateDigest(blob: Buffer): string {
  return createHash('sha256').update(blob).digest('base64url')
}

/** Signs `facts` of a public key; gives the wire form. `nonce` are random bytes, so that no signature can be prepared for. */
export async function makeSshCertificate(
  keyBlob: Buffer,
  facts: SshCertificateFacts,
  { authority, nonce }: { readonly authority: KeyObject; readonly nonce: Buffer },
): Promise<Buffer> {
  const reader = new SshWireReader(keyBlob, damaged)
  const type = reader.string().toString('latin1')
  const authorityBlob = publicBlobOf(authority)
  const signed = Buffer.concat([
    sshStrings(`${type}${SUFFIX}`, nonce),
    // The parts of the key as they stand behind its type.
    reader.rest(),
    sshUint64(facts.serial),
    sshUint32(kinds[facts.kind]),
    sshStrings(facts.keyId, sshStrings(...facts.principals)),
    sshUint64(facts.validAfter),
    sshUint64(facts.validBefore),
    // Behind the options an empty text, which the format keeps for later.
    sshStrings(writeOptions(facts.criticalOptions), writeOptions(facts.extensions), '', authorityBlob),
  ])
  const blob = Buffer.concat([signed, sshStrings(await signSsh(authority, authorityBlob, signed))])
  if (blob.length > MAX_SSH_CERTIFICATE_BYTES) {
    throw new BadInput(
      `The certificate would have ${blob.length} bytes, and at most ${MAX_SSH_CERTIFICATE_BYTES} fit into what SSH programs read; give it fewer or shorter principals, options or extensions.`,
    )
  }
  return blob
}

/** Reads a certificate and checks that its authority signed it; whether that one is trusted is for others to say. */
export function readSshCertificate(blob: Buffer): SshCertificate {
  if (blob.length > MAX_SSH_CERTIFICATE_BYTES) {
    throw new BadInput(`The certificate is over ${MAX_SSH_CERTIFICATE_BYTES} bytes.`)
  }
  const reader = new SshWireReader(blob, damaged)
  const type = plainKeyType(reader.string().toString('latin1'))
  reader.string() // the nonce
  const keyBlob = readKeyBlob(reader, type)
  const serial = reader.uint64()
  const kind = reader.uint32()
  const keyId = reader.text()
  const principals = readPrincipals(reader.string())
  const [validAfter, validBefore] = [reader.uint64(), reader.uint64()]
  const [criticalOptions, extensions] = [readOptions(reader.string()), readOptions(reader.string())]
  reader.string() // kept for later by the format, and ignored as it says
  const authorityBlob = reader.string()
  const signed = blob.subarray(0, blob.length - reader.left)
  const signature = reader.string()
  reader.end()

  keyOfBlob(keyBlob)
  const name = kind === kinds.user ? 'user' : kind === kinds.host ? 'host' : undefined
  if (name === undefined) throw new BadInput('The certificate is neither for a user nor for a host.')
  // An authority that is itself a certificate would be a chain, which the format does not have.
  if (!sshKeyTypes.includes(blobType(authorityBlob))) throw damaged()
  if (!isSignedSsh(authorityBlob, signed, signature)) {
    throw new BadInput('The signature of the certificate is not one of its authority.')
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
    throw new BadInput('This is no certificate of a kind that is read.')
  return plain
}

/** The parts of the certified key stand between those of the certificate; RSA and ECDSA have two, Ed25519 one. */
function readKeyBlob(reader: SshWireReader, type: string): Buffer {
  const parts = [reader.string()]
  if (type !== 'ssh-ed25519') parts.push(reader.string())
  return sshStrings(type, ...parts)
}

function readPrincipals(bytes: Buffer): string[] {
  const reader = new SshWireReader(bytes, damaged)
  const principals: string[] = []
  while (!reader.isAtEnd) {
    if (principals.length === MAX_SSH_PRINCIPALS) throw new BadInput('The certificate has too many principals.')
    principals.push(reader.text())
  }
  return principals
}

/** By name, each once; a value is wrapped a second time, and a flag is empty. */
function writeOptions(options: Readonly<Record<string, string>>): Buffer {
  const sorted = Object.entries(options).sort(([a], [b]) => Buffer.compare(Buffer.from(a), Buffer.from(b)))
  return sshStrings(...sorted.flatMap(([name, value]) => [name, value === '' ? '' : sshStrings(value)]))
}

function readOptions(bytes: Buffer): Record<string, string> {
  const reader = new SshWireReader(bytes, damaged)
  const options: Record<string, string> = Object.create(null)
  let last: Buffer | undefined
  for (let count = 0; !reader.isAtEnd; count++) {
    if (count === MAX_SSH_OPTIONS) throw new BadInput('The certificate has too many options.')
    const name = reader.text()
    const value = new SshWireReader(reader.string(), damaged)
    const place = Buffer.from(name)
    if (last && Buffer.compare(last, place) >= 0) throw damaged()
    last = place
    options[name] = value.isAtEnd ? '' : value.text()
    value.end()
  }
  return options
}

function damaged(): Error {
  return new BadInput('The certificate is damaged: its parts do not fit together.')
}
