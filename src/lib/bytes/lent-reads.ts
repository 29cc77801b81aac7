/**
 * Reads sockets into one piece of memory that all of them share.
 *
 * Node gives every read memory of its own, which costs more than the read itself where much is read, and then the time
 * of the collector. It can read into memory that is handed to it (`onread` of net.connect), but offers that only for
 * connections that it opens; those that it accepts have the same parts under names that are not public. They are looked
 * for by name, and where one is missing nothing is changed: such a socket is read as any other.
 */
import { Socket } from 'node:net'
import type { Duplex } from 'node:stream'

/** Size of one read, in bytes: two of the largest frames of the multiplexer. Larger ones leave the processor's cache. */
export const LENT_BYTES = 2 * (64 * 1024 - 8)

/** Read callbacks never nest, so one for the process is enough. Its address is known to Node: it is never let go. */
let memory: Buffer | undefined

interface Handle {
  readonly useUserBuffer?: unknown
  /** What a TLS handle reads from. */
  readonly _parent?: Handle
}

/**
 * From here on `take` gets what comes, each time only until it returns, in place of `data` events; its false stops the
 * reads until Node or a `resume` asks for more. Gives false when it cannot be done.
 */
export function readLent(socket: Duplex, take: (chunk: Buffer) => boolean): boolean {
  if (!(socket instanceof Socket)) return false
  const names = Object.getOwnPropertySymbols(socket)
  const named = (name: string): symbol | undefined => names.find(({ description }) => description === name)
  const [buffer, callback, next] = [named('kBuffer'), named('kBufferCb'), named('kBufferGen')]
  const handle: unknown = Reflect.get(socket, '_handle')
  if (!buffer || !callback || !next || !isNative(handle)) return false
  memory ??= Buffer.allocUnsafeSlow(LENT_BYTES)
  const shared = memory
  Reflect.set(socket, callback, (length: number): boolean => take(shared.subarray(0, length)))
  Reflect.set(socket, next, null)
  Reflect.set(socket, buffer, shared)
  handle.useUserBuffer(shared)
  return true
}

/** A handle that is read by the event loop alone: one over a stream of JavaScript could be read within a read. */
function isNative(value: unknown): value is { useUserBuffer(memory: Buffer): void } {
  const handle = value as Handle | null | undefined // checked right here, and by the caller of what it has
  if (typeof handle?.useUserBuffer !== 'function') return false
  const { name } = (handle._parent ?? handle).constructor
  return name === 'TCP' || name === 'Pipe'
}
