/** Draws whole frames on a terminal, without flicker, and restores its content at the end. */
import { dontBlock } from '../../lib/log/standard-output.ts'
import { type Keys, processKeys } from './keys.ts'

export interface Screen {
  readonly columns: number
  readonly rows: number
  /** Whether the terminal has yet to accept earlier output, because it is slow or paused with Ctrl+S. */
  readonly isBusy: boolean
  write(text: string): void
  /** Returns a function that stops listening. */
  onResize(run: () => void): () => void
  /** Keeps typed characters from being echoed. */
  readonly keys: Keys
}

export function processScreen(): Screen {
  const { stdout } = process
  // A blocking write to a paused terminal would stop the traffic too.
  dontBlock(stdout)
  return {
    get columns() {
      return stdout.columns || 80
    },
    get rows() {
      return stdout.rows || 24
    },
    get isBusy() {
      return stdout.writableLength > 0
    },
    write: (text) => void stdout.write(text),
    onResize(run) {
      stdout.on('resize', run)
      return () => stdout.off('resize', run)
    },
    keys: processKeys(),
  }
}

// The alternate screen, which keeps the first one intact; no cursor; long lines are cut, not wrapped.
const ENTER = '\x1b[?1049h\x1b[?25l\x1b[?7l'
const LEAVE = '\x1b[?7h\x1b[?25h\x1b[?1049l'
// Synchronized output: terminals that support it show a frame only when it is complete.
const BEGIN = '\x1b[?2026h\x1b[H'
const END = '\x1b[J\x1b[?2026l'

export class Canvas {
  readonly #screen: Screen
  #shown = ''
  #isOpen = true

  constructor(screen: Screen) {
    this.#screen = screen
    screen.write(ENTER)
  }

  /** Draws a frame, unless it is already on the screen. */
  draw(lines: readonly string[]): void {
    if (!this.#isOpen || this.#screen.isBusy) return
    // Each line erases only the rest of its own row, and the screen is never cleared first, so nothing flickers.
    const frame = lines
      .slice(0, this.#screen.rows)
      .map((line) => `${line}\x1b[K`)
      .join('\r\n')
    if (frame === this.#shown) return
    this.#shown = frame
    this.#screen.write(`${BEGIN}${frame}${END}`)
  }

  /** Redraws everything next time, as is needed after a change of size. */
  forget(): void {
    this.#shown = ''
  }

  close(): void {
    if (!this.#isOpen) return
    this.#isOpen = false
    this.#screen.write(LEAVE)
  }

  /** Takes the screen again after `close`; other programs may have used it meanwhile. */
  reopen(): void {
    this.#isOpen = true
    this.#screen.write(ENTER)
    this.forget()
  }
}
