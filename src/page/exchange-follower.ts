/** Follows the exchanges of a server or an agent. */
import type { ServerEvent } from '../lib/http/event-stream-reader.ts'
import type { ListedRow, Rows } from './all-rows.ts'
import { type ApiCaller, type CallFault, type CallOutcome, isRecord } from './api-caller.ts'
import { mergedRows } from './exchange-feed.ts'
import { type PollingTools, pauseMs, type Reading } from './polling.ts'
import { textIn } from './text-in.ts'

/** The pause before the list is read again after the stream skipped exchanges, in milliseconds. */
const MISSED_MS = 1500

const UNSEEN: CallFault = { kind: 'unseen', text: '', code: '', field: '', operation: '' }

export interface FollowerOptions extends PollingTools {
  readonly api: Pick<ApiCaller, 'follow'>
  /** The path of the stream. */
  readonly stream: string
  /** Reads the list; `known` are the rows known so far, without a gap. */
  readonly load: (known: Rows) => Promise<CallOutcome<Rows>>
  /** The longest wait before a retry, in milliseconds; by default the same as for polling. */
  readonly maxRetryMs?: number
  readonly onChange: (reading: Reading<Rows>) => void
}

/**
 * Reads the list, then the stream; when the stream breaks, starts over. A server sends an exchange once it is over. An agent
 * also sends changes of open exchanges, and the ids of those that it drops.
 */
export class ExchangeFollower {
  readonly #options: FollowerOptions
  #reading: Reading<Rows> = { value: undefined, readAt: 0, fault: undefined }
  /** Everything up to the latest point that the list and the stream cover without a gap. */
  #listed: Rows = { rows: [], isCut: false }
  /** What the stream has sent since then, while there may be a gap before it. */
  #streamed: readonly ListedRow[] = []
  /** Ids that were dropped since then; the list may still have them. */
  readonly #dropped = new Set<string>()
  #hasGap = true
  #isListing = false
  /** Whether the stream skipped something since the list was last requested. */
  #hasMissed = false
  /** Whether a read of the list is scheduled for that reason. */
  #isDue = false
  #failures = 0
  #cancel = (): void => {}
  /** Ends the open stream; undefined while there is none. */
  #stream: AbortController | undefined

  constructor(options: FollowerOptions) {
    this.#options = options
  }

  /** Does nothing when it follows already. */
  start(): void {
    this.#cancel()
    if (!this.#stream) void this.#follow()
  }

  /** Keeps what was read, but not as live until `start` has caught up. */
  stop(): void {
    this.#end(UNSEEN)
  }

  /** Reads the list again now. */
  refresh(): void {
    if (this.#stream) void this.#list(this.#stream)
  }

  async #follow(): Promise<void> {
    const stream = new AbortController()
    this.#stream = stream
    const fault = await this.#options.api.follow(this.#options.stream, {
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
    this.#streamed = []
    this.#dropped.clear()
    this.#hasGap = true
    this.#isListing = false
    this.#hasMissed = false
    this.#isDue = false
    this.#tell({ fault })
  }

  #fail(fault: CallFault): void {
    this.#end(fault)
    this.#failures++
    const wait = Math.min(pauseMs(0, 0, this.#failures), this.#options.maxRetryMs ?? Number.POSITIVE_INFINITY)
    this.#cancel = this.#options.after(wait, () => this.start())
  }

  #take(events: readonly ServerEvent[], stream: AbortController): void {
    const has = (name: string): boolean => events.some((event) => event.name === name)
    if (has('missed')) {
      this.#hasGap = true
      this.#hasMissed = true
      this.#listLater(stream)
    }
    const rowsOf = (name: string) => events.filter((event) => event.name === name).flatMap(({ data }) => rowIn(data))
    const rows = rowsOf('exchange')
    for (const { id } of rowsOf('removed')) this.#dropped.add(textIn(id))
    // The latest state of each counts.
    if (this.#hasGap) this.#streamed = mergedRows({ rows: this.#streamed, isCut: false }, rows).rows
    else {
      this.#listed = this.#withoutDropped(mergedRows(this.#listed, rows))
      this.#dropped.clear()
    }
    if (has('following')) void this.#list(stream)
    else if (this.#reading.value && !this.#reading.fault) this.#show()
  }

  /** One timer at a time: in a flood the stream skips something again and again. */
  #listLater(stream: AbortController): void {
    if (this.#isDue || this.#isListing) return
    this.#isDue = true
    this.#cancel = this.#options.after(MISSED_MS, () => {
      this.#isDue = false
      void this.#list(stream)
    })
  }

  /** Reads what came before the stream was open, or what it skipped. */
  async #list(stream: AbortController): Promise<void> {
    if (this.#isListing) return
    this.#isListing = true
    this.#hasMissed = false
    // What the stream sends meanwhile may be too new for this list.
    this.#hasGap = true
    const outcome = await this.#options.load(this.#listed)
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
      this.#listed = this.#withoutDropped(mergedRows(this.#listed, this.#streamed))
      this.#streamed = []
      this.#dropped.clear()
      this.#hasGap = false
    }
    this.#show()
  }

  #show(): void {
    const { rows, isCut } = this.#withoutDropped(mergedRows(this.#listed, this.#streamed))
    this.#tell({ value: { rows, isCut: isCut || this.#hasMissed }, readAt: this.#options.now(), fault: undefined })
  }

  /** Leaves out what was dropped. */
  #withoutDropped({ rows, isCut }: Rows): Rows {
    if (this.#dropped.size === 0) return { rows, isCut }
    return { rows: rows.filter(({ id }) => !this.#dropped.has(textIn(id))), isCut }
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
