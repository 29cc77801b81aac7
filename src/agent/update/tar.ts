/** Reads tar archives as npm makes them: only files and folders, all under one folder called `package`. */

const BLOCK = 512

/** Limits of what an archive may unpack to, in bytes and entries. */
const UNPACKED_BYTES = 512 * 1024 * 1024
const FILE_BYTES = 64 * 1024 * 1024
const ENTRIES = 50_000

interface TarFile {
  /** Relative to the root of the package, with `/` between its parts. */
  readonly path: string
  readonly isExecutable: boolean
  readonly bytes: Buffer
}

/**
 * Yields each file in turn; throws at the first entry that does not belong in a package.
 *
 * Written by hand, since Node cannot read tar. The libraries on npm unpack links, devices and paths of any kind to disk, so
 * each of these would have to be forbidden again. Our archives have only files and folders, and every path is checked before
 * it is written.
 */
export async function* tarFiles(archive: AsyncIterable<Buffer>): AsyncGenerator<TarFile> {
  const source = new Blocks(archive)
  try {
    yield* filesOf(source)
  } finally {
    await source.close()
  }
}

async function* filesOf(source: Blocks): AsyncGenerator<TarFile> {
  let longName: string | undefined
  let entries = 0
  let total = 0
  for (;;) {
    const head = await source.take(BLOCK)
    // Two blocks of zeros end an archive; we stop at the first.
    if (!head || head.every((byte) => byte === 0)) return
    if (++entries > ENTRIES) throw new Error(`the archive has more than ${ENTRIES} entries`)
    checkSum(head)
    const type = String.fromCharCode(head[156] ?? 0)
    const size = octal(head, 124, 12)
    total += size
    if (size > FILE_BYTES || total > UNPACKED_BYTES) throw new Error('the archive is too large')
    const body = await source.take(size)
    if (!body || !(await source.take(padding(size)))) throw new Error('the archive is truncated')
    switch (type) {
      case '0':
      case '\0':
        yield {
          path: safePath(longName ?? nameOf(head)),
          isExecutable: (octal(head, 100, 8) & 0o111) !== 0,
          bytes: body,
        }
        longName = undefined
        break
      case '5':
        longName = undefined
        break
      case 'x':
        longName = paxPath(body) ?? longName
        break
      case 'L':
        longName = text(body)
        break
      case 'g':
        break
      default:
        throw new Error(`the archive has an entry that is neither a file nor a folder: ${nameOf(head)}`)
    }
  }
}

/** Reads a stream in portions of the requested size. */
class Blocks {
  readonly #source: AsyncIterator<Buffer>
  #rest: Buffer[] = []
  #length = 0

  constructor(source: AsyncIterable<Buffer>) {
    this.#source = source[Symbol.asyncIterator]()
  }

  async close(): Promise<void> {
    await this.#source.return?.()
  }

  /** Undefined when the stream ends before that many bytes. */
  async take(bytes: number): Promise<Buffer | undefined> {
    while (this.#length < bytes) {
      const next = await this.#source.next()
      if (next.done) return undefined
      this.#rest.push(next.value)
      this.#length += next.value.length
    }
    const all = this.#rest.length === 1 ? (this.#rest[0] ?? Buffer.alloc(0)) : Buffer.concat(this.#rest, this.#length)
    const left = all.subarray(bytes)
    this.#rest = left.length > 0 ? [left] : []
    this.#length = left.length
    return all.subarray(0, bytes)
  }
}

function padding(size: number): number {
  return (BLOCK - (size % BLOCK)) % BLOCK
}

function nameOf(head: Buffer): string {
  const prefix = text(head.subarray(345, 500))
  return `${prefix && `${prefix}/`}${text(head.subarray(0, 100))}`
}

function text(bytes: Buffer): string {
  const end = bytes.indexOf(0)
  return bytes.toString('utf8', 0, end < 0 ? bytes.length : end)
}

function octal(head: Buffer, at: number, length: number): number {
  const digits = text(head.subarray(at, at + length)).trim()
  if (!/^[0-7]*$/.test(digits)) throw new Error('the archive has an invalid number')
  return digits === '' ? 0 : Number.parseInt(digits, 8)
}

function checkSum(head: Buffer): void {
  let sum = 0
  for (const [i, byte] of head.entries()) sum += i >= 148 && i < 156 ? 0x20 : byte
  if (sum !== octal(head, 148, 8)) throw new Error('the archive is damaged')
}

/** POSIX records: `<length> path=<value>\n`. */
function paxPath(body: Buffer): string | undefined {
  let found: string | undefined
  for (let at = 0; at < body.length; ) {
    const space = body.indexOf(0x20, at)
    const length = Number(body.toString('latin1', at, space))
    if (space < 0 || !Number.isInteger(length) || length <= 0 || at + length > body.length) {
      throw new Error('the archive has an invalid record')
    }
    const [, value] = /^path=(.*)\n$/s.exec(body.toString('utf8', space + 1, at + length)) ?? []
    found = value ?? found
    at += length
  }
  return found
}

/** The path under `package/`; anything that could lead elsewhere is refused. */
function safePath(name: string): string {
  const [first, ...parts] = name.split('/')
  const isSafe = parts.every((part) => part !== '' && part !== '.' && part !== '..' && !/[\\:\0]/.test(part))
  if (first !== 'package' || parts.length === 0 || !isSafe || name.length > 1000) {
    throw new Error('the archive has a file outside its package folder')
  }
  return parts.join('/')
}
