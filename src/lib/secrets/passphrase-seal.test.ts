import assert from 'node:assert/strict'
import { createHash, randomBytes } from 'node:crypto'
import { describe, test } from 'node:test'
import { type DeriveKey, NotOpened, openStream, sealStream } from './passphrase-seal.ts'

const CHUNK = 64 * 1024
const HEAD = 23
const PASSPHRASE = 'a passphrase of this test'

async function collect(pieces: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const found: Uint8Array[] = []
  for await (const piece of pieces) found.push(piece)
  return Buffer.concat(found)
}

/** The bytes in pieces that do not match the chunks, as a file is read. */
async function* inPieces(bytes: Uint8Array, size: number): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size)
}

/** A fast key derivation: the real one takes half a second, and does not matter for the chunks. */
const quickly: DeriveKey = async (passphrase, salt) => createHash('sha256').update(salt).update(passphrase).digest()

const seal = (plain: Uint8Array): Promise<Buffer> => collect(sealStream(inPieces(plain, 10_000), PASSPHRASE, quickly))
const open = (sealed: Uint8Array, passphrase = PASSPHRASE): Promise<Buffer> =>
  collect(openStream(inPieces(sealed, 7777), passphrase, quickly))

for (const length of [0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 3 * CHUNK]) {
  test(`${length} bytes come back as they were`, async () => {
    const plain = randomBytes(length)
    const sealed = await seal(plain)
    assert.deepEqual(await open(sealed), plain)
    assert.ok(length < 16 || !sealed.includes(plain.subarray(0, 16)))
  })
}

describe('a file of three chunks', async () => {
  const plain = randomBytes(2 * CHUNK + 100)
  const sealed = await seal(plain)
  const chunk = (n: number): Buffer => sealed.subarray(HEAD + n * (CHUNK + 16), HEAD + (n + 1) * (CHUNK + 16))
  const head = sealed.subarray(0, HEAD)
  const flipped = Buffer.from(sealed)
  flipped[HEAD + CHUNK + 100] = (flipped[HEAD + CHUNK + 100] ?? 0) ^ 1

  const cases: Record<string, Uint8Array> = {
    'nothing at all': Buffer.alloc(0),
    'the head alone': head,
    'half a head': head.subarray(0, 10),
    'a cut at the end of a chunk': Buffer.concat([head, chunk(0), chunk(1)]),
    'a cut amid a chunk': sealed.subarray(0, HEAD + CHUNK + 5000),
    'the last byte missing': sealed.subarray(0, -1),
    'two chunks swapped': Buffer.concat([head, chunk(1), chunk(0), chunk(2)]),
    'a chunk left out': Buffer.concat([head, chunk(0), chunk(2)]),
    'a chunk twice': Buffer.concat([head, chunk(0), chunk(0), chunk(1), chunk(2)]),
    'a byte more': Buffer.concat([sealed, Buffer.alloc(1)]),
    'a changed bit': flipped,
  }
  for (const [name, bytes] of Object.entries(cases)) {
    test(`${name} is refused`, () => assert.rejects(open(bytes), NotOpened))
  }

  test('another passphrase is refused', () => assert.rejects(open(sealed, 'another passphrase'), NotOpened))
})

describe('with the real key derivation', async () => {
  const plain = randomBytes(CHUNK + 100)
  const sealed = await collect(sealStream(inPieces(plain, 5000), 'caf\u00e9 caf\u00e9 caf\u00e9'))
  const openWith = (passphrase: string): Promise<Buffer> => collect(openStream(inPieces(sealed, 7777), passphrase))

  test('another passphrase is refused', () => assert.rejects(openWith('caf\u00e9 caf\u00e9'), NotOpened))
  test('the same passphrase from another keyboard opens it', async () => {
    assert.deepEqual(await openWith('cafe\u0301 cafe\u0301 cafe\u0301'), plain)
  })
})
