/** Shows a client its tunnels: as lines, or on a terminal as a small screen that is redrawn. */
import { flatText } from '../../lib/text/flat-text.ts'
import { printable } from '../../lib/text/printable.ts'
import type { ServedRequest } from '../../model/served-request.ts'
import type { Tunnel } from '../tunnel/session-types.ts'
import type { WatchedRequests } from '../tunnel/watched-requests.ts'
import { row, type ScreenFigures, screenLines, TITLE } from './screen-lines.ts'
import type { SshTerminal } from './ssh-terminal.ts'

/** The terminal that it is shown on. */
type Surface = Pick<SshTerminal, 'window' | 'isBusy' | 'print' | 'complain'>

interface DisplayOptions {
  readonly region: string
  readonly requests: Pick<WatchedRequests, 'watch'>
  /** Called for each drawing. */
  readonly figures: () => ScreenFigures
  /** Starts a measurement of the latency. */
  readonly measure: () => void
}

/** The screen is drawn once in this many milliseconds, with everything that has changed since. */
const DRAW_MS = 1000

/** How long the first drawing waits for the first forward, in milliseconds. */
const FIRST_DRAW_MS = 100

/** The latency is measured once in this many drawings. */
const MEASURE_EVERY = 10

/** The most characters of a method or path that are kept: the widest screen has no room for more. */
const MAX_SHOWN = 300

/** The most requests that are kept: no screen has room for more. */
const MAX_REQUESTS = 50

const HOME = '\x1b[H'
const CLEAR_LINE = '\x1b[K'
const CLEAR_BELOW = '\x1b[J'
const CLEAR = '\x1b[2J'

export class SshDisplay {
  readonly #options: DisplayOptions
  /** Each with a function that stops watching its requests. */
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

  /** Shows something that the client should know; the session goes on. */
  note(text: string): void {
    this.#note = text
    if (!this.#isScreen) this.#terminal?.complain(`${text}\n`)
  }

  connected(): void {
    this.#total++
  }

  /** The size of the window has changed: the next turn draws all of it. */
  redraw(): void {
    this.#drawn = ''
  }

  close(): void {
    if (this.#isClosed) return
    // The last message goes below the last screen. If nothing was drawn yet, the terminal is not cleared.
    if (this.#turns > 0) this.#draw()
    this.#isClosed = true
    clearTimeout(this.#timer)
    for (const stopWatching of this.#tunnels.values()) stopWatching()
  }

  get #isScreen(): boolean {
    return this.#terminal?.window !== undefined
  }

  /** Without a screen to show them on, requests are not watched. */
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
    // A client that does not read gets the newest screen once it does, not all that it missed.
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

/** A visitor's text, safe for a terminal: one-column characters only, cut to what fits, and copied so the rest is freed. */
function shown(text: string): string {
  return flatText(text.slice(0, MAX_SHOWN).replace(/[^\x20-\x7e]/g, '?'))
}
