/** Tells a client that its certificate is not trusted, with the alert `bad_certificate`, which Node itself does not send. */
import { createCipheriv, createHmac } from 'node:crypto'
import type { Server, TLSSocket } from 'node:tls'
import { alert, alertRecord } from './read-client-hello.ts'

/** The AEAD of each TLS 1.3 cipher suite (RFC 8446 §B.4), its key length, and the hash that derives its keys. */
const suites: Readonly<Record<string, { readonly cipher: string; readonly keyBytes: number; readonly hash: string }>> =
  {
    TLS_AES_128_GCM_SHA256: { cipher: 'aes-128-gcm', keyBytes: 16, hash: 'sha256' },
    TLS_AES_256_GCM_SHA384: { cipher: 'aes-256-gcm', keyBytes: 32, hash: 'sha384' },
    TLS_CHACHA20_POLY1305_SHA256: { cipher: 'chacha20-poly1305', keyBytes: 32, hash: 'sha256' },
  }

const IV_BYTES = 12
const TAG_BYTES = 16

/** Content types of records. */
const ALERT = 21
const APPLICATION_DATA = 23

const FATAL = 2

/** The second byte of the version in records; the first is 3. */
const minorVersions: Readonly<Record<string, number>> = { TLSv1: 1, 'TLSv1.1': 2, 'TLSv1.2': 3 }

/**
 * Sets up the server of an edge that asks for certificates; `write` sends bytes below a TLS socket. This adds an alert and
 * decides nothing: if a part of it is missing, the connection closes without the alert.
 */
export function alertBadCertificates(server: Server, write: (socket: TLSSocket, bytes: Buffer) => void): void {
  /** The secrets that encrypt the server's records, in TLS 1.3. */
  const secrets = new WeakMap<TLSSocket, Buffer>()
  // OpenSSL would send the alert, but Node makes OpenSSL accept every certificate, and closes the connection after the handshake
  // without an alert. The event of the last key comes in between: after the certificate was judged, and before anything is sent
  // under the keys of the connection. The alert is written then, bypassing OpenSSL, which sends nothing after it.
  server.on('keylog', (line: Buffer, socket: TLSSocket) => {
    const [label = '', , secret = ''] = line.toString('latin1').trimEnd().split(' ')
    if (label === 'SERVER_TRAFFIC_SECRET_0') secrets.set(socket, Buffer.from(secret, 'hex'))
    // The last key to be derived, after the client's certificate and the proof that the client owns it.
    if (label !== 'CLIENT_TRAFFIC_SECRET_0' && label !== 'CLIENT_RANDOM') return
    const own = secrets.get(socket)
    secrets.delete(socket)
    if (!isRefused(socket)) return
    const record = own ? sealedAlert(own, socket.getCipher()?.name ?? '') : plainAlert(socket.getProtocol() ?? '')
    if (record) write(socket, record)
  })
}

/** Asks OpenSSL as Node does internally; no public API has the verdict before the handshake is over. */
function isRefused(socket: TLSSocket): boolean {
  const { _handle: handle } = socket as unknown as { readonly _handle?: { verifyError?(): unknown } }
  return typeof handle?.verifyError === 'function' && Boolean(handle.verifyError())
}

/** Up to TLS 1.2 the server's records are unencrypted until the end of its handshake. */
function plainAlert(version: string): Buffer | undefined {
  const minor = minorVersions[version]
  return minor === undefined ? undefined : alertRecord(alert.badCertificate, minor)
}

/** RFC 8446 §5.2: the first record under a traffic secret. */
export function sealedAlert(secret: Buffer, suiteName: string): Buffer | undefined {
  const suite = suites[suiteName]
  if (!suite) return undefined
  const { cipher, keyBytes, hash } = suite
  const inner = Buffer.from([FATAL, alert.badCertificate, ALERT])
  const header = Buffer.from([APPLICATION_DATA, 3, 3, 0, inner.length + TAG_BYTES])
  const key = expandLabel(secret, 'key', keyBytes, hash)
  // The nonce is the IV combined with the record number, which is zero.
  const iv = expandLabel(secret, 'iv', IV_BYTES, hash)
  // Node's types identify AEAD ciphers by their names; all of these have a tag.
  const seal = createCipheriv(cipher as 'aes-128-gcm', key, iv, { authTagLength: TAG_BYTES })
  seal.setAAD(header)
  return Buffer.concat([header, seal.update(inner), seal.final(), seal.getAuthTag()])
}

/** RFC 8446 §7.1, HKDF-Expand-Label without context, for no more than one block of the hash. */
function expandLabel(secret: Buffer, label: string, bytes: number, hash: string): Buffer {
  const name = `tls13 ${label}`
  const info = Buffer.concat([Buffer.from([0, bytes, name.length]), Buffer.from(name), Buffer.from([0, 1])])
  return createHmac(hash, secret).update(info).digest().subarray(0, bytes)
}
