/**
 * Writes of bytes that are only lent: small ones leave at once, larger ones are gathered until the end of the turn, since
 * what TLS and the multiplexer give in small pieces is cheaper to send in large ones.
 */
import type { Duplex } from 'node:stream'
import { Stages } from './stages.ts'

/** Bytes up to here leave at once when nothing waits; memory for them comes from a pool. */
const SMALL_BYTES = 4 * 1024

/** What is gathered before it leaves, in bytes. */
const STAGE_BYTES = 128 * 1024

/** More than this unsent asks the writer to wait, in bytes. */
const HIGH_BYTES = 128 * 1024

const stages = new Stages({ bytes: STAGE_BYTES, spares: 64 })

export class StagedWrites {
  readonly #socket: Duplex
  /** A stage was sent: there may be room again. */
  readonly #onSent: () => void
  #stage: Buffer | undefined
  #staged = 0
  /** Stages that the socket holds. */
  #inFlight = 0
  #isScheduled = false

  constructor(socket: Duplex, onSent: () => void) {
    this.#socket = socket
    this.#onSent = onSent
  }

  /** Whether a writer need not wait. */
  get hasRoom(): boolean {
    return this.#staged + this.#socket.writableLength < HIGH_BYTES
  }

  /** Copies `chunk`; false asks to wait. */
  write(chunk: Buffer): boolean {
    if (this.#staged === 0 && chunk.length <= SMALL_BYTES) this.#socket.write(Buffer.from(chunk))
    else this.#gather(chunk)
    return this.hasRoom
  }

  /** Gives to the socket what was gathered. */
  flush(): void {
    const stage = this.#stage
    if (!stage) return
    const bytes = stage.subarray(0, this.#staged)
    this.#stage = undefined
    this.#staged = 0
    this.#inFlight++
    this.#socket.write(bytes, () => {
      this.#inFlight--
      stages.giveBack(stage)
      if (this.#inFlight === 0 && !this.#socket.destroyed) this.flush()
      this.#onSent()
    })
  }

  /** Nothing more leaves. */
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
      if (this.#staged === STAGE_BYTES) this.flush()
    }
    if (this.#isScheduled || this.#staged === 0) return
    this.#isScheduled = true
    setImmediate(() => {
      this.#isScheduled = false
      // While a stage is under way the next one may fill; it leaves when that is sent.
      if (this.#inFlight === 0 && !this.#socket.destroyed) this.flush()
    })
  }
}
