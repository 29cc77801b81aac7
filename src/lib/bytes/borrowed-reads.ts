/** Reads sockets into one piece of memory that all of them share. */
import { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { keepBytes } from './byte-stream.ts'
import { firstBytesOf } from './first-bytes-of.ts'

/** Size of one read, in bytes: two of the largest mux frames. Larger reads do not fit the processor's cache. */
export const LENT_BYTES = 2 * (64 * 1024 - 8)

/** Read callbacks never nest, so one buffer serves the whole process. Node holds its address, so it is never freed. */
let memory: Shared | undefined

interface Shared {
  readonly bytes: Buffer
  /** Its first bytes, by their number. */
  readonly first: (length: number) => Buffer
}

/** The names of Node's private fields: the same for every socket, so they are looked up once. */
let fields: Fields | undefined

interface Fields {
  readonly buffer: symbol | undefined
  readonly callback: symbol | undefined
  readonly next: symbol | undefined
}

/** A socket by its fields; `Reflect` would be many times slower. */
interface Open {
  readonly _handle?: unknown
  [field: symbol]: unknown
}

interface Handle {
  readonly useUserBuffer?: unknown
  /** The handle below a TLS handle. */
  readonly _parent?: Handle
}

/**
 * Passes the bytes that arrive to `take`, lent until it returns, instead of emitting `data`. When `take` returns false,
 * reading stops until Node or a `resume` asks for more. Returns false when this socket cannot be read that way.
 *
 * Node allocates memory for every read. On a busy connection that costs more than the read itself, plus the time of the
 * garbage collector.
 */
export function readBorrowed(socket: Duplex, take: (chunk: Buffer) => boolean): boolean {
  if (!(socket instanceof Socket)) return false
  fields ??= fieldsOf(socket)
  const { buffer, callback, next } = fields
  const open = socket as unknown as Open
  const handle = open._handle
  if (!buffer || !callback || !next || !isNative(handle)) return false
  memory ??= newShared()
  const { bytes, first } = memory
  open[callback] = (length: number): boolean => take(first(length))
  open[next] = null
  open[buffer] = bytes
  handle.useUserBuffer(bytes)
  return true
}

/** Queues bytes that arrive in the socket again, as Node does, so that the socket no longer refers to `take`. */
export function stopLending(socket: Socket): void {
  const callback = fields?.callback
  if (callback) (socket as unknown as Open)[callback] = queueRead
}

/** Node calls it as a method of the socket. */
function queueRead(this: Socket, length: number): boolean {
  return memory === undefined || this.push(keepBytes(memory.first(length)))
}

function newShared(): Shared {
  const bytes = Buffer.allocUnsafeSlow(LENT_BYTES)
  return { bytes, first: firstBytesOf(bytes) }
}

/**
 * Sockets have them from the start, whatever they are used for. Node can read into given memory (`onread` of net.connect),
 * but only for connections that it opens. Accepted sockets have the same fields under private symbols, which are found by
 * name here. If one is missing, the socket is left alone and read in the usual way.
 */
function fieldsOf(socket: Socket): Fields {
  const names = Object.getOwnPropertySymbols(socket)
  const symbolNamed = (name: string): symbol | undefined => names.find(({ description }) => description === name)
  return { buffer: symbolNamed('kBuffer'), callback: symbolNamed('kBufferCb'), next: symbolNamed('kBufferGen') }
}

/** Whether only the event loop reads this handle: a handle over a JavaScript stream could be read within another read. */
function isNative(value: unknown): value is { useUserBuffer(memory: Buffer): void } {
  const handle = value as Handle | null | undefined // the lines below check each property before using it
  if (typeof handle?.useUserBuffer !== 'function') return false
  const { name } = (handle._parent ?? handle).constructor
  return name === 'TCP' || name === 'Pipe'
}
