import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { createHash, createPublicKey, generateKeyPairSync, type KeyObject } from 'node:crypto'
import { test } from 'node:test'
import fc from 'fast-check'
import { MAX_PUBLIC_KEY_BYTES, readSshPublicKey } from './ssh-public-key.ts'

const keys: Record<string, KeyObject> = {
  'ssh-ed25519': generateKeyPairSync('ed25519').publicKey,
  'ecdsa-sha2-nistp256': generateKeyPairSync('ec', { namedCurve: 'P-256' }).publicKey,
  'ecdsa-sha2-nistp384': generateKeyPairSync('ec', { namedCurve: 'P-384' }).publicKey,
  'ecdsa-sha2-nistp521': generateKeyPairSync('ec', { namedCurve: 'P-521' }).publicKey,
  'ssh-rsa': generateKeyPairSync('rsa', { modulusLength: 2048 }).publicKey,
}
const ed25519 = blobOf('ssh-ed25519', keys['ssh-ed25519'])
const line = `ssh-ed25519 ${ed25519.toString('base64')}`

/** Made once with OpenSSH 9: `ssh-keygen -l`, and its RFC 4716 and PKCS8 exports. */
const vectors: [text: string, fingerprint: string][] = [
  [
    'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ07ahZOixzIenftd/rOvZucjf8xuHiulqTqYnVhp5df test',
    'SHA256:RbPxS+fdbpsf3tEJgiy+13rQ6TmybE4E3fwc7Qrn1cI',
  ],
  [
    `---- BEGIN SSH2 PUBLIC KEY ----
Comment: "256-bit ED25519, converted from OpenSSH"
AAAAC3NzaC1lZDI1NTE5AAAAIJ07ahZOixzIenftd/rOvZucjf8xuHiulqTqYnVhp5df
---- END SSH2 PUBLIC KEY ----`,
    'SHA256:RbPxS+fdbpsf3tEJgiy+13rQ6TmybE4E3fwc7Qrn1cI',
  ],
  [
    `-----BEGIN PUBLIC KEY-----
MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEFIA3NqfYx9/k0H2saN4Bv9qnJap/
enJAJ00OsRExrDRXYYO+dHxT2FQOrDAqAkGRXL42ddwiYFF6hC5RYKUh1Q==
-----END PUBLIC KEY-----`,
    'SHA256:5P2au+ySNBfEDa846EzTmjG+UH1y/Uu9MvqYaMbT4ZE',
  ],
]

for (const [type, key] of Object.entries(keys)) {
  test(`reads ${type} in every form, with one fingerprint`, () => {
    const blob = blobOf(type, key)
    const base64 = blob.toString('base64')
    const hash = createHash('sha256').update(blob).digest('base64').replace('=', '')
    const wrapped = base64.replace(/(.{70})/g, '$1\n')
    const forms = {
      line: `${type} ${base64}`,
      'line with a comment': `${type} ${base64} me@example.com, ssh key of "2024"`,
      'line with white space around': `\r\n ${type}  \t${base64} me \r\n`,
      'RFC 4716': rfc4716(wrapped),
      'RFC 4716 with headers': rfc4716(`Subject: me\nComment: "a long \\\ncomment: with \\\nthree lines"\n${wrapped}`),
      'RFC 4716 with CRLF': rfc4716(wrapped).replaceAll('\n', '\r\n'),
      SPKI: key.export({ type: 'spki', format: 'pem' }).toString(),
      ...(type === 'ssh-rsa' && { 'PKCS#1': key.export({ type: 'pkcs1', format: 'pem' }).toString() }),
    }
    for (const [form, text] of Object.entries(forms)) {
      assert.deepEqual(readSshPublicKey(text), { type, fingerprint: `SHA256:${hash}`, blob }, form)
    }
  })

  test(`gives ${type} the same fingerprint as ssh-keygen`, (t) => {
    const text = `${type} ${blobOf(type, key).toString('base64')} comment\n`
    const { error, stdout } = spawnSync('ssh-keygen', ['-l', '-f', '-'], { input: text, encoding: 'utf8' })
    if (error) return t.skip('ssh-keygen is not installed')
    assert.equal(stdout.split(' ')[1], readSshPublicKey(text).fingerprint)
  })
}

test('gives the fingerprints that OpenSSH printed for these keys', () => {
  for (const [text, fingerprint] of vectors) assert.equal(readSshPublicKey(text).fingerprint, fingerprint)
})

test('accepts RSA keys of 2048 to 8192 bits', () => {
  // Not real keys, but numbers of the right size: making an 8192-bit key takes seconds.
  assert.equal(readSshPublicKey(rsaLine(2048)).type, 'ssh-rsa')
  assert.equal(readSshPublicKey(rsaLine(8192)).type, 'ssh-rsa')
  refuses(rsaLine(2047), /has 2047 bits, which is too weak; at least 2048/)
  refuses(rsaLine(1024), /has 1024 bits, which is too weak/)
  refuses(rsaLine(8193), /has 8193 bits; at most 8192/)
  const { publicKey } = generateKeyPairSync('rsa', { modulusLength: 1024 })
  refuses(publicKey.export({ type: 'spki', format: 'pem' }).toString(), /has 1024 bits/)
  refuses(publicKey.export({ type: 'pkcs1', format: 'pem' }).toString(), /has 1024 bits/)
})

test('refuses a private key in any form and never repeats it', () => {
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
  const pkcs8 = privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()
  const secret = pkcs8.split('\n')[3] ?? ''
  const forms = [
    pkcs8,
    privateKey.export({ type: 'pkcs1', format: 'pem' }).toString(),
    privateKey.export({ type: 'pkcs8', format: 'pem', cipher: 'aes-256-cbc', passphrase: 'x' }).toString(),
    `-----BEGIN OPENSSH PRIVATE KEY-----\n${secret}\n-----END OPENSSH PRIVATE KEY-----\n`,
    `---- BEGIN SSH2 ENCRYPTED PRIVATE KEY ----\n${secret}\n---- END SSH2 ENCRYPTED PRIVATE KEY ----\n`,
    `PuTTY-User-Key-File-3: ssh-ed25519\nEncryption: none\n${secret}\n`,
    `${line}\n${pkcs8}`,
    `b3BlbnNzaC1rZXktdjEAAAAA${secret}`,
  ]
  for (const text of forms) {
    const error = refuses(text, /private key, which must not be sent to anyone/)
    assert.ok(secret.length > 20 && !`${error.stack}`.includes(secret))
  }
  const disguised = pkcs8.replaceAll('PRIVATE', 'PUBLIC')
  assert.ok(!`${refuses(disguised, /does not hold a public key/).stack}`.includes(secret))
})

const base64 = (...parts: (string | Buffer)[]) => wire(...parts).toString('base64')
const ecBlob = blobOf('ecdsa-sha2-nistp256', keys['ecdsa-sha2-nistp256'])
const ecPoint = ecBlob.subarray(-65)
const offCurve = Buffer.concat([Buffer.of(4), Buffer.alloc(63), Buffer.of(1)])
const evenModulus = Buffer.concat([Buffer.of(0, 0x80), Buffer.alloc(255)])
const modulus = Buffer.concat([evenModulus.subarray(0, -1), Buffer.of(1)])
const exponent = Buffer.of(1, 0, 1)
const pem = (label: string, der: Buffer) =>
  `-----BEGIN ${label}-----\n${der.toString('base64')}\n-----END ${label}-----\n`
const spki = keys['ssh-ed25519']?.export({ type: 'spki', format: 'der' }) ?? Buffer.alloc(0)
const pemOf = (key: KeyObject) => key.export({ type: 'spki', format: 'pem' }).toString()

const types = /Keys of this type are not accepted; the types are `ssh-ed25519`/
const damaged = /is damaged: its parts do not fit together/
const cutShort = /is cut short or changed/
const unknown = /This is not a public key/
const several = /more than one public key/

const refused: [what: string, text: string, message: RegExp][] = [
  ['nothing', ' \n ', /is empty/],
  ['text over 16 KiB', `${line} ${'c'.repeat(MAX_PUBLIC_KEY_BYTES)}`, /over 16 KiB/],
  ['prose', 'please let me in', unknown],
  ['two lines with keys', `${line}\n${line} b\n`, several],
  ['two keys in one line', `${line} ${line}`, several],
  ['two PEM blocks', pem('PUBLIC KEY', spki).repeat(2), several],
  ['two RFC 4716 blocks', `${rfc4716(ed25519.toString('base64'))}\n`.repeat(2), several],
  ['a wrapped line', `${line.slice(0, 40)}\n${line.slice(40)}`, /has line breaks in it/],
  ['an option in front', `no-pty ${line}`, /has options in front/],
  ['options in front', `command="echo hi",from="10.0.0.0/8" ${line} me`, /has options in front/],
  ['base64 alone', ed25519.toString('base64'), /lacks its type in front/],
  ['a type alone', 'ssh-ed25519', cutShort],
  ['half a key', line.slice(0, -9), cutShort],
  ['base64 with a stray character', line.replace('AAAAC3', 'AAAA*C3'), cutShort],
  ['a DSA line', `ssh-dss ${base64('ssh-dss', exponent, exponent, exponent, exponent)}`, /DSA keys are too weak/],
  ['a DSA RFC 4716 file', rfc4716(base64('ssh-dss', exponent, exponent, exponent, exponent)), /DSA keys are too weak/],
  ['a DSA PEM', pemOf(generateKeyPairSync('dsa', { modulusLength: 1024, divisorLength: 160 }).publicKey), /DSA keys/],
  ['a FIDO Ed25519 key', `sk-ssh-ed25519@openssh.com ${base64('sk-ssh-ed25519@openssh.com')}`, /security key/],
  ['a FIDO ECDSA key', `sk-ecdsa-sha2-nistp256@openssh.com ${base64('x')}`, /security key/],
  ['an SSH certificate', `ssh-ed25519-cert-v01@openssh.com ${base64('x')}`, /is an SSH certificate/],
  ['a signature name', `rsa-sha2-512 ${base64('rsa-sha2-512', exponent, modulus)}`, types],
  ['an X25519 PEM', pemOf(generateKeyPairSync('x25519').publicKey), types],
  ['an Ed448 PEM', pemOf(generateKeyPairSync('ed448').publicKey), types],
  ['an RSA-PSS PEM', pemOf(generateKeyPairSync('rsa-pss', { modulusLength: 2048 }).publicKey), types],
  ['another curve', pemOf(generateKeyPairSync('ec', { namedCurve: 'secp256k1' }).publicKey), types],
  ['an X.509 certificate', pem('CERTIFICATE', spki), /is a certificate, not a public key/],
  ['another PEM block', pem('X509 CRL', spki), unknown],
  ['a PEM block whose ends differ', pem('PUBLIC KEY', spki).replace('END PUBLIC', 'END RSA PUBLIC'), cutShort],
  ['a PEM block without an end', pem('PUBLIC KEY', spki).slice(0, -5), cutShort],
  ['text before a PEM block', `my key\n${pem('PUBLIC KEY', spki)}`, /text before the `BEGIN` line/],
  ['DER with bytes behind', pem('PUBLIC KEY', Buffer.concat([spki, Buffer.of(0)])), /does not hold a public key/],
  ['SPKI under a PKCS#1 label', pem('RSA PUBLIC KEY', spki), /does not hold a public key/],
  ['RFC 4716 without an end', rfc4716(ed25519.toString('base64')).slice(0, -30), cutShort],
  ['RFC 4716 of headers alone', rfc4716('Comment: a\\'), cutShort],
  ['two types', `ssh-rsa ${ed25519.toString('base64')}`, /says `ssh-rsa` in front but holds a key of another type/],
  ['bytes behind the key', `ssh-ed25519 ${Buffer.concat([ed25519, Buffer.of(0)]).toString('base64')}`, damaged],
  ['a short Ed25519 key', `ssh-ed25519 ${base64('ssh-ed25519', Buffer.alloc(31))}`, damaged],
  ['a length past the end', `ssh-ed25519 ${ed25519.subarray(0, 48).toString('base64')}`, damaged],
  ['a blob of three bytes', 'ssh-ed25519 AAAA', damaged],
  ['the wrong curve name', `ecdsa-sha2-nistp256 ${base64('ecdsa-sha2-nistp256', 'nistp384', ecPoint)}`, damaged],
  ['a point of another curve', `ecdsa-sha2-nistp384 ${base64('ecdsa-sha2-nistp384', 'nistp384', ecPoint)}`, damaged],
  [
    'a compressed point',
    `ecdsa-sha2-nistp256 ${base64('ecdsa-sha2-nistp256', 'nistp256', Buffer.alloc(33, 2))}`,
    damaged,
  ],
  [
    'a point off its curve',
    `ecdsa-sha2-nistp256 ${base64('ecdsa-sha2-nistp256', 'nistp256', offCurve)}`,
    /not a valid key/,
  ],
  ['a negative modulus', `ssh-rsa ${base64('ssh-rsa', exponent, modulus.subarray(1))}`, damaged],
  [
    'a modulus with two zero bytes',
    `ssh-rsa ${base64('ssh-rsa', exponent, Buffer.concat([Buffer.of(0), modulus]))}`,
    damaged,
  ],
  ['an even modulus', `ssh-rsa ${base64('ssh-rsa', exponent, evenModulus)}`, /not a valid RSA key/],
  ['the exponent 1', `ssh-rsa ${base64('ssh-rsa', Buffer.of(1), modulus)}`, /not a valid RSA key/],
  ['a huge exponent', `ssh-rsa ${base64('ssh-rsa', modulus, modulus)}`, /not a valid RSA key/],
]

for (const [what, text, message] of refused) {
  test(`refuses ${what}`, () => {
    refuses(text, message)
  })
}

test('any mutation of a valid key quickly gives a key or an Error with a message', () => {
  const rsa = keys['ssh-rsa'] ?? createPublicKey('')
  const valid = [
    `${line} me@example.com`,
    `ecdsa-sha2-nistp256 ${ecBlob.toString('base64')} me`,
    rfc4716(`Comment: me\n${blobOf('ssh-rsa', rsa).toString('base64')}`),
    pemOf(rsa),
    rsa.export({ type: 'pkcs1', format: 'pem' }).toString(),
  ]
  const insert = fc.oneof(
    fc.string({ unit: 'binary', maxLength: 8 }),
    fc.constantFrom('\n', '-----', '---- ', '\\', ':', ' ssh-rsa AAAA', '=', 'A'.repeat(1000), '-'.repeat(9000)),
  )
  const edit = fc.record({ at: fc.nat(2000), remove: fc.nat(40), insert })
  fc.assert(
    fc.property(fc.constantFrom(...valid), fc.array(edit, { minLength: 1, maxLength: 4 }), (text, edits) => {
      const mutated = edits.reduce((before, { at, remove, insert }) => {
        const from = at % (before.length + 1)
        return before.slice(0, from) + insert + before.slice(from + remove)
      }, text)
      try {
        const { fingerprint } = readSshPublicKey(mutated)
        assert.match(fingerprint, /^SHA256:[A-Za-z0-9+/]{43}$/)
      } catch (error) {
        assert.ok(error instanceof Error && error.name === 'BadInput' && error.message.length > 10, String(error))
      }
    }),
    // Far longer than the slowest run: exceeded only when some input hangs the reader.
    { numRuns: 1000, interruptAfterTimeLimit: 30_000, markInterruptAsFailure: true },
  )
})

function refuses(text: string, message: RegExp): Error {
  try {
    readSshPublicKey(text)
  } catch (error) {
    assert.ok(error instanceof Error && error.name === 'BadInput')
    assert.match(error.message, message)
    return error
  }
  return assert.fail(`expected a refusal that matches ${message}`)
}

/** An independent encoder of the wire form, so that the code under test does not check itself. */
function blobOf(type: string, key: KeyObject | undefined): Buffer {
  const { e = '', n = '', x = '', y = '' } = key?.export({ format: 'jwk' }) ?? {}
  const bytes = (text: string) => Buffer.from(text, 'base64url')
  if (type === 'ssh-rsa') return wire(type, bytes(e), Buffer.concat([Buffer.of(0), bytes(n)]))
  if (type === 'ssh-ed25519') return wire(type, bytes(x))
  return wire(type, type.replace('ecdsa-sha2-', ''), Buffer.concat([Buffer.of(4), bytes(x), bytes(y)]))
}

function rsaLine(bits: number): string {
  const value = (1n << BigInt(bits - 1)) | 1n
  const hex = value.toString(16)
  const magnitude = Buffer.from(hex.length % 2 === 0 ? hex : `0${hex}`, 'hex')
  const sign = (magnitude[0] ?? 0) >= 0x80 ? Buffer.of(0) : Buffer.alloc(0)
  return `ssh-rsa ${wire('ssh-rsa', Buffer.of(1, 0, 1), Buffer.concat([sign, magnitude])).toString('base64')}`
}

function wire(...parts: (string | Buffer)[]): Buffer {
  return Buffer.concat(
    parts.map((part) => {
      const body = Buffer.from(part)
      const length = Buffer.alloc(4)
      length.writeUInt32BE(body.length)
      return Buffer.concat([length, body])
    }),
  )
}

function rfc4716(body: string): string {
  return `---- BEGIN SSH2 PUBLIC KEY ----\n${body}\n---- END SSH2 PUBLIC KEY ----\n`
}
