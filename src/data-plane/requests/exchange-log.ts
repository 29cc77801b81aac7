/** The latest exchanges of this data plane: a few hundred bytes each in a ring, read only on request. */

import { RecordRing } from '../../lib/bytes/record-ring.ts'
import { othersTurn } from '../../lib/threads/others-turn.ts'
import { type ExchangeFilter, type ExchangeQuery, isThrough, type SeenExchange } from '../../model/exchange.ts'
import { type ExchangeId, exchangeId, readExchangeId } from '../../model/exchange-id.ts'
import type { AccessRecord } from './access-record.ts'
import { ReadRecord, RecordWriter } from './exchange-record.ts'

interface ExchangeLogOptions {
  /** Memory for everything, in bytes. */
  readonly bytes: number
  /** Of this node and data plane; see `tagOf`. */
  readonly tags: Pick<ExchangeId, 'nodeTag' | 'planeTag'>
  /** The session of a tunnel that is online. */
  readonly sessionOf: (tunnelId: string) => string | undefined
}

/** An exchange, and where its heads and bodies are if they were kept. */
interface FoundExchange {
  readonly exchange: SeenExchange
  /** The number of the last part that was kept; -1 when there is none. */
  readonly lastPart: number
  readonly hasBodies: boolean
}

/** The size of a record with short texts, in bytes. */
const USUAL_BYTES = 200

/** Records that are scanned before other work may run. */
const STEPS = 32

export class ExchangeLog {
  readonly #options: ExchangeLogOptions
  readonly #ring: RecordRing
  readonly #writer: RecordWriter
  #lastAt = 0

  constructor(options: ExchangeLogOptions) {
    this.#options = options
    this.#ring = new RecordRing({ bytes: options.bytes, usualBytes: USUAL_BYTES })
    this.#writer = new RecordWriter(this.#ring)
  }

  /** The number that the next exchange will have. */
  get next(): number {
    return this.#ring.next
  }

  /** Notes an exchange that is over. Called for every request. */
  note(given: AccessRecord): void {
    // Ids ascend, even when the clock was set back. Reading it again would cost as much as all numbers of a record.
    this.#lastAt = Math.max(this.#lastAt, given.startedAt + given.durationMs)
    this.#writer.write(given, this.#lastAt)
  }

  /** The id of the exchange that was noted last. */
  get lastId(): string {
    return this.#idOf(this.#lastAt, this.#ring.next - 1)
  }

  /** The exchanges that a query asks for, newest first. */
  async page({ filter, beforeId, limit }: ExchangeQuery): Promise<SeenExchange[]> {
    const before = beforeId === undefined ? undefined : readExchangeId(beforeId)
    const found: SeenExchange[] = []
    const breath = othersTurn()
    for (let number = this.#ring.next - 1; found.length < limit; number--) {
      const record = this.#read(number)
      // An exchange that ended before a time also began before it.
      if (!record || (filter.since !== undefined && record.endedAt < filter.since)) break
      if ((!before || this.#isBefore(record.endedAt, number, before)) && passes(record, filter)) {
        found.push(this.#show(record, number))
      }
      if (number % STEPS === 0) await breath()
    }
    return found
  }

  /** Exchanges from number `from` on, the latest `limit` of them, oldest first. */
  since(from: number, limit: number): SeenExchange[] {
    const { next, oldest } = this.#ring
    const found: SeenExchange[] = []
    for (let number = Math.max(from, oldest, next - limit); number < next; number++) {
      const record = this.#read(number)
      if (record) found.push(this.#show(record, number))
    }
    return found
  }

  find(id: string): FoundExchange | undefined {
    const asked = readExchangeId(id)
    const record = asked && this.#read(asked.number)
    if (!record || this.#idOf(record.endedAt, asked.number) !== id) return undefined
    const { lastPart, hasBodies } = record
    return { exchange: this.#show(record, asked.number), lastPart, hasBodies }
  }

  #read(number: number): ReadRecord | undefined {
    const bytes = this.#ring.read(number)
    return bytes && new ReadRecord(bytes)
  }

  #idOf(endedAt: number, number: number): string {
    return exchangeId({ endedAt, number, ...this.#options.tags })
  }

  /** Compares as ids do. */
  #isBefore(endedAt: number, number: number, other: ExchangeId): boolean {
    if (endedAt !== other.endedAt) return endedAt < other.endedAt
    if (number !== other.number) return number < other.number
    const { nodeTag, planeTag } = this.#options.tags
    return nodeTag + planeTag < other.nodeTag + other.planeTag
  }

  #show(record: ReadRecord, number: number): SeenExchange {
    const target = record.text('target')
    return {
      ...record.plain(),
      id: this.#idOf(record.endedAt, number),
      sessionId: target === undefined ? undefined : this.#options.sessionOf(target),
    }
  }
}

function passes(record: ReadRecord, filter: ExchangeFilter): boolean {
  const { edgeId, tunnelId, method, path, status, since, ownerId } = filter
  return (
    (status === undefined || record.status === status) &&
    (since === undefined || record.startedAt >= since) &&
    (edgeId === undefined || isThrough(edgeId, { edgeId: record.text('edge'), target: record.text('target') })) &&
    (tunnelId === undefined || record.text('target') === tunnelId) &&
    (method === undefined || record.text('method') === method) &&
    (path === undefined || record.text('path')?.startsWith(path) === true) &&
    (ownerId === undefined || isOfOwner(record, ownerId))
  )
}

/** Edges belong to the account (D24). A request that reached no edge belongs to no owner. */
function isOfOwner(record: ReadRecord, ownerId: string): boolean {
  const owner = record.text('owner')
  return record.text('edge') !== undefined && (owner === undefined || owner === ownerId)
}
