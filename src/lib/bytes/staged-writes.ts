/**
 * Writes of bytes that are only lent: small ones leave at once, larger ones are gathered until the end of the turn, since
 * what TLS and the multiplexer give in small pieces is cheaper to send in large ones.
 */
import type { Duplex } from 'node:stream'
import { LENT_BYTES } from './lent-reads.ts'
import { Stages } from './stages.ts'

/** Bytes up to here leave at once, unless they stand in a row of many; memory for them comes from a pool. */
const SMALL_BYTES = 4 * 1024

/** What is gathered at most before it leaves, in bytes: as much as one read brings. */
const FULL_BYTES = LENT_BYTES

/** Memory for that, and for the piece that makes it more, in bytes. */
const STAGE_BYTES = FULL_BYTES + 32 * 1024

/** For how many turns of the event loop what is gathered may wait for more of its row: on a busy server a turn is long. */
const ROW_TURNS = 3

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
  /** Whether what left last was more than a little: what follows is most likely a part of the same. */
  #isRow = false

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
    if (this.#staged === 0 && chunk.length <= SMALL_BYTES && !this.#isRow) this.#socket.write(Buffer.from(chunk))
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
    this.#isRow = bytes.length > SMALL_BYTES
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
      // In a row, more came meanwhile: there may be still more to send along.
      if (this.#isRow && this.#staged !== staged && turn < ROW_TURNS) this.#schedule(turn + 1)
      // While a stage is under way the next one may fill; it leaves when that is sent.
      else if (this.#inFlight === 0) this.flush()
    })
  }
}
