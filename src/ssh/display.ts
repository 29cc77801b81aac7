/** What a client sees of its tunnels: lines as they come, or on a terminal a small screen that is drawn anew. */
import { printable } from '../lib/printable.ts'
import type { Tunnel } from '../tunnel/live.ts'
import type { Terminal } from './terminal.ts'

/** What the screen counts. */
export interface Load {
  readonly connections: number
  readonly bytesIn: number
  readonly bytesOut: number
}

/** How often the screen is drawn at most, in milliseconds. */
const DRAW_MS = 1000

/** Tunnels that are listed; of more, only how many. */
const MAX_LISTED = 20

const HOME = '\x1b[H'
const CLEAR_LINE = '\x1b[K'
const CLEAR_BELOW = '\x1b[J'
const CLEAR = '\x1b[2J'

export class Display {
  readonly #region: string
  readonly #load: () => Load
  readonly #tunnels = new Set<Tunnel>()
  #terminal: Terminal | undefined
  #connected = 0
  #timer: NodeJS.Timeout | undefined
  #drawn = ''
  #isClosed = false

  constructor({ region, load }: { readonly region: string; readonly load: () => Load }) {
    this.#region = region
    this.#load = load
  }

  show(terminal: Terminal): void {
    this.#terminal = terminal
    if (!terminal.window) {
      terminal.print('Postern (via SSH) (Ctrl+C to quit)\n')
      return
    }
    terminal.print(CLEAR)
    this.#timer = setInterval(() => this.#draw(), DRAW_MS).unref()
    this.#draw()
  }

  add(tunnel: Tunnel): void {
    this.#tunnels.add(tunnel)
    if (!this.#terminal?.window) this.#terminal?.print(`${forwarding(tunnel)}\n`)
  }

  remove(tunnel: Tunnel): void {
    this.#tunnels.delete(tunnel)
  }

  connected(): void {
    this.#connected++
  }

  /** The window has another size: all of it is drawn at the next turn. */
  redraw(): void {
    this.#drawn = ''
  }

  close(): void {
    if (this.#isClosed) return
    // What is said last stands below what was there last.
    this.#draw()
    this.#isClosed = true
    clearInterval(this.#timer)
  }

  #draw(): void {
    const terminal = this.#terminal
    if (!terminal?.window || this.#isClosed) return
    const { columns, rows } = terminal.window
    const lines = this.#lines().slice(0, Math.max(1, rows - 1))
    const text = lines.map((line) => `${line.slice(0, columns)}${CLEAR_LINE}\n`).join('')
    if (text === this.#drawn) return
    this.#drawn = text
    terminal.print(`${HOME}${text}${CLEAR_BELOW}`)
  }

  #lines(): string[] {
    const { connections, bytesIn, bytesOut } = this.#load()
    const listed = [...this.#tunnels].slice(0, MAX_LISTED)
    const more = this.#tunnels.size - listed.length
    return [
      'Postern (via SSH) (Ctrl+C to quit)',
      '',
      row('Region', this.#region),
      ...(listed.length === 0 ? [row('Forwarding', 'waiting for a forward')] : listed.map(forwarding)),
      ...(more > 0 ? [row('', `and ${more} more`)] : []),
      row('Connections', `${connections} open, ${this.#connected} in all`),
      row('Traffic', `${bytesOut} bytes to you, ${bytesIn} bytes from you`),
    ]
  }
}

function forwarding({ endpoint, labels = {} }: Tunnel): string {
  const pairs = Object.entries(labels).map(([key, value]) => `${key}=${value}`)
  return row('Forwarding', printable(endpoint?.open.url ?? `labels ${pairs.join(', ')}`))
}

function row(name: string, value: string): string {
  return `${name.padEnd(12)}${value}`
}
