/** What a client sees of its tunnels: lines as they come, or on a terminal a small screen that is drawn anew. */
import { flatText } from '../lib/text/flat-text.ts'
import { printable } from '../lib/text/printable.ts'
import type { ServedRequest } from '../model/served-request.ts'
import type { Tunnel } from '../tunnel/live.ts'
import type { WatchedRequests } from '../tunnel/watched-requests.ts'
import { row, type ScreenFigures, screenLines, TITLE } from './screen-lines.ts'
import type { SshTerminal } from './terminal.ts'

/** Where it is shown. */
type Surface = Pick<SshTerminal, 'window' | 'isBusy' | 'print' | 'complain'>

export interface DisplayOptions {
  readonly region: string
  readonly requests: Pick<WatchedRequests, 'watch'>
  /** Asked at every drawing. */
  readonly figures: () => ScreenFigures
  /** Has the latency measured. */
  readonly measure: () => void
}

/** How often the screen is drawn at most, in milliseconds; all that changes in between is drawn at once. */
const DRAW_MS = 1000

/** How long the first drawing waits for the first forward, in milliseconds. */
const FIRST_DRAW_MS = 100

/** How often the latency is measured, in drawings. */
const MEASURE_EVERY = 10

/** Characters of a path that are shown at most: the widest screen has no room for more. */
const MAX_SHOWN = 300

/** Requests that are kept; no screen has room for more. */
const MAX_REQUESTS = 50

const HOME = '\x1b[H'
const CLEAR_LINE = '\x1b[K'
const CLEAR_BELOW = '\x1b[J'
const CLEAR = '\x1b[2J'

export class SshDisplay {
  readonly #options: DisplayOptions
  /** With what ends the watching of their requests. */
  readonly #tunnels = new Map<Tunnel, () => void>()
  readonly #requests: ServedRequest[] = []
  #terminal: Surface | undefined
  #total = 0
  #timer: NodeJS.Timeout | undefined
  #turns = 0
  #drawn = ''
  #hasTitle = false
  #note = ''
  #isClosed = false

  constructor(options: DisplayOptions) {
    this.#options = options
  }

  show(terminal: Surface): void {
    this.#terminal = terminal
    if (terminal.window) this.#timer = setTimeout(() => this.#turn(), FIRST_DRAW_MS).unref()
  }

  add(tunnel: Tunnel): void {
    this.#tunnels.set(tunnel, this.#watch(tunnel))
    if (this.#isScreen) return
    const title = this.#hasTitle ? '' : `${TITLE}\n`
    this.#hasTitle = true
    this.#terminal?.print(`${title}${row('Forwarding', addressOf(tunnel))}\n`)
  }

  remove(tunnel: Tunnel): void {
    this.#tunnels.get(tunnel)?.()
    this.#tunnels.delete(tunnel)
  }

  /** Something that the client should know, and that ends nothing. */
  note(text: string): void {
    this.#note = text
    if (!this.#isScreen) this.#terminal?.complain(`${text}\n`)
  }

  connected(): void {
    this.#total++
  }

  /** The window has another size: all of it is drawn at the next turn. */
  redraw(): void {
    this.#drawn = ''
  }

  close(): void {
    if (this.#isClosed) return
    // What is said last stands below what was there last; for who was only refused, nothing is cleared.
    if (this.#turns > 0) this.#draw()
    this.#isClosed = true
    clearTimeout(this.#timer)
    for (const stopWatching of this.#tunnels.values()) stopWatching()
  }

  get #isScreen(): boolean {
    return this.#terminal?.window !== undefined
  }

  /** Nobody who has no screen to show them on costs a look at the requests. */
  #watch({ endpoint }: Tunnel): () => void {
    const isHttp = endpoint?.proto === 'http' || endpoint?.proto === 'https'
    if (!isHttp || !this.#isScreen) return () => {}
    return this.#options.requests.watch(endpoint.id, (request) => this.#saw(request))
  }

  #saw({ method, path, status, durationMs }: ServedRequest): void {
    this.#requests.unshift({ method: shown(method), path: shown(path), status, durationMs })
    if (this.#requests.length > MAX_REQUESTS) this.#requests.pop()
  }

  #turn(): void {
    if (this.#turns++ % MEASURE_EVERY === 0) this.#options.measure()
    this.#draw()
    this.#timer = setTimeout(() => this.#turn(), DRAW_MS).unref()
  }

  #draw(): void {
    const terminal = this.#terminal
    // Who does not read gets the newest when it reads again, not all that it missed.
    if (!terminal?.window || terminal.isBusy || this.#isClosed) return
    const { columns, rows } = terminal.window
    const lines = screenLines({
      region: this.#options.region,
      addresses: [...this.#tunnels.keys()].map(addressOf),
      total: this.#total,
      requests: this.#requests,
      note: this.#note,
      figures: this.#options.figures(),
      // The cursor waits on the last line.
      rows: Math.max(1, rows - 1),
      columns,
    })
    const text = lines.map((line) => `${line}${CLEAR_LINE}\n`).join('')
    if (text === this.#drawn) return
    const start = this.#drawn === '' ? CLEAR : ''
    this.#drawn = text
    terminal.print(`${start}${HOME}${text}${CLEAR_BELOW}`)
  }
}

function addressOf({ endpoint, labels = {} }: Tunnel): string {
  const pairs = Object.entries(labels).map(([key, value]) => `${key}=${value}`)
  return printable(endpoint?.open.url ?? `labels ${pairs.join(', ')}`)
}

/** Text of a visitor as a terminal may have it: characters of one column each, no more than fit, and none kept beyond them. */
function shown(text: string): string {
  return flatText(text.slice(0, MAX_SHOWN).replace(/[^\x20-\x7e]/g, '?'))
}
