/** A channel between two planes: it carries whole plain values in order, over a socket, a stream or inside one process. */
import type { Socket } from 'node:net'
import { deserialize, serialize } from 'node:v8'
import type { ByteStream } from '../../lib/bytes/byte-stream.ts'
import { plainCopy } from './plain-copy.ts'

export interface Channel {
  /** Sends a plain value; does nothing once the channel is closed. */
  send(message: unknown): void
  /** Begins to deliver messages. `closed` is called once, as the last call. */
  open(events: ChannelEvents): void
  close(): void
}

interface ChannelEvents {
  message(message: unknown): void
  closed(): void
}

/** Size of the length that precedes each message, in bytes. */
const HEAD_BYTES = 4

/** Longest message, in bytes. Both ends are ours, so a longer one means that the bytes are corrupt. */
const MAX_MESSAGE = 256 * 1024 * 1024

/**
 * How much may wait to be sent, in bytes. A plane that reads nothing for so long is broken: it is disconnected, and starts
 * again with the current state.
 */
const MAX_WAITING = 512 * 1024 * 1024

/** How long the other side may take to close its end, in milliseconds. One that is stuck would keep the channel open. */
const CLOSE_MS = 2000

interface ChannelBounds {
  /** In bytes; smaller ones are for tests. */
  readonly maxMessage?: number
  readonly maxWaiting?: number
}

/** A channel over a socket whose other end does the same; it owns the socket. */
export function socketChannel(
  socket: Socket,
  { maxMessage = MAX_MESSAGE, maxWaiting = MAX_WAITING }: ChannelBounds = {},
): Channel {
  return {
    send(message) {
      // A write after the end would destroy the socket, with what it still has to send.
      if (!socket.writable) return
      const body = serialize(message)
      const head = headOf(body.length, maxMessage)
      socket.cork()
      socket.write(head)
      socket.write(body)
      // The messages of one turn go out together.
      process.nextTick(() => socket.uncork())
      if (socket.writableLength > maxWaiting) socket.destroy()
    },
    open(events) {
      const take = messagesIn(deserialize, events, maxMessage)
      socket.on('data', (chunk: Buffer) => {
        if (!take(chunk)) socket.destroy()
      })
      socket.on('error', () => {})
      socket.on('end', () => socket.end())
      if (socket.closed) queueMicrotask(() => events.closed())
      else socket.once('close', () => events.closed())
    },
    close() {
      socket.end()
      socket.unref()
      const timer = setTimeout(() => socket.destroy(), CLOSE_MS).unref()
      socket.once('close', () => clearTimeout(timer))
    },
  }
}

/** A stream of a session that has others beside it. */
interface SharedStream extends ByteStream {
  readonly unsent: number
  isPrompt: boolean
  close(): void
}

/**
 * A channel over a stream, which it owns; the other end has such a channel too. Messages are JSON: for the short ones between
 * workers, that takes a fifth of the time of what sockets carry.
 */
export function streamChannel(
  stream: SharedStream,
  { maxMessage = MAX_MESSAGE, maxWaiting = MAX_WAITING }: ChannelBounds = {},
): Channel {
  stream.isPrompt = true
  return {
    send(message) {
      const body = Buffer.from(JSON.stringify(message))
      stream.write(Buffer.concat([headOf(body.length, maxMessage), body]))
      if (stream.unsent > maxWaiting) stream.reset()
    },
    open(events) {
      const take = messagesIn((bytes) => JSON.parse(bytes.toString()), events, maxMessage)
      const data = (chunk: Buffer): void => {
        if (!take(chunk)) stream.reset()
      }
      stream.attach({ data, drain() {}, end: () => stream.close(), closed: () => events.closed() })
    },
    close: () => stream.close(),
  }
}

/** The length of a message, as it precedes the message. */
function headOf(length: number, maxMessage: number): Buffer {
  if (length > maxMessage) throw new RangeError(`a message of ${length} bytes is too long to send`)
  const head = Buffer.allocUnsafe(HEAD_BYTES)
  head.writeUInt32BE(length)
  return head
}

/**
 * Gives a function that finds the messages in a stream of bytes; it returns false for bytes that are no message. Binary parts
 * of a message are views of these bytes, which nobody writes to again.
 */
function messagesIn(
  read: (bytes: Buffer) => unknown,
  events: ChannelEvents,
  maxMessage: number,
): (chunk: Buffer) => boolean {
  let parts: Buffer[] = []
  let waiting = 0
  let wanted = HEAD_BYTES
  let isHead = true
  return (chunk) => {
    parts.push(chunk)
    waiting += chunk.length
    while (waiting >= wanted) {
      const all = parts.length === 1 ? (parts[0] ?? chunk) : Buffer.concat(parts)
      const piece = all.subarray(0, wanted)
      const rest = all.subarray(wanted)
      parts = rest.length > 0 ? [rest] : []
      waiting = rest.length
      if (isHead) {
        wanted = piece.readUInt32BE()
        if (wanted > maxMessage) return false
      } else {
        wanted = HEAD_BYTES
        let message: unknown
        try {
          message = read(piece)
        } catch {
          return false
        }
        events.message(message)
      }
      isHead = !isHead
    }
    return true
  }
}

/** Two ends of a channel inside one process. What is sent is copied as a socket would, so that it must be plain. */
export function channelPair(): readonly [Channel, Channel] {
  const a = new InProcessEnd()
  const b = new InProcessEnd()
  a.other = b
  b.other = a
  return [a, b]
}

class InProcessEnd implements Channel {
  other: InProcessEnd | undefined
  #events: ChannelEvents | undefined
  #waiting: unknown[] = []
  #isClosed = false

  send(message: unknown): void {
    if (this.#isClosed) return
    const copy = plainCopy(message)
    const { other } = this
    queueMicrotask(() => other?.receive(copy))
  }

  open(events: ChannelEvents): void {
    this.#events = events
    for (const message of this.#waiting.splice(0)) events.message(message)
    if (this.#isClosed) events.closed()
  }

  receive(message: unknown): void {
    if (this.#isClosed) return
    if (this.#events) this.#events.message(message)
    else this.#waiting.push(message)
  }

  close(): void {
    for (const end of [this, this.other]) queueMicrotask(() => end?.shut())
  }

  shut(): void {
    if (this.#isClosed) return
    this.#isClosed = true
    this.#events?.closed()
  }
}
