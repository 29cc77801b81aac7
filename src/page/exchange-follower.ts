/** Follows exchanges: what the list has, then what the stream tells; when that breaks, all of it again. */
import type { ListedRow, Rows } from './all-rows.ts'
import { type ApiCaller, type CallFault, isRecord } from './api-caller.ts'
import type { ServerEvent } from './event-stream-reader.ts'
import { type ExchangeFilters, mergedRows, queryOf, readExchanges } from './exchange-feed.ts'
import { type PollingTools, pauseMs, type Reading } from './polling.ts'

/** How soon the list is read again while more comes than the stream can tell, in milliseconds. */
const MISSED_MS = 1500

const UNSEEN: CallFault = { kind: 'unseen', text: '', code: '', field: '', operation: '' }

export interface FollowerOptions extends PollingTools {
  readonly api: Pick<ApiCaller, 'get' | 'follow'>
  readonly filters: ExchangeFilters
  readonly onChange: (reading: Reading<Rows>) => void
}

export class ExchangeFollower {
  readonly #options: FollowerOptions
  #reading: Reading<Rows> = { value: undefined, readAt: 0, fault: undefined }
  /** All that the server has, up to where it was listed or told without a gap. */
  #listed: Rows = { rows: [], isCut: false }
  /** What the stream has told since then, while there may be a gap before it. */
  #told: readonly ListedRow[] = []
  #hasGap = true
  #isListing = false
  /** Whether the stream left something out since the list was last asked for. */
  #hasMissed = false
  /** Whether the list will be read soon for that. */
  #isDue = false
  #failures = 0
  #cancel = (): void => {}
  /** Of the stream that is open; undefined while there is none. */
  #stream: AbortController | undefined

  constructor(options: FollowerOptions) {
    this.#options = options
  }

  /** Does nothing when it follows already. */
  start(): void {
    this.#cancel()
    if (!this.#stream) void this.#follow()
  }

  /** What was read stays, and is not called live before `start` has caught up. */
  stop(): void {
    this.#end(UNSEEN)
  }

  /** Lists again now. */
  refresh(): void {
    if (this.#stream) void this.#list(this.#stream)
  }

  async #follow(): Promise<void> {
    const stream = new AbortController()
    this.#stream = stream
    const { api, filters } = this.#options
    const fault = await api.follow(`/exchanges/stream?${queryOf(filters)}`, {
      signal: stream.signal,
      onEvents: (events) => {
        if (this.#stream === stream) this.#take(events, stream)
      },
    })
    if (this.#stream === stream) this.#fail(fault)
  }

  #end(fault: CallFault): void {
    this.#cancel()
    this.#stream?.abort()
    this.#stream = undefined
    this.#told = []
    this.#hasGap = true
    this.#isListing = false
    this.#hasMissed = false
    this.#isDue = false
    this.#tell({ fault })
  }

  #fail(fault: CallFault): void {
    this.#end(fault)
    this.#failures++
    this.#cancel = this.#options.after(pauseMs(0, 0, this.#failures), () => this.start())
  }

  #take(events: readonly ServerEvent[], stream: AbortController): void {
    const has = (name: string): boolean => events.some((event) => event.name === name)
    if (has('missed')) {
      this.#hasGap = true
      this.#hasMissed = true
      this.#listLater(stream)
    }
    const rows = events.filter(({ name }) => name === 'exchange').flatMap(({ data }) => rowIn(data))
    if (this.#hasGap) this.#told = mergedRows({ rows, isCut: false }, this.#told).rows
    else this.#listed = mergedRows(this.#listed, rows)
    if (has('following')) void this.#list(stream)
    else if (this.#reading.value && !this.#reading.fault) this.#show()
  }

  /** One wait at a time: in a flood something is missed again and again. */
  #listLater(stream: AbortController): void {
    if (this.#isDue || this.#isListing) return
    this.#isDue = true
    this.#cancel = this.#options.after(MISSED_MS, () => {
      this.#isDue = false
      void this.#list(stream)
    })
  }

  /** Reads what came before the stream was open, or was too much for it. */
  async #list(stream: AbortController): Promise<void> {
    if (this.#isListing) return
    this.#isListing = true
    this.#hasMissed = false
    // What is told meanwhile may have come too late for the list.
    this.#hasGap = true
    const outcome = await readExchanges(this.#options.api, this.#options.filters, this.#listed)
    if (this.#stream !== stream) return
    this.#isListing = false
    if (!outcome.ok) {
      this.#fail(outcome.fault)
      return
    }
    this.#failures = 0
    this.#listed = outcome.value
    if (this.#hasMissed) this.#listLater(stream)
    else {
      this.#listed = mergedRows(this.#listed, this.#told)
      this.#told = []
      this.#hasGap = false
    }
    this.#show()
  }

  #show(): void {
    const { rows, isCut } = mergedRows(this.#listed, this.#told)
    this.#tell({ value: { rows, isCut: isCut || this.#hasMissed }, readAt: this.#options.now(), fault: undefined })
  }

  #tell(change: Partial<Reading<Rows>>): void {
    this.#reading = { ...this.#reading, ...change }
    this.#options.onChange(this.#reading)
  }
}

function rowIn(data: string): ListedRow[] {
  const row: unknown = JSON.parse(data)
  return isRecord(row) ? [row] : []
}
