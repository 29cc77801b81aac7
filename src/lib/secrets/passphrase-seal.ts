/** Encrypts a stream of bytes with a passphrase, and decrypts it: for files that leave the machine. */
import { createCipheriv, createDecipheriv, randomBytes, scrypt } from 'node:crypto'

/** Plaintext bytes in each chunk but the last. Each chunk has its own tag, so only authenticated bytes are passed on. */
const CHUNK_BYTES = 64 * 1024
const TAG_BYTES = 16
const SALT_BYTES = 16
/** A nonce is these random bytes, the number of the chunk (4 bytes), and whether it is the last (1 byte). */
const NONCE_PREFIX_BYTES = 7
const KEY_BYTES = 32
/** A guess costs 128 MiB and half a second. Fixed, because a file that chose its own costs could exhaust its reader. */
const SCRYPT = { N: 2 ** 17, r: 8, p: 1, maxmem: 256 * 1024 * 1024 }

/** Derives a key of 32 bytes; a parameter, so that tests of the chunks need not pay its cost. */
export type DeriveKey = (passphrase: string, salt: Buffer) => Promise<Buffer>

/** The passphrase is wrong or the bytes were changed; the two cannot be told apart. */
export class NotOpened extends Error {}

/** Seals `plain` under `passphrase`; opening it detects changed, missing and reordered chunks. */
export async function* sealStream(
  plain: AsyncIterable<Uint8Array>,
  passphrase: string,
  derive: DeriveKey = deriveKey,
): AsyncGenerator<Buffer> {
  const salt = randomBytes(SALT_BYTES)
  const prefix = randomBytes(NONCE_PREFIX_BYTES)
  const key = await derive(passphrase, salt)
  yield Buffer.concat([salt, prefix])
  for await (const { chunk, index, isLast } of inChunks(plain, CHUNK_BYTES)) {
    const cipher = createCipheriv('aes-256-gcm', key, nonce(prefix, index, isLast))
    yield Buffer.concat([cipher.update(chunk), cipher.final(), cipher.getAuthTag()])
  }
}

/** Returns the bytes that `sealStream` sealed; throws `NotOpened`. */
export async function* openStream(
  sealed: AsyncIterable<Uint8Array>,
  passphrase: string,
  derive: DeriveKey = deriveKey,
): AsyncGenerator<Buffer> {
  const bytes = sealed[Symbol.asyncIterator]()
  let head = Buffer.alloc(0)
  while (head.length < SALT_BYTES + NONCE_PREFIX_BYTES) {
    const { value, done } = await bytes.next()
    if (done) throw new NotOpened('the file is cut short')
    head = Buffer.concat([head, value])
  }
  const salt = head.subarray(0, SALT_BYTES)
  const prefix = head.subarray(SALT_BYTES, SALT_BYTES + NONCE_PREFIX_BYTES)
  const key = await derive(passphrase, salt)
  const rest = following(head.subarray(SALT_BYTES + NONCE_PREFIX_BYTES), bytes)
  for await (const { chunk, index, isLast } of inChunks(rest, CHUNK_BYTES + TAG_BYTES)) {
    if (chunk.length < TAG_BYTES) throw new NotOpened('the file is cut short')
    const decipher = createDecipheriv('aes-256-gcm', key, nonce(prefix, index, isLast), { authTagLength: TAG_BYTES })
    decipher.setAuthTag(chunk.subarray(-TAG_BYTES))
    const plain = decipher.update(chunk.subarray(0, -TAG_BYTES))
    try {
      decipher.final()
    } catch (cause) {
      const where = index === 0 ? 'the passphrase is wrong, or the file is damaged' : 'the file is damaged or cut short'
      throw new NotOpened(where, { cause })
    }
    yield plain
  }
}

function deriveKey(passphrase: string, salt: Buffer): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    // Normalised, because keyboards differ in how they encode an accented letter.
    scrypt(passphrase.normalize('NFKC'), salt, KEY_BYTES, SCRYPT, (error, key) =>
      error ? reject(error) : resolve(key),
    )
  })
}

function nonce(prefix: Buffer, index: number, isLast: boolean): Buffer {
  const tail = Buffer.alloc(5)
  tail.writeUInt32BE(index)
  tail[4] = isLast ? 1 : 0
  return Buffer.concat([prefix, tail])
}

async function* following(first: Buffer, rest: AsyncIterator<Uint8Array>): AsyncGenerator<Uint8Array> {
  yield first
  for (let next = await rest.next(); !next.done; next = await rest.next()) yield next.value
}

interface Chunk {
  readonly chunk: Buffer
  readonly index: number
  readonly isLast: boolean
}

/** The bytes in pieces of `size`; the last, and only the last, may be shorter or empty. */
async function* inChunks(bytes: AsyncIterable<Uint8Array>, size: number): AsyncGenerator<Chunk> {
  let waiting = Buffer.alloc(0)
  let index = 0
  for await (const some of bytes) {
    waiting = waiting.length === 0 ? Buffer.from(some) : Buffer.concat([waiting, some])
    // A chunk that is exactly full waits, since it may be the last.
    while (waiting.length > size) {
      yield { chunk: waiting.subarray(0, size), index: index++, isLast: false }
      waiting = waiting.subarray(size)
    }
  }
  yield { chunk: waiting, index, isLast: true }
}
