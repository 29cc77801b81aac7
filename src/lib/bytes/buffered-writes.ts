/** Writes lent bytes to a socket. */
import type { Duplex } from 'node:stream'
import { LENT_BYTES } from './borrowed-reads.ts'
import { WriteBuffers } from './write-buffers.ts'

/** Chunks up to this size are sent at once, unless a larger transfer is under way; Node's pool has memory for them. */
const SMALL_BYTES = 4 * 1024

/** A stage with this many bytes is sent: the size of one read. */
const FULL_BYTES = LENT_BYTES

/** Memory of one stage, in bytes, with room for the piece that exceeds `FULL_BYTES`. */
const STAGE_BYTES = FULL_BYTES + 32 * 1024

/** How many turns of the event loop a stage may wait for more bytes of a transfer; turns of a busy server are long. */
const TRANSFER_TURNS = 3

/** With more than this unsent, the writer is asked to wait, in bytes. */
const HIGH_BYTES = 128 * 1024

const stages = new WriteBuffers({ bytes: STAGE_BYTES, spares: 64 })

/**
 * Small chunks are sent at once. Larger ones are collected until the end of the turn: TLS and the mux deliver small pieces,
 * which are cheaper to send as one.
 */
export class BufferedWrites {
  readonly #socket: Duplex
  /** Called when a stage was sent: there may be room again. */
  readonly #onSent: () => void
  #stage: Buffer | undefined
  #staged = 0
  /** Stages written to the socket and not sent yet. */
  #inFlight = 0
  #isScheduled = false
  /** Whether the last stage was large: then the next bytes are most likely part of the same transfer. */
  #inTransfer = false

  constructor(socket: Duplex, onSent: () => void) {
    this.#socket = socket
    this.#onSent = onSent
  }

  /** Whether a writer may go on without waiting for a drain. */
  get hasRoom(): boolean {
    return this.#staged + this.#socket.writableLength < HIGH_BYTES
  }

  /** Copies `chunk`; false asks the writer to wait. */
  write(chunk: Buffer): boolean {
    if (this.#staged === 0 && chunk.length <= SMALL_BYTES && !this.#inTransfer) this.#socket.write(Buffer.from(chunk))
    else this.#gather(chunk)
    return this.hasRoom
  }

  /** Writes the collected bytes to the socket. */
  flush(): void {
    const stage = this.#stage
    if (!stage) return
    const bytes = stage.subarray(0, this.#staged)
    this.#stage = undefined
    this.#staged = 0
    this.#inTransfer = bytes.length > SMALL_BYTES
    this.#inFlight++
    this.#socket.write(bytes, () => {
      this.#inFlight--
      stages.giveBack(stage)
      if (this.#inFlight === 0 && !this.#socket.destroyed) this.flush()
      this.#onSent()
    })
  }

  /** Drops the collected bytes. */
  clear(): void {
    if (this.#stage) stages.giveBack(this.#stage)
    this.#stage = undefined
    this.#staged = 0
  }

  #gather(chunk: Buffer): void {
    for (let at = 0; at < chunk.length; ) {
      this.#stage ??= stages.borrow()
      const copied = chunk.copy(this.#stage, this.#staged, at)
      at += copied
      this.#staged += copied
      if (this.#staged >= FULL_BYTES) this.flush()
    }
    if (!this.#isScheduled && this.#staged > 0) this.#schedule(1)
  }

  #schedule(turn: number): void {
    const staged = this.#staged
    this.#isScheduled = true
    setImmediate(() => {
      this.#isScheduled = false
      if (this.#socket.destroyed || this.#staged === 0) return
      // A transfer is under way and more came meanwhile: there may be still more to send along.
      if (this.#inTransfer && this.#staged !== staged && turn < TRANSFER_TURNS) this.#schedule(turn + 1)
      // While a stage is in flight the next one may fill up; it is sent when the first is done.
      else if (this.#inFlight === 0) this.flush()
    })
  }
}
