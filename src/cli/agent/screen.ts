/** A terminal as something to draw on: whole frames, without flicker, and gone without a trace at the end. */
import { dontBlock } from '../../lib/log/standard-output.ts'
import { type Keys, processKeys } from './keys.ts'

export interface Screen {
  readonly columns: number
  readonly rows: number
  /** Whether the terminal has not taken all that was written: it is held with Ctrl+S, or slow. */
  readonly isBusy: boolean
  write(text: string): void
  /** Gives back how to stop listening. */
  onResize(run: () => void): () => void
  /** Keeps what is typed from showing up. */
  readonly keys: Keys
}

export function processScreen(): Screen {
  const { stdout } = process
  // A terminal that is held would hold the traffic too.
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

// A second screen that leaves the first as it was, no cursor, and lines that are cut instead of wrapped.
const ENTER = '\x1b[?1049h\x1b[?25l\x1b[?7l'
const LEAVE = '\x1b[?7h\x1b[?25h\x1b[?1049l'
// Terminals that know it show a frame only when it is whole.
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

  /** Draws a frame, unless it is what stands there already. */
  draw(lines: readonly string[]): void {
    if (!this.#isOpen || this.#screen.isBusy) return
    // Each line wipes what stood behind it, and nothing is wiped before: so nothing ever blinks.
    const frame = lines
      .slice(0, this.#screen.rows)
      .map((line) => `${line}\x1b[K`)
      .join('\r\n')
    if (frame === this.#shown) return
    this.#shown = frame
    this.#screen.write(`${BEGIN}${frame}${END}`)
  }

  /** What stands there is of no use any more, as after a change of size. */
  forget(): void {
    this.#shown = ''
  }

  close(): void {
    if (!this.#isOpen) return
    this.#isOpen = false
    this.#screen.write(LEAVE)
  }

  /** Back after `close`, on a screen that others used meanwhile. */
  reopen(): void {
    this.#isOpen = true
    this.#screen.write(ENTER)
    this.forget()
  }
}
