/** A TCP or TLS socket as a byte stream. */
import { EventEmitter } from 'node:events'
import { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { TLSSocket } from 'node:tls'
import { readBorrowed, stopLending } from './borrowed-reads.ts'
import { BufferedWrites } from './buffered-writes.ts'
import { type ByteSink, type ByteStream, keepBytes } from './byte-stream.ts'
import { noteRead } from './read-memory.ts'

interface SocketStreamOptions {
  /**
   * Whether the stream reads everything the other end has sent before a failed write ends it. For connections to
   * services: a service that refuses an upload answers and closes, so the next write fails, but the answer must not be
   * lost. Applies to sockets only; other duplexes lose nothing when a write fails.
   */
  readonly outlivesFailedWrite?: boolean
}

/** Takes over `socket`, which must allow half-open connections; no other code may read or listen to it afterwards. */
export function socketStream(socket: Duplex, options: SocketStreamOptions = {}): ByteStream {
  return new SocketStream(socket, options)
}

type Callback = (error?: Error | null) => void

/** Shared: most visitors leave like this, and capturing a stack for each error would cost as much as a small read. */
const closedEarly = new Error('the connection closed early')

/** The socket's handler for failed writes. */
const failing = Symbol('failing')
/** The callback that reports a write to Node. Node uses the same one for every write, so it is wrapped only once. */
const wrote = Symbol('wrote')

interface DeferringSocket extends Duplex {
  [failing]?: (error: Error, done: Callback) => void
  [wrote]?: Callback
}

// One function for all sockets that allocates nothing per write: as cheap as Node's own `_write`, which it wraps.
function deferredWrite(this: DeferringSocket, chunk: unknown, encoding: BufferEncoding, done: Callback): void {
  Socket.prototype._write.call(this, chunk, encoding, this[wrote] ?? reportWrites(this, done))
}

function deferredWritev(
  this: DeferringSocket,
  chunks: Parameters<NonNullable<Duplex['_writev']>>[0],
  done: Callback,
): void {
  Socket.prototype._writev?.call(this, chunks, this[wrote] ?? reportWrites(this, done))
}

function reportWrites(socket: DeferringSocket, done: Callback): Callback {
  socket[wrote] = (error) => {
    if (error) socket[failing]?.(error, done)
    else done(error)
  }
  return socket[wrote]
}

class SocketStream implements ByteStream {
  readonly #socket: Duplex
  readonly #staged: BufferedWrites
  #sink: ByteSink | undefined
  #error: Error | undefined
  #isEnded = false
  #isEndDelivered = false
  #isPaused = false
  #isWriterWaiting = false
  #isClosed = false
  /** Reports a failed write to Node, which then destroys the socket. */
  #failWrite: (() => void) | undefined

  constructor(socket: Duplex, { outlivesFailedWrite = false }: SocketStreamOptions) {
    this.#socket = socket
    this.#staged = new BufferedWrites(socket, () => this.#drain())
    socket.on('error', (error: Error) => {
      this.#error ??= error
    })
    socket.on('end', () => {
      this.#isEnded = true
      // Node emits `end` even on a paused socket, when nothing is left to read.
      if (!this.#isPaused) this.#deliverEnd()
      this.#failWrite?.()
    })
    socket.on('drain', () => this.#drain())
    socket.on('close', () => {
      this.#close()
      this.#detach()
    })
    if (outlivesFailedWrite && socket instanceof Socket) this.#deferFailedWrites(socket)
    if (socket.destroyed) process.nextTick(() => this.#close())
  }

  write(chunk: Buffer): boolean {
    if (this.#isClosed || this.#socket.writableEnded) return false
    this.#staged.flush()
    return this.#noteRoom(this.#socket.write(chunk))
  }

  writeLent(chunk: Buffer): boolean {
    if (this.#isClosed || this.#socket.writableEnded) return false
    return this.#noteRoom(this.#staged.write(chunk))
  }

  end(): void {
    if (this.#socket.writableEnded) return
    this.#staged.flush()
    this.#socket.end()
  }

  reset(): void {
    this.#error ??= new Error('we reset the connection')
    const socket = this.#socket
    // While our own end is still being sent Node cannot reset, and after a failed attempt the socket never closes.
    const isEnding = socket.writableEnded && !socket.writableFinished
    // A plain close would look clean to a peer that takes the end of the connection as the end of a message.
    if (socket instanceof Socket && !(socket instanceof TLSSocket) && !isEnding) socket.resetAndDestroy()
    else socket.destroy()
  }

  attach(sink: ByteSink): void {
    const isFirst = this.#sink === undefined
    this.#sink = sink
    if (this.#isClosed) {
      sink.closed(this.#error)
      return
    }
    this.#isPaused = this.#isEndDelivered = false
    if (isFirst) {
      const isLent = readBorrowed(this.#socket, (chunk) => this.#lend(chunk))
      this.#socket.on('data', (chunk: Buffer) => {
        if (!isLent) noteRead(chunk.length)
        this.#take(chunk)
      })
    }
    this.#socket.resume()
    if (this.#isEnded) this.#deliverEnd()
  }

  pause(): void {
    this.#isPaused = true
    this.#socket.pause()
  }

  resume(): void {
    this.#isPaused = false
    this.#socket.resume()
    if (this.#isEnded) this.#deliverEnd()
  }

  /** Node destroys a socket after a failed write, and drops unread bytes. This delays that until everything is read. */
  #deferFailedWrites(socket: DeferringSocket): void {
    socket[failing] = (error, done) => {
      if (this.#isEnded || this.#isClosed) done(error)
      else {
        this.#failWrite = () => {
          this.#failWrite = undefined
          done(error)
        }
      }
    }
    socket._write = deferredWrite
    socket._writev = deferredWritev
  }

  /** Returns false when reading should stop for now. */
  #lend(chunk: Buffer): boolean {
    // TLS passes on all it has decrypted even when paused: Node queues that, and emits it first, as `data`.
    if (this.#isPaused || this.#socket.readableLength > 0) return this.#socket.push(keepBytes(chunk))
    const sink = this.#sink
    try {
      if (sink?.lent) sink.lent(chunk)
      else sink?.data(keepBytes(chunk))
    } catch (cause) {
      this.#fail(cause)
    }
    return !this.#isPaused
  }

  #take(chunk: Buffer): void {
    try {
      this.#sink?.data(chunk)
    } catch (cause) {
      this.#fail(cause)
    }
  }

  #noteRoom(hasRoom: boolean): boolean {
    if (!hasRoom) this.#isWriterWaiting = true
    return hasRoom
  }

  #drain(): void {
    if (!this.#isWriterWaiting || this.#isClosed || !this.#staged.hasRoom) return
    this.#isWriterWaiting = false
    try {
      this.#sink?.drain()
    } catch (cause) {
      this.#fail(cause)
    }
  }

  #deliverEnd(): void {
    if (!this.#sink || this.#isEndDelivered || this.#isClosed) return
    this.#isEndDelivered = true
    try {
      this.#sink.end()
    } catch (cause) {
      this.#fail(cause)
    }
  }

  #close(): void {
    if (this.#isClosed) return
    if (this.#isEnded) this.#deliverEnd()
    this.#isClosed = true
    this.#failWrite?.()
    this.#staged.clear()
    if (!this.#isEnded || !this.#socket.writableFinished) this.#error ??= closedEarly
    this.#sink?.closed(this.#error)
  }

  /**
   * Detaches the stream from the closed socket. TLS sockets live until the next full collection, however short their
   * connection was: Node defines a property on each (`defineHandleReading`), and so a hidden class, which points to it.
   * Objects of the connection must not live on with the socket, and be copied twice meanwhile.
   */
  #detach(): void {
    const socket = this.#socket
    EventEmitter.prototype.removeAllListeners.call(socket)
    socket.on('error', ignore)
    if (socket instanceof Socket) stopLending(socket)
  }

  /** A sink threw: ends this connection and no other. */
  #fail(cause: unknown): void {
    this.#error ??= new Error('the handler of a connection failed', { cause })
    this.#socket.destroy()
  }
}

function ignore(): void {}
