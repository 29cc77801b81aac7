/** A client's terminal: takes its command, and shows it lines or a screen. */
import type { Channel, Session } from 'ssh2'

interface WindowSize {
  readonly columns: number
  readonly rows: number
}

/** What a client asked for in a terminal. */
export type Asked =
  | { readonly exec: string }
  /** No command at all. */
  | { readonly shell: true }
  | { readonly subsystem: string }

/** The most bytes that wait for a client that does not read; further output is dropped. */
const MAX_UNREAD = 64 * 1024

/** The largest window that is believed; a larger one is cut to it. */
const LARGEST = { columns: 300, rows: 100 } as const

const ETX = 3
const EOT = 4

export class SshTerminal {
  /** Undefined for lines instead of a screen. */
  #window: WindowSize | undefined
  #channel: Channel | undefined
  #on: Parameters<SshTerminal['serve']>[0] | undefined

  constructor(session: Session) {
    session.on('pty', (accept: (() => void) | undefined, _reject: unknown, size: { cols: number; rows: number }) => {
      this.#window = believable(size)
      accept?.()
    })
    session.on(
      'window-change',
      (accept: (() => void) | undefined, _reject: unknown, size: { cols: number; rows: number }) => {
        if (this.#window) this.#window = believable(size)
        accept?.()
        this.#on?.resized()
      },
    )
    session.on('exec', (accept: () => Channel | undefined, _reject: unknown, { command }: { command: string }) => {
      this.#begin(accept, { exec: command })
    })
    session.on('shell', (accept: () => Channel | undefined) => this.#begin(accept, { shell: true }))
    session.on('subsystem', (accept: () => Channel | undefined, _reject: unknown, { name }: { name: string }) => {
      this.#begin(accept, { subsystem: name })
    })
  }

  get window(): WindowSize | undefined {
    return this.#window
  }

  /** Whether the client has not yet read everything that was shown. */
  get isBusy(): boolean {
    return (this.#channel?.writableLength ?? 0) > 0
  }

  /** `asked` is called once, when the client says what it wants to run. */
  serve(on: { readonly asked: (asked: Asked) => void; readonly quit: () => void; readonly resized: () => void }): void {
    this.#on = on
  }

  /** Shows text; drops it when the client does not read. */
  print(text: string): void {
    const channel = this.#channel
    if (!channel?.writable || channel.writableLength > MAX_UNREAD) return
    channel.write(this.#lines(text))
  }

  complain(text: string): void {
    const channel = this.#channel
    if (!channel?.writable || channel.stderr.writableLength > MAX_UNREAD) return
    // A terminal shows both streams, and an error must not overtake what was printed before.
    if (this.#window) channel.write(this.#lines(text))
    else channel.stderr.write(this.#lines(text))
  }

  exit(status: number): void {
    this.#channel?.exit(status)
    this.#channel?.end()
  }

  #lines(text: string): string {
    return this.#window ? text.replace(/\r?\n/g, '\r\n') : text
  }

  #begin(accept: () => Channel | undefined, asked: Asked): void {
    // Undefined for a second command in the same terminal, which the library refuses.
    const channel = accept()
    if (!channel || this.#channel) return
    this.#channel = channel
    channel.on('error', () => {})
    channel.stderr.on('error', () => {})
    channel.on('data', (keys: Buffer) => {
      if (this.#window && (keys.includes(ETX) || keys.includes(EOT))) this.#on?.quit()
    })
    channel.on('close', () => this.#on?.quit())
    this.#on?.asked(asked)
  }
}

function believable({ cols, rows }: { readonly cols: number; readonly rows: number }): WindowSize {
  return { columns: Math.min(cols || 80, LARGEST.columns), rows: Math.min(rows || 24, LARGEST.rows) }
}
