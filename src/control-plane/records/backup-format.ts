/**
 * A backup: every row of the database and the key that seals its secrets, as one file that restores either kind of database.
 */
import { pipeline, Readable, type Transform } from 'node:stream'
import { createGunzip, createGzip } from 'node:zlib'
import { NotOpened, openStream, sealStream } from '../../lib/secrets/passphrase-seal.ts'
import { keyText, readKeyText } from '../../lib/secrets/seal.ts'
import { isStoredRow, type StoredRow } from '../store/rows.ts'
import type { Store } from '../store/store.ts'
import { KEY_ID } from './sealing.ts'

/** What a backup says about itself. */
interface BackupFacts {
  /** Of the program that made it. */
  readonly version: string
  readonly createdAt: string
  readonly database: 'sqlite' | 'postgres'
}

export interface BackupContents extends BackupFacts {
  readonly rows: number
  /** How many resources of each kind. */
  readonly kinds: ReadonlyMap<string, number>
  /** As it stands in a key file. */
  readonly key: string
}

/** A file is not a backup, or not a complete one; the message says what is wrong with it. */
export class BadBackup extends Error {}

const FORMAT = 1
/**
 * The file is a line that names its kind, then gzipped lines of JSON, all of them sealed unless the backup is plain. The
 * lines of JSON are the facts about the backup, a line for each row, and the number of rows. Without that last line the
 * backup is not whole.
 */
const plainMark = `postern-backup ${FORMAT} plain\n`
const sealedMark = `postern-backup ${FORMAT} sealed\n`
const MARK_BYTES = 64
/** Longest row: a request body of 1 MiB, escaped twice. */
const MAX_LINE = 8 * 1024 * 1024

interface BackupRequest {
  readonly store: Store
  readonly keyFile: string
  readonly version: string
  readonly now: () => number
  /** Without a passphrase, anyone who gets the file can read everything. */
  readonly passphrase: string | undefined
  /** Called now and then with the number of rows so far. */
  readonly onProgress?: (rows: number) => void
}

/** Passes the bytes of a backup, taken at one moment, to `take`; returns what it holds. */
export async function makeBackup(
  { store, keyFile, version, now, passphrase, onProgress = () => {} }: BackupRequest,
  take: (bytes: AsyncIterable<Uint8Array>) => Promise<void>,
): Promise<BackupContents> {
  return store.snapshot(async (rows) => {
    const tally = new Tally(onProgress)
    const facts = { version, createdAt: new Date(now()).toISOString(), database: store.dialect }
    const key = keyText(keyFile)
    const lines = async function* (): AsyncGenerator<string> {
      yield `${JSON.stringify({ backup: FORMAT, ...facts, key })}\n`
      for await (const row of rows) {
        tally.add(row)
        yield `${JSON.stringify([row.table, ...row.values])}\n`
      }
      tally.checkKey(key)
      yield `${JSON.stringify({ end: tally.rows })}\n`
    }
    const packed = through(lines(), createGzip())
    await take(
      passphrase === undefined
        ? prependMark(plainMark, packed)
        : prependMark(sealedMark, sealStream(packed, passphrase)),
    )
    return { ...facts, rows: tally.rows, kinds: tally.kinds, key }
  })
}

/** Whether a file that begins with these bytes needs a passphrase; throws `BadBackup` when it is not a backup. */
export function isSealed(start: Uint8Array): boolean {
  const text = Buffer.from(start).toString('latin1')
  if (text.startsWith(sealedMark)) return true
  if (text.startsWith(plainMark)) return false
  if (/^postern-backup \d/.test(text)) throw new BadBackup('was made by a newer Postern; restore it with that one')
  throw new BadBackup('is not a backup of Postern')
}

/** The rows of a backup, then a summary; throws `BadBackup` or `NotOpened` unless it is complete. */
export async function* readBackup(
  file: AsyncIterable<Uint8Array>,
  passphrase: string | undefined,
): AsyncGenerator<StoredRow, BackupContents> {
  let head: ReturnType<typeof headerOf> | undefined
  let end: number | undefined
  const tally = new Tally()
  for await (const line of linesOf(unsealFile(file, passphrase))) {
    const value = parse(line)
    if (end !== undefined) throw new BadBackup('goes on after its end')
    if (!head) head = headerOf(value)
    else if (Array.isArray(value)) {
      const [table, ...values] = value as unknown[]
      if (!isStoredRow(table, values)) throw new BadBackup(`holds a row of an unknown shape, number ${tally.rows + 1}`)
      const row = { table, values: values as (string | null)[] } // checked just above
      tally.add(row)
      yield row
    } else end = endOf(value)
  }
  if (!head || end === undefined) throw new BadBackup('is cut short')
  if (end !== tally.rows) throw new BadBackup(`holds ${tally.rows} rows, but was made with ${end}`)
  tally.checkKey(head.key)
  const { key, version, createdAt, database } = head
  return { version, createdAt, database, rows: tally.rows, kinds: tally.kinds, key }
}

/** Reads a backup to its end, to check that it is complete and what it holds. */
export async function inspectBackup(
  file: AsyncIterable<Uint8Array>,
  passphrase: string | undefined,
): Promise<BackupContents> {
  const rows = readBackup(file, passphrase)
  for (;;) {
    const { value, done } = await rows.next()
    if (done) return value
  }
}

/** Counts rows as they pass, and remembers the id of their key. */
class Tally {
  rows = 0
  readonly kinds = new Map<string, number>()
  readonly #onProgress: (rows: number) => void
  #keyId: string | undefined

  constructor(onProgress: (rows: number) => void = () => {}) {
    this.#onProgress = onProgress
  }

  add({ table, values: [first, second] }: StoredRow): void {
    this.rows++
    if (table === 'resources') this.kinds.set(second ?? '', (this.kinds.get(second ?? '') ?? 0) + 1)
    if (table === 'meta' && first === KEY_ID) this.#keyId = second ?? undefined
    if (this.rows % PROGRESS_EVERY === 0) this.#onProgress(this.rows)
  }

  /** A backup whose key does not open its secrets is worthless; that must be noticed now, not when it is needed. */
  checkKey(key: string): void {
    if (readKeyText(key, 'the key of the backup').keyId !== this.#keyId) {
      throw new BadBackup(
        'would hold a key file that is not the one of the database; name the right one with --key-file',
      )
    }
  }
}

const PROGRESS_EVERY = 1000

function headerOf(value: unknown): BackupFacts & Pick<BackupContents, 'key'> {
  const { backup, version, createdAt, database, key } = Object(value) as Record<string, unknown>
  const isHeader = typeof version === 'string' && typeof createdAt === 'string' && typeof key === 'string'
  if (backup !== FORMAT || !isHeader || (database !== 'sqlite' && database !== 'postgres')) {
    throw new BadBackup('does not begin as a backup does')
  }
  return { version, createdAt, database, key }
}

function endOf(value: unknown): number {
  const { end } = Object(value) as Record<string, unknown>
  if (typeof end !== 'number') throw new BadBackup('holds a line of an unknown shape')
  return end
}

function parse(line: string): unknown {
  try {
    return JSON.parse(line)
  } catch (cause) {
    throw new BadBackup('is damaged', { cause })
  }
}

async function* prependMark(mark: string, bytes: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  yield Buffer.from(mark)
  yield* bytes
}

/** The bytes after the mark, opened if they are sealed. */
async function* unsealFile(
  file: AsyncIterable<Uint8Array>,
  passphrase: string | undefined,
): AsyncGenerator<Uint8Array> {
  const bytes = file[Symbol.asyncIterator]()
  let start = Buffer.alloc(0)
  while (start.length < MARK_BYTES) {
    const { value, done } = await bytes.next()
    if (done) break
    start = Buffer.concat([start, value])
  }
  const mark = isSealed(start) ? sealedMark : plainMark
  const rest = (async function* (): AsyncGenerator<Uint8Array> {
    yield start.subarray(mark.length)
    for (let next = await bytes.next(); !next.done; next = await bytes.next()) yield next.value
  })()
  if (mark === plainMark) yield* rest
  else if (passphrase === undefined) throw new NotOpened('it is sealed, and there is no passphrase')
  else yield* openStream(rest, passphrase)
}

async function* linesOf(packed: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  let line = ''
  const text = through(packed, createGunzip()).setEncoding('utf8') as AsyncIterable<string>
  try {
    for await (const piece of text) {
      const parts = piece.split('\n')
      line += parts[0] ?? ''
      for (const part of parts.slice(1)) {
        yield line
        line = part
      }
      if (line.length > MAX_LINE) throw new BadBackup('holds a line that is too long')
    }
  } catch (cause) {
    if (isZlibFault(cause)) throw new BadBackup('is damaged or cut short', { cause })
    throw cause
  }
  if (line !== '') throw new BadBackup('is cut short')
}

/** The output of `transform` on `source`; errors of either reach the reader. */
function through(source: AsyncIterable<string | Uint8Array>, transform: Transform): Transform {
  pipeline(Readable.from(source), transform, () => {})
  return transform
}

function isZlibFault(error: unknown): boolean {
  return error instanceof Error && 'code' in error && /^Z_/.test(String(error.code))
}
